//! Chains on chains: the tasks, in the order in which they lie over the nodes, are cut into one piece for each rank, so that the slowest rank is as
//! fast as any such cut makes it (A. Pinar and C. Aykanat, Fast optimal load balancing algorithms for 1D partitioning, 2004; Nicol 1994). What it
//! does is in [`assign::ordered_chains`], how tasks get there in [`central`](super::central).
//!
//! ```text
//!   weights  3 1 4 | 1 5 9 | 2 6 5       8, 15, 13
//!   cut      3 1 4 1 | 5 9 | 2 6 5       9, 14, 13
//! ```
//!
//! Unlike [`pslb`](super::pslb), which cuts where the middle units of tasks lie, it knows every task: of all cuts none has a faster slowest rank.
//! Unit tasks are cut at the sums of the quotas.
//!
//! Cost: an all-gather, and a step in which each task goes where it belongs, at once.

use super::central;
use super::ground::{Given, Rule};
use super::{
    Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, by_task, gathering,
};
use crate::assign::{self, Assignment};
use crate::error::Result;
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "chains",
    title: "contiguous pieces, with the least time of the slowest rank",
    source: "Pinar and Aykanat 2004; Nicol 1994",
    options: "",
    examples: &["chains"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Tasks,
        promises: Promises { exact: true, local: false, ordered: true, optimal: false },
        cost,
    },
};

struct Chains;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Chains))
}

/// Two rows of n pieces have less than 2 n common parts.
fn cost(topology: &Topology) -> Cost {
    let (gather, n) = (gathering::cost(topology.nodes()), u64::from(topology.nodes()));
    let transfers = if n > 1 { 2 * n } else { 0 };
    Cost { steps: gather.steps + transfers.min(1), messages: gather.messages + transfers, bytes: gather.bytes + transfers * TRANSFER_BYTES }
}

impl Rule for Chains {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        assign::ordered_chains(&given.problem)
    }
}

impl Balancer for Chains {
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn rule(&self) -> Option<&dyn Rule> {
        Some(self)
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(async move { if phase.shares.are_weighted() { by_task::exchange(phase, self).await } else { at_quotas(phase).await } })
    }
}

/// Unit tasks: cut at the sums of the quotas.
async fn at_quotas(phase: &mut Phase<'_>) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me());
    let loads = gathering::gather(node, phase.load()).await?;
    phase.enter(Stage::Decision);
    phase.survey_of(&loads);
    let quota = phase.quota(gathering::total_of(&loads));
    let pinned = phase.shares.pinned();
    let cut = loads.derive(|loads| Cut::new(loads, &quota, pinned));
    drop(loads);
    node.charge(u64::from(node.nodes()));
    phase.enter(Stage::Exchange);
    let away = |(other, ..): &(NodeId, u64, u64)| *other != me;
    let parts: Vec<(u64, u64, NodeId)> =
        cut.common(&cut.held, &cut.owned, me).into_iter().filter(away).map(|(dst, at, count)| (at, count, dst)).collect();
    let sources: Vec<NodeId> = cut.common(&cut.owned, &cut.held, me).into_iter().filter(away).map(|(src, ..)| src).collect();
    phase.mover.deal_out(&parts).await;
    phase.mover.take_in_order(&sources).await
}

/// The row of all tasks that may move, as they are held and as they should be: where each node's part begins, and where the last one ends.
struct Cut {
    held: Vec<u64>,
    owned: Vec<u64>,
}

impl Cut {
    fn new(loads: &[u64], quota: &Quota, pinned: &[u64]) -> Cut {
        let mut cut = Cut { held: vec![0], owned: vec![0] };
        let (mut held, mut owned) = (0, 0);
        for (node, load) in (0..).zip(loads) {
            let pinned = pinned.get(node as usize).unwrap_or(&0);
            held += load - pinned;
            owned += quota.of(node) - pinned;
            cut.held.push(held);
            cut.owned.push(owned);
        }
        cut
    }

    /// The parts that a node's part of one row has in common with parts of the other, in order: whose, where in the node's own, and how many.
    fn common(&self, own: &[u64], others: &[u64], node: NodeId) -> Vec<(NodeId, u64, u64)> {
        let (start, end) = (own[node as usize], own[node as usize + 1]);
        let first = others[1..].partition_point(|until| *until <= start);
        let parts = (first as NodeId..).zip(others[first..].windows(2)).take_while(|(_, part)| part[0] < end);
        parts
            .map(|(other, part)| (other, part[0].max(start) - start, part[1].min(end).saturating_sub(part[0].max(start))))
            .filter(|(.., count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_are_cut_at_the_quotas_and_keep_their_order() {
        let trial = Trial::of("chains", "complete:4", &[9, 1, 0, 6]);
        assert_eq!(trial.after, [4, 4, 4, 4]);
        assert_eq!(trial.moves(), [(0, 1, 4), (0, 2, 1), (1, 2, 1), (3, 2, 2)]);
    }

    #[test]
    fn whole_tasks_are_cut_where_the_slowest_is_fastest() {
        let trial = Trial::weighing("chains", &[3, 3, 3], &[3, 1, 4, 1, 5, 9, 2, 6, 5], &[1, 1, 1]);
        assert_eq!(trial.after, [9, 14, 13]);
        assert_eq!(trial.moves(), [(1, 0, 1)]);
    }
}
