//! The Dimension Exchange Method, for hypercubes (Wu 1997, section 3.2, figure 7, after Cybenko 1989), and for meshes and tori (generalised
//! dimension exchange, Xu and Lau 1995).
//!
//! Pairs of neighbours share what the two of them have, dimension after dimension. No node knows more than its neighbour's load, so the
//! method is simple, moves more than it has to, and ends near the balance but rarely on it.
//!
//! For each dimension k from 0 to d-1 (on a mesh: the sides from the last to the first), for each round of pairs in it:
//!
//! 1. The two nodes of a pair tell each other their loads.
//! 2. If these differ by more than 1, the one with more sends half the difference, rounded down. (Nodes of different powers: what makes both
//!    take equally long, rounded down.)
//!
//! A graph has no dimensions, but its links fall into rounds as well, in which nobody has more than one partner (a colouring of the links). A link
//! that is slower than a way around it (links of unequal bandwidths) takes no part.
//!
//! A hypercube has one round in each dimension. A side of a mesh has two: pairs (even, odd), then (odd, even); a ring closes in the second
//! round if its length is even, in a third one if it is odd.
//!
//! ```text
//!     x --- x   x --- x   x          first round of a side of five
//!     x   x --- x   x --- x          second round
//!     ^- - - - - - - - - -^          third round, on a torus
//! ```
//!
//! Cost: two steps a round, one for the loads and one for the tasks (the paper counts an exchange of loads as two: 3d); the figures are for
//! one sweep over all dimensions.
//!
//! Guarantees: on a d-cube of equal powers the loads differ by at most d after one sweep. The slower node of a pair never becomes slower. Quotas are
//! not guaranteed. Virtual nodes get their share like all others, with the power of their rank.
//!
//! Departures from the paper: it does not know powers; we share by time, which is its rule if they are equal, and on overlays
//! [check](super::no_harm) at the end whether a rank with several nodes has become too slow. Plain shares are the paper's.
//!
//! Options: `sweeps=N` repeats the sweep over all dimensions. `sweeps=until-stable` repeats it until a sweep moved nothing, which all nodes agree on
//! after each. That ends: after a transfer both nodes of a pair are faster than the slower one was before, so the list of all times, the longest first,
//! has become smaller in the order of words. On long sides it may take long, so that it also ends after [`MOST_SWEEPS`] sweeps.
//!
//! `lambda=optimal` gives the part of a difference with which repeated sweeps are fastest (Xu and Lau, "Optimal parameters for load balancing with
//! the dimension exchange method in mesh networks", IEEE Trans. Parallel Distrib. Syst. 5, 1994; "The generalized dimension exchange method for load
//! balancing in k-ary n-cubes and variants", J. Parallel Distrib. Comput. 24, 1995): 1 / (1 + sin(pi / k)) on a mesh and 1 / (1 + sin(2 pi / k)) on
//! a torus whose longest side is k. Each sweep then leaves about 2 lambda - 1 of the imbalance, where halves leave cos^2(pi / k) and cos^2(2 pi /
//! k). On a hypercube it is half of the difference. Of a single sweep it makes nothing better.

use std::f64::consts::PI;

use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage};
use crate::error::Result;
use crate::load::Shares;
use crate::node::migrate::TRANSFER_BYTES;
use crate::node::{HEADER_BYTES, Tag};
use crate::topology::{Kind, NodeId, Placement, Side, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "dem",
    title: "Dimension Exchange Method",
    source: "Wu 1997, section 3.2, figure 7",
    options: "sweeps=1 (a number, or until-stable), lambda=half|optimal (of a difference: optimal is for several sweeps on meshes and tori)",
    examples: &["dem", "dem:sweeps=3", "dem:sweeps=until-stable", "dem:lambda=optimal,sweeps=5"],
    build,
    facts: Facts {
        kinds: &[Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Neighbours,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost,
    },
};

/// The sweeps after which `until-stable` gives up.
pub const MOST_SWEEPS: u32 = 1 << 16;

const LOAD: Tag = crate::node::tags::balance::DEM_LOAD;

/// Number of sweeps over the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeps {
    Number(u32),
    UntilStable,
}

/// Part of the difference that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lambda {
    Half,
    Optimal,
}

struct Dem {
    sweeps: Sweeps,
    lambda: Lambda,
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    let sweeps = match options.value("sweeps")? {
        None => Sweeps::Number(1),
        Some("until-stable") => Sweeps::UntilStable,
        Some(text) => match text.parse() {
            Ok(number @ 1..=MOST_SWEEPS) => Sweeps::Number(number),
            _ => return Err(options.wrong("sweeps", text, &format!("a number from 1 to {MOST_SWEEPS} or until-stable"))),
        },
    };
    let lambda = options.choice("lambda", &[("half", Lambda::Half), ("optimal", Lambda::Optimal)])?.unwrap_or(Lambda::Half);
    Ok(Box::new(Dem { sweeps, lambda }))
}

fn cost(topology: &Topology) -> Cost {
    let (mut rounds, mut pairs) = (0, 0);
    for side in (0..topology.sides()).filter_map(|k| topology.side(k)) {
        let rows = u64::from(topology.nodes() / side.length);
        for &round in rounds_along(side) {
            rounds += 1;
            pairs += rows * u64::from(pairs_in(round, side.length));
        }
    }
    if let Topology::Graph(graph) = topology {
        let talking = graph.rounds().flatten().flatten().count() as u64;
        (rounds, pairs) = (graph.rounds().count() as u64, talking / 2);
    }
    // Two messages tell the loads of a pair, a third one may carry tasks.
    Cost { steps: 2 * rounds, messages: 3 * pairs, bytes: pairs * (2 * (HEADER_BYTES + 8) + TRANSFER_BYTES) }
}

impl Balancer for Dem {
    /// No pair's slower node becomes slower, but where a rank hosts several nodes that says nothing about their sum.
    fn is_checked(&self, _: &Shares, placement: &Placement) -> bool {
        placement.is_overlay()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(exchange(phase, self.sweeps, self.lambda))
    }
}

async fn exchange(phase: &mut Phase<'_>, sweeps: Sweeps, lambda: Lambda) -> Result<()> {
    let lambda = match (lambda, phase.topology()) {
        (Lambda::Half, _) => 0.5,
        (Lambda::Optimal, Topology::Graph(_)) => {
            return Err(ENTRY.conflict("lambda=optimal is not known for graphs; it is for meshes and tori").into());
        }
        (Lambda::Optimal, topology) => optimal_lambda(topology),
    };
    let most = match sweeps {
        Sweeps::Number(number) => number,
        Sweeps::UntilStable => MOST_SWEEPS,
    };
    let mut rounds = 0;
    for _ in 0..most {
        let moved = sweep(phase, lambda, &mut rounds).await?;
        if sweeps == Sweeps::UntilStable && !phase.node.everyone().any(phase.node, moved).await? {
            break;
        }
    }
    Ok(())
}

/// Goes through all dimensions once, counts the rounds, and says whether this node sent anything.
async fn sweep(phase: &mut Phase<'_>, lambda: f64, rounds: &mut u32) -> Result<bool> {
    let (me, topology) = (phase.node.me(), phase.topology());
    let mut sent = false;
    for k in (0..topology.sides()).rev() {
        let Some(side) = topology.side(k) else { continue };
        for &round in rounds_along(side) {
            phase.mover.at_step(*rounds);
            *rounds += 1;
            if let Some(partner) = partner(round, side.coordinate(me), side.length) {
                sent |= share(phase, lambda, side.at(me, partner)).await?;
            }
        }
    }
    if let Topology::Graph(graph) = topology {
        for partner in graph.rounds().map(|partners| partners[me as usize]) {
            phase.mover.at_step(*rounds);
            *rounds += 1;
            if let Some(partner) = partner {
                sent |= share(phase, lambda, partner).await?;
            }
        }
    }
    Ok(sent)
}

/// The part of a difference with which repeated sweeps are fastest, by the longest side.
fn optimal_lambda(topology: &Topology) -> f64 {
    let of = |side: Side| {
        let turn = if side.wraps && side.length > 2 { 2.0 * PI } else { PI };
        1.0 / (1.0 + (turn / f64::from(side.length)).sin())
    };
    let sides = (0..topology.sides()).filter_map(|k| topology.side(k)).filter(|side| side.length > 1);
    sides.map(of).fold(0.5, f64::max)
}

/// Amount to give where over-relaxation is used: at least `amount`, the share, so that the partner has more afterwards, at most
/// `most`, with which the partner is not yet as slow as the giver is now.
fn overshot(lambda: f64, amount: u64, most: u64) -> u64 {
    let wanted = (amount as f64 * 2.0 * lambda) as u64;
    if lambda > 0.5 { wanted.min(most).max(amount) } else { amount }
}

/// Amount that the node with load `a` and power `p` of a pair gives, the most that it may give so that the other is faster afterwards than this one
/// is now (or the two could exchange a large task for ever), and whether it gives nothing because the amount by
/// the paper's rule would make the other take longer than this one does now. Nothing if it does not take longer than the other.
///
/// Both then take equally long: the share of the other is `(a + b) q / (p + q)`. On equal powers it is half the difference, rounded down.
fn due((a, p): (u64, u64), (b, q): (u64, u64)) -> (u64, u64, bool) {
    // Without any power both are as slow.
    let (p, q) = if p == 0 && q == 0 { (1, 1) } else { (p, q) };
    let wide = |load: u64, power: u64| u128::from(load) * u128::from(power);
    let ahead = wide(a, q).saturating_sub(wide(b, p));
    let amount = (ahead / (u128::from(p) + u128::from(q))) as u64;
    // Without power this one takes for ever, whatever the other gets.
    let within = |ahead: u128| ahead.checked_div(p.into()).map_or(a, |most| u64::try_from(most).unwrap_or(u64::MAX));
    let half = a.saturating_sub(b) / 2;
    (amount, within(ahead.saturating_sub(1)), amount == 0 && half > within(ahead))
}

/// Shares what the two nodes of a pair have, and says whether this one sent anything.
async fn share(phase: &mut Phase<'_>, lambda: f64, partner: NodeId) -> Result<bool> {
    // Step 1.
    phase.enter(Stage::Information);
    let (node, mine) = (phase.node, phase.load());
    node.send(partner, LOAD, &mine);
    let theirs = node.receive::<u64>(partner, LOAD).await?;

    // Step 2.
    phase.enter(Stage::Exchange);
    let power = |node: NodeId| if phase.shares.are_plain() { 1 } else { power_of_rank(phase, node) };
    let (here, there) = ((mine, power(node.me())), (theirs, power(partner)));
    let (amount, most, less) = due(here, there);
    if less {
        phase.decline();
    }
    if amount > 0 {
        // Among tasks of several units there may be none that makes the two more even.
        return Ok(phase.mover.give_within(partner, &(), overshot(lambda, amount, most), most) > 0);
    }
    if due(there, here).0 > 0 {
        phase.mover.take_in::<()>(partner).await?;
    }
    Ok(false)
}

/// Virtual nodes get a share like all others, by the power of the rank that does their work.
fn power_of_rank(phase: &Phase<'_>, node: NodeId) -> u64 {
    let placement = &phase.node.overlay().placement;
    phase.powers().of(placement.real_node_of(placement.rank_of(node)))
}

/// Pairs of nodes in a row that exchange at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Each with an even place, with the next one.
    Even,
    /// Each with an odd place, with the next one.
    Odd,
    /// The same, and the last with the first.
    OddClosed,
    /// The last with the first.
    Closing,
}

/// The rounds that cover each link of a row once.
fn rounds_along(side: Side) -> &'static [Round] {
    match side.length {
        0 | 1 => &[],
        2 => &[Round::Even],
        _ if !side.wraps => &[Round::Even, Round::Odd],
        length if length.is_multiple_of(2) => &[Round::Even, Round::OddClosed],
        _ => &[Round::Even, Round::Odd, Round::Closing],
    }
}

/// The place of the other node of the pair, if the node at this place has one in this round.
fn partner(round: Round, place: u32, length: u32) -> Option<u32> {
    let last = length - 1;
    let with_next = match round {
        Round::Even => place.is_multiple_of(2),
        Round::Odd | Round::OddClosed => !place.is_multiple_of(2),
        Round::Closing => return if place == 0 { Some(last) } else { (place == last).then_some(0) },
    };
    match (with_next, round) {
        (true, _) if place < last => Some(place + 1),
        (false, _) if place > 0 => Some(place - 1),
        (true, Round::OddClosed) => Some(0),
        (false, Round::OddClosed) => Some(last),
        _ => None,
    }
}

fn pairs_in(round: Round, length: u32) -> u32 {
    match round {
        Round::Even => length / 2,
        Round::Odd => (length - 1) / 2,
        Round::OddClosed => length / 2,
        Round::Closing => 1,
    }
}

#[cfg(test)]
mod tests;
