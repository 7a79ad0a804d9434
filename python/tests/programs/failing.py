from equipoise.futures import Executor

if __name__ == "__main__":
    with Executor() as executor:
        executor.submit(abs, -1).result()
        1 / 0
