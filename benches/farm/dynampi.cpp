// Sleeping tasks dealt by DynaMPI, a header-only manager and worker library in C++, for scripts/farm-speeds.
//
// dynampi FILE DISTRIBUTOR: FILE has a task's seconds on each line; DISTRIBUTOR is hierarchical (DynaMPI's default), naive or lockfree.
// Rank 0, which manages and runs no task, prints the seconds from the first task's insertion to the last result.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <vector>

#include <mpi.h>
#include <sys/prctl.h>

#include <dynampi/dynampi.hpp>

static int sleep_for(double seconds) {
    timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
    while (nanosleep(&left, &left) != 0) {
    }
    return 0;
}

template <template <typename, typename, typename...> typename Distributor>
static void deal(const std::vector<double>& lengths) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    typename Distributor<double, int>::Config config;
    config.comm = MPI_COMM_WORLD;
    if constexpr (requires { config.max_tasks; }) config.max_tasks = static_cast<int>(lengths.size());
    Distributor<double, int> distributor(sleep_for, config);
    if (!distributor.is_root_manager()) return;
    for (double seconds : lengths) distributor.insert_task(seconds);
    const auto results = distributor.finish_remaining_tasks();
    if (results.size() != lengths.size()) {
        std::fprintf(stderr, "dynampi: %zu results of %zu tasks\n", results.size(), lengths.size());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    std::printf("%.6f\n", MPI_Wtime() - began);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    // As the farm does it: otherwise the kernel may wake a sleeper 50 us late.
    prctl(PR_SET_TIMERSLACK, 1);
    if (argc != 3) {
        std::fprintf(stderr, "usage: dynampi FILE hierarchical|naive|lockfree\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    std::vector<double> lengths;
    std::ifstream file(argv[1]);
    for (double seconds; file >> seconds;) lengths.push_back(seconds);
    if (std::strcmp(argv[2], "naive") == 0) {
        deal<dynampi::NaiveMPIWorkDistributor>(lengths);
    } else if (std::strcmp(argv[2], "lockfree") == 0) {
        deal<dynampi::LockFreeMPIWorkDistributor>(lengths);
    } else {
        deal<dynampi::HierarchicalMPIWorkDistributor>(lengths);
    }
    MPI_Finalize();
}
