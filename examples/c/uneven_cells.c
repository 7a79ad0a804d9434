/* A ring of uneven cells: each rank holds 8 cells whose costs differ by 1 to 20, and in every step each cell needs its neighbours' values.
 * The cells stay where they are; what a step costs is lent out, computed elsewhere, and brought home.
 *
 *   cc uneven_cells.c $(pkg-config --cflags --libs equipoise) -o uneven_cells     (with mpicc, or with MPI's flags)
 *   mpirun -n 4 ./uneven_cells
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "equipoise.h"

typedef struct { double left, value, right, cost; } cell;

static void stop_on(eqp_world *w, int status) {
    if (status == EQP_OK) return;
    fprintf(stderr, "equipoise: %s\n", eqp_error(w));
    MPI_Abort(MPI_COMM_WORLD, status);
}

/* Cost of a cell, in 20ths of a millisecond. */
static double advance(const cell *c) {
    usleep((unsigned)(50 * c->cost));
    return c->value + 0.1 * (c->left - 2 * c->value + c->right);
}

enum { CELLS = 8, STEPS = 20 };

/* Total of all values, which diffusion on a ring does not change. */
static double run(eqp_world *w, int rank, int ranks, double *seconds) {
    double value[CELLS], cost[CELLS], fresh[CELLS];
    for (int i = 0; i < CELLS; i++) {
        int place = rank * CELLS + i;
        value[i] = place == 0 ? 1000 : 0;
        cost[i] = 1 + 19.0 * place / (ranks * CELLS);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    /* The costs do not change, so one plan serves all steps; with w NULL everything stays. */
    eqp_plan *plan = NULL;
    size_t here = CELLS;
    if (w) {
        stop_on(w, eqp_plan_make(w, CELLS, cost, NULL, NULL, &plan));
        here = eqp_plan_incoming(plan);
    }
    cell mine[CELLS], *there = malloc((here + 1) * sizeof *there);
    double *results = malloc((here + 1) * sizeof *results);
    for (int step = 0; step < STEPS; step++) {
        int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
        double left, right;
        MPI_Sendrecv(&value[CELLS - 1], 1, MPI_DOUBLE, after, 0, &left, 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&value[0], 1, MPI_DOUBLE, before, 1, &right, 1, MPI_DOUBLE, after, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < CELLS; i++)
            mine[i] = (cell){i ? value[i - 1] : left, value[i], i < CELLS - 1 ? value[i + 1] : right, cost[i]};
        if (w) stop_on(w, eqp_plan_move(w, plan, mine, sizeof *mine, there));
        for (size_t i = 0; i < here; i++) results[i] = advance(w ? &there[i] : &mine[i]);
        if (w) stop_on(w, eqp_plan_return(w, plan, results, sizeof *results, fresh));
        for (int i = 0; i < CELLS; i++) value[i] = w ? fresh[i] : results[i];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    *seconds = (MPI_Wtime() - begin) / STEPS;
    eqp_plan_free(&plan);
    free(there), free(results);
    double sum = 0, total;
    for (int i = 0; i < CELLS; i++) sum += value[i];
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    eqp_world *w = NULL;
    stop_on(w, EQP_OPEN(MPI_COMM_WORLD, "balancer=refine", &w));
    double alone, balanced;
    double total = run(NULL, rank, ranks, &alone), again = run(w, rank, ranks, &balanced);
    if (rank == 0) printf("%.6f and %.6f: %.2f ms per step, balanced %.2f ms\n", total, again, 1e3 * alone, 1e3 * balanced);
    int wrong = total != again || total < 999.999 || total > 1000.001;
    stop_on(w, eqp_close(&w));
    MPI_Finalize();
    return wrong;
}
