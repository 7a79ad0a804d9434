import sys

import neighbour
from equipoise.futures import Executor
from mpi4py import MPI

if __name__ == "__main__":
    executor = Executor()
    print(list(executor.map(neighbour.square, range(3))))
    try:
        # The other ranks would have to come, and they do not run this.
        if int(sys.argv[1]) == 1:
            raise ValueError
        Executor(MPI.COMM_WORLD)
    except ValueError:
        print("refused")
    executor.submit(neighbour.square, 5).add_done_callback(lambda future: print("later", future.result()))
