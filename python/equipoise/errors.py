"""What calls raise, on every rank alike, and how ranks hear of each other's exceptions."""

import traceback

from . import _native


class Error(RuntimeError):
    """A call failed.

    ``status`` is that of the C library: 1 failed, 2 usage, 3 stuck, 4 MPI, 5 memory, 6 callback, 7 panic. After 2, 5 and 6 the world is as before
    the call; after the others it is lost, and every later call raises the same.
    """

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


class UsageError(Error, ValueError):
    """An argument was wrong on some rank, or ranks made different calls. The sentence names the rank; the world is as before the call."""

    def __init__(self, text, status=2):
        super().__init__(text, status)


class StuckError(Error):
    """A rank did not come within the option ``timeout``. The world is lost."""

    def __init__(self, text, status=3):
        super().__init__(text, status)


#: Characters of a text that ranks send each other.
LIMIT = 900


def call(function, *arguments):
    """Calls a native function; its failures become the exceptions of this module."""
    try:
        return function(*arguments)
    except _native.NativeFailure as failure:
        status, text = failure.args
    kind = {2: UsageError, 3: StuckError}.get(status, Error)
    raise kind(text, status)


def _encodable(text):
    """The text without what UTF-8 does not have: half surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def said(error):
    """An exception as one sentence; the beginning of a long one."""
    name = type(error).__name__
    try:
        text = _encodable(str(error)).strip()
    except Exception:  # its own __str__
        text = ""
    if not isinstance(error, (Error, TypeError, ValueError, OverflowError)):
        text = f"{name}: {text}" if text else name
    text = text or name
    return text if len(text) <= LIMIT else text[:LIMIT] + " .."


def told(error, limit=LIMIT):
    """An exception with its traceback; the end of a long one. limit: None for all of it."""
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # what it is chained to may be anything
        text = said(error)
    text = _encodable(text).strip()
    return text if limit is None or len(text) <= limit else ".. " + text[-limit:]


class Checked:
    """What this rank finds wrong with its own arguments goes into the call that all ranks make, so that none waits for this one::

        with Checked() as checked:
            n = operator.index(n)
        checked.call(native, n)

    Whatever the block raises is raised on all ranks as ``UsageError``, or with the status of the ``Error`` that it is. What is no
    ``Exception``, such as ``KeyboardInterrupt``, is raised as itself on this rank. name: what its sentence begins with.
    """

    def __init__(self, name=None):
        self._name = name
        self._error = None
        self._wrong = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            status = error.status if isinstance(error, Error) else 5 if isinstance(error, MemoryError) else 2
            self._error = error
            self._wrong = status, said(error) if self._name is None else f"{self._name}: {said(error)}"
        return True

    def call(self, function, *arguments):
        """Calls a native function whose last argument is what is wrong on this rank."""
        error, self._error = self._error, None
        try:
            return call(function, *arguments, self._wrong)
        except Error as raised:
            if error is None:
                raise
            if not isinstance(error, Exception):
                raise error
            raise raised from error
