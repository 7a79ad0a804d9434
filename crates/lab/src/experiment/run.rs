//! A workload of tasks that spawn tasks under one or several schedulers, measured and checked.
//!
//! ```text
//!   for each seed: plain program (if there is one) -> for each scheduler, in another order each time: barrier -> run -> check on the first rank
//! ```

mod course;
mod known;

use serde::Serialize;

use super::interruption::{Interruption, unless_interrupted};
use super::ranking;
use super::responses::Responses;
use super::scheduling::Scheduling;
use super::settle;
use super::site::Site;
use crate::workload::graphs::{self, Number, Prepared, Setting};
use course::{Course, plain_program};
use equipoise::error::Result;
use equipoise::node::{self, Ticks};
pub use equipoise::schedule::accounting::{Entry as TraceEntry, Happening};
use equipoise::schedule::{self, Graph, Options, Region, RunResult};
use equipoise::topology::{NodeId, Overlay, RankId};
use equipoise::transport::world::World;

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

/// A workload under one scheduler. Serialised, it is a line of `run --output json`. Times are in units of
/// `unit_seconds`. Of several rounds everything but [`Rounds`] and the response times is the first round's.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    pub scheduler: String,
    pub workload: String,
    pub topology: String,
    /// Whether every node has a rank of its own.
    pub native: bool,
    #[serde(flatten)]
    pub site: Site,
    /// Tasks that a rank executes at a time.
    pub workers: u32,
    /// Seconds in the unit of times: 1, except for simulated streams (the mean time of a graph) and simulated independent tasks (a cycle).
    pub unit_seconds: f64,
    pub tasks: u64,
    /// Parents that were resumed.
    pub joins: u64,
    pub answer: Number,
    /// Meaning of the answer, in words.
    pub answer_is: &'static str,
    /// The answer by a table, a formula or another algorithm, or else by the plain program; it is the same, or an approximation that was asked
    /// for. `None` if it is not known beforehand.
    pub known: Option<Number>,
    /// From the first submission to the last answer.
    pub makespan: f64,
    /// The plain program's time where there is one and ranks are real, otherwise the sum of the tasks' times. Efficiency, bound and gain are
    /// all taken from it.
    pub sequential: f64,
    /// Whether it is the plain program's.
    pub sequential_is_plain: bool,
    /// Sum of the tasks' times.
    pub work: f64,
    /// Sequential time over makespan and workers.
    pub efficiency: f64,
    /// Time of the longest task, and of the longest chain of dependent tasks: the minimum over the schedulers. 0 where tasks can be split.
    pub largest: f64,
    pub chain: f64,
    /// Lower bound of the makespan: the maximum of these and of the sequential time divided by the workers, or by the cores where computing
    /// workers share them. The same for all schedulers.
    pub bound: f64,
    /// The bound over the makespan.
    pub bound_efficiency: f64,
    /// Achieved part of the gain over one worker that the bound allows; `None` where nothing could be gained.
    pub gain: Option<f64>,
    /// Messages between ranks.
    pub messages: u64,
    /// Messages of schedulers and of termination detection among these.
    pub control: u64,
    pub bytes: u64,
    pub migrated: u64,
    /// By rank, summed over its workers: executing tasks; not executing any.
    pub busy: Vec<f64>,
    pub idle: Vec<f64>,
    /// By rank: hearing, deciding, packing and joining.
    pub overhead: Vec<f64>,
    /// Regions into which the scheduler divides the nodes; empty if it does not.
    pub regions: Vec<Region>,
    #[serde(flatten)]
    pub rounds: Option<Rounds>,
    #[serde(flatten)]
    pub responses: Option<ResponseTimes>,
    /// Figures of independent tasks.
    #[serde(flatten)]
    pub scheduling: Option<Scheduling>,
    /// Set for a stream whose graphs arrived faster than they were answered in any round: its response times depend on its length.
    pub overload: Option<Overload>,
    /// Set if the runs ended early: the record covers the rounds until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// Rank in the list of the simplest schedulers, which decides between equally good ones.
    #[serde(skip)]
    pub simplicity: usize,
    /// Trace of each node; empty unless requested.
    #[serde(skip)]
    pub timeline: Vec<NodeTimeline>,
}

impl RunRecord {
    /// Busy time of a rank, mean over the ranks.
    pub fn mean_busy(&self) -> f64 {
        self.busy.iter().sum::<f64>() / self.busy.len().max(1) as f64
    }

    /// Busy time of the busiest rank.
    pub fn most_busy(&self) -> f64 {
        self.busy.iter().copied().fold(0.0, f64::max)
    }

    /// Parallel efficiency, and the part of the bound that was reached: means over the rounds if there were several.
    pub fn efficiencies(&self) -> [f64; 2] {
        match &self.rounds {
            Some(rounds) => [rounds.efficiency_mean, rounds.bound_efficiency_mean],
            None => [self.efficiency, self.bound_efficiency],
        }
    }
}

/// Figures over several rounds with different seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rounds {
    pub repeat: u32,
    pub makespans: Vec<f64>,
    /// Sequential time in each round: of the plain program, or the sum of all tasks.
    pub sequentials: Vec<f64>,
    /// Mean response times of a stream; empty for others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<f64>,
    pub makespan_mean: f64,
    /// Student's interval; `None` after one round.
    pub makespan_ci95: Option<[f64; 2]>,
    pub efficiency_mean: f64,
    pub bound_efficiency_mean: f64,
    /// Over the rounds in which something could be gained.
    pub gain_mean: Option<f64>,
}

/// The response times of a stream's graphs, over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseTimes {
    pub graphs: u64,
    pub response_mean: f64,
    pub response_ci95: [f64; 2],
    pub response_p50: f64,
    pub response_p90: f64,
    pub response_p95: f64,
    pub response_p99: f64,
    pub response_max: f64,
}

impl From<Responses> for ResponseTimes {
    fn from(responses: Responses) -> ResponseTimes {
        let Responses { graphs, mean, p50, p90, p95, p99, most } = responses;
        ResponseTimes {
            graphs,
            response_mean: mean.value,
            response_ci95: [mean.low, mean.high],
            response_p50: p50,
            response_p90: p90,
            response_p95: p95,
            response_p99: p99,
            response_max: most,
        }
    }
}

/// Graphs per unit of time until the last arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Rate of arrival.
    pub offered: f64,
    /// Rate of answers.
    pub served: f64,
}

impl Overload {
    fn of(graphs: &[Graph], unit: Ticks) -> Overload {
        let last = graphs.iter().map(|graph| graph.submitted).max().unwrap_or(0);
        let answered = graphs.iter().filter(|graph| graph.answered <= last).count();
        let rate = |count: usize| count as f64 * unit as f64 / last.max(1) as f64;
        Overload { offered: rate(graphs.len()), served: rate(answered) }
    }
}

/// A node's timeline.
#[derive(Clone, Debug)]
pub struct NodeTimeline {
    pub node: NodeId,
    pub rank: RankId,
    pub entries: Vec<TraceEntry>,
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
    let measured = spec.repeat.unwrap_or(1).max(1);
    let contenders = spec.contenders.len();
    let mut courses: Vec<Course> = spec.contenders.iter().map(|_| Course::new()).collect();
    let mut plains = Vec::new();
    let (processors, is_simulated) = (world.ranks().saturating_mul(spec.workers), world.is_simulated());
    let prepared = |seed| spec.workload.prepare(&Setting { seed, processors, is_simulated });
    let is_warmed_up = spec.repeat.is_some() && !is_simulated && prepared(spec.seed)?.measured().is_none();
    let unmeasured = u32::from(is_warmed_up);
    let runs = u64::from(unmeasured + measured) * contenders as u64;
    let mut done = 0;
    'rounds: for round in 0..unmeasured + measured {
        // An unmeasured round has the number of the first measured one.
        let number = round.saturating_sub(unmeasured);
        let seed = spec.seed.wrapping_add(number.into());
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
        let record = course.record(contender, spec, &site, has_plain)?;
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
