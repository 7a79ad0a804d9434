"""A module next to a script."""


def square(x):
    return x * x
