//! Measurements of runs of independent tasks, checked, and facts about the tasks that are known beforehand.

use std::sync::Arc;

use crate::bounds::Judgement;
use crate::workload::independent::{self, REAL_CYCLE};
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Checksum, Cost, Costs, Segment};
use equipoise::schedule::independent::{Chosen, Independent, IndependentResult};
use equipoise::topology::Overlay;

/// Ticks in a cycle of virtual time.
pub const SIMULATED_CYCLE: u64 = 1_000_000;

/// The tasks of a round, with their bounds and heuristics.
pub struct Round {
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
    pub fn new(work: &dyn Independent, known: u64, sequential: Option<f64>, optimum: Option<Cost>) -> Round {
        let (costs, arrivals) = (work.costs().clone(), work.arrivals().to_vec());
        let mut judgement = Judgement::of(&costs);
        // No task ends before it has arrived.
        let ends = arrivals.iter().enumerate().map(|(task, at)| at.saturating_add(costs.least(task)));
        judgement.lower_bound = ends.fold(judgement.lower_bound, Cost::max);
        let finite = || costs.rows().flatten().filter(|cost| **cost != equipoise::load::NEVER);
        let mean_cost = finite().map(|cost| *cost as f64).sum::<f64>() / finite().count().max(1) as f64 / CYCLE as f64;
        Round { costs, arrivals, known, sequential, optimum, judgement, mean_cost }
    }

    /// Checks that times don't overflow, and that the claimed optimum is not below the lower bound nor above a heuristic.
    pub fn is_sound(&self) -> Result<()> {
        self.fits()?;
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

    /// Checks that the time of all tasks one after the other, each where it takes longest, can be counted in ticks. Half of what can be counted is
    /// left to searches, and to estimates that are wrong.
    fn fits(&self) -> Result<()> {
        const MOST: u128 = Cost::MAX as u128 / 2;
        let dearest = |row: &[Cost]| row.iter().filter(|cost| **cost != equipoise::load::NEVER).max().copied().unwrap_or(0);
        let last = self.arrivals.last().copied().unwrap_or(0);
        let all = self.costs.rows().map(|row| u128::from(dearest(row))).sum::<u128>() + u128::from(last);
        if all <= MOST {
            return Ok(());
        }
        let cycles = |cost: u128| cost as f64 / CYCLE as f64;
        let what =
            if self.arrivals.is_empty() { "the tasks, each on its slowest rank," } else { "arrivals and tasks, each on its slowest rank," };
        let why = format!(": {what} take {:.3e} cycles together; more than {:.3e} cannot be counted", cycles(all), cycles(MOST));
        Err(Error::input("workload", why))
    }
}

/// One run, in cycles.
pub struct Measured {
    pub outcome: IndependentResult,
    pub judgement: Judgement,
    pub optimum: Option<Cost>,
    pub mean_cost: f64,
    /// Time that ranks spent on tasks.
    pub work: u64,
    /// The least of these times over the schedulers of the round: on a slow rank, or on one that had to wait for its processor, tasks take longer.
    pub least_work: u64,
    /// Time of the longest task; the least over the schedulers of the round.
    pub largest: u64,
    /// Seconds of a plain program.
    pub sequential: Option<f64>,
    /// Sum over the tasks of their arrivals, in cycles; `None` if all were there.
    pub arrivals: Option<f64>,
}

impl Measured {
    pub fn checked(outcome: IndependentResult, round: &Round) -> Result<Measured, String> {
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
        let largest = outcome.nodes.iter().map(|node| node.largest).max().unwrap_or(0);
        let sum = || round.arrivals.iter().map(|at| *at as f64).sum::<f64>() / CYCLE as f64;
        let arrivals = (!round.arrivals.is_empty()).then(sum);
        Ok(Measured {
            outcome,
            judgement: round.judgement,
            optimum: round.optimum,
            mean_cost: round.mean_cost,
            work,
            least_work: work,
            largest,
            sequential: round.sequential,
            arrivals,
        })
    }

    /// Lower bound of the makespan by the costs, and of a plain program's computing by the cores that ranks share; but at most the time of a plain
    /// program: costs are estimates and may be too high.
    pub fn bound(&self, unit: RecordUnit, cores: Option<u32>) -> f64 {
        let bound = unit.cost(self.judgement.lower_bound);
        if self.sequential.is_none() {
            return bound;
        }
        let sequential = self.sequential(unit);
        let on_cores = cores.map_or(0.0, |cores| sequential / f64::from(cores.max(1)));
        bound.max(on_cores).min(sequential)
    }

    /// Time of a plain program, or else the least sum over the ranks.
    pub fn sequential(&self, unit: RecordUnit) -> f64 {
        self.sequential.map_or_else(|| unit.ticks(self.least_work), |seconds| unit.exact_cycles(seconds * 1e9 / REAL_CYCLE as f64))
    }
}

/// Judges the runs of all schedulers by the same times of tasks, round by round: the least, so that none looks better for having made tasks slower.
pub fn judge_together(courses: &mut [Vec<Measured>]) {
    let rounds = courses.iter().map(Vec::len).max().unwrap_or(0);
    for round in 0..rounds {
        let least = |part: fn(&Measured) -> u64| courses.iter().filter_map(|course| Some(part(course.get(round)?))).min().unwrap_or(0);
        let (work, largest) = (least(|run| run.work), least(|run| run.largest));
        for run in courses.iter_mut().filter_map(|course| course.get_mut(round)) {
            (run.least_work, run.largest) = (work, largest);
        }
    }
}

/// All measured runs under one scheduler.
pub struct MeasuredRuns<'a> {
    pub scheduler: &'a Chosen,
    pub workload: &'a independent::Chosen,
    /// Whether a number of runs was asked for.
    pub is_repeated: bool,
    pub overlay: &'a Overlay,
    pub unit: RecordUnit,
    pub runs: Vec<Measured>,
}

/// Unit of the times of a record.
#[derive(Clone, Copy)]
pub enum RecordUnit {
    Cycle,
    Second,
}

impl RecordUnit {
    /// Cycles in the unit; simulated ones are rounded to whole numbers.
    pub fn cycles(self, cycles: f64) -> f64 {
        match self {
            RecordUnit::Cycle => cycles.round(),
            RecordUnit::Second => cycles * REAL_CYCLE as f64 / 1e9,
        }
    }

    /// Without rounding.
    pub fn exact_cycles(self, cycles: f64) -> f64 {
        match self {
            RecordUnit::Cycle => cycles,
            RecordUnit::Second => cycles * REAL_CYCLE as f64 / 1e9,
        }
    }

    pub fn exact(self, ticks: f64) -> f64 {
        match self {
            RecordUnit::Cycle => ticks / SIMULATED_CYCLE as f64,
            RecordUnit::Second => ticks / 1e9,
        }
    }

    pub fn ticks(self, ticks: u64) -> f64 {
        match self {
            RecordUnit::Cycle => self.cycles(ticks as f64 / SIMULATED_CYCLE as f64),
            RecordUnit::Second => ticks as f64 / 1e9,
        }
    }

    pub fn cost(self, cost: Cost) -> f64 {
        self.cycles(cost as f64 / CYCLE as f64)
    }
}
