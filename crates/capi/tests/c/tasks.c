/* Tasks that create tasks. */
#include "check.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct { int depth, width; char fill[40]; } body;

static _Atomic long processed, results, sum;
static eqp_world *w;
static int stops, refuse_at = -1;

static int grow(void *context, eqp_task *task, const void *bytes, size_t size) {
    const body *mine = bytes;
    if (context != &stops || size != sizeof *mine || ((uintptr_t)bytes & 15)) return 1;
    processed++;
    if (mine->depth == refuse_at) return 3;
    if (stops && mine->depth == 2) return eqp_stop(task);
    if (mine->depth == 0) {
        usleep(200);
        if (eqp_progress(w)) return 1;
        long leaf = 1;
        return eqp_result(task, &leaf, sizeof leaf);
    }
    body child = {mine->depth - 1, mine->width, ""};
    for (int i = 0; i < mine->width; i++)
        if (eqp_put(w, task, &child, sizeof child, 0, i)) return 1;
    return eqp_put(NULL, task, &child, sizeof child, NAN, 0) == EQP_USAGE ? 0 : 1;
}

static int gathers(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    if (context != &stops || from < 0 || from >= ranks || index >= 2 || size != sizeof(long)) return 1;
    results++;
    sum += *(const long *)bytes;
    return 0;
}

static int big(void *context, eqp_task *task, const void *bytes, size_t size) {
    (void)context;
    usleep(1000);
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)bytes)[i] != 7) return 1;
    return eqp_result(task, bytes, size);
}
static int big_result(void *context, int from, uint64_t index, const void *bytes, size_t size) {
    (void)from, (void)index;
    *(size_t *)context += size;
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)bytes)[i] != 7) return 1;
    return 0;
}

/* Under a scheduler of the registry a task travels in one message. Memory that nothing reads takes none. */
static int huge(void *context, eqp_task *task, const void *bytes, size_t size) {
    size_t most = (size_t)1 << 30;
    (void)bytes, (void)size;
    void *zeros = mmap(NULL, most, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) return 1;
    int put = eqp_put(w, task, zeros, most, 0, 0), named = strstr(eqp_error(w), "a task of 1073741824 bytes") != NULL;
    *(int *)context += put == EQP_USAGE && named;
    return munmap(zeros, most);
}

/* Of tasks that one stops: how many began here, when the last one did, and when the one that stopped them has stopped and returned. */
static _Atomic long begun;
static _Atomic double last_begun, stopped, ended;
static int all_stop;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* one clock for all processes of a machine */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int stopper(void *context, eqp_task *task, const void *bytes, size_t size) {
    int stops_all = *(const int *)bytes;
    (void)context, (void)size;
    begun++;
    last_begun = now();
    if (!stops_all) {
        /* Where every rank stops, what has begun goes on until then, or until another rank's stop has long been here. */
        int naps = 0;
        do usleep(5000);
        while (all_stop && stopped == 0 && ++naps < 400);
        return 0;
    }
    if (eqp_stop(task)) return 1;
    stopped = now();
    usleep(500000);
    ended = now();
    return 0;
}

static double latest(double mine) {
    double most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void forget(void) {
    begun = 0;
    last_begun = 0;
    stopped = 0;
    ended = 0;
    all_stop = 0;
}

/* 61 tasks on each rank. After the stop none begins, also while the task that stopped them goes on. */
static void stop_is_at_once(const char *scheduler, int workers) {
    int stopping = 1, plain = 0, at_most = workers ? workers : 1;
    /* Under schedulers of the registry all roots go through rank 0, in their order, and those that don't begin do, too. */
    int of_registry = !strcmp(scheduler, "random"), who = of_registry ? 0 : ranks - 1, many = of_registry ? 150 : 600;
    OK(eqp_set(w, "workers", workers ? "2" : "0"));
    /* Each rank's first task stops. */
    if (!strcmp(scheduler, "static")) {
        forget();
        all_stop = 1;
        for (int i = 0; i < 60; i++) OK(eqp_put(w, NULL, &plain, sizeof plain, 0, 0));
        OK(eqp_put(w, NULL, &stopping, sizeof stopping, 0, 100));
        OK(eqp_run(w, scheduler, stopper, NULL, NULL));
        CHECK(begun <= at_most && latest((double)begun) >= 1);
    }
    /* One task of one rank stops all: the other ranks have seconds of work, and hear of it before it returns. */
    forget();
    if (rank == who) OK(eqp_put(w, NULL, &stopping, sizeof stopping, 0, 100));
    for (int i = 0; i < many; i++) OK(eqp_put(w, NULL, &plain, sizeof plain, 0, 0));
    OK(eqp_run(w, scheduler, stopper, NULL, NULL));
    CHECK(latest(last_begun) < latest(ended) && begun < many);
    /* The next run is whole. */
    forget();
    OK(eqp_put(w, NULL, &plain, sizeof plain, 0, 0));
    OK(eqp_run(w, scheduler, stopper, NULL, NULL));
    CHECK(latest((double)begun) >= 1);
    OK(eqp_set(w, "workers", "0"));
}

static long all(long mine) {
    long total;
    MPI_Allreduce(&mine, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static void clear(void) {
    processed = 0;
    results = 0;
    sum = 0;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    OK(EQP_OPEN(MPI_COMM_WORLD, "seed=3", &w));
    const char *schedulers[] = {"steal", "static", NULL};
    for (int workers = 0; workers < 3; workers += 2)
        for (int s = 0; s < 3; s++) {
            OK(eqp_set(w, "workers", workers ? "2" : "0"));
            /* Two roots on each rank: 1 + 3 + 9 + 27 + 81 tasks, 81 leaves. */
            clear();
            body root = {4, 3, ""};
            for (int i = 0; i < 2; i++) OK(eqp_put(w, NULL, &root, sizeof root, 1.5, 0));
            OK(eqp_run(w, schedulers[s], grow, &stops, gathers));
            CHECK(results == 162 && sum == 162);
            CHECK(all(processed) == 2L * ranks * 121);
            if (s == 1) CHECK(processed == 242);
            /* All on the last rank; results home to it. */
            clear();
            if (rank == ranks - 1)
                for (int i = 0; i < 2; i++) OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
            OK(eqp_run(w, schedulers[s], grow, &stops, gathers));
            CHECK(results == (rank == ranks - 1 ? 162 : 0) && all(processed) == 242);
            if (s != 1 && ranks > 1 && ranks <= 3 && !workers) CHECK(processed > 0);
            /* Results are not wanted; nothing to do. */
            if (rank == 0) OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
            OK(eqp_run(w, schedulers[s], grow, &stops, NULL));
            clear();
            OK(eqp_run(w, schedulers[s], grow, &stops, gathers));
            CHECK(all(processed) == 0 && results == 0);
            /* Stop: no error. Each rank goes down to its first task that stops, on each of its threads. */
            stops = 1;
            clear();
            root.width = 8;
            OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
            OK(eqp_run(w, schedulers[s], grow, &stops, gathers));
            CHECK(processed <= (workers ? 6 : 3) && all(processed) >= 3 && results == 0);
            stops = 0;
            /* One refuses: all have 6, tasks are dropped, and the world goes on. */
            root.width = 3;
            if (rank == 0) OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
            refuse_at = 1;
            FAILS(EQP_CALLBACK, "returned 3", eqp_run(w, schedulers[s], grow, &stops, gathers));
            refuse_at = -1;
            clear();
            OK(eqp_run(w, schedulers[s], grow, &stops, gathers));
            CHECK(all(processed) == 0);
        }
    stop_is_at_once("static", 0);
    stop_is_at_once("static", 2);
    stop_is_at_once("steal", 0);
    stop_is_at_once("steal", 2);
    stop_is_at_once("random", 0);
    /* Under every scheduler of the registry: roots anywhere, results home, stopping, refusing. */
    const char *others[] = {"hierarchical", "neighbour", "gradient", "cwn", "acwn", "rid", "gde", "incremental", "random", "steal:victim=topology"};
    OK(eqp_set(w, "workers", "0"));
    for (int s = 0; s < 10; s++) {
        body root = {3, 3, ""};
        clear();
        for (int i = 0; i < 2; i++) OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
        OK(eqp_run(w, others[s], grow, &stops, gathers));
        CHECK(results == 54 && sum == 54 && all(processed) == 2L * ranks * 40);
        clear();
        OK(eqp_run(w, others[s], grow, &stops, gathers));
        CHECK(all(processed) == 0 && results == 0);
        stops = 1;
        root.width = 8;
        OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
        OK(eqp_run(w, others[s], grow, &stops, gathers));
        CHECK(all(processed) <= 2L * ranks);
        stops = 0;
        root.width = 3;
        if (rank == ranks - 1) OK(eqp_put(w, NULL, &root, sizeof root, 0, 0));
        refuse_at = 1;
        FAILS(EQP_CALLBACK, "returned 3", eqp_run(w, others[s], grow, &stops, gathers));
        refuse_at = -1;
    }
    FAILS(EQP_USAGE, "hierarchical", eqp_run(w, rank == 0 ? "magic" : "steal", grow, &stops, gathers));
    OK(eqp_set(w, "workers", "2"));
    FAILS(EQP_USAGE, "workers", eqp_run(w, "rid", grow, &stops, gathers));
    OK(eqp_set(w, "workers", "0"));
    /* Large bodies and results. */
    size_t size = 3 << 20, got = 0;
    void *bytes = malloc(size);
    memset(bytes, 7, size);
    if (rank == 0)
        for (int i = 0; i < 12; i++) OK(eqp_put(w, NULL, bytes, size, 0, 0));
    OK(eqp_run(w, "steal", big, &got, big_result));
    CHECK(got == (rank == 0 ? 12 * size : 0));
    OK(eqp_put(w, NULL, NULL, 0, 0, 0));
    OK(eqp_run(w, "steal", big, &got, NULL));
    got = 0;
    if (rank == ranks - 1)
        for (int i = 0; i < 12; i++) OK(eqp_put(w, NULL, bytes, size, 0, 0));
    OK(eqp_run(w, "random", big, &got, big_result));
    CHECK(got == (rank == ranks - 1 ? 12 * size : 0));
    free(bytes);
    int refused = 0;
    OK(eqp_put(w, NULL, NULL, 0, 0, 0));
    OK(eqp_run(w, "random", huge, &refused, NULL));
    CHECK(all(refused) == ranks);
    OK(eqp_close(&w));
    end("tasks");
    return 0;
}
