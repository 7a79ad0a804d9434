"""``World.map``: rank 0 deals calls out, and works as well.

Each worker holds what it needs for some milliseconds, so that it has work while rank 0 computes. The size of a chunk follows from what
calls took so far.

What fails on any rank ends the map on all. Nothing is left of it then: every worker's last message is BYE, after the END of rank 0, and rank 0
takes all messages until then; those that it has no use for it does not unpickle. Nobody waits in a send, as others may be in one, too.
"""

import time
from collections import deque
from itertools import islice

from .errors import Error, UsageError, said, told

#: Seconds of work that a worker gets at once, and how much it may hold in all.
CHUNK_SECONDS = 0.004
HELD_CHUNKS = 3

#: Seconds that rank 0 computes at most before it looks whether others lack work, if calls are shorter than that.
OWN_SECONDS = 0.0005

#: Kinds of messages, which are their tags.
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


def begin(world, f, xs, key, ordered):
    """Agrees with all ranks that they map, and begins."""
    world._exchange("map")
    comm = world._communicator()
    if world.rank > 0:
        Worker(world, comm, f).work()
        return iter(())
    results = Dealer(world, comm, f, xs, key).results(ordered)
    # Up to its first yield, so that leaving it is noticed from now on.
    next(results)
    return results


class Mail:
    """This rank's messages."""

    def __init__(self, comm, source):
        from mpi4py import MPI

        self.mpi, self.comm, self.source = MPI, comm, source
        self.status = MPI.Status()
        self.sent = []

    def send(self, kind, data, to):
        """Sends something, without waiting for anything."""
        self.sent.append(self.comm.isend(data, dest=to, tag=kind))

    def has_sent(self):
        """Whether all that was sent has left."""
        self.sent = [request for request in self.sent if not request.test()[0]]
        return not self.sent

    def here(self):
        """Messages that are here: kind, sender, and the message, which is to be read or dropped before the next one."""
        while True:
            message = self.comm.improbe(source=self.source, status=self.status)
            if message is None:
                return
            yield self.status.tag, self.status.source, message

    def read(self, message, what):
        """What was sent. Reading it may call the code of its sender's objects."""
        try:
            return message.recv()
        except Exception as error:
            raise Error(f"{what} does not unpickle: {said(error)}", 6) from error

    def drop(self, message):
        """Takes a message, and nothing from it."""
        message.Recv([bytearray(self.status.Get_count(self.mpi.BYTE)), self.mpi.BYTE])


class Worker:
    """A rank other than 0: computes what it gets until it hears of the end."""

    def __init__(self, world, comm, f):
        self.world, self.comm, self.f = world, comm, f
        self.mail = Mail(comm, 0)
        self.pause = Pause()
        self.queue, self.done = deque(), []
        self.flushed = time.perf_counter()
        # What was raised here, and whether rank 0 knows.
        self.failure, self.is_said = None, False
        # What rank 0 says at the end: nothing, or status and text.
        self.outcome, self.is_over, self.has_left = None, False, False

    def work(self):
        """Works until all ranks are done."""
        self.world._in_map = True
        try:
            while not self.has_left:
                try:
                    self.turn()
                except self.mail.mpi.Exception:
                    raise
                except BaseException as error:
                    # Rank 0 hears of it, and this rank goes on until it hears of the end.
                    self.fail(error)
        finally:
            self.world._in_map = False
        if self.failure is not None:
            raise self.failure
        if self.outcome is not None:
            status, text = self.outcome
            raise UsageError(text) if status == 2 else Error(text, status)

    def fail(self, error):
        if self.failure is None:
            self.failure = error

    def turn(self):
        """Takes what has come, and makes one call or says what is to be said."""
        for kind, _, message in self.mail.here():
            self.pause.happened()
            if kind == END:
                self.is_over, self.outcome = True, message.recv()
            elif self.failure is None:
                self.queue.extend(self.mail.read(message, "what rank 0 gives to f"))
            else:
                self.mail.drop(message)
        if self.is_over:
            if self.mail.has_sent():
                self.comm.send(None, dest=0, tag=BYE)
                self.has_left = True
            else:
                self.pause.rest()
        elif self.failure is not None:
            if not self.is_said:
                self.is_said = True
                self.mail.send(FAILED, f"rank {self.comm.rank}: {told(self.failure)}", 0)
            self.pause.rest()
        elif self.queue:
            self.compute()
        else:
            self.pause.rest()

    def compute(self):
        seq, x = self.queue.popleft()
        began = time.perf_counter()
        try:
            value = self.f(x)
        except BaseException as error:
            return self.fail(error)
        now = time.perf_counter()
        self.done.append((seq, value, now - began))
        if not self.queue or now - self.flushed > CHUNK_SECONDS / 2:
            self.mail.has_sent()
            self.mail.send(RESULTS, self.done, 0)
            self.done, self.flushed = [], now


class Dealer:
    """Rank 0's side."""

    def __init__(self, world, comm, f, xs, key):
        self.world, self.comm, self.f, self.given, self.key = world, comm, f, xs, key
        self.mail = Mail(comm, ANY())
        self.left = None
        self.workers = range(1, comm.size)
        self.held = {worker: 0 for worker in self.workers}
        # What a call takes, measured; the first chunks are single calls.
        self.seconds = None
        self.exhausted = False
        self.open = 0
        self.ready = {}
        self.arrived = deque()
        # What f has raised, on any rank.
        self.failure = None
        self.is_over, self.ended_by = False, None
        world._map = self

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
        for kind, worker, message in self.mail.here():
            happened = True
            if kind == RESULTS:
                results = self.mail.read(message, f"a result of f on rank {worker}")
                self.held[worker] -= len(results)
                for result in results:
                    self.finished(*result)
            elif kind == FAILED:
                text = message.recv()
                self.failure = self.failure or text
            else:
                self.mail.drop(message)
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
                    self.mail.send(ITEMS, taken, worker)
                    lacks = True
        self.mail.has_sent()

    def results(self, ordered):
        """Deals, works, and yields; first nothing."""
        outcome = None
        try:
            yield None
            computed = self.computed(ordered)
            while True:
                self.world._in_map = True
                try:
                    value = next(computed)
                except StopIteration:
                    return
                finally:
                    self.world._in_map = False
                yield value
                if self.is_over:
                    # The world's next call, or its end, has ended the map meanwhile.
                    raise UsageError("rank 0: the map is over: " + (self.ended_by or "the world was closed"))
        except GeneratorExit:
            # Stopping is no error on the other ranks.
            raise
        except BaseException as error:
            outcome = 6, self.failure or f"rank 0: {told(error)}"
            raise
        finally:
            self.end(outcome)

    def computed(self, ordered):
        """Deals, works, and yields results."""
        pause, following = Pause(), 0
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
                except (Exception, GeneratorExit) as error:
                    self.failure = f"rank 0: {told(error)}"
                    raise Error(self.failure, 6) from error
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
                return
            if not own:
                pause.rest()

    def end(self, outcome):
        """Tells all workers that it is over, and takes what they have sent still. outcome: status and text of their exception, if there is one."""
        if self.is_over:
            return
        self.is_over, self.ended_by = True, outcome and outcome[1]
        self.world._map = None
        MPI = self.mail.mpi
        if MPI.Is_finalized():
            return
        untold, waiting = list(self.workers), set(self.workers)
        interrupt, pause = None, Pause()
        while waiting or not self.mail.has_sent():
            try:
                while untold:
                    self.mail.send(END, outcome, untold[-1])
                    untold.pop()
                for kind, worker, message in self.mail.here():
                    self.mail.drop(message)
                    if kind == BYE:
                        waiting.discard(worker)
                pause.rest()
            except MPI.Exception:
                raise
            except BaseException as error:
                # Of a signal's handler. The others wait for this rank still.
                interrupt = error
        if interrupt is not None:
            raise interrupt


def ANY():
    """``MPI.ANY_SOURCE``."""
    from mpi4py import MPI

    return MPI.ANY_SOURCE
