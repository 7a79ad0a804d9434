//! A workload of tasks that spawn tasks under one or several schedulers, measured and checked.
//!
//! ```text
//!   plain program (if there is one) -> for each seed: for each scheduler: barrier -> run -> check on the first rank
//! ```

mod known;

use serde::Serialize;

use super::responses::Responses;
use super::settle;
use super::site::Site;
use super::statistics;
use crate::error::{Error, Result};
use crate::node::{self, Event, Node, Ticks};
pub use crate::schedule::accounting::{Entry as Line, Happening};
use crate::schedule::{self, Graph, NodeReport, Options, Outcome, Region, Summary};
use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::world::World;
use crate::workload::graphs::{self, Number, Prepared, Setting};

/// What is run under what, and how often.
pub struct RunSpec {
    pub contenders: Vec<Contender>,
    pub workload: graphs::Chosen,
    /// Tasks that a rank executes at a time. The world must have as many workers a rank.
    pub workers: u32,
    /// Runs under each scheduler, each with a seed of its own; `None` for one.
    pub repeat: Option<u32>,
    /// Of the first round; each next one has the next.
    pub seed: u64,
    /// Whether the timeline of the first round is wanted.
    pub trace: bool,
}

/// A scheduler on its topology.
pub struct Contender {
    pub scheduler: schedule::Chosen,
    pub overlay: Overlay,
    /// How it divides the nodes; empty if it does not.
    pub regions: Vec<Region>,
}

impl Contender {
    /// A scheduler on a topology that it can run on.
    ///
    /// # Errors
    /// If its options don't fit the overlay.
    pub fn new(scheduler: schedule::Chosen, overlay: Overlay) -> Result<Contender> {
        let regions = scheduler.scheduler.regions(&overlay)?;
        Ok(Contender { scheduler, overlay, regions })
    }
}

/// A workload under one scheduler. Serialised, it is a line of `run --output json`. Times are in the unit that [`Unit`] tells; where there
/// were several rounds, everything but the figures over all rounds is the first's.
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
    #[serde(flatten)]
    pub unit: Unit,
    pub tasks: u64,
    /// Parents that were resumed.
    pub joins: u64,
    pub answer: Number,
    /// What the answer is, in words.
    pub answer_is: &'static str,
    /// The answer by a table, a formula or another algorithm, or else by the plain program; it is the same, or an approximation that was asked
    /// for. `None` where nobody knows it beforehand.
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
    /// The longest task, and the longest chain of tasks of which each needs the one before.
    pub largest: f64,
    pub chain: f64,
    /// What no scheduler can beat: the longest of these and of the sequential time divided by the workers.
    pub bound: f64,
    /// The bound over the makespan.
    pub bound_efficiency: f64,
    /// How much was had of the gain over one worker that the bound leaves possible; `None` where nothing could be gained.
    pub gain: Option<f64>,
    /// From rank to rank.
    pub messages: u64,
    /// Of these, those of schedulers and of the detection of the end.
    pub control: u64,
    pub bytes: u64,
    pub migrated: u64,
    /// By rank, summed over its workers: executing tasks; not executing any.
    pub busy: Vec<f64>,
    pub idle: Vec<f64>,
    /// By rank: hearing, deciding, packing and joining.
    pub overhead: Vec<f64>,
    /// How the scheduler divides the nodes; empty if it does not.
    pub regions: Vec<Region>,
    #[serde(flatten)]
    pub rounds: Option<Rounds>,
    #[serde(flatten)]
    pub responses: Option<ResponseTimes>,
    /// Of independent tasks only.
    #[serde(flatten)]
    pub scheduling: Option<super::independent::Scheduling>,
    /// Of a stream in which graphs came faster than they were answered, in any round: then response times tell how long that lasted, no more.
    pub overload: Option<Overload>,
    /// What happened when, by node; empty unless wanted.
    #[serde(skip)]
    pub timeline: Vec<Timeline>,
}

/// In what times are given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unit {
    /// Seconds in a unit: 1, but for simulated streams, whose unit is a graph's mean time.
    #[serde(rename = "unit_seconds")]
    pub seconds: f64,
}

/// Figures over several rounds with different seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rounds {
    pub repeat: u32,
    pub makespans: Vec<f64>,
    pub makespan_mean: f64,
    /// Student's interval.
    pub makespan_ci95: [f64; 2],
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

/// Graphs a unit of time until the last one came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// That came.
    pub offered: f64,
    /// That were answered.
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
pub struct Timeline {
    pub node: NodeId,
    pub rank: RankId,
    pub entries: Vec<Line>,
}

/// The epoch of the barrier before a run.
const APART: u32 = 1;

/// What is measured of one scheduler.
struct Course {
    first: Option<(Outcome<Number>, Summary)>,
    overload: Option<Overload>,
    makespans: Vec<f64>,
    efficiencies: Vec<f64>,
    bound_efficiencies: Vec<f64>,
    gains: Vec<f64>,
    /// Of all rounds, numbered on.
    graphs: Vec<Graph>,
    counting: u64,
    unit: Ticks,
    known: Option<Number>,
}

/// The plain program's answer and time.
type Plain = Option<(Number, Ticks)>;

/// Runs everything; `progress` hears, on every rank, how many of how many runs are done, and which comes next. The records come on the
/// first rank, one for each scheduler; elsewhere there are none.
///
/// # Errors
/// [`Error::Lost`] on every rank if an answer is wrong, or tasks were lost; otherwise as [`World::run`] and
/// [`prepare`](graphs::Chosen::prepare).
pub fn run(world: &mut World, spec: &RunSpec, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<RunRecord>> {
    let site = Site::of(world, spec.seed);
    let rounds = spec.repeat.unwrap_or(1).max(1);
    let runs = u64::from(rounds) * spec.contenders.len() as u64;
    let mut courses: Vec<Course> = spec.contenders.iter().map(|_| Course::new()).collect();
    let mut plain = None;
    let mut done = 0;
    for round in 0..rounds {
        let seed = spec.seed.wrapping_add(round.into());
        world.reseed(seed);
        let setting = Setting { seed, processors: world.ranks().saturating_mul(spec.workers), is_simulated: world.is_simulated() };
        let workload = spec.workload.prepare(&setting)?;
        if round == 0 {
            progress(0, runs, "the plain program");
            plain = plain_program(world, &workload)?;
        }
        known::work_out(world, &workload)?;
        for (contender, course) in spec.contenders.iter().zip(&mut courses) {
            progress(done, runs, &contender.scheduler.name);
            let options = options(spec, &workload, world.is_simulated(), round == 0);
            course.unit = if world.is_simulated() && workload.measured().is_some() { options.unit } else { 1_000_000_000 };
            let outcome = once(world, contender, &workload, &options)?;
            let checked = match outcome {
                Some(outcome) => course.add(outcome, contender, spec, &workload, plain),
                None => Ok(()),
            };
            settle::agree(world, checked)?;
            done += 1;
        }
    }
    progress(runs, runs, "");
    if !world.is_first() {
        return Ok(Vec::new());
    }
    spec.contenders.iter().zip(courses).map(|(contender, course)| course.record(contender, spec, &site, plain.is_some())).collect()
}

fn options(spec: &RunSpec, workload: &Prepared, is_simulated: bool, is_first: bool) -> Options {
    let mut options = Options { workers: spec.workers, trace: spec.trace && is_first, ..Options::default() };
    if is_simulated {
        (options.ahead_below, options.gather_below) = (0, 0);
    }
    workload.adjust(&mut options);
    options
}

/// One run. The outcome comes where the host is.
fn once(world: &mut World, contender: &Contender, workload: &Prepared, options: &Options) -> Result<Option<Outcome<Number>>> {
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
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).find(|outcome| !outcome.nodes.is_empty()))
}

/// Runs the plain program, if there is one, on the first rank, while all others wait. In simulation its time means nothing, so it is run
/// only where the answer is not known otherwise.
fn plain_program(world: &mut World, workload: &Prepared) -> Result<Plain> {
    if world.is_simulated() {
        let answer = if workload.known().is_none() { workload.sequential() } else { None };
        return Ok(answer.map(|answer| (answer, 0)));
    }
    let overlay = settle::plain(world)?;
    let measured = node::run(world, &overlay, |node| {
        let workload = workload.clone();
        async move {
            let measured = if node.me() == 0 { measure(&node.epoch(APART), workload).await? } else { None };
            node.everyone().barrier(&node).await?;
            Ok(measured)
        }
    })?;
    Ok(measured.into_iter().find_map(|(_, plain)| plain))
}

async fn measure(node: &Node, workload: Prepared) -> Result<Plain> {
    node.start(move |_| workload.sequential());
    loop {
        match node.next_event().await {
            Event::Finished { finished, .. } => {
                let took = finished.ended - finished.began;
                let answer = finished.output.downcast::<Option<Number>>();
                let answer = answer.map_err(|_| Error::Failed("the plain program's answer is no number".into()))?;
                return Ok(answer.map(|answer| (answer, took)));
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            Event::Message(_) | Event::Timer { .. } | Event::Signal(_) => {}
        }
    }
}

impl Course {
    fn new() -> Course {
        Course {
            first: None,
            overload: None,
            makespans: Vec::new(),
            efficiencies: Vec::new(),
            bound_efficiencies: Vec::new(),
            gains: Vec::new(),
            graphs: Vec::new(),
            counting: 0,
            unit: 1,
            known: None,
        }
    }

    /// Checks a round's outcome, and takes what is wanted of it.
    fn add(&mut self, outcome: Outcome<Number>, contender: &Contender, spec: &RunSpec, workload: &Prepared, plain: Plain) -> Result<()> {
        let known = workload.known().or(plain.map(|(answer, _)| answer));
        let lost = |what: String| Error::Lost(format!("{} under {}: {what}", spec.workload.name, contender.scheduler.name));
        let known_within = known.map(|known| (known, workload.tolerance()));
        sound(&outcome, known_within, plain.map(|(answer, _)| answer), spec.workload.entry.answer == "tasks").map_err(lost)?;
        if let Some(measured) = workload.measured() {
            let from = self.counting;
            let counts = outcome.graphs.iter().filter(|graph| measured.contains(&graph.number));
            self.graphs.extend(counts.map(|graph| Graph { number: graph.number - measured.start + from, ..*graph }));
            self.counting += measured.end - measured.start;
            if self.graphs.len() as u64 != self.counting {
                let answered = self.graphs.len() as u64 - from;
                return Err(lost(format!("of {} graphs that count {answered} were answered", self.counting - from)));
            }
        }
        if outcome.gave_up && self.overload.is_none() {
            self.overload = Some(Overload::of(&outcome.graphs, self.unit));
        }
        let mut summary = Summary::of(&outcome.nodes, outcome.makespan);
        if let Some((_, ticks @ 1..)) = plain {
            summary = summary.with_sequential(ticks);
        }
        self.makespans.push(outcome.makespan as f64 / self.unit as f64);
        self.efficiencies.push(summary.efficiency);
        self.bound_efficiencies.push(if outcome.makespan == 0 { 1.0 } else { summary.bound as f64 / outcome.makespan as f64 });
        self.gains.extend(summary.gain);
        if self.first.is_none() {
            self.known = known;
            self.first = Some((outcome, summary));
        }
        Ok(())
    }

    fn record(self, contender: &Contender, spec: &RunSpec, site: &Site, has_plain: bool) -> Result<RunRecord> {
        let nothing = || Error::Failed(format!("{}: no run was measured", contender.scheduler.name));
        let (Outcome { answer, nodes, makespan, .. }, summary) = self.first.ok_or_else(nothing)?;
        let unit = self.unit as f64;
        let time = |ticks: Ticks| ticks as f64 / unit;
        let work = nodes.iter().map(|node| node.busy).sum();
        let by_rank = |part: fn(&NodeReport) -> Ticks| {
            let mut sums = vec![0.0; site.ranks as usize];
            nodes.iter().for_each(|node| sums[node.rank as usize] += time(part(node)));
            sums
        };
        let makespans = self.makespans;
        let mean = statistics::mean(&makespans).ok_or_else(nothing)?;
        let average = |figures: &[f64]| statistics::mean(figures).map(|mean| mean.value);
        let rounds = spec.repeat.map(|_| Rounds {
            repeat: makespans.len() as u32,
            makespan_mean: mean.value,
            makespan_ci95: [mean.low, mean.high],
            efficiency_mean: average(&self.efficiencies).unwrap_or(1.0),
            bound_efficiency_mean: average(&self.bound_efficiencies).unwrap_or(1.0),
            gain_mean: average(&self.gains),
            makespans: makespans.clone(),
        });
        let responses = Responses::of(&self.graphs, &(0..self.counting), self.unit);
        Ok(RunRecord {
            scheduler: contender.scheduler.name.clone(),
            workload: spec.workload.name.clone(),
            topology: contender.overlay.topology.name(),
            native: contender.overlay.placement.native(),
            site: site.clone(),
            workers: spec.workers,
            unit: Unit { seconds: unit / 1e9 },
            tasks: summary.tasks,
            joins: summary.joins,
            answer: answer.unwrap_or(Number::Whole(0)),
            answer_is: spec.workload.entry.answer,
            known: self.known,
            makespan: time(makespan),
            sequential: time(summary.sequential),
            sequential_is_plain: has_plain && site.network.is_none(),
            work: time(work),
            efficiency: summary.efficiency,
            largest: time(summary.largest),
            chain: time(summary.chain),
            bound: time(summary.bound),
            bound_efficiency: self.bound_efficiencies.first().copied().unwrap_or(1.0),
            gain: summary.gain,
            messages: summary.messages,
            control: summary.control,
            bytes: summary.bytes,
            migrated: summary.migrated,
            busy: by_rank(|node| node.busy),
            idle: by_rank(NodeReport::idle),
            overhead: by_rank(|node| node.overhead),
            regions: contender.regions.clone(),
            rounds,
            responses: responses.map(ResponseTimes::from),
            scheduling: None,
            overload: self.overload,
            timeline: nodes
                .into_iter()
                .filter(|node| !node.trace.is_empty())
                .map(|node| Timeline { node: node.node, rank: node.rank, entries: node.trace })
                .collect(),
        })
    }
}

/// Checks that no task was lost and the answer is right. The known one comes with how far a right answer may be from it.
fn sound(outcome: &Outcome<Number>, known: Option<(Number, f64)>, plain: Option<Number>, answer_is_tasks: bool) -> Result<(), String> {
    let sum = |part: fn(&NodeReport) -> u64| outcome.nodes.iter().map(part).sum::<u64>();
    let (born, ended) = (sum(|node| node.born), sum(|node| node.tasks));
    if born != ended {
        return Err(format!("{born} tasks were born, and {ended} ended"));
    }
    let (out, arrived) = (sum(|node| node.migrated_out), sum(|node| node.migrated_in));
    if out != arrived {
        return Err(format!("{out} migrations left, and {arrived} arrived"));
    }
    let answer = outcome.answer.unwrap_or(Number::Whole(0));
    for (expected, by) in [(known, "known"), (plain.map(|plain| (plain, 0.0)), "plain program's")] {
        if let Some((expected, within)) = expected
            && !is_same(answer, expected, within)
        {
            return Err(format!("the answer is {answer}, the {by} one is {expected}"));
        }
    }
    if answer_is_tasks && !is_same(answer, Number::Whole(ended), 0.0) {
        return Err(format!("the answers add up to {answer} tasks, and {ended} were executed"));
    }
    Ok(())
}

/// Whole numbers exactly; real ones but for the order of additions, and as far as an approximation may be off.
fn is_same(a: Number, b: Number, within: f64) -> bool {
    let real = |number| match number {
        Number::Whole(number) => number as f64,
        Number::Real(number) => number,
    };
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a == b,
        _ => (real(a) - real(b)).abs() <= within + 1e-9 * real(a).abs().max(real(b).abs()),
    }
}

#[cfg(test)]
mod tests;
