/* Zoltan's names over Equipoise, for methods that need no geometry and no graph (BLOCK, RANDOM, CYCLIC, SIMPLE): so that a program that balances by
 * weights can be compiled against it and compared. Include it instead of zoltan.h, in one file. One integer per global and local id; exports and
 * imports as Zoltan has them; Zoltan_Migrate carries out the last partition. Other parameters than IMBALANCE_TOL, LB_METHOD, OBJ_WEIGHT_DIM are ignored. */
#ifndef EQUIPOISE_ZOLTAN_H
#define EQUIPOISE_ZOLTAN_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "equipoise.h"

enum { ZOLTAN_OK = 0, ZOLTAN_WARN = 1, ZOLTAN_FATAL = -1, ZOLTAN_MEMERR = -2 };
typedef unsigned int ZOLTAN_ID_TYPE, *ZOLTAN_ID_PTR;
#define ZOLTAN_ID_MPI_TYPE MPI_UNSIGNED

typedef int ZOLTAN_NUM_OBJ_FN(void *data, int *ierr);
typedef void ZOLTAN_OBJ_LIST_FN(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gids, ZOLTAN_ID_PTR lids, int wdim, float *weights, int *ierr);
typedef int ZOLTAN_OBJ_SIZE_FN(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gid, ZOLTAN_ID_PTR lid, int *ierr);
typedef void ZOLTAN_PACK_OBJ_FN(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gid, ZOLTAN_ID_PTR lid, int dest, int size, char *buf, int *ierr);
typedef void ZOLTAN_UNPACK_OBJ_FN(void *data, int num_gid, ZOLTAN_ID_PTR gid, int size, char *buf, int *ierr);

struct Zoltan_Struct {
    eqp_world *world;
    eqp_plan *plan;
    int rank, count, weights;
    unsigned *gids, *lids, *incoming;
    int *to, *from;
    ZOLTAN_NUM_OBJ_FN *num;
    ZOLTAN_OBJ_LIST_FN *list;
    ZOLTAN_OBJ_SIZE_FN *size;
    ZOLTAN_PACK_OBJ_FN *pack;
    ZOLTAN_UNPACK_OBJ_FN *unpack;
    void *num_data, *list_data, *size_data, *pack_data, *unpack_data;
    int arrived, failed;
};

static inline int eqz_said(const char *what, const eqp_world *w) {
    fprintf(stderr, "%s: %s\n", what, eqp_error(w));
    return ZOLTAN_FATAL;
}

static inline int Zoltan_Initialize(int argc, char **argv, float *version) {
    int up;
    MPI_Initialized(&up);
    if (!up) MPI_Init(&argc, &argv);
    *version = 3.9f;
    return ZOLTAN_OK;
}

static inline struct Zoltan_Struct *Zoltan_Create(MPI_Comm comm) {
    struct Zoltan_Struct *zz = (struct Zoltan_Struct *)calloc(1, sizeof *zz);
    if (!zz) return NULL;
    MPI_Comm_rank(comm, &zz->rank);
    if (eqp_open(&comm, sizeof comm, "", &zz->world)) {
        eqz_said("Zoltan_Create", NULL);
        free(zz);
        return NULL;
    }
    return zz;
}

static inline int Zoltan_Set_Param(struct Zoltan_Struct *zz, const char *name, const char *value) {
    int status = EQP_OK;
    if (!strcmp(name, "IMBALANCE_TOL")) status = eqp_set(zz->world, "tolerance", value);
    if (!strcmp(name, "OBJ_WEIGHT_DIM")) zz->weights = atoi(value);
    /* By the method's idea: what is contiguous stays so, or the least moves. */
    if (!strcmp(name, "LB_METHOD")) status = eqp_set(zz->world, "balancer", !strcmp(value, "BLOCK") ? "chains" : "refine");
    return status ? eqz_said("Zoltan_Set_Param", zz->world) : ZOLTAN_OK;
}

#define EQZ_SETTER(name, type, field) \
    static inline int Zoltan_Set_##name(struct Zoltan_Struct *zz, type *fn, void *data) { \
        zz->field = fn; \
        zz->field##_data = data; \
        return ZOLTAN_OK; \
    }
EQZ_SETTER(Num_Obj_Fn, ZOLTAN_NUM_OBJ_FN, num)
EQZ_SETTER(Obj_List_Fn, ZOLTAN_OBJ_LIST_FN, list)
EQZ_SETTER(Obj_Size_Fn, ZOLTAN_OBJ_SIZE_FN, size)
EQZ_SETTER(Pack_Obj_Fn, ZOLTAN_PACK_OBJ_FN, pack)
EQZ_SETTER(Unpack_Obj_Fn, ZOLTAN_UNPACK_OBJ_FN, unpack)

static inline void eqz_forget(struct Zoltan_Struct *zz) {
    eqp_plan_free(&zz->plan);
    free(zz->gids), free(zz->lids), free(zz->incoming), free(zz->to), free(zz->from);
    zz->gids = zz->lids = zz->incoming = NULL;
    zz->to = zz->from = NULL;
}

static inline int Zoltan_LB_Free_Part(ZOLTAN_ID_PTR *gids, ZOLTAN_ID_PTR *lids, int **procs, int **parts) {
    free(*gids), free(*lids), free(*procs), free(*parts);
    *gids = *lids = NULL;
    *procs = *parts = NULL;
    return ZOLTAN_OK;
}

/* Room for a list of ids, ranks and parts. */
static inline void eqz_lists(int count, ZOLTAN_ID_PTR *gids, ZOLTAN_ID_PTR *lids, int **procs, int **parts) {
    size_t bytes = ((size_t)count + 1) * sizeof(int);
    *gids = (ZOLTAN_ID_PTR)malloc(bytes), *lids = (ZOLTAN_ID_PTR)malloc(bytes);
    *procs = (int *)malloc(bytes), *parts = (int *)malloc(bytes);
}

static inline int Zoltan_LB_Partition(struct Zoltan_Struct *zz, int *changes, int *num_gid, int *num_lid, int *num_import, ZOLTAN_ID_PTR *import_gids,
    ZOLTAN_ID_PTR *import_lids, int **import_procs, int **import_parts, int *num_export, ZOLTAN_ID_PTR *export_gids, ZOLTAN_ID_PTR *export_lids,
    int **export_procs, int **export_parts) {
    int ierr = ZOLTAN_OK, i, at;
    eqz_forget(zz);
    zz->count = zz->num(zz->num_data, &ierr);
    size_t n = zz->count > 0 ? (size_t)zz->count : 0;
    int dim = zz->weights > 0 ? zz->weights : 0;
    zz->gids = (unsigned *)calloc(n + 1, sizeof(unsigned)), zz->lids = (unsigned *)calloc(n + 1, sizeof(unsigned));
    zz->to = (int *)calloc(n + 1, sizeof(int));
    float *given = (float *)calloc(n * (size_t)(dim ? dim : 1) + 1, sizeof(float));
    double *weight = (double *)calloc(n + 1, sizeof(double));
    zz->list(zz->list_data, 1, 1, zz->gids, zz->lids, dim, given, &ierr);
    for (i = 0; i < zz->count; i++) weight[i] = dim ? given[(size_t)i * (size_t)dim] : 1;
    int status = eqp_plan_make(zz->world, n, weight, NULL, NULL, &zz->plan);
    free(given), free(weight);
    if (status) return eqz_said("Zoltan_LB_Partition", zz->world);
    size_t here = eqp_plan_incoming(zz->plan);
    zz->incoming = (unsigned *)calloc(2 * here + 1, sizeof(unsigned)), zz->from = (int *)calloc(here + 1, sizeof(int));
    uint64_t *index = (uint64_t *)calloc(here + 1, sizeof(uint64_t));
    unsigned *ids = (unsigned *)calloc(2 * n + 1, sizeof(unsigned));
    for (i = 0; i < zz->count; i++) ids[2 * i] = zz->gids[i], ids[2 * i + 1] = zz->lids[i];
    eqp_plan_destinations(zz->plan, zz->to);
    eqp_plan_sources(zz->plan, zz->from, index);
    status = eqp_plan_move(zz->world, zz->plan, ids, 2 * sizeof(unsigned), zz->incoming);
    free(index), free(ids);
    if (status) return eqz_said("Zoltan_LB_Partition", zz->world);
    *num_gid = *num_lid = 1;
    *num_import = *num_export = 0;
    for (i = 0; i < (int)here; i++) *num_import += zz->from[i] != zz->rank;
    for (i = 0; i < zz->count; i++) *num_export += zz->to[i] != zz->rank;
    eqz_lists(*num_import, import_gids, import_lids, import_procs, import_parts);
    eqz_lists(*num_export, export_gids, export_lids, export_procs, export_parts);
    for (i = at = 0; i < (int)here; i++)
        if (zz->from[i] != zz->rank) {
            (*import_gids)[at] = zz->incoming[2 * i], (*import_lids)[at] = zz->incoming[2 * i + 1];
            (*import_procs)[at] = zz->from[i], (*import_parts)[at++] = zz->rank;
        }
    for (i = at = 0; i < zz->count; i++)
        if (zz->to[i] != zz->rank) {
            (*export_gids)[at] = zz->gids[i], (*export_lids)[at] = zz->lids[i];
            (*export_procs)[at] = (*export_parts)[at] = zz->to[i], at++;
        }
    eqp_verdict verdict;
    eqp_plan_verdict(zz->plan, &verdict);
    *changes = verdict.moved > 0;
    return ierr;
}

static inline int eqz_arrives(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    struct Zoltan_Struct *zz = (struct Zoltan_Struct *)context;
    int at = zz->arrived++, ierr = ZOLTAN_OK;
    (void)index;
    if (from == zz->rank) return 0;
    zz->unpack(zz->unpack_data, 1, &zz->incoming[2 * at], (int)size, (char *)bytes, &ierr);
    return ierr < 0;
}

static inline int Zoltan_Migrate(struct Zoltan_Struct *zz, int num_import, ZOLTAN_ID_PTR import_gids, ZOLTAN_ID_PTR import_lids, int *import_procs,
    int *import_parts, int num_export, ZOLTAN_ID_PTR export_gids, ZOLTAN_ID_PTR export_lids, int *export_procs, int *export_parts) {
    (void)num_import, (void)import_gids, (void)import_lids, (void)import_procs, (void)import_parts;
    (void)num_export, (void)export_gids, (void)export_lids, (void)export_procs, (void)export_parts;
    size_t n = (size_t)zz->count;
    const void **items = (const void **)calloc(n + 1, sizeof *items);
    size_t *sizes = (size_t *)calloc(n + 1, sizeof *sizes);
    int i, ierr = ZOLTAN_OK;
    for (i = 0; i < zz->count; i++)
        if (zz->to[i] != zz->rank) {
            sizes[i] = (size_t)zz->size(zz->size_data, 1, 1, &zz->gids[i], &zz->lids[i], &ierr);
            items[i] = calloc(sizes[i] + 1, 1);
            zz->pack(zz->pack_data, 1, 1, &zz->gids[i], &zz->lids[i], zz->to[i], (int)sizes[i], (char *)items[i], &ierr);
        }
    zz->arrived = 0;
    int status = eqp_plan_move_var(zz->world, zz->plan, items, sizes, eqz_arrives, zz);
    for (i = 0; i < zz->count; i++) free((void *)items[i]);
    free(items), free(sizes);
    return status ? eqz_said("Zoltan_Migrate", zz->world) : ierr;
}

static inline void Zoltan_Destroy(struct Zoltan_Struct **zz) {
    if (!*zz) return;
    eqz_forget(*zz);
    eqp_close(&(*zz)->world);
    free(*zz);
    *zz = NULL;
}

#endif
