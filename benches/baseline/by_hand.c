/* A balancing phase as one would write it by hand, with everything kept from phase to phase: an all-gather of the loads, a plan that every rank
 * works out for itself, and then the surplus, straight from the end of one rank's tasks to the end of another's. Nothing is packed, copied
 * or allocated: records lie ready to be sent.
 *
 * Way 0 exchanges with one MPI_Alltoallv, way 1 with immediate sends and receives among those ranks alone that have something to exchange. */

#include "tasks.h"

typedef struct {
    tasks tasks;
    MPI_Comm comm;
    int ranks, me;
    uint64_t *loads;
    /* By rank, in bytes. */
    int *send, *send_at, *receive, *receive_at;
    MPI_Request *requests;
} hand;

void *by_hand_begin(size_t record, uint64_t room)
{
    hand *it = calloc(1, sizeof *it);
    if (it == NULL || !tasks_make(&it->tasks, record, room) || MPI_Comm_dup(MPI_COMM_WORLD, &it->comm))
        return NULL;
    MPI_Comm_size(it->comm, &it->ranks);
    MPI_Comm_rank(it->comm, &it->me);
    size_t ranks = it->ranks;
    it->loads = malloc(ranks * sizeof *it->loads);
    it->send = malloc(4 * ranks * sizeof *it->send);
    it->requests = malloc(ranks * sizeof *it->requests);
    if (it->loads == NULL || it->send == NULL || it->requests == NULL)
        return NULL;
    it->send_at = it->send + ranks, it->receive = it->send_at + ranks, it->receive_at = it->receive + ranks;
    return it;
}

int by_hand_fill(void *state, uint64_t first, uint64_t count)
{
    return tasks_fill(&((hand *)state)->tasks, first, count);
}

void by_hand_check(const void *state, uint64_t found[4])
{
    tasks_check(&((const hand *)state)->tasks, found);
}

void by_hand_end(void *state)
{
    hand *it = state;
    MPI_Comm_free(&it->comm);
    free(it->tasks.records), free(it->loads), free(it->send), free(it->requests), free(it);
}

/* The surpluses, in rank order, fill the deficits, in rank order. How many tasks this rank has afterwards. */
static uint64_t plan(hand *it)
{
    uint64_t total = 0, ranks = it->ranks;
    for (uint64_t rank = 0; rank < ranks; rank++)
        total += it->loads[rank];
    uint64_t each = total / ranks, more = total % ranks;
#define QUOTA(rank) (each + ((rank) < more))
    uint64_t from = 0, to = 0, surplus = 0, deficit = 0;
    for (;;) {
        for (; surplus == 0 && from < ranks; from++)
            surplus = it->loads[from] > QUOTA(from) ? it->loads[from] - QUOTA(from) : 0;
        for (; deficit == 0 && to < ranks; to++)
            deficit = it->loads[to] < QUOTA(to) ? QUOTA(to) - it->loads[to] : 0;
        uint64_t tasks = surplus < deficit ? surplus : deficit;
        if (tasks == 0)
            break;
        if (from - 1 == (uint64_t)it->me)
            it->send[to - 1] = tasks * it->tasks.record;
        if (to - 1 == (uint64_t)it->me)
            it->receive[from - 1] = tasks * it->tasks.record;
        surplus -= tasks, deficit -= tasks;
    }
    return QUOTA((uint64_t)it->me);
}

int by_hand_phase(void *state, int way)
{
    hand *it = state;
    tasks *tasks = &it->tasks;
    int wrong = MPI_Allgather(&tasks->count, 1, MPI_UINT64_T, it->loads, 1, MPI_UINT64_T, it->comm);
    if (wrong)
        return wrong;
    memset(it->send, 0, 4 * it->ranks * sizeof *it->send);
    uint64_t quota = plan(it);
    /* A rank sends its last tasks, or receives behind its last task, never both. */
    if (!tasks_reserve(tasks, quota))
        return MPI_ERR_NO_MEM;
    unsigned char *end = tasks_at(tasks, quota < tasks->count ? quota : tasks->count);
    if (way == 0) {
        for (int rank = 1; rank < it->ranks; rank++) {
            it->send_at[rank] = it->send_at[rank - 1] + it->send[rank - 1];
            it->receive_at[rank] = it->receive_at[rank - 1] + it->receive[rank - 1];
        }
        wrong = MPI_Alltoallv(end, it->send, it->send_at, MPI_BYTE, end, it->receive, it->receive_at, MPI_BYTE, it->comm);
    } else {
        int open = 0;
        for (int rank = 0; rank < it->ranks && !wrong; rank++) {
            if (it->receive[rank] > 0) {
                wrong = MPI_Irecv(end, it->receive[rank], MPI_BYTE, rank, 0, it->comm, &it->requests[open++]);
                end += it->receive[rank];
            } else if (it->send[rank] > 0) {
                wrong = MPI_Isend(end, it->send[rank], MPI_BYTE, rank, 0, it->comm, &it->requests[open++]);
                end += it->send[rank];
            }
        }
        if (!wrong)
            wrong = MPI_Waitall(open, it->requests, MPI_STATUSES_IGNORE);
    }
    tasks->count = quota;
    return wrong;
}
