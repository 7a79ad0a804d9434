import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional, TypeVar

T = TypeVar("T")

as_completed = concurrent.futures.as_completed
wait = concurrent.futures.wait

class Executor(concurrent.futures.Executor):
    num_workers: int
    def __init__(
        self, comm: Any = None, max_workers: Optional[int] = None, initializer: Optional[Callable[..., Any]] = None, initargs: tuple[Any, ...] = ()
    ) -> None: ...
    def __enter__(self) -> Optional[Executor]: ...  # type: ignore[override]
    def starmap(self, fn: Callable[..., T], iterable: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1) -> Iterator[T]: ...
    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
        unordered: bool = False,
        buffersize: Optional[int] = None,
    ) -> Iterator[T]: ...

def main(arguments: Optional[list[str]] = None) -> int: ...
