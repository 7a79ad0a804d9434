//! `NAME+refine`: what whole tasks leave after any balancer is repaired by pairs of ranks, without an all-gather.
//!
//! 1. The balancer runs.
//! 2. Reduction: all work and all powers, hence the time with work evenly over all ranks.
//! 3. In round k of a sweep rank i and the rank whose number differs in bit k (in the second sweep: in bits k and k + 1) tell each other what tasks
//!    they hold, and share them as [`refine`](super::refine) does for two ranks: both compute the same, and each sends what the other one gets. Two ranks that are both
//!    within the tolerance of that time move nothing.
//!
//! ```text
//!   0 <-> 1   2 <-> 3   4 <-> 5      bit 0
//!   0 <-----> 2   1 <-----> 3        bit 1; 4 and 5 have no partner among six
//!   0 <-----------> 4                bit 2; 1 <-> 5
//! ```
//!
//! Cost: a reduction, and three sweeps of ceil(log2 n) rounds, of a message and one with tasks from each rank; every rank knows its partner's tasks only.
//!
//! Guarantee: no pair's slower rank becomes slower, so the slowest of all does not either. What virtual nodes hold after the balancer stays with them, and
//! counts for the rank that hosts them; that costs no message between ranks.
//! Unit tasks are left as they are where the balancer is exact. It ends near the mean, and not at an optimum: pairs that never meet don't even out.
//!
//! Source: the rounds are those of dimension exchange (Cybenko 1989), with whole tasks.

use super::items::{Items, TaskRange};
use super::{Balancer, Chosen, Phase, Quota, Running, Stage};
use crate::assign::{self, Problem};
use crate::error::Result;
use crate::load::{RankTime, Shares, WorkQueue};
use crate::node::Tag;
use crate::topology::{NodeId, Overlay, Placement, Topology};

const PAIR: Tag = crate::node::tags::balance::PAIR;
const GUEST_LOAD: Tag = crate::node::tags::balance::GUEST_LOAD;

/// Suffix of a balancer's name that asks for the repair.
pub(super) const SUFFIX: &str = "+refine";

/// Number of sweeps over all bits.
const SWEEPS: u32 = 3;

pub(super) struct Repaired {
    walk: Chosen,
}

impl Repaired {
    pub(super) fn new(walk: Chosen) -> Repaired {
        Repaired { walk }
    }
}

impl Balancer for Repaired {
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        self.walk.quota(topology, total, shares)
    }

    fn reachable(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        self.walk.reachable(topology, total, shares)
    }

    fn aims(&self, overlay: &Overlay, loads: &[u64], shares: &Shares) -> Quota {
        self.walk.aims(overlay, loads, shares)
    }

    fn is_checked(&self, shares: &Shares, placement: &Placement) -> bool {
        self.walk.is_checked(shares, placement) || placement.is_overlay()
    }

    fn needs_places(&self) -> bool {
        self.walk.needs_places()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(async move {
            self.walk.run(phase).await?;
            if phase.shares.are_weighted() || !self.walk.entry.facts.promises.exact { sweep(phase).await } else { Ok(()) }
        })
    }
}

/// In what the numbers of the two ranks of a pair differ, by round. Where each pair of one bit is as even as it can be, others need not be.
fn masks(bits: u32) -> impl Iterator<Item = u32> {
    (0..SWEEPS).flat_map(move |sweep| (0..bits).map(move |bit| if sweep == 1 { 1 << bit | 1 << ((bit + 1) % bits) } else { 1 << bit }))
}

/// Steps 2 and 3.
async fn sweep(phase: &mut Phase<'_>) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me());
    let placement = &node.overlay().placement;
    let (ranks, rank) = (placement.ranks(), placement.rank_of(me));
    phase.enter(Stage::Information);
    let mine = (phase.load(), phase.powers().of(me));
    let add = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
    let (work, power) = node.everyone().all_reduce(node, mine, add).await?;
    let mean = RankTime { work, power };
    // The first nodes are the ranks' own.
    if me >= ranks {
        node.send(placement.real_node_of(rank), GUEST_LOAD, &phase.load());
        return Ok(());
    }
    let mut of_guests = 0;
    let guests = if placement.native() { Vec::new() } else { placement.nodes_on(rank).split_off(1) };
    for guest in guests {
        of_guests += node.receive::<u64>(guest, GUEST_LOAD).await?;
    }
    let bits = ranks.next_power_of_two().ilog2();
    for partner in masks(bits).map(|mask| me ^ mask) {
        if partner >= ranks || phase.powers().of(me) == 0 && phase.powers().of(partner) == 0 {
            continue;
        }
        phase.enter(Stage::Information);
        let mine = held(phase.mover.queue, of_guests);
        node.send(partner, PAIR, &mine);
        let theirs: Held = node.receive(partner, PAIR).await?;
        phase.enter(Stage::Decision);
        let (low, high) = (me.min(partner), me.max(partner));
        let both = if me == low { [mine, theirs] } else { [theirs, mine] };
        node.charge(both.iter().map(|(rows, _)| rows.len() as u64).sum());
        let passes = shared(both, [low, high].map(|node| phase.powers().of(node)), mean);
        phase.enter(Stage::Exchange);
        let gives = |from: NodeId| passes.iter().filter(move |range| (if range.node == 0 { low } else { high }) == from);
        let parts: Vec<(u64, u64, NodeId)> = gives(me).map(|range| (range.at, range.count, partner)).collect();
        phase.mover.deal_out(&parts).await;
        if gives(partner).next().is_some() {
            phase.mover.take_in_order(&[partner]).await?;
        }
    }
    Ok(())
}

/// A rank's tasks: weight and number of each row of those that may move, and the work of those that may not, virtual nodes' included.
type Held = (Vec<(u64, u64)>, u64);

fn held(queue: &WorkQueue, of_guests: u64) -> Held {
    (queue.movable_rows(), queue.work() - queue.movable() + of_guests)
}

/// Tasks that go from one rank to the other, as positions among the sender's own tasks (node 0 is the first rank, node 1 the second).
fn shared([first, second]: [Held; 2], powers: [u64; 2], mean: RankTime) -> Vec<TaskRange> {
    let fixed = [first.1, second.1];
    let items = Items::of(&[(first.0, Vec::new()), (second.0, Vec::new())], false);
    let owners: Vec<u32> = items.ranges.iter().map(|range| range.node).collect();
    let assignment = assign::refine_towards(&Problem { weights: &items.weights, owners: &owners, fixed: &fixed, powers: &powers }, mean);
    items.ranges.into_iter().zip(assignment).filter(|(range, rank)| range.node != *rank).map(|(range, _)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;

    #[test]
    fn other_pairs_meet_in_the_second_sweep() {
        assert!(masks(3).eq([1, 2, 4, 3, 6, 5, 1, 2, 4]));
        assert!(masks(1).eq([1, 1, 1]) && masks(0).next().is_none());
    }

    #[test]
    fn two_ranks_share_what_they_hold() {
        let mean = |work| RankTime { work, power: 2 };
        let passes = shared([(vec![(5, 2)], 1), (vec![(4, 1), (2, 1)], 0)], [1, 1], mean(17));
        // 11 and 6: 5 for 2 makes 8 and 9.
        assert_eq!(passes.iter().map(|range| (range.node, range.at, range.count)).collect::<Vec<_>>(), [(0, 0, 1), (1, 1, 1)]);
        assert_eq!(shared([(vec![], 9), (vec![], 0)], [1, 1], mean(9)), []);
        assert_eq!(shared([(vec![(3, 2)], 0), (vec![], 0)], [0, 1], mean(6)).len(), 2, "without power nothing stays");
        // Where others have more, these two are even enough; where they have a little less, as little moves as brings both below that.
        let uneven = || [(vec![(1, 90)], 0), (vec![(1, 50)], 0)];
        let moved = |mean| shared(uneven(), [1, 1], mean).iter().map(|range| range.count).sum::<u64>();
        assert_eq!([moved(mean(200)), moved(mean(160)), moved(mean(140))], [0, 10, 20]);
    }

    #[test]
    fn whole_tasks_are_repaired_and_unit_tasks_are_left() {
        let weights = [9, 7, 7, 5, 5, 3, 8, 8, 1, 2, 6, 6, 4, 4, 3, 1];
        let worst = |balancer: &str| *Trial::weighing(balancer, &[8, 2, 4, 2], &weights, &[1; 4]).after.iter().max().unwrap();
        // 79 units.
        assert!(worst("pslb+refine") <= worst("pslb"));
        assert_eq!(worst("none+refine"), 20);
        let (walk, repaired) = (Trial::of("cwa", "hypercube:2", &[9, 1, 0, 6]), Trial::of("cwa+refine", "hypercube:2", &[9, 1, 0, 6]));
        assert_eq!((walk.plan, walk.counts), (repaired.plan, repaired.counts));
        assert!(super::super::find("cwa+refined").is_err() && super::super::find("+refine").is_err());
    }
}
