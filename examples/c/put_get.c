/* Work units that any rank puts and any rank gets, with answers to the rank that put them: ADLB's simplest program in Equipoise's calls. There is no
 * server, no loop of reserve and get, and no end to declare: the process function is called until nothing is left.
 *
 *   mpicc put_get.c $(pkg-config --cflags --libs equipoise) -o put_get && mpirun -n 4 ./put_get
 */
#include <mpi.h>
#include <stdio.h>
#include "equipoise.h"

typedef struct { int type, number; } unit;
enum { SPLIT, SQUARE };

/* A unit of type SPLIT puts two of half the numbers; one of type SQUARE answers. */
static int process(void *context, eqp_task *task, const void *body, size_t size) {
    const unit *u = body;
    (void)context, (void)size;
    if (u->type == SQUARE) {
        long square = (long)u->number * u->number;
        return eqp_result(task, &square, sizeof square);
    }
    for (int i = 0; i < u->number; i++) {
        unit child = {SQUARE, i};
        int status = eqp_put(NULL, task, &child, sizeof child, 0, 0);
        if (status) return status;
    }
    return 0;
}

static int answer(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)from, (void)index, (void)size;
    *(long *)context += *(const long *)bytes;
    return 0;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    eqp_world *w = NULL;
    int status = EQP_OPEN(MPI_COMM_WORLD, "", &w);
    unit root = {SPLIT, 100 * (rank + 1)};
    long sum = 0, expected = 0;
    if (!status) status = eqp_put(w, NULL, &root, sizeof root, 0, 0);
    if (!status) status = eqp_run(w, "steal", process, &sum, answer);
    if (status) fprintf(stderr, "equipoise: %s\n", eqp_error(w));
    eqp_close(&w);
    for (long i = 0; i < root.number; i++) expected += i * i;
    printf("rank %d of %d: %ld\n", rank, ranks, sum);
    MPI_Finalize();
    return status || sum != expected;
}
