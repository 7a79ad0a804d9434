"""Equipoise balances uneven work over MPI ranks.

A world stands on a communicator of mpi4py's and changes nothing else in the process::

    import equipoise as eq

    w = eq.World()                               # all ranks; eq.World(comm, balancer="refine", tolerance=1.05)
    mine = w.balance(items, weights=cost)        # items change their ranks so that all have about the same work

    with w.lend(columns, weights=cost) as loan:  # lent for a while: computed elsewhere, brought home
        loan.results = chemistry(loan.items)
    columns = loan.home                          # in their original order

    for lo, hi in w.loop(0, n):                  # iterations, to whoever has time
        compute(lo, hi)

    for result in w.map(f, xs):                  # calls; the results are on rank 0
        print(result)

Calls are collective: all ranks make them, in one order. They fail alike on all ranks, with :class:`UsageError`, :class:`StuckError` or
:class:`Error`. ``w.loop``'s iterations are the exception: each rank takes them when it has time.
"""

from . import _native
from .errors import Error, StuckError, UsageError
from .world import Loan, Loop, Plan, Verdict, World

__version__ = _native.VERSION

__all__ = ["Error", "Loan", "Loop", "Plan", "StuckError", "UsageError", "Verdict", "World", "futures"]


def version():
    """The version of this package, and the MPI of this process: mpi4py's, once ``mpi4py.MPI`` is imported."""
    return f"{__version__}\n{_native.mpi() or 'no MPI in this process yet: mpi4py.MPI brings it'}"


def __getattr__(name):
    if name == "futures":
        import importlib

        return importlib.import_module(".futures", __name__)
    raise AttributeError(f"module 'equipoise' has no attribute '{name}'")
