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

/// This host's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
