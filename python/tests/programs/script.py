import sys
from concurrent.futures import BrokenExecutor

from equipoise.futures import Executor


def square(x):
    return x * x


memory = []


def remember(x):
    memory.append(x)


def remembered():
    return memory[-1]


def fail():
    raise KeyError("never ready")


if __name__ == "__main__":
    with Executor() as executor:
        print(list(executor.map(square, range(1, 5))))
    with Executor() as executor:
        print(executor.submit(pow, 7, 21, 191).result(), sys.argv[1])
    # Two at once, each with what it initializes; the second one breaks.
    with Executor(initializer=remember, initargs=(3,)) as outer, Executor(initializer=fail) as inner:
        first = outer.submit(remembered).result()
        broken = isinstance(inner.submit(square, 2).exception(), BrokenExecutor)
        print(first, broken, list(outer.map(square, range(30))) == [x * x for x in range(30)])
    print("done")
