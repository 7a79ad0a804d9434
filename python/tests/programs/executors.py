import concurrent.futures
import time

from mpi4py import MPI

import equipoise as eq
from check import comm, fine, raises, rank, ranks


def add(x, y=0):
    return x + y


def fail():
    raise KeyError("here")


with eq.futures.Executor(comm) as executor:
    assert (executor is not None) == (rank == 0)
    if executor is not None:
        assert isinstance(executor, concurrent.futures.Executor)
        assert executor.num_workers == max(1, ranks - 1)
        assert executor.submit(pow, 321, 1234).result() == pow(321, 1234)
        assert list(executor.map(pow, [2] * 32, range(32))) == [2**n for n in range(32)]
        assert list(executor.map(add, range(10), range(10), chunksize=4)) == [2 * n for n in range(10)]
        assert list(executor.starmap(add, [(1, 2), (3, 4)])) == [3, 7]
        assert sorted(executor.map(add, range(9), unordered=True)) == list(range(9))
        read = []
        results = executor.map(add, (read.append(n) or n for n in range(50)), buffersize=3)
        assert len(read) == 3 and next(results) == 0 and len(read) == 4
        assert list(results) == list(range(1, 50))
        assert sorted(executor.map(add, range(20), chunksize=3, unordered=True, buffersize=2)) == list(range(20))
        raises(concurrent.futures.TimeoutError, lambda: next(executor.map(time.sleep, [0.5], timeout=0.01, unordered=True, buffersize=1)))
        raises(ValueError, lambda: executor.map(add, [1], buffersize=0), "buffersize")
        raises(TypeError, lambda: executor.map(add, [1], buffersize="3"), "buffersize")
        futures = [executor.submit(add, n, y=1) for n in range(20)]
        assert {future.result() for future in eq.futures.as_completed(futures)} == set(range(1, 21))
        error = raises(KeyError, executor.submit(fail).result)
        assert "fail" in str(error.__cause__)
        done, left = eq.futures.wait([executor.submit(add, 1)])
        assert len(done) == 1 and not left
        raises(ValueError, lambda: executor.map(add, [1], chunksize=0))
if rank == 0:
    raises(RuntimeError, lambda: executor.submit(add, 1))
# A second one, with an initializer.
with eq.futures.Executor(comm, initializer=print, initargs=("ready",)) as executor:
    if executor is not None:
        assert executor.submit(add, 1).result() == 1
# An initializer that fails on one worker breaks the executor, and not the next one.
worst = ranks - 1


def refuse_on(worker):
    if MPI.COMM_WORLD.rank == worker:
        raise KeyError("not here")


with eq.futures.Executor(comm, initializer=refuse_on, initargs=(worst,)) as executor:
    if executor is not None:
        failures = [future.exception() for future in [executor.submit(time.sleep, 0.01) for _ in range(40)]]
        broken = [failure for failure in failures if failure is not None]
        assert broken and all(isinstance(failure, concurrent.futures.BrokenExecutor) for failure in broken), failures
        assert f"rank {worst}: the executor's initializer failed: KeyError" in str(broken[0]), broken[0]
        assert isinstance(failures[-1], concurrent.futures.BrokenExecutor)
        raises(concurrent.futures.BrokenExecutor, lambda: executor.submit(add, 1), "initializer failed")
with eq.futures.Executor(comm) as executor:
    if executor is not None:
        assert executor.submit(add, 1).result() == 1
# What is wrong on one rank only is refused on all.
last = ranks - 1
for wrong, kind in ({"max_workers": 0}, ValueError), ({"initializer": 5}, TypeError):
    raises(kind if rank == last else eq.UsageError, lambda: eq.futures.Executor(comm, **wrong if rank == last else {}), "m" if rank == last else f"rank {last}")
outcome = None
try:
    eq.futures.Executor(comm, initializer=(lambda: 0) if rank == 0 else None)
except eq.UsageError as error:
    outcome = "rank 0" in str(error) and "pickle" in str(error)
except Exception as error:
    outcome = rank == 0 and "pickle" in str(error)
assert outcome


class Unreadable:
    def __reduce__(self):
        return refuse, ()


def refuse():
    raise SystemExit("does not unpickle")


class Stiff(Exception):
    """An exception that cannot be given a cause."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


def stiff():
    raise Stiff("as it is")


# Results and initializers that cannot be unpickled, and exceptions that are hard to carry, leave the others as they are.
with eq.futures.Executor(comm, initializer=Unreadable) as executor:
    if executor is not None:
        failing = [executor.submit(Unreadable) for _ in range(3)] + [executor.submit(len, Unreadable()) for _ in range(3)]
        for future in failing:
            assert "does not unpickle" in str(future.exception())
        assert "as it is" in str(executor.submit(stiff).exception())
        assert list(executor.map(add, range(9), [1] * 9)) == list(range(1, 10))
# Nothing of the communicator's hints is kept.
info = MPI.Info.Create()
info.Set("mpi_assert_no_any_source", "true")
with eq.futures.Executor(comm.Dup(info)) as executor:
    if executor is not None:
        assert list(executor.map(add, range(9))) == list(range(9))
fine()
