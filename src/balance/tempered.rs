//! Tempered gossip: no rank ever knows all loads (H. Menon and L. V. Kale, A distributed dynamic load balancer for iterative applications, SC13,
//! sections 4 and 5; the criterion by which tasks are taken is the relaxed one of DARMA's TemperedLB, Lifflander and others, Cluster 2021).
//!
//! Repeated until all are near the mean, or nothing has moved in [`PATIENCE`] iterations in a row, or [`ITERATIONS`] have passed:
//!
//! 1. The mean, and the time of the slowest rank: a reduction.
//! 2. Gossip: ranks below the mean make themselves known. In each of ceil(log2 n) rounds every rank sends the list of ranks that it knows, at most
//!    [`KNOWN`], to the rank some distance behind it (the same distance for all): in round k, m 2^k places, where m is drawn anew for each iteration
//!    and has no factor in common with n. So what one rank says reaches all, and where too many say something, others reach a rank each time.
//! 3. A rank above the mean offers tasks to ranks that it knows, drawn with probabilities in proportion to what they lack.
//! 4. Offers find their way in ceil(log2 n) rounds, over distances that are powers of two, many in one message.
//! 5. Who is offered tasks takes them as long as it stays within its share of the mean, or else one more that leaves it faster than the sender is; it
//!    answers, and the sender sends.
//!
//! ```text
//!   gossip    4 -> 7 -> 2 ..      "4 lacks 9"               every rank knows some of those that lack
//!   offers    1: 5x3 to 4         4 takes 3x3               1 sends 3x3 to 4
//! ```
//!
//! Cost: an iteration takes two rounds of log2 n messages, a reduction of log2 n, an answer for each offer and a message for what was taken; a rank
//! makes at most [`TARGETS`] offers. So messages per rank grow with log2 n, and bytes as well, since lists are bounded.
//!
//! It ends for certain: the number of iterations is bounded, each has a fixed number of rounds, and all ranks leave it by the same sums.
//!
//! Departures: the distances of a gossip round are the same for all, so that each rank gets one message a round, and needs no detection of
//! termination (the paper's ranks draw one each); offers are answered (the paper's ranks take what comes, or send it on). Ranks gossip, not nodes: virtual nodes give what they have
//! to their rank's real node first, and no power is given nothing.
//!
//! Guarantee: the closing check; near the mean on loads of tasks that are small against it, and no promise beyond that.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{
    Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, RankTime, Running, Stage, central, no_harm,
};
use crate::error::{Error, Result};
use crate::load::{Shares, WorkQueue};
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{Group, HEADER_BYTES, Node, Tag};
use crate::topology::{NodeId, Placement, Topology};

const GOSSIP: Tag = crate::node::tags::balance::GOSSIP;
const OFFER: Tag = crate::node::tags::balance::OFFER;
const ANSWER: Tag = crate::node::tags::balance::ANSWER;

/// Maximum number of iterations.
const ITERATIONS: u32 = 8;

/// Iterations in a row without a move after which it ends: of others to whom to offer something, one may take it.
const PATIENCE: u32 = 3;

/// Maximum number of ranks that a rank knows.
const KNOWN: usize = 32;

/// Maximum number of ranks to which a rank offers tasks in one iteration.
const TARGETS: usize = 8;

/// Time of the slowest rank, in hundredths of the mean, up to which ranks count as balanced.
const NEAR: u64 = 102;

pub(super) static ENTRY: Entry = Entry {
    name: "tempered",
    title: "gossip of light ranks, and offers of heavy ones",
    source: "Menon and Kale 2013; Lifflander and others 2021",
    options: "",
    examples: &["tempered"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Gossip,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost,
    },
};

struct Tempered;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Tempered))
}

fn cost(topology: &Topology) -> Cost {
    let n = u64::from(topology.nodes());
    if n == 1 {
        return Cost { steps: 0, messages: 0, bytes: 0 };
    }
    let (rounds, reduction, iterations) =
        (u64::from(topology.nodes().next_power_of_two().ilog2()), no_harm::cost(topology.nodes()), u64::from(ITERATIONS));
    let offers = n * TARGETS as u64;
    let messages = (reduction.messages + 2 * n * rounds + 2 * offers) * iterations + reduction.messages;
    Cost {
        steps: (reduction.steps + 2 * rounds + 2) * iterations + reduction.steps,
        messages,
        // Lists of ranks and of offers, and tasks.
        bytes: messages * (HEADER_BYTES + TRANSFER_BYTES + 8 + 28 * KNOWN as u64),
    }
}

impl Balancer for Tempered {
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        true
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(gossip(phase))
    }
}

async fn gossip(phase: &mut Phase<'_>) -> Result<()> {
    let (node, me) = (phase.node, phase.node.me());
    let placement = &node.overlay().placement;
    if placement.ranks() == 1 && placement.native() {
        return Ok(());
    }
    if !home(phase).await? {
        return Ok(());
    }
    let ranks = Group::spaced(0, 1, placement.ranks(), me).ok_or_else(|| Error::Failed(format!("node {me} is not real")))?;
    let power = phase.powers().of(me);
    // What is pinned where there is no power never ends, and is nobody's share.
    let stuck = if power == 0 { phase.shares.pinned_on(me) } else { 0 };
    let load_of = |phase: &Phase<'_>| phase.load().saturating_sub(stuck);
    let mut rng = node.rng();
    let (mut moved, mut idle) = (true, 0);
    for iteration in 0..ITERATIONS {
        // Step 1.
        phase.enter(Stage::Information);
        let load = load_of(phase);
        let mine = Sum { work: load.into(), power: power.into(), slowest: RankTime { work: load, power }, moved };
        let sum = ranks.all_reduce(node, mine, Sum::and).await?;
        idle = if sum.moved { 0 } else { idle + 1 };
        if idle == PATIENCE || sum.is_near() {
            break;
        }
        let share = sum.share(power);

        // Step 2.
        let light = Light { rank: me, lacks: share.saturating_sub(load), load, power };
        let known = spread(&ranks, node, light, iteration, &mut rng).await?;

        // Step 3.
        phase.enter(Stage::Decision);
        let here = RankTime { work: load, power };
        let offers = offers(phase.mover.queue, here, here.work.saturating_sub(share), known, &mut rng);

        // Step 4.
        phase.enter(Stage::Information);
        let own = offers.iter().map(|offer| Offered { to: offer.to, from: me, load, power, rows: offer.rows.clone() }).collect();
        let offered = route(&ranks, node, own).await?;

        // Step 5.
        phase.enter(Stage::Exchange);
        let mut load = load_of(phase);
        let mut expected = Vec::new();
        for offer in &offered {
            let taken = accepted(offer, &mut load, share, power);
            node.send(offer.from, ANSWER, &taken);
            if taken.iter().any(|count| *count > 0) {
                expected.push(offer.from);
            }
        }
        let mut parts = Vec::new();
        for offer in &offers {
            let taken: Vec<u64> = node.receive(offer.to, ANSWER).await?;
            parts.extend(offer.places.iter().zip(taken).filter(|(_, count)| *count > 0).map(|(at, count)| (*at, count, offer.to)));
        }
        parts.sort_unstable();
        moved = !parts.is_empty();
        phase.mover.deal_out(&parts).await;
        phase.mover.take_in_order(&expected).await?;
    }
    Ok(())
}

/// Virtual nodes give all they can to the real node of their rank, on the same rank. Returns whether this node is a real one.
async fn home(phase: &mut Phase<'_>) -> Result<bool> {
    let (node, me) = (phase.node, phase.node.me());
    let placement = &node.overlay().placement;
    let rank = placement.rank_of(me);
    let real = placement.real_node_of(rank);
    if me != real {
        let all = phase.mover.queue.movable_rows().iter().map(|(_, count)| count).sum::<u64>();
        let batch = phase.mover.queue.take_places(&[(0, all, real)]).remove(&real).unwrap_or_default();
        phase.mover.send(real, &(), batch);
        return Ok(false);
    }
    if !placement.native() {
        for guest in placement.nodes_on(rank).split_off(1) {
            phase.mover.take_in::<()>(guest).await?;
        }
    }
    Ok(true)
}

/// Reduction over all ranks.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Sum {
    work: u128,
    power: u128,
    slowest: RankTime,
    moved: bool,
}

impl Sum {
    fn and(self, other: Sum) -> Sum {
        Sum {
            work: self.work + other.work,
            power: self.power + other.power,
            slowest: self.slowest.max(other.slowest),
            moved: self.moved || other.moved,
        }
    }

    /// Returns true if the slowest rank takes about as long as the mean.
    fn is_near(self) -> bool {
        // Loads and powers are below 2^64, all together; hundredths of the products would be beyond 2^128.
        let mean = self.work.saturating_mul(self.slowest.power.into());
        let longer = u128::from(self.slowest.work).saturating_mul(self.power).saturating_sub(mean);
        longer <= mean / 100 * u128::from(NEAR - 100) + mean % 100 * u128::from(NEAR - 100) / 100
    }

    /// Load of a rank of this power if all ranks take equally long, rounded up.
    fn share(self, power: u64) -> u64 {
        // If a product overflows, a slightly smaller value is good enough.
        let (mut work, mut all) = (self.work, self.power.max(1));
        while work.checked_mul(power.into()).is_none() {
            (work, all) = (work >> 1, (all >> 1).max(1));
        }
        u64::try_from((work * u128::from(power)).div_ceil(all)).unwrap_or(u64::MAX)
    }
}

/// Announcement of a rank below the mean: how much it lacks, what it has, and its power.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Light {
    rank: NodeId,
    lacks: u64,
    load: u64,
    power: u64,
}

/// Distances of the rounds of gossip, drawn alike by all n ranks. Sums of some of them are all distances from 0 to n - 1, modulo n.
fn distances(n: u32, iteration: u32) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(iteration) + 1);
    let mut factor = 1;
    if n > 2 {
        factor = random.random_range(1..n);
        while gcd(factor, n) > 1 {
            factor = random.random_range(1..n);
        }
    }
    let at = |round: u32| (u64::from(factor) << round) % u64::from(n);
    (0..n.next_power_of_two().ilog2()).map(|round| at(round) as u32).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Gossip: the light ranks that this one hears of.
async fn spread(ranks: &Group, node: &Node, mine: Light, iteration: u32, rng: &mut ChaCha8Rng) -> Result<Vec<Light>> {
    let (n, me) = (ranks.size(), ranks.place());
    let mut known: Vec<Light> = if mine.lacks > 0 { vec![mine] } else { Vec::new() };
    for distance in distances(n, iteration) {
        node.send(ranks.node((me + distance) % n), GOSSIP, &known);
        let more: Vec<Light> = node.receive(ranks.node((me + n - distance) % n), GOSSIP).await?;
        known = merged(known, more, rng);
    }
    known.retain(|light| light.rank != mine.rank);
    node.charge(known.len() as u64);
    Ok(known)
}

/// Both lists; if that is too many, some that were drawn.
fn merged(known: Vec<Light>, more: Vec<Light>, rng: &mut ChaCha8Rng) -> Vec<Light> {
    let all: BTreeMap<NodeId, Light> = known.into_iter().chain(more).map(|light| (light.rank, light)).collect();
    let mut all: Vec<Light> = all.into_values().collect();
    while all.len() > KNOWN {
        all.swap_remove(rng.random_range(0..all.len()));
    }
    all.sort_unstable_by_key(|light| light.rank);
    all
}

/// Tasks that a rank offers to another: the places of rows of tasks among its own, and their weights and counts.
struct Offer {
    to: NodeId,
    places: Vec<u64>,
    rows: Vec<(u64, u64)>,
}

/// Offers of tasks that are `excess` together of what is `here`: the heaviest that fit into what is left of it first, to ranks that are drawn by what
/// they lack.
fn offers(queue: &WorkQueue, here: RankTime, excess: u64, mut lights: Vec<Light>, rng: &mut ChaCha8Rng) -> Vec<Offer> {
    let mut rows: Vec<(u64, u64, u64)> = Vec::new();
    let mut at = 0;
    for (weight, count) in queue.movable_rows() {
        rows.push((weight, at, count));
        at += count;
    }
    rows.retain(|(weight, ..)| *weight > 0);
    rows.sort_unstable_by_key(|(weight, at, _)| (Reverse(*weight), *at));
    let (mut left, mut offers) = (excess, Vec::new());
    while left > 0 && offers.len() < TARGETS && !lights.is_empty() {
        let Light { rank: to, lacks, load, power } = lights.swap_remove(drawn(&lights, rng));
        let mut offer = Offer { to, places: Vec::new(), rows: Vec::new() };
        let mut room = lacks.min(left);
        for (weight, at, count) in &mut rows {
            let some = (room / *weight).min(*count);
            if some > 0 {
                offer.places.push(*at);
                offer.rows.push((*weight, some));
                (*at, *count) = (*at + some, *count - some);
                room -= some * *weight;
                left -= some * *weight;
            }
        }
        // Nothing fits: the lightest task may still make both faster.
        if offer.rows.is_empty()
            && let Some((weight, at, count)) = rows.iter_mut().rfind(|(_, _, count)| *count > 0)
            && (RankTime { work: load.saturating_add(*weight), power }) < here
        {
            offer.places.push(*at);
            offer.rows.push((*weight, 1));
            (*at, *count) = (*at + 1, *count - 1);
            left = left.saturating_sub(*weight);
        }
        if !offer.rows.is_empty() {
            offers.push(offer);
        }
    }
    offers
}

/// The place of one that is drawn in proportion to what it lacks.
fn drawn(lights: &[Light], rng: &mut ChaCha8Rng) -> usize {
    let all: u128 = lights.iter().map(|light| u128::from(light.lacks)).sum();
    let mut at = rng.random_range(0..all.max(1));
    for (place, light) in lights.iter().enumerate() {
        match at.checked_sub(light.lacks.into()) {
            Some(rest) => at = rest,
            None => return place,
        }
    }
    lights.len() - 1
}

/// An offer on its way.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Offered {
    to: NodeId,
    from: NodeId,
    /// Work and power of the offering rank.
    load: u64,
    power: u64,
    rows: Vec<(u64, u64)>,
}

/// Brings all offers to where they go: in round k those whose distance still has bit k go that far. Returns those for this rank, by source.
async fn route(ranks: &Group, node: &Node, own: Vec<Offered>) -> Result<Vec<Offered>> {
    let (n, me) = (ranks.size(), ranks.place());
    let mut here = own;
    for bit in 0..n.next_power_of_two().ilog2() {
        let step = 1 << bit;
        let away = |offer: &Offered| ((offer.to + n - me) % n) >> bit & 1 == 1;
        let (go, stay): (Vec<Offered>, Vec<Offered>) = here.into_iter().partition(away);
        node.send(ranks.node((me + step) % n), OFFER, &go);
        here = stay;
        here.append(&mut node.receive(ranks.node((me + n - step) % n), OFFER).await?);
    }
    here.sort_by_key(|offer| offer.from);
    Ok(here)
}

/// Number of tasks of each row of an offer that a rank with this load, share and power takes: what its share has room for; or one task with which
/// it is still faster than the offering rank.
fn accepted(offer: &Offered, load: &mut u64, share: u64, power: u64) -> Vec<u64> {
    let senders = RankTime { work: offer.load, power: offer.power };
    let mut taken = Vec::with_capacity(offer.rows.len());
    for (weight, count) in &offer.rows {
        let fits = (share.saturating_sub(*load) / (*weight).max(1)).min(*count);
        let one = fits == 0 && *load < share && RankTime { work: *load + *weight, power } < senders;
        let count = if one { 1 } else { fits };
        *load += count * *weight;
        taken.push(count);
    }
    taken
}

#[cfg(test)]
mod tests;
