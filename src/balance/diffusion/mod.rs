//! Diffusion: loads flow over all links at once, from where there is more to where there is less, in steps of real numbers. What has flowed in the
//! end is carried out in whole tasks.
//!
//! A node knows its neighbours, and the eigenvalues of the topology, which say how much may cross a link in a step, and how many steps it takes. The
//! schemes differ in nothing but these factors ([`Factors`]):
//!
//! | scheme | step | steps until what is left of the imbalance is a part e of it |
//! |---|---|---|
//! | [`fos`](fos) | `w - alpha L w` | ln e / ln g |
//! | [`sos`](sos) | `beta (w - alpha L w) + (1 - beta) w'`, where w' is from the step before | the first k with r^k (1 + k sqrt(1 - g^2)) <= e |
//! | [`ops`](ops) | `w - L w / lambda`, with another eigenvalue in each | the number of distinct ones other than 0: then nothing is left |
//!
//! L is the Laplacian of the topology, with the eigenvalues 0 < lambda_2 <= .. <= lambda_n; alpha = 2 / (lambda_2 + lambda_n), and
//! g = (lambda_n - lambda_2) / (lambda_n + lambda_2) is the second largest modulus of an eigenvalue of 1 - alpha L.
//!
//! 1. The sum of all loads, and from it the quotas. What flows is what a node has above its quota: on equal powers the rule of the papers, since a
//!    constant changes no difference; on others each node ends at its own quota.
//! 2. In each step each node tells all neighbours what it has, and adds up what crosses each of its links.
//! 3. What has crossed the links is carried out in whole tasks. A node receives from all neighbours from which something has flowed, then gives what
//!    it has above its quota, divided over those to which something has flowed in proportion to that.
//!
//! ```text
//!   line of 3, 6 tasks at one end   w   4 -2 -2        fos: 0.5 of a difference   ops: 1/1, then 1/3
//!   quotas 2 2 2                        1  1 -2        3 cross the first link     4 cross the first link, 2 the second
//! ```
//!
//! Cost: a reduction, two messages a link and step, at most one a link with tasks, and another reduction for the [check](super::no_harm) at the end.
//! The flow on the links falls with a potential, the sum of a node's loads in all steps, so it has no cycle; a chain of transfers may pass
//! all nodes.
//!
//! Guarantees: the flow is the one with the least sum of squares over all links (Diekmann, Frommer and Monien 1999, lemma 2), up to the part that is
//! left. A node that gives something ends at its quota, and at most there; what rounding and the part that is left make of it lies at those that
//! only receive. All nodes together are at most 2 tasks for each link farther from their quotas than that part. Nothing is said about task-hops:
//! flow takes all ways at once.
//!
//! Departures: the papers' loads are real numbers, and know no powers. Muthukrishnan, Ghosh and Schultz round in each step; rounding once, at the
//! end, leaves less. The sum of all loads is no part of the papers; it is what makes quotas of powers, pinned tasks and virtual nodes possible.

pub(super) mod fos;
pub(super) mod ops;
pub(super) mod sos;
mod spectrum;

use super::{Balancer, Cost, Phase, Running, Stage, no_harm};
use crate::error::Result;
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{HEADER_BYTES, Tag};
use crate::spec::{InvalidSpec, Options};
use crate::topology::{Kind, NodeId, Overlay, Side, Topology};

/// Topologies whose eigenvalues are known in closed form.
const KINDS: &[Kind] = &[Kind::Hypercube, Kind::Torus, Kind::Mesh, Kind::Grid, Kind::Line, Kind::Ring, Kind::Complete];

/// More steps than that are refused: a walk is done in fewer messages.
const MOST_STEPS: u32 = 1024;

/// Default of the part of the imbalance that may be left.
const PART: f64 = 0.01;

/// Flows below this are rounding errors of floating-point numbers and count as zero.
const LEAST: f64 = 1e-6;

const LOAD: Tag = crate::node::tags::balance::DIFFUSION_LOAD;

/// Coefficients of one step: the part of a difference that crosses a link, and the weight of this step relative to the step before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factors {
    alpha: f64,
    beta: f64,
}

/// A scheme.
struct Diffusion {
    /// Its steps on a topology, after which no more than this part of an imbalance is left.
    steps: fn(&Topology, f64) -> Vec<Factors>,
    part: f64,
}

impl Balancer for Diffusion {
    /// Loads end near the quotas, not on them, so that the end has to be checked anyway: quotas need not be lowered beforehand.
    fn aims(&self, overlay: &Overlay, loads: &[u64], shares: &Shares) -> Quota {
        self.reachable(&overlay.topology, loads.iter().sum(), shares)
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(diffuse(phase, (self.steps)(phase.topology(), self.part)))
    }
}

/// One end of a link: what crosses it away from here, in this step and altogether.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: NodeId,
    now: f64,
    all: f64,
}

/// One step of one node, which has `load`, with what its neighbours have, in the order of its links. Both ends of a link find the same with opposite
/// signs.
fn step(load: &mut f64, links: &mut [Link], theirs: &[f64], factors: Factors) {
    let mine = *load;
    for (link, theirs) in links.iter_mut().zip(theirs) {
        link.now = factors.beta * factors.alpha * (mine - theirs) + (factors.beta - 1.0) * link.now;
        link.all += link.now;
        *load -= link.now;
    }
}

fn links_of(topology: &Topology, node: NodeId) -> Vec<Link> {
    topology.neighbours(node).into_iter().map(|to| Link { to, now: 0.0, all: 0.0 }).collect()
}

/// One node's part in a phase: finds the flow in these steps, and carries it out.
async fn diffuse(phase: &mut Phase<'_>, steps: Vec<Factors>) -> Result<()> {
    let node = phase.node;

    // Step 1.
    let load = phase.load();
    let total = node.everyone().sum(node, load).await?;
    let quota = phase.quota(total).of(node.me());

    // Step 2.
    let mut links = links_of(node.topology(), node.me());
    let mut surplus = load as f64 - quota as f64;
    let mut theirs = Vec::with_capacity(links.len());
    for factors in steps {
        for link in &links {
            node.ready_to_send().await;
            node.send(link.to, LOAD, &surplus);
        }
        theirs.clear();
        for link in &links {
            theirs.push(node.receive::<f64>(link.to, LOAD).await?);
        }
        step(&mut surplus, &mut links, &theirs, factors);
        node.charge(links.len() as u64);
    }

    // Step 3.
    phase.enter(Stage::Exchange);
    for link in links.iter().filter(|link| link.all < -LEAST) {
        phase.mover.take_in::<()>(link.to).await?;
    }
    links.retain(|link| link.all > LEAST);
    let mut after = phase.load();
    let flows: Vec<f64> = links.iter().map(|link| link.all).collect();
    for (link, amount) in links.iter().zip(divided(after.saturating_sub(quota), &flows)) {
        node.ready_to_send().await;
        after -= amount;
        phase.give(link.to, &(), amount, after, quota);
    }
    Ok(())
}

/// A total in whole parts, in proportion to these flows: each sum of the first parts is rounded to the nearest.
fn divided(total: u64, flows: &[f64]) -> Vec<u64> {
    let all: f64 = flows.iter().sum();
    let (mut sum, mut given) = (0.0, 0);
    let mut part = |(place, flow): (usize, &f64)| {
        sum += flow;
        let until = if place + 1 == flows.len() { total } else { ((total as f64 * (sum / all)).round() as u64).clamp(given, total) };
        until - std::mem::replace(&mut given, until)
    };
    flows.iter().enumerate().map(&mut part).collect()
}

/// The option `part`: what may be left of the imbalance.
fn part(options: &mut Options<'_>) -> Result<f64, InvalidSpec> {
    Ok(options.real("part", 1e-6..=0.5)?.unwrap_or(PART))
}

/// Cost of a phase of `steps` steps.
fn cost(topology: &Topology, steps: u32) -> Cost {
    let (links, steps) = (links(topology), u64::from(steps));
    let ends = 2 * links;
    // One for the quotas, one for the check at the end.
    let reduction = no_harm::cost(topology.nodes());
    Cost {
        steps: 2 * reduction.steps + steps + u64::from(topology.nodes()) - 1,
        messages: 2 * reduction.messages + steps * ends + links,
        bytes: 2 * reduction.bytes + steps * ends * (HEADER_BYTES + 8) + links * TRANSFER_BYTES,
    }
}

/// Number of links.
fn links(topology: &Topology) -> u64 {
    let nodes = u64::from(topology.nodes());
    let of_side = |side: Side| {
        let length = u64::from(side.length);
        nodes / length * if side.wraps && length > 2 { length } else { length - 1 }
    };
    match topology.kind() {
        Kind::Complete => nodes * (nodes - 1) / 2,
        _ => (0..topology.sides()).filter_map(|k| topology.side(k)).map(of_side).sum(),
    }
}

/// Refuses what takes too many steps; `None` is too many to count.
fn refuses(steps: Option<u32>, why: &str) -> Option<String> {
    match steps {
        Some(steps) if steps <= MOST_STEPS => None,
        Some(steps) => Some(format!("takes {steps} steps there, {why}; {MOST_STEPS} at most are allowed")),
        None => Some(format!("takes more than {MOST_STEPS} steps there, {why}")),
    }
}

#[cfg(test)]
mod tests;
