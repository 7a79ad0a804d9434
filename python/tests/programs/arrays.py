import numpy as np

import equipoise as eq
from check import comm, fine, raises, rank, ranks

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
    raises(eq.UsageError, lambda: w.balance(np.array([object()])), "objects")
    # Bytes of memory as a limit.
    w.set(capacity=100)
    plan = w.plan(weights=[1.0, 9.0], nbytes=np.array([10, 20]))
    assert len(plan.destinations) == 2
fine()
