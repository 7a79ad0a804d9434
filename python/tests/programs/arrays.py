import pickle

import numpy as np

import equipoise as eq
from check import alike, comm, fine, raises, rank, ranks

with eq.World(timeout=60) as w:
    for dtype in ("f8", "f4", "i2", "c16", "U5"):
        for shape in ((), (3,), (2, 5)):
            n = 12 if rank == 0 else 0
            size = int(np.prod(shape, dtype=int))
            mine = np.arange(n * size).reshape((n, *shape)).astype(dtype)
            # Those without items take dtype and shape from the others.
            given = mine if rank == 0 else np.zeros((0,))
            plan = w.plan(n=n)
            there = plan.move(given)
            assert there.dtype == np.dtype(dtype) and there.shape == (plan.incoming, *shape), (there.dtype, there.shape)
            assert (there == np.arange(12 * size).reshape((12, *shape)).astype(dtype)[[index for _, index in plan.sources]]).all()
            home = plan.give_back(there)
            assert home.shape == (n, *shape) and (home == mine).all()
    # Not contiguous, and Fortran's order.
    base = np.arange(60.0).reshape(10, 6)
    for view in (base[:, ::2], np.asfortranarray(base), base[::-1]):
        plan = w.plan(n=10, weights=[1.0 + rank] * 10)
        assert (plan.give_back(plan.move(view)) == view).all()
    assert len(w.balance(np.zeros((0, 4)))) == 0
    if ranks > 1:
        other = np.zeros((2, 3 if rank == 1 else 2))
        raises(eq.UsageError, lambda: w.balance(other), "rank 1", "(3,)")
        raises(eq.UsageError, lambda: w.balance([1, 2] if rank == 1 else np.zeros(2)), "rank 1", "list")
        # An empty one goes with lists.
        for empty in np.zeros(0), np.zeros((0, 3)), np.array([], dtype=object):
            given = empty if rank == 0 else [f"{rank}.{at}" for at in range(3)]
            plan = w.plan(n=len(given))
            there = plan.move(given)
            assert type(there) is list and len(there) == plan.incoming and plan.give_back(there) == list(given)
            with w.lend(given) as loan:
                loan.results = [len(item) for item in loan.items] or empty
            assert loan.home == [3] * len(given), loan.home
    raises(eq.UsageError, lambda: w.balance(np.array([object()])), "objects")
    if ranks > 1:
        # What has no items at all, or cannot be read as a dtype, on one rank only.
        raises(eq.UsageError, lambda: w.balance(np.array(5.0) if rank == 1 else np.zeros(3)), "rank 1", "without dimensions")
        plan = w.plan(n=3)
        error = raises(eq.UsageError, lambda: plan.move(np.array(5.0) if rank == 1 else np.zeros(3)), "rank 1", "without dimensions")
        assert alike(str(error))
        error = raises(eq.UsageError, lambda: plan.move(np.zeros(3, dtype="f4" if rank == 1 else "f8")), "float32 () on rank 1", "float64 () on rank 0")
        assert alike(str(error))
        assert (plan.give_back(plan.move(np.arange(3.0))) == np.arange(3.0)).all()
    # Dtypes that are equal, though they are pickled differently: metadata, fields that were named in another way, a dtype that was unpickled.
    named = [("mass", "f8"), ("at", "f8", (3,))]
    listed = np.dtype({"names": ["mass", "at"], "formats": ["f8", ("f8", (3,))]})
    equal = [
        (np.dtype("f8", metadata={"unit": "m"}), np.dtype("f8")),
        (np.dtype(named), listed),
        (np.dtype(named), pickle.loads(pickle.dumps(np.dtype(named)))),
    ]
    for one, other in equal:
        dtype = one if rank == 0 else other
        given = np.zeros(4 * (rank + 1), dtype)
        plan = w.plan(weights=[1.0] * len(given))
        there = plan.move(given)
        assert there.dtype == dtype and len(there) == plan.incoming
        assert there.dtype.metadata == dtype.metadata
        assert len(plan.give_back(there)) == len(given)
    # Bytes of memory as a limit.
    w.set(capacity=100)
    plan = w.plan(weights=[1.0, 9.0], nbytes=np.array([10, 20]))
    assert len(plan.destinations) == 2

# Where there are no items, nobody knows how many coordinates those of the others have.
with eq.World(balancer="rcb", timeout=60) as w:
    for dimensions in 1, 3:
        n = 0 if rank == ranks - 1 and ranks > 1 else 4
        places = np.arange(4.0 * dimensions).reshape((4, dimensions)) + rank
        for empty in [], None, np.zeros(0), np.zeros((0, 2)):
            plan = w.plan(weights=[1.0] * n, coordinates=places if n else empty)
            assert sum(comm.allgather(plan.incoming)) == sum(comm.allgather(n))
    if ranks > 2:
        given = np.zeros((1, 3 if rank == 1 else 2)) if rank < ranks - 1 else []
        error = raises(eq.UsageError, lambda: w.plan(weights=[1.0] * len(given), coordinates=given), "rank 1: number of coordinates of an item: 3", "2 on rank 0")
        assert alike(str(error))
    raises(eq.UsageError, lambda: w.plan(n=1, coordinates=[()]), "dimensions")
fine()
