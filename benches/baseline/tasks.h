/* The tasks of the phases that the bench compares with, in C: records of one size, one behind the other in a buffer that is kept from phase to
 * phase. Every 64-bit word of a record is the task's number; bytes behind the last whole word are 0. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct {
    size_t record;
    uint64_t count, room;
    unsigned char *records;
} tasks;

/* A buffer in huge pages, as the allocator of the program `equipoise` asks for: the kernel copies from process to process page by page. */
static inline unsigned char *tasks_buffer(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    size_t whole = (bytes + page) / page * page;
    unsigned char *buffer = aligned_alloc(page, whole);
#ifdef MADV_HUGEPAGE
    if (buffer != NULL)
        madvise(buffer, whole, MADV_HUGEPAGE);
#endif
    return buffer;
}

static inline int tasks_make(tasks *all, size_t record, uint64_t room)
{
    all->record = record, all->count = 0, all->room = room;
    all->records = tasks_buffer(record * room);
    return all->records != NULL;
}

static inline unsigned char *tasks_at(const tasks *all, uint64_t index)
{
    return all->records + all->record * index;
}

/* Makes room for this number of tasks. */
static inline int tasks_reserve(tasks *all, uint64_t room)
{
    if (room > all->room) {
        unsigned char *more = tasks_buffer(all->record * room);
        if (more == NULL)
            return 0;
        memcpy(more, all->records, all->record * all->count);
        free(all->records);
        all->records = more, all->room = room;
    }
    return 1;
}

/* The tasks that a phase begins with. */
static inline int tasks_fill(tasks *all, uint64_t first, uint64_t count)
{
    if (!tasks_reserve(all, count))
        return 0;
    all->count = count;
    size_t words = all->record / 8, rest = all->record % 8;
    for (uint64_t index = 0; index < count; index++) {
        unsigned char *to = tasks_at(all, index);
        uint64_t id = first + index;
        for (size_t word = 0; word < words; word++)
            memcpy(to + 8 * word, &id, 8);
        memset(to + 8 * words, 0, rest);
    }
    return 1;
}

/* Number of tasks, sum of their numbers and of the squares, and how many words are not as they were made. */
static inline void tasks_check(const tasks *all, uint64_t found[4])
{
    uint64_t ids = 0, squares = 0, wrong = 0;
    size_t words = all->record / 8, rest = all->record % 8;
    for (uint64_t index = 0; index < all->count; index++) {
        const unsigned char *from = tasks_at(all, index);
        uint64_t id, word;
        memcpy(&id, from, 8);
        for (size_t at = 1; at < words; at++) {
            memcpy(&word, from + 8 * at, 8);
            wrong += word != id;
        }
        for (size_t at = 0; at < rest; at++)
            wrong += from[8 * words + at] != 0;
        ids += id, squares += id * id;
    }
    found[0] = all->count, found[1] = ids, found[2] = squares, found[3] = wrong;
}

/* What the bench calls; it loads these by name. One library has one kind of phase, in one or several ways.
 *
 * begin: collective; a state with room for `room` tasks of `record` bytes, or NULL.
 * fill:  the tasks first .. first + count, which the next phase begins with; 0 if there is no memory.
 * phase: one phase; 0 if it succeeded.
 * check: what is there afterwards, see tasks_check.
 * end:   collective. */
void *by_hand_begin(size_t record, uint64_t room);
int by_hand_fill(void *state, uint64_t first, uint64_t count);
int by_hand_phase(void *state, int way);
void by_hand_check(const void *state, uint64_t found[4]);
void by_hand_end(void *state);
