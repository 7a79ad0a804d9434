"""Worlds on parts of a communicator, several at once, and the caller's own messages in between."""

import equipoise as eq
from check import comm, fine, rank, ranks

part = comm.Split(rank % 2, rank)
request = comm.isend(("mine", rank), dest=(rank + 1) % ranks, tag=77)
with eq.World(part, timeout=60) as half, eq.World(comm, timeout=60, balancer="greedy") as whole:
    assert (half.ranks, whole.ranks) == (part.size, ranks)
    for _ in range(3):
        names = half.balance([f"{rank}.{at}" for at in range(6 if part.rank == 0 else 0)])
        everybody = sum(part.allgather(names), [])
        assert len(everybody) == 6 and len(set(everybody)) == 6
        assert sum(comm.allgather(len(whole.balance([rank] * rank)))) == ranks * (ranks - 1) // 2
assert comm.recv(source=(rank - 1) % ranks, tag=77) == ("mine", (rank - 1) % ranks)
request.wait()
part.Free()
fine()
