import sys

from equipoise.futures import Executor


def square(x):
    return x * x


if __name__ == "__main__":
    with Executor() as executor:
        print(list(executor.map(square, range(1, 5))))
    with Executor() as executor:
        print(executor.submit(pow, 7, 21, 191).result(), sys.argv[1])
    print("done")
