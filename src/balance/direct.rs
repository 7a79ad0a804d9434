//! Direct balancing: from one exchange of the loads, nodes with a surplus send it straight to nodes with a deficit.
//!
//! The obvious method on a switched network, and the reference for the papers' walks. All nodes gather all loads, so each computes the same
//! plan and takes its own part of it: the surpluses, concatenated in node order, fill the deficits in node order.
//!
//! 1. All-gather of the loads.
//! 2. Quotas of the total; surpluses and deficits.
//! 3. A node with a surplus sends its part of the row of surpluses; a node with a deficit receives from those that it knows to send.
//! 4. Tasks of several units only: repair of the rounding that remains, as in [`refine`](super::refine), from where the tasks are by then.
//!
//! ```text
//!   loads      9  1  0  6       surpluses  |00000|33|        0 -> 1: 3,  0 -> 2: 2,  3 -> 2: 2
//!   quotas     4  4  4  4       deficits   |111|2222|
//! ```
//!
//! Cost: 3 to 16 nodes gather the loads over node 0, in 2 steps and 2 (n - 1) messages; others with Bruck's algorithm, in ceil(log2 n) steps and n
//! ceil(log2 n) messages. Then one step, and at most n - 1 messages with tasks. Links are ignored: on a topology with fewer links than the complete
//! graph a task crosses as many links as the distance to its destination.
//!
//! Guarantees: every node ends at its quota and never holds less than the smaller of its load and its quota; the fewest tasks possible
//! move, each once. On the complete graph the task-hops are therefore the least possible.
//!
//! Tasks of several units (if the nodes know that there are such): in a second all-gather each node reports the two amounts to which it can
//! round its surplus, and all choose, in node order, those whose sums follow the sums of the surpluses. The row of tasks that are really
//! given is then cut where the middle units of tasks lie nearest to the borders between deficits. Each border moves by at most half a task,
//! so every node ends within one largest task of its quota. This takes another all-gather, and so does the repair, in which every node
//! reports all its tasks. The repair leaves each node within the same distance of its quota, or as near as it was.
//!
//! Limit: every node holds all n loads until it has decided. In a simulation, which holds all nodes, they share one list and one plan.

use std::rc::Rc;

use super::{
    Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, by_task, gathering,
};
use crate::error::Result;
use crate::load::{Aim, Quota, Shares, TaskBatch};
use crate::node::Gathered;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "direct",
    title: "direct transfers from surplus to deficit",
    source: "common practice: one all-gather of the loads, one step of transfers",
    options: "",
    examples: &["direct"],
    build,
    facts: Facts {
        kinds: &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Loads,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost,
    },
};

struct Direct;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Direct))
}

pub(super) fn cost(topology: &Topology) -> Cost {
    let (gather, transfers) = (gathering::cost(topology.nodes()), u64::from(topology.nodes()) - 1);
    Cost { steps: gather.steps + transfers.min(1), messages: gather.messages + transfers, bytes: gather.bytes + transfers * TRANSFER_BYTES }
}

impl Balancer for Direct {
    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(exchange(phase))
    }
}

/// Computes the quota of each rank: what its nodes should end with together.
pub(super) fn quota_of_ranks(phase: &Phase<'_>, quota: &Quota) -> Rc<[u64]> {
    let placement = &phase.node.overlay().placement;
    let mut by_rank = vec![0; placement.ranks() as usize];
    (0..placement.nodes()).for_each(|node| by_rank[placement.rank_of(node).index()] += quota.of(node));
    by_rank.into()
}

pub(super) async fn exchange(phase: &mut Phase<'_>) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me());
    let load = phase.load();

    // Step 1.
    let loads = gathering::gather(node, load).await?;

    // Step 2.
    phase.enter(Stage::Decision);
    phase.survey_of(&loads);
    let quota = phase.quota(gathering::total_of(&loads));
    let plan = loads.derive(|loads| Planned::new(loads, quota));
    let mine = plan.quota.of(me);
    // Computed once for all nodes that share the list.
    let whole = phase.shares.are_weighted().then(|| loads.derive(|_| QuotaOfRanks(quota_of_ranks(phase, &plan.quota))));
    node.charge(loads.len() as u64);
    let above = load.saturating_sub(mine);
    let (mut surplus, partners) = if phase.shares.are_weighted() {
        let mut surplus = phase.mover.queue.take_fitting(above);
        let rows = rounded(phase, &loads, &plan.quota, &mut surplus).await?;
        let partners = rows.partners(me, above > 0);
        (surplus, partners)
    } else {
        (phase.mover.queue.take(above), plan.rows.partners(me, above > 0))
    };
    drop(plan);
    drop(loads);

    // Step 3.
    phase.enter(Stage::Exchange);
    if above > 0 {
        let (mut at, mut cut) = (0, 0);
        for (place, (dst, amount)) in (1..).zip(&partners) {
            cut = if place == partners.len() { u64::MAX } else { cut + amount };
            let batch = surplus.take_front_before(at, cut, Aim::Middle);
            at += batch.work();
            node.ready_to_send().await;
            phase.mover.send(*dst, &(), batch);
        }
        // Without partners: tasks without work.
        phase.mover.queue.put_behind(surplus);
    } else {
        for (src, _) in partners {
            phase.mover.take_in::<()>(src).await?;
        }
    }

    // Step 4.
    match whole {
        Some(quota) => by_task::repair(phase, quota.0.clone()).await,
        None => Ok(()),
    }
}

/// Result of [`quota_of_ranks`].
pub(super) struct QuotaOfRanks(pub Rc<[u64]>);

/// For tasks of several units: surpluses as they can be given, and deficits, by node.
///
/// Each node with a surplus could give what fits into it, or one task more; it tells both. In node order, all nodes choose for each the
/// one with which the sum of what was given is nearer to the sum of the surpluses: these never differ by more than half of the largest
/// task. The last node with a deficit takes what the sum has too much. The tasks chosen are in `surplus` then.
async fn rounded(phase: &mut Phase<'_>, loads: &Gathered<u64>, quota: &Quota, surplus: &mut TaskBatch) -> Result<Rc<Rows>> {
    let (node, me) = (phase.node, phase.node.me());
    let fits = surplus.work();
    let one_more = match phase.mover.queue.lightest() {
        Some(lightest) if fits < loads[me as usize].saturating_sub(quota.of(me)) => fits + lightest,
        _ => fits,
    };
    phase.enter(Stage::Information);
    let choices = gathering::gather(node, (fits, one_more)).await?;
    phase.enter(Stage::Decision);
    node.charge(choices.len() as u64);
    let rows = choices.derive(|choices| chosen(loads, quota, choices));
    if rows.surplus(me) > surplus.work() {
        surplus.append(phase.mover.queue.take_lightest());
    }
    Ok(rows)
}

/// The rows as the nodes can give them.
fn chosen(loads: &[u64], quota: &Quota, choices: &[(u64, u64)]) -> Rows {
    let mut rows = Vec::with_capacity(loads.len());
    let (mut ahead, mut last) = (0, None);
    for ((at, load), choice) in (0..).zip(loads).zip(choices) {
        let quota = quota.of(at);
        let given = nearer(*choice, load.saturating_sub(quota), &mut ahead);
        if quota > *load {
            last = Some(rows.len());
        }
        rows.push((given, quota.saturating_sub(*load)));
    }
    if let Some(last) = last {
        rows[last].1 += ahead.max(0) as u64;
    }
    Rows::new(rows.into_iter())
}

/// Rounds one amount: returns the one of the two amounts that brings the sum of amounts given nearer to the sum planned. `ahead` is the
/// difference of the two sums, and is updated.
pub(super) fn nearer((fits, one_more): (u64, u64), planned: u64, ahead: &mut i128) -> u64 {
    let error = |given: u64| *ahead + i128::from(given) - i128::from(planned);
    let given = if error(one_more).abs() < error(fits).abs() { one_more } else { fits };
    *ahead = error(given);
    given
}

/// Plan that all nodes derive from the gathered loads.
struct Planned {
    quota: Quota,
    rows: Rows,
}

impl Planned {
    fn new(loads: &[u64], quota: Quota) -> Planned {
        let row = |(node, load): (NodeId, &u64)| (load.saturating_sub(quota.of(node)), quota.of(node).saturating_sub(*load));
        let rows = Rows::new((0..).zip(loads).map(row));
        Planned { quota, rows }
    }
}

/// A row of surpluses and a row of deficits, each one behind the other in node order.
struct Rows {
    /// Start of each node's part, and the end of the last one.
    surpluses: Vec<u64>,
    deficits: Vec<u64>,
}

impl Rows {
    /// Rows from the surplus and the deficit of each node.
    fn new(parts: impl Iterator<Item = (u64, u64)>) -> Rows {
        let (mut surpluses, mut deficits) = (Vec::new(), Vec::new());
        let (mut given, mut lacking) = (0, 0);
        for (surplus, deficit) in parts {
            surpluses.push(given);
            deficits.push(lacking);
            given += surplus;
            lacking += deficit;
        }
        surpluses.push(given);
        deficits.push(lacking);
        Rows { surpluses, deficits }
    }

    fn surplus(&self, node: NodeId) -> u64 {
        self.surpluses[node as usize + 1] - self.surpluses[node as usize]
    }

    /// The partners to which a node sends its surplus, or from which it receives its deficit, each with a number of tasks, in node order. Partners
    /// are those whose part of the other row overlaps the node's part of its own row.
    fn partners(&self, me: NodeId, gives: bool) -> Vec<(NodeId, u64)> {
        let (own, other) = if gives { (&self.surpluses, &self.deficits) } else { (&self.deficits, &self.surpluses) };
        let (start, end) = (own[me as usize], own[me as usize + 1]);
        let first = other[1..].partition_point(|until| *until <= start);
        let mut partners = Vec::new();
        for (node, part) in (first as NodeId..).zip(other[first..].windows(2)) {
            if part[0] >= end {
                break;
            }
            let common = part[1].min(end) - part[0].max(start);
            if common > 0 {
                partners.push((node, common));
            }
        }
        partners
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;
    use crate::load::Powers;
    use proptest::prelude::*;

    fn partners(me: NodeId, loads: &[u64], quota: &Quota) -> Vec<(NodeId, u64)> {
        let plan = Planned::new(loads, quota.clone());
        plan.rows.partners(me, loads[me as usize] > quota.of(me))
    }

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
        assert_eq!((trial.counts.chain, trial.counts.messages, trial.task_hops()), (3, 6 + 3, 7));
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
