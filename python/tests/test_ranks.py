"""Each program asserts what it does on every rank, and prints `rank R of N: fine` at its end."""

import pytest

from conftest import PROGRAMS, RANKS


def fine(outcome, ranks):
    said = f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.returncode == 0, said
    for rank in range(ranks):
        assert f"rank {rank} of {ranks}: fine" in outcome.stdout, said


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("program", ["items.py", "arrays.py", "mistakes.py", "loops.py", "maps.py", "maps_that_fail.py", "executors.py", "split.py"])
def test_program(on_ranks, program, ranks):
    fine(on_ranks(ranks, program), ranks)


def test_another_mpi_may_be_named_before_mpi4py_has_loaded_its_own(on_ranks, monkeypatch):
    # Of two MPIs in a process, handles of the one are nonsense to the other.
    monkeypatch.setenv("EQUIPOISE_MPI", "/nowhere/libmpi.so")
    fine(on_ranks(2, "imported_first.py"), 2)


@pytest.mark.parametrize("ranks", RANKS)
def test_a_script_under_the_module(on_ranks, ranks):
    outcome = on_ranks(ranks, "-m", "equipoise.futures", PROGRAMS / "script.py", "word")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split("\n")[:4] == ["[1, 4, 9, 16]", "7 word", "3 True True", "done"], outcome.stdout


def test_a_script_that_fails_ends(on_ranks):
    outcome = on_ranks(3, "-m", "equipoise.futures", PROGRAMS / "failing.py")
    assert outcome.returncode != 0
    assert outcome.stderr.count("ZeroDivisionError: division by zero") >= 1


@pytest.mark.parametrize("ranks", RANKS)
def test_a_script_that_workers_cannot_load_ends(on_ranks, ranks):
    outcome = on_ranks(ranks, "-m", "equipoise.futures", PROGRAMS / "workers_fail.py")
    said = f"{outcome.stdout}\n{outcome.stderr}"
    if ranks == 1:
        assert outcome.returncode == 0 and "done: [1, 2]" in outcome.stdout, said
    else:
        assert outcome.returncode != 0, said
        assert "told: rank " in outcome.stdout and "RuntimeError: only on workers" in outcome.stdout, said
        assert f"rank {ranks - 1} cannot load" in outcome.stderr, said


@pytest.mark.parametrize("ranks", RANKS)
def test_a_script_without_a_guard_ends(on_ranks, ranks):
    outcome = on_ranks(ranks, "-m", "equipoise.futures", PROGRAMS / "unguarded.py")
    said = f"{outcome.stdout}\n{outcome.stderr}"
    if ranks == 1:
        assert outcome.returncode == 0 and "[1, 2]" in outcome.stdout, said
    else:
        assert outcome.returncode != 0, said
        assert 'an Executor outside of `if __name__ == "__main__":`' in outcome.stderr, said


@pytest.mark.parametrize("ranks", RANKS)
def test_a_script_may_leave_its_executor_open(on_ranks, ranks, tmp_path):
    # With a module next to it, and run from elsewhere.
    outcome = on_ranks(ranks, "-m", "equipoise.futures", PROGRAMS / "left_open.py", ranks)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "[0, 1, 4]\nrefused\nlater 25\n", outcome.stdout


def test_an_exception_in_a_world_reaches_all(on_ranks):
    outcome = on_ranks(3, "raising.py")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("Error with the traceback") == 2, outcome.stdout
    assert outcome.stdout.count("its own KeyError") == 1, outcome.stdout
