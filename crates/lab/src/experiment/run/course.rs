//! The measurements of one scheduler over all rounds, and the bounds that all schedulers share.

use super::{RunSpec, SchedulerContender};
use crate::experiment::responses::Overload;
use crate::experiment::settle;
use crate::workload::graphs::{Number, Prepared};
use equipoise::error::{Error, Result};
use equipoise::node::{self, Ticks};
use equipoise::schedule::{Graph, NodeReport, RunResult, Summary, accounting};
use equipoise::transport::world::World;

/// Measurements of one scheduler.
pub(super) struct Course {
    /// Outcome of the first measured round.
    pub first: Option<RunResult<Number>>,
    /// Summaries of all measured rounds.
    pub summaries: Vec<Summary>,
    /// Mean response time of each round of a stream, in ticks.
    pub responses: Vec<f64>,
    pub overload: Option<Overload>,
    /// Graphs of all rounds, numbered consecutively.
    pub graphs: Vec<Graph>,
    pub counting: u64,
    pub unit: Ticks,
    pub known: Option<Number>,
    /// Sum of the tasks' times in the first measured round.
    pub work: Ticks,
    /// Speeds of simulated ranks; empty if all are 1.
    speeds: Vec<f64>,
}

/// The plain program's answer and time.
pub(super) type Plain = Option<(Number, Ticks)>;

/// Judges all rounds. Schedulers of the same tasks are judged together; how long a stream goes on, and so its tasks, is a matter of the
/// scheduler.
pub(super) fn judge(courses: &mut [Course], plains: &[Plain], cores: Option<u32>) {
    if courses.iter().any(|course| !course.responses.is_empty()) {
        courses.iter_mut().for_each(|course| judge_together(std::slice::from_mut(course), plains, cores));
    } else {
        judge_together(courses, plains, cores);
    }
}

/// Judges all schedulers' rounds by the same sequential time and the same bound: that of the plain program, or the least sum of what the tasks
/// needed; `cores` are those that the workers share.
fn judge_together(courses: &mut [Course], plains: &[Plain], cores: Option<u32>) {
    for (round, plain) in plains.iter().enumerate() {
        let of_round = |courses: &[Course]| courses.iter().filter_map(|course| course.summaries.get(round).cloned()).collect::<Vec<_>>();
        let of_runs = of_round(courses);
        let summed = of_runs.iter().map(|run| run.sequential).min().unwrap_or(0);
        let sequential = plain.map(|(_, ticks)| ticks).filter(|ticks| *ticks > 0).unwrap_or(summed);
        let against: Vec<Summary> = of_runs.into_iter().map(|run| run.with_sequential(sequential)).collect();
        let bound = accounting::bound(&against, cores);
        let least = |part: fn(&Summary) -> Ticks| against.iter().map(part).min().unwrap_or(0);
        let (largest, chain) = (least(|run| run.largest), least(|run| run.chain));
        let judged = against.iter().map(|run| {
            let mut run = run.clone().with_bound(bound);
            (run.largest, run.chain) = (largest, chain);
            run
        });
        for (course, judged) in courses.iter_mut().filter(|course| course.summaries.len() > round).zip(judged.collect::<Vec<_>>()) {
            course.summaries[round] = judged;
        }
    }
}

/// Runs the plain program, if there is one, on the first rank, while all others wait. In simulation its time means nothing, so it is run
/// only where the answer is not known otherwise.
pub(super) fn plain_program(world: &mut World, workload: &Prepared) -> Result<Plain> {
    if world.is_simulated() {
        let answer = if workload.known().is_none() { workload.sequential() } else { None };
        return Ok(answer.map(|answer| (answer, 0)));
    }
    let overlay = equipoise::agreement::one_node_per_rank(world)?;
    let measured = node::run(world, &overlay, |node| {
        let workload = workload.clone();
        async move {
            let measured = match node.me() {
                0 => {
                    let (answer, took) = settle::on_worker(&node, move || workload.sequential()).await?;
                    answer.map(|answer| (answer, took))
                }
                _ => None,
            };
            node.everyone().barrier(&node).await?;
            Ok(measured)
        }
    })?;
    Ok(measured.into_iter().find_map(|(_, plain)| plain))
}

impl Course {
    /// Creates the course of a scheduler on ranks of these speeds; empty if all are 1.
    pub fn new(speeds: &[f64]) -> Course {
        Course {
            first: None,
            summaries: Vec::new(),
            responses: Vec::new(),
            overload: None,
            graphs: Vec::new(),
            counting: 0,
            unit: 1,
            known: None,
            work: 0,
            speeds: speeds.to_vec(),
        }
    }

    /// Number of measured rounds.
    pub fn rounds(&self) -> usize {
        self.summaries.len()
    }

    /// Checks a round's outcome, and adds it to the statistics if it is measured.
    pub fn add(
        &mut self,
        outcome: RunResult<Number>,
        contender: &SchedulerContender,
        spec: &RunSpec,
        workload: &Prepared,
        plain: Plain,
        is_measured: bool,
    ) -> Result<()> {
        let known = workload.known().or(plain.map(|(answer, _)| answer));
        let lost = |what: String| Error::wrong_result(format!("{} under {}: {what}", spec.workload.name, contender.scheduler.name));
        let known_within = known.map(|known| (known, workload.tolerance()));
        sound(&outcome, known_within, plain.map(|(answer, _)| answer), spec.workload.entry.facts.answer == "tasks").map_err(lost)?;
        if !is_measured {
            return Ok(());
        }
        if let Some(measured) = workload.measured() {
            let from = self.counting;
            let counts = outcome.graphs.iter().filter(|graph| measured.contains(&graph.number));
            let renumbered = |graph: &Graph| Graph::new(graph.number - measured.start + from, graph.submitted, graph.answered);
            self.graphs.extend(counts.map(renumbered));
            self.counting += measured.end - measured.start;
            let times = outcome.graphs.iter().filter(|graph| measured.contains(&graph.number)).map(|graph| graph.response() as f64);
            self.responses.push(times.sum::<f64>() / (measured.end - measured.start).max(1) as f64);
            if self.graphs.len() as u64 != self.counting {
                let answered = self.graphs.len() as u64 - from;
                return Err(lost(format!("of {} graphs that count {answered} were answered", self.counting - from)));
            }
        }
        if outcome.gave_up && self.overload.is_none() {
            self.overload = Some(Overload::of(&outcome.graphs, self.unit));
        }
        let summary = Summary::at_speeds(&outcome.nodes, outcome.makespan, &self.speeds);
        if self.first.is_none() {
            self.work = summary.sequential;
            self.known = known;
            self.first = Some(outcome);
        }
        self.summaries.push(summary);
        Ok(())
    }
}

/// Checks that no task was lost and the answer is right.
pub(super) fn sound(
    outcome: &RunResult<Number>,
    known: Option<(Number, f64)>,
    plain: Option<Number>,
    answer_is_tasks: bool,
) -> Result<(), String> {
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
pub(super) fn is_same(a: Number, b: Number, within: f64) -> bool {
    let real = |number| match number {
        Number::Whole(number) => number as f64,
        Number::Real(number) => number,
    };
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a == b,
        _ => (real(a) - real(b)).abs() <= within + 1e-9 * real(a).abs().max(real(b).abs()),
    }
}
