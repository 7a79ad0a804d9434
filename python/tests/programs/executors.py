import concurrent.futures

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
fine()
