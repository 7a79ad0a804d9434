//! Decision on the beginning of a phase: the loads of all nodes, and the conclusion of each trigger from them. Plain arithmetic.

use serde::{Deserialize, Serialize};

use super::Trigger;
use crate::advice;
use crate::node::Ticks;
use crate::topology::NodeId;

/// The load of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeLoad {
    pub node: NodeId,
    /// Tasks that run.
    pub running: u32,
    /// Tasks that are ready, or wait for the next phase.
    pub ready: u32,
}

impl NodeLoad {
    fn total(&self) -> u32 {
        self.running + self.ready
    }
}

/// The loads of a sub-tree of nodes in a round, and what these nodes have done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoadSummary {
    pub loads: Vec<NodeLoad>,
    /// Tasks that the last phase moved, and how long it took on the slowest node.
    pub moved: u64,
    pub took: Ticks,
    /// Number of tasks that have ended and of those that they spawned, and how long workers have worked.
    pub ended: u64,
    pub spawned: u64,
    pub worked: Ticks,
}

impl LoadSummary {
    pub fn add(&mut self, other: LoadSummary) {
        self.loads.extend(other.loads);
        self.moved += other.moved;
        self.took = self.took.max(other.took);
        self.ended += other.ended;
        self.spawned += other.spawned;
        self.worked += other.worked;
    }
}

/// Input of the host's decision, besides the loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Nodes and, the first of these, real nodes.
    pub nodes: u32,
    pub real: u32,
    /// Tasks that a node executes at a time.
    pub workers: u32,
    /// Cost of a phase, round included, and the factor by which its gain must exceed it (`predicted`).
    pub cost: Ticks,
    pub margin: f64,
    /// For how long it freezes tasks, and how long a ready task keeps a worker busy ([`weight`](super::cost_model::weight), if it is known): what
    /// a node would have executed meanwhile is not worth moving (`predicted`).
    pub frozen: Ticks,
    pub weight: Option<Ticks>,
    /// Time for which there were tasks to move and a node to move them to (`predicted`).
    pub persisted: Ticks,
    /// Whether the published criterion asks for a phase, if there is one.
    pub is_due: bool,
}

/// Decision of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// A phase begins; by node, how many tasks it keeps.
    Phase(Vec<u32>),
    /// No phase, since there are no tasks to move, or no node to move them to. Says whether a node idles.
    Nothing { idle: bool },
    /// Something could be moved, but it would not pay yet.
    NotWorthIt,
}

/// Decides whether a phase begins.
pub(super) fn judge(trigger: Trigger, summary: &LoadSummary, known: &Known) -> Decision {
    let Known { nodes, real, workers, cost, margin, frozen, weight, persisted, is_due } = *known;
    let real_nodes = || summary.loads.iter().filter(|load| load.node < real);
    let totals = || real_nodes().map(NodeLoad::total);
    let total: u64 = totals().map(u64::from).sum();
    let average = total / u64::from(real.max(1));
    // A node keeps what any balancer would leave it: its share, or what its workers execute at once.
    let share = u32::try_from(average).unwrap_or(u32::MAX).max(workers);
    let keeps = |load: &NodeLoad, share: u32| load.running.max(load.total().min(share));
    let surplus = |share: u32| real_nodes().any(|load| load.total() > keeps(load, share));
    let phase = |share: u32| {
        let mut kept = vec![0; nodes as usize];
        for load in real_nodes() {
            if let Some(kept) = kept.get_mut(load.node as usize) {
                *kept = keeps(load, share);
            }
        }
        Decision::Phase(kept)
    };
    let (least, most) = (totals().min().unwrap_or(0), totals().max().unwrap_or(0));
    let idle = least < workers;
    // `all`: what was spawned since the last phase can't begin before the next one, wherever it lies.
    if trigger == Trigger::All {
        let waiting = summary.loads.iter().any(|load| load.ready > 0);
        let all = summary.loads.iter().all(|load| load.running == 0);
        return match (waiting, all) {
            (true, true) => phase(share),
            (true, false) => Decision::NotWorthIt,
            (false, _) => Decision::Nothing { idle: true },
        };
    }
    let uneven = idle || trigger.goes_by_the_clock() && most - least > 1;
    if !surplus(share) || !uneven || !is_due {
        return Decision::Nothing { idle };
    }
    if trigger != Trigger::Predicted {
        return phase(share);
    }
    let Some(weight) = weight else { return phase(share) };
    let meanwhile = frozen.div_ceil(weight.max(1)).saturating_mul(workers.into());
    let share = share.max(u32::try_from(meanwhile).unwrap_or(u32::MAX));
    let rounds = |load: u64| load.div_ceil(u64::from(workers.max(1)));
    let gain = rounds(most.into()).saturating_sub(rounds(total.div_ceil(u64::from(real.max(1))))).saturating_mul(weight);
    // Weights may be too small: an imbalance that has lasted for some time is expected to last as long again.
    let pays = advice::pays(gain.max(persisted) as f64, cost as f64 * margin);
    if surplus(share) && pays { phase(share) } else { Decision::NotWorthIt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::Criterion;

    fn summary(loads: &[(u32, u32)]) -> LoadSummary {
        let load = |(node, (running, ready)): (NodeId, &(u32, u32))| NodeLoad { node, running: *running, ready: *ready };
        LoadSummary { loads: (0..).zip(loads).map(load).collect(), ..LoadSummary::default() }
    }

    const KNOWN: Known =
        Known { nodes: 4, real: 3, workers: 1, cost: 0, margin: 1.0, frozen: 0, weight: Some(100), persisted: 0, is_due: true };

    #[test]
    fn a_node_keeps_its_share_and_what_runs() {
        let of = |loads: &[(u32, u32)]| judge(Trigger::Any, &summary(loads), &KNOWN);
        assert_eq!(of(&[(1, 8), (0, 0), (1, 1), (0, 0)]), Decision::Phase(vec![3, 0, 2, 0]));
        assert_eq!(of(&[(1, 8), (1, 0), (1, 1), (0, 0)]), Decision::Nothing { idle: false });
        assert_eq!(of(&[(1, 0), (0, 0), (0, 1), (0, 0)]), Decision::Nothing { idle: true }, "all that there is can begin at once");
        let three = Known { workers: 3, ..KNOWN };
        assert_eq!(judge(Trigger::Any, &summary(&[(3, 0), (0, 0), (1, 0)]), &three), Decision::Nothing { idle: true });
        assert_eq!(judge(Trigger::Any, &summary(&[(3, 1), (0, 0), (1, 0)]), &three), Decision::Phase(vec![3, 0, 1, 0]));
    }

    #[test]
    fn periodic_evens_out_before_anybody_idles_and_all_waits_for_the_last() {
        let of = |trigger, loads: &[(u32, u32)]| judge(trigger, &summary(loads), &KNOWN);
        assert_eq!(of(Trigger::Periodic, &[(1, 8), (1, 0), (1, 1)]), Decision::Phase(vec![4, 1, 2, 0]));
        assert_eq!(of(Trigger::Periodic, &[(1, 2), (1, 1), (1, 1)]), Decision::Nothing { idle: false });
        assert_eq!(of(Trigger::All, &[(0, 8), (1, 0), (0, 1)]), Decision::NotWorthIt);
        assert_eq!(of(Trigger::All, &[(0, 8), (0, 0), (0, 1)]), Decision::Phase(vec![3, 0, 1, 0]));
        assert_eq!(of(Trigger::All, &[(0, 0), (0, 0), (0, 1)]), Decision::Phase(vec![0, 0, 1, 0]), "they wait even if all stay");
        assert_eq!(of(Trigger::All, &[(0, 0); 3]), Decision::Nothing { idle: true });
    }

    #[test]
    fn a_published_criterion_decides_when_and_loads_whether_there_is_anything_to_move() {
        let of =
            |is_due, loads: &[(u32, u32)]| judge(Trigger::Published(Criterion::Cumulative), &summary(loads), &Known { is_due, ..KNOWN });
        assert_eq!(of(true, &[(1, 8), (1, 0), (1, 1)]), Decision::Phase(vec![4, 1, 2, 0]));
        assert_eq!(of(false, &[(1, 8), (1, 0), (1, 1)]), Decision::Nothing { idle: false });
        assert_eq!(of(true, &[(1, 2), (1, 1), (1, 1)]), Decision::Nothing { idle: false });
    }

    #[test]
    fn a_phase_is_expected_to_pay_if_the_longest_queue_shrinks_by_more_than_it_costs() {
        // Tasks take 100; 9, 0 and 0 become 3 each: 600 are gained.
        let of = |cost, workers| judge(Trigger::Predicted, &summary(&[(1, 8), (0, 0), (0, 0)]), &Known { workers, cost, ..KNOWN });
        assert_eq!(of(599, 1), Decision::Phase(vec![3, 0, 0, 0]));
        assert_eq!(of(600, 1), Decision::NotWorthIt);
        assert_eq!(of(199, 3), Decision::Phase(vec![3, 0, 0, 0]));
        assert_eq!(of(200, 3), Decision::NotWorthIt);
        let lasting = Known { cost: 600, persisted: 601, ..KNOWN };
        assert_eq!(judge(Trigger::Predicted, &summary(&[(1, 8), (0, 0), (0, 0)]), &lasting), Decision::Phase(vec![3, 0, 0, 0]));
        let of = |weight| judge(Trigger::Predicted, &summary(&[(1, 8), (0, 0), (0, 0)]), &Known { cost: 9999, weight, ..KNOWN });
        assert_eq!(of(None), Decision::Phase(vec![3, 0, 0, 0]), "nothing is known yet");
        assert_eq!(of(Some(Ticks::MAX)), Decision::Phase(vec![3, 0, 0, 0]), "there is no end of what tasks spawn");
        assert_eq!(of(Some(1666)), Decision::NotWorthIt);
        assert_eq!(of(Some(1667)), Decision::Phase(vec![3, 0, 0, 0]));
    }

    #[test]
    fn by_prediction_a_node_keeps_what_it_executes_while_a_phase_lasts() {
        let of = |trigger, frozen| judge(trigger, &summary(&[(1, 8), (0, 0), (1, 5)]), &Known { frozen, ..KNOWN });
        assert_eq!(of(Trigger::Predicted, 500), Decision::Phase(vec![5, 0, 5, 0]));
        assert_eq!(of(Trigger::Predicted, 501), Decision::Phase(vec![6, 0, 6, 0]));
        assert_eq!(of(Trigger::Predicted, 801), Decision::NotWorthIt, "all would be done before it could move");
        assert_eq!(of(Trigger::Any, 801), Decision::Phase(vec![5, 0, 5, 0]));
    }
}
