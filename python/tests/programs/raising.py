import equipoise as eq
from check import rank

try:
    with eq.World(timeout=60) as w:
        w.balance([1, 2])
        if rank == 1:
            raise KeyError("in the block")
        w.balance([3])
        w.balance([4])
except KeyError:
    print("its own KeyError", flush=True)
except eq.Error as error:
    assert "in the block" in str(error)
    print("Error with the traceback", flush=True)
