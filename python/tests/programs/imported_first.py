"""Equipoise is imported before mpi4py, and asked for its MPI: it waits for mpi4py's."""

import equipoise as eq

assert "no MPI in this process yet" in eq.version(), eq.version()

from mpi4py import MPI  # noqa: E402

with eq.World() as w:
    assert "in this process already" in eq.version(), eq.version()
    assert w.ranks == MPI.COMM_WORLD.Get_size() and sum(hi - lo for lo, hi in w.loop(0, 10)) <= 10
    print(f"rank {w.rank} of {w.ranks}: fine", flush=True)
