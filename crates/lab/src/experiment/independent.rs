//! Independent tasks under one or several schedulers: measured, checked, and compared with lower bounds and static heuristics.

use std::sync::Arc;

use super::interruption::{Interruption, unless_interrupted};
use super::ranking;
use super::run::{Rounds, RunRecord};
use super::scheduling::Scheduling;
use super::settle;
use super::site::Site;
use super::statistics;
use crate::bounds::Judgement;
use crate::workload::graphs::Number;
use crate::workload::independent::{self, REAL_CYCLE, Setting};
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Checksum, Cost, Costs, Segment};
use equipoise::node;
use equipoise::schedule::independent::{Chosen, Figures, Independent, IndependentResult, Pace};
use equipoise::topology::Overlay;
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;

/// Schedulers, workload and number of runs.
pub struct IndependentSpec {
    pub contenders: Vec<Chosen>,
    pub workload: independent::Chosen,
    /// Runs under each scheduler, each with its own seed; `None` for one.
    pub repeat: Option<u32>,
    /// Seed of the first round; each further round uses the next seed.
    pub seed: u64,
    /// Relative speed of each rank; empty if all are 1.
    pub speeds: Vec<f64>,
}

/// Ticks in a cycle of virtual time.
const SIMULATED_CYCLE: u64 = 1_000_000;
/// A rank fetches more work this long before it runs out: twice the longest nap of real ranks, and the latency.
const REAL_AHEAD: u64 = 500_000;
const SIMULATED_AHEAD: u64 = 100_000;
/// The epoch of the barrier before a run.
const APART: u32 = equipoise::node::epochs::APART;

/// The tasks of a round, with their bounds and heuristics.
struct Round {
    costs: Arc<Costs>,
    arrivals: Vec<Cost>,
    known: u64,
    sequential: Option<f64>,
    optimum: Option<Cost>,
    judgement: Judgement,
    /// Mean cost of a task over the ranks that can run it, in cycles.
    mean_cost: f64,
}

impl Round {
    fn new(work: &dyn Independent, known: u64, sequential: Option<f64>, optimum: Option<Cost>) -> Round {
        let (costs, arrivals) = (work.costs().clone(), work.arrivals().to_vec());
        let mut judgement = Judgement::of(&costs);
        // No task ends before it has arrived.
        let ends = arrivals.iter().enumerate().map(|(task, at)| at.saturating_add(costs.least(task)));
        judgement.lower_bound = ends.fold(judgement.lower_bound, Cost::max);
        let finite = || costs.rows().flatten().filter(|cost| **cost != equipoise::load::NEVER);
        let mean_cost = finite().map(|cost| *cost as f64).sum::<f64>() / finite().count().max(1) as f64 / CYCLE as f64;
        Round { costs, arrivals, known, sequential, optimum, judgement, mean_cost }
    }

    /// Checks that the claimed optimum is not below the lower bound nor above a heuristic.
    fn is_sound(&self) -> Result<()> {
        let Some(optimum) = self.optimum else { return Ok(()) };
        let Judgement { lower_bound, earliest_completion, min_min, sufferage } = self.judgement;
        let cycles = |cost: Cost| cost as f64 / CYCLE as f64;
        let refuse = |why: String| Err(Error::input("workload", format!(": the optimum {} {why}", cycles(optimum))));
        // Heuristics know of no arrivals.
        let reached = [Some(earliest_completion), min_min, sufferage].into_iter().flatten().min().filter(|_| self.arrivals.is_empty());
        match reached {
            _ if optimum < lower_bound => refuse(format!("is below {}, than which no schedule is shorter", cycles(lower_bound))),
            Some(reached) if optimum > reached => refuse(format!("is above {}, which a simple heuristic reaches", cycles(reached))),
            _ => Ok(()),
        }
    }
}

/// Runs everything. `progress` is called on every rank with the number of runs done, the number of all runs and the name of the next
/// scheduler. The records, one for each scheduler, come on the first rank; elsewhere there are none. If the world was asked to end, they are those of
/// what was measured until then, and schedulers without a measured run have none.
///
/// # Errors
/// [`Error::Lost`] on every rank if a task was lost or executed twice; otherwise as [`World::run`] and `problem`.
pub fn run_independent(world: &mut World, spec: &IndependentSpec, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<RunRecord>> {
    let site = Site::of(world, spec.seed)?;
    let ranks = world.ranks() as usize;
    if !spec.speeds.is_empty() && spec.speeds.len() != ranks {
        return Err(Error::usage(format!("--speeds: there are {} speeds, and {ranks} ranks", spec.speeds.len())));
    }
    let measured = spec.repeat.unwrap_or(1).max(1);
    let contenders = spec.contenders.len();
    // On real ranks the first run pays for connections and threads: where runs are repeated, the first round does not count.
    let unmeasured = u32::from(spec.repeat.is_some() && !world.is_simulated());
    let rounds = unmeasured + measured;
    let runs = u64::from(rounds) * contenders as u64;
    let mut courses: Vec<Vec<Measured>> = spec.contenders.iter().map(|_| Vec::new()).collect();
    let overlay = equipoise::agreement::one_node_per_rank(world)?;
    let mut done = 0;
    'rounds: for round in 0..rounds {
        let seed = spec.seed.wrapping_add(round.saturating_sub(unmeasured).into());
        world.reseed(seed);
        let Some((work, first)) = unless_interrupted(world, |world| begin(world, spec, seed))? else { break };
        let pace = pace(world, seed);
        for turn in ranking::turns(contenders, round, spec.seed) {
            let (contender, course) = (&spec.contenders[turn], &mut courses[turn]);
            progress(done, runs, &contender.name);
            let barrier = !world.is_simulated();
            let run = unless_interrupted(world, |world| {
                let outcomes = node::run(world, &overlay, |node| {
                    let (scheduler, work) = (contender.made.clone(), work.clone());
                    async move {
                        if barrier {
                            let apart = node.epoch(APART);
                            apart.everyone().barrier(&apart).await?;
                        }
                        scheduler.execute(node, work, pace).await
                    }
                })?;
                let outcome = outcomes.into_iter().find_map(|(_, outcome)| outcome);
                let checked = match (&first, outcome) {
                    (Some(first), Some(mut outcome)) => {
                        let products = std::mem::take(&mut outcome.products);
                        let lost = |why: String| Error::Lost(format!("{} under {}: {why}", spec.workload.name, contender.name));
                        let measured = Measured::checked(outcome, first).map_err(lost);
                        measured.and_then(|measured| {
                            if round >= unmeasured {
                                course.push(measured);
                            }
                            spec.workload.accept(&products)
                        })
                    }
                    _ => Ok(()),
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
    let interrupted = Interruption::of(world, done, runs);
    let unit = if world.is_simulated() { RecordUnit::Cycle } else { RecordUnit::Second };
    spec.contenders
        .iter()
        .zip(courses)
        .filter(|(_, course)| world.is_first() && (interrupted.is_none() || !course.is_empty()))
        .map(|(contender, course)| {
            let record = record(contender, course, spec, &site, &overlay, unit)?;
            Ok(RunRecord { interrupted: interrupted.clone(), ..record })
        })
        .collect()
}

/// The tasks of the round with this seed; on the first rank also what is known of them.
fn begin(world: &mut World, spec: &IndependentSpec, seed: u64) -> Result<(Arc<dyn Independent>, Option<Round>)> {
    let setting = Setting { seed, ranks: world.ranks(), is_simulated: world.is_simulated() };
    let problem = if spec.workload.is_made_by_one() {
        settle::from_first(world, || spec.workload.problem(&setting))?
    } else {
        spec.workload.problem(&setting)?
    };
    let (known, sequential, optimum) = (problem.known, problem.sequential, problem.optimum);
    if optimum.is_some() && !spec.speeds.is_empty() {
        return Err(Error::usage("--speeds: the optimum of the workload is that of the matrix as it is"));
    }
    let work = spec.workload.prepare(problem, spec.speeds.clone(), world.is_simulated());
    let first = world.is_first().then(|| Round::new(work.as_ref(), known, sequential, optimum));
    settle::agree(world, first.as_ref().map_or(Ok(()), Round::is_sound))?;
    Ok((work, first))
}

fn pace(world: &mut World, seed: u64) -> Pace {
    let Some(world) = world.as_simulation() else { return Pace { cycle: REAL_CYCLE, by_model: false, ahead: REAL_AHEAD, seed } };
    let by_model = world.model().network == Network::Zero;
    Pace { cycle: SIMULATED_CYCLE, by_model, ahead: if by_model { 0 } else { SIMULATED_AHEAD }, seed }
}

/// One run, in cycles.
struct Measured {
    outcome: IndependentResult,
    judgement: Judgement,
    optimum: Option<Cost>,
    mean_cost: f64,
    /// Time that ranks spent on tasks.
    work: u64,
    /// Seconds of a plain program.
    sequential: Option<f64>,
    /// Sum over the tasks of their arrivals, in cycles; `None` if all were there.
    arrivals: Option<f64>,
}

impl Measured {
    fn checked(outcome: IndependentResult, round: &Round) -> Result<Measured, String> {
        let wanted = round.costs.tasks() as u64;
        let sum = outcome.nodes.iter().fold(Checksum::default(), |sum, node| sum.and(node.checksum));
        let all = Checksum::of(&Segment::range(0, wanted));
        if sum != all {
            return Err(format!("of {wanted} tasks {} were executed, or some twice and others not", sum.tasks));
        }
        let value = outcome.nodes.iter().fold(0u64, |sum, node| sum.wrapping_add(node.value));
        if value != round.known {
            return Err(format!("the answer is {value}, and should be {}", round.known));
        }
        let work = outcome.nodes.iter().map(|node| node.busy).sum();
        let sum = || round.arrivals.iter().map(|at| *at as f64).sum::<f64>() / CYCLE as f64;
        let arrivals = (!round.arrivals.is_empty()).then(sum);
        Ok(Measured {
            outcome,
            judgement: round.judgement,
            optimum: round.optimum,
            mean_cost: round.mean_cost,
            work,
            sequential: round.sequential,
            arrivals,
        })
    }

    /// Lower bound of the makespan by the costs, but at most the time of a plain program: costs are estimates and may be too high.
    fn bound(&self, unit: RecordUnit) -> f64 {
        let bound = unit.cost(self.judgement.lower_bound);
        if self.sequential.is_some() { bound.min(self.sequential(unit)) } else { bound }
    }

    /// Time of a plain program, or else the sum over the ranks.
    fn sequential(&self, unit: RecordUnit) -> f64 {
        self.sequential.map_or_else(|| unit.ticks(self.work), |seconds| unit.exact_cycles(seconds * 1e9 / REAL_CYCLE as f64))
    }
}

/// Unit of the times of a record.
#[derive(Clone, Copy)]
enum RecordUnit {
    Cycle,
    Second,
}

impl RecordUnit {
    /// Cycles in the unit; simulated ones are rounded to whole numbers.
    fn cycles(self, cycles: f64) -> f64 {
        match self {
            RecordUnit::Cycle => cycles.round(),
            RecordUnit::Second => cycles * REAL_CYCLE as f64 / 1e9,
        }
    }

    /// Without rounding.
    fn exact_cycles(self, cycles: f64) -> f64 {
        match self {
            RecordUnit::Cycle => cycles,
            RecordUnit::Second => cycles * REAL_CYCLE as f64 / 1e9,
        }
    }

    fn exact(self, ticks: f64) -> f64 {
        match self {
            RecordUnit::Cycle => ticks / SIMULATED_CYCLE as f64,
            RecordUnit::Second => ticks / 1e9,
        }
    }

    fn ticks(self, ticks: u64) -> f64 {
        match self {
            RecordUnit::Cycle => self.cycles(ticks as f64 / SIMULATED_CYCLE as f64),
            RecordUnit::Second => ticks as f64 / 1e9,
        }
    }

    fn cost(self, cost: Cost) -> f64 {
        self.cycles(cost as f64 / CYCLE as f64)
    }
}

fn record(
    contender: &Chosen,
    course: Vec<Measured>,
    spec: &IndependentSpec,
    site: &Site,
    overlay: &Overlay,
    unit: RecordUnit,
) -> Result<RunRecord> {
    let ranks = site.ranks as usize;
    let makespans: Vec<f64> = course.iter().map(|run| unit.cycles(run.outcome.makespan)).collect();
    let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
    let efficiencies: Vec<f64> =
        course.iter().zip(&makespans).map(|(run, makespan)| over(run.sequential(unit), makespan * ranks as f64)).collect();
    let of_the_bound: Vec<f64> = course.iter().zip(&makespans).map(|(run, makespan)| over(run.bound(unit), *makespan)).collect();
    let nothing = || Error::Failed(format!("{}: no run was measured", contender.name));
    let mean = statistics::mean(&makespans).ok_or_else(nothing)?;
    let average = |figures: &[f64]| statistics::mean(figures).map_or(1.0, |mean| mean.value);
    let rounds = spec.repeat.map(|_| Rounds {
        repeat: makespans.len() as u32,
        sequentials: course.iter().map(|run| run.sequential(unit)).collect(),
        responses: Vec::new(),
        makespan_mean: mean.value,
        makespan_ci95: (makespans.len() > 1).then_some([mean.low, mean.high]),
        efficiency_mean: average(&efficiencies),
        bound_efficiency_mean: average(&of_the_bound),
        gain_mean: None,
        makespans: makespans.clone(),
    });
    let measured = course.into_iter().next().ok_or_else(nothing)?;
    let bound = measured.bound(unit);
    let (sequential, sequential_is_plain) = (measured.sequential(unit), measured.sequential.is_some());
    let Measured { outcome, judgement, optimum, mean_cost, work, arrivals, .. } = measured;
    let optimum = optimum.map(|cost| unit.cost(cost));
    let IndependentResult { makespan, nodes, effort, .. } = outcome;
    let by_rank = |part: fn(&Figures) -> u64| {
        let mut sums = vec![0.0; ranks];
        nodes.iter().for_each(|node| sums[node.rank.index()] += unit.ticks(part(node)));
        sums
    };
    // Every run was checked against it.
    let known = nodes.iter().fold(0u64, |sum, node| sum.wrapping_add(node.value));
    let sum = |part: fn(&Figures) -> u64| nodes.iter().map(part).sum::<u64>();
    let (tasks, messages, bytes) = (sum(|node| node.tasks), sum(|node| node.messages), sum(|node| node.bytes));
    let workers = if contender.entry.facts.knows_costs { ranks.saturating_sub(1).max(1) } else { ranks } as f64;
    let waiting = if effort.waiting > 0.0 { unit.cycles(effort.waiting) } else { unit.ticks(sum(|node| node.waiting)) };
    let largest = unit.ticks(nodes.iter().map(|node| node.largest).max().unwrap_or(0));
    let scheduling = Scheduling {
        scheduler_rank: effort.scheduler,
        decisions: effort.decisions,
        expansions: effort.expansions,
        generated: effort.generated,
        search_time: unit.cycles(effort.search),
        waiting_time: waiting,
        v: (effort.generated > 0)
            .then(|| effort.search / effort.generated as f64)
            .map(|v| if matches!(unit, RecordUnit::Second) { unit.cycles(v) } else { v }),
        v_bound: match unit {
            RecordUnit::Cycle => mean_cost / (workers * workers),
            RecordUnit::Second => unit.cycles(mean_cost / (workers * workers)),
        },
        lower_bound: unit.cost(judgement.lower_bound),
        earliest_completion: unit.cost(judgement.earliest_completion),
        min_min: judgement.min_min.map(|cost| unit.cost(cost)),
        sufferage: judgement.sufferage.map(|cost| unit.cost(cost)),
        optimum,
        gap: optimum.filter(|optimum| *optimum > 0.0).map(|optimum| mean.value / optimum - 1.0),
        task_response_mean: arrivals.map(|arrivals| {
            let completed: f64 = nodes.iter().map(|node| unit.exact(node.completed)).sum();
            (completed - unit.exact_cycles(arrivals)) / (tasks as f64).max(1.0)
        }),
    };
    Ok(RunRecord {
        scheduler: contender.name.clone(),
        workload: spec.workload.name.clone(),
        topology: overlay.topology.name(),
        native: overlay.placement.native(),
        site: site.clone(),
        workers: 1,
        unit_seconds: if matches!(unit, RecordUnit::Cycle) { REAL_CYCLE as f64 / 1e9 } else { 1.0 },
        tasks,
        joins: 0,
        answer: Number::Whole(known),
        answer_is: spec.workload.entry.facts.answer,
        known: Some(Number::Whole(known)),
        makespan: unit.cycles(makespan),
        sequential,
        sequential_is_plain,
        work: unit.ticks(work),
        efficiency: efficiencies.first().copied().unwrap_or(1.0),
        largest,
        chain: largest,
        bound,
        bound_efficiency: of_the_bound.first().copied().unwrap_or(1.0),
        gain: None,
        messages,
        control: messages,
        bytes,
        migrated: sum(|node| node.migrated),
        busy: by_rank(|node| node.busy),
        idle: by_rank(|node| node.elapsed.saturating_sub(node.busy)),
        overhead: vec![0.0; ranks],
        regions: Vec::new(),
        rounds,
        responses: None,
        overload: None,
        interrupted: None,
        scheduling: Some(scheduling),
        simplicity: contender.entry.simplicity(),
        timeline: Vec::new(),
    })
}
