/* Plans: made, read, moved, returned, with arrays and with items of any size. */
#include "check.h"

typedef struct { int owner, index; double value; } cell;

/* Rank r has 4 (r + 1) cells of weight 1 + index; rank 1, if there is one, has none. */
static size_t count(int r) { return r == 1 ? 0 : 4 * (size_t)(r + 1); }

struct seen { const int *from; const uint64_t *index; size_t at; int bad; };

static int arrives(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    struct seen *seen = context;
    if (from != seen->from[seen->at] || index != seen->index[seen->at]) seen->bad++;
    if (size != (from * 7 + index) % 40 || ((uintptr_t)bytes & 15)) seen->bad++;
    for (size_t i = 0; i < size; i++) seen->bad += ((const unsigned char *)bytes)[i] != (unsigned char)(from + index + i);
    seen->at++;
    return 0;
}

struct home { const int *to; uint64_t at; int bad; };

static int comes_home(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    struct home *home = context;
    home->bad += from != home->to[index] || index != home->at++ || size != (size_t)(index % 3) * 8;
    for (size_t i = 0; i < size / 8; i++) home->bad += ((const uint64_t *)bytes)[i] != 100 * (uint64_t)rank + index;
    return 0;
}

static int refuses(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)from, (void)index, (void)bytes, (void)size;
    return rank == ranks - 1 && ++*(int *)context == 1 ? 5 : 0;
}

static void round_trip(eqp_world *w, eqp_plan *p, size_t n) {
    size_t m = eqp_plan_incoming(p);
    int *to = malloc((n + 1) * sizeof *to), *from = malloc((m + 1) * sizeof *from);
    uint64_t *index = malloc((m + 1) * sizeof *index);
    OK(eqp_plan_destinations(p, to));
    OK(eqp_plan_sources(p, from, index));
    for (size_t i = 1; i < m; i++) CHECK(from[i - 1] < from[i] || (from[i - 1] == from[i] && index[i - 1] < index[i]));
    cell *mine = malloc((n + 1) * sizeof *mine), *there = malloc((m + 1) * sizeof *there);
    for (int time = 0; time < 3; time++) {
        for (size_t i = 0; i < n; i++) mine[i] = (cell){rank, (int)i, time + 0.5};
        OK(eqp_plan_move(w, p, mine, sizeof *mine, there));
        for (size_t i = 0; i < m; i++) CHECK(there[i].owner == from[i] && there[i].index == (int)index[i] && there[i].value == time + 0.5);
        double *results = malloc((m + 1) * 2 * sizeof *results), *back = malloc((n + 1) * 2 * sizeof *back);
        for (size_t i = 0; i < m; i++) results[2 * i] = 1000 * there[i].owner + there[i].index, results[2 * i + 1] = rank;
        OK(eqp_plan_return(w, p, results, 2 * sizeof *results, back));
        for (size_t i = 0; i < n; i++) CHECK(back[2 * i] == 1000 * rank + (double)i && back[2 * i + 1] == to[i]);
        free(results), free(back);
    }
    OK(eqp_plan_move(w, p, NULL, 0, NULL));
    const void **items = malloc((n + m + 1) * sizeof *items);
    size_t *sizes = malloc((n + m + 1) * sizeof *sizes);
    unsigned char *bytes = malloc(n * 40 + 1);
    for (size_t i = 0; i < n; i++) {
        items[i] = bytes + 40 * i, sizes[i] = (rank * 7 + i) % 40;
        for (size_t k = 0; k < sizes[i]; k++) bytes[40 * i + k] = (unsigned char)(rank + i + k);
    }
    struct seen seen = {from, index, 0, 0};
    OK(eqp_plan_move_var(w, p, items, sizes, arrives, &seen));
    CHECK(seen.at == m && seen.bad == 0);
    uint64_t *values = malloc((2 * m + 1) * sizeof *values);
    for (size_t i = 0; i < m; i++) {
        items[i] = values + 2 * i, sizes[i] = (index[i] % 3) * 8;
        values[2 * i] = values[2 * i + 1] = 100 * (uint64_t)from[i] + index[i];
    }
    struct home home = {to, 0, 0};
    OK(eqp_plan_return_var(w, p, items, sizes, comes_home, &home));
    CHECK(home.at == n && home.bad == 0);
    /* A refusal is everybody's, and the world goes on. */
    int calls = 0;
    int status = eqp_plan_return_var(w, p, items, sizes, refuses, &calls);
    CHECK(status == (count(ranks - 1) ? EQP_CALLBACK : EQP_OK));
    if (status) CHECK(strstr(eqp_error(w), "returned 5"));
    OK(eqp_plan_move(w, p, mine, sizeof *mine, there));
    free(to), free(from), free(index), free(mine), free(there), free(items), free(sizes), free(bytes), free(values);
}

/* A plan of a few items of one rank, under these options. */
static eqp_verdict judged(const char *options, size_t n, const double *weight, const uint8_t *pinned, int owner, int *to) {
    eqp_world *w = NULL;
    eqp_plan *p = NULL;
    eqp_verdict v;
    OK(EQP_OPEN(MPI_COMM_WORLD, options, &w));
    OK(eqp_plan_make(w, rank == owner ? n : 0, weight, NULL, pinned, &p));
    OK(eqp_plan_verdict(p, &v));
    if (rank == owner) OK(eqp_plan_destinations(p, to));
    eqp_plan_free(&p);
    OK(eqp_close(&w));
    return v;
}

static int is_near(double a, double b) { return fabs(a / b - 1) < 1e-12; }

/* Weights and powers are doubles in any unit: finite ones give the same verdict however large or small they are. */
static void units_do_not_matter(void) {
    const double usual[4] = {1, 2, 3, 4};
    int to[4];
    eqp_verdict expected = judged("powers=1", 4, usual, NULL, 0, to);
    CHECK(is_near(expected.before, ranks));
    const char *powers[] = {"powers=1e-310", "powers=5e-324", "powers=1e-300", "powers=1e300", "powers=1e308"};
    for (int i = 0; i < 5; i++) {
        eqp_verdict v = judged(powers[i], 4, usual, NULL, 0, to);
        CHECK(is_near(v.before, expected.before) && is_near(v.after, expected.after) && is_near(v.bound, expected.bound));
        CHECK(v.moved == expected.moved);
        CHECK(isfinite(v.pays_from_seconds_per_unit) == (ranks > 1));
    }
    /* Powers of two, so that the weights are exact; the sum of the largest is beyond all doubles. */
    const int exponents[] = {-1074, -1030, -997, 997, 1021};
    for (int i = 0; i < 5; i++) {
        double weight[4];
        for (int k = 0; k < 4; k++) weight[k] = ldexp(usual[k], exponents[i]);
        eqp_verdict v = judged("", 4, weight, NULL, 0, to);
        CHECK(is_near(v.before, expected.before) && is_near(v.after, expected.after) && v.moved == expected.moved);
    }
    const double huge[2] = {1e308, 1e308}, one = 5e-324;
    CHECK(is_near(judged("", 2, huge, NULL, 0, to).before, ranks) && is_near(judged("", 1, &one, NULL, 0, to).before, ranks));
}

/* An item that is pinned where there is no power never ends, but the others are balanced. */
static void what_is_stuck_stops_nothing(void) {
    if (ranks < 3) return;
    eqp_world *w = NULL;
    eqp_plan *p = NULL;
    eqp_verdict v;
    const double weight[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const uint8_t pinned[1] = {1};
    const char *balancers[] = {"balancer=refine", "balancer=greedy", "balancer=direct", "balancer=cwa"};
    for (int b = 0; b < 4; b++) {
        OK(EQP_OPEN(MPI_COMM_WORLD, balancers[b], &w));
        OK(eqp_set(w, "powers", rank == 1 || rank == 2 ? "1" : "0"));
        OK(eqp_plan_make(w, rank == 0 ? 1 : rank == 1 ? 8 : 0, weight, NULL, rank == 0 ? pinned : NULL, &p));
        OK(eqp_plan_verdict(p, &v));
        CHECK(isinf(v.before) && isinf(v.after) && v.moved == 4 && isfinite(v.pays_from_seconds_per_unit));
        CHECK(eqp_plan_incoming(p) == (rank == 0 ? 1 : rank <= 2 ? 4 : 0));
        eqp_plan_free(&p);
        OK(eqp_close(&w));
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    _Static_assert(sizeof(eqp_verdict) == 256, "the verdict's size");
    eqp_world *w = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, "balancer=refine seed=1", &w));
    CHECK(strstr(eqp_version(), "equipoise") && *eqp_error(w) == 0);
    size_t n = count(rank);
    double *weight = malloc((n + 1) * sizeof *weight), *places = malloc((2 * n + 1) * sizeof *places);
    uint64_t *bytes = malloc((n + 1) * sizeof *bytes);
    uint8_t *pinned = calloc(n + 1, 1);
    double total = 0, most = 0, mine = 0;
    for (size_t i = 0; i < n; i++) {
        weight[i] = 1 + (double)i, bytes[i] = 24, mine += weight[i];
        places[2 * i] = rank, places[2 * i + 1] = (double)i;
    }
    MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);

    const char *balancers[] = {"refine", "greedy", "greedy-refine:tolerance=1.1", "kk", "chains", "direct", "cwa", "none"};
    for (size_t b = 0; b < sizeof balancers / sizeof *balancers; b++) {
        OK(eqp_set(w, "balancer", balancers[b]));
        eqp_plan *p = NULL;
        OK(eqp_plan_make(w, n, weight, bytes, NULL, &p));
        eqp_verdict v;
        OK(eqp_plan_verdict(p, &v));
        CHECK(fabs(v.before - most * ranks / total) < 1e-12 && v.after <= v.before && v.bound <= v.after && v.bound >= 1);
        CHECK(v.zero == 0 && v.more[0] == 0 && v.more[14] == 0 && v.bytes == 24 * v.moved && v.pays == -1);
        CHECK(strcmp(v.balancer, balancers[b]) == 0 && v.plan_seconds > 0);
        if (!strcmp(balancers[b], "refine") && ranks > 1) CHECK(v.after < 1.1 && v.moved > 0 && isfinite(v.pays_from_seconds_per_unit));
        if (!strcmp(balancers[b], "none")) CHECK(v.moved == 0 && v.after == v.before && isinf(v.pays_from_seconds_per_unit));
        /* The verdict is what the destinations come to. */
        int *to = malloc((n + 1) * sizeof *to);
        double loads[64] = {0}, sums[64], worst = 0;
        OK(eqp_plan_destinations(p, to));
        for (size_t i = 0; i < n; i++) loads[to[i]] += weight[i];
        MPI_Allreduce(loads, sums, ranks, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) worst = sums[r] > worst ? sums[r] : worst;
        CHECK(fabs(v.after - worst * ranks / total) < 1e-12);
        free(to);
        round_trip(w, p, n);
        eqp_plan_free(&p);
        CHECK(p == NULL);
        eqp_plan_free(&p);
    }
    const char *by_place[] = {"rcb", "sfc", "sfc:curve=hilbert"};
    for (int b = 0; b < 3; b++) {
        OK(eqp_set(w, "balancer", by_place[b]));
        eqp_plan *p = NULL;
        OK(eqp_plan_make_at(w, n, weight, NULL, NULL, 2, places, &p));
        round_trip(w, p, n);
        eqp_plan_free(&p);
        if (ranks > 1) FAILS(EQP_USAGE, "coordinates", eqp_plan_make(w, n, weight, NULL, NULL, &p));
    }
    OK(eqp_set(w, "balancer", "rcb"));
    eqp_plan *p = NULL;
    /* Who has no items need not know how many coordinates the others' have. */
    for (int dimensions = 0; dimensions < 4; dimensions += 3) {
        OK(eqp_plan_make_at(w, n, weight, NULL, NULL, n ? 2 : dimensions, n ? places : NULL, &p));
        round_trip(w, p, n);
        eqp_plan_free(&p);
    }
    if (n == 0) OK(eqp_plan_make(w, 0, NULL, NULL, NULL, &p));
    else OK(eqp_plan_make_at(w, n, weight, NULL, NULL, 2, places, &p));
    eqp_plan_free(&p);
    FAILS(EQP_USAGE, "dimensions", eqp_plan_make_at(w, n, weight, NULL, NULL, n ? 0 : 4, places, &p));
    OK(eqp_set(w, "balancer", "refine"));
    /* All on rank 0 but what is pinned. */
    for (size_t i = 0; i < n; i++) pinned[i] = i % 2;
    OK(eqp_plan_make(w, n, weight, NULL, pinned, &p));
    int *to = malloc((n + 1) * sizeof *to);
    OK(eqp_plan_destinations(p, to));
    for (size_t i = 0; i < n; i++) CHECK(!pinned[i] || to[i] == rank);
    round_trip(w, p, n);
    eqp_plan_free(&p);
    /* The caller's own partition; it may be worse. */
    for (size_t i = 0; i < n; i++) to[i] = (int)(i % (size_t)ranks);
    OK(eqp_plan_from(w, n, to, weight, bytes, &p));
    int *told = malloc((n + 1) * sizeof *told);
    OK(eqp_plan_destinations(p, told));
    CHECK(!memcmp(to, told, n * sizeof *to));
    round_trip(w, p, n);
    eqp_plan_free(&p);
    for (size_t i = 0; i < n; i++) to[i] = 0;
    OK(eqp_plan_from(w, n, to, NULL, NULL, &p));
    eqp_verdict v;
    OK(eqp_plan_verdict(p, &v));
    CHECK(v.after == ranks && eqp_plan_incoming(p) == (rank ? 0 : (size_t)(total ? v.moved + n : 0)));
    round_trip(w, p, n);
    eqp_plan_free(&p);
    /* Powers: nothing for rank 0, twice as much for the last. */
    if (ranks > 1) {
        OK(eqp_set(w, "powers", rank == 0 ? "0" : rank == ranks - 1 ? "2" : "1"));
        OK(eqp_plan_make(w, n, weight, bytes, NULL, &p));
        OK(eqp_plan_verdict(p, &v));
        CHECK(isinf(v.before) && v.after < 1.3);
        if (rank == 0) CHECK(eqp_plan_incoming(p) == 0);
        eqp_plan_free(&p);
        OK(eqp_set(w, "powers", "1"));
    }
    /* Capacity: each item has 24 bytes. */
    uint64_t items = n, all = 0;
    MPI_Allreduce(&items, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    char room[32];
    snprintf(room, sizeof room, "%llu", (unsigned long long)((all + ranks - 1) / ranks * 24));
    OK(eqp_set(w, "capacity", room));
    OK(eqp_plan_make(w, n, weight, bytes, NULL, &p));
    CHECK(eqp_plan_incoming(p) * 24 <= strtoull(room, NULL, 10));
    eqp_plan_free(&p);
    FAILS(EQP_USAGE, "capacity", eqp_plan_make(w, n, weight, NULL, NULL, &p));
    CHECK(p == NULL);
    OK(eqp_set(w, "capacity", "24"));
    FAILS(EQP_USAGE, "capacity", eqp_plan_make(w, n, weight, bytes, NULL, &p));
    OK(eqp_set(w, "capacity", "1e18"));
    OK(eqp_set(w, "unit", "1000"));
    OK(eqp_plan_make(w, n, NULL, bytes, NULL, &p));
    OK(eqp_plan_verdict(p, &v));
    CHECK(v.pays == (v.moved > 0));
    /* Nothing anywhere. */
    eqp_plan *empty = NULL;
    OK(eqp_plan_make(w, 0, NULL, NULL, NULL, &empty));
    OK(eqp_plan_verdict(empty, &v));
    CHECK(v.before == 1 && v.after == 1 && v.bound == 1 && v.moved == 0 && eqp_plan_incoming(empty) == 0);
    OK(eqp_plan_move(w, empty, NULL, 8, NULL));
    eqp_plan_free(&empty);
    OK(eqp_advise(w, n, weight, bytes, 1.0, &v));
    CHECK(v.after <= v.before && v.bound <= v.after && v.balancer[0] && v.pays == (v.moved > 0));
    OK(eqp_close(&w));
    CHECK(w == NULL && eqp_close(&w) == EQP_OK && eqp_close(NULL) == EQP_OK);
    CHECK(eqp_plan_incoming(p) <= all);
    units_do_not_matter();
    what_is_stuck_stops_nothing();
    end("plans");
    /* Plans are read and freed after that. */
    OK(eqp_plan_verdict(p, &v));
    eqp_plan_free(&p);
    free(weight), free(places), free(bytes), free(pinned), free(to), free(told);
    return 0;
}
