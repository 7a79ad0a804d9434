"""Executors over ranks, with the interface of :mod:`concurrent.futures`.

In a program that all ranks run::

    with eq.futures.Executor(comm) as executor:
        if executor is not None:            # rank 0; the others work until it is done
            print(executor.submit(pow, 321, 1234).result())

or ``mpirun -n 8 python -m equipoise.futures script.py``: rank 0 runs the script, in which ``Executor()`` may be opened any number of times; the
other ranks work. They load the script, too, for its functions, but not as ``__main__``: what rank 0 alone should do, such as opening an Executor,
stands under ``if __name__ == "__main__":``. On a rank that cannot load it all tasks fail. Functions and arguments are pickled. Tasks run on the
ranks other than 0; with one rank, on a thread of it.
"""

import concurrent.futures
import itertools
import pickle
import sys
import threading
import time
import weakref
from collections import deque

from .calls import ANY, Pause
from .errors import Error, UsageError, said, told

__all__ = ["Executor", "as_completed", "wait"]

as_completed = concurrent.futures.as_completed
wait = concurrent.futures.wait

TASKS, DONE, END, BYE, BEGIN, BROKEN = range(6)

#: Tags of messages: the end of a pool, and one for each executor on it. MPI promises tags up to 32,767.
END_TAG = 0
_tags = itertools.cycle(range(1, 32768))

#: Held by the thread of an executor while it calls MPI.
_calling = threading.Lock()

#: The communicator of a pool that `python -m equipoise.futures` has started.
_pool = None

#: Executors on it.
_open = weakref.WeakSet()

#: Tasks that a worker holds at most, so that it has work while the next ones are on their way.
HELD = 2


def _failed(error):
    """The outcome of a call that raised, pickled."""
    text = told(error, limit=None)
    try:
        error.__cause__ = Error(f"\n{text}", 6)
        blob = pickle.dumps((False, error, text), protocol=5)
        pickle.loads(blob)
        return blob
    except BaseException:  # pickling calls the exception's own code
        return pickle.dumps((False, Error(text, 6), text), protocol=5)


def _run(blob):
    """Runs a pickled call; the outcome, pickled."""
    try:
        function, arguments, keywords = pickle.loads(blob)
        outcome = True, function(*arguments, **keywords)
        return pickle.dumps(outcome, protocol=5)
    except BaseException as error:
        return _failed(error)


def _initialized(first, rank):
    """Runs an executor's initializer, if it has one; what went wrong, as a sentence, or None."""
    try:
        for blob in first:
            function, arguments, keywords = pickle.loads(blob)
            function(*arguments, **keywords)
    except BaseException as error:
        sys.stderr.write(told(error, limit=None) + "\n")
        return f"rank {rank}: the executor's initializer failed: {said(error)}"
    return None


class _Server:
    """A worker: runs what comes until it hears of the end. broken: why it can run nothing, if that is so; then everything fails with this."""

    def __init__(self, comm, broken=None):
        self.comm, self.broken = comm, broken
        # What went wrong in initializers, by the tags of their executors.
        self.uninitialized = {}
        self.queue, self.sent, self.pause = deque(), [], Pause()
        self.is_over = self.has_left = False

    def serve(self):
        from mpi4py import MPI

        self.status = MPI.Status()
        interrupt = None
        while not self.has_left:
            try:
                self.turn()
            except MPI.Exception:
                raise
            except BaseException as error:
                # Of a signal's handler, between two tasks. Rank 0 waits for the outcome of those that are here.
                interrupt = error
                self.broken = f"rank {self.comm.rank}: {told(error)}"
        if interrupt is not None:
            raise interrupt

    def turn(self):
        while (message := self.comm.improbe(source=0, status=self.status)) is not None:
            tag = self.status.tag
            kind, data = message.recv()
            self.pause.happened()
            if kind == TASKS:
                self.queue.extend((tag, *task) for task in data)
            elif kind == BEGIN and self.broken is None:
                self.uninitialized[tag] = _initialized(data, self.comm.rank)
            elif kind == END:
                self.is_over = True
        self.sent = [request for request in self.sent if not request.test()[0]]
        if self.queue:
            tag, number, blob = self.queue[0]
            uninitialized = self.uninitialized.get(tag)
            if self.broken is not None:
                kind, outcome = DONE, _failed(Error(self.broken, 6))
            elif uninitialized is not None:
                kind, outcome = BROKEN, uninitialized
            else:
                kind, outcome = DONE, _run(blob)
            self.sent.append(self.comm.isend((kind, self.comm.rank, (number, outcome)), dest=0, tag=tag))
            self.queue.popleft()
        elif self.is_over and not self.sent:
            self.comm.send((BYE, self.comm.rank, None), dest=0, tag=END_TAG)
            self.has_left = True
        else:
            self.pause.rest()


class Executor(concurrent.futures.Executor):
    """Runs calls on the other ranks of a communicator.

    comm: mpi4py's; None: all ranks, or the pool that ``python -m equipoise.futures`` has started. To be made on all ranks, of which
    rank 0 submits; under ``-m equipoise.futures`` on rank 0 alone. max_workers: use at most this many ranks. initializer, initargs:
    called once on each worker before its first task; if it fails, the executor is broken: all that is pending, and every later ``submit``,
    raises BrokenExecutor. Those of rank 0 count; what is wrong on one rank is refused on all.

    Entering it on another rank than 0 works until rank 0 leaves it, and gives None.
    """

    def __init__(self, comm=None, max_workers=None, initializer=None, initargs=()):
        from mpi4py import MPI

        if _pool is not None and (comm is None or _shares(comm, _pool)):
            if comm is not None:
                raise UsageError("under python -m equipoise.futures the other ranks have their pool: Executor() uses it, and no communicator with them can be given")
            if _pool.rank > 0:
                raise UsageError(
                    f'rank {_pool.rank}: an Executor outside of `if __name__ == "__main__":`: under python -m equipoise.futures rank 0 alone opens it, '
                    "and the other ranks load the script for its functions"
                )
        self._owned = comm is not None or _pool is None
        comm = _pool if not self._owned else MPI.COMM_WORLD if comm is None else comm
        wrong, first = None, []
        try:
            first = self._checked(comm, max_workers, initializer, initargs)
        except Exception as error:
            wrong = error
        if self._owned:
            comm = comm.Dup(MPI.INFO_NULL)
            # The others hear of it, as they would wait for tasks.
            refused = [(rank, text) for rank, text in enumerate(comm.allgather(None if wrong is None else said(wrong))) if text is not None]
            if refused:
                comm.Free()
                if wrong is None:
                    rank, text = refused[0]
                    raise UsageError(f"rank {rank}: {text}")
        if wrong is not None:
            raise wrong
        self._comm, self._rank = comm, comm.rank
        self._lock = threading.Lock()
        self._pending = deque()
        self._futures = {}
        self._numbers = itertools.count()
        self._closing, self._broken = False, None
        self._left = self._rank > 0
        if self._rank > 0:
            return
        workers = list(range(1, comm.size))
        self._workers = workers if max_workers is None else workers[:max_workers]
        self._tag = next(_tags)
        if not self._owned:
            _open.add(self)
        target = self._deal if self._workers else self._alone
        self._thread = threading.Thread(target=target, args=(first,), name="equipoise futures", daemon=True)
        self._thread.start()

    @staticmethod
    def _checked(comm, max_workers, initializer, initargs):
        """The initializer's call, pickled, if there is one. All that can be wrong is raised here."""
        from mpi4py import MPI

        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if comm.rank > 0:
            return []
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED and comm.size > 1:
            raise UsageError("an Executor needs MPI_THREAD_MULTIPLE, or MPI_THREAD_SERIALIZED in a program that calls MPI nowhere else")
        return [] if initializer is None else [pickle.dumps((initializer, tuple(initargs), {}), protocol=5)]

    @property
    def num_workers(self):
        """Number of ranks that run tasks."""
        return max(1, len(self._workers)) if self._rank == 0 else self._comm.size - 1

    def __enter__(self):
        if self._rank == 0:
            return self
        _Server(self._comm).serve()
        self._comm.Free()
        return None

    def __exit__(self, kind, error, trace):
        if self._rank == 0:
            self.shutdown(wait=True, cancel_futures=error is not None)
        return False

    def submit(self, fn, /, *args, **kwargs):
        """Schedules fn(*args, **kwargs) and returns its Future."""
        blob = pickle.dumps((fn, args, kwargs), protocol=5)
        future = concurrent.futures.Future()
        with self._lock:
            if self._broken is not None:
                raise concurrent.futures.BrokenExecutor(self._broken)
            if self._closing or self._left:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._pending.append((next(self._numbers), blob, future))
        return future

    def starmap(self, fn, iterable, timeout=None, chunksize=1):
        """As map(fn, ..) with the arguments already zipped."""
        return self._mapped(fn, iterable, timeout, chunksize)

    def map(self, fn, *iterables, timeout=None, chunksize=1, unordered=False, buffersize=None):
        """Results of fn over the iterables, in order, or with ``unordered`` as they come.

        buffersize: chunks that are submitted before a result is asked for; one more then goes for each whose results are taken. None: all at once.
        """
        return self._mapped(fn, zip(*iterables), timeout, chunksize, unordered, buffersize)

    def _mapped(self, fn, arguments, timeout, chunksize, unordered=False, buffersize=None):
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        end = None if timeout is None else time.monotonic() + timeout
        arguments = iter(arguments)
        chunks = iter(lambda: list(itertools.islice(arguments, chunksize)), [])
        futures = deque(self.submit(_each, fn, chunk) for chunk in itertools.islice(chunks, buffersize))

        def left():
            return None if end is None else end - time.monotonic()

        def results():
            try:
                if unordered and buffersize is None:
                    for future in as_completed(futures, left()):
                        yield from future.result()
                    return
                while futures:
                    for chunk in itertools.islice(chunks, 1):
                        futures.append(self.submit(_each, fn, chunk))
                    future = _first_done(futures, left()) if unordered else futures[0]
                    futures.remove(future)
                    yield from future.result(left())
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def shutdown(self, wait=True, *, cancel_futures=False):
        """Ends it; the workers end when all that was submitted is done."""
        if self._rank > 0:
            return
        with self._lock:
            self._closing = True
            if cancel_futures:
                cancelled, self._pending = self._pending, deque()
                for _, _, future in cancelled:
                    future.cancel()
                    future.set_running_or_notify_cancel()
        if wait:
            self._thread.join()

    def _next(self):
        """A task that was not cancelled, if there is one."""
        with self._lock:
            while self._pending:
                number, blob, future = self._pending.popleft()
                if future.set_running_or_notify_cancel():
                    self._futures[number] = future
                    return number, blob
        return None

    def _settle(self, number, blob):
        with self._lock:
            future = self._futures.pop(number, None)
        if future is None:
            return
        try:
            outcome = pickle.loads(blob)
            if not outcome[0]:
                outcome[1].__cause__ = Error(f"\n{outcome[2]}", 6)
        except BaseException as error:  # unpickling calls the result's own code
            outcome = False, error
        if outcome[0]:
            future.set_result(outcome[1])
        else:
            future.set_exception(outcome[1])

    def _break(self, text, number=None):
        """An initializer has failed: the task of this number, which met it, and all that is pending is not done any more."""
        with self._lock:
            self._broken = self._broken or text
            left = [self._futures.pop(number, None), *self._withdrawn()]
        for future in left:
            if future is not None:
                future.set_exception(concurrent.futures.BrokenExecutor(text))

    def _give_up(self, error):
        """The thread that deals has failed: nothing that was submitted is done any more."""
        with self._lock:
            self._closing = True
            left = [*self._futures.values(), *self._withdrawn()]
            self._futures.clear()
        for future in left:
            if not future.done():
                future.set_exception(Error(f"the executor failed: {told(error)}", 1))

    def _withdrawn(self):
        """Takes back all pending tasks; those that were not cancelled. The lock is held."""
        pending, self._pending = self._pending, deque()
        return [future for _, _, future in pending if future.set_running_or_notify_cancel()]

    def _is_over(self):
        with self._lock:
            return self._closing and not self._pending and not self._futures

    def _deal(self, first):
        """The thread that speaks with the workers."""
        try:
            self._speak(first)
        except BaseException as error:
            self._give_up(error)

    def _speak(self, first):
        comm, held, sent, pause = self._comm, {worker: 0 for worker in self._workers}, [], Pause()
        begun = set()
        while sent or not self._is_over():
            with _calling:
                arrived = []
                while (message := comm.improbe(source=ANY(), tag=self._tag)) is not None:
                    kind, worker, result = message.recv()
                    arrived.append((kind, *result))
                    held[worker] -= 1
                    pause.happened()
                # The least loaded first.
                for worker in sorted(held, key=held.get):
                    if held[worker] >= HELD:
                        continue
                    task = self._next()
                    if task is None:
                        break
                    if worker not in begun:
                        begun.add(worker)
                        sent.append(comm.isend((BEGIN, first), dest=worker, tag=self._tag))
                    sent.append(comm.isend((TASKS, [task]), dest=worker, tag=self._tag))
                    held[worker] += 1
                    pause.happened()
                sent = [request for request in sent if not request.test()[0]]
            # Without the lock, as this calls what the program does when a future is done.
            for kind, number, outcome in arrived:
                if kind == BROKEN:
                    self._break(outcome, number)
                else:
                    self._settle(number, outcome)
            pause.rest()
        if self._owned:
            _dismiss(comm)
            comm.Free()

    def _alone(self, first):
        """The thread that runs everything where there is no other rank."""
        pause, is_begun, uninitialized = Pause(), False, None
        while not self._is_over():
            task = self._next()
            if task is None:
                pause.rest()
                continue
            pause.happened()
            if not is_begun:
                is_begun, uninitialized = True, _initialized(first, 0)
            number, blob = task
            if uninitialized is None:
                self._settle(number, _run(blob))
            else:
                self._break(uninitialized, number)
        if self._owned:
            self._comm.Free()


def _first_done(futures, timeout):
    """One that is done."""
    done, _ = wait(futures, timeout, concurrent.futures.FIRST_COMPLETED)
    if not done:
        raise concurrent.futures.TimeoutError
    return next(future for future in futures if future in done)


def _each(function, chunk):
    return [function(*arguments) for arguments in chunk]


def _dismiss(comm):
    """Sends all workers home, and waits until they have gone."""
    for worker in range(1, comm.size):
        comm.send((END, None), dest=worker, tag=END_TAG)
    waiting, pause = set(range(1, comm.size)), Pause()
    while waiting:
        message = comm.improbe(source=ANY())
        if message is None:
            pause.rest()
            continue
        kind, worker, _ = message.recv()
        if kind == BYE:
            waiting.discard(worker)


def main(arguments=None):
    """``python -m equipoise.futures script.py [arguments]`` (or ``-m module``): rank 0 runs it, the others work."""
    import os
    import runpy
    import types

    from mpi4py import MPI

    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] == "-m" and len(arguments) < 2:
        if MPI.COMM_WORLD.rank == 0:
            sys.stderr.write("usage: python -m equipoise.futures script.py [arguments]\n")
        return 2
    is_module = arguments[0] == "-m"
    name, sys.argv = (arguments[1], arguments[1:]) if is_module else (arguments[0], arguments)
    if not is_module:
        sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    comm = MPI.COMM_WORLD.Dup(MPI.INFO_NULL)
    # This module runs as __main__ now; scripts import it by its own name.
    import equipoise.futures as this

    this._pool = comm
    if comm.rank > 0:
        broken = None
        try:
            # Functions of the script are found by their names in __main__; its guarded part does not run here.
            loaded = runpy.run_module(name, run_name="__worker__", alter_sys=False) if is_module else runpy.run_path(name, run_name="__worker__")
            module = types.ModuleType("__main__")
            module.__dict__.update(loaded)
            sys.modules["__main__"] = module
        except BaseException as error:
            # Rank 0 waits for the outcome of tasks. It hears of this from them, if it sends any.
            broken = f"rank {comm.rank} cannot load {name}: {told(error)}"
            sys.stderr.write(broken + "\n")
        _Server(comm, broken).serve()
        comm.Free()
        return 0 if broken is None else 1
    failed = True
    try:
        if is_module:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(name, run_name="__main__")
        failed = False
    finally:
        try:
            for executor in list(this._open):
                executor.shutdown(wait=True, cancel_futures=failed)
            # A launcher may end this rank when another one that could not load the script has gone.
            sys.stdout.flush()
        finally:
            _dismiss(comm)
            comm.Free()
    return 0


def _shares(comm, pool):
    """Whether a communicator has several ranks of the pool."""
    ours, theirs = comm.Get_group(), pool.Get_group()
    shared = ours.Intersection(ours, theirs)
    size = shared.size
    for group in (ours, theirs, shared):
        group.Free()
    return size > 1


if __name__ == "__main__":
    sys.exit(main())
