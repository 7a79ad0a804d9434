//! Tasks and answers that are not where they have to be, with the figures that show it.

use serde::{Deserialize, Serialize};

use crate::load::Checksum;
use crate::topology::NodeId;

/// Tasks or answers that were lost, doubled or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum LostTasks {
    /// All nodes together hold other tasks after a balancing phase than before.
    #[error(
        "{balancer}: {} (sum of ids {} before, {} after; of their squares {} and {}; work {} and {})",
        difference(before, after), before.ids, after.ids, before.squares, after.squares, before.work, after.work
    )]
    Changed {
        /// The phase's balancer.
        balancer: String,
        /// Sums over the tasks of all nodes before the phase.
        before: Checksum,
        /// The same sums after it.
        after: Checksum,
    },
    /// All seemed done, but a node still has tasks that were not executed.
    #[error(
        "all seemed done, but on node {node} there is left: {ready} tasks ready, {running} running, {unplaced} unplaced and {migrating} under way"
    )]
    LeftOver {
        /// The node.
        node: NodeId,
        /// Number of tasks in its work queue.
        ready: usize,
        /// Number of tasks that were begun.
        running: usize,
        /// Number of tasks that its policy has not placed.
        unplaced: usize,
        /// Number of tasks on their way to another node.
        migrating: usize,
    },
    /// All seemed done, but a task still waits for answers of its children.
    #[error("all seemed done, but on node {node} there is left: task {task}, whose children were never all answered")]
    Unanswered {
        /// The node on which it waits.
        node: NodeId,
        /// The task's name: the node on which it was born, and its number there.
        task: String,
    },
    /// An answer came for a child, and its parent does not expect it.
    #[error("the answer of child {index} of frame {frame} came, {mistake}")]
    AnswerOfChild {
        /// The parent's join frame.
        frame: u64,
        /// The child's place among its siblings, from 0.
        index: u32,
        /// Reason.
        mistake: UnexpectedAnswer,
    },
    /// An answer came for a task graph that is not open.
    #[error("the answer of graph {graph} came, but nobody waits for it")]
    AnswerOfGraph {
        /// The graph's number.
        graph: u64,
    },
    /// A task of a list ended that was not running: it ended before, or was dealt to nobody.
    #[error("task {task} ended twice, or was never dealt")]
    NotRunning {
        /// The task's number in the list.
        task: u64,
    },
    /// A task of a list has a final record already.
    #[error("task {task} has two final records")]
    RecordedTwice {
        /// The task's number in the list.
        task: u64,
    },
    /// At the end tasks of a list have neither a final record, nor are they left for another job.
    #[error("of {tasks} tasks {recorded} have a final record and {left} are left: some were lost")]
    Unrecorded {
        /// Number of tasks that were read.
        tasks: u64,
        /// Number of tasks with a final record.
        recorded: u64,
        /// Number of tasks that are left.
        left: u64,
    },
    /// A result that is incomplete or wrong: a sentence that names the computation and the difference.
    #[error("{0}")]
    WrongResult(String),
}

/// Why a parent does not expect the answer of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum UnexpectedAnswer {
    /// There is no such join frame, or it was completed.
    #[error("but nobody waits for it")]
    NobodyWaits,
    /// The parent has fewer children.
    #[error("but there is no such child")]
    NoSuchChild,
    /// The child was answered before.
    #[error("for the second time")]
    SecondTime,
}

/// Difference between two sums, as a clause.
fn difference(before: &Checksum, after: &Checksum) -> String {
    match (before.tasks, after.tasks) {
        (before, after) if before > after => format!("{} of {before} tasks were lost", before - after),
        (before, after) if before < after => format!("{before} tasks became {after}"),
        (tasks, _) if before.payload != after.payload => {
            format!("the payloads of {tasks} tasks had {} bytes before and {} after", before.payload, after.payload)
        }
        (tasks, _) => format!("{tasks} tasks are not the same after as before"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Segment;

    #[test]
    fn what_is_lost_doubled_or_changed_is_said() {
        let of = |first, count| Checksum::of(&Segment::range(first, count));
        let changed = |after| LostTasks::Changed { balancer: "cwa".into(), before: of(0, 10), after }.to_string();
        assert_eq!(
            changed(of(0, 9)),
            "cwa: 1 of 10 tasks were lost (sum of ids 45 before, 36 after; of their squares 285 and 204; work 10 and 9)"
        );
        assert!(changed(of(0, 11)).starts_with("cwa: 10 tasks became 11 "));
        assert!(changed(of(1, 10)).starts_with("cwa: 10 tasks are not the same after as before "));
        assert!(changed(Checksum { payload: 5, ..of(0, 10) }).contains("had 0 bytes before and 5 after"));
    }

    #[test]
    fn what_is_left_or_comes_unexpected_is_named() {
        let left = LostTasks::LeftOver { node: 3, ready: 2, running: 1, unplaced: 0, migrating: 4 };
        assert_eq!(left.to_string(), "all seemed done, but on node 3 there is left: 2 tasks ready, 1 running, 0 unplaced and 4 under way");
        let second = LostTasks::AnswerOfChild { frame: 7, index: 1, mistake: UnexpectedAnswer::SecondTime };
        assert_eq!(second.to_string(), "the answer of child 1 of frame 7 came, for the second time");
    }
}
