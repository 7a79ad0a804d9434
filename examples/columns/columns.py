"""Columns of chemistry whose costs differ by 1 to 50: lent, computed, brought home, every step.

Prints the time per step with and without, and what part that is of what a perfect balance would gain: every rank computing for the mean of
what all compute alone.

    mpirun -n 8 python columns.py [columns per rank] [steps]
"""

import sys
import time

import equipoise as eq
import numpy as np
from mpi4py import MPI

LEVELS = 4


def chemistry(columns):
    """columns: [n][1 + LEVELS], the cost first; their results: [n][LEVELS]."""
    for column in columns:
        time.sleep(1e-4 * column[0])
    return columns[:, 1:] * columns[:, :1]


def main():
    comm = MPI.COMM_WORLD
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seconds, computing = [0.0, 0.0], 0.0
    with eq.World(comm, balancer="refine") as w:
        for lends in 0, 1:
            for step in range(steps):
                # Day on some ranks, night on others; the sun moves.
                hour = (comm.rank + step) % comm.size
                columns = np.empty((n, 1 + LEVELS))
                columns[:, 0] = cost = 1 + 49 * hour / max(comm.size - 1, 1)
                columns[:, 1:] = comm.rank * 1000 + np.add.outer(np.arange(n), np.arange(LEVELS))
                comm.Barrier()
                begin = time.perf_counter()
                if lends:
                    with w.lend(columns, weights=columns[:, 0]) as loan:
                        loan.results = chemistry(loan.items)
                    home = loan.home
                else:
                    home = chemistry(columns)
                    computing += time.perf_counter() - begin
                comm.Barrier()
                seconds[lends] += time.perf_counter() - begin
                assert np.array_equal(home, columns[:, 1:] * cost)
    total = comm.allreduce(computing)
    if comm.rank == 0:
        alone, lent = (1e3 * spent / steps for spent in seconds)
        gained = ""
        if comm.size > 1:
            gained = f"; {(seconds[0] - seconds[1]) / (seconds[0] - total / comm.size):.2f} of the gain of a perfect balance"
        print(f"{alone:.2f} ms per step, lent {lent:.2f} ms{gained}")


if __name__ == "__main__":
    main()
