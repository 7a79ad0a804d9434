//! The record of a workload under one scheduler. What it has is declared and filled in this file, for tasks that spawn tasks and for
//! independent ones.

use serde::Serialize;

use super::course::Course;
use super::{RunSpec, SchedulerContender, TraceEntry};
use crate::experiment::independent::measured::{Measured, MeasuredRuns, RecordUnit};
use crate::experiment::interruption::Interruption;
use crate::experiment::responses::{Overload, Responses};
use crate::experiment::site::Site;
use crate::experiment::statistics;
use crate::workload::graphs::Number;
use crate::workload::independent::REAL_CYCLE;
use equipoise::error::{Error, Result};
use equipoise::node::Ticks;
use equipoise::schedule::independent::{Figures, IndependentResult};
use equipoise::schedule::{Graph, NodeReport, Region, RunResult, Summary};
use equipoise::topology::{NodeId, RankId};

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
    /// Time from the first submission to the last answer.
    pub makespan: f64,
    /// The plain program's time where there is one and ranks are real, otherwise the sum of the tasks' times, on the fastest of ranks of unequal
    /// speeds. Efficiency, bound and gain are all taken from it.
    pub sequential: f64,
    /// Whether it is the plain program's.
    pub sequential_is_plain: bool,
    /// Sum of the tasks' times.
    pub work: f64,
    /// Sequential time over makespan and workers; of ranks of unequal speeds each counts as its speed relative to the fastest.
    pub efficiency: f64,
    /// Time of the longest task, and of the longest chain of dependent tasks: the minimum over the schedulers. 0 where tasks can be split.
    pub largest: f64,
    pub chain: f64,
    /// Lower bound of the makespan: the maximum of these and of the sequential time divided by the workers, by the sum of their speeds where
    /// these are unequal, or by the cores where computing workers share them. The same for all schedulers.
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
    /// Time of each rank, summed over its workers: executing tasks; not executing any.
    pub busy: Vec<f64>,
    pub idle: Vec<f64>,
    /// Time of each rank for hearing, deciding, packing and joining.
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
    /// Place in the list of the simplest schedulers, which decides between equally good ones.
    #[serde(skip)]
    pub simplicity: usize,
    /// The graphs of a stream that count, numbered from 0 in the order of their submission.
    #[serde(skip)]
    pub graphs: Vec<Graph>,
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

    /// The figures by which the scheduler is judged: medians over the rounds, or those of the only one.
    pub fn typical(&self) -> Typical {
        self.rounds.as_ref().map_or_else(
            || Typical {
                makespan: self.makespan,
                sequential: self.sequential,
                bound: self.bound,
                efficiency: self.efficiency,
                bound_efficiency: self.bound_efficiency,
                gain: self.gain,
            },
            |rounds| rounds.typical,
        )
    }

    /// The interval of the median makespan with its coverage; `None` after one round.
    pub fn interval(&self) -> Option<([f64; 2], f64)> {
        let rounds = self.rounds.as_ref()?;
        Some((rounds.makespan_ci95?, rounds.makespan_coverage?))
    }

    /// The record of all measured rounds under a scheduler of tasks that spawn tasks.
    ///
    /// # Errors
    /// If no round was measured.
    pub(super) fn of_spawning(
        course: Course,
        contender: &SchedulerContender,
        spec: &RunSpec,
        site: &Site,
        has_plain: bool,
    ) -> Result<RunRecord> {
        let nothing = || Error::Failed(format!("{}: no run was measured", contender.scheduler.name));
        let RunResult { answer, nodes, makespan, .. } = course.first.ok_or_else(nothing)?;
        let summary = course.summaries.first().ok_or_else(nothing)?.clone();
        let unit = course.unit as f64;
        let time = |ticks: Ticks| ticks as f64 / unit;
        let by_rank = |part: fn(&NodeReport) -> Ticks| {
            let mut sums = vec![0.0; site.ranks as usize];
            nodes.iter().for_each(|node| sums[node.rank.index()] += time(part(node)));
            sums
        };
        let of_rounds = |part: fn(&Summary) -> f64| course.summaries.iter().map(part).collect::<Vec<f64>>();
        let in_unit = |ticks: Vec<f64>| ticks.into_iter().map(|ticks| ticks / unit).collect::<Vec<f64>>();
        let gains: Vec<f64> = course.summaries.iter().filter_map(|run| run.gain).collect();
        let rounds = match spec.repeat {
            Some(_) => {
                let (makespans, sequentials) =
                    (in_unit(of_rounds(|run| run.makespan as f64)), in_unit(of_rounds(|run| run.sequential as f64)));
                let rounds = Rounds::of(makespans, sequentials, &of_rounds(|run| run.efficiency), &of_rounds(Summary::bound_efficiency));
                let rounds = rounds.ok_or_else(nothing)?.with_gains(&gains);
                Some(Rounds { responses: in_unit(course.responses.clone()), ..rounds })
            }
            None => None,
        };
        let mut graphs = course.graphs;
        graphs.sort_unstable_by_key(|graph| graph.number);
        let responses = Responses::of(&graphs, &(0..course.counting), course.unit);
        Ok(RunRecord {
            scheduler: contender.scheduler.name.clone(),
            workload: spec.workload.name.clone(),
            topology: contender.overlay.topology.name(),
            native: contender.overlay.placement.native(),
            site: site.clone(),
            workers: spec.workers,
            unit_seconds: unit / 1e9,
            tasks: summary.tasks,
            joins: summary.joins,
            answer: answer.unwrap_or(Number::Whole(0)),
            answer_is: spec.workload.entry.facts.answer,
            known: course.known,
            makespan: time(makespan),
            sequential: time(summary.sequential),
            sequential_is_plain: has_plain && site.network.is_none(),
            work: time(course.work),
            efficiency: summary.efficiency,
            largest: time(summary.largest),
            chain: time(summary.chain),
            bound: time(summary.bound),
            bound_efficiency: summary.bound_efficiency(),
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
            overload: course.overload,
            interrupted: None,
            simplicity: contender.scheduler.entry.simplicity(),
            graphs,
            timeline: nodes
                .into_iter()
                .filter(|node| !node.trace.is_empty())
                .map(|node| NodeTimeline { node: node.node, rank: node.rank, entries: node.trace })
                .collect(),
        })
    }

    /// The record of all measured runs under a scheduler of independent tasks.
    ///
    /// # Errors
    /// If no run was measured.
    pub(in crate::experiment) fn of_independent(measured: MeasuredRuns<'_>, site: &Site) -> Result<RunRecord> {
        let MeasuredRuns { scheduler, workload, is_repeated, overlay, unit, runs } = measured;
        let ranks = site.ranks as usize;
        let cores = site.cores.filter(|_| site.shares_cores());
        let makespans: Vec<f64> = runs.iter().map(|run| unit.cycles(run.outcome.makespan)).collect();
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        let efficiencies: Vec<f64> =
            runs.iter().zip(&makespans).map(|(run, makespan)| over(run.sequential(unit), makespan * ranks as f64)).collect();
        let of_the_bound: Vec<f64> = runs.iter().zip(&makespans).map(|(run, makespan)| over(run.bound(unit, cores), *makespan)).collect();
        let nothing = || Error::Failed(format!("{}: no run was measured", scheduler.name));
        let sequentials = runs.iter().map(|run| run.sequential(unit)).collect();
        let rounds = Rounds::of(makespans, sequentials, &efficiencies, &of_the_bound).ok_or_else(nothing)?;
        let makespan_median = rounds.typical.makespan;
        let rounds = is_repeated.then_some(rounds);
        let measured = runs.into_iter().next().ok_or_else(nothing)?;
        let bound = measured.bound(unit, cores);
        let largest = unit.ticks(measured.largest);
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
        let workers = if scheduler.entry.facts.knows_costs { ranks.saturating_sub(1).max(1) } else { ranks } as f64;
        let waiting = if effort.waiting > 0.0 { unit.cycles(effort.waiting) } else { unit.ticks(sum(|node| node.waiting)) };
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
            gap: optimum.filter(|optimum| *optimum > 0.0).map(|optimum| makespan_median / optimum - 1.0),
            task_response_mean: arrivals.map(|arrivals| {
                let completed: f64 = nodes.iter().map(|node| unit.exact(node.completed)).sum();
                (completed - unit.exact_cycles(arrivals)) / (tasks as f64).max(1.0)
            }),
        };
        Ok(RunRecord {
            scheduler: scheduler.name.clone(),
            workload: workload.name.clone(),
            topology: overlay.topology.name(),
            native: overlay.placement.native(),
            site: site.clone(),
            workers: 1,
            unit_seconds: if matches!(unit, RecordUnit::Cycle) { REAL_CYCLE as f64 / 1e9 } else { 1.0 },
            tasks,
            joins: 0,
            answer: Number::Whole(known),
            answer_is: workload.entry.facts.answer,
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
            simplicity: scheduler.entry.simplicity(),
            graphs: Vec::new(),
            timeline: Vec::new(),
        })
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
    /// Interval of the median makespan between order statistics: it covers with 95 % or more from six rounds on, and is the range of fewer.
    /// `None` after one round.
    pub makespan_ci95: Option<[f64; 2]>,
    /// Coverage of the interval: less than 0.95 below six rounds; `None` after one.
    pub makespan_coverage: Option<f64>,
    pub efficiency_mean: f64,
    pub bound_efficiency_mean: f64,
    /// Over the rounds in which something could be gained.
    pub gain_mean: Option<f64>,
    #[serde(flatten)]
    pub typical: Typical,
}

/// Medians over the rounds, and quotients of these medians: each figure follows from the others, as those of one round do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Typical {
    #[serde(rename = "makespan_median")]
    pub makespan: f64,
    #[serde(rename = "sequential_median")]
    pub sequential: f64,
    #[serde(rename = "bound_median")]
    pub bound: f64,
    /// The median of the times that workers which never wait would take, over the median makespan.
    #[serde(rename = "efficiency_median")]
    pub efficiency: f64,
    /// The median bound over the median makespan.
    #[serde(rename = "bound_efficiency_median")]
    pub bound_efficiency: f64,
    /// Achieved part of the gain over one worker that the bound allows, by the medians; `None` where nothing could be gained.
    #[serde(rename = "gain_median")]
    pub gain: Option<f64>,
}

impl Rounds {
    /// Figures of these rounds, without response times and gains; `None` if there is no round.
    pub(crate) fn of(makespans: Vec<f64>, sequentials: Vec<f64>, efficiencies: &[f64], of_the_bound: &[f64]) -> Option<Rounds> {
        let (mean, makespan) = (statistics::mean(&makespans)?, statistics::median(&makespans)?);
        let average = |figures: &[f64]| statistics::mean(figures).map_or(1.0, |mean| mean.value);
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        // An efficiency is the quotient of a time and the makespan.
        let times = |shares: &[f64]| {
            let times: Vec<f64> = shares.iter().zip(&makespans).map(|(share, makespan)| share * makespan).collect();
            statistics::median(&times).map_or(0.0, |time| time.value)
        };
        let (ideal, bound) = (times(efficiencies), times(of_the_bound));
        let is_repeated = makespans.len() > 1;
        Some(Rounds {
            repeat: makespans.len() as u32,
            responses: Vec::new(),
            makespan_mean: mean.value,
            makespan_ci95: is_repeated.then_some([makespan.low, makespan.high]),
            makespan_coverage: is_repeated.then_some(makespan.coverage),
            efficiency_mean: average(efficiencies),
            bound_efficiency_mean: average(of_the_bound),
            gain_mean: None,
            typical: Typical {
                makespan: makespan.value,
                sequential: statistics::median(&sequentials)?.value,
                bound,
                efficiency: over(ideal, makespan.value),
                bound_efficiency: over(bound, makespan.value),
                gain: None,
            },
            makespans,
            sequentials,
        })
    }

    /// The same with the gains of the rounds in which something could be gained.
    pub(crate) fn with_gains(mut self, gains: &[f64]) -> Rounds {
        self.gain_mean = statistics::mean(gains).map(|mean| mean.value);
        let Typical { makespan, sequential, bound, .. } = self.typical;
        let possible = sequential - bound;
        self.typical.gain = (possible > 0.0 && !gains.is_empty()).then(|| (sequential - makespan) / possible);
        self
    }
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

/// Figures of runs of independent tasks. Times have the unit of the record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scheduling {
    /// The rank that scheduled.
    pub scheduler_rank: RankId,
    /// Phases of searching, or grants.
    pub decisions: u64,
    /// Nodes of the search that were expanded, and that were generated.
    pub expansions: u64,
    pub generated: u64,
    /// Time spent searching.
    pub search_time: f64,
    /// Idle time of workers while tasks were left for them, summed over the ranks.
    pub waiting_time: f64,
    /// Time per generated node of the search; `None` without search.
    pub v: Option<f64>,
    /// Maximum of `v` with which the scheduler keeps all workers busy with phases of one task: mean cost / workers squared.
    pub v_bound: f64,
    /// Lower bound of the makespan, and makespans of heuristics that know all tasks in advance, all on all ranks.
    pub lower_bound: f64,
    pub earliest_completion: f64,
    pub min_min: Option<f64>,
    pub sufferage: Option<f64>,
    /// Minimum makespan, if it is known, and the relative excess of the median makespan over it.
    pub optimum: Option<f64>,
    pub gap: Option<f64>,
    /// Mean time from a task's arrival to its end; `None` if all tasks are there from the beginning.
    pub task_response_mean: Option<f64>,
}

/// A node's timeline.
#[derive(Clone, Debug)]
pub struct NodeTimeline {
    pub node: NodeId,
    pub rank: RankId,
    pub entries: Vec<TraceEntry>,
}
