# Copyright the Equipoise developers.
#
# SPDX-License-Identifier: (MIT OR Apache-2.0)

from spack.package import *


class Equipoise(Package):
    """Balances uneven work over MPI ranks: a program that compares balancers and schedulers, farms commands and divides files,
    and a library for C, Fortran, Python and Rust."""

    homepage = "https://github.com/equipoise/equipoise"
    git = "https://github.com/equipoise/equipoise.git"

    license("MIT OR Apache-2.0", checked_by="developers")

    version("main", branch="main")

    depends_on("rust@1.89:", type="build")
    depends_on("c", type="build")
    # Found when the program runs, whichever it is.
    depends_on("mpi", type="run")

    def install(self, spec, prefix):
        cargo = which("cargo")
        cargo("install", "--locked", "--path", "crates/cli", "--root", prefix, "--no-default-features", "--features", "mpi-dynamic")
        Executable("scripts/install")(prefix)
