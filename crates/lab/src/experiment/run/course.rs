//! The measurements of one scheduler over all rounds, and the bounds that all schedulers share.

use super::{APART, NodeTimeline, Overload, ResponseTimes, Rounds, RunRecord, RunSpec, SchedulerContender};
use crate::experiment::responses::Responses;
use crate::experiment::site::Site;
use crate::experiment::statistics;
use crate::workload::graphs::{Number, Prepared};
use equipoise::error::{Error, Result};
use equipoise::node::{self, Event, Node, Ticks};
use equipoise::schedule::{Graph, NodeReport, RunResult, Summary, accounting};
use equipoise::transport::world::World;

/// Measurements of one scheduler.
pub(super) struct Course {
    /// Outcome of the first measured round.
    first: Option<RunResult<Number>>,
    /// Summaries of all measured rounds.
    summaries: Vec<Summary>,
    /// Mean response time of each round of a stream, in ticks.
    responses: Vec<f64>,
    overload: Option<Overload>,
    /// Graphs of all rounds, numbered consecutively.
    graphs: Vec<Graph>,
    counting: u64,
    pub unit: Ticks,
    known: Option<Number>,
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
    pub fn new() -> Course {
        Course {
            first: None,
            summaries: Vec::new(),
            responses: Vec::new(),
            overload: None,
            graphs: Vec::new(),
            counting: 0,
            unit: 1,
            known: None,
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
        let lost = |what: String| Error::Lost(format!("{} under {}: {what}", spec.workload.name, contender.scheduler.name));
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
        self.summaries.push(Summary::of(&outcome.nodes, outcome.makespan));
        if self.first.is_none() {
            self.known = known;
            self.first = Some(outcome);
        }
        Ok(())
    }

    pub fn record(self, contender: &SchedulerContender, spec: &RunSpec, site: &Site, has_plain: bool) -> Result<RunRecord> {
        let nothing = || Error::Failed(format!("{}: no run was measured", contender.scheduler.name));
        let RunResult { answer, nodes, makespan, .. } = self.first.ok_or_else(nothing)?;
        let summary = self.summaries.first().ok_or_else(nothing)?.clone();
        let unit = self.unit as f64;
        let time = |ticks: Ticks| ticks as f64 / unit;
        let work = nodes.iter().map(|node| node.needed).sum();
        let by_rank = |part: fn(&NodeReport) -> Ticks| {
            let mut sums = vec![0.0; site.ranks as usize];
            nodes.iter().for_each(|node| sums[node.rank.index()] += time(part(node)));
            sums
        };
        let of_rounds = |part: fn(&Summary) -> f64| self.summaries.iter().map(part).collect::<Vec<f64>>();
        let in_unit = |ticks: Vec<f64>| ticks.into_iter().map(|ticks| ticks / unit).collect::<Vec<f64>>();
        let makespans = in_unit(of_rounds(|run| run.makespan as f64));
        let mean = statistics::mean(&makespans).ok_or_else(nothing)?;
        let average = |figures: &[f64]| statistics::mean(figures).map(|mean| mean.value);
        let gains: Vec<f64> = self.summaries.iter().filter_map(|run| run.gain).collect();
        let rounds = spec.repeat.map(|_| Rounds {
            repeat: makespans.len() as u32,
            sequentials: in_unit(of_rounds(|run| run.sequential as f64)),
            responses: in_unit(self.responses.clone()),
            makespan_mean: mean.value,
            makespan_ci95: (makespans.len() > 1).then_some([mean.low, mean.high]),
            efficiency_mean: average(&of_rounds(|run| run.efficiency)).unwrap_or(1.0),
            bound_efficiency_mean: average(&of_rounds(Summary::bound_efficiency)).unwrap_or(1.0),
            gain_mean: average(&gains),
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
            unit_seconds: unit / 1e9,
            tasks: summary.tasks,
            joins: summary.joins,
            answer: answer.unwrap_or(Number::Whole(0)),
            answer_is: spec.workload.entry.facts.answer,
            known: self.known,
            makespan: time(makespan),
            sequential: time(summary.sequential),
            sequential_is_plain: has_plain && site.network.is_none(),
            work: time(work),
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
            overload: self.overload,
            interrupted: None,
            simplicity: contender.scheduler.entry.simplicity(),
            timeline: nodes
                .into_iter()
                .filter(|node| !node.trace.is_empty())
                .map(|node| NodeTimeline { node: node.node, rank: node.rank, entries: node.trace })
                .collect(),
        })
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
