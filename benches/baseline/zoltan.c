/* A balancing phase by Zoltan's BLOCK method (Sandia National Laboratories), as its user's guide shows it: Zoltan_LB_Partition says which
 * tasks leave, Zoltan_Migrate packs them, sends them and unpacks them. Zoltan's structure and the tasks' buffer are kept from phase to phase. */

#include "tasks.h"
#include <zoltan.h>

typedef struct {
    tasks tasks;
    struct Zoltan_Struct *zoltan;
} library;

static int number(void *data, int *wrong)
{
    *wrong = ZOLTAN_OK;
    return ((library *)data)->tasks.count;
}

static void list(void *data, int gids, int lids, ZOLTAN_ID_PTR global, ZOLTAN_ID_PTR local, int weights, float *weight, int *wrong)
{
    (void)gids, (void)lids, (void)weights, (void)weight;
    const tasks *tasks = &((library *)data)->tasks;
    for (uint64_t index = 0; index < tasks->count; index++) {
        uint64_t id;
        memcpy(&id, tasks_at(tasks, index), 8);
        global[index] = id, local[index] = index;
    }
    *wrong = ZOLTAN_OK;
}

static void sizes(void *data, int gids, int lids, int many, ZOLTAN_ID_PTR global, ZOLTAN_ID_PTR local, int *size, int *wrong)
{
    (void)gids, (void)lids, (void)global, (void)local;
    for (int at = 0; at < many; at++)
        size[at] = ((library *)data)->tasks.record;
    *wrong = ZOLTAN_OK;
}

static void pack(void *data, int gids, int lids, int many, ZOLTAN_ID_PTR global, ZOLTAN_ID_PTR local, int *to, int *size, int *place,
                 char *buffer, int *wrong)
{
    (void)gids, (void)lids, (void)global, (void)to, (void)size;
    const tasks *tasks = &((library *)data)->tasks;
    for (int at = 0; at < many; at++)
        memcpy(buffer + place[at], tasks_at(tasks, local[at]), tasks->record);
    *wrong = ZOLTAN_OK;
}

/* Closes the gaps that tasks left. */
static void leave(void *data, int gids, int lids, int come, ZOLTAN_ID_PTR come_global, ZOLTAN_ID_PTR come_local, int *come_from,
                  int *come_part, int go, ZOLTAN_ID_PTR go_global, ZOLTAN_ID_PTR go_local, int *go_to, int *go_part, int *wrong)
{
    (void)gids, (void)lids, (void)come, (void)come_global, (void)come_local, (void)come_from, (void)come_part;
    (void)go_global, (void)go_to, (void)go_part;
    tasks *tasks = &((library *)data)->tasks;
    *wrong = ZOLTAN_OK;
    /* BLOCK takes them in order: whole runs are moved at once. */
    uint64_t kept = 0, next = 0;
    for (int at = 0; at <= go; at++) {
        uint64_t gap = at < go ? go_local[at] : tasks->count;
        if (gap > next) {
            if (kept != next)
                memmove(tasks_at(tasks, kept), tasks_at(tasks, next), (gap - next) * tasks->record);
            kept += gap - next;
        } else if (gap < next) {
            *wrong = ZOLTAN_FATAL;
        }
        next = gap + 1;
    }
    tasks->count = kept;
}

static void unpack(void *data, int gids, int many, ZOLTAN_ID_PTR global, int *size, int *place, char *buffer, int *wrong)
{
    (void)gids, (void)global, (void)size;
    tasks *tasks = &((library *)data)->tasks;
    *wrong = tasks_reserve(tasks, tasks->count + many) ? ZOLTAN_OK : ZOLTAN_MEMERR;
    for (int at = 0; at < many && *wrong == ZOLTAN_OK; at++)
        memcpy(tasks_at(tasks, tasks->count++), buffer + place[at], tasks->record);
}

void *by_hand_begin(size_t record, uint64_t room)
{
    float version;
    library *it = calloc(1, sizeof *it);
    if (it == NULL || !tasks_make(&it->tasks, record, room) || Zoltan_Initialize(0, NULL, &version) != ZOLTAN_OK)
        return NULL;
    it->zoltan = Zoltan_Create(MPI_COMM_WORLD);
    if (it->zoltan == NULL)
        return NULL;
    static const char *const parameters[][2] = {
        {"LB_METHOD", "BLOCK"}, {"NUM_GID_ENTRIES", "1"}, {"NUM_LID_ENTRIES", "1"}, {"OBJ_WEIGHT_DIM", "0"},
        {"RETURN_LISTS", "ALL"}, {"DEBUG_LEVEL", "0"}, {"CHECK_GEOM", "0"},
    };
    for (size_t at = 0; at < sizeof parameters / sizeof *parameters; at++)
        Zoltan_Set_Param(it->zoltan, parameters[at][0], parameters[at][1]);
    Zoltan_Set_Num_Obj_Fn(it->zoltan, number, it);
    Zoltan_Set_Obj_List_Fn(it->zoltan, list, it);
    Zoltan_Set_Obj_Size_Multi_Fn(it->zoltan, sizes, it);
    Zoltan_Set_Pack_Obj_Multi_Fn(it->zoltan, pack, it);
    Zoltan_Set_Unpack_Obj_Multi_Fn(it->zoltan, unpack, it);
    Zoltan_Set_Mid_Migrate_PP_Fn(it->zoltan, leave, it);
    return it;
}

int by_hand_fill(void *state, uint64_t first, uint64_t count)
{
    return tasks_fill(&((library *)state)->tasks, first, count);
}

void by_hand_check(const void *state, uint64_t found[4])
{
    tasks_check(&((const library *)state)->tasks, found);
}

int by_hand_phase(void *state, int way)
{
    (void)way;
    library *it = state;
    int changes, gids, lids, come, go, *come_from, *come_part, *go_to, *go_part;
    ZOLTAN_ID_PTR come_global, come_local, go_global, go_local;
    int wrong = Zoltan_LB_Partition(it->zoltan, &changes, &gids, &lids, &come, &come_global, &come_local, &come_from, &come_part, &go,
                                    &go_global, &go_local, &go_to, &go_part);
    if (wrong != ZOLTAN_OK)
        return wrong;
    wrong = Zoltan_Migrate(it->zoltan, come, come_global, come_local, come_from, come_part, go, go_global, go_local, go_to, go_part);
    Zoltan_LB_Free_Part(&come_global, &come_local, &come_from, &come_part);
    Zoltan_LB_Free_Part(&go_global, &go_local, &go_to, &go_part);
    return wrong;
}

void by_hand_end(void *state)
{
    library *it = state;
    Zoltan_Destroy(&it->zoltan);
    free(it->tasks.records), free(it);
}
