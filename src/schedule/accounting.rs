//! The result of a run: a report of each node, and totals.

use serde::{Deserialize, Serialize};

use crate::node::Ticks;
use crate::topology::{NodeId, RankId};

/// Result of a run as one node knows it at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunResult<A> {
    /// At the host: all answers of roots and detached tasks, combined. `None` elsewhere, and where there was no task.
    pub answer: Option<A>,
    /// At the host: the graphs in the order in which they were answered.
    pub graphs: Vec<Graph>,
    /// At the host: whether the stream of roots was ended because they came faster than they were answered (see
    /// [`Source::gave_up`](super::Source::gave_up)).
    pub gave_up: bool,
    /// At the host: the nodes' reports, in node order. Elsewhere empty.
    pub nodes: Vec<NodeReport>,
    /// At the host: ticks from the submission of the first root until the last task had ended (see [`Summary::makespan`]).
    pub makespan: Ticks,
}

impl<A> RunResult<A> {
    /// Result at the host of a run without a stream, from its answer, the nodes' reports in node order, and the makespan in ticks.
    pub fn new(answer: A, nodes: Vec<NodeReport>, makespan: Ticks) -> RunResult<A> {
        RunResult { answer: Some(answer), graphs: Vec::new(), gave_up: false, nodes, makespan }
    }

    /// The same result with its answer, if there is one, converted.
    pub fn map<B>(self, convert: impl FnOnce(A) -> B) -> RunResult<B> {
        let RunResult { answer, graphs, gave_up, nodes, makespan } = self;
        RunResult { answer: answer.map(convert), graphs, gave_up, nodes, makespan }
    }

    /// Result on all nodes other than the host.
    pub(super) fn elsewhere() -> RunResult<A> {
        RunResult { answer: None, graphs: Vec::new(), gave_up: false, nodes: Vec::new(), makespan: 0 }
    }

    /// Result on the host, which detected the end after `elapsed` ticks.
    pub(super) fn at_host(answer: Option<A>, graphs: Vec<Graph>, gave_up: bool, nodes: Vec<NodeReport>, elapsed: Ticks) -> RunResult<A> {
        let first = graphs.iter().map(|graph| graph.submitted).min().unwrap_or(0);
        let last = match nodes.iter().any(|report| report.detached > 0) {
            true => elapsed,
            false => graphs.iter().map(|graph| graph.answered).max().unwrap_or(0),
        };
        RunResult { answer, graphs, gave_up, nodes, makespan: last - first }
    }
}

/// One root and all that it spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Graph {
    /// Roots are numbered from 0 in the order of their submission.
    pub number: u64,
    /// Ticks from the beginning of the run.
    pub submitted: Ticks,
    /// Time at which the host had its answer, in ticks from the beginning of the run.
    pub answered: Ticks,
}

impl Graph {
    /// A graph that was submitted and answered at these times, in ticks from the beginning of the run.
    pub fn new(number: u64, submitted: Ticks, answered: Ticks) -> Graph {
        Graph { number, submitted, answered }
    }

    /// Ticks from submission to answer.
    pub fn response(&self) -> Ticks {
        self.answered - self.submitted
    }
}

/// Statistics of one node in a run. Times are ticks of its own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node.
    pub node: NodeId,
    /// Its rank.
    pub rank: RankId,
    /// Virtual nodes execute nothing.
    pub is_virtual: bool,
    /// Tasks that it could execute at a time.
    pub workers: u32,
    /// Time from its beginning to its end in the run.
    pub elapsed: Ticks,
    /// Spent executing tasks, summed over its workers.
    pub busy: Ticks,
    /// Time that these tasks needed: processor time and sleep, without waiting for a processor that others had. In simulation that of a rank
    /// of speed 1, as `largest` and `chain` are.
    pub needed: Ticks,
    /// Part of `needed` that was sleep.
    pub asleep: Ticks,
    /// Time of the runtime itself: receiving, deciding, packing, joining. It passes concurrently with the workers, unless tasks are executed on the
    /// communication thread. In simulation this takes no time.
    pub overhead: Ticks,
    /// Tasks that ended here.
    pub tasks: u64,
    /// Parents that were resumed here.
    pub joins: u64,
    /// Tasks that were born here: roots, children, detached tasks and split-off parts.
    pub born: u64,
    /// Number of detached tasks that ended here: tasks for which no parent waited.
    pub detached: u64,
    /// Migrations that left. A root on its way from the host to where it is first scheduled does not migrate yet.
    pub migrated_out: u64,
    /// Migrations that arrived.
    pub migrated_in: u64,
    /// Time that the longest task that ended here needed. Split tasks and their parts are not counted, nor are tasks of a computation in
    /// which all [can be split](super::Computation::DIVISIBLE).
    pub largest: Ticks,
    /// Length of the longest chain of tasks that ended here, each spawned by the one before or waiting for it; split tasks do not count.
    pub chain: Ticks,
    /// Most tasks that ever were ready here.
    pub peak_ready: u64,
    /// Most parents that ever waited here.
    pub peak_waiting: u64,
    /// Messages to other ranks, with headers.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages of the policy and of the termination waves, among `messages`.
    pub control: u64,
    /// Timeline of the node, if [`Options::trace`](super::Options::trace) asked for it.
    pub trace: Vec<Entry>,
}

impl NodeReport {
    /// Time of its workers in which no task was executed, overhead included.
    pub fn idle(&self) -> Ticks {
        (self.elapsed * Ticks::from(self.workers)).saturating_sub(self.busy)
    }
}

/// A task's name: the node where it was born, and a number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name {
    /// The node where it was born.
    pub born: NodeId,
    /// Number among those born there.
    pub number: u64,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of node {}", self.number, self.born)
    }
}

/// A line of a node's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Ticks from the node's beginning in the run.
    pub at: Ticks,
    /// The task that it is about; `None` for messages of policies.
    pub task: Option<Name>,
    /// The event.
    pub what: Happening,
}

impl Entry {
    /// A line about `task`, `at` ticks after the node's beginning in the run.
    pub fn new(at: Ticks, task: Option<Name>, what: Happening) -> Entry {
        Entry { at, task, what }
    }
}

/// An event in the life of a task, or a message of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    /// The task was executed for this number of ticks from `at` on (one line a slice).
    Executed {
        /// Ticks of the execution.
        ticks: Ticks,
    },
    /// It left for another node.
    Left {
        /// The node that it left for.
        to: NodeId,
    },
    /// It came from another node.
    Arrived {
        /// The node that it left.
        from: NodeId,
    },
    /// It waits for its children.
    Waits {
        /// Number of its children.
        children: u32,
    },
    /// Its children are answered.
    Resumed,
    /// Its answer left for another node.
    AnswerLeft {
        /// The parent's node.
        to: NodeId,
    },
    /// The answer of a child came from another node.
    AnswerArrived {
        /// The child's node.
        from: NodeId,
    },
    /// The policy sent a message to another node's.
    Announced {
        /// The node that it was sent to.
        to: NodeId,
    },
    /// The policy received a message from another node's.
    Heard {
        /// The node that sent it.
        from: NodeId,
    },
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// Tasks that were executed.
    pub tasks: u64,
    /// Parents that were resumed.
    pub joins: u64,
    /// Time that one worker, the fastest, would take: the sum of the tasks' needed times, unless it is
    /// [known better](Summary::with_sequential).
    pub sequential: Ticks,
    /// The part of that sum in which tasks slept, which takes no processor.
    pub asleep: f64,
    /// Time from the first submission to the last answer; where detached tasks were spawned, until termination was detected.
    pub makespan: Ticks,
    /// Workers of all ranks.
    pub workers: u64,
    /// Speeds of the workers; `None` if all are alike.
    pub speeds: Option<Speeds>,
    /// Time of the longest task.
    pub largest: Ticks,
    /// Length of the longest chain of tasks.
    pub chain: Ticks,
    /// Lower bound on the time of any scheduler: the longest of the chain, the largest task, and the sequential time divided by the
    /// workers; see [`bound`].
    pub bound: Ticks,
    /// Sequential time over makespan and workers; of workers of unequal speeds each counts as its speed relative to the fastest.
    pub efficiency: f64,
    /// Gain over one worker relative to the largest gain that the bound allows: 1 at the bound, 0 without gain. `None` where no gain is possible.
    pub gain: Option<f64>,
    /// Migrations of tasks from node to node.
    pub migrated: u64,
    /// Messages between ranks.
    pub messages: u64,
    /// Bytes of these messages, with headers.
    pub bytes: u64,
    /// Messages of the policy and of the termination waves, among `messages`.
    pub control: u64,
}

/// Speeds of workers that are not alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speeds {
    /// Sum over the workers, relative to the fastest.
    pub sum: f64,
    /// The slowest, relative to the fastest.
    pub slowest: f64,
}

impl Summary {
    /// Totals over the nodes, within a makespan, where times that tasks needed are those of ranks of speed 1 and the ranks have these speeds. All
    /// times are made those of the fastest worker.
    pub fn at_speeds(nodes: &[NodeReport], makespan: Ticks, speeds: &[f64]) -> Summary {
        let speed = |node: &NodeReport| speeds.get(node.rank.index()).copied().unwrap_or(1.0);
        let working = || nodes.iter().filter(|node| node.workers > 0);
        let fastest = working().map(speed).reduce(f64::max).unwrap_or(1.0);
        let slowest = working().map(speed).reduce(f64::min).unwrap_or(1.0);
        let summary = Summary::of(nodes, makespan);
        if fastest == 1.0 && slowest == 1.0 {
            return summary;
        }
        let asleep: Ticks = nodes.iter().map(|node| node.asleep).sum();
        let processor = summary.sequential.saturating_sub(asleep) as f64 / fastest;
        let sequential = processor + asleep as f64;
        // Sleep takes as long everywhere, and how much of the longest task is sleep is not known.
        let at_least = |ticks: Ticks| (ticks as f64 / if asleep == 0 { fastest } else { fastest.max(1.0) }) as Ticks;
        let sum = working().map(|node| speed(node) * f64::from(node.workers)).sum::<f64>() / fastest;
        let summary = Summary {
            speeds: (slowest < fastest).then_some(Speeds { sum, slowest: slowest / fastest }),
            asleep: if sequential > 0.0 { asleep as f64 / sequential } else { 0.0 },
            largest: at_least(summary.largest),
            chain: at_least(summary.chain),
            ..summary
        };
        summary.with_sequential(sequential as Ticks)
    }

    /// Totals over the nodes within a makespan.
    pub fn of(nodes: &[NodeReport], makespan: Ticks) -> Summary {
        let sum = |part: fn(&NodeReport) -> u64| nodes.iter().map(part).sum::<u64>();
        let most = |part: fn(&NodeReport) -> u64| nodes.iter().map(part).max().unwrap_or(0);
        let sequential = sum(|node| node.needed);
        let workers = sum(|node| u64::from(node.workers));
        let summary = Summary {
            tasks: sum(|node| node.tasks),
            joins: sum(|node| node.joins),
            makespan,
            workers,
            asleep: if sequential == 0 { 0.0 } else { sum(|node| node.asleep) as f64 / sequential as f64 },
            largest: most(|node| node.largest),
            chain: most(|node| node.chain),
            migrated: sum(|node| node.migrated_out),
            messages: sum(|node| node.messages),
            bytes: sum(|node| node.bytes),
            control: sum(|node| node.control),
            ..Summary::default()
        };
        summary.with_sequential(sequential)
    }

    /// The same against another sequential time, such as that of a plain program: bound, efficiency and gain are all taken from it.
    #[must_use]
    pub fn with_sequential(self, sequential: Ticks) -> Summary {
        let shared = shared(sequential, self.asleep, self.workers, self.speeds);
        let efficiency = if self.makespan == 0 { 1.0 } else { shared / self.makespan as f64 };
        let summary = Summary { sequential, efficiency, ..self };
        let bound = bound(std::slice::from_ref(&summary), None);
        summary.with_bound(bound)
    }

    /// The same against another bound.
    #[must_use]
    pub fn with_bound(self, bound: Ticks) -> Summary {
        let possible = self.sequential.saturating_sub(bound);
        let had = self.sequential as f64 - self.makespan as f64;
        Summary { bound, gain: (possible > 0).then(|| had / possible as f64), ..self }
    }

    /// The bound over the makespan.
    pub fn bound_efficiency(&self) -> f64 {
        if self.makespan == 0 { 1.0 } else { self.bound as f64 / self.makespan as f64 }
    }
}

/// Time in which the workers, if none ever waits, do what takes the fastest this time. A part of it is sleep, which takes as long everywhere
/// and keeps a slow worker from less work than a fast one. In any case no task takes less than on the fastest.
fn shared(sequential: Ticks, asleep: f64, workers: u64, speeds: Option<Speeds>) -> f64 {
    let alike = sequential as f64 / workers.max(1) as f64;
    let Some(Speeds { sum, slowest }) = speeds else { return alike };
    alike.max(sequential as f64 * (1.0 - asleep * (1.0 - slowest)) / sum)
}

/// Lower bound on the time of any scheduler, from runs of the same tasks: the longest of the chain, the largest task, and the sequential
/// time divided by the workers, or by the sum of their speeds. Where workers share cores, also the processor time divided by the cores. Each is the least value that any
/// run measured, since any disturbance makes a task seem longer. One worker takes the sequential time, so the bound is never more than
/// that.
pub fn bound(runs: &[Summary], cores: Option<u32>) -> Ticks {
    let least = |part: fn(&Summary) -> Ticks| runs.iter().map(part).min().unwrap_or(0);
    let (sequential, workers) = (least(|run| run.sequential), least(|run| run.workers).max(1));
    let asleep = runs.iter().map(|run| run.asleep).fold(0.0, f64::max);
    let on_cores = cores.map_or(0, |cores| (sequential as f64 * (1.0 - asleep) / f64::from(cores.max(1))) as Ticks);
    let longest = least(|run| run.largest).max(least(|run| run.chain));
    let speeds = runs.iter().find_map(|run| run.speeds);
    let shared = match speeds {
        None => sequential.div_ceil(workers),
        Some(_) => shared(sequential, asleep, workers, speeds) as Ticks,
    };
    longest.max(shared).max(on_cores).min(sequential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_compares_with_the_granularity_bound() {
        let node = |busy, largest, chain| NodeReport {
            workers: 1,
            busy,
            needed: busy,
            largest,
            chain,
            tasks: 2,
            elapsed: 60,
            ..NodeReport::default()
        };
        let summary = Summary::of(&[node(60, 30, 50), node(40, 20, 40)], 60);
        assert_eq!((summary.sequential, summary.bound, summary.tasks), (100, 50, 4));
        assert_eq!(summary.gain, Some(0.8));
        assert!((summary.efficiency - 100.0 / 120.0).abs() < 1e-12);
        assert_eq!(node(60, 30, 50).idle(), 0);
        // Against a plain program that takes 160: 80 a worker, and half of the gain was had.
        let against = Summary { makespan: 120, ..summary }.with_sequential(160);
        assert_eq!((against.sequential, against.bound, against.gain), (160, 80, Some(0.5)));
        assert!((against.efficiency - 160.0 / 240.0).abs() < 1e-12);
        // A chain can't be sped up.
        assert_eq!(Summary::of(&[node(50, 10, 50), node(0, 0, 0)], 55).gain, None);
    }

    #[test]
    fn workers_of_unequal_speeds_are_judged_by_the_fastest() {
        let node = |rank, needed, largest, chain| NodeReport {
            rank: RankId::new(rank),
            workers: 1,
            needed,
            largest,
            chain,
            ..NodeReport::default()
        };
        // Speeds 4, 2 and 1, and a virtual node: 1400 units of work, of which they do 7 a tick.
        let nodes = [node(0, 800, 80, 100), node(1, 400, 80, 160), node(2, 200, 40, 40), NodeReport::default()];
        let summary = Summary::at_speeds(&nodes, 250, &[4.0, 2.0, 1.0]);
        assert_eq!((summary.sequential, summary.bound, summary.largest, summary.chain), (350, 200, 20, 40));
        assert!((summary.efficiency - 0.8).abs() < 1e-12);
        assert_eq!(summary.gain, Some(100.0 / 150.0));
        assert_eq!(summary.clone().with_sequential(350), summary);
        // A chain takes its time on the fastest.
        let nodes = [node(0, 800, 80, 100), node(2, 200, 40, 960)];
        assert_eq!(Summary::at_speeds(&nodes, 250, &[4.0, 2.0, 1.0]).bound, 240);
        // Equal speeds are workers that are alike, only slower.
        let slow = Summary::at_speeds(&[node(0, 100, 10, 10), node(1, 100, 10, 10)], 400, &[0.5, 0.5]);
        assert_eq!((slow.sequential, slow.bound, slow.efficiency, slow.speeds), (400, 200, 0.5, None));
        // Two tasks of which each sleeps for 100 and computes 100: on speeds 2 and 1 the second ends after 200 at least.
        let asleep = |rank| NodeReport { asleep: 100, ..node(rank, 200, 200, 200) };
        let sleepers = Summary::at_speeds(&[asleep(0), asleep(1)], 200, &[2.0, 1.0]);
        assert!(sleepers.bound <= 200 && sleepers.efficiency <= 1.0, "{sleepers:?}");
    }

    #[test]
    fn runs_of_the_same_tasks_have_one_bound() {
        let run = |sequential, largest, chain| Summary { sequential, largest, chain, workers: 4, makespan: 60, ..Summary::default() };
        // A task that was disturbed in one run was not in the other.
        assert_eq!(bound(&[run(100, 90, 20), run(100, 30, 95)], None), 30);
        assert_eq!(bound(&[run(100, 10, 10), run(120, 10, 10)], None), 25);
        // One worker takes 100, so nothing that takes longer is a bound.
        assert_eq!(bound(&[run(100, 210, 20)], None), 100);
        assert_eq!(bound(&[run(100, 210, 20)], None), run(100, 210, 20).with_sequential(100).bound);
        // Four workers on two cores, or on more cores than they are.
        assert_eq!((bound(&[run(100, 10, 10)], Some(2)), bound(&[run(100, 10, 10)], Some(64))), (50, 25));
        // Tasks that sleep need no core.
        let asleep = Summary { asleep: 0.9, ..run(100, 10, 10) };
        let awake = Summary { asleep: 0.2, ..asleep.clone() };
        assert_eq!((bound(&[asleep], Some(2)), bound(&[awake], Some(2))), (25, 40));
        assert_eq!(bound(&[], None), 0);
        let judged = run(100, 10, 10).with_bound(50);
        assert_eq!((judged.gain, judged.bound_efficiency()), (Some(0.8), 50.0 / 60.0));
    }
}
