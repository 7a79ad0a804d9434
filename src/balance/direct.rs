//! Direct balancing: from one exchange of the loads, nodes with a surplus send it straight to nodes with a deficit.
//!
//! What somebody who knows the network to be a switch would write today, and what the papers' walks have to be compared with. All
//! nodes gather all loads, so each computes the same plan and takes its own part of it: the surpluses, one behind the other in node order,
//! fill the deficits in node order.
//!
//! 1. All-gather of the loads.
//! 2. Quotas of the total; surpluses and deficits.
//! 3. A node with a surplus sends its part of the row of surpluses; a node with a deficit receives from those that it knows to send.
//!
//! ```text
//!   loads      9  1  0  6       surpluses  |00000|33|        0 -> 1: 3,  0 -> 2: 2,  3 -> 2: 2
//!   quotas     4  4  4  4       deficits   |111|2222|
//! ```
//!
//! Cost: ceil(log2 n) + 1 steps; n ceil(log2 n) messages for the loads, at most n - 1 with tasks. Links are ignored: on a topology with
//! fewer links than the complete graph a task crosses as many as it must.
//!
//! Guarantees: every node ends at its quota and never holds less than the smaller of its load and its quota; the fewest tasks possible
//! move, each once. On the complete graph the task-hops are therefore the least possible.
//!
//! Tasks of several units: a node gives the tasks that come nearest to its surplus, and parts their row where the middle units of tasks lie
//! nearest to the borders between its partners. So each of these borders moves by half a task at the most.
//!
//! Limit: every node holds all n loads until it has decided, and so a simulation, which holds all nodes, up to 16 n^2 bytes with the
//! messages under way: 180 MB were measured on 4,096 nodes; 16,384 need 3 GB or more.

use super::{Balancer, Cost, Entry, Options, Part, Phase, Promises, QuotaRule, Running};
use crate::error::Result;
use crate::load::{Aim, Quota};
use crate::node::HEADER_BYTES;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "direct",
    title: "direct transfers from surplus to deficit",
    source: "common practice: one all-gather of the loads, one step of transfers",
    kinds: &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
    refuses: |_| None,
    quota: QuotaRule::Proportional,
    promises: Promises { exact: true, local: true, ordered: false, optimal: false },
    cost,
    options: "",
    build,
};

struct Direct;

fn build(options: &Options) -> Result<Box<dyn Balancer>> {
    options.only("direct", &[])?;
    Ok(Box::new(Direct))
}

fn cost(topology: &Topology) -> Cost {
    let n = u64::from(topology.nodes());
    let rounds = u64::from(n.next_power_of_two().ilog2());
    let (gather, transfers) = (n * rounds, n - 1);
    Cost {
        steps: rounds + u64::from(n > 1),
        messages: gather + transfers,
        bytes: gather * (HEADER_BYTES + 8) + n * (n - 1) * 8 + transfers * TRANSFER_BYTES,
    }
}

impl Balancer for Direct {
    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(exchange(phase))
    }
}

async fn exchange(phase: &mut Phase<'_>) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me());
    let load = phase.load();

    // Step 1.
    let loads = node.everyone().all_gather(node, load).await?;

    // Step 2.
    phase.enter(Part::Decision);
    let quota = phase.shares.quota(loads.iter().sum());
    let mine = quota.of(me);
    let partners = partners(me, &loads, &quota);
    node.charge(loads.len() as u64);
    drop(loads);

    // Step 3.
    phase.enter(Part::Exchange);
    if load > mine {
        let mut surplus = phase.mover.pile.take(load - mine);
        let (mut at, mut cut) = (0, 0);
        for (place, (dst, amount)) in (1..).zip(&partners) {
            cut = if place == partners.len() { u64::MAX } else { cut + amount };
            let parcel = surplus.take_front_before(at, cut, Aim::Middle);
            at += parcel.work();
            node.ready_to_send().await;
            phase.mover.send(*dst, &(), parcel);
        }
    } else {
        for (src, _) in partners {
            phase.mover.take_in::<()>(src).await?;
        }
    }
    Ok(())
}

/// Whom a node sends its surplus to, or gets what it lacks from, and how many tasks; in node order.
///
/// Its own part of one row (of surpluses, or of deficits) lies beside parts of the other row: these are its partners.
pub(super) fn partners(me: NodeId, loads: &[u64], quota: &Quota) -> Vec<(NodeId, u64)> {
    let surplus = |node: NodeId| i128::from(loads[node as usize]) - i128::from(quota.of(node));
    let mine = surplus(me);
    let side = |node: NodeId, sign: i128| (surplus(node) * sign).max(0) as u64;
    let start: u64 = (0..me).map(|node| side(node, mine.signum())).sum();
    let end = start + mine.unsigned_abs() as u64;
    let mut partners = Vec::new();
    let mut at = 0;
    for node in 0..loads.len() as u32 {
        if at >= end {
            break;
        }
        let until = at + side(node, -mine.signum());
        let common = until.min(end).saturating_sub(at.max(start));
        if common > 0 {
            partners.push((node, common));
        }
        at = until;
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;
    use crate::load::Powers;
    use proptest::prelude::*;

    #[test]
    fn surpluses_fill_deficits_in_node_order() {
        let quota = Quota::proportional(16, &Powers::equal(4, 4));
        let all: Vec<_> = (0..4).map(|me| partners(me, &[9, 1, 0, 6], &quota)).collect();
        assert_eq!(all, [vec![(1, 3), (2, 2)], vec![(0, 3)], vec![(0, 2), (3, 2)], vec![(2, 2)]]);
    }

    #[test]
    fn simulated_nodes_carry_out_the_plan() {
        let trial = Trial::of("direct", "complete:4", &[9, 1, 0, 6]);
        assert_eq!(trial.after, [4, 4, 4, 4]);
        assert_eq!(trial.moves(), [(0, 1, 3), (0, 2, 2), (3, 2, 2)]);
        // Two steps for the loads, one for the tasks.
        assert_eq!((trial.counts.chain, trial.counts.messages, trial.task_hops()), (3, 8 + 3, 7));
        assert_eq!(trial.stayed, [4, 1, 0, 4]);
    }

    #[test]
    fn a_node_at_its_quota_has_no_partners() {
        let quota = Quota::proportional(6, &Powers::equal(3, 3));
        assert_eq!(partners(1, &[4, 2, 0], &quota), []);
    }

    proptest! {
        #[test]
        fn both_ends_see_the_same_plan(
            loads in prop::collection::vec(0u64..=u64::MAX / 12, 1..12),
            powers in prop::collection::vec(0u64..9, 12),
        ) {
            let n = loads.len();
            prop_assume!(powers[..n].iter().any(|&power| power > 0));
            let quota = Quota::proportional(loads.iter().sum(), &Powers::listed(powers[..n].to_vec()).unwrap());
            let all: Vec<_> = (0..n as u32).map(|me| partners(me, &loads, &quota)).collect();
            let mut moved = 0;
            for me in 0..n as u32 {
                let (load, share) = (loads[me as usize], quota.of(me));
                prop_assert_eq!(all[me as usize].iter().map(|(_, tasks)| tasks).sum::<u64>(), load.abs_diff(share));
                for &(partner, tasks) in &all[me as usize] {
                    prop_assert!((load > share) == (loads[partner as usize] < quota.of(partner)));
                    prop_assert!(all[partner as usize].contains(&(me, tasks)));
                }
                moved += load.saturating_sub(share);
            }
            let surplus: u64 = (0..n as u32).map(|me| loads[me as usize].saturating_sub(quota.of(me))).sum();
            prop_assert_eq!(moved, surplus);
        }
    }
}
