/* Loops and steps. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    begin(&argc, &argv);
    eqp_world *w = NULL;
    OK(EQP_OPEN(MPI_COMM_WORLD, "", &w));
    const char *rules[] = {"static", "cyclic", "ss", "fixed", "fixed:chunk=3", "single", "gss", "fac2", "tss", "wf", "awf", "af", "gss:least=4", "awf-b", "awf-d", NULL};
    enum { MOST = 400 };
    uint64_t first[] = {0, 5, 1ull << 40, 7}, length[] = {MOST, 37, 100, 0};
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 4; c++) {
            static int mine[MOST], all[MOST];
            memset(mine, 0, sizeof mine);
            eqp_loop *l = NULL;
            OK(eqp_loop_begin(w, first[c], first[c] + length[c], rules[r], &l));
            uint64_t from, to;
            int more;
            while ((more = eqp_loop_next(l, &from, &to)) == 1) {
                CHECK(from >= first[c] && from < to && to <= first[c] + length[c]);
                for (uint64_t i = from; i < to; i++) mine[i - first[c]]++;
            }
            CHECK(more == 0 && eqp_loop_next(l, &from, &to) == 0);
            OK(eqp_loop_end(&l));
            CHECK(l == NULL && eqp_loop_end(&l) == EQP_OK);
            MPI_Allreduce(mine, all, MOST, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            for (uint64_t i = 0; i < MOST; i++) CHECK(all[i] == (i < length[c]));
        }
    eqp_loop *outer = NULL, *inner = NULL;
    uint64_t from, to, mine = 0, all;
    /* Under wf a rank of power 0 takes nothing, and one rank must have some. */
    OK(eqp_set(w, "powers", rank == ranks - 1 ? "0.5" : "0"));
    OK(eqp_loop_begin(w, 0, 100, "wf", &outer));
    while (eqp_loop_next(outer, &from, &to) == 1) mine += to - from;
    CHECK(mine == (rank == ranks - 1 ? 100 : 0));
    OK(eqp_loop_end(&outer));
    OK(eqp_set(w, "powers", "0"));
    FAILS(EQP_USAGE, "power 0", eqp_loop_begin(w, 0, 100, "wf", &outer));
    CHECK(outer == NULL);
    OK(eqp_set(w, "powers", "1"));
    mine = 0;
    /* Two loops at once. */
    OK(eqp_loop_begin(w, 0, 20, "ss", &outer));
    OK(eqp_loop_begin(w, 0, 30, "gss", &inner));
    while (eqp_loop_next(outer, &from, &to) == 1) mine += to - from;
    while (eqp_loop_next(inner, &from, &to) == 1) mine += to - from;
    if (ranks > 1) FAILS(EQP_USAGE, "loop", eqp_loop_end(rank == 0 ? &outer : &inner));
    OK(eqp_loop_end(&outer));
    /* The text is of the last call: none after one that was right. */
    FAILS(EQP_USAGE, "open", eqp_close(&w));
    CHECK(eqp_progress(w) == EQP_OK && *eqp_error(w) == 0);
    FAILS(EQP_USAGE, "open", eqp_close(&w));
    CHECK(eqp_loop_next(inner, &from, &to) == 0 && *eqp_error(w) == 0);
    OK(eqp_loop_end(&inner));
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 50);
    /* One leaves early: the others take the rest. */
    OK(eqp_loop_begin(w, 0, 100, "ss", &outer));
    mine = 0;
    if (rank > 0 || ranks == 1)
        while (eqp_loop_next(outer, &from, &to) == 1) mine += to - from;
    OK(eqp_loop_end(&outer));
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == 100);
    /* All leave early. */
    OK(eqp_loop_begin(w, 0, 100, "ss", &outer));
    CHECK(eqp_loop_next(outer, &from, &to) == 1 && to == from + 1);
    FAILS(EQP_USAGE, "not taken", eqp_loop_end(&outer));
    CHECK(outer == NULL);
    /* Rank 0's first iteration lasts until the others have done all the rest: no rank needs rank 0 for that, nor its calls of MPI. */
    if (ranks > 1) {
        char folder[64] = "/tmp/equipoise-loop-XXXXXX", file[128];
        if (rank == 0) CHECK(mkdtemp(folder));
        MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
        OK(eqp_loop_begin(w, 0, 200, "ss", &outer));
        mine = 0;
        if (rank == 0) {
            CHECK(eqp_loop_next(outer, &from, &to) == 1);
            mine = 1;
            MPI_Barrier(MPI_COMM_WORLD);
            for (int r = 1; r < ranks; r++) {
                snprintf(file, sizeof file, "%s/%d", folder, r);
                for (int tries = 0; access(file, F_OK); tries++) {
                    CHECK(tries < 60000);
                    usleep(1000);
                }
                unlink(file);
            }
            rmdir(folder);
            CHECK(eqp_loop_next(outer, &from, &to) == 0);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            while (eqp_loop_next(outer, &from, &to) == 1) mine += to - from;
            snprintf(file, sizeof file, "%s/%d", folder, rank);
            FILE *done = fopen(file, "w");
            CHECK(done);
            fclose(done);
        }
        OK(eqp_loop_end(&outer));
        MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all == 200);
    }

    /* A dealer that computes stalls nobody: rank 0's iterations take 200 ms, those of others 1 ms. The others hardly idle until all is dealt.
     * Where everything is slower (EQUIPOISE_SLOW), that is not measured. */
    if (ranks > 1 && !getenv("EQUIPOISE_SLOW")) {
        OK(eqp_loop_begin(w, 0, 600 * (uint64_t)(ranks - 1), "ss", &outer));
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime(), busy = 0, since, idle;
        mine = 0;
        while (eqp_loop_next(outer, &from, &to) == 1) {
            since = MPI_Wtime();
            usleep(rank == 0 ? 200000 : 1000);
            busy += MPI_Wtime() - since;
            mine += to - from;
        }
        idle = rank == 0 ? 0 : 1 - busy / (MPI_Wtime() - began);
        OK(eqp_loop_end(&outer));
        MPI_Allreduce(MPI_IN_PLACE, &idle, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        CHECK(idle < 0.1);
        CHECK(rank > 0 || mine < 20);
    }

    /* A world has up to 64 open loops, which the sentence says. */
    eqp_loop *many[64], *beyond;
    for (int i = 0; i < 64; i++) OK(eqp_loop_begin(w, 0, 1, "static", &many[i]));
    FAILS(EQP_USAGE, "64 loops are open", eqp_loop_begin(w, 0, 1, "static", &beyond));
    CHECK(beyond == NULL);
    for (int i = 0; i < 64; i++) {
        while (eqp_loop_next(many[i], &from, &to) == 1) CHECK(from == 0 && to == 1);
        OK(eqp_loop_end(&many[i]));
    }
    OK(eqp_loop_begin(w, 0, 0, "static", &beyond));
    FAILS(EQP_USAGE, "1 loop is open", eqp_close(&w));
    OK(eqp_loop_end(&beyond));

    /* Steps. */
    int now, firsts = 0;
    OK(eqp_set(w, "trigger", "every=3"));
    for (int step = 1; step <= 9; step++) {
        OK(eqp_step(w, 1.0 + rank, &now));
        CHECK(now == (step % 3 == 0));
    }
    OK(eqp_set(w, "trigger", "never"));
    OK(eqp_step(w, rank, &now));
    CHECK(now == 0);
    const char *triggers[] = {"menon", "excess", "interval", "zhai", "boulmier", "procassini", "marquez", "threshold=1.2"};
    for (int t = 0; t < 8; t++) {
        OK(eqp_set(w, "trigger", triggers[t]));
        for (int step = 0; step < 50; step++) {
            /* Even: no rank balances. */
            OK(eqp_step(w, 1.0, &now));
            CHECK(now == 0);
        }
        for (int step = 0; step < 50; step++) {
            OK(eqp_step(w, 1.0 + rank * step, &now));
            int most;
            MPI_Allreduce(&now, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
            CHECK(most == now);
            firsts += now;
        }
    }
    CHECK(ranks == 1 ? firsts == 0 : firsts > 0);
    /* After a step, a plan knows whether it pays. */
    double weight[2] = {rank == 0 ? 9 : 1, rank == 0 ? 9 : 1};
    eqp_plan *p = NULL;
    OK(eqp_step(w, 100, &now));
    OK(eqp_plan_make(w, 2, weight, NULL, NULL, &p));
    eqp_verdict v;
    OK(eqp_plan_verdict(p, &v));
    CHECK(v.pays == (ranks > 1));
    eqp_plan_free(&p);
    OK(eqp_close(&w));
    end("loops");
    return 0;
}
