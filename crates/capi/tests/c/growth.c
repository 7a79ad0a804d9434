/* Plans, loops and worlds made and freed very often: memory and descriptors do not grow. */
#include "check.h"
#include <dirent.h>

static long resident(void) {
    long pages = 0, size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * 4;
}

static int descriptors(void) {
    int count = 0;
    DIR *all = opendir("/proc/self/fd");
    CHECK(all);
    while (readdir(all)) count++;
    closedir(all);
    return count;
}

/* The number that the next communicator gets: it stays where none are left behind. */
static int next_communicator(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int number = (int)MPI_Comm_c2f(comm);
    MPI_Comm_free(&comm);
    return number;
}

static int take(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)context, (void)from, (void)index, (void)bytes, (void)size;
    return 0;
}
static int process(void *context, eqp_task *task, const void *body, size_t size) {
    (void)context;
    return eqp_result(task, body, size);
}

static void once(eqp_world *w) {
    double items[8], weight[8], out[256], back[8];
    const void *each[64];
    size_t sizes[64];
    for (int i = 0; i < 8; i++) items[i] = weight[i] = 1 + rank + i;
    for (int i = 0; i < 64; i++) each[i] = items, sizes[i] = 8;
    eqp_plan *p = NULL;
    OK(eqp_plan_make(w, 8, weight, NULL, NULL, &p));
    CHECK(eqp_plan_incoming(p) <= 64);
    OK(eqp_plan_move(w, p, items, 8, out));
    OK(eqp_plan_return(w, p, out, 8, back));
    CHECK(!memcmp(items, back, sizeof items));
    OK(eqp_plan_move_var(w, p, each, sizes, take, NULL));
    eqp_plan_free(&p);
    weight[0] = rank == 0 ? NAN : 1;
    CHECK(eqp_plan_make(w, 8, weight, NULL, NULL, &p) == EQP_USAGE);
    eqp_loop *l = NULL;
    uint64_t from, to;
    OK(eqp_loop_begin(w, 0, 5, "ss", &l));
    while (eqp_loop_next(l, &from, &to) == 1) {}
    OK(eqp_loop_end(&l));
    OK(eqp_put(w, NULL, items, 8, 0, 0));
    OK(eqp_run(w, "steal", process, NULL, take));
    OK(eqp_put(w, NULL, items, 8, 0, 0));
    OK(eqp_run(w, "random", process, NULL, take));
}

/* Where everything is slower (EQUIPOISE_SLOW), a checker keeps books in this process, whose memory counts, too: it finds by itself what is lost. */
static void stays(long before, int open, int communicator) {
    if (!getenv("EQUIPOISE_SLOW")) CHECK(resident() - before < 4096);
    CHECK(descriptors() == open);
    CHECK(next_communicator() == communicator);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    long times = argc > 1 ? atol(argv[1]) : 1000, worlds = argc > 2 ? atol(argv[2]) : 200;
    eqp_world *w = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, "", &w));
    for (int i = 0; i < 100; i++) once(w);
    long before = resident();
    int open = descriptors(), communicator = next_communicator();
    for (long i = 0; i < times; i++) once(w);
    stays(before, open, communicator);
    OK(eqp_close(&w));
    for (int i = 0; i < 20; i++) {
        OK(EQP_OPEN(MPI_COMM_WORLD, "", &w));
        OK(eqp_close(&w));
    }
    before = resident(), open = descriptors(), communicator = next_communicator();
    for (long i = 0; i < worlds; i++) {
        OK(EQP_OPEN(MPI_COMM_WORLD, "", &w));
        OK(eqp_close(&w));
        CHECK(EQP_OPEN(MPI_COMM_WORLD, rank == 0 ? "seed=x" : "", &w) == EQP_USAGE);
    }
    stays(before, open, communicator);
    end("growth");
    return 0;
}
