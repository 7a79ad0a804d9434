"""Worlds, plans, loans and loops."""

import operator
import pickle
import threading
from collections import namedtuple

from . import _native, packing
from .errors import Checked, Error, UsageError, call, told

Verdict = namedtuple(
    "Verdict",
    "before after bound plan_seconds move_seconds pays_from_seconds_per_unit moved bytes pays balancer",
)
Verdict.__doc__ = """What a plan is worth, for all ranks together.

before, after, bound: largest over mean of work over power now, after the plan, and the least possible (1 without work).
plan_seconds, move_seconds: spent on the plan; expected for the move.
pays_from_seconds_per_unit: seconds that a unit of weight must last for the move to pay once; infinity: never.
moved, bytes: number of items that change their rank, and their bytes where these were given.
pays: True, False, or None where nobody knows how long a unit lasts (no option ``unit``, no ``step`` yet).
balancer: the name of the balancer.
"""


def _count(n):
    """A number of items."""
    try:
        count = operator.index(n)
    except TypeError:
        raise UsageError(f"n = {n!r}: it must be a whole number") from None
    if not 0 <= count < 2**63:
        raise UsageError(f"n = {n}: it must be at least 0, and less than 2**63")
    return count


def _agreed(counts):
    """The number of items that arguments speak of; None: an argument that is missing."""
    known = [count for count in counts if count is not None]
    if not known:
        raise UsageError("how many items? give weights, or n")
    if any(count != known[0] for count in known):
        raise UsageError(f"arguments for different numbers of items: {', '.join(map(str, known))}")
    return known[0]


def _option(key, value):
    if isinstance(value, (list, tuple)) or packing.is_array(value):
        value = ",".join(repr(float(number)) for number in value)
    elif isinstance(value, bool):
        value = "true" if value else "false"
    text = str(value)
    if not text or any(character.isspace() for character in text):
        raise UsageError(f"option {key}: {text!r} has blanks, or nothing")
    text.encode()  # what UTF-8 does not have is refused here
    return f"{key}={text}"


class World:
    """The ranks of a communicator.

    comm: an intracommunicator of mpi4py's; None: all ranks. It is duplicated, and otherwise left alone.
    options: ``balancer="refine"``, ``tolerance=1.05``, ``seed``, ``timeout`` (seconds), ``trigger``, ``powers`` and ``capacity`` (a number for
    this rank, or a sequence by rank), ``unit`` (seconds that a unit of weight lasts), ``on_error="abort"``, ``watchdog`` (seconds).

    Collective, as is everything here unless it says otherwise. ``with`` closes it; an exception in the block makes the world a lost one, and
    the other ranks raise ``Error``.
    """

    def __init__(self, comm=None, **options):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD if comm is None else comm
        text = ""
        with Checked() as checked:
            text = " ".join(_option(key, value) for key, value in options.items())
        self._native = checked.call(_native.World, MPI._addressof(comm), MPI._sizeof(comm), text)
        self._comm = comm
        self._calls = None
        self._closed = False
        self._thread = threading.get_ident()
        # Whether the code of a map runs: f, or what reads its arguments.
        self._in_map = False
        # Rank 0's side of a map that is iterated over.
        self._map = None

    @property
    def rank(self):
        """This process's rank in the communicator."""
        return self._native.rank

    @property
    def ranks(self):
        """Number of ranks."""
        return self._native.ranks

    def close(self):
        """Gives the communicator's duplicate back; a closed world stays closed. A lost world is only left: nobody is waited for."""
        if self._closed:
            return
        if self._is_mapping():
            # Closing leaves the iteration.
            self._map.end(None)
        self._enter("close")
        call(self._native.close)
        self._closed = True
        if self._calls is not None:
            self._calls.Free()
            self._calls = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            self.close()
        else:
            self._closed = True
            text = f"rank {self.rank}: {told(error)}"
            if self._is_mapping():
                self._map.end((1, text))
            self._native.abandon(1, text)
            try:
                self._native.close()
            except _native.NativeFailure:
                pass
        return False

    def set(self, **options):
        """Sets options, the same on all ranks. Not collective: they are compared in the next call."""
        self._refuse_in_map("set")
        for key, value in options.items():
            key, value = _option(key, value).split("=", 1)
            call(self._native.set, key, value)

    def plan(self, weights=None, nbytes=None, pinned=None, n=None, coordinates=None, *, _items=None):
        """Decides which item should go to which rank; moves nothing.

        weights: work of each item, finite and at least 0; None: 1 each. nbytes: memory of each. pinned: True for those that stay.
        n: number of items, needed if nothing else says it. coordinates: [n][1 to 3], for the balancers ``rcb`` and ``sfc``; where there are no
        items, anything empty.
        """
        self._enter("plan")
        items, dimensions, given = 0, 0, (None, None, None, None)
        with Checked() as checked:
            packed = [packing.packed(values, code, what) for values, code, what in ((weights, "d", "weights"), (nbytes, "Q", "nbytes"), (pinned, "B", "pinned"))]
            dimensions, places, points = packing.coordinates(coordinates)
            n = n if n is None else _count(n)
            n = n if _items is None else packing.number_of(_items)
            items = _agreed([*(count for _, count in packed), points, n])
            given = (*(data for data, _ in packed), places)
        weights, nbytes, pinned, places = given
        return Plan(self, checked.call(_native.plan, self._native, items, weights, nbytes, pinned, dimensions, places), items)

    def plan_from(self, destinations, weights=None, nbytes=None):
        """A plan that somebody else has made: the rank of each item."""
        self._enter("plan_from")
        data, count, extra = b"", 0, (None, None)
        with Checked() as checked:
            if destinations is None:
                raise UsageError("destinations are missing")
            data, count = packing.packed(destinations, "i", "destinations")
            extra = packing.packed(weights, "d", "weights")[0], packing.packed(nbytes, "Q", "nbytes")[0]
        return Plan(self, checked.call(_native.plan_from, self._native, count, data, *extra), count)

    def balance(self, items, weights=None, nbytes=None, pinned=None):
        """Moves items so that all ranks have about the same work; returns those that are here afterwards, sorted by (owner, index).

        items: a list of picklable objects, or an array, moved along axis 0. What stays is the same object; what leaves is pickled.
        """
        return self.plan(weights, nbytes, pinned, _items=items).move(items)

    def lend(self, items, weights=None, nbytes=None, pinned=None):
        """Lends items for a while: ``with w.lend(items, weights=cost) as loan: loan.results = f(loan.items)``, then ``loan.home``."""
        return Loan(self, items, weights, nbytes, pinned)

    def step(self, seconds):
        """Whether to balance now, the same on all ranks; to be asked once a step. seconds: what this rank's step took."""
        self._enter("step")
        took = 0.0
        with Checked("step") as checked:
            took = float(seconds)
        return checked.call(self._native.step, took)

    def advise(self, seconds_per_unit, weights=None, nbytes=None, n=None):
        """The verdict of the balancer that gains most, if a unit of weight lasts that long. Moves nothing."""
        self._enter("advise")
        items, unit, given = 0, 0.0, (None, None)
        with Checked("advise") as checked:
            pairs = packing.packed(weights, "d", "weights"), packing.packed(nbytes, "Q", "nbytes")
            items = _agreed([*(count for _, count in pairs), n if n is None else _count(n)])
            given, unit = tuple(data for data, _ in pairs), float(seconds_per_unit)
        return Verdict(**checked.call(_native.advise, self._native, items, *given, unit))

    def loop(self, first, last, rule="fac2"):
        """The iterations [first, last), in chunks for whoever has time: ``for lo, hi in w.loop(0, n): ..``.

        rule: a self-scheduling rule, such as ``fac2``, ``gss``, ``tss``, ``static`` or ``fixed:chunk=8``. With ``with`` the loop ends on all
        ranks also if the body raises on one: the others take what is left, and raise ``Error``.
        """
        return Loop(self, first, last, rule)

    def map(self, f, xs=(), key=None, ordered=True):
        """Calls f(x) for each x of rank 0's xs, on all ranks; iterates over the results on rank 0.

        xs: any iterable, read as needed. f: each rank's own. ordered: results in the order of xs, or as they come. key: an estimate of
        what f(x) takes; the dearest go first, and xs is then read whole. On the other ranks the call works until all is done, and returns
        an empty iterator. Leaving the iteration on rank 0 stops it. What f raises is raised on its rank, and ``Error`` on the others and on
        rank 0. f may call ``progress``, and nothing else of this world; rank 0 makes its next call when the iteration is over.
        """
        from . import calls

        return calls.begin(self, f, xs, key, ordered)

    def progress(self):
        """Answers other ranks, in long computations. Not collective; cheap."""
        call(self._native.progress)

    def _is_mapping(self):
        """Whether rank 0 iterates over a map, and this is its thread outside of it."""
        return self._map is not None and not self._in_map and threading.get_ident() == self._thread

    def _refuse_in_map(self, name):
        # The native world refuses other threads.
        if self._in_map and threading.get_ident() == self._thread:
            raise UsageError(f"rank {self.rank}: {name} within a map: its function may call progress, and nothing else of the world that maps")

    def _enter(self, name):
        """Refuses a collective call for which the other ranks cannot come, as they are in a map."""
        self._refuse_in_map(name)
        if self._is_mapping():
            text = f"rank 0: {name}, and the others are in a map: iterate over its results to the end, or close the iterator"
            self._map.end((2, text))
            raise UsageError(text)

    def _exchange(self, name, mine=b"", wrong=None):
        self._enter(name)
        return call(self._native.exchange, name, mine, wrong)

    def _communicator(self):
        """A duplicate for Python's own messages, without the hints of the original."""
        if self._calls is None:
            from mpi4py import MPI

            self._calls = self._comm.Dup(MPI.INFO_NULL)
        return self._calls


class Plan:
    """A decision on items that all ranks hold. It may be moved and given back often, with other data, and read when the world is closed."""

    def __init__(self, world, native, items):
        self._world = world
        self._native = native
        self._items = items

    @property
    def verdict(self):
        """What it is worth: a :class:`Verdict`."""
        return Verdict(**self._native.verdict)

    @property
    def incoming(self):
        """Number of items that are here afterwards, those that stay included."""
        return self._native.incoming

    @property
    def destinations(self):
        """The rank that each of this rank's items goes to; a list."""
        return self._native.destinations

    @property
    def sources(self):
        """(owner, index) of each item that is here afterwards, in the order in which they arrive; a list."""
        return self._native.sources

    def move(self, items):
        """The items that are here afterwards. items: a list, or an array along axis 0, as long as the plan's weights were."""
        return self._carry(items, False)

    def give_back(self, results):
        """Results of this rank's own items, by index. results: one for each item that is here, in the order in which they arrived."""
        return self._carry(results, True)

    def _carry(self, items, back):
        world, rank = self._world, self._world.rank
        mine, blobs, name = b"", [], "give_back" if back else "move"
        world._enter(name)
        there = [owner for owner, _ in self.sources] if back else self.destinations
        with Checked(name) as checked:
            count = packing.number_of(items)
            if count != len(there):
                raise UsageError(f"{count} items, and the plan has {len(there)} here")
            if packing.is_array(items):
                mine = b"A" + packing.shape_of(items)
            elif count > 0:
                mine = b"L"
                what = "the result of item" if back else "item"
                blobs = [b"" if to == rank else packing.pickled(item, f"{what} {at}") for at, (item, to) in enumerate(zip(items, there))]
        kinds = checked.call(world._native.exchange, name, mine)
        # Where an array has no items, those of the others decide.
        if any(len(kind) > 1 for kind in kinds) or b"A" in kinds and b"L" not in kinds:
            return self._carry_array(items, back, kinds)
        out = []
        # Results that stay, by the item's index.
        kept = {index: at for at, (owner, index) in enumerate(self.sources) if owner == rank} if back else None

        def receive(source, index, data):
            if source != rank:
                out.append(pickle.loads(data))
            else:
                out.append(items[kept[index] if back else index])

        call(_native.carry_each, world._native, self._native, back, blobs, receive, None)
        return out

    def _carry_array(self, items, back, kinds):
        import numpy as np

        name = "give_back" if back else "move"
        lists = [rank for rank, kind in enumerate(kinds) if kind[:1] == b"L"]
        shapes = {rank: kind[1:] for rank, kind in enumerate(kinds) if len(kind) > 1}
        if not lists and not shapes:
            return np.array(items, copy=True)
        size, arrays = 0, ((0, 0), (0, 0))
        # Also what all ranks see alike goes into the call: what some cannot read may be fine for others.
        with Checked(name) as checked:
            if lists:
                raise UsageError(f"a list on rank {lists[0]}, and others have arrays")
            dtype, shape = packing.common_shape(shapes)
            # Its own, with its metadata.
            dtype = items.dtype if len(items) else dtype
            size = int(dtype.itemsize * np.prod(shape, dtype=np.int64))
            arrivals = self._items if back else self.incoming
            try:
                source = np.ascontiguousarray(items) if len(items) else np.empty((0, *shape), dtype)
                out = np.empty((arrivals, *shape), dtype)
            except MemoryError:
                raise Error(f"no memory for {arrivals} items of {size} bytes", 5) from None
            arrays = (source.ctypes.data, source.nbytes), (out.ctypes.data, out.nbytes)
        checked.call(_native.carry, self._world._native, self._native, back, *arrays, size)
        return out


class Loan:
    """Items that are lent for a while; see :meth:`World.lend`.

    items: those that are here within the block. results: to be set there, one for each of them. home: the results of this rank's own
    items, in their original order, after the block. plan: the plan that was followed.
    """

    def __init__(self, world, items, weights, nbytes, pinned):
        self._world, self._given = world, (items, weights, nbytes, pinned)
        self.items = self.results = self.home = self.plan = None

    def __enter__(self):
        items, weights, nbytes, pinned = self._given
        self.plan = self._world.plan(weights, nbytes, pinned, _items=items)
        self.items = self.plan.move(items)
        self._given = None
        return self

    def __exit__(self, kind, error, trace):
        wrong = None if error is None else (6, told(error))
        if error is None and self.results is None:
            wrong = (2, "lend: the block ended without setting results")
        if wrong is not None:
            # The others hear of it where they give back.
            try:
                self._world._exchange("give_back", b"", wrong)
            except Error:
                if error is None:
                    raise
            return False
        self.home = self.plan.give_back(self.results)
        self.items = self.results = None
        return False


class Loop:
    """Iterations that are dealt out; see :meth:`World.loop`."""

    def __init__(self, world, first, last, rule):
        world._enter("loop")
        begin, end, given = 0, 0, ""
        self._offset = 0
        with Checked("loop") as checked:
            first, last = int(first), int(last)
            if last < first:
                raise UsageError(f"the loop ends at {last}, before {first}")
            # The native loop has no negative numbers.
            offset = -(2**63) if first < 0 else 0
            if first < offset or last - offset >= 2**64:
                raise UsageError(f"{first} to {last}: more than 64 bits")
            rule = str(rule)
            rule.encode()
            begin, end, given, self._offset = first - offset, last - offset, rule, offset
        self._world, self._managed = world, False
        self._native = checked.call(world._native.begin_loop, begin, end, given)

    def __iter__(self):
        return self

    def __next__(self):
        if self._native is None:
            raise StopIteration
        self._world._refuse_in_map("next of a loop")
        found = call(self._world._native.next, self._native)
        if found is None:
            if not self._managed:
                self._end()
            raise StopIteration
        lo, hi = found
        return lo + self._offset, hi + self._offset

    def _end(self):
        self._world._enter("the end of a loop")
        native, self._native = self._native, None
        call(self._world._native.end_loop, native)

    def __enter__(self):
        self._managed = True
        return self

    def __exit__(self, kind, error, trace):
        wrong = None if error is None else (6, told(error))
        left = None
        try:
            self._end()
        except UsageError as why:
            left = why
        try:
            self._world._exchange("loop", b"", wrong)
        except Error:
            if error is None:
                raise
            return False
        if left is not None:
            raise left
        return False
