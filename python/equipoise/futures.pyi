import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

as_completed = concurrent.futures.as_completed
wait = concurrent.futures.wait

class Executor(concurrent.futures.Executor):
    num_workers: int
    def __init__(
        self, comm: Any = None, max_workers: Optional[int] = None, initializer: Optional[Callable[..., Any]] = None, initargs: tuple[Any, ...] = ()
    ) -> None: ...
    def __enter__(self) -> Optional[Executor]: ...  # type: ignore[override]
    def starmap(self, fn: Callable[..., Any], iterable: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1) -> Iterator[Any]: ...

def main(arguments: Optional[list[str]] = None) -> int: ...
