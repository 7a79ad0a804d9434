/* What the tests share: a check names its line and ends the job. */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "equipoise.h"

static int rank, ranks;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d of %d: not so: %s\n", __FILE__, __LINE__, rank, ranks, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 9); \
        } \
    } while (0)
#define OK(call) \
    do { \
        int status_ = (call); \
        if (status_ != EQP_OK) { \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: %d: %s\n", __FILE__, __LINE__, rank, ranks, #call, status_, eqp_error(w)); \
            MPI_Abort(MPI_COMM_WORLD, 9); \
        } \
    } while (0)
/* The call fails with that status and a sentence that has the words. */
#define FAILS(status, words, call) \
    do { \
        int status_ = (call); \
        if (status_ != (status) || !strstr(eqp_error(w), words)) { \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: %d: %s\n", __FILE__, __LINE__, rank, ranks, #call, status_, eqp_error(w)); \
            MPI_Abort(MPI_COMM_WORLD, 9); \
        } \
    } while (0)

static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void end(const char *name) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%s passes on %d\n", name, ranks);
    MPI_Finalize();
}
