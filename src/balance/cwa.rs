//! The Cube Walking Algorithm, for hypercubes (Wu 1997, section 3.2, figure 10).
//!
//! Every node learns the load of each of its sub-cubes. From the highest dimension down, the overloaded half of each cube gives its surplus
//! to the other half; which of its nodes give how much each of them computes alone, from what it knows of its sub-cubes.
//!
//! 1. Sum reductions: `w[k]` is the load of the node's k-dimensional sub-cube, `k = 0..=d`.
//! 2. Average and remainder of the total `w[d]`.
//! 3. Quotas of the sub-cubes; `delta[k] = w[k] - q[k]`.
//! 4. For `k = d-1` down to 0, across dimension k: nodes with `delta[k] > 0` send `theta[0]` tasks and their vector theta, nodes with
//!    `delta[k] < 0` receive.
//!
//! ```text
//!      6 ------- 7         k = 2: 0 -> 4 and 1 -> 5 (front to back)
//!    / |       / |         k = 1: 0 -> 2 and 5 -> 7 (down to up)
//!   2 ------- 3  |         k = 0: 3 -> 2, 5 -> 4, 6 -> 7
//!   |  4 -----|- 5
//!   | /       | /          loads 19 11 2 9 0 9 10 4: all end at 8,
//!   0 ------- 1            21 task-hops (the paper's example 3)
//! ```
//!
//! Cost: 2d steps here, d for the information and d for the tasks (the paper counts an exchange of information as two: 3d). On several
//! hosts, each with whole sub-cubes of dimension m, the first node of each such sub-cube learns the loads of the larger ones and passes
//! them on, which takes m steps more and sends 2^m times fewer messages with loads between hosts. Task-hops are
//! the least possible on two and four nodes (lemma 5), about 5, 11 and 25 % above it on 8, 16 and 64.
//!
//! Guarantees: every node ends at its quota (lemma 2), and never holds less than the smaller of its load and its quota (theorem 2); with
//! unequal powers and virtual nodes (quota 0) too.
//!
//! Departures from the paper: step 4 prints the update of `w[j]`, `delta[j]` for `j = 0..=k-1`, which is empty at k = 0 although the node's
//! own load changes; we update the own load at every k. The receiver needs the vector theta, as its sub-cubes' totals change too; `theta[k]` is
//! what its own half lacks, so that only `theta[0..k]` travels.

use std::ops::Range;

use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage};
use crate::error::{Error, Result};
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{Group, HEADER_BYTES, Node, Tag};
use crate::topology::{Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "cwa",
    title: "Cube Walking Algorithm",
    source: "Wu 1997, section 3.2, figure 10",
    options: "",
    examples: &["cwa"],
    build,
    facts: Facts {
        kinds: &[Kind::Hypercube],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost,
    },
};

const SUM: Tag = crate::node::tags::balance::CWA_SUM;

struct Cwa;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Cwa))
}

fn cost(topology: &Topology) -> Cost {
    let d = u64::from(topology.diameter());
    let n = u64::from(topology.nodes());
    // Each pair exchanges its loads; then at most one message per pair and dimension, with theta: its length and k numbers.
    let exchange = (0..d).map(|k| n / 2 * (TRANSFER_BYTES + 1 + 9 * k)).sum::<u64>();
    Cost { steps: 2 * d, messages: n * d + n * d / 2, bytes: n * d * (HEADER_BYTES + 8) + exchange }
}

impl Balancer for Cwa {
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
    let Topology::Hypercube(cube) = phase.topology() else { return Err(Error::Failed("cwa runs on hypercubes".into())) };
    let d = cube.dimension();

    // Step 1: the loads of the enclosing sub-cubes. Those that lie within a host are known to all their nodes: one of them speaks for all to
    // other hosts.
    let inner = node.overlay().placement.inner_dimensions().min(d);
    let within = Group::spaced(me >> inner << inner, 1, 1 << inner, me).filter(|_| inner < d);
    let mut w = vec![phase.load()];
    sum_up(node, 0..inner, &mut w).await?;
    if within.as_ref().is_none_or(|group| group.place() == 0) {
        sum_up(node, inner..d, &mut w).await?;
    }
    if let Some(group) = within {
        let larger = (group.place() == 0).then(|| w.split_off(inner as usize + 1));
        w.extend(group.broadcast(node, 0, larger).await?);
    }

    // Steps 2 and 3.
    phase.enter(Stage::Decision);
    let quota = phase.quota(w[d as usize]);
    let mut delta = surplus_by_subcube(me, &w, &quota);
    let quota = quota.of(me);
    drop(w);

    // Step 4.
    for k in (0..d).rev() {
        phase.enter(Stage::Decision);
        let partner = me ^ (1 << k);
        phase.mover.at_step(d - 1 - k);
        if delta[k as usize] > 0 {
            let theta = tasks_to_send(me, k, &delta);
            node.charge(2 * u64::from(k + 1));
            phase.enter(Stage::Exchange);
            delta.iter_mut().zip(&theta).for_each(|(delta, theta)| *delta -= i128::from(*theta));
            phase.give(partner, &&theta[..k as usize], theta[0], (i128::from(quota) + delta[0]) as u64, quota);
        } else if delta[k as usize] < 0 {
            phase.enter(Stage::Exchange);
            let (_, theta) = phase.mover.take_in::<Vec<u64>>(partner).await?;
            delta.iter_mut().zip(theta).for_each(|(delta, theta)| *delta += i128::from(theta));
            // The cube of both halves is at its quota by now, so this half lacks just what the other gives.
            delta[k as usize] = 0;
        }
    }
    Ok(())
}

/// Exchanges loads along some dimensions: `w` holds the loads of the node's sub-cubes of up to the first of these dimensions.
async fn sum_up(node: &Node, dimensions: Range<u32>, w: &mut Vec<u64>) -> Result<()> {
    for k in dimensions {
        let partner = node.me() ^ (1 << k);
        node.send(partner, SUM, &w[k as usize]);
        w.push(w[k as usize] + node.receive::<u64>(partner, SUM).await?);
    }
    Ok(())
}

/// `delta[k]`, k = 0..=d: what the node's k-dimensional sub-cube has above its quota. A k-dimensional sub-cube is all nodes with the same
/// address above bit k, so its nodes are consecutive.
fn surplus_by_subcube(me: NodeId, w: &[u64], quota: &Quota) -> Vec<i128> {
    let surplus = |(k, &load): (usize, &u64)| {
        let first = me >> k << k;
        i128::from(load) - i128::from(quota.between(first, first + (1 << k)))
    };
    w.iter().enumerate().map(surplus).collect()
}

/// Step 4.1: how many tasks each of the node's sub-cubes sends across dimension k: `theta[0]` is the node's own part.
///
/// `gamma` is what the sub-cube must keep for the sub-cubes below it.
fn tasks_to_send(me: NodeId, k: u32, delta: &[i128]) -> Vec<u64> {
    let k = k as usize;
    let mut theta = vec![0; k + 1];
    // No entry is negative.
    theta[k] = delta[k] as u64;
    let mut gamma = 0;
    for j in (0..k).rev() {
        let sibling = delta[j + 1] - delta[j];
        theta[j] = if me & (1 << j) == 0 {
            (delta[j] - gamma).clamp(0, i128::from(theta[j + 1])) as u64
        } else if sibling <= gamma {
            theta[j + 1]
        } else {
            delta[j].max(0) as u64
        };
        gamma = delta[j] - i128::from(theta[j]);
    }
    theta
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;
    use crate::load::Powers;

    /// Figure 1.
    const LOADS: [u64; 8] = [19, 11, 2, 9, 0, 9, 10, 4];

    #[test]
    fn example_3_of_the_paper() {
        for seed in 0..4 {
            let trial = Trial::with("cwa", "hypercube:3", &LOADS, Powers::equal(8, 8), seed);
            assert_eq!(trial.after, [8; 8]);
            let moves: Vec<_> = trial.plan.transfers.iter().map(|t| (2 - t.step, t.src, t.dst, t.tasks)).collect();
            let expected = [(2, 0, 4, 6), (2, 1, 5, 3), (1, 0, 2, 5), (1, 5, 7, 2), (0, 3, 2, 1), (0, 5, 4, 2), (0, 6, 7, 2)];
            assert_eq!(moves, expected);
            assert_eq!((trial.task_hops(), trial.counts.chain), (21, 6));
            assert!(trial.kept_what_it_could(&LOADS));
        }
    }

    #[test]
    fn example_3_dimension_by_dimension() {
        // The loads of node 1's sub-cubes are 11, 30, 41, 64; each has 8, 16, 32, 64 as its quota.
        let quota = Quota::proportional(64, &Powers::equal(8, 8));
        let delta = surplus_by_subcube(1, &[11, 30, 41, 64], &quota);
        assert_eq!(delta, [3, 14, 9, 0]);
        // Of the 9 that the front face gives, all come from its lower edge, 3 of them from node 1 and the others from node 0.
        assert_eq!(tasks_to_send(1, 2, &delta), [3, 9, 9]);
        assert_eq!(tasks_to_send(0, 2, &surplus_by_subcube(0, &[19, 30, 41, 64], &quota)), [6, 9, 9]);
        assert_eq!(tasks_to_send(2, 2, &surplus_by_subcube(2, &[2, 11, 41, 64], &quota)), [0, 0, 9]);
    }

    #[test]
    fn loads_may_sum_up_to_the_end_of_64_bits() {
        let loads = [0, u64::MAX - 5, 3, 2];
        let trial = Trial::of("cwa", "hypercube:2", &loads);
        assert_eq!(trial.after, trial.quota);
        assert!(trial.kept_what_it_could(&loads));
    }

    #[test]
    fn one_node_sends_nothing() {
        let trial = Trial::of("cwa", "hypercube:0", &[7]);
        assert_eq!((trial.after, trial.counts.messages), (vec![7], 0));
    }
}
