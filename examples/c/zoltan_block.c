/* A program with Zoltan's names: numbers on each rank, partitioned by weight and migrated. It includes equipoise_zoltan.h where it would include
 * zoltan.h. (What it does in Equipoise's own calls: eqp_plan_make, eqp_plan_destinations, eqp_plan_move; see docs/embedding.md.)
 *
 *   mpicc zoltan_block.c $(pkg-config --cflags --libs equipoise) -o zoltan_block && mpirun -n 3 ./zoltan_block
 */
#include "equipoise_zoltan.h"

enum { MOST = 4096 };
typedef struct { int count; unsigned id[MOST]; float weight[MOST]; } mesh;

static int number(void *data, int *ierr) {
    *ierr = ZOLTAN_OK;
    return ((mesh *)data)->count;
}

static void objects(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gids, ZOLTAN_ID_PTR lids, int dim, float *weights, int *ierr) {
    mesh *m = data;
    (void)num_gid, (void)num_lid;
    for (int i = 0; i < m->count; i++) {
        gids[i] = m->id[i], lids[i] = (unsigned)i;
        if (dim) weights[i] = m->weight[i];
    }
    *ierr = ZOLTAN_OK;
}

static int size(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gid, ZOLTAN_ID_PTR lid, int *ierr) {
    (void)data, (void)num_gid, (void)num_lid, (void)gid, (void)lid;
    *ierr = ZOLTAN_OK;
    return sizeof(float);
}

static void pack(void *data, int num_gid, int num_lid, ZOLTAN_ID_PTR gid, ZOLTAN_ID_PTR lid, int dest, int bytes, char *buffer, int *ierr) {
    mesh *m = data;
    (void)num_gid, (void)num_lid, (void)gid, (void)dest;
    memcpy(buffer, &m->weight[*lid], (size_t)bytes);
    m->id[*lid] = 0;
    *ierr = ZOLTAN_OK;
}

static void unpack(void *data, int num_gid, ZOLTAN_ID_PTR gid, int bytes, char *buffer, int *ierr) {
    mesh *m = data;
    (void)num_gid;
    m->id[m->count] = *gid;
    memcpy(&m->weight[m->count++], buffer, (size_t)bytes);
    *ierr = ZOLTAN_OK;
}

/* Largest work of a rank over the mean. */
static double imbalance(const mesh *m, int ranks) {
    double mine = 0, most, sum;
    for (int i = 0; i < m->count; i++) mine += m->id[i] ? m->weight[i] : 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return most * ranks / sum;
}

int main(int argc, char **argv) {
    float version;
    int rank, ranks;
    Zoltan_Initialize(argc, argv, &version);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static mesh m;
    for (m.count = 0; m.count < 10 * (rank + 1); m.count++) {
        m.id[m.count] = (unsigned)(1000 * (rank + 1) + m.count);
        m.weight[m.count] = 1 + (float)(m.count % 5);
    }
    double before = imbalance(&m, ranks);
    struct Zoltan_Struct *zz = Zoltan_Create(MPI_COMM_WORLD);
    Zoltan_Set_Param(zz, "LB_METHOD", "BLOCK");
    Zoltan_Set_Param(zz, "OBJ_WEIGHT_DIM", "1");
    Zoltan_Set_Num_Obj_Fn(zz, number, &m);
    Zoltan_Set_Obj_List_Fn(zz, objects, &m);
    Zoltan_Set_Obj_Size_Fn(zz, size, &m);
    Zoltan_Set_Pack_Obj_Fn(zz, pack, &m);
    Zoltan_Set_Unpack_Obj_Fn(zz, unpack, &m);
    int changes, num_gid, num_lid, imports, exports, *import_procs, *import_parts, *export_procs, *export_parts;
    ZOLTAN_ID_PTR import_gids, import_lids, export_gids, export_lids;
    int wrong = Zoltan_LB_Partition(zz, &changes, &num_gid, &num_lid, &imports, &import_gids, &import_lids, &import_procs, &import_parts, &exports,
        &export_gids, &export_lids, &export_procs, &export_parts);
    wrong |= Zoltan_Migrate(zz, imports, import_gids, import_lids, import_procs, import_parts, exports, export_gids, export_lids, export_procs, export_parts);
    Zoltan_LB_Free_Part(&import_gids, &import_lids, &import_procs, &import_parts);
    Zoltan_LB_Free_Part(&export_gids, &export_lids, &export_procs, &export_parts);
    Zoltan_Destroy(&zz);
    double after = imbalance(&m, ranks);
    /* Every object is somewhere, once. */
    long mine = 0, sum, expected = 0;
    for (int i = 0; i < m.count; i++) mine += m.id[i];
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < 10 * (r + 1); i++) expected += 1000 * (r + 1) + i;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("imbalance %.3f, after migration %.3f\n", before, after);
    MPI_Finalize();
    return wrong || sum != expected || after > before || (ranks > 1 && after > 1.2);
}
