from equipoise.futures import Executor

with Executor() as executor:
    print(list(executor.map(abs, [-1, -2])))
