/* Columns of chemistry whose costs differ by 1 to 50: lent, computed, brought home, every step. Prints the time per step with and without,
 * and what part that is of what a perfect balance would gain: every rank computing for the mean of what all compute alone.
 *
 *   mpicc columns.c $(pkg-config --cflags --libs equipoise) -o columns && mpirun -n 8 ./columns [columns per rank] [steps]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "equipoise.h"

enum { LEVELS = 4 };
typedef struct { double cost, level[LEVELS]; } column;

static void stop_on(eqp_world *w, int status) {
    if (status == EQP_OK) return;
    fprintf(stderr, "equipoise: %s\n", eqp_error(w));
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void chemistry(const column *c, double *result) {
    usleep((unsigned)(100 * c->cost));
    for (int k = 0; k < LEVELS; k++) result[k] = c->level[k] * c->cost;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 16;
    int steps = argc > 2 ? atoi(argv[2]) : 5;
    column *columns = malloc((n + 1) * sizeof *columns);
    double *weight = malloc((n + 1) * sizeof *weight), *home = malloc((n + 1) * LEVELS * sizeof *home);
    double seconds[2] = {0, 0}, computing = 0, all;
    int wrong = 0;
    eqp_world *w = NULL;
    stop_on(w, EQP_OPEN(MPI_COMM_WORLD, "balancer=refine", &w));
    for (int lends = 0; lends < 2; lends++)
        for (int step = 0; step < steps; step++) {
            for (size_t i = 0; i < n; i++) {
                /* Day on some ranks, night on others; the sun moves. */
                int hour = (rank + step) % ranks;
                columns[i].cost = weight[i] = 1 + 49.0 * hour / (ranks > 1 ? ranks - 1 : 1);
                for (int k = 0; k < LEVELS; k++) columns[i].level[k] = rank * 1000.0 + (double)i + k;
            }
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            if (lends) {
                eqp_plan *plan = NULL;
                stop_on(w, eqp_plan_make(w, n, weight, NULL, NULL, &plan));
                size_t here = eqp_plan_incoming(plan);
                column *there = malloc((here + 1) * sizeof *there);
                double *results = malloc((here + 1) * LEVELS * sizeof *results);
                stop_on(w, eqp_plan_move(w, plan, columns, sizeof *columns, there));
                for (size_t i = 0; i < here; i++) chemistry(&there[i], results + LEVELS * i);
                stop_on(w, eqp_plan_return(w, plan, results, LEVELS * sizeof *results, home));
                eqp_plan_free(&plan);
                free(there), free(results);
            } else {
                for (size_t i = 0; i < n; i++) chemistry(&columns[i], home + LEVELS * i);
                computing += MPI_Wtime() - begin;
            }
            MPI_Barrier(MPI_COMM_WORLD);
            seconds[lends] += MPI_Wtime() - begin;
            for (size_t i = 0; i < n; i++)
                for (int k = 0; k < LEVELS; k++) wrong |= home[LEVELS * i + (size_t)k] != columns[i].level[k] * columns[i].cost;
        }
    MPI_Allreduce(&computing, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double gain = seconds[0] - seconds[1], perfect = seconds[0] - all / ranks;
    if (rank == 0) printf("%.2f ms per step, lent %.2f ms", 1e3 * seconds[0] / steps, 1e3 * seconds[1] / steps);
    if (rank == 0) printf(ranks > 1 ? "; %.2f of the gain of a perfect balance\n" : "\n", gain / perfect);
    stop_on(w, eqp_close(&w));
    free(columns), free(weight), free(home);
    MPI_Finalize();
    return wrong;
}
