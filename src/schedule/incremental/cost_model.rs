//! Cost model of the host, updated with each round: the cost of phases, and the work that a queued task stands for.

use super::trigger::LoadSummary;
use crate::node::Ticks;

/// A phase did not pay if the rate of work after it is below this part of the rate before it.
const SLOWER: f64 = 0.9;

/// Tasks for each node that must have ended before the weight of one is measured anew.
const MEASURED: u64 = 2;

/// Totals of all nodes up to a round.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    at: Ticks,
    ended: u64,
    spawned: u64,
    worked: Ticks,
}

#[derive(Debug, Default)]
pub(super) struct CostModel {
    /// Smoothed cost of a phase, including the round before it, and the time for which it freezes tasks on the slowest node.
    cost: Option<Ticks>,
    frozen: Option<Ticks>,
    /// See [`weight`], and since when it is measured anew.
    weight: Option<Ticks>,
    measured: Totals,
    /// The last round, and how many workers worked on average before it.
    last: Totals,
    rate: f64,
    /// Time since which there have been tasks to move and a node to move them to.
    since: Option<Ticks>,
}

impl CostModel {
    /// Learns from the loads of a round. `before` is how long the round took that led to the phase that has ended since the last one, if there was
    /// one.
    pub fn learn(&mut self, now: Ticks, summary: &LoadSummary, before: Option<Ticks>) {
        let totals = Totals { at: now, ended: summary.ended, spawned: summary.spawned, worked: summary.worked };
        let rate = totals.worked.saturating_sub(self.last.worked) as f64 / now.saturating_sub(self.last.at).max(1) as f64;
        if let Some(before) = before {
            let smooth = |so_far: Option<Ticks>, more| Some(so_far.map_or(more, |so_far| (so_far + more) / 2));
            self.cost = smooth(self.cost, before + summary.took);
            self.frozen = smooth(self.frozen, summary.took);
            if rate < self.rate * SLOWER {
                self.since = None;
            }
        }
        (self.last, self.rate) = (totals, rate);
        let ended = totals.ended.saturating_sub(self.measured.ended);
        if ended >= MEASURED * summary.loads.len() as u64 {
            let spawned = totals.spawned.saturating_sub(self.measured.spawned);
            self.weight = Some(weight(ended, spawned, totals.worked.saturating_sub(self.measured.worked)));
            self.measured = totals;
        }
    }

    /// Records whether there are tasks to move and a node to move them to.
    pub fn uneven(&mut self, now: Ticks, uneven: bool) {
        self.since = uneven.then(|| self.since.unwrap_or(now));
    }

    /// For how long there has been.
    pub fn persisted(&self, now: Ticks) -> Ticks {
        self.since.map_or(0, |since| now.saturating_sub(since))
    }

    /// Predicted cost of a phase, after a round of this duration. Before the first phase it is two rounds, the least time of a balancer
    /// with global information.
    pub fn cost(&self, round: Ticks) -> Ticks {
        self.cost.unwrap_or(2 * round)
    }

    /// For how long a phase freezes tasks.
    pub fn frozen(&self, round: Ticks) -> Ticks {
        self.frozen.unwrap_or(round)
    }

    /// See [`weight`]; `None` before enough tasks have ended.
    pub fn weight(&self) -> Option<Ticks> {
        self.weight
    }
}

/// Time for which a ready task keeps a worker busy, including all tasks that it spawns: during `worked` ticks of work, queues became shorter by the
/// tasks that ended less the children that were spawned. This is the mean total progeny of a branching process, 1 / (1 - m), times the mean time of
/// a task (Harris, "The theory of branching processes", 1963, chapter I); [`Ticks::MAX`] while queues don't get shorter (m >= 1).
pub(super) fn weight(ended: u64, spawned: u64, worked: Ticks) -> Ticks {
    worked.checked_div(ended.saturating_sub(spawned)).unwrap_or(Ticks::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::incremental::trigger::NodeLoad;

    fn summary(ended: u64, spawned: u64, worked: Ticks, took: Ticks) -> LoadSummary {
        LoadSummary { loads: vec![NodeLoad::default(); 3], ended, spawned, worked, took, ..LoadSummary::default() }
    }

    #[test]
    fn a_task_that_spawns_weighs_what_its_children_take() {
        assert_eq!(weight(10, 0, 1000), 100, "leaves");
        assert_eq!(weight(10, 5, 1000), 200, "every second task has a child");
        assert_eq!(weight(10, 9, 1000), 1000);
        assert_eq!(weight(10, 10, 1000), Ticks::MAX);
        assert_eq!(weight(10, 30, 1000), Ticks::MAX, "there is no end of it");
    }

    #[test]
    fn weights_are_measured_over_windows_with_enough_tasks() {
        let mut cost_model = CostModel::default();
        cost_model.learn(10, &summary(5, 0, 50, 0), None);
        assert_eq!(cost_model.weight(), None);
        cost_model.learn(20, &summary(6, 9, 60, 0), None);
        assert_eq!(cost_model.weight(), Some(Ticks::MAX));
        // Five tasks are too few; with the sixth all six count.
        cost_model.learn(30, &summary(11, 9, 110, 0), None);
        assert_eq!(cost_model.weight(), Some(Ticks::MAX));
        cost_model.learn(40, &summary(12, 12, 120, 0), None);
        assert_eq!(cost_model.weight(), Some(20), "six ended and three were spawned in 60");
    }

    #[test]
    fn costs_are_smoothed_and_a_phase_after_which_less_is_done_has_not_paid() {
        let mut cost_model = CostModel::default();
        assert_eq!((cost_model.cost(40), cost_model.frozen(40)), (80, 40));
        cost_model.learn(100, &summary(0, 0, 200, 0), None);
        cost_model.uneven(100, true);
        cost_model.learn(200, &summary(0, 0, 400, 60), Some(40));
        assert_eq!((cost_model.cost(9), cost_model.frozen(9)), (100, 60));
        cost_model.uneven(200, true);
        assert_eq!(cost_model.persisted(250), 150);
        cost_model.learn(300, &summary(0, 0, 500, 20), Some(20));
        assert_eq!((cost_model.cost(9), cost_model.frozen(9)), (70, 40));
        assert_eq!(cost_model.persisted(350), 0, "one worker instead of two");
        cost_model.uneven(350, true);
        cost_model.uneven(360, false);
        assert_eq!(cost_model.persisted(400), 0);
    }
}
