//! The environment of commands, without the variables that a launcher has set for the rank.
//!
//! A program that initialises MPI (many do when they are imported) would otherwise take itself for the rank, and register as that with the
//! launcher, which then waits for ever for one of the two.

use std::ffi::{OsStr, OsString};

/// Prefixes of the variables in which launchers give a process its rank and its job. Those of the batch system are kept.
const LAUNCHERS: [&str; 11] =
    ["OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_", "HYDRA", "HYDI_", "MPI_LOCAL", "MV2_COMM_WORLD_", "MVP_COMM_WORLD_", "PALS_"];

/// Returns true if a variable of this name is for a rank only.
pub fn is_for_a_rank(name: &OsStr) -> bool {
    LAUNCHERS.iter().any(|begins| name.as_encoded_bytes().starts_with(begins.as_bytes()))
}

/// The names of the variables of this process that no command gets.
pub fn hidden() -> Vec<OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| is_for_a_rank(name)).collect()
}

/// Returns true if this process was started with a signal ignored, as by `nohup`, or as a job that a script has in the background. It has to stay so.
/// Elsewhere than on Linux that is not known.
pub fn ignores(signal: i32) -> bool {
    is_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

fn is_in(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// This host's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert_eq!([1, 2, 13, 15].map(|signal| is_in(status, signal)), [true, false, true, false]);
        assert!(!is_in("", 1));
        // Rust's runtime ignores SIGPIPE.
        assert!(!cfg!(target_os = "linux") || (ignores(libc::SIGPIPE) && !ignores(libc::SIGUSR2)));
    }

    #[test]
    fn a_command_is_no_rank() {
        for name in ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_FD", "PRTE_X", "ORTE_X", "HYDRA_X", "HYDI_CONTROL_FD", "MPI_LOCALRANKID"] {
            assert!(is_for_a_rank(name.as_ref()), "{name}");
        }
        for name in ["PATH", "SLURM_PROCID", "MPICC", "MPI_HOME", "PMIC", "EQUIPOISE_BIN", "MY_OMPI_X"] {
            assert!(!is_for_a_rank(name.as_ref()), "{name}");
        }
        assert!(!host().is_empty());
    }
}
