"""What the programs share."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size


def raises(kind, function, *words):
    """The exception that a call raises, which is of this very kind and says these words."""
    try:
        function()
    except Exception as error:
        assert type(error) is kind, repr(error)
        for word in words:
            assert word in str(error), f"{word!r} is not in {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def alike(value):
    """Whether all ranks have the same."""
    return len(set(comm.allgather(value))) == 1


def fine():
    comm.barrier()
    print(f"rank {rank} of {ranks}: fine", flush=True)
