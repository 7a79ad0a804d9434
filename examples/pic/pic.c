/* The particle-in-cell kernel of the Parallel Research Kernels, from its published specification (Georganas, Van der Wijngaart and Mattson 2016):
 * particles move over a periodic square of cells whose corners carry fixed charges, and each can be told beforehand where it ends.
 *
 *   mpicc -O2 pic.c $(pkg-config --cflags --libs equipoise) -lm -o pic
 *   mpirun -n 2 ./pic -n 400000 -c 400 -s 200 -d geometric:0.99
 *
 *   -n particles   -c cells along a side, even   -s steps   -k 2k+1 columns a step to the right   -m m rows a step upwards
 *   -d geometric:R  column i has R^i as many as column 0      sinusoidal  1 + cos(2 pi i / (c - 1))
 *      linear:A:B   B - A i / (c - 1)                         patch:X0:X1:Y0:Y1  evenly in these columns and rows
 *
 * The same problem is run three times: in static blocks of columns; in columns that change their owners whenever `eqp_step` says so; and as free copies, where
 * each rank has its part of the particles, evenly, and nobody to speak to, which no balance can beat. Each run verifies itself: every
 * particle where it must be, and all of them there. The specification leaves open how counts are rounded; here all columns together have exactly
 * the particles asked for. Charges of corners are computed, not read from an array.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "equipoise.h"

typedef struct { double x, y, vx, vy, charge, x0, y0; int64_t id; } particle;
typedef struct { particle *at; size_t count, room; } particles;
typedef enum { BLOCKS, BALANCED, FREE } way;

static int rank, ranks, cells = 400, steps = 200, k, m = 1;
static int64_t total = 400000;
static const char *distribution = "geometric:0.99";
static eqp_world *w;
static MPI_Datatype a_particle;
/* By rank, those that are about to be sent there. */
static particles *leaving;
/* How many of mine are in each column. */
static int64_t *in_column;

static void *memory(size_t bytes) {
    void *found = malloc(bytes + 1);
    if (!found) {
        fprintf(stderr, "pic: rank %d: there is no memory for %zu bytes\n", rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    return found;
}

static void stop_on(int status) {
    if (status == EQP_OK) return;
    fprintf(stderr, "pic: %s\n", eqp_error(w));
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void make_room(particles *all, size_t more) {
    if (all->count + more <= all->room) return;
    all->room = all->room * 2 + more + 1024;
    all->at = realloc(all->at, all->room * sizeof *all->at);
    if (!all->at) MPI_Abort(MPI_COMM_WORLD, 5);
}

static void add(particles *all, const particle *more) {
    make_room(all, 1);
    all->at[all->count++] = *more;
}

/* What part of the particles begins in a column, times anything that is the same for all columns; and the rows that these are in. */
static double density(int column, int *low, int *high) {
    double a = 1, b = 3, r = 0.99, x = column / (cells > 1 ? cells - 1.0 : 1.0);
    int x0 = 0, x1 = cells / 2, y0 = 0, y1 = cells / 2;
    *low = 0, *high = cells;
    if (sscanf(distribution, "geometric:%lf", &r) == 1 || !strcmp(distribution, "geometric")) return pow(r, column);
    if (!strcmp(distribution, "sinusoidal")) return 1 + cos(2 * acos(-1) * x);
    if (sscanf(distribution, "linear:%lf:%lf", &a, &b) == 2 || !strcmp(distribution, "linear")) return b > a * x ? b - a * x : 0;
    if (sscanf(distribution, "patch:%d:%d:%d:%d", &x0, &x1, &y0, &y1) == 4 || !strcmp(distribution, "patch")) {
        *low = y0, *high = y1;
        return column >= x0 && column < x1;
    }
    return -1;
}

/* Those that begin in the columns that `owner` gives to me; `every` of them, beginning with number `first`. */
static particles begin_with(const int *owner, int me, int every, int first) {
    particles mine = {NULL, 0, 0};
    double whole = 0, so_far = 0;
    int low, high;
    for (int c = 0; c < cells; c++) whole += density(c, &low, &high);
    int64_t id = 0;
    for (int c = 0; c < cells; c++) {
        so_far += density(c, &low, &high);
        int64_t end = c == cells - 1 ? total : (int64_t)llround((double)total * so_far / whole), here = end - id;
        for (int64_t number = 0; id < end; number++, id++) {
            if (owner[c] != me || id % every != first) continue;
            int row = low + (int)(number * (high - low) / here);
            /* In the middle of its cell. The charges of two corners on each side move it 2k+1 cells in a time step of 1 from rest, and bring it to
             * rest in the next: they push with 2 charge (cos / distance^2) from both sides, and from rest it goes half of that far. */
            double distance = sqrt(0.5), push = 2 * (0.5 / distance) / (distance * distance);
            double charge = (2 * k + 1) / push * (c % 2 == 0 ? 1 : -1);
            particle p = {c + 0.5, row + 0.5, 0, m, charge, c + 0.5, row + 0.5, id + 1};
            add(&mine, &p);
        }
    }
    return mine;
}

/* Moves a particle for one step. */
static inline void push(particle *p) {
    double column = floor(p->x), row = floor(p->y), fx = 0, fy = 0;
    for (int right = 0; right < 2; right++)
        for (int up = 0; up < 2; up++) {
            double dx = p->x - column - right, dy = p->y - row - up, square = dx * dx + dy * dy;
            double corner = ((int)column + right) % 2 == 0 ? 1 : -1, force = p->charge * corner / (square * sqrt(square));
            fx += force * dx, fy += force * dy;
        }
    p->x = fmod(p->x + p->vx + 0.5 * fx + cells, cells);
    p->y = fmod(p->y + p->vy + 0.5 * fy + cells, cells);
    p->vx += fx, p->vy += fy;
}

static int column_of(const particle *p) {
    int column = (int)p->x;
    return column < cells ? column : 0;
}

/* Moves particles for a step, and takes those out whose columns others own: these wait in `leaving`, by their owners. The last one takes the place
 * of one that leaves, so that those that stay are not copied. */
static void advance(particles *mine, const int *owner) {
    memset(in_column, 0, (size_t)cells * sizeof *in_column);
    for (size_t i = 0; i < mine->count;) {
        push(&mine->at[i]);
        int column = column_of(&mine->at[i]), to = owner[column];
        if (to == rank) {
            in_column[column]++, i++;
        } else {
            add(&leaving[to], &mine->at[i]);
            mine->at[i] = mine->at[--mine->count];
        }
    }
}

/* Sends those that leave to the owners of their columns. */
static void exchange(particles *mine) {
    int *out = calloc((size_t)ranks, sizeof *out), *in = memory((size_t)ranks * sizeof *in), *put, *got;
    put = memory((size_t)(ranks + 1) * sizeof *put), got = memory((size_t)(ranks + 1) * sizeof *got);
    for (int r = 0; r < ranks; r++) out[r] = (int)leaving[r].count;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    put[0] = got[0] = 0;
    for (int r = 0; r < ranks; r++) put[r + 1] = put[r] + out[r], got[r + 1] = got[r] + in[r];
    particle *going = memory((size_t)put[ranks] * sizeof *going);
    for (int r = 0; r < ranks; r++) {
        if (out[r] > 0) memcpy(going + put[r], leaving[r].at, (size_t)out[r] * sizeof *going);
        leaving[r].count = 0;
    }
    make_room(mine, (size_t)got[ranks]);
    MPI_Alltoallv(going, out, put, a_particle, mine->at + mine->count, in, got, a_particle, MPI_COMM_WORLD);
    for (int i = 0; i < got[ranks]; i++) in_column[column_of(&mine->at[mine->count++])]++;
    free(out), free(in), free(put), free(got), free(going);
}

/* Gives whole columns to other ranks, so that all have as many particles. The plan is the library's: an item is a column, worth the particles in it.
 * These leave when they are looked at next, in the step to come: so balancing costs a plan, and no pass over the particles. */
static void balance(int *owner) {
    double *weight = memory((size_t)cells * sizeof *weight);
    int *to = memory((size_t)cells * sizeof *to), *new_owner = calloc((size_t)cells, sizeof *new_owner);
    size_t here = 0;
    for (int c = 0; c < cells; c++)
        if (owner[c] == rank) weight[here++] = (double)in_column[c];
    eqp_plan *plan = NULL;
    stop_on(eqp_plan_make(w, here, weight, NULL, NULL, &plan));
    stop_on(eqp_plan_destinations(plan, to));
    eqp_plan_free(&plan);
    here = 0;
    for (int c = 0; c < cells; c++)
        if (owner[c] == rank) new_owner[c] = to[here++];
    MPI_Allreduce(new_owner, owner, cells, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    free(weight), free(to), free(new_owner);
}

/* One line of the picture: how much each rank has, over the mean. */
static void draw(int step, size_t count) {
    double mine = (double)count, all[4096];
    MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank > 0) return;
    double mean = (double)total / ranks, most = 0;
    printf("  step %5d  |", step);
    for (int r = 0; r < ranks; r++) {
        int shade = (int)(all[r] / mean * 4);
        putchar(" .:-=+*#%@"[shade < 9 ? shade : 9]);
        if (all[r] > most) most = all[r];
    }
    printf("|  %.2f\n", most / mean);
}

/* A run: million particles a second. Ends the job if something is not where it must be. */
static double run(way how) {
    static const char *names[] = {"static blocks of columns", "balanced when step says so", "free copies"};
    int *owner = memory((size_t)cells * sizeof *owner);
    for (int c = 0; c < cells; c++) owner[c] = how == FREE ? rank : (int)((int64_t)c * ranks / cells);
    particles mine = how == FREE ? begin_with(owner, rank, ranks, rank) : begin_with(owner, rank, 1, 0);
    if (rank == 0 && how != FREE) printf("%s: loads over the mean (= is 1.00), and the largest\n", names[how]);
    int balanced = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), drawing = 0;
    for (int step = 0; step < steps; step++) {
        double since = MPI_Wtime();
        if (how != FREE && step % (steps / 10 > 0 ? steps / 10 : 1) == 0) draw(step, mine.count);
        double busy = MPI_Wtime();
        drawing += busy - since;
        if (how == FREE) {
            for (size_t i = 0; i < mine.count; i++) push(&mine.at[i]);
            continue;
        }
        advance(&mine, owner);
        busy = MPI_Wtime() - busy;
        exchange(&mine);
        int now = 0;
        /* After the last step there is nothing to gain. */
        if (how == BALANCED && step + 1 < steps) stop_on(eqp_step(w, busy, &now));
        if (now) balance(owner), balanced++;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - begin - drawing;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    /* Where they must be, each of them once. */
    int64_t wrong = 0, sums[2] = {(int64_t)mine.count, 0};
    for (size_t i = 0; i < mine.count; i++) {
        const particle *p = &mine.at[i];
        double dx = fabs(p->x - fmod(p->x0 + (2.0 * k + 1) * steps, cells)), dy = fabs(p->y - fmod(fmod(p->y0 + (double)m * steps, cells) + cells, cells));
        wrong += fmin(dx, cells - dx) > 1e-5 || fmin(dy, cells - dy) > 1e-5 || (how != FREE && owner[column_of(p)] != rank);
        sums[1] += p->id;
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (wrong || sums[0] != total || sums[1] != total * (total + 1) / 2) {
        if (rank == 0) fprintf(stderr, "pic: %s: %lld particles of %lld are not where they must be\n", names[how], (long long)wrong, (long long)sums[0]);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    double speed = (double)total * steps / seconds / 1e6;
    if (rank == 0 && how == BALANCED) printf("%s: %.2f million particles a second; balanced %d times; verified\n", names[how], speed, balanced);
    if (rank == 0 && how != BALANCED) printf("%s: %.2f million particles a second; verified\n", names[how], speed);
    free(mine.at), free(owner);
    return speed;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int option, low, high, bad = 0;
    while ((option = getopt(argc, argv, "n:c:s:k:m:d:")) != -1)
        switch (option) {
        case 'n': total = atoll(optarg); break;
        case 'c': cells = atoi(optarg); break;
        case 's': steps = atoi(optarg); break;
        case 'k': k = atoi(optarg); break;
        case 'm': m = atoi(optarg); break;
        case 'd': distribution = optarg; break;
        default: bad = 1;
        }
    double whole = 0;
    for (int c = 0; c < cells; c++) whole += density(c, &low, &high);
    if (bad || total < 1 || cells < 2 || cells % 2 || steps < 1 || k < 0 || 2 * k + 1 > cells || abs(m) > cells || ranks > 4096 || !(whole > 0) || low < 0 || high > cells || low >= high) {
        if (rank == 0) fprintf(stderr, "pic: wrong options: -n particles, -c an even number of cells, -s steps, -k and -m shorter than a side, -d a distribution\n");
        MPI_Finalize();
        return 2;
    }
    MPI_Type_contiguous((int)sizeof(particle), MPI_BYTE, &a_particle);
    MPI_Type_commit(&a_particle);
    leaving = calloc((size_t)ranks, sizeof *leaving);
    in_column = calloc((size_t)cells, sizeof *in_column);
    if (!leaving || !in_column) MPI_Abort(MPI_COMM_WORLD, 5);
    stop_on(EQP_OPEN(MPI_COMM_WORLD, "balancer=chains", &w));
    if (rank == 0) printf("%lld particles, %s, on %d x %d cells, %d steps, %d ranks\n", (long long)total, distribution, cells, cells, steps, ranks);
    double blocks = run(BLOCKS), balanced = run(BALANCED), copies = run(FREE);
    if (rank == 0) printf("balanced does %.2f of static blocks, and %.2f of free copies\n", balanced / blocks, balanced / copies);
    stop_on(eqp_close(&w));
    for (int r = 0; r < ranks; r++) free(leaving[r].at);
    free(leaving), free(in_column);
    MPI_Type_free(&a_particle);
    MPI_Finalize();
    return 0;
}
