"""What calls raise, on every rank alike."""

from . import _native


class Error(RuntimeError):
    """A call failed. Unless it is a subclass that says otherwise, the world is lost: every later call raises it, too.

    ``status`` is that of the C library: 1 failed, 2 usage, 3 stuck, 4 MPI, 5 memory, 6 callback, 7 panic.
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


def call(function, *arguments):
    """Calls a native function; its failures become the exceptions of this module."""
    try:
        return function(*arguments)
    except _native.NativeFailure as failure:
        status, text = failure.args
    kind = {2: UsageError, 3: StuckError}.get(status, Error)
    raise kind(text, status)
