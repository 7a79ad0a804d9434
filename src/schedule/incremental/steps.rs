//! Rounds as the steps of a published criterion ([`crate::trigger`]): how long nodes worked from one round to the next.

use serde::{Deserialize, Serialize};

use crate::node::Ticks;
use crate::trigger::{Criterion, Step, Watch};

/// Work time of the nodes of a sub-tree since the last round. Only nodes with workers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Worked {
    nodes: u32,
    total: Ticks,
    most: Ticks,
    least: Ticks,
}

impl Worked {
    /// Work time of one node.
    pub fn of(time: Ticks) -> Worked {
        Worked { nodes: 1, total: time, most: time, least: time }
    }

    /// Combined work time of two sub-trees.
    pub fn and(self, other: Worked) -> Worked {
        Worked {
            nodes: self.nodes + other.nodes,
            total: self.total + other.total,
            most: self.most.max(other.most),
            least: self.least.min(other.least),
        }
    }
}

/// At the host: a criterion, and what it has seen of the rounds since the last phase.
#[derive(Debug)]
pub(super) struct Rounds {
    watch: Watch,
    /// Workers of a node.
    workers: u32,
}

impl Rounds {
    pub fn new(criterion: Criterion, workers: u32) -> Rounds {
        Rounds { watch: Watch::new(criterion), workers: workers.max(1) }
    }

    /// Notes the end of a round. Returns true if the criterion asks for a phase, which costs `cost`. The round's loss by imbalance is the
    /// work of the busiest node above the mean, in which others idled.
    pub fn ended(&mut self, worked: Option<Worked>, cost: Ticks) -> bool {
        let Some(worked) = worked else { return false };
        let time = |ticks: Ticks| ticks as f64 / f64::from(self.workers);
        let step = Step { max: time(worked.most), mean: time(worked.total) / f64::from(worked.nodes), min: time(worked.least) };
        self.watch.ended(step, cost as f64)
    }

    /// A phase begins.
    pub fn balanced(&mut self) {
        self.watch.balanced();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_adds_up_to_the_cost() {
        let mut rounds = Rounds::new(Criterion::Cumulative, 2);
        // On two workers 400 is 200 for each; the mean is 100 for each.
        let worked = Some([400, 0, 200, 200].map(Worked::of).into_iter().reduce(Worked::and).unwrap());
        assert!(!rounds.ended(worked, 250));
        assert!(!rounds.ended(worked, 250));
        assert!(rounds.ended(worked, 250));
        rounds.balanced();
        assert!(!rounds.ended(worked, 250));
        assert!(!rounds.ended(None, 0), "nobody worked");
    }

    #[test]
    fn the_idlest_node_counts() {
        let worked = Worked::of(10).and(Worked::of(9)).and(Worked::of(2));
        assert_eq!(worked, Worked { nodes: 3, total: 21, most: 10, least: 2 });
        assert!(Rounds::new(Criterion::Tolerance { part: 0.5 }, 1).ended(Some(worked), 0));
    }
}
