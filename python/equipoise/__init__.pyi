from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union, overload

from numpy import ndarray

from . import futures as futures

T = TypeVar("T")
R = TypeVar("R")
Numbers = Union[Sequence[float], "ndarray[Any, Any]"]
Whole = Union[Sequence[int], "ndarray[Any, Any]"]

__version__: str

def version() -> str: ...

class Error(RuntimeError):
    status: int

class UsageError(Error, ValueError): ...
class StuckError(Error): ...

class Verdict(NamedTuple):
    before: float
    after: float
    bound: float
    plan_seconds: float
    move_seconds: float
    pays_from_seconds_per_unit: float
    moved: int
    bytes: int
    pays: Optional[bool]
    balancer: str

class World:
    rank: int
    ranks: int
    def __init__(self, comm: Any = None, **options: Any) -> None: ...
    def __enter__(self) -> World: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool: ...
    def close(self) -> None: ...
    def set(self, **options: Any) -> None: ...
    def plan(
        self,
        weights: Optional[Numbers] = None,
        nbytes: Optional[Whole] = None,
        pinned: Optional[Sequence[Any] | "ndarray[Any, Any]"] = None,
        n: Optional[int] = None,
        coordinates: Optional[Sequence[Sequence[float]] | "ndarray[Any, Any]"] = None,
    ) -> Plan: ...
    def plan_from(self, destinations: Whole, weights: Optional[Numbers] = None, nbytes: Optional[Whole] = None) -> Plan: ...
    @overload
    def balance(self, items: "ndarray[Any, Any]", weights: Optional[Numbers] = None, nbytes: Optional[Whole] = None, pinned: Any = None) -> "ndarray[Any, Any]": ...
    @overload
    def balance(self, items: Sequence[T], weights: Optional[Numbers] = None, nbytes: Optional[Whole] = None, pinned: Any = None) -> list[T]: ...
    def lend(self, items: Any, weights: Optional[Numbers] = None, nbytes: Optional[Whole] = None, pinned: Any = None) -> Loan: ...
    def step(self, seconds: float) -> bool: ...
    def advise(self, seconds_per_unit: float, weights: Optional[Numbers] = None, nbytes: Optional[Whole] = None, n: Optional[int] = None) -> Verdict: ...
    def loop(self, first: int, last: int, rule: str = "fac2") -> Loop: ...
    def map(
        self, f: Callable[[T], R], xs: Iterable[T] = (), key: Optional[Callable[[T], float]] = None, ordered: bool = True
    ) -> Iterator[R]: ...
    def progress(self) -> None: ...

class Plan:
    verdict: Verdict
    incoming: int
    destinations: list[int]
    sources: list[tuple[int, int]]
    @overload
    def move(self, items: "ndarray[Any, Any]") -> "ndarray[Any, Any]": ...
    @overload
    def move(self, items: Sequence[T]) -> list[T]: ...
    @overload
    def give_back(self, results: "ndarray[Any, Any]") -> "ndarray[Any, Any]": ...
    @overload
    def give_back(self, results: Sequence[T]) -> list[T]: ...

class Loan:
    items: Any
    results: Any
    home: Any
    plan: Optional[Plan]
    def __enter__(self) -> Loan: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool: ...

class Loop(Iterator[tuple[int, int]]):
    def __next__(self) -> tuple[int, int]: ...
    def __enter__(self) -> Loop: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool: ...
