/* What it costs to bring results home: eqp_plan_return next to a reverse MPI_Alltoallv written by hand, in turn, in one run.
 *
 *   way_back [columns per rank] [doubles per result] [rounds]
 *
 * By hand means: results are packed by owner, exchanged with counts that are known from the way there, and put to their places by index. Prints
 * the median over the rounds of the slowest rank's time, in ms, of both, and their ratio.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "equipoise.h"

static int rank, ranks;

static void stop_on(eqp_world *w, int status) {
    if (status == EQP_OK) return;
    fprintf(stderr, "equipoise: %s\n", eqp_error(w));
    MPI_Abort(MPI_COMM_WORLD, status);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double slowest(double seconds) {
    double most;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static int *counts(void) {
    int *numbers = calloc((size_t)ranks + 1, sizeof *numbers);
    if (!numbers) MPI_Abort(MPI_COMM_WORLD, 5);
    return numbers;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 16, width = argc > 2 ? strtoul(argv[2], NULL, 10) : 7200;
    int rounds = argc > 3 ? atoi(argv[3]) : 41;
    eqp_world *w = NULL;
    stop_on(w, EQP_OPEN(MPI_COMM_WORLD, "balancer=refine", &w));
    double *weight = malloc((n + 1) * sizeof *weight);
    for (size_t i = 0; i < n; i++) weight[i] = 1 + 49.0 * rank / (ranks > 1 ? ranks - 1 : 1);
    eqp_plan *plan = NULL;
    stop_on(w, eqp_plan_make(w, n, weight, NULL, NULL, &plan));
    size_t here = eqp_plan_incoming(plan), bytes = width * sizeof(double);
    int *destination = malloc((n + 1) * sizeof *destination), *source = malloc((here + 1) * sizeof *source);
    uint64_t *index = malloc((here + 1) * sizeof *index);
    stop_on(w, eqp_plan_destinations(plan, destination));
    stop_on(w, eqp_plan_sources(plan, source, index));
    double *results = malloc((here + 1) * bytes), *home = malloc((n + 1) * bytes), *by_hand = malloc((n + 1) * bytes);
    double *out = malloc((here + 1) * bytes), *in = malloc((n + 1) * bytes);
    double *times[2] = {malloc((size_t)rounds * sizeof(double)), malloc((size_t)rounds * sizeof(double))};
    for (size_t i = 0; i < here; i++)
        for (size_t k = 0; k < width; k++) results[i * width + k] = source[i] * 1e6 + (double)index[i] + (double)k / 1e4;
    int *sent = counts(), *got = counts(), *sent_at = counts(), *got_at = counts(), *next = counts();
    for (size_t i = 0; i < here; i++) sent[source[i]] += (int)width;
    for (size_t i = 0; i < n; i++) got[destination[i]] += (int)width;
    for (int r = 1; r < ranks; r++) sent_at[r] = sent_at[r - 1] + sent[r - 1], got_at[r] = got_at[r - 1] + got[r - 1];
    /* One round more, which is not counted: memory is touched, connections are made. */
    for (int round = -1; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        stop_on(w, eqp_plan_return(w, plan, results, bytes, home));
        double ours = slowest(MPI_Wtime() - begin);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        memcpy(next, sent_at, (size_t)ranks * sizeof *next);
        for (size_t i = 0; i < here; i++) {
            memcpy(out + next[source[i]], results + i * width, bytes);
            next[source[i]] += (int)width;
        }
        MPI_Alltoallv(out, sent, sent_at, MPI_DOUBLE, in, got, got_at, MPI_DOUBLE, MPI_COMM_WORLD);
        memcpy(next, got_at, (size_t)ranks * sizeof *next);
        for (size_t i = 0; i < n; i++) {
            memcpy(by_hand + i * width, in + next[destination[i]], bytes);
            next[destination[i]] += (int)width;
        }
        double hand = slowest(MPI_Wtime() - begin);
        if (memcmp(home, by_hand, n * bytes)) {
            fprintf(stderr, "rank %d: the two ways differ\n", rank);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
        if (round >= 0) times[0][round] = ours, times[1][round] = hand;
    }
    for (int way = 0; way < 2; way++) qsort(times[way], (size_t)rounds, sizeof(double), ascending);
    double ours = 1e3 * times[0][rounds / 2], hand = 1e3 * times[1][rounds / 2];
    if (rank == 0) printf("results of %zu bytes: back in %.3f ms, by hand in %.3f ms; ratio %.2f\n", bytes, ours, hand, ours / hand);
    eqp_plan_free(&plan);
    stop_on(w, eqp_close(&w));
    MPI_Finalize();
    return 0;
}
