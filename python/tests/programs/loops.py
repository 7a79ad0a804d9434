import equipoise as eq
from check import comm, fine, raises, rank, ranks

with eq.World(timeout=60) as w:
    for rule in ("fac2", "gss", "tss", "static", "fixed:chunk=7"):
        for first, last in ((0, 0), (0, 1), (3, 250), (-5, 20)):
            mine = []
            for lo, hi in w.loop(first, last, rule=rule):
                assert lo < hi
                mine.extend(range(lo, hi))
            assert sorted(sum(comm.allgather(mine), [])) == list(range(first, last)), (rule, first, last)
    with w.loop(0, 10) as loop:
        mine = [at for lo, hi in loop for at in range(lo, hi)]
    assert sum(comm.allgather(len(mine))) == 10

    # Left early: the others take the rest; if nobody does, it is a mistake.
    def early():
        with w.loop(0, 1000, rule="fixed:chunk=1") as loop:
            for _ in loop:
                if rank == 0:
                    break

    if ranks == 1:
        raises(eq.UsageError, early, "not taken")
    else:
        early()
    raises(eq.UsageError, lambda: w.loop(0, 5, rule="nobody's"), "nobody's")
fine()
