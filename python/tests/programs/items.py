import equipoise as eq
from check import comm, fine, rank, ranks


class Item:
    def __init__(self, name):
        self.name = name


with eq.World(timeout=60) as w:
    assert (w.rank, w.ranks) == (rank, ranks)
    # Everything on the last rank; what stays is the same object.
    mine = [Item(f"{rank}.{at}") for at in range(20 if rank == ranks - 1 else 0)]
    weights = [1 + at % 3 for at in range(len(mine))]
    plan = w.plan(weights=weights)
    assert plan.verdict.before >= plan.verdict.after >= plan.verdict.bound * 0.999
    assert sum(comm.allgather(plan.incoming)) == 20
    there = plan.move(mine)
    assert len(there) == plan.incoming == len(plan.sources)
    assert plan.sources == sorted(plan.sources)
    for (owner, index), item in zip(plan.sources, there):
        assert item.name == f"{owner}.{index}"
        assert owner != rank or item is mine[index]
    home = plan.give_back([(item.name, rank) for item in there])
    assert home == [(item.name, to) for item, to in zip(mine, plan.destinations)]

    names = w.balance([item.name for item in mine], weights=weights)
    assert sorted(sum(comm.allgather(names), [])) == sorted(f"{ranks - 1}.{at}" for at in range(20))

    # Pinned items stay; nothing at all is fine.
    assert w.balance(list("abc"), weights=[5, 5, 5], pinned=[True] * 3) == list("abc")
    assert w.balance([]) == []

    # Lent, computed, brought home.
    items = list(range(rank * 3))
    with w.lend(items, weights=[1.0] * len(items)) as loan:
        loan.results = [(item, rank) for item in loan.items]
    assert [item for item, _ in loan.home] == items
    assert [to for _, to in loan.home] == loan.plan.destinations

    # Somebody else's partition.
    plan = w.plan_from([(rank + 1) % ranks] * 2)
    assert plan.move([rank, rank]) == [(rank - 1) % ranks] * 2

    assert w.step(0.01) in (True, False)
    assert w.advise(1.0, weights=[1.0 + rank] * 4).after >= 1.0
fine()
