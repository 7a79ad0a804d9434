/* Time limits, ranks that come late, ranks that give up, and memory that cannot be had: what comes back, and what goes on. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

/* Where everything is slower (EQUIPOISE_SLOW), limits and naps are longer. */
static double slower(void) { return getenv("EQUIPOISE_SLOW") ? 8 : 1; }
static void nap(double seconds) { usleep((useconds_t)(slower() * seconds * 1e6)); }
static const char *limit(double seconds) {
    static char option[32];
    snprintf(option, sizeof option, "timeout=%g", slower() * seconds);
    return option;
}
static int is_last(void) { return rank == ranks - 1; }

static int works(void *context, eqp_task *task, const void *body, size_t size) {
    (void)body, (void)size;
    nap(*(double *)context);
    return eqp_result(task, "r", 1);
}
static int counts(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)context, (void)from, (void)index, (void)bytes;
    return size == 1 ? 0 : 1;
}
static int slow(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)context, (void)from, (void)index, (void)bytes, (void)size;
    nap(0.5);
    return 0;
}

/* What takes longer than a time limit, but is not a wait for a rank that does not come. */
static void work_is_no_wait(void) {
    eqp_world *w = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, limit(1.2), &w));
    const char *schedulers[] = {"steal", "random"};
    for (int i = 0; i < 2; i++) {
        double seconds = 0.8;
        for (int task = 0; task < 2; task++) OK(eqp_put(w, NULL, "a", 1, 0, 0));
        OK(eqp_run(w, schedulers[i], works, &seconds, counts));
    }
    const void *items[3] = {"a", "b", "c"};
    size_t sizes[3] = {1, 1, 1};
    eqp_plan *p = NULL;
    OK(eqp_plan_make(w, 3, NULL, NULL, NULL, &p));
    OK(eqp_plan_move_var(w, p, items, sizes, slow, NULL));
    eqp_plan_free(&p);
    /* All to the last, for which the others wait. */
    int last = ranks - 1;
    OK(eqp_plan_from(w, 1, &last, NULL, NULL, &p));
    OK(eqp_plan_move_var(w, p, items, sizes, slow, NULL));
    eqp_plan_free(&p);
    OK(eqp_close(&w));
}

/* Rank 0 waits in vain for the last, and gives up; the last comes later, and hears of it wherever it comes. */
static void who_comes_too_late_hears_of_it(void) {
    if (ranks == 1) return;
    for (int call = 0; call < 4; call++) {
        eqp_world *w = NULL;
        eqp_loop *loop = NULL;
        eqp_plan *p = NULL;
        int now;
        OK(EQP_OPEN(MPI_COMM_WORLD, limit(0.4), &w));
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_last()) {
            nap(1.6);
            /* What came is known here before the call, or is not. */
            if (call % 2 == 0) CHECK(eqp_progress(w) == EQP_STUCK && strstr(eqp_error(w), "did not come"));
        }
        if (call < 2) CHECK(eqp_step(w, 1, &now) == EQP_STUCK);
        else CHECK(eqp_loop_begin(w, 0, 10, "", &loop) == EQP_STUCK && !loop);
        CHECK(eqp_progress(w) == EQP_STUCK && eqp_put(w, NULL, "a", 1, 0, 0) == EQP_STUCK && eqp_set(w, "seed", "1") == EQP_STUCK);
        CHECK(eqp_plan_make(w, 0, NULL, NULL, NULL, &p) == EQP_STUCK && !p);
        CHECK(eqp_close(&w) == EQP_STUCK && !w);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static eqp_world *shared;
static void *closes(void *nothing) {
    CHECK(eqp_close(&shared) == EQP_USAGE && shared && strstr(eqp_error(shared), "thread"));
    return nothing;
}

/* A lost world is closed by its own thread, too. */
static void a_lost_world_stays_its_threads(void) {
    if (ranks == 1) return;
    int now;
    pthread_t thread;
    CHECK(EQP_OPEN(MPI_COMM_WORLD, limit(0.3), &shared) == EQP_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_last()) nap(1.5);
    CHECK(eqp_step(shared, 1, &now) == EQP_STUCK);
    CHECK(pthread_create(&thread, NULL, closes, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(eqp_close(&shared) == EQP_STUCK && !shared);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What balancing costs is counted from when all are there. */
static void late_ranks_cost_nothing(void) {
    eqp_world *w = NULL;
    eqp_plan *p = NULL, *again = NULL;
    eqp_verdict v;
    double weight[4] = {1, 1, 1, 1}, items[4] = {0}, *there, back[4];
    for (int i = 0; i < 4; i++) weight[i] += rank;
    OK(EQP_OPEN(MPI_COMM_WORLD, "unit=1e-3", &w));
    if (is_last()) nap(1);
    OK(eqp_plan_make(w, 4, weight, NULL, NULL, &p));
    OK(eqp_plan_verdict(p, &v));
    CHECK(v.plan_seconds < 0.7 * slower());
    there = calloc(eqp_plan_incoming(p) + 1, sizeof *there);
    CHECK(there);
    if (is_last()) nap(1);
    OK(eqp_plan_move(w, p, items, sizeof *items, there));
    if (is_last()) nap(1);
    OK(eqp_plan_return(w, p, there, sizeof *there, back));
    OK(eqp_plan_make(w, 4, weight, NULL, NULL, &again));
    OK(eqp_plan_verdict(again, &v));
    CHECK(v.move_seconds < 0.3 * slower());
    free(there);
    eqp_plan_free(&p), eqp_plan_free(&again);
    OK(eqp_close(&w));
}

/* No memory is a status, on all ranks. */
static void no_memory_is_a_status(void) {
    eqp_world *w = NULL;
    eqp_plan *p = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, NULL, &w));
    FAILS(EQP_MEMORY, "memory", eqp_plan_make(w, is_last() ? (size_t)1 << 44 : 3, NULL, NULL, NULL, &p));
    CHECK(!p);
    FAILS(EQP_MEMORY, "memory", eqp_put(w, NULL, "a", (size_t)1 << 46, 0, 0));
    OK(eqp_plan_make(w, 3, NULL, NULL, NULL, &p));
    eqp_plan_free(&p);
    OK(eqp_close(&w));
}

static eqp_world *many;
static int errs(void *context, eqp_task *task, const void *body, size_t size) {
    (void)context, (void)size;
    char own[64];
    double cost = -1 - *(const int *)body;
    snprintf(own, sizeof own, "%g", cost);
    for (int i = 0; i < 200; i++)
        if (eqp_put(many, task, NULL, 0, cost, 0) != EQP_USAGE || !strstr(eqp_error(many), own)) return 1;
    return 0;
}

/* Each thread that processes tasks reads the text of its own calls. */
static void threads_have_their_own_texts(void) {
    eqp_world *w = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, "workers=4", &w));
    many = w;
    for (int task = 0; task < 40; task++) OK(eqp_put(w, NULL, &task, sizeof task, 0, 0));
    OK(eqp_run(w, "static", errs, NULL, NULL));
    OK(eqp_close(&w));
}

static int puts_roots(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)from, (void)index;
    return eqp_put(context, NULL, bytes, size, 0, 0);
}
static int no_result(void *context, eqp_task *task, const void *body, size_t size) {
    (void)body, (void)size;
    return eqp_result(task, NULL, 3) == EQP_USAGE && strstr(eqp_error(context), "NULL") && eqp_result(task, "r", 1) == EQP_OK ? 0 : 1;
}

/* Callbacks may put roots of the next run; and what fails in one has a text. */
static void callbacks_may_put(void) {
    eqp_world *w = NULL;
    eqp_plan *p = NULL;
    const void *items[2] = {"a", "b"};
    size_t sizes[2] = {1, 1};
    OK(EQP_OPEN(MPI_COMM_WORLD, NULL, &w));
    OK(eqp_plan_make(w, 2, NULL, NULL, NULL, &p));
    OK(eqp_plan_move_var(w, p, items, sizes, puts_roots, w));
    eqp_plan_free(&p);
    OK(eqp_run(w, "static", no_result, w, puts_roots));
    OK(eqp_run(w, "static", no_result, w, NULL));
    OK(eqp_close(&w));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    work_is_no_wait();
    who_comes_too_late_hears_of_it();
    a_lost_world_stays_its_threads();
    late_ranks_cost_nothing();
    no_memory_is_a_status();
    threads_have_their_own_texts();
    callbacks_may_put();
    CHECK(!strncmp(eqp_version(), "equipoise ", 10) && strstr(eqp_version(), "MPI") && strchr(eqp_version(), '('));
    end("waits");
    return 0;
}
