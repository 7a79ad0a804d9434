/* Equipoise: balances uneven work over MPI ranks. Version 1.
 *
 * A world is a guest: it stands on a duplicate of a communicator and changes nothing else in the process. Every function that returns int
 * returns EQP_OK or what went wrong, the same on every rank where all ranks call it together ("collective"); eqp_error has the sentence.
 * Weights are work in any unit, finite and at least 0. The caller owns all arrays; an empty one may be NULL. docs/embedding.md has the rest.
 */
#ifndef EQUIPOISE_H
#define EQUIPOISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eqp_world eqp_world;
typedef struct eqp_plan eqp_plan;
typedef struct eqp_loop eqp_loop;
typedef struct eqp_task eqp_task;

/* After EQP_USAGE, EQP_MEMORY and EQP_CALLBACK the world is as before the call. After the others it is lost: every call returns that status,
 * and closing does not wait for other ranks. */
enum {
    EQP_OK = 0,
    EQP_FAILED = 1,
    EQP_USAGE = 2,    /* a wrong argument, or ranks in different calls */
    EQP_STUCK = 3,    /* a rank did not come within timeout=SECONDS */
    EQP_MPI = 4,
    EQP_MEMORY = 5,
    EQP_CALLBACK = 6, /* one returned other than 0 */
    EQP_PANIC = 7
};

/* What a plan would do, for all ranks together. */
typedef struct {
    double before, after, bound;       /* max/mean of work over power: now, after the plan, the least possible */
    double plan_seconds, move_seconds; /* spent; foreseen */
    double pays_from_seconds_per_unit; /* a unit must last this long for the move to pay once; INFINITY: never */
    uint64_t moved, bytes;             /* items that change their rank, and their bytes */
    int32_t pays, zero;                /* 1, 0, or -1: nobody knows how long a unit lasts */
    char balancer[64];
    double more[15];                   /* 0 for now */
} eqp_verdict;

/* An item or a result has come. Other than 0 refuses it. The bytes are aligned to 16 and valid until it returns. */
typedef int (*eqp_receive_fn)(void *context, int from, uint64_t index, const void *bytes, size_t size);
/* Processes a task. Other than 0 ends the run with EQP_CALLBACK. */
typedef int (*eqp_process_fn)(void *context, eqp_task *task, const void *body, size_t size);

/* Worlds. Options: "key=value key=value": balancer, tolerance, powers, capacity, unit, seed, trigger, timeout, watchdog, workers, on_error.
 * EQP_OPEN(MPI_COMM_WORLD, "balancer=refine", &world), after mpi.h. Collective, and so is eqp_close. */
int eqp_open(const void *comm, size_t comm_size, const char *options, eqp_world **out);
int eqp_open_fortran(int comm, const char *options, eqp_world **out);
int eqp_close(eqp_world **w);
int eqp_set(eqp_world *w, const char *key, const char *value);
const char *eqp_error(const eqp_world *w); /* of the last call, until the next; w NULL: of the last failed open */
const char *eqp_version(void);
/* A communicator may be a constant without an address, so a copy is passed. */
#ifdef __cplusplus
#define EQP_OPEN(comm, options, out) ([&] { MPI_Comm eqp_comm_ = (comm); return eqp_open(&eqp_comm_, sizeof eqp_comm_, (options), (out)); }())
#else
#define EQP_OPEN(comm, options, out) eqp_open((const MPI_Comm[]){(comm)}, sizeof(MPI_Comm), (options), (out))
#endif

/* Plans: decide, look, move, bring back. Making one moves nothing. Collective: make, from, move, return. */
int eqp_plan_make(eqp_world *w, size_t n, const double *weight, const uint64_t *bytes, const uint8_t *pinned, eqp_plan **out);
int eqp_plan_make_at(eqp_world *w, size_t n, const double *weight, const uint64_t *bytes, const uint8_t *pinned,
    int dimensions, const double *coordinates, eqp_plan **out); /* [n][dimensions]; 0 dimensions will do without items */
int eqp_plan_from(eqp_world *w, size_t n, const int *destination, const double *weight, const uint64_t *bytes, eqp_plan **out);
int eqp_plan_verdict(const eqp_plan *p, eqp_verdict *out);
size_t eqp_plan_incoming(const eqp_plan *p); /* items here afterwards, those that stay included */
int eqp_plan_destinations(const eqp_plan *p, int *rank);
int eqp_plan_sources(const eqp_plan *p, int *rank, uint64_t *index);
int eqp_plan_move(eqp_world *w, eqp_plan *p, const void *items, size_t item_bytes, void *out);
int eqp_plan_move_var(eqp_world *w, eqp_plan *p, const void *const *items, const size_t *sizes, eqp_receive_fn receive, void *context);
int eqp_plan_return(eqp_world *w, eqp_plan *p, const void *results, size_t result_bytes, void *out);
int eqp_plan_return_var(eqp_world *w, eqp_plan *p, const void *const *results, const size_t *sizes, eqp_receive_fn receive, void *context);
void eqp_plan_free(eqp_plan **p);

/* When, once a step; and what the best balancer would do. Collective. */
int eqp_step(eqp_world *w, double my_seconds, int *balance_now);
int eqp_advise(eqp_world *w, size_t n, const double *weight, const uint64_t *bytes, double seconds_per_unit, eqp_verdict *out);

/* Loops over [first, last): every rank calls next until it returns 0. 1: compute [from, to). Negative: -status. Begin and end are collective.
 * A world has up to 64 open loops. */
int eqp_loop_begin(eqp_world *w, uint64_t first, uint64_t last, const char *rule, eqp_loop **out);
int eqp_loop_next(eqp_loop *l, uint64_t *from, uint64_t *to);
int eqp_loop_end(eqp_loop **l); /* early: others take the rest; if nobody does, 2 */

/* Tasks that create tasks. eqp_run is collective, and returns when all is done. cost: an estimate of a task's work, 0: unknown; a rank that steals
 * gets half of the work ("steal", the default; others only check it). priority: larger first, a hint. */
int eqp_run(eqp_world *w, const char *scheduler, eqp_process_fn process, void *context, eqp_receive_fn on_result);
int eqp_put(eqp_world *w, eqp_task *from, const void *body, size_t size, double cost, int priority); /* from NULL: a root, before eqp_run */
int eqp_result(eqp_task *task, const void *bytes, size_t size); /* to where its root was put */
int eqp_progress(eqp_world *w);
int eqp_stop(eqp_task *task); /* begin no more tasks anywhere: here at once, elsewhere when the message has come; no error */

#ifdef __cplusplus
}
#endif
#endif
