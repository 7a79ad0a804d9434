//! The Tree Walking Algorithm, for rooted trees (Wu 1997, section 3.1, figure 5).
//!
//! The loads of the subtrees are summed up on the way to the root, and the total comes down again. Then every node knows what each subtree
//! next to it has too much or too little: that much crosses the link above it, and no task crosses a link twice.
//!
//! 1. Sum reduction: `W[i]` is the load of node i's subtree.
//! 2. Average and remainder of the total `T = W[0]`, which the root broadcasts.
//! 3. Quotas `Q[i]` of the subtrees. Nodes are numbered in preorder, so a subtree is a range of nodes.
//! 4. `W[i] - Q[i]` tasks go up the link above node i; if this is negative, its absolute value goes down. Every node first receives all that is due
//!    to it (4.1 from its parent, 4.2 from its children), then sends (4.3, 4.4).
//!
//! ```text
//!            0                5 up to 0 from 1, with 6 that came from 3
//!       /    |    \           1 down from 0 to 6, which passes 1 on to 7
//!      1     4     6          2 down from 4 to 5
//!     / \    |    / \         1 up from 8 to 6
//!    2   3   5   7   8
//!                             loads 1 4 5 11 7 2 3 3 5: 0 to 4 end at 5,
//!                             5 to 8 at 4, 16 task-hops (the paper's example 1)
//! ```
//!
//! Cost: at most 4m steps in a tree of depth m: m up and m down for the information, and for the tasks the longest way from leaf to leaf. Every link
//! carries two messages of information and at most one of tasks. Task-hops are the minimum.
//!
//! Guarantees: every node ends at its quota (lemma 1), and never holds less than the smaller of its load and its quota; with unequal powers
//! and virtual nodes (quota 0) too.
//!
//! Departures from the paper: none.

use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage};
use crate::error::{Error, Result};
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{HEADER_BYTES, Tag};
use crate::topology::{Kind, NodeId, Placement, Topology, Tree};

pub(super) static ENTRY: Entry = Entry {
    name: "twa",
    title: "Tree Walking Algorithm",
    source: "Wu 1997, section 3.1, figure 5",
    options: "",
    examples: &["twa"],
    build,
    facts: Facts {
        kinds: &[Kind::Tree],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: true, ordered: false, optimal: true },
        cost,
    },
};

const SUM: Tag = crate::node::tags::balance::TWA_SUM;
const TOTAL: Tag = crate::node::tags::balance::TWA_TOTAL;

struct Twa;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Twa))
}

fn cost(topology: &Topology) -> Cost {
    let Topology::Tree(tree) = topology else { return Cost { steps: 0, messages: 0, bytes: 0 } };
    let links = u64::from(tree.nodes()) - 1;
    let steps = 2 * u64::from(tree.height()) + u64::from(topology.diameter());
    Cost { steps, messages: 3 * links, bytes: links * (2 * (HEADER_BYTES + 8) + TRANSFER_BYTES) }
}

impl Balancer for Twa {
    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(walk(phase))
    }
}

async fn walk(phase: &mut Phase<'_>) -> Result<()> {
    phase.survey().await?;
    let (node, me) = (phase.node, phase.node.me());
    let Topology::Tree(tree) = phase.topology() else { return Err(Error::Failed("twa runs on trees".into())) };
    let (parent, children) = (tree.parent(me), tree.children(me));

    // Step 1: the loads of the children's subtrees and of this node's own.
    let mut below = Vec::with_capacity(children.len());
    for &child in children {
        below.push(node.receive::<u64>(child, SUM).await?);
    }
    let subtree = phase.load() + below.iter().sum::<u64>();

    // Step 2.
    let total = match parent {
        None => subtree,
        Some(parent) => {
            node.send(parent, SUM, &subtree);
            node.receive(parent, TOTAL).await?
        }
    };
    for &child in children {
        node.send(child, TOTAL, &total);
    }

    // Step 3, and the flows of step 4.
    phase.enter(Stage::Decision);
    let quota = phase.quota(total);
    let up = surplus(tree, &quota, me, subtree);
    let from_child: Vec<i128> = children.iter().zip(below).map(|(&child, load)| surplus(tree, &quota, child, load)).collect();

    let mine = quota.of(me);
    drop(quota);

    // Steps 4.1 and 4.2: what is due to this node. Its senders do not wait for anything from this node.
    phase.enter(Stage::Exchange);
    if let Some(parent) = parent.filter(|_| up < 0) {
        phase.mover.take_in::<()>(parent).await?;
    }
    for (&child, _) in children.iter().zip(&from_child).filter(|(_, flow)| **flow > 0) {
        phase.mover.take_in::<()>(child).await?;
    }

    // Steps 4.3 and 4.4. By now the node holds its quota and all that it passes on.
    let down = children.iter().zip(from_child).filter(|(_, flow)| *flow < 0).map(|(&child, flow)| (child, flow.unsigned_abs() as u64));
    let parts: Vec<(NodeId, u64)> = parent.filter(|_| up > 0).map(|parent| (parent, up as u64)).into_iter().chain(down).collect();
    let mut after = mine + parts.iter().map(|(_, amount)| amount).sum::<u64>();
    for (dst, amount) in parts {
        after -= amount;
        phase.give(dst, &(), amount, after, mine);
    }
    Ok(())
}

/// Surplus of the subtree below a node over its quota: the flow up the link above the node (the paper's eta), negative if it goes down.
fn surplus(tree: &Tree, quota: &Quota, top: NodeId, load: u64) -> i128 {
    i128::from(load) - i128::from(quota.between(top, top + tree.subtree_size(top)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::Trial;
    use crate::load::Powers;
    use proptest::prelude::*;

    const FIGURE_6: &str = "tree:parents=-,0,1,1,0,4,0,6,6";

    #[test]
    fn example_1_of_the_paper() {
        let trial = Trial::of("twa", FIGURE_6, &[1, 4, 5, 11, 7, 2, 3, 3, 5]);
        assert_eq!(trial.after, [5, 5, 5, 5, 5, 4, 4, 4, 4]);
        assert_eq!(trial.moves(), [(3, 1, 6), (4, 5, 2), (8, 6, 1), (1, 0, 5), (0, 6, 1), (6, 7, 1)]);
        assert_eq!(trial.task_hops(), 16);
    }

    #[test]
    fn the_papers_flows_of_example_1() {
        let Ok(Topology::Tree(tree)) = Topology::parse(FIGURE_6, 9) else { panic!("not a tree") };
        let quota = Quota::proportional(41, &Powers::equal(9, 9));
        let flows = (0..).zip([41, 20, 5, 11, 9, 2, 11, 3, 5]).map(|(node, load)| surplus(&tree, &quota, node, load));
        assert_eq!(flows.collect::<Vec<_>>(), [0, 5, 0, 6, 0, -2, -1, -1, 1]);
    }

    #[test]
    fn loads_may_sum_up_to_the_end_of_64_bits() {
        let trial = Trial::of("twa", "tree:parents=-,0,0", &[0, u64::MAX, 0]);
        assert_eq!(trial.after, trial.quota);
        let trial = Trial::of("twa", "tree:parents=-,0,1", &[0, 0, u64::MAX]);
        assert_eq!(trial.after, trial.quota);
    }

    /// Parents of a random tree in preorder: each node is a child of the previous node or of one of its ancestors.
    fn tree() -> impl Strategy<Value = String> {
        prop::collection::vec(0u32..5, 0..30).prop_map(|climbs| {
            let mut parents = vec![None];
            for climb in climbs {
                let mut parent = parents.len() as u32 - 1;
                for _ in 0..climb {
                    parent = parents[parent as usize].unwrap_or(parent);
                }
                parents.push(Some(parent));
            }
            let parents: Vec<_> = parents.iter().map(|parent| parent.map_or("-".to_string(), |parent| parent.to_string())).collect();
            format!("tree:parents={}", parents.join(","))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_tree_ends_at_its_quotas_and_keeps_what_it_can(
            spec in tree(),
            seed in any::<u64>(),
            loads in prop::collection::vec(0u64..50, 31),
            powers in prop::collection::vec(0u64..4, 31),
        ) {
            let nodes = spec.split(',').count();
            let powers = Powers::listed(powers[..nodes].to_vec()).unwrap_or(Powers::equal(1, nodes as u32));
            let trial = Trial::with("twa", &spec, &loads[..nodes], powers, seed);
            prop_assert_eq!(&trial.after, &trial.quota);
            prop_assert!(trial.kept_what_it_could(&loads[..nodes]));
            // No link is crossed in both directions, nor twice.
            let mut links: Vec<_> = trial.moves().iter().map(|&(a, b, _)| (a.min(b), a.max(b))).collect();
            links.sort_unstable();
            prop_assert!(links.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}
