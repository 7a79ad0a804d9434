//! A workload of tasks that spawn tasks under one or several schedulers, measured and checked.
//!
//! ```text
//!   for each seed: plain program (if there is one) -> for each scheduler, in another order each time: barrier -> run -> check on the first rank
//! ```

mod course;
mod known;
mod record;

use super::interruption::{Interruption, unless_interrupted};
use super::ranking;
use super::settle;
use super::site::Site;
use crate::workload::graphs::{self, Number, Prepared, Setting};
use course::{Course, plain_program};
use equipoise::error::Result;
use equipoise::node;
pub use equipoise::schedule::accounting::{Entry as TraceEntry, Happening};
use equipoise::schedule::{self, Options, Region, RunResult};
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::world::World;
pub use record::{NodeTimeline, ResponseTimes, Rounds, RunRecord, Scheduling, Typical};

/// Schedulers, workload and number of runs.
pub struct RunSpec {
    pub contenders: Vec<SchedulerContender>,
    pub workload: graphs::Chosen,
    /// Number of tasks that a rank executes at a time; the world must have this number of workers per rank.
    pub workers: u32,
    /// Runs under each scheduler, each with its own seed; `None` for one.
    pub repeat: Option<u32>,
    /// Seed of the first round; each further round uses the next seed.
    pub seed: u64,
    /// Whether the timeline of the first round is wanted.
    pub trace: bool,
}

/// A scheduler on its topology.
pub struct SchedulerContender {
    pub scheduler: schedule::Chosen,
    pub overlay: Overlay,
    /// Regions into which it divides the nodes; empty if it does not.
    pub regions: Vec<Region>,
    /// Relative slowdown of each task; not 0 only in tests of the measurement.
    pub drag: f64,
}

impl SchedulerContender {
    /// A scheduler on a topology that it can run on.
    ///
    /// # Errors
    /// If its options don't fit the overlay.
    pub fn new(scheduler: schedule::Chosen, overlay: Overlay) -> Result<SchedulerContender> {
        scheduler.host_on(&overlay.placement)?;
        let regions = scheduler.regions(&overlay)?;
        Ok(SchedulerContender { scheduler, overlay, regions, drag: 0.0 })
    }
}

/// The epoch of the barrier before a run.
const APART: u32 = equipoise::node::epochs::APART;

/// Runs everything. `progress` is called on every rank with the number of runs done, the number of all runs and the name of the next
/// scheduler. The records, one for each scheduler, come on the first rank; elsewhere there are none. If the world was asked to end, they are those of
/// what was measured until then, and schedulers without a measured run have none.
///
/// The plain program runs in every round, too, so that it is compared with on the same terms. On real ranks, where the first run pays for
/// connections and threads, repeated runs begin with a round that does not count; a stream has graphs of its own for that.
///
/// # Errors
/// [`Error::Lost`](equipoise::Error::Lost) on every rank if an answer is wrong, or tasks were lost; otherwise as [`World::run`] and
/// `prepare`.
pub fn run(world: &mut World, spec: &RunSpec, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<RunRecord>> {
    let site = Site::of(world, spec.seed)?;
    let measured = u64::from(spec.repeat.unwrap_or(1).max(1));
    let contenders = spec.contenders.len();
    let speeds = settle::simulated_speeds(world);
    let mut courses: Vec<Course> = spec.contenders.iter().map(|_| Course::new(&speeds)).collect();
    let mut plains = Vec::new();
    let (processors, is_simulated) = (world.ranks().saturating_mul(spec.workers), world.is_simulated());
    let prepared = |seed| spec.workload.prepare(&Setting { seed, processors, is_simulated });
    let is_warmed_up = spec.repeat.is_some() && !is_simulated && prepared(spec.seed)?.measured().is_none();
    let unmeasured = u64::from(is_warmed_up);
    let runs = (unmeasured + measured) * contenders as u64;
    let mut done = 0;
    'rounds: for round in 0..unmeasured + measured {
        // An unmeasured round has the number of the first measured one.
        let number = round.saturating_sub(unmeasured);
        let seed = spec.seed.wrapping_add(number);
        world.reseed(seed);
        let workload = prepared(seed)?;
        progress(done, runs, "the plain program");
        let before = unless_interrupted(world, |world| {
            let plain = plain_program(world, &workload)?;
            known::work_out(world, &workload)?;
            Ok(plain)
        });
        let Some(plain) = before? else { break };
        if round >= unmeasured {
            plains.push(plain);
        }
        for turn in ranking::turns(contenders, round, spec.seed) {
            let (contender, course) = (&spec.contenders[turn], &mut courses[turn]);
            progress(done, runs, &contender.scheduler.name);
            let mut options = options(spec, &workload, is_simulated, round == unmeasured);
            options.drag = contender.drag;
            course.unit = if is_simulated && workload.measured().is_some() { options.unit } else { 1_000_000_000 };
            let run = unless_interrupted(world, |world| {
                let checked = match once(world, contender, &workload, &options)? {
                    Some(outcome) => course.add(outcome, contender, spec, &workload, plain, round >= unmeasured),
                    None => Ok(()),
                };
                settle::agree(world, checked)
            });
            if run?.is_none() {
                break 'rounds;
            }
            done += 1;
        }
    }
    progress(done, runs, "");
    if !world.is_first() {
        return Ok(Vec::new());
    }
    let interrupted = Interruption::of(world, done, runs);
    plains.truncate(courses.iter().map(Course::rounds).max().unwrap_or(0));
    course::judge(&mut courses, &plains, site.cores.filter(|_| site.shares_cores()));
    let has_plain = plains.iter().any(Option::is_some);
    let measured = spec.contenders.iter().zip(courses).filter(|(_, course)| interrupted.is_none() || course.rounds() > 0);
    let record = |(contender, course): (&SchedulerContender, Course)| {
        let record = RunRecord::of_spawning(course, contender, spec, &site, has_plain)?;
        Ok(RunRecord { interrupted: interrupted.clone(), ..record })
    };
    measured.map(record).collect()
}

fn options(spec: &RunSpec, workload: &Prepared, is_simulated: bool, is_first: bool) -> Options {
    let mut options = Options::default().with_workers(spec.workers);
    options.trace = spec.trace && is_first;
    if is_simulated {
        (options.ahead_below, options.gather_below) = (0, 0);
    }
    workload.adjust(&mut options);
    options
}

/// One run. The outcome comes on the first rank.
fn once(world: &mut World, contender: &SchedulerContender, workload: &Prepared, options: &Options) -> Result<Option<RunResult<Number>>> {
    // In simulation all programs begin at the same instant.
    let barrier = !world.is_simulated();
    let outcomes = node::run(world, &contender.overlay, |node| {
        let (workload, scheduler, options) = (workload.clone(), contender.scheduler.clone(), options.clone());
        async move {
            if barrier {
                let apart = node.epoch(APART);
                apart.everyone().barrier(&apart).await?;
            }
            workload.execute(node, scheduler, options).await
        }
    })?;
    let outcome = outcomes.into_iter().map(|(_, outcome)| outcome).find(|outcome| !outcome.nodes.is_empty());
    match contender.scheduler.host_rank() {
        RankId::FIRST => Ok(outcome),
        // The host knows it, and the first rank speaks.
        host => {
            // A number is written without saying which of the two kinds it is.
            let kind = |answer| match answer {
                Number::Whole(number) => Ok(number),
                Number::Real(number) => Err(number),
            };
            let number = |kind: Result<u64, f64>| kind.map_or_else(Number::Real, Number::Whole);
            let of_host = settle::from_rank(world, host, || Ok(outcome.map(|outcome| outcome.map(kind))))?;
            Ok(of_host.filter(|_| world.is_first()).map(|outcome| outcome.map(number)))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
