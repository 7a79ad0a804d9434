//! Detection of the launcher that started this process, by its environment: to advise a user who started it without one, and to notice the
//! launcher of one MPI that starts a program linked with another, which results in N jobs of one rank each.
//!
//! Plain functions, to be called before MPI is initialised. A program that runs on the ranks of a launcher, and simulates them if there is
//! none, needs only `started` (`mpi::World::launched` calls it).

use crate::error::{Error, Result};
use crate::topology::RankId;

/// The launcher that started this process, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// No launcher.
    Alone,
    /// A launcher that this program's MPI is assumed to understand. `ranks` is set if the environment has it.
    Launched { launcher: &'static str, ranks: Option<u32> },
    /// The launcher of another MPI: every process will take itself for the only rank.
    Singletons { launcher: &'static str, ranks: u32 },
}

/// The family of an MPI library, as its version string tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    OpenMpi,
    /// MPICH and its derivatives: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    Other,
}

/// Traces that launchers leave: the name, the variable with the number of ranks, and whether each family understands it.
const TRACES: [(&str, &str, bool, bool); 4] = [
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", true, false),
    ("MVAPICH's launcher", "MV2_COMM_WORLD_SIZE", false, true),
    ("MVAPICH's launcher", "MVP_COMM_WORLD_SIZE", false, true),
    ("MPICH's mpiexec (Hydra)", "PMI_SIZE", false, true),
];

/// Environment variables in which launchers give a process its rank, before MPI does.
const RANKS: [&str; 8] =
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK", PALS, FLUX, "SLURM_PROCID"];
/// Variables of launchers that leave no other trace.
const PALS: &str = "PALS_RANKID";
const FLUX: &str = "FLUX_TASK_RANK";

/// Launchers of which the environment does not tell whether this program's MPI understands them.
const UNSURE: [&str; 3] = ["Flux", "PALS", "Slurm's srun"];

/// A variable of this process's environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This process's rank according to its launcher; `None` if it was started without one.
pub fn rank(env: impl Fn(&str) -> Option<String>) -> Option<RankId> {
    RANKS.iter().find_map(|name| env(name)?.trim().parse().ok())
}

/// Returns true if a launcher started this process as one of a job's ranks, given the version string of the MPI that the program uses.
///
/// # Errors
/// Wrong usage if it is the launcher of another MPI.
pub fn started(library: &str, env: impl Fn(&str) -> Option<String>) -> Result<bool> {
    match detect(library, env) {
        Launch::Alone => Ok(false),
        Launch::Launched { .. } => Ok(true),
        Launch::Singletons { launcher, ranks } => Err(alone(library, launcher, ranks)),
    }
}

/// Returns true if a launcher that the program's MPI is known to understand started this process and others. A process that needs no ranks
/// itself can then initialise MPI, for the others, which would wait for it.
pub fn has_company(library: impl FnOnce() -> String, env: impl Fn(&str) -> Option<String>) -> bool {
    // Without a launcher no MPI is looked for.
    if detect("", &env) == Launch::Alone {
        return false;
    }
    match detect(&library(), env) {
        Launch::Launched { launcher, ranks } => ranks != Some(1) && !UNSURE.contains(&launcher),
        Launch::Alone | Launch::Singletons { .. } => false,
    }
}

/// The refusal of processes each of which takes itself for the only rank.
pub fn alone(library: &str, launcher: &str, ranks: u32) -> Error {
    Error::usage(format!(
        "{launcher} started {ranks} processes, but this program is linked with another MPI ({library}), so each of them takes itself for the \
         only rank; use the mpirun that belongs to it, or build it with the other MPI: \
         cargo clean --release -p mpi-sys -p mpi && MPICC=.. cargo build --release (without the first, cargo keeps what it has built)"
    ))
}

/// Judges the environment, given the version string of the MPI that this program is linked with.
pub fn detect(library: &str, env: impl Fn(&str) -> Option<String>) -> Launch {
    let number = |name: &str| env(name).and_then(|text| text.trim().parse::<u32>().ok());
    let library = family(library);
    let understood = |by_open_mpi, by_mpich| match library {
        Library::OpenMpi => by_open_mpi,
        Library::Mpich => by_mpich,
        Library::Other => true,
    };
    let traces = || TRACES.iter().filter_map(|&(name, variable, open, mpich)| Some((name, number(variable)?, understood(open, mpich))));
    let ranked = |name: &str| number(name).is_some();
    // A launcher that is understood counts more than the traces of one that started it (a resource manager's, or a shell under mpirun).
    if let Some((launcher, ranks, _)) = traces().find(|&(_, _, understood)| understood) {
        return Launch::Launched { launcher, ranks: Some(ranks) };
    }
    if env("PMIX_RANK").is_some() && library != Library::Mpich {
        return Launch::Launched { launcher: "a PMIx launcher", ranks: slurm_step(&env) };
    }
    // Flux speaks PMI-1, whose variables look like Hydra's, and PALS with its own MPI. Whether ours understands shows after its initialisation.
    if let Some((_, launcher)) = [(FLUX, UNSURE[0]), (PALS, UNSURE[1])].into_iter().find(|(name, _)| ranked(name)) {
        return Launch::Launched { launcher, ranks: number("PMI_SIZE") };
    }
    if let Some((launcher, ranks, _)) = traces().find(|&(_, ranks, _)| ranks > 1) {
        return Launch::Singletons { launcher, ranks };
    }
    if let Some(ranks) = slurm_step(&env) {
        // srun speaks PMI-2 or PMIx where it is asked to; whether our MPI understands shows after its initialisation only.
        return Launch::Launched { launcher: UNSURE[2], ranks: Some(ranks) };
    }
    Launch::Alone
}

/// Number of ranks in the launcher's environment, and its variable, if MPI has started with one rank only: the job is then this number of
/// singletons. `None` if all is well.
pub fn singletons(size: u32, env: impl Fn(&str) -> Option<String>) -> Option<(&'static str, u32)> {
    if size != 1 {
        return None;
    }
    let number = |name: &str| env(name).and_then(|text| text.trim().parse::<u32>().ok());
    let traced = TRACES.iter().filter_map(|&(name, variable, ..)| Some((name, number(variable)?)));
    // A process that a launcher started with one rank has a trace that says one: then the others are left over from around it.
    let mut traced: Vec<_> = traced.collect();
    if traced.iter().any(|&(_, ranks)| ranks == 1) {
        return None;
    }
    traced.extend(slurm_step(&env).map(|ranks| (UNSURE[2], ranks)));
    traced.into_iter().find(|&(_, ranks)| ranks > 1)
}

/// Ranks of the Slurm step that this process belongs to. Within a batch script, outside any step, there is none.
fn slurm_step(env: &impl Fn(&str) -> Option<String>) -> Option<u32> {
    env("SLURM_STEP_ID").or_else(|| env("SLURM_STEPID"))?;
    env("SLURM_PROCID")?;
    env("SLURM_STEP_NUM_TASKS").or_else(|| env("SLURM_NTASKS"))?.trim().parse().ok()
}

fn family(library: &str) -> Library {
    let library = library.to_lowercase();
    match library {
        _ if library.contains("open mpi") => Library::OpenMpi,
        _ if ["mpich", "intel", "mvapich", "cray"].iter().any(|name| library.contains(name)) => Library::Mpich,
        _ => Library::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_MPI: &str = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";
    const MPICH: &str = "MPICH Version:      5.0.2\nMPICH Release date: ..";

    fn with(variables: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string())
    }

    #[test]
    fn nobody_started_it() {
        assert_eq!(detect(OPEN_MPI, with(&[])), Launch::Alone);
        assert_eq!(detect(OPEN_MPI, with(&[("SLURM_NTASKS", "8"), ("SLURM_JOB_ID", "7")])), Launch::Alone);
        assert_eq!(detect(OPEN_MPI, with(&[("PMI_SIZE", "1")])), Launch::Alone);
        assert_eq!(detect(OPEN_MPI, with(&[("PMI_SIZE", "many")])), Launch::Alone);
    }

    #[test]
    fn its_own_launcher_started_it() {
        let own = Launch::Launched { launcher: "Open MPI's mpirun", ranks: Some(8) };
        assert_eq!(detect(OPEN_MPI, with(&[("OMPI_COMM_WORLD_SIZE", "8")])), own);
        assert_eq!(detect(OPEN_MPI, with(&[("OMPI_COMM_WORLD_SIZE", "8"), ("PMI_SIZE", "2")])), own);
        let hydra = Launch::Launched { launcher: "MPICH's mpiexec (Hydra)", ranks: Some(4) };
        assert_eq!(detect(MPICH, with(&[("PMI_SIZE", "4")])), hydra);
        let srun = &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "8"), ("PMIX_RANK", "1")];
        assert_eq!(detect(OPEN_MPI, with(srun)), Launch::Launched { launcher: "a PMIx launcher", ranks: Some(8) });
        let unknown = detect("Some MPI 1.0", with(&[("PMI_SIZE", "3")]));
        assert_eq!(unknown, Launch::Launched { launcher: "MPICH's mpiexec (Hydra)", ranks: Some(3) });
    }

    #[test]
    fn the_launcher_of_another_mpi_started_it() {
        let hydra = Launch::Singletons { launcher: "MPICH's mpiexec (Hydra)", ranks: 8 };
        assert_eq!(detect(OPEN_MPI, with(&[("PMI_SIZE", "8"), ("PMI_RANK", "3")])), hydra);
        let open = Launch::Singletons { launcher: "Open MPI's mpirun", ranks: 4 };
        assert_eq!(detect(MPICH, with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")])), open);
    }

    #[test]
    fn after_initialisation_one_rank_where_more_were_promised_is_a_singleton() {
        assert_eq!(singletons(8, with(&[("PMI_SIZE", "8")])), None);
        assert_eq!(singletons(1, with(&[("PMI_SIZE", "8")])), Some(("MPICH's mpiexec (Hydra)", 8)));
        assert_eq!(singletons(1, with(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMI_SIZE", "8")])), None);
        let srun = &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(singletons(1, with(srun)), Some(("Slurm's srun", 8)));
        assert_eq!(singletons(1, with(&[])), None);
    }

    #[test]
    fn launchers_without_a_trace_of_their_size_are_seen() {
        assert_eq!(detect(MPICH, with(&[("PALS_RANKID", "3")])), Launch::Launched { launcher: "PALS", ranks: None });
        let flux = &[("FLUX_TASK_RANK", "0"), ("PMI_RANK", "0"), ("PMI_SIZE", "4")];
        assert_eq!(detect(OPEN_MPI, with(flux)), Launch::Launched { launcher: "Flux", ranks: Some(4) });
        assert_eq!(singletons(1, with(flux)).map(|(_, ranks)| ranks), Some(4));
    }

    #[test]
    fn one_question_tells_whether_there_are_ranks() {
        assert_eq!(started(OPEN_MPI, with(&[])), Ok(false));
        let srun = &[("PMIX_RANK", "1"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "8")];
        assert_eq!(started(OPEN_MPI, with(srun)), Ok(true));
        let srun = &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "8")];
        assert_eq!((started(OPEN_MPI, with(srun)), started(MPICH, with(srun))), (Ok(true), Ok(true)));
        let refused = started(OPEN_MPI, with(&[("PMI_SIZE", "8"), ("PMI_RANK", "3")])).unwrap_err();
        assert!(refused.exit_status() == 2 && refused.to_string().contains("Hydra) started 8 processes"), "{refused}");
    }

    #[test]
    fn only_a_launcher_that_is_understood_gives_company() {
        assert!(has_company(|| OPEN_MPI.into(), with(&[("OMPI_COMM_WORLD_SIZE", "2")])));
        assert!(has_company(|| OPEN_MPI.into(), with(&[("PMIX_RANK", "0")])));
        let srun = &[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "8")];
        for nobody in [&[("OMPI_COMM_WORLD_SIZE", "1")][..], &[("PMI_SIZE", "8")], &[("FLUX_TASK_RANK", "1")], srun, &[]] {
            assert!(!has_company(|| OPEN_MPI.into(), with(nobody)), "{nobody:?}");
        }
    }

    #[test]
    fn a_launcher_tells_the_rank() {
        assert_eq!(rank(with(&[("PMI_RANK", "3")])), Some(RankId::new(3)));
        assert_eq!(rank(with(&[("OMPI_COMM_WORLD_RANK", " 0 ")])), Some(RankId::FIRST));
        assert_eq!(rank(with(&[("SLURM_PROCID", "x")])), None);
        assert_eq!(rank(with(&[])), None);
    }
}
