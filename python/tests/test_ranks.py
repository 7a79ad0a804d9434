"""Each program asserts what it does on every rank, and prints `rank R of N: fine` at its end."""

import pytest

from conftest import PROGRAMS, RANKS


def fine(outcome, ranks):
    said = f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.returncode == 0, said
    for rank in range(ranks):
        assert f"rank {rank} of {ranks}: fine" in outcome.stdout, said


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("program", ["items.py", "arrays.py", "mistakes.py", "loops.py", "maps.py", "executors.py", "split.py"])
def test_program(on_ranks, program, ranks):
    fine(on_ranks(ranks, program), ranks)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_script_under_the_module(on_ranks, ranks):
    outcome = on_ranks(ranks, "-m", "equipoise.futures", PROGRAMS / "script.py", "word")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split("\n")[:3] == ["[1, 4, 9, 16]", "7 word", "done"], outcome.stdout


def test_a_script_that_fails_ends(on_ranks):
    outcome = on_ranks(3, "-m", "equipoise.futures", PROGRAMS / "failing.py")
    assert outcome.returncode != 0
    assert outcome.stderr.count("ZeroDivisionError: division by zero") >= 1


def test_an_exception_in_a_world_reaches_all(on_ranks):
    outcome = on_ranks(3, "raising.py")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("Error with the traceback") == 2, outcome.stdout
    assert outcome.stdout.count("its own KeyError") == 1, outcome.stdout
