//! From the environment and the options to a world.

use std::thread;
use std::time::Duration;

use equipoise::names;
use equipoise::spec::{InvalidSpec, Mistake};
use equipoise::topology::RankId;
use equipoise::transport::interrupt::Interrupt;
use equipoise::transport::launcher;
use equipoise::transport::sim;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::{Environment, settle};
use equipoise_lab::workload::{memory, network};

use super::options::{GraceOption, WorldOptions};
use super::start;
use super::{command, terminal};

/// Returns true if this process is the one of its job that prints, by the environment.
pub fn speaks() -> bool {
    launcher::rank(launcher::variable).is_none_or(|rank| rank == RankId::FIRST)
}

/// Makes this process a rank, before anything can go wrong: only one of the job's speaks, and the signals that come before the time is over
/// end none.
pub fn begin() {
    terminal::begin(speaks());
    #[cfg(feature = "_ranks")]
    if let Err(why) = equipoise::transport::mpi::signals::survive() {
        terminal::complain(&sentence(&why));
    }
}

/// Compares how this process and the others of its job were started, where it needs no ranks itself: with another command the others may
/// wait for it. What is wrong has been said when this returns.
///
/// # Errors
/// Wrong usage on all ranks if they were not started alike.
pub fn meet() -> Result<(), Ending> {
    compare_if_possible().map(|_| ())
}

/// True if the ranks have compared how they were started, just now.
#[cfg(feature = "_ranks")]
fn compare_if_possible() -> Result<bool, Ending> {
    use equipoise::transport::mpi;

    if mpi::is_initialised() || !launcher::has_company(mpi::library, launcher::variable) {
        return Ok(false);
    }
    // A job that is none after all, or an MPI that fails, does no harm here.
    let Ok(world) = mpi::World::init(mpi::Options::program()) else { return Ok(false) };
    let has_company = world.ranks() > 1;
    if has_company {
        terminal::begin(world.rank() == RankId::FIRST);
    }
    compared(World::from(world)).map(|_| has_company)
}

#[cfg(not(feature = "_ranks"))]
fn compare_if_possible() -> Result<bool, Ending> {
    Ok(false)
}

/// The world, if all its ranks were started alike. Otherwise it is said before the world ends.
#[cfg(feature = "_ranks")]
fn compared(mut world: World) -> Result<World, Ending> {
    match start::compare(&mut world) {
        Ok(()) => Ok(world),
        // Its own refusal has been said.
        Err(why) if start::is_refused() => Err(Ending::Said(why.exit_status())),
        Err(why) => Err(said(&why)),
    }
}

/// Refuses to begin. The speaking process prints the reason, and the other ranks are informed.
pub fn refuse(why: &str) {
    start::note_refusal(why);
    if let Ok(false) = compare_if_possible() {
        terminal::let_the_speaker_speak();
    }
}

/// The sentence about an error. Where it is about something that an option has given, it begins with the option.
pub fn sentence(why: &Error) -> String {
    match (why.subject(), why) {
        (Some(subject), Error::Spec(InvalidSpec { mistake: Mistake::SeveralNames, .. })) => match subject {
            "balancer" => format!("--{why}; `equipoise compare --balancer` takes a list"),
            "scheduler" => format!("--{why}; `equipoise run --compare` takes a list"),
            _ => format!("--{why}"),
        },
        (Some(_), _) => format!("--{why}"),
        (None, _) => why.to_string(),
    }
}

fn said(why: &Error) -> Ending {
    terminal::complain(&sentence(why));
    Ending::Said(why.exit_status())
}

/// Does something in the world that the options ask for. What goes wrong there is said before the world ends: its end waits for all ranks,
/// so none of them is gone, and the others killed by the launcher, before the sentence is out.
///
/// # Errors
/// How the process is to end, if not well.
pub fn within(options: &WorldOptions, work: impl FnOnce(&mut World) -> Result<()>) -> Result<(), Ending> {
    within_with_workers(options, 1, work)
}

/// The same with a number of workers on each rank.
///
/// # Errors
/// As [`within`].
pub fn within_with_workers(options: &WorldOptions, workers: u32, work: impl FnOnce(&mut World) -> Result<()>) -> Result<(), Ending> {
    let Some(mut world) = open(options, workers)? else { return Ok(()) };
    let ending = match work(&mut world) {
        Ok(()) if world.interrupted().is_none() => return Ok(()),
        // The record says it.
        Ok(()) => Ending::Said(Error::Interrupted.exit_status()),
        Err(why) => said(&why),
    };
    if let Ending::Said(status) = ending {
        end_soon(status);
    }
    Err(ending)
}

/// The same for a series of phases or runs, which SIGUSR1 and SIGTERM end with what was finished by then; see [`interrupt`].
///
/// # Errors
/// As [`within`]; with the status of [`Error::Interrupted`] if it ended early.
///
/// [`interrupt`]: equipoise::transport::interrupt
pub fn within_until_told(
    options: &WorldOptions,
    workers: u32,
    grace: &GraceOption,
    work: impl FnOnce(&mut World) -> Result<()>,
) -> Result<(), Ending> {
    within_with_workers(options, workers, |world| {
        let interrupt = Interrupt::new(grace.grace);
        settle::agree(world, interrupt.on_signals())?;
        world.end_on(&interrupt);
        work(world)
    })
}

/// Sees to it that a process that has said its last sentence ends, even if MPI's own end waits for something that never comes: a launcher whose
/// books are in disorder, a rank that is gone.
fn end_soon(status: i32) {
    /// Time that the end of a large job takes on a busy machine.
    const ENOUGH: Duration = Duration::from_secs(10);
    // Without a thread the process ends as MPI lets it.
    let _ = thread::Builder::new().name("end".into()).spawn(move || {
        thread::sleep(ENOUGH);
        // Leaving may wait for MPI, too.
        let _ = thread::Builder::new().name("last end".into()).spawn(|| {
            thread::sleep(ENOUGH / 5);
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        });
        std::process::exit(status)
    });
}

/// Failure of a command.
#[derive(Debug)]
pub enum Ending {
    /// The error is still to be printed.
    Unsaid(Error),
    /// The error has been printed; only the exit status is left.
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
/// Wrong usage if there are neither real nor simulated ranks, the ranks are each alone, or they were not started alike.
fn open(options: &WorldOptions, workers: u32) -> Result<Option<World>, Ending> {
    let Some(ranks) = options.sim else {
        if options.network.is_some() && !options.predicts {
            return Err(Ending::Unsaid(Error::usage("--network: it is the network of simulated ranks; say --sim RANKS, too")));
        }
        // Not by clap, which drops the requirement where another option conflicts with --sim.
        if options.sim_hosts.is_some() {
            return Err(Ending::Unsaid(Error::usage("--sim-hosts: these are the hosts of simulated ranks; say --sim RANKS, too")));
        }
        return real(options, workers).map(Some);
    };
    meet()?;
    match speaks() {
        true => Ok(Some(World::from(simulated(ranks, options, workers)?))),
        false => Ok(None),
    }
}

fn simulated(ranks: u32, options: &WorldOptions, workers: u32) -> Result<sim::World> {
    memory::check_simulated(ranks, memory::available())?;
    let (network, speeds) = match options.network.as_deref() {
        Some(file) if network::is_file(file) => {
            if options.sim_hosts.is_some() {
                return Err(Error::usage(format!("--sim-hosts: the hosts are those of --network {file}")));
            }
            let measured = network::read(file)?.on(ranks)?;
            let speeds = measured.speeds.clone();
            (measured.network(), speeds)
        }
        model => (model.map(network::model).transpose()?.unwrap_or_default(), Vec::new()),
    };
    let hosts = options.sim_hosts.map(|hosts| hosts.of(ranks)).transpose()?;
    let timeout = options.timeout.as_nanos().try_into().unwrap_or(u64::MAX);
    Ok(sim::World::new(ranks, sim::Model { network, speeds, hosts, seed: options.seed, timeout, workers, ..sim::Model::default() }))
}

/// The form of this very command that would run, as far as one can say it briefly.
fn what_to_type() -> String {
    let command = std::env::args_os().nth(1).map_or_else(|| "compare".into(), |command| names::shown_argument(&command));
    format!("type `mpirun -n 8 equipoise {command} ..` for 8 real ranks or `equipoise {command} --sim 8 ..` for simulated ones")
}

#[cfg(not(feature = "_ranks"))]
fn real(_: &WorldOptions, _: u32) -> Result<World, Ending> {
    Err(Ending::Unsaid(Error::usage(format!(
        "this program was built without real ranks (features `mpi`, `mpi-dynamic`), so --sim RANKS is needed; {}",
        what_to_type().rsplit_once(" or ").map_or(String::new(), |(_, simulated)| format!("type {simulated}"))
    ))))
}

#[cfg(feature = "_ranks")]
fn real(options: &WorldOptions, workers: u32) -> Result<World, Ending> {
    use equipoise::transport::mpi::{self, Watch};

    let (watchdog, seed, workers) = (Watch::Always(options.timeout), options.seed, workers as usize);
    let (survives, nap) = (options.survives, options.nap);
    let mut options = mpi::Options::program().with_watchdog(watchdog).with_seed(seed).with_workers(workers);
    options.survives = survives;
    if let Some(nap) = nap {
        (options.prompt_nap, options.longest_nap) = (nap, nap);
    }
    let world = mpi::World::launched(options)?;
    let world = world.ok_or_else(|| Error::usage(format!("there are no ranks to run on; {}", what_to_type())))?;
    terminal::begin(world.rank() == RankId::FIRST);
    compared(World::from(world))
}

/// The environment of the last operation in this world.
pub fn environment(world: &World) -> Environment {
    Environment::of(world, command::typed(world.is_simulated()), carrier())
}

#[cfg(not(feature = "_ranks"))]
fn carrier() -> Option<String> {
    None
}

#[cfg(feature = "_ranks")]
fn carrier() -> Option<String> {
    Some(equipoise::transport::mpi::library())
}

/// Text of `--version`, including the MPI in use.
#[cfg(feature = "_ranks")]
pub fn version() -> String {
    let mpi = equipoise::transport::mpi::description().unwrap_or_else(|why| why.to_string());
    format!("{}\n{mpi}", env!("CARGO_PKG_VERSION"))
}

/// Text of `--version`.
#[cfg(not(feature = "_ranks"))]
pub fn version() -> String {
    format!("{}\nbuilt without MPI (features `mpi`, `mpi-dynamic`): simulated ranks only", env!("CARGO_PKG_VERSION"))
}
