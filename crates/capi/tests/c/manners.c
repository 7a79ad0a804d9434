/* A guest changes nothing in the process: signals, threads, exit handlers, output, environment, the communicator's hints. */
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>

static volatile sig_atomic_t signalled;
static void handler(int signal) { (void)signal; signalled++; }

static int threads(void) {
    int count = 0;
    DIR *all = opendir("/proc/self/task");
    CHECK(all);
    for (struct dirent *entry; (entry = readdir(all));) count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static int works(void *context, eqp_task *task, const void *body, size_t size) {
    (void)context;
    return eqp_result(task, body, size);
}

static eqp_world *shared;
static void *elsewhere(void *plan) {
    eqp_plan *p = NULL;
    eqp_verdict v;
    int now;
    /* Another thread may read plans only. */
    CHECK(eqp_plan_make(shared, 0, NULL, NULL, NULL, &p) == EQP_USAGE && strstr(eqp_error(shared), "thread"));
    CHECK(eqp_step(shared, 1, &now) == EQP_USAGE && eqp_set(shared, "seed", "1") == EQP_USAGE && eqp_progress(shared) == EQP_USAGE);
    CHECK(eqp_put(shared, NULL, NULL, 0, 0, 0) == EQP_USAGE && eqp_close(&shared) == EQP_USAGE && shared);
    CHECK(eqp_plan_verdict(plan, &v) == EQP_OK && v.before >= 1);
    return NULL;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    struct sigaction before[65], after, own = {0};
    own.sa_handler = handler;
    sigaction(SIGUSR1, &own, NULL);
    for (int s = 1; s < 32; s++) sigaction(s, NULL, &before[s]);
    sigset_t mask, mask_after;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    int count = threads();
    MPI_Errhandler handling, handling_after;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handling);

    /* Every second rank's own half, and the original has hints that a duplicate must not have. */
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int at, of;
    MPI_Comm_rank(half, &at);
    MPI_Comm_size(half, &of);
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "mpi_assert_no_any_source", "true");
    MPI_Info_set(hints, "mpi_assert_no_any_tag", "true");
    MPI_Comm_set_info(half, hints);
    MPI_Info_free(&hints);
    eqp_world *w = NULL;
    OK(EQP_OPEN(half, "", &w));
    double weight[3] = {1.0 + at, 2, 3};
    eqp_plan *p = NULL;
    OK(eqp_plan_make(w, at == 0 ? 3 : 0, weight, NULL, NULL, &p));
    int to[3];
    OK(eqp_plan_destinations(p, to));
    /* The caller's own messages meanwhile, from anybody. */
    int got = -1;
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &request);
    int number = at == 0 ? 7 : 0;
    OK(eqp_put(w, NULL, &number, sizeof number, 0, 0));
    OK(eqp_run(w, "steal", works, NULL, NULL));
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == (rank + ranks - 1) % ranks);
    CHECK(threads() == count);
    shared = w;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, elsewhere, p) == 0);
    pthread_join(other, NULL);
    raise(SIGUSR1);
    CHECK(signalled == 1);
    for (int s = 1; s < 32; s++) {
        sigaction(s, NULL, &after);
        CHECK(after.sa_handler == before[s].sa_handler && after.sa_flags == before[s].sa_flags);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int s = 1; s < 32; s++) CHECK(sigismember(&mask, s) == sigismember(&mask_after, s));
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handling_after);
    CHECK(handling == handling_after);
    eqp_plan_free(&p);
    OK(eqp_close(&w));
    /* Many worlds side by side. */
    eqp_world *two[2];
    OK(EQP_OPEN(MPI_COMM_WORLD, "seed=1", &two[0]));
    OK(EQP_OPEN(MPI_COMM_WORLD, "seed=2", &two[1]));
    eqp_plan *p0 = NULL, *p1 = NULL;
    OK(eqp_plan_make(two[1], 3, weight, NULL, NULL, &p1));
    OK(eqp_plan_make(two[0], 3, weight, NULL, NULL, &p0));
    w = two[0];
    FAILS(EQP_USAGE, "another world", eqp_plan_move(two[0], p1, NULL, 0, NULL));
    eqp_plan_free(&p0), eqp_plan_free(&p1);
    OK(eqp_close(&two[1]));
    OK(eqp_close(&two[0]));
    MPI_Comm_free(&half);
    end("manners");
    return 0;
}
