import time

import equipoise as eq
from check import comm, fine, raises, rank, ranks

w = eq.World(timeout=60)
first = rank == 0


def square(x):
    return x * x


for n in (0, 1, 2, 17, 1000):
    assert list(w.map(square, range(n))) == ([x * x for x in range(n)] if first else [])
assert sorted(w.map(square, range(50), ordered=False)) == ([x * x for x in range(50)] if first else [])
assert list(w.map(str, iter("abc"))) == (list("abc") if first else [])
assert list(w.map(len, ["a" * n for n in range(30)], key=len)) == (list(range(30)) if first else [])

# Each rank's own function; every rank works where calls last.
done = []


def sleep(x):
    time.sleep(0.005)
    done.append(x)
    return rank


ran = list(w.map(sleep, range(40 * ranks)))
assert not first or len(ran) == 40 * ranks
assert len(done) > 0 and sum(comm.allgather(len(done))) == 40 * ranks
# Big arguments and results.
big = list(w.map(lambda text: text + text, ["x" * 1_000_000] * 5))
assert [len(text) for text in big] == ([2_000_000] * 5 if first else [])


# An endless iterable that is left.
def endless():
    at = 0
    while True:
        yield at
        at += 1


seen = []
for result in w.map(square, endless()):
    seen.append(result)
    if len(seen) == 10:
        break
assert seen == ([x * x for x in range(10)] if first else [])
assert list(w.map(square, [3])) == ([9] if first else [])


class Mine(Exception):
    pass


def failing(x):
    if x == 30:
        raise Mine(f"on {rank}")
    return x


# What f raises is raised where it was, and Error elsewhere.
outcome = None
try:
    list(w.map(failing, range(100)))
except Mine:
    outcome = "own"
except eq.Error as error:
    assert "Mine: on " in str(error)
    outcome = "told"
outcomes = comm.allgather(outcome)
assert outcomes[0] == "told" and outcomes.count("own") <= 1 and outcomes.count("told") + outcomes.count("own") == ranks, outcomes
# The iterable raises on rank 0.


def broken():
    yield 1
    raise Mine("while reading")


if first:
    raises(Mine, lambda: list(w.map(square, broken())))
else:
    raises(eq.Error, lambda: list(w.map(square, broken())), "while reading")
assert list(w.map(square, [2])) == ([4] if first else [])
w.close()
fine()
