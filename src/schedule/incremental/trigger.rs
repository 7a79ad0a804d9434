//! When a phase begins: what the census of all nodes says, and what each trigger makes of it. Plain arithmetic.

use serde::{Deserialize, Serialize};

use super::Trigger;
use crate::node::Ticks;
use crate::topology::NodeId;

/// How a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    pub node: NodeId,
    /// Tasks that run.
    pub running: u32,
    /// Tasks that are ready, or wait for the next phase.
    pub ready: u32,
}

impl Standing {
    fn load(&self) -> u32 {
        self.running + self.ready
    }
}

/// What a sub-tree of nodes says in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Census {
    pub standings: Vec<Standing>,
    /// Tasks that the last phase moved, and how long it took on the slowest node.
    pub moved: u64,
    pub took: Ticks,
    /// Tasks that have ended, those that they spawned, and how long workers have worked.
    pub ended: u64,
    pub spawned: u64,
    pub worked: Ticks,
}

impl Census {
    pub fn add(&mut self, other: Census) {
        self.standings.extend(other.standings);
        self.moved += other.moved;
        self.took = self.took.max(other.took);
        self.ended += other.ended;
        self.spawned += other.spawned;
        self.worked += other.worked;
    }
}

/// What the host knows beside a census.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Nodes and, the first of these, real nodes.
    pub nodes: u32,
    pub real: u32,
    /// Tasks that a node executes at a time.
    pub workers: u32,
    /// What a phase costs, round included, and how many times as much it must gain (`predicted`).
    pub cost: Ticks,
    pub margin: f64,
    /// For how long it freezes tasks, and how long a ready task keeps a worker busy ([`weight`](super::experience::weight), if it is known): what
    /// a node would have executed meanwhile is not worth moving (`predicted`).
    pub frozen: Ticks,
    pub weight: Option<Ticks>,
    /// For how long there was something to move and somebody to move it to (`predicted`).
    pub persisted: Ticks,
}

/// What follows from a census.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A phase begins; by node, how many tasks it keeps.
    Phase(Vec<u32>),
    /// None does, since there is nothing to move, or nobody to move it to. Whether somebody idles.
    Nothing { idle: bool },
    /// Something could be moved, but it would not pay yet.
    NotWorthIt,
}

/// Whether a phase begins.
pub(super) fn judge(trigger: Trigger, census: &Census, known: &Known) -> Verdict {
    let Known { nodes, real, workers, cost, margin, frozen, weight, persisted } = *known;
    let standings = || census.standings.iter().filter(|standing| standing.node < real);
    let loads = || standings().map(Standing::load);
    let total: u64 = loads().map(u64::from).sum();
    let average = total / u64::from(real.max(1));
    // A node keeps what any balancer would leave it: its share, or what its workers execute at once.
    let share = u32::try_from(average).unwrap_or(u32::MAX).max(workers);
    let keeps = |standing: &Standing, share: u32| standing.running.max(standing.load().min(share));
    let surplus = |share: u32| standings().any(|standing| standing.load() > keeps(standing, share));
    let phase = |share: u32| {
        let mut kept = vec![0; nodes as usize];
        for standing in standings() {
            if let Some(kept) = kept.get_mut(standing.node as usize) {
                *kept = keeps(standing, share);
            }
        }
        Verdict::Phase(kept)
    };
    let (least, most) = (loads().min().unwrap_or(0), loads().max().unwrap_or(0));
    let idle = least < workers;
    // `all`: what was spawned since the last phase can't begin before the next one, wherever it lies.
    if trigger == Trigger::All {
        let waiting = census.standings.iter().any(|standing| standing.ready > 0);
        let all = census.standings.iter().all(|standing| standing.running == 0);
        return match (waiting, all) {
            (true, true) => phase(share),
            (true, false) => Verdict::NotWorthIt,
            (false, _) => Verdict::Nothing { idle: true },
        };
    }
    let uneven = idle || trigger == Trigger::Periodic && most - least > 1;
    if !surplus(share) || !uneven {
        return Verdict::Nothing { idle };
    }
    if trigger != Trigger::Predicted {
        return phase(share);
    }
    let Some(weight) = weight else { return phase(share) };
    let meanwhile = frozen.div_ceil(weight.max(1)).saturating_mul(workers.into());
    let share = share.max(u32::try_from(meanwhile).unwrap_or(u32::MAX));
    let rounds = |load: u64| load.div_ceil(u64::from(workers.max(1)));
    let gain = rounds(most.into()).saturating_sub(rounds(total.div_ceil(u64::from(real.max(1))))).saturating_mul(weight);
    // Weights may be too small: an imbalance that has lasted for so long is expected to last as long again.
    let pays = gain.max(persisted) as f64 > cost as f64 * margin;
    if surplus(share) && pays { phase(share) } else { Verdict::NotWorthIt }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(standings: &[(u32, u32)]) -> Census {
        let standing = |(node, (running, ready)): (NodeId, &(u32, u32))| Standing { node, running: *running, ready: *ready };
        Census { standings: (0..).zip(standings).map(standing).collect(), ..Census::default() }
    }

    const KNOWN: Known = Known { nodes: 4, real: 3, workers: 1, cost: 0, margin: 1.0, frozen: 0, weight: Some(100), persisted: 0 };

    #[test]
    fn a_node_keeps_its_share_and_what_runs() {
        let of = |standings: &[(u32, u32)]| judge(Trigger::Any, &census(standings), &KNOWN);
        assert_eq!(of(&[(1, 8), (0, 0), (1, 1), (0, 0)]), Verdict::Phase(vec![3, 0, 2, 0]));
        assert_eq!(of(&[(1, 8), (1, 0), (1, 1), (0, 0)]), Verdict::Nothing { idle: false });
        assert_eq!(of(&[(1, 0), (0, 0), (0, 1), (0, 0)]), Verdict::Nothing { idle: true }, "all that there is can begin at once");
        let three = Known { workers: 3, ..KNOWN };
        assert_eq!(judge(Trigger::Any, &census(&[(3, 0), (0, 0), (1, 0)]), &three), Verdict::Nothing { idle: true });
        assert_eq!(judge(Trigger::Any, &census(&[(3, 1), (0, 0), (1, 0)]), &three), Verdict::Phase(vec![3, 0, 1, 0]));
    }

    #[test]
    fn periodic_evens_out_before_anybody_idles_and_all_waits_for_the_last() {
        let of = |trigger, standings: &[(u32, u32)]| judge(trigger, &census(standings), &KNOWN);
        assert_eq!(of(Trigger::Periodic, &[(1, 8), (1, 0), (1, 1)]), Verdict::Phase(vec![4, 1, 2, 0]));
        assert_eq!(of(Trigger::Periodic, &[(1, 2), (1, 1), (1, 1)]), Verdict::Nothing { idle: false });
        assert_eq!(of(Trigger::All, &[(0, 8), (1, 0), (0, 1)]), Verdict::NotWorthIt);
        assert_eq!(of(Trigger::All, &[(0, 8), (0, 0), (0, 1)]), Verdict::Phase(vec![3, 0, 1, 0]));
        assert_eq!(of(Trigger::All, &[(0, 0), (0, 0), (0, 1)]), Verdict::Phase(vec![0, 0, 1, 0]), "they wait even if all stay");
        assert_eq!(of(Trigger::All, &[(0, 0); 3]), Verdict::Nothing { idle: true });
    }

    #[test]
    fn a_phase_is_expected_to_pay_if_the_longest_queue_shrinks_by_more_than_it_costs() {
        // Tasks take 100; 9, 0 and 0 become 3 each: 600 are gained.
        let of = |cost, workers| judge(Trigger::Predicted, &census(&[(1, 8), (0, 0), (0, 0)]), &Known { workers, cost, ..KNOWN });
        assert_eq!(of(599, 1), Verdict::Phase(vec![3, 0, 0, 0]));
        assert_eq!(of(600, 1), Verdict::NotWorthIt);
        assert_eq!(of(199, 3), Verdict::Phase(vec![3, 0, 0, 0]));
        assert_eq!(of(200, 3), Verdict::NotWorthIt);
        let lasting = Known { cost: 600, persisted: 601, ..KNOWN };
        assert_eq!(judge(Trigger::Predicted, &census(&[(1, 8), (0, 0), (0, 0)]), &lasting), Verdict::Phase(vec![3, 0, 0, 0]));
        let of = |weight| judge(Trigger::Predicted, &census(&[(1, 8), (0, 0), (0, 0)]), &Known { cost: 9999, weight, ..KNOWN });
        assert_eq!(of(None), Verdict::Phase(vec![3, 0, 0, 0]), "nothing is known yet");
        assert_eq!(of(Some(Ticks::MAX)), Verdict::Phase(vec![3, 0, 0, 0]), "there is no end of what tasks spawn");
        assert_eq!(of(Some(1666)), Verdict::NotWorthIt);
        assert_eq!(of(Some(1667)), Verdict::Phase(vec![3, 0, 0, 0]));
    }

    #[test]
    fn by_prediction_a_node_keeps_what_it_executes_while_a_phase_lasts() {
        let of = |trigger, frozen| judge(trigger, &census(&[(1, 8), (0, 0), (1, 5)]), &Known { frozen, ..KNOWN });
        assert_eq!(of(Trigger::Predicted, 500), Verdict::Phase(vec![5, 0, 5, 0]));
        assert_eq!(of(Trigger::Predicted, 501), Verdict::Phase(vec![6, 0, 6, 0]));
        assert_eq!(of(Trigger::Predicted, 801), Verdict::NotWorthIt, "all would be done before it could move");
        assert_eq!(of(Trigger::Any, 801), Verdict::Phase(vec![5, 0, 5, 0]));
    }
}
