# What scripts for other languages have in common; they source it: installing what a test needs, and saying what can't be had.
# shellcheck shell=bash

[[ -d ${HOME:-/root}/.cargo/bin ]] && PATH=$PATH:${HOME:-/root}/.cargo/bin
me=scripts/${0##*/}

# Something that this machine cannot have. Nothing is tested without it: status 0, but 1 in CI.
lacking() {
    printf '\n*** SKIPPED: %s: %s\n\n' "$me" "$1" >&2
    [[ ${CI-} == true ]] && exit 1
    exit 0
}

# Installs Debian's packages, as root or through sudo if that asks for no password. Whether they are what was needed, the caller tries.
debian() {
    command -v apt-get >/dev/null || return 0
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 0
        as_root=(sudo -n)
    fi
    printf '%s: apt-get install %s\n' "$me" "$*" >&2
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
    {
        # Two scripts that run at once take turns; the lock is on this folder.
        flock 9
        # The lists of a bare machine are old, or there are none.
        "${install[@]}" >/dev/null 2>&1 </dev/null || {
            "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 </dev/null || true
            "${install[@]}" >/dev/null </dev/null || true
        }
    } 9<"$(dirname "${BASH_SOURCE[0]}")"
}

# A command, and the packages that bring it.
need() {
    command -v "$1" >/dev/null && return 0
    debian "${@:2}"
    command -v "$1" >/dev/null || lacking "there is no $1, and ${*:2} can't be installed"
}

# An environment of Python, in a folder, with packages from PyPI.
environment() {
    local folder=$1
    shift
    need python3 python3 python3-venv
    if [[ ! -x $folder/bin/pip ]] && ! python3 -m venv "$folder" >/dev/null 2>&1; then
        debian python3-venv
        rm -rf "$folder"
        python3 -m venv "$folder" >/dev/null || lacking "python3 cannot make an environment (python3 -m venv)"
    fi
    "$folder/bin/pip" -q --disable-pip-version-check install "$@" || lacking "PyPI's $* can't be had"
}

# Root is meant.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
