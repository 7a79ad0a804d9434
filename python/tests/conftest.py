"""Starts programs on ranks. MPIRUN names the launcher; EQUIPOISE_TEST_RANKS the numbers of ranks (1,2,3,5,8)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
RANKS = [int(ranks) for ranks in os.environ.get("EQUIPOISE_TEST_RANKS", "1,2,3,5,8").split(",")]
LAUNCHER = os.environ.get("MPIRUN", "mpirun")


def options():
    """What the launcher needs for more ranks than cores."""
    said = subprocess.run([LAUNCHER, "--version"], capture_output=True, text=True).stdout
    is_open_mpi = any(name in said for name in ("Open MPI", "OpenRTE", "PRRTE"))
    return ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"] if is_open_mpi else []


@pytest.fixture
def on_ranks():
    """Runs a program of tests/programs on ranks: its outcome, with all that it printed."""
    if shutil.which(LAUNCHER) is None:
        message = f"{LAUNCHER} is not here: ranks are NOT tested"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)

    def run(ranks, *arguments, limit=120):
        allowed = {name: "1" for kind in ("OMPI", "PRTE") for name in (f"{kind}_ALLOW_RUN_AS_ROOT", f"{kind}_ALLOW_RUN_AS_ROOT_CONFIRM")}
        first, *rest = arguments
        program = [first] if first.startswith("-") else [str(PROGRAMS / first)]
        command = [LAUNCHER, *options(), "-n", str(ranks), sys.executable, *program, *map(str, rest)]
        return subprocess.run(command, capture_output=True, text=True, timeout=limit, env={**os.environ, **allowed})

    return run
