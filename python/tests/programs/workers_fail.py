from equipoise.futures import Executor

if __name__ != "__main__":
    raise RuntimeError("only on workers")

with Executor() as executor:
    future = executor.submit(abs, -1)
    if future.exception() is not None:
        print("told:", future.exception())
    print("done:", list(executor.map(abs, [-1, -2])))
