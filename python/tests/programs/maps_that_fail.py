"""What fails in a map, on whichever rank, ends it on all ranks alike; the next one knows nothing of it."""

import signal
import time

import equipoise as eq
from equipoise.calls import FAILED
from check import comm, fine, raises, rank, ranks

w = eq.World(timeout=60)
first, last = rank == 0, ranks - 1


def mapped(f, xs):
    return list(w.map(f, xs))


def goes_on():
    assert mapped(lambda x: x * x, range(9)) == ([x * x for x in range(9)] if first else [])
    w.step(1.0)


class Mine(Exception):
    pass


class Silent(Exception):
    def __str__(self):
        raise Mine("no text")


class Unreadable:
    """Pickled on one rank, it cannot be unpickled on another."""

    def __reduce__(self):
        return refuse, ()


def refuse():
    raise Mine("does not unpickle")


# A long text, raised by all ranks at the same time: no send waits for another.
def verbose(x):
    time.sleep(0.01)
    raise Mine(f"{rank}: " + "x" * 100_000 + " the end")


outcome = None
try:
    mapped(verbose, range(50))
except Mine as error:
    outcome = "own"
except eq.Error as error:
    assert error.status == 6 and "the end" in str(error) and len(str(error)) < 2_000, (error.status, len(str(error)))
    outcome = "told"
outcomes = comm.allgather(outcome)
assert outcomes[0] == "told" and outcomes.count(None) == 0, outcomes
goes_on()

# Texts that have no UTF-8, and exceptions without a text.
for error in Mine("half a pair: \udc80"), Silent():

    def fails(x, error=error):
        raise error

    raises_any = None
    try:
        mapped(fails, range(10))
    except (Mine, Silent, eq.Error) as raised:
        raises_any = raised
    assert raises_any is not None
    goes_on()

if ranks > 1:
    # Arguments that a worker cannot read. Rank 0's own are as they were.
    error = raises(eq.Error, lambda: mapped(lambda x: time.sleep(0.01), (Unreadable() for _ in range(20))), "does not unpickle", "Mine")
    assert error.status == 6
    goes_on()

    # Results that rank 0 cannot read, small and large; those of all workers are under way.
    for size in 1, 200_000:

        def gives(x):
            time.sleep(0.005)
            return x if first else (b"x" * size, Unreadable())

        raises(eq.Error, lambda: mapped(gives, range(50)), "does not unpickle", "Mine")
        goes_on()

    # Results that a worker cannot write.
    outcome = None
    try:
        mapped(lambda x: time.sleep(0.005) if first else (lambda: x), range(50))
    except eq.Error as error:
        assert "pickle" in str(error), error
        outcome = "told"
    except Exception as error:
        assert "pickle" in str(error), error
        outcome = "own"
    outcomes = comm.allgather(outcome)
    assert outcomes[0] == "told" and None not in outcomes, outcomes
    goes_on()
else:
    goes_on()


# A signal while rank 0, or a worker, waits for what the others compute, which go on once it has come. Each rank makes one call.
HEARD = 77


def alarmed(*_):
    if first:
        for other in range(1, ranks):
            comm.send(None, dest=other, tag=HEARD)
    raise KeyboardInterrupt("the alarm")


def alarms_one(struck, f):
    if rank != struck:
        raises(eq.Error, lambda: mapped(f, range(ranks)), f"rank {struck}", "the alarm")
    else:
        try:
            mapped(f, range(ranks))
        except KeyboardInterrupt as error:
            assert "the alarm" in str(error)
        else:
            raise AssertionError("no KeyboardInterrupt")
    goes_on()


def alarms_first(x):
    if first:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    else:
        comm.recv(source=0, tag=HEARD)


def alarms_last(x):
    if rank == last:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    elif first:
        while not w._communicator().iprobe(source=last, tag=FAILED):
            time.sleep(0.001)


signal.signal(signal.SIGALRM, alarmed)
if ranks > 1:
    alarms_one(0, alarms_first)
    alarms_one(last, alarms_last)


# Within f, within what reads xs, and between two results, the other ranks cannot come to another call.
plan = w.plan(weights=[1.0, 2.0])
others = {
    "step": lambda: w.step(1.0),
    "plan": lambda: w.plan(weights=[1.0]),
    "plan_from": lambda: w.plan_from([0]),
    "advise": lambda: w.advise(1.0, n=1),
    "balance": lambda: w.balance([1]),
    "move": lambda: plan.move([1, 2]),
    "loop": lambda: w.loop(0, 5),
    "map": lambda: w.map(abs, [1]),
    "close": lambda: w.close(),
    "set": lambda: w.set(tolerance=1.5),
}


def tries(name):
    w.progress()
    error = raises(eq.UsageError, others[name], "within a map", f"rank {rank}")
    assert error.status == 2
    return name


assert mapped(tries, sorted(others)) == (sorted(others) if first else [])
ran = []


def steps(x):
    ran.append(x)
    w.step(1.0)


# On the rank that made the call it is f's own exception.
try:
    mapped(steps, [1])
except eq.Error as error:
    assert (type(error) is eq.UsageError) == (bool(ran) and not first) and "within a map" in str(error), error
else:
    raise AssertionError("nothing was raised")
goes_on()


def reads():
    yield 1
    w.step(1.0)


raises(eq.UsageError if first else eq.Error, lambda: mapped(abs, reads()), "within a map")
goes_on()

for name in sorted(set(others) - {"close", "set"}):
    if first:
        results = w.map(abs, range(-100, 0))
        assert next(results) == 100
        raises(eq.UsageError, others[name], "the others are in a map")
        raises(eq.UsageError, lambda: next(results), "the map is over")
    else:
        raises(eq.UsageError, lambda: w.map(abs), "the others are in a map")
    goes_on()

# Closing leaves the iteration, as does an exception in the world's block.
results = w.map(abs, range(-100, 0))
if first:
    assert next(results) == 100
w.close()


def abandoned():
    with eq.World(timeout=60) as world:
        results = world.map(abs, range(-100, 0))
        if first:
            next(results)
            raise Mine("in the block")
        world.step(1.0)


if first:
    raises(Mine, abandoned)
else:
    raises(eq.Error, abandoned, "in the block")

# Of a communicator with hints, which would forbid what a map does, nothing is kept.
from mpi4py import MPI

info = MPI.Info.Create()
info.Set("mpi_assert_no_any_source", "true")
info.Set("mpi_assert_no_any_tag", "true")
hinted = comm.Dup(info)
with eq.World(hinted, timeout=60) as w:
    goes_on()
fine()
