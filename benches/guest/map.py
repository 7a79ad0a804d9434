"""``World.map`` next to mpi4py.futures: the same sleeping calls under both, in one run.

    mpirun -n 4 python map.py [calls] [longest call in ms]

Rank 0's seconds for each, best of two rounds taken in turn: ``map``, ``MPICommExecutor.map`` with chunks of 1, 10 and 100 calls, then both
with calls that do nothing. ``map`` computes on all ranks, mpi4py's executor on all but rank 0.
"""

import random
import sys
import time

import equipoise as eq
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

COMM = MPI.COMM_WORLD
CHUNKS = 1, 10, 100


def sleeping(milliseconds):
    time.sleep(milliseconds / 1000)
    return milliseconds


def empty(number):
    return number


def by_map(f, xs):
    with eq.World(COMM) as w:
        COMM.Barrier()
        began = time.perf_counter()
        results = list(w.map(f, xs))
        spent = time.perf_counter() - began
    return results, spent


def by_futures(f, xs, chunk):
    results, spent = [], 0.0
    with MPICommExecutor(COMM, root=0) as executor:
        if executor is not None:
            # The workers have begun when they have answered.
            list(executor.map(empty, range(COMM.size), chunksize=1))
            began = time.perf_counter()
            results = list(executor.map(f, xs, chunksize=chunk))
            spent = time.perf_counter() - began
    COMM.Barrier()
    return results, spent


def compared(f, xs):
    """Seconds by name, the best of two rounds."""
    ways = {"map": lambda: by_map(f, xs)}
    for chunk in CHUNKS:
        ways[f"futures, chunks of {chunk}"] = lambda chunk=chunk: by_futures(f, xs, chunk)
    best = {}
    for _ in range(2):
        for name, way in ways.items():
            results, spent = way()
            assert COMM.rank > 0 or results == list(xs), name
            best[name] = min(spent, best.get(name, float("inf")))
    return best


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    longest = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    stream = random.Random(1)
    xs = [stream.uniform(0, longest) for _ in range(calls)]
    is_faster = True
    for what, f, items in (f"{calls} calls of 0 to {longest:g} ms", sleeping, xs), (f"{calls} empty calls", empty, range(calls)):
        best = compared(f, items)
        if COMM.rank == 0:
            print(what)
            for name, spent in best.items():
                print(f"  {name:24} {spent:8.3f} s")
            others = min(spent for name, spent in best.items() if name != "map")
            print(f"  map takes {best['map'] / others:.2f} of the best of the others")
            if f is sleeping:
                is_faster = best["map"] <= others
    # All ranks end alike.
    sys.exit(0 if COMM.bcast(is_faster) else 1)


if __name__ == "__main__":
    main()
