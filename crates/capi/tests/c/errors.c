/* Wrong arguments on one rank only: the same status and sentence on all, and the world goes on. */
#include "check.h"

static int wrong_rank;
static int is_wrong(void) { return rank == wrong_rank; }

/* All have the same status, and the sentence names the rank. */
static void same(eqp_world *w, int status, int expected, const char *words, int line) {
    char mine[1024] = {0}, first[1024], name[32];
    snprintf(mine, sizeof mine, "%d %s", status, eqp_error(w));
    memcpy(first, mine, sizeof mine);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "rank %d", wrong_rank);
    if (status != expected || strcmp(first, mine) || !strstr(mine, words) || !strstr(mine, name)) {
        fprintf(stderr, "errors.c:%d: rank %d: %s (on rank 0: %s)\n", line, rank, mine, first);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}
#define SAME(expected, words, call) same(w, (call), (expected), (words), __LINE__)

static int take(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)context, (void)from, (void)index, (void)bytes, (void)size;
    return 0;
}
static int process(void *context, eqp_task *task, const void *body, size_t size) {
    (void)context, (void)task, (void)body, (void)size;
    return 0;
}
static int recurses(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)from, (void)index, (void)bytes, (void)size;
    eqp_world *w = context;
    eqp_plan *p = NULL;
    int now;
    return eqp_step(w, 1, &now) == EQP_USAGE && eqp_plan_make(w, 0, NULL, NULL, NULL, &p) == EQP_USAGE && eqp_set(w, "seed", "1") == EQP_USAGE
        && *eqp_error(w) && eqp_progress(w) == EQP_OK && *eqp_error(w) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    eqp_world *w = NULL;
    /* Opening: locally wrong, and wrong on one rank only. */
    MPI_Comm none = MPI_COMM_NULL;
    CHECK(EQP_OPEN(none, "", &w) == EQP_USAGE && w == NULL && strstr(eqp_error(NULL), "NULL"));
    CHECK(eqp_open(&none, 3, "", &w) == EQP_USAGE && strstr(eqp_error(NULL), "bytes"));
    CHECK(eqp_open(NULL, sizeof none, "", &w) == EQP_USAGE);
    CHECK(EQP_OPEN(MPI_COMM_WORLD, "", NULL) == EQP_USAGE);
    const char *wrong_options[] = {"balanser=refine", "balancer=magic", "timeout=no", "seed", "powers=1,x", "tolerance=0.5"};
    for (wrong_rank = 0; wrong_rank < ranks; wrong_rank++)
        for (int i = 0; i < 6; i++) {
            int status = EQP_OPEN(MPI_COMM_WORLD, is_wrong() ? wrong_options[i] : "", &w);
            CHECK(w == NULL);
            SAME(EQP_USAGE, "option", status);
        }
    wrong_rank = ranks - 1;
    eqp_world *opened = NULL;
    SAME(EQP_USAGE, "out", EQP_OPEN(MPI_COMM_WORLD, "", is_wrong() ? NULL : &opened));
    CHECK(opened == NULL);
#ifdef OPEN_MPI /* others have no way to tell a number that is no communicator's */
    CHECK(eqp_open_fortran(1 << 20, "", &w) == EQP_USAGE);
#endif
    OK(eqp_open_fortran(MPI_Comm_c2f(MPI_COMM_WORLD), NULL, &w));
    OK(eqp_close(&w));
    OK(EQP_OPEN(MPI_COMM_WORLD, NULL, &w));
    FAILS(EQP_USAGE, "balancer", eqp_set(w, "nothing", "1"));
    FAILS(EQP_USAGE, "refine", eqp_set(w, "balancer", "magic"));
    CHECK(eqp_set(NULL, "seed", "1") == EQP_USAGE);
    char list[256] = "1";
    for (int r = 0; r < ranks; r++) strcat(list, ",1");
    FAILS(EQP_USAGE, "powers", eqp_set(w, "powers", list));

    enum { N = 5 };
    double weight[N] = {1, 2, 3, 4, 5}, places[2 * N] = {0};
    uint64_t bytes[N] = {1, 2, 3, 4, 5};
    int to[N] = {0};
    eqp_plan *p = NULL, *good = NULL;
    OK(eqp_plan_make(w, N, weight, bytes, NULL, &good));
    for (wrong_rank = 0; wrong_rank < ranks; wrong_rank += ranks > 1 ? ranks - 1 : 1) {
        double values[] = {NAN, -1, INFINITY, -INFINITY};
        for (int i = 0; i < 4; i++) {
            if (is_wrong()) weight[3] = values[i];
            SAME(EQP_USAGE, "item 3", eqp_plan_make(w, N, weight, NULL, NULL, &p));
            CHECK(p == NULL);
            SAME(EQP_USAGE, "item 3", eqp_plan_from(w, N, to, weight, NULL, &p));
            eqp_verdict v;
            SAME(EQP_USAGE, "item 3", eqp_advise(w, N, weight, bytes, 1, &v));
            weight[3] = 4;
        }
        SAME(EQP_USAGE, "out", eqp_plan_make(w, N, weight, NULL, NULL, is_wrong() ? NULL : &p));
        CHECK(p == NULL);
        SAME(EQP_USAGE, "", eqp_plan_make(w, is_wrong() ? SIZE_MAX : N, weight, NULL, NULL, &p));
        SAME(EQP_USAGE, "coordinates", eqp_plan_make_at(w, N, weight, NULL, NULL, 2, is_wrong() ? NULL : places, &p));
        SAME(EQP_USAGE, "dimensions", eqp_plan_make_at(w, N, weight, NULL, NULL, is_wrong() ? 4 : 2, places, &p));
        SAME(EQP_USAGE, "dimensions", eqp_plan_make_at(w, N, weight, NULL, NULL, is_wrong() ? 0 : 2, places, &p));
        if (ranks > 1) SAME(EQP_USAGE, "number of coordinates", eqp_plan_make_at(w, N, weight, NULL, NULL, is_wrong() ? 1 : 2, places, &p));
        if (is_wrong()) places[7] = NAN;
        SAME(EQP_USAGE, "item 3", eqp_plan_make_at(w, N, weight, NULL, NULL, 2, places, &p));
        places[7] = 0;
        int destinations[] = {-1, 1 << 30};
        for (int i = 0; i < 2; i++) {
            if (is_wrong()) to[2] = destinations[i];
            SAME(EQP_USAGE, "item 2", eqp_plan_from(w, N, to, NULL, NULL, &p));
            to[2] = 0;
        }
        SAME(EQP_USAGE, "destination", eqp_plan_from(w, N, is_wrong() ? NULL : to, NULL, NULL, &p));
        double items[N] = {0}, *out = malloc((eqp_plan_incoming(good) + 1) * sizeof *out);

        SAME(EQP_USAGE, "NULL", eqp_plan_move(w, good, is_wrong() ? NULL : items, 8, out));
        SAME(EQP_USAGE, "plan", eqp_plan_move(w, is_wrong() ? NULL : good, items, 8, out));
        SAME(EQP_USAGE, "NULL", eqp_plan_return(w, good, out, 8, is_wrong() ? NULL : items));
        if (ranks > 1) SAME(EQP_USAGE, "bytes of an item", eqp_plan_move(w, good, items, is_wrong() ? 4 : 8, out));
        const void *each[64];
        size_t sizes[64];
        for (int i = 0; i < 64; i++) each[i] = items, sizes[i] = 8;
        SAME(EQP_USAGE, "callback", eqp_plan_move_var(w, good, each, sizes, is_wrong() ? NULL : take, NULL));
        SAME(EQP_USAGE, "sizes", eqp_plan_move_var(w, good, each, is_wrong() ? NULL : sizes, take, NULL));
        if (is_wrong()) each[1] = NULL;
        SAME(EQP_USAGE, "item 1", eqp_plan_move_var(w, good, each, sizes, take, NULL));
        int now;
        SAME(EQP_USAGE, "seconds", eqp_step(w, is_wrong() ? -1 : 1, &now));
        SAME(EQP_USAGE, "seconds", eqp_step(w, is_wrong() ? NAN : 1, &now));
        SAME(EQP_USAGE, "NULL", eqp_step(w, 1, is_wrong() ? NULL : &now));
        eqp_loop *l = NULL;
        SAME(EQP_USAGE, "gss", eqp_loop_begin(w, 0, 10, is_wrong() ? "magic" : "gss", &l));
        CHECK(l == NULL);
        SAME(EQP_USAGE, "before", eqp_loop_begin(w, is_wrong() ? 11 : 0, 10, "gss", &l));
        SAME(EQP_USAGE, "out", eqp_loop_begin(w, 0, 10, "gss", is_wrong() ? NULL : &l));
        SAME(EQP_USAGE, "NULL", eqp_run(w, "steal", is_wrong() ? NULL : process, NULL, NULL));
        SAME(EQP_USAGE, "steal", eqp_run(w, is_wrong() ? "magic" : "steal", process, NULL, NULL));
        if (ranks > 1) {
            /* Different options, arguments and calls. */
            OK(eqp_set(w, "seed", is_wrong() ? "2" : "1"));
            SAME(EQP_USAGE, "options", eqp_plan_make(w, N, weight, NULL, NULL, &p));
            OK(eqp_set(w, "seed", "1"));
            SAME(EQP_USAGE, "number of iterations", eqp_loop_begin(w, 0, is_wrong() ? 9 : 10, "gss", &l));
            SAME(EQP_USAGE, "rule", eqp_loop_begin(w, 0, 10, is_wrong() ? "ss" : "gss", &l));
            SAME(EQP_USAGE, "step", is_wrong() ? eqp_step(w, 1, &now) : eqp_plan_make(w, N, weight, NULL, NULL, &p));
            SAME(EQP_USAGE, "close", is_wrong() ? eqp_close(&w) : eqp_plan_make(w, N, weight, NULL, NULL, &p));
            CHECK(w != NULL);
            SAME(EQP_USAGE, "plan_from", is_wrong() ? eqp_plan_from(w, N, to, NULL, NULL, &p) : eqp_plan_make(w, N, weight, NULL, NULL, &p));
            eqp_plan *another = NULL;
            OK(eqp_plan_make(w, N, weight, NULL, NULL, &another));
            SAME(EQP_USAGE, "plan", eqp_plan_move(w, is_wrong() ? another : good, items, 0, out));
            eqp_plan_free(&another);
        }
        free(out);
    }
    /* Only reading: here and at once. */
    eqp_verdict v;
    uint64_t at;
    CHECK(eqp_plan_verdict(NULL, &v) == EQP_USAGE && eqp_plan_verdict(good, NULL) == EQP_USAGE && eqp_plan_incoming(NULL) == 0);
    CHECK(eqp_plan_destinations(good, NULL) == EQP_USAGE && eqp_plan_destinations(NULL, to) == EQP_USAGE);
    CHECK(eqp_plan_sources(NULL, to, &at) == EQP_USAGE && eqp_loop_next(NULL, &at, &at) == -EQP_USAGE && eqp_loop_end(NULL) == EQP_OK);
    CHECK(eqp_put(NULL, NULL, NULL, 0, 0, 0) == EQP_USAGE && eqp_result(NULL, NULL, 0) == EQP_USAGE && eqp_stop(NULL) == EQP_USAGE);
    CHECK(eqp_progress(NULL) == EQP_USAGE && eqp_progress(w) == EQP_OK);
    FAILS(EQP_USAGE, "cost", eqp_put(w, NULL, NULL, 0, -1, 0));
    FAILS(EQP_USAGE, "NULL", eqp_put(w, NULL, NULL, 1, 0, 0));
    /* A callback may not call what all must call. */
    const void *each[64];
    size_t sizes[64];
    for (int i = 0; i < 64; i++) each[i] = weight, sizes[i] = 8;
    OK(eqp_plan_move_var(w, good, each, sizes, recurses, w));
    eqp_plan_free(&good);
    OK(eqp_close(&w));

    /* A rank that does not come: all have 3, and the late one, too; closing does not wait for other ranks. */
    OK(EQP_OPEN(MPI_COMM_WORLD, "timeout=0.3", &w));
    if (ranks > 1) {
        if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
        FAILS(EQP_STUCK, "", eqp_plan_make(w, N, weight, NULL, NULL, &p));
        if (rank != 1) MPI_Barrier(MPI_COMM_WORLD);
        int now;
        CHECK(eqp_step(w, 1, &now) == EQP_STUCK);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(eqp_close(&w) == EQP_STUCK && w == NULL);
    } else {
        OK(eqp_close(&w));
    }
    end("errors");
    CHECK(EQP_OPEN(MPI_COMM_WORLD, "", &w) == EQP_USAGE && strstr(eqp_error(NULL), "final"));
    return 0;
}
