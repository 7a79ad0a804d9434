//! Real ranks: the world that runs under an MPI launcher, and the only place that knows MPI.
//!
//! ```no_run
//! use equipoise::transport::mpi;
//!
//! let world = mpi::World::init(mpi::Options::default())?;
//! println!("rank {} of {} on {}", world.rank(), world.ranks(), world.hosts().name(world.hosts().host_of(world.rank())));
//! # Ok::<(), equipoise::Error>(())
//! ```
//!
//! A program that uses MPI itself builds a world [on its own communicator](World::on); equipoise works on duplicates and never sends on the
//! caller's. The crate of the bindings is re-exported as [`rsmpi`].
//!
//! # How it works
//!
//! All MPI calls stay on the thread that initialised MPI (*funneled*). The executor (`executor.rs`) polls the programs of the rank's nodes
//! and, while they wait, polls the network: the outbox (`outbox.rs`) takes back what has left, `incoming.rs` takes through one posted
//! receive what has come and puts it into the node's inbox. Opaque work runs on worker threads (`workers.rs`), sliced work between two
//! looks. The watchdog (`watchdog.rs`) talks to the other ranks below all that. A rank whose program fails [ends the whole job](abort), and
//! where the [options](Options) ask for it, so does one that panics, on whichever thread.
//!
//! Errors of MPI are returned by every call and end the job with a sentence that names the call: plain MPI cannot go on without a rank.

pub(crate) mod abandoned;
pub mod abort;
// Calls of C functions, each with the reason why it is sound.
#[allow(unsafe_code, non_camel_case_types, non_snake_case)]
mod binding;
mod carrier;
// MPI's own collective operations, each with what MPI reads and writes.
#[allow(unsafe_code)]
mod collectives;
mod executor;
// Further needs of a guest: a caller's communicator, a caller's buffers, and a counter that ranks share.
#[allow(unsafe_code)]
pub(crate) mod foreign;
pub(crate) mod guest;
// Calls of C functions, each with the reason why it is sound.
#[allow(unsafe_code)]
mod ffi;
mod heartbeat;
mod incoming;
mod local_nodes;
mod losses;
mod operations;
mod outbox;
mod outgoing;
mod pool;
mod port;
// Calls of C functions, each with the reason why it is sound.
#[allow(unsafe_code)]
mod sends;
// Memory that ranks of one host share.
#[allow(unsafe_code)]
mod shared_memory;
pub mod signals;
mod watchdog;
mod workers;

use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

/// The bindings, for programs that use MPI themselves.
#[cfg(feature = "mpi")]
pub use ::mpi as rsmpi;
use log::debug;

use self::binding::{MPI_Comm, Universe};

use self::carrier::{Carrier, Links, State};
use self::ffi::Comm;
use self::heartbeat::Heartbeat;
use self::signals::Caught;
pub use self::watchdog::Watch;
use super::Program;
use super::interrupt::Interrupt;
use super::{Port, launcher};
use crate::error::{Error, Result};
use crate::topology::{Hosts, NodeId, Overlay, RankId};

/// The status of a job that the watchdog ended.
pub const STUCK: i32 = 3;

/// A timeout beyond this counts as this: some thirty years.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(1_000_000_000);

/// Options of a world. They must be the same on all ranks, except for the number of workers.
///
/// A world is a guest by default: it runs no watchdog, and changes nothing in the process that it lives in. Options for a program that does nothing
/// else are in [`program`](Options::program).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Condition on which the job counts as stuck. Then every rank reports its waits, and the job ends with status 3.
    pub watchdog: Watch,
    /// Whether SIGUSR1 and SIGUSR2 are delivered to the nodes of a run as events, instead of ending the process. After the world has ended
    /// they are ignored. Needs the feature `signals`: without it, a world with this set is not opened.
    pub signals: bool,
    /// Whether a panic on any thread of the process ends the whole job with status 101, from now on. Otherwise it unwinds as usual; a world
    /// that is dropped meanwhile does not wait for the other ranks, and leaves them to the launcher.
    pub ends_on_panic: bool,
    /// Whether a run continues when a rank dies, where MPI can: Open MPI 5, found at run time, under `mpirun --with-ft ulfm`. Programs
    /// receive an event, and the world ends by [`leave`](World::leave). Otherwise the death of a rank ends the job.
    pub survives: bool,
    /// Seed; the same seed repeats all random decisions.
    pub seed: u64,
    /// Threads per rank for opaque work, started when the first comes; at least one.
    pub workers: usize,
    /// Maximum size in bytes of a body that travels in one message with its header, which costs one copy; longer bodies are not copied.
    /// Together they should be within MPI's eager limit (4 KiB over shared memory in Open MPI): a message that needs its sender's help
    /// to arrive holds up those of other ranks.
    pub inline: usize,
    /// Size in bytes of the pieces in which longer bodies travel: MPI counts in C ints.
    pub chunk: usize,
    /// Number of unsent bytes from which on `ready_to_send` waits.
    pub outbox: usize,
    /// Maximum number of bytes of receive buffers that are kept for reuse, once no slice of their old bodies is left.
    pub spare: usize,
    /// Time for which sliced work runs between two polls of the network.
    pub slice: Duration,
    /// The longest sleep of a rank whose worker is busy, or that others may ask and have asked lately.
    pub prompt_nap: Duration,
    /// The longest sleep of a rank that waits for one other, or has waited for long.
    pub longest_nap: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            watchdog: Watch::Off,
            signals: false,
            ends_on_panic: false,
            survives: false,
            seed: 0,
            workers: 1,
            inline: 4000,
            chunk: 1 << 30,
            outbox: 64 << 20,
            spare: 64 << 20,
            slice: Duration::from_micros(50),
            prompt_nap: Duration::from_micros(200),
            longest_nap: Duration::from_millis(1),
        }
    }
}

impl Options {
    /// The same with another watchdog.
    #[must_use]
    pub fn with_watchdog(self, watchdog: Watch) -> Options {
        Options { watchdog, ..self }
    }

    /// The same with another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Options {
        Options { seed, ..self }
    }

    /// The same with another number of worker threads per rank.
    #[must_use]
    pub fn with_workers(self, workers: usize) -> Options {
        Options { workers, ..self }
    }

    /// Options for a program that only runs on the world, as `equipoise` does: any failure of a rank ends the job, and so do five minutes without
    /// progress on any rank. Needs the feature `signals`.
    pub fn program() -> Options {
        let watchdog = Watch::Always(Duration::from_secs(300));
        Options { watchdog, signals: true, ends_on_panic: true, ..Options::default() }
    }
}

/// The MPI of this process: the first words of its own description. Empty if there is none.
pub fn library() -> String {
    let text = binding::library_version();
    text.split([',', '\n']).next().unwrap_or_default().trim().to_string()
}

/// The MPI of this process in one line: the standard that it keeps, its own description, and how it was found.
///
/// # Errors
/// If this program looks for MPI when it runs (feature `mpi-dynamic`) and there is none.
pub fn description() -> Result<String> {
    let found = binding::found().map_err(Error::Failed)?;
    let text = binding::library_version();
    let text = text.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let (version, subversion) = binding::standard_version();
    Ok(format!("MPI {version}.{subversion}: {text} ({found})"))
}

/// The [`description`] of the MPI that the program around has by now; `None` if it has none. None is loaded, since the program may load its own
/// later.
pub fn description_if_loaded() -> Option<Result<String>> {
    binding::is_loaded().then(description)
}

/// Returns true if MPI was initialised in this process, which is possible only once.
pub fn is_initialised() -> bool {
    binding::is_initialized()
}

/// The ranks of an MPI job, or of one of its communicators.
///
/// It stays on the thread that made it. Dropping it waits until all ranks do the same, and finalises MPI if [`init`](World::init) made it.
pub struct World {
    carrier: Rc<Carrier>,
    hosts: Hosts,
    /// A run was left in its middle: the other ranks are still in it.
    gave_up: Cell<bool>,
    /// Unregistered when the world goes.
    _signals: Caught,
    /// Dropped last: everything of MPI is gone by then.
    universe: Option<Universe>,
}

impl World {
    /// The ranks that a launcher started, with MPI initialised; `None` if no launcher started this process, which may simulate instead.
    ///
    /// # Errors
    /// Wrong usage if the launcher is another MPI's, so that each process would take itself for the only rank; otherwise as
    /// [`init`](World::init).
    pub fn launched(options: Options) -> Result<Option<World>> {
        if !launcher::started(&library(), launcher::variable)? {
            return Ok(None);
        }
        let world = World::init(options)?;
        debug!("a launcher started this process as rank {} of {}", world.rank(), world.ranks());
        match launcher::singletons(world.ranks(), launcher::variable) {
            Some((launcher, ranks)) => Err(launcher::alone(&library(), launcher, ranks)),
            None => Ok(Some(world)),
        }
    }

    /// Initialises MPI. What the options ask for as to signals and panics holds from before that.
    ///
    /// # Errors
    /// If MPI was initialised in this process before, which it can be once only; or if MPI fails.
    pub fn init(options: Options) -> Result<World> {
        prepare(&options)?;
        binding::found().map_err(Error::Failed)?;
        let Some((universe, lives_with_threads)) = binding::initialise() else {
            return Err(Error::Failed("MPI was initialised in this process before, and it can be once only".into()));
        };
        if !lives_with_threads {
            return Err(Error::Failed("this MPI cannot live in a process with threads (it does not offer MPI_THREAD_FUNNELED)".into()));
        }
        World::over(ffi::world(), Some(universe), options)
    }

    /// Stands on a communicator of the caller's, which is duplicated and otherwise left alone. All its ranks must call this, each on
    /// the thread that initialised MPI. The world must be dropped before MPI is finalised.
    ///
    /// An error of a program that runs on the world ends the job. Beyond that, only what the [options](Options) ask for changes for the
    /// caller.
    ///
    /// # Errors
    /// If MPI is not initialised, or this is not the thread that did it; or if MPI fails.
    #[cfg(feature = "mpi")]
    pub fn on(comm: &impl rsmpi::traits::AsRaw<Raw = rsmpi::ffi::MPI_Comm>, options: Options) -> Result<World> {
        if !ffi::is_active() {
            return Err(Error::Failed("MPI is not initialised, so there is no communicator to stand on".into()));
        }
        if !ffi::may_call()? {
            return Err(Error::Failed("a world must be made on the thread that initialised MPI".into()));
        }
        prepare(&options)?;
        World::over(comm.as_raw(), None, options)
    }

    fn over(comm: MPI_Comm, universe: Option<Universe>, options: Options) -> Result<World> {
        if options.survives && ffi::survive() {
            debug!("the job survives the death of a rank");
        }
        let comm = Comm::duplicate(comm)?;
        let bulk = comm.another()?;
        // Any longer and the watchdog could not add and double it.
        let options = Options { watchdog: options.watchdog.at_most(LONGEST_TIMEOUT), ..options };
        let names = host_names(&comm)?;
        let (rank, ranks) = (comm.rank()?, comm.size()?);
        let host = names.get(rank.index()).cloned().unwrap_or_default();
        let signals = Caught::begin(options.signals)?;
        let began = Instant::now();
        let state = RefCell::new(State::new(Links { comm, bulk }, host.clone(), &options, began, signals.flags.clone())?);
        let heartbeat = Heartbeat::default();
        if let Some(timeout) = options.watchdog.timeout() {
            heartbeat.watch(rank, timeout)?;
        }
        debug!("rank {rank} of {ranks} on {host}, process {}, {}: {options:?}", std::process::id(), library());
        let seed = Cell::new(options.seed);
        let native = Cell::new(false);
        let carrier = Rc::new(Carrier { rank, ranks, options, began, heartbeat, state, seed, native });
        Ok(World { carrier, hosts: Hosts::from_names(&names), gave_up: Cell::new(false), _signals: signals, universe })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.carrier.ranks
    }

    /// This process's rank.
    pub fn rank(&self) -> RankId {
        self.carrier.rank
    }

    /// Hosts of the ranks, by the processor names that MPI gives.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Replaces the map of hosts by one with more known of the same hosts.
    pub(crate) fn use_hosts(&mut self, hosts: Hosts) {
        self.hosts = hosts;
    }

    /// The options of this world.
    pub fn options(&self) -> &Options {
        &self.carrier.options
    }

    /// Changes the seed that the programs of later runs see. Every rank must call this with the same one.
    pub fn reseed(&mut self, seed: u64) {
        self.carrier.seed.set(seed);
    }

    /// Number of MPI's own collective operations that programs of this rank have begun so far.
    pub fn native_operations(&self) -> u64 {
        self.carrier.state.borrow().collectives.begun()
    }

    /// Selects MPI's own operations for sums, scans and all-gathers of later runs, where each rank has one node. Collective; every rank
    /// passes the same value.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn use_native_collectives(&mut self, native: bool) -> Result<()> {
        self.carrier.native.set(native);
        if native && self.ranks() > 1 {
            self.carrier.state.borrow_mut().open_collectives()?;
        }
        Ok(())
    }

    /// Runs a program on every node of the overlay that this rank hosts, and returns their results in node order. Every rank must call
    /// this with the same overlay. When it returns, no message of the run is left anywhere.
    ///
    /// An error of a program ends the job with the error's [exit status](Error::exit_status), so it does not return.
    ///
    /// # Errors
    /// If the overlay is not for this number of ranks. [`Error::Interrupted`] on rank 0, if it gave up: then the job ends with that
    /// [status](Error::exit_status) when the world is dropped.
    pub(crate) fn run<T: 'static>(&mut self, overlay: &Overlay, program: impl FnMut(Port) -> Program<T>) -> Result<Vec<(NodeId, T)>> {
        let planned = overlay.placement.ranks();
        if planned != self.ranks() {
            return Err(Error::usage(format!("the overlay is for {planned} ranks, and there are {}", self.ranks())));
        }
        executor::run(&self.carrier, overlay, program).ok_or_else(|| {
            self.gave_up.set(true);
            Error::Interrupted
        })
    }

    /// Lets rank 0 give up a run, from now on, when this request is overdue.
    pub(crate) fn end_on(&mut self, interrupt: &Interrupt) {
        self.carrier.state.borrow_mut().interrupt = Some(interrupt.clone());
    }

    /// Returns true if a run continues when a rank dies: the options ask for it, and MPI and its launcher support it.
    pub fn survives(&self) -> bool {
        self.options().survives && ffi::survives()
    }

    /// Ends this process with a status, as soon as all ranks that are left do so, without ending MPI: its end may wait for ranks that are lost. For a
    /// world that [survives](World::survives) the death of ranks.
    pub fn leave(&self, status: i32) -> ! {
        self.carrier.heartbeat.stop();
        let state = self.carrier.state.borrow();
        losses::leave(|| state.links.as_ref().map_or(Ok(()), |links| links.comm.agree()), status)
    }

    /// Ends the whole job because of an error that this rank found between two runs: prints it, and exits with its status.
    pub fn fail(&self, why: &Error) -> ! {
        executor::fail(&self.carrier, why)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        debug!("rank {} closes its world", self.rank());
        self.carrier.heartbeat.stop();
        if thread::panicking() || !self.carrier.state.borrow().lost.is_empty() {
            // The others may wait for what this rank will never send, here and in MPI's finalisation: the launcher ends them.
            mem::forget(self.universe.take());
            return;
        }
        if !ffi::is_active() {
            return;
        }
        if self.gave_up.get() {
            debug!("rank {} ends the job, whose other ranks are still in a run", self.rank());
            abort::flush();
            ffi::abort(Error::Interrupted.exit_status());
        }
        // Everybody's last words have left and arrived before the communicators go. Without the watchdog: some rank may have much to do
        // after the last run.
        executor::quiesce(&self.carrier, false);
        if let Err(why) = self.carrier.state.borrow_mut().close() {
            abort::say(&format!("equipoise: rank {}: {why}", self.rank()));
        }
    }
}

/// Does what the options ask for before there is a world.
fn prepare(options: &Options) -> Result<()> {
    if options.ends_on_panic {
        abort::on_panic();
    }
    if options.signals { signals::survive() } else { Ok(()) }
}

/// Every rank's processor name. All ranks must take part.
fn host_names(comm: &Comm) -> Result<Vec<String>> {
    /// Longer names are cut: no MPI has longer ones than 256 bytes.
    const NAME: usize = 256;
    let name = binding::processor_name().ok_or_else(|| Error::Failed("MPI's name of this processor is not UTF-8".into()))?;
    let mut mine = [0u8; NAME];
    let length = name.len().min(NAME);
    mine[..length].copy_from_slice(&name.as_bytes()[..length]);
    let all = comm.all_gather(&mine)?;
    let names = all.chunks(NAME).map(|name| {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&name[..length]).into_owned()
    });
    Ok(names.collect())
}
