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
]
for call in wrong:
    error = raises(eq.UsageError, call, f"rank {last}")
    assert alike(str(error)), comm.allgather(str(error))
    assert w.balance([1, 2, 3]) is not None
plan = w.plan(weights=[1.0] * 4)
error = raises(eq.UsageError, lambda: plan.move([1] * (3 if rank == last else 4)), f"rank {last}")
assert alike(str(error))
raises(eq.UsageError, lambda: w.plan())
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
