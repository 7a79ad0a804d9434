import signal
import threading
import time

import equipoise as eq
from check import alike, comm, fine, raises, rank, ranks

last = ranks - 1
raises(eq.UsageError, lambda: eq.World(nonsense=1), "nonsense")
raises(eq.UsageError, lambda: eq.World(balancer="nobody"), "nobody")
raises(eq.UsageError, lambda: eq.World(tolerance=0.1))
raises(eq.UsageError, lambda: eq.World(balancer="a b" if rank == last else "refine"), f"rank {last}", "blanks")
raises(eq.UsageError, lambda: eq.World(powers=["x"] if rank == last else 1.0), f"rank {last}")



class Odd(Exception):
    """No exception that says an argument is wrong."""


class Raises:
    """An argument whose use raises."""

    def __init__(self, error):
        self.error = error

    def used(self, *_):
        raise self.error

    __iter__ = __len__ = __float__ = __int__ = __index__ = __str__ = __reduce__ = used


class Silent(Exception):
    def __str__(self):
        raise Odd("no text")


raises(eq.UsageError, lambda: eq.World(balancer=Raises(Odd("lost")) if rank == last else "refine"), f"rank {last}", "Odd", "lost")
raises(eq.UsageError, lambda: eq.World(balancer="\udc80" if rank == last else "refine"), f"rank {last}")

w = eq.World(timeout=60)
# Only one rank is wrong; all hear of it, and go on.
wrong = [
    lambda: w.plan(weights=[1.0, float("nan")] if rank == last else [1.0]),
    lambda: w.plan(weights=[-1.0] if rank == last else [1.0]),
    lambda: w.plan(weights=["x"] if rank == last else [1.0]),
    lambda: w.plan(weights=[1.0], nbytes=[1, 2] if rank == last else [1]),
    lambda: w.balance([lambda: 0] * 8 if rank == last else [], weights=[1.0] * 8 if rank == last else []) if ranks > 1 else w.plan(weights=["x"]),
    lambda: w.plan_from([ranks if rank == last else 0]),
    lambda: w.loop(0, -1 if rank == last else 10),
    lambda: w.step(float("nan") if rank == last else 1.0),
    # Of a type or size that no native call takes.
    lambda: w.step(None if rank == last else 1.0),
    lambda: w.advise("x" if rank == last else 1e-3, weights=[1.0]),
    lambda: w.plan(n=-1 if rank == last else 1),
    lambda: w.plan(n=1.5 if rank == last else 1),
    lambda: w.plan(weights=[1.0], coordinates=[1] if rank == last else [(1.0, 2.0)]),
    lambda: w.loop(0, 2**65 if rank == last else 10),
    lambda: w.loop(0, float("inf") if rank == last else 10),
    lambda: w.balance(5 if rank == last else [1]),
    lambda: w.advise(1.0, weights=[1.0, 2.0] if rank == last else [1.0], n=1),
    lambda: w.loop(0, 5, rule="\udc80" if rank == last else "fac2"),
]
# Whose own code raises whatever it likes.
odd = Raises(Odd("device lost"))
wrong += [
    lambda: w.plan(weights=odd if rank == last else [1.0]),
    lambda: w.plan(weights=[1.0], nbytes=odd if rank == last else [1]),
    lambda: w.plan(weights=[1.0], pinned=odd if rank == last else [1]),
    lambda: w.plan(weights=[1.0], coordinates=odd if rank == last else [(1.0, 2.0)]),
    lambda: w.plan(n=odd if rank == last else 1),
    lambda: w.plan_from(odd if rank == last else [0]),
    lambda: w.plan_from([0], weights=odd if rank == last else [1.0]),
    lambda: w.step(odd if rank == last else 1.0),
    lambda: w.advise(odd if rank == last else 1.0, n=1),
    lambda: w.advise(1.0, weights=odd if rank == last else [1.0]),
    lambda: w.loop(odd if rank == last else 0, 5),
    lambda: w.loop(0, 5, rule=odd if rank == last else "fac2"),
    lambda: w.plan_from([(rank + 1) % ranks]).move([odd if rank == last else 1]) if ranks > 1 else w.plan(weights=odd),
]
for error in RuntimeError(), Silent(), Odd("x" * 100_000), Odd("\udc80"):
    wrong.append(lambda odd=Raises(error): w.plan(weights=odd if rank == last else [1.0]))
for call in wrong:
    error = raises(eq.UsageError, call, f"rank {last}")
    assert alike(str(error)), comm.allgather(str(error))
    w.step(1.0)
plan = w.plan(weights=[1.0] * 4)
error = raises(eq.UsageError, lambda: plan.move([1] * (3 if rank == last else 4)), f"rank {last}")
assert alike(str(error))
raises(eq.UsageError, lambda: w.plan())


# What is no mistake is raised as itself on its rank, and the others go on.
def interrupted():
    yield 1.0
    raise KeyboardInterrupt("while reading")


def unready():
    yield 1.0
    raise Odd("device lost")


try:
    w.plan(weights=interrupted() if rank == last else [1.0])
except KeyboardInterrupt:
    assert rank == last
except eq.UsageError as error:
    assert rank != last and f"rank {last}" in str(error) and "KeyboardInterrupt" in str(error), error
else:
    raise AssertionError("nothing was raised")
error = raises(eq.UsageError, lambda: w.plan(weights=unready() if rank == last else [1.0]), f"rank {last}: weights: Odd: device lost")
# Where it comes from is not lost on its own rank.
causes, cause = [], error
while cause is not None:
    causes.append(type(cause))
    cause = cause.__cause__
assert (Odd in causes) == (rank == last), causes
assert w.balance([1]) is not None
if ranks > 1:
    error = raises(eq.UsageError, lambda: w.plan(weights=[1.0]) if rank == 0 else w.step(1.0), "rank 0", "rank 1")
    assert alike(str(error))
    raises(eq.UsageError, lambda: w.loop(0, 10 + rank))
    raises(eq.UsageError, lambda: w.loop(-5, 5) if rank == 0 else w.loop(-3, 7), "first iteration")
covered = sorted(i for pairs in comm.allgather(list(w.loop(-7, 5))) for lo, hi in pairs for i in range(lo, hi))
assert covered == list(range(-7, 5)), covered


# A lend block and a loop that raise on one rank.
class Mine(Exception):
    pass


def lent():
    with w.lend([1, 2, 3]) as loan:
        if rank == last:
            raise Mine("in the block")
        loan.results = loan.items


def looped():
    with w.loop(0, 100, rule="fixed:chunk=1") as loop:
        if rank == last:
            raise Mine("in the loop")
        for _ in loop:
            pass


for call in lent, looped:
    if rank == last:
        raises(Mine, call)
    else:
        raises(eq.Error, call, f"rank {last}", "Mine")
    assert w.balance([1]) is not None
raises(eq.UsageError, lambda: w.lend([1, 2]).__exit__(None, None, None), "results")

# Another thread.
found = []
thread = threading.Thread(target=lambda: found.append(raises(eq.UsageError, lambda: w.plan(weights=[1.0]), "thread")))
thread.start()
thread.join()
assert found
w.close()
raises(eq.UsageError, lambda: w.plan(weights=[1.0]), "closed")
w.close()

# A signal handler that raises while a call waits: its exception on that rank, and an error on the others.
if ranks > 1:
    interrupted = eq.World()

    def alarmed(*_):
        raise Mine("the alarm")

    if rank == 0:
        signal.signal(signal.SIGALRM, alarmed)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        raises(Mine, lambda: interrupted.step(1.0), "the alarm")
    else:
        if rank == last:
            time.sleep(3)
        raises(eq.Error, lambda: interrupted.step(1.0), "Mine")
fine()
