//! From the environment and the options to a world.

use equipoise::experiment::Environment;
use equipoise::transport::sim;
use equipoise::transport::world::World;
use equipoise::workload::memory;
use equipoise::{Error, Result};

use super::options::WorldOptions;
use super::{command, terminal};

/// Where launchers tell a process its rank, before MPI does.
const RANKS: [&str; 8] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "MVP_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This process's rank by the launcher's word; `None` if nobody launched it.
fn launcher_rank(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    RANKS.iter().find_map(|name| variable(name)?.trim().parse().ok())
}

/// Whether this process is the one of its job that speaks, as far as the environment tells.
pub fn speaks() -> bool {
    launcher_rank(variable).unwrap_or(0) == 0
}

/// Does something in the world that the options ask for. What goes wrong there is said before the world ends: its end waits for all ranks,
/// so none of them is gone, and the others killed by the launcher, before the sentence is out.
///
/// # Errors
/// How the process is to end, if not well.
pub fn within(options: &WorldOptions, work: impl FnOnce(&mut World) -> Result<()>) -> Result<(), Ending> {
    within_with_workers(options, 1, work)
}

/// The same with so many workers a rank.
///
/// # Errors
/// As [`within`].
pub fn within_with_workers(options: &WorldOptions, workers: u32, work: impl FnOnce(&mut World) -> Result<()>) -> Result<(), Ending> {
    let Some(mut world) = open(options, workers)? else { return Ok(()) };
    work(&mut world).map_err(|why| {
        terminal::complain(&why.to_string());
        Ending::Said(why.exit_status())
    })
}

/// How a command failed.
#[derive(Debug)]
pub enum Ending {
    /// It is still to be said why.
    Unsaid(Error),
    /// It has been said; the exit status is left.
    Said(i32),
}

impl From<Error> for Ending {
    fn from(why: Error) -> Ending {
        Ending::Unsaid(why)
    }
}

/// The world that the options ask for; `None` if there is nothing to do for this process (a simulation runs on one of the launched ranks
/// only).
///
/// # Errors
/// Wrong usage if there are neither real nor simulated ranks, or the ranks are each alone.
fn open(options: &WorldOptions, workers: u32) -> Result<Option<World>> {
    match options.sim {
        Some(_) if !speaks() => Ok(None),
        Some(ranks) => simulated(ranks, options, workers).map(|world| Some(World::Sim(world))),
        None => real(options, workers).map(Some),
    }
}

fn simulated(ranks: u32, options: &WorldOptions, workers: u32) -> Result<sim::World> {
    memory::check_simulated(ranks, memory::available())?;
    let network = options.network.as_deref().map(sim::Network::parse).transpose()?.unwrap_or_default();
    let hosts = options.sim_hosts.map(|hosts| hosts.of(ranks)).transpose()?;
    let timeout = options.timeout.as_nanos().try_into().unwrap_or(u64::MAX);
    Ok(sim::World::new(ranks, sim::Model { network, hosts, seed: options.seed, timeout, workers, ..sim::Model::default() }))
}

/// The form of this very command that would run, as far as one can say it briefly.
fn what_to_type() -> String {
    let command = std::env::args_os().nth(1).map_or_else(|| "compare".into(), |word| word.display().to_string());
    format!("type `mpirun -n 8 equipoise {command} ..` for 8 real ranks or `equipoise {command} --sim 8 ..` for simulated ones")
}

#[cfg(not(feature = "mpi"))]
fn real(_: &WorldOptions, _: u32) -> Result<World> {
    Err(Error::usage(format!(
        "this program was built without real ranks (feature `mpi`), so --sim RANKS is needed; {}",
        what_to_type().rsplit_once(" or ").map_or(String::new(), |(_, simulated)| format!("type {simulated}"))
    )))
}

#[cfg(feature = "mpi")]
fn real(options: &WorldOptions, workers: u32) -> Result<World> {
    use equipoise::transport::mpi::{self, launcher};

    let alone = |launcher: &str, ranks: u32| {
        Error::usage(format!(
            "{launcher} started {ranks} processes, but this program is linked with another MPI ({}), so each of them takes itself for \
             the only rank; use the mpirun that belongs to it, or build equipoise with the other MPI's mpicc",
            library()
        ))
    };
    match launcher::detect(&library(), variable) {
        launcher::Launch::Alone => return Err(Error::usage(format!("there are no ranks to run on; {}", what_to_type()))),
        launcher::Launch::Singletons { launcher, ranks } => return Err(alone(launcher, ranks)),
        launcher::Launch::Launched { .. } => {}
    }
    let (timeout, seed, workers) = (options.timeout, options.seed, workers as usize);
    let world = mpi::World::init(mpi::Options { timeout, seed, workers, ..mpi::Options::default() })?;
    if let Some((launcher, ranks)) = launcher::singletons(world.ranks(), variable) {
        return Err(alone(launcher, ranks));
    }
    terminal::begin(world.rank() == 0);
    Ok(World::Mpi(world))
}

/// The circumstances of what has just been done in this world.
pub fn environment(world: &World) -> Environment {
    Environment::of(world, command::typed(world.is_simulated()), carrier())
}

#[cfg(not(feature = "mpi"))]
fn carrier() -> Option<String> {
    None
}

#[cfg(feature = "mpi")]
fn carrier() -> Option<String> {
    Some(library())
}

/// The MPI that this program is linked with: the first words of its own description.
#[cfg(feature = "mpi")]
fn library() -> String {
    let text = equipoise::transport::mpi::rsmpi::environment::library_version().unwrap_or_default();
    text.split([',', '\n']).next().unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_tells_the_rank() {
        let with = |name: &'static str, value: &'static str| move |asked: &str| (asked == name).then(|| value.to_string());
        assert_eq!(launcher_rank(with("PMI_RANK", "3")), Some(3));
        assert_eq!(launcher_rank(with("OMPI_COMM_WORLD_RANK", " 0 ")), Some(0));
        assert_eq!(launcher_rank(with("SLURM_PROCID", "x")), None);
        assert_eq!(launcher_rank(|_: &str| None), None);
    }
}
