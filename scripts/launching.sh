# What scripts/mpi and scripts/cluster have in common; they source it. Finds the launcher, what kind it is, and the program to run.
# shellcheck shell=bash

[[ -d ${HOME:-/root}/.cargo/bin ]] && PATH=$PATH:${HOME:-/root}/.cargo/bin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=scripts/${0##*/}

give_up() {
    printf '%s: %s\n' "$me" "$1" >&2
    exit "${2:-1}"
}

# Sets `launcher`, and `open_mpi` to its major version (empty if it is another MPI's). Tells Open MPI that root is meant.
find_launcher() {
    launcher=${MPIRUN:-mpirun} open_mpi=""
    command -v "$launcher" >/dev/null 2>&1 || give_up "there is no $launcher here; scripts/setup installs one"
    local version
    version=$("$launcher" --version 2>&1 || true)
    # Under another name than mpirun it calls itself by the name of its runtime.
    [[ $version =~ "Open MPI"|OpenRTE|PRRTE ]] || return 0
    open_mpi=$(sed -nE '1s/.*(Open MPI|OpenRTE)\) v?([0-9]+).*/\2/p' <<<"$version")
    open_mpi=${open_mpi:-4}
    # Its launcher refuses root unless told twice.
    if [[ $(id -u) == 0 ]]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# Sets `program` if it is not set yet: the release build, which is built first if it is missing or stale.
find_program() {
    if [[ -n $program ]]; then
        command -v "$program" >/dev/null 2>&1 || give_up "there is no program '$program' to run"
        return 0
    fi
    local target
    target=$(cd "$root" && cargo metadata --no-deps --format-version 1 | sed -nE 's/.*"target_directory":"([^"]*)".*/\1/p')
    program=$target/release/equipoise
    # Cargo alone knows whether it is stale; it is let speak when there is something to build.
    local quiet=()
    if [[ -x $program && -z $(find "$root"/src "$root"/crates "$root"/Cargo.* -newer "$program" -print -quit) ]]; then
        quiet=(--quiet)
    fi
    (cd "$root" && cargo build --release --bin equipoise "${quiet[@]}" >&2)
}

# Shows a command as one could type it.
show_command() {
    local shown
    printf -v shown ' %q' "$@"
    printf '$%s\n' "$shown" >&2
}
