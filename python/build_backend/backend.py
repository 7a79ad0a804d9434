"""The build of the wheel: first the program, which goes into the wheel's scripts, then maturin's part."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from maturin import *  # noqa: F401,F403  (the hooks of PEP 517 that are left as they are)
import maturin

HERE = Path(__file__).resolve().parent.parent
SCRIPTS = HERE / "data" / "scripts"


def build_program():
    """Builds the program, which finds MPI when it runs, and puts it where maturin takes scripts from."""
    root = HERE.parent
    if not (root / "crates" / "cli" / "Cargo.toml").exists():
        sys.exit("equipoise: the wheel is built within the source tree of the project")
    # Another profile than a release's is for trials; maturin takes its own from MATURIN_PEP517_ARGS.
    profile = os.environ.get("EQUIPOISE_PROFILE", "release")
    command = ["cargo", "build", "--profile", profile, "--locked", "-p", "equipoise-cli", "--no-default-features", "--features", "mpi-dynamic"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "wheel"
    subprocess.run(command, cwd=root, check=True, env={**os.environ, "CARGO_TARGET_DIR": str(target), f"CARGO_PROFILE_{profile.upper()}_STRIP": "symbols"})
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    built = target / {"dev": "debug"}.get(profile, profile)
    shutil.copy2(built / "equipoise", SCRIPTS / "equipoise")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # maturin looks for the folder of scripts before there is anything in it.
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
