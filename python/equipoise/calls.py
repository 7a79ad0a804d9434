"""``World.map``: rank 0 deals calls out, and works as well.

Each worker holds what it needs for some milliseconds, so that it has work while rank 0 computes. The size of a chunk follows from what
calls took so far.
"""

import time
import traceback
from collections import deque
from itertools import islice

from .errors import Error

#: Seconds of work that a worker gets at once, and how much it may hold in all.
CHUNK_SECONDS = 0.004
HELD_CHUNKS = 3

#: Seconds that rank 0 computes at most before it looks whether others lack work, if calls are shorter than that.
OWN_SECONDS = 0.0005

ITEMS, RESULTS, END, FAILED, BYE = range(5)


class Pause:
    """Waits a little longer each time that nothing happened."""

    def __init__(self):
        self.nothing = 0

    def happened(self):
        self.nothing = 0

    def rest(self):
        self.nothing += 1
        if self.nothing > 20:
            time.sleep(min(0.00005 * (self.nothing - 20), 0.0005))
        else:
            time.sleep(0)


def told(error):
    """An exception with its traceback, as text."""
    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).strip()


def begin(world, f, xs, key, ordered):
    """Agrees with all ranks that they map, and begins."""
    world._exchange("map")
    comm = world._communicator()
    if world.rank > 0:
        work(comm, f)
        return iter(())
    results = Dealer(comm, f, xs, key).results(ordered)
    # Up to its first yield, so that leaving it is noticed from now on.
    next(results)
    return results


def receive(comm, source):
    """Messages that are here."""
    while True:
        message = comm.improbe(source=source)
        if message is None:
            return
        yield message.recv()


def work(comm, f):
    """A rank that computes until it hears of the end."""
    queue, done, pause, failure = deque(), [], Pause(), None
    sent, flushed = [], time.perf_counter()
    while True:
        for kind, data in receive(comm, 0):
            pause.happened()
            if kind == END:
                for request in sent:
                    request.wait()
                comm.send((BYE, comm.rank, None), dest=0)
                if failure is not None:
                    raise failure
                if data is not None:
                    raise Error(data, 6)
                return
            queue.extend(data)
        if not queue or failure is not None:
            pause.rest()
            continue
        seq, x = queue.popleft()
        began = time.perf_counter()
        try:
            value = f(x)
            now = time.perf_counter()
            done.append((seq, value, now - began))
            if not queue or now - flushed > CHUNK_SECONDS / 2:
                sent = [request for request in sent if not request.test()[0]]
                sent.append(comm.isend((RESULTS, comm.rank, done), dest=0))
                done, flushed = [], now
        except BaseException as error:
            failure = error
            comm.send((FAILED, comm.rank, f"rank {comm.rank}: {told(error)}"), dest=0)


class Dealer:
    """Rank 0's side."""

    def __init__(self, comm, f, xs, key):
        self.comm, self.f, self.given, self.key = comm, f, xs, key
        self.left = None
        self.workers = range(1, comm.size)
        self.held = {worker: 0 for worker in self.workers}
        self.sent = []
        # What a call takes, measured; the first chunks are single calls.
        self.seconds = None
        self.exhausted = False
        self.open = 0
        self.ready = {}
        self.arrived = deque()
        self.failure = None

    def numbered(self):
        """The items with their numbers, in the order in which they go out."""
        if self.key is None:
            try:
                self.left = len(self.given)
            except TypeError:
                pass
            return enumerate(self.given)
        items = list(enumerate(self.given))
        items.sort(key=lambda item: -self.key(item[1]))
        self.left = len(items)
        return iter(items)

    def chunk(self):
        """Number of calls that go out at once."""
        if self.seconds is None:
            return 1
        count = max(1, int(CHUNK_SECONDS / max(self.seconds, 1e-7)))
        if self.left is not None:
            count = min(count, max(1, self.left // (2 * self.comm.size)))
        return min(count, 10_000)

    def own_chunk(self):
        """Number of calls that rank 0 makes before it looks again."""
        if self.seconds is None:
            return 1
        return max(1, min(self.chunk(), int(OWN_SECONDS / max(self.seconds, 1e-7))))

    def take(self, items, count):
        taken = list(islice(items, count))
        if len(taken) < count:
            self.exhausted = True
        if self.left is not None:
            self.left -= len(taken)
        self.open += len(taken)
        return taken

    def finished(self, seq, value, seconds):
        self.open -= 1
        self.seconds = seconds if self.seconds is None else 0.95 * self.seconds + 0.05 * seconds
        self.arrived.append((seq, value))

    def poll(self):
        """Takes what has come; whether anything has."""
        happened = False
        for kind, worker, data in receive(self.comm, ANY()):
            happened = True
            if kind == RESULTS:
                self.held[worker] -= len(data)
                for result in data:
                    self.finished(*result)
            elif kind == FAILED and self.failure is None:
                self.failure = data
        return happened

    def fill(self, items):
        """Gives workers what they lack, one chunk each in turn."""
        lacks = True
        while lacks and not self.exhausted:
            lacks = False
            count = self.chunk()
            for worker in self.workers:
                if self.held[worker] >= HELD_CHUNKS * count or self.exhausted:
                    continue
                if self.held[worker] > 0 and self.seconds is None:
                    continue
                taken = self.take(items, count)
                if taken:
                    self.held[worker] += len(taken)
                    self.sent.append(self.comm.isend((ITEMS, taken), dest=worker))
                    lacks = True
        self.sent = [request for request in self.sent if not request.test()[0]]

    def results(self, ordered):
        """Deals, works, and yields; first nothing."""
        outcome, pause, following = None, Pause(), 0
        try:
            yield None
            items = self.numbered()
            while True:
                if self.poll():
                    pause.happened()
                if self.failure is not None:
                    raise Error(self.failure, 6)
                self.fill(items)
                own = self.take(items, self.own_chunk()) if not self.exhausted else []
                for seq, x in own:
                    pause.happened()
                    began = time.perf_counter()
                    try:
                        value = self.f(x)
                    except Exception as error:
                        raise Error(f"rank 0: {told(error)}", 6) from error
                    self.finished(seq, value, time.perf_counter() - began)
                while self.arrived:
                    seq, value = self.arrived.popleft()
                    if not ordered:
                        yield value
                        continue
                    self.ready[seq] = value
                while ordered and following in self.ready:
                    value = self.ready.pop(following)
                    following += 1
                    yield value
                if self.exhausted and self.open == 0 and not self.arrived:
                    outcome = None
                    return
                if not own:
                    pause.rest()
        except GeneratorExit:
            # Stopping is no error on the other ranks.
            outcome = None
            raise
        except BaseException as error:
            outcome = str(error) if isinstance(error, Error) else f"rank 0: {told(error)}"
            raise
        finally:
            self.end(outcome)

    def end(self, outcome):
        """Tells all workers that it is over, and takes what they have sent still."""
        for worker in self.workers:
            self.comm.send((END, outcome), dest=worker)
        waiting, pause = set(self.workers), Pause()
        while waiting:
            for kind, worker, _ in receive(self.comm, ANY()):
                if kind == BYE:
                    waiting.discard(worker)
            pause.rest()
        for request in self.sent:
            request.wait()


def ANY():
    """``MPI.ANY_SOURCE``."""
    from mpi4py import MPI

    return MPI.ANY_SOURCE
