//! Shares such that all nodes finish at the same time, and when that will be.
//!
//! The originator sends to one node after the other, those behind fast links first (which is best: Bharadwaj, Ghose, Mani and Robertazzi 1996,
//! chapter 5), among equals layer by layer, and computes on its own share meanwhile. With `w` seconds per byte to compute, `z` to send (the
//! slowest link on the way), `L` the latency of the way, `c` the kernel's start-up, a node served from `t` on finishes at
//!
//! ```text
//!   T = t + s z + L + c + s w      one installment:       s = (T - t - L - c) / (z + w)
//!   T >= arrival(r) + (K - r + 1) s w / K   for all r     K installments, dealt out in K rounds
//! ```
//!
//! For a given T every share follows from those before it and, with several installments, from how long is sent altogether, which is found by
//! bisection. So is T: the shares' sum grows with it.

use serde::{Deserialize, Serialize};

use super::calibrate::SpreadCosts;
use super::kernel::Range;
use super::piece::PIECE;
use super::tree::SpreadTree;
use equipoise::topology::NodeId;

/// An interval, in seconds since the distribution began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeInterval {
    pub begin: f64,
    pub end: f64,
}

/// Shares of the nodes, order of service, number of installments, and predicted times.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadPlan {
    pub origin: NodeId,
    /// The nodes with links before them, in the order in which they are served.
    pub order: Vec<NodeId>,
    pub installments: u32,
    /// Bytes by node.
    pub shares: Vec<u64>,
    pub predicted: Prediction,
}

/// Predicted times of the nodes for some shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Time at which each node has computed its share; 0 without one.
    pub finish: Vec<f64>,
    /// Intervals in which load is sent to each node: by the originator, one for each installment; or on layers, one for each link to the node.
    pub sending: Vec<Vec<TimeInterval>>,
    /// Intervals in which each node computes.
    pub computing: Vec<Vec<TimeInterval>>,
}

impl Prediction {
    /// Time at which the last node finishes.
    pub fn makespan(&self) -> f64 {
        self.finish.iter().copied().fold(0.0, f64::max)
    }
}

/// Costs of one node, as the planner knows them.
#[derive(Clone, Copy, Debug)]
struct Served {
    node: NodeId,
    /// Seconds per byte of the slowest link on its way.
    link: f64,
    latency: f64,
    /// Seconds per byte to store and forward a piece on the way.
    forward: f64,
    start: f64,
    compute: f64,
}

/// Maximum number of installments that are considered.
pub const MOST_INSTALLMENTS: u32 = 4096;
/// Maximum number of installments whose rounds are simulated one by one to find the shares: more change these by less than costs are known.
const MOST_FITTED: u32 = 64;
/// Factor by which more installments must shorten the time to be chosen.
const WORTH: f64 = 0.99;
/// Smallest divisor, in seconds: keeps divisions away from zero.
const LEAST: f64 = 1e-15;
const BISECTIONS: u32 = 60;

/// Plans the division of an input of `bytes` bytes. `installments` is `None` for the number with the best prediction; no installment of a
/// node is longer than `room`, whatever was requested.
pub fn plan(tree: &SpreadTree, costs: &SpreadCosts, bytes: u64, installments: Option<u32>, room: u64) -> SpreadPlan {
    let served = served(tree, costs);
    let candidates: Vec<u32> = installments.map_or_else(|| vec![1, 2, 4, 8, 16], |given| vec![given.max(1)]);
    let mut best: Option<SpreadPlan> = None;
    for asked in candidates {
        let mut number = asked;
        let mut shares = fitted(tree.root(), costs, &served, bytes, number.min(MOST_FITTED));
        let longest = longest(tree, &shares);
        let needed = u32::try_from(longest.div_ceil(room.max(1))).unwrap_or(MOST_INSTALLMENTS).min(MOST_INSTALLMENTS);
        if needed > number {
            number = needed;
            shares = fitted(tree.root(), costs, &served, bytes, number.min(MOST_FITTED));
        }
        let predicted = predict(tree, costs, &shares, number);
        let order = served.iter().map(|served| served.node).collect();
        let plan = SpreadPlan { origin: tree.root(), order, installments: number, shares, predicted };
        if best.as_ref().is_none_or(|best| plan.predicted.makespan() < best.predicted.makespan() * WORTH) {
            best = Some(plan);
        }
    }
    best.unwrap_or_else(|| equal(tree, costs, bytes))
}

/// In proportion to how fast the nodes are against each other, where it is not known how fast that is: whatever it is, all take as long if it is
/// slow against the links. Long shares come in several installments, so that no node waits long for its first. See [`plan()`] for the others.
pub fn in_proportion(tree: &SpreadTree, costs: &SpreadCosts, bytes: u64, installments: Option<u32>, room: u64) -> SpreadPlan {
    /// Size of a first installment that arrives soon, in bytes.
    const FIRST: u64 = 1 << 20;
    const MOST: u64 = 16;
    let weights: Vec<f64> = costs.compute.iter().map(|seconds| 1.0 / seconds.max(LEAST)).collect();
    let shares = whole(&weights, bytes, tree.root());
    let longest = longest(tree, &shares);
    let number = installments.unwrap_or((longest / FIRST).clamp(1, MOST) as u32).max(1);
    let needed = u32::try_from(longest.div_ceil(room.max(1))).unwrap_or(MOST_INSTALLMENTS).min(MOST_INSTALLMENTS);
    of_shares(tree, costs, shares, number.max(needed))
}

/// Equal shares, in one installment, as by a scatter.
pub fn equal(tree: &SpreadTree, costs: &SpreadCosts, bytes: u64) -> SpreadPlan {
    let weights = vec![1.0; tree.len() as usize];
    let shares = whole(&weights, bytes, tree.root());
    of_shares(tree, costs, shares, 1)
}

/// Everything on the originator.
pub fn alone(tree: &SpreadTree, costs: &SpreadCosts, bytes: u64) -> SpreadPlan {
    let mut shares = vec![0; tree.len() as usize];
    shares[tree.root() as usize] = bytes;
    of_shares(tree, costs, shares, 1)
}

/// A plan of given shares.
pub fn of_shares(tree: &SpreadTree, costs: &SpreadCosts, shares: Vec<u64>, installments: u32) -> SpreadPlan {
    let predicted = predict(tree, costs, &shares, installments);
    SpreadPlan {
        origin: tree.root(),
        order: served(tree, costs).iter().map(|served| served.node).collect(),
        installments,
        shares,
        predicted,
    }
}

impl SpreadPlan {
    /// The lengths of the shares in the order in which they lie in the input: the originator's, then as they are served.
    pub fn lengths(&self) -> Vec<u64> {
        self.input_order().map(|node| self.shares[node as usize]).collect()
    }

    /// The nodes in the order in which their shares lie in the input.
    pub fn input_order(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.origin).chain(self.order.iter().copied())
    }

    /// The plan with the shares that were really cut, as `lengths` lists them, and the ranges by node.
    pub fn with_cuts(&self, tree: &SpreadTree, costs: &SpreadCosts, cuts: &[Range]) -> (SpreadPlan, Vec<Range>) {
        let mut ranges = vec![Range::default(); self.shares.len()];
        self.input_order().zip(cuts).for_each(|(node, range)| ranges[node as usize] = *range);
        let shares = ranges.iter().map(Range::len).collect();
        (of_shares(tree, costs, shares, self.installments), ranges)
    }
}

/// The longest share that travels.
fn longest(tree: &SpreadTree, shares: &[u64]) -> u64 {
    tree.others().map(|node| shares[node as usize]).max().unwrap_or(0)
}

/// The nodes beyond the originator in the order in which they are served.
fn served(tree: &SpreadTree, costs: &SpreadCosts) -> Vec<Served> {
    let mut nodes: Vec<Served> = tree
        .others()
        .map(|node| {
            let reading = costs.links[tree.root() as usize].per_byte;
            let way = || tree.way_up(node).map(|at| costs.links[at as usize]);
            let first = tree.way_up(node).last().unwrap_or(node);
            Served {
                node,
                // The originator reads the next pieces while earlier ones are under way.
                link: way().map(|link| link.per_byte).fold(reading, f64::max),
                latency: way().map(|link| link.startup).sum(),
                forward: way().map(|link| link.per_byte).sum::<f64>() - costs.links[first as usize].per_byte,
                start: costs.start[node as usize],
                compute: costs.compute[node as usize],
            }
        })
        .collect();
    // Links that differ by less than their measurements do are alike.
    let class = |served: &Served| served.link.max(LEAST).log2().round() as i64;
    nodes.sort_by_key(|served| (class(served), tree.layer(served.node), served.node));
    nodes
}

/// The shares by node that all finish together.
fn fitted(origin: NodeId, costs: &SpreadCosts, served: &[Served], bytes: u64, installments: u32) -> Vec<u64> {
    let total = bytes as f64;
    let alone = costs.start[origin as usize] + total * costs.own(origin).max(LEAST);
    let (mut low, mut high) = (0.0, alone);
    let mut shares = Vec::new();
    for _ in 0..BISECTIONS {
        let time = (low + high) / 2.0;
        shares = finishing_at(time, origin, costs, served, installments);
        if shares.iter().sum::<f64>() < total {
            low = time;
        } else {
            high = time;
        }
        if high - low <= 1e-9 * high {
            break;
        }
    }
    // From the order of service to nodes.
    let mut weights = vec![0.0; served.len() + 1];
    weights[origin as usize] = shares.first().copied().unwrap_or(1.0);
    for (index, served) in served.iter().enumerate() {
        weights[served.node as usize] = shares.get(index + 1).copied().unwrap_or(0.0);
    }
    whole(&weights, bytes, origin)
}

/// Load that can be computed until `time`: by the originator, and by the others in the order of service.
fn finishing_at(time: f64, origin: NodeId, costs: &SpreadCosts, served: &[Served], installments: u32) -> Vec<f64> {
    let own = ((time - costs.start[origin as usize]) / costs.own(origin).max(LEAST)).max(0.0);
    // The more is sent in each round, the later come the next ones, and the less can be computed: one amount agrees with itself.
    let (mut low, mut high) = (0.0, if installments == 1 { 0.0 } else { time });
    let mut shares = given_sending(0.0, time, served, installments);
    while high - low > 1e-6 * time {
        let sending = (low + high) / 2.0;
        shares = given_sending(sending, time, served, installments);
        if served.iter().zip(&shares).map(|(served, share)| served.link * share).sum::<f64>() > sending {
            low = sending;
        } else {
            high = sending;
        }
    }
    shares.insert(0, own);
    shares
}

/// Load of each served node until `time`, if the originator sends for `sending` seconds altogether.
fn given_sending(sending: f64, time: f64, served: &[Served], installments: u32) -> Vec<f64> {
    let rounds = f64::from(installments);
    let mut before = 0.0;
    let share = |served: &Served| {
        let bound = |round: u32| {
            let round = f64::from(round);
            let left = time - served.latency - served.start - ((round - 1.0) * sending + before) / rounds;
            // Seconds per byte of the share: an installment on its way, and this and the later ones computed.
            let cost = (served.link + served.compute * (rounds - round + 1.0)) / rounds;
            let short = left / (cost + served.forward / rounds).max(LEAST);
            if short / rounds <= PIECE as f64 { short } else { (left - served.forward * PIECE as f64) / cost.max(LEAST) }
        };
        let share = (1..=installments).map(bound).fold(f64::INFINITY, f64::min).max(0.0);
        before += share * served.link;
        share
    };
    served.iter().map(share).collect()
}

/// Whole bytes in proportion to the weights, adding up to `bytes`; what rounding leaves is the originator's.
pub(super) fn whole(weights: &[f64], bytes: u64, origin: NodeId) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let (mut reached, mut given) = (0.0, 0);
    let mut shares: Vec<u64> = weights
        .iter()
        .map(|weight| {
            reached += weight;
            let until = if sum > 0.0 { ((reached / sum * bytes as f64) as u64).min(bytes) } else { bytes };
            let share = until.saturating_sub(given);
            given += share;
            share
        })
        .collect();
    shares[origin as usize] += bytes - given;
    shares
}

/// Predicts when every node would be done with these shares.
pub fn predict(tree: &SpreadTree, costs: &SpreadCosts, shares: &[u64], installments: u32) -> Prediction {
    let served = served(tree, costs);
    let nodes = shares.len();
    let mut predicted = Prediction { finish: vec![0.0; nodes], sending: vec![Vec::new(); nodes], computing: vec![Vec::new(); nodes] };
    let computes = |node: usize, begin: f64, seconds: f64, predicted: &mut Prediction| {
        let interval = TimeInterval { begin, end: begin + seconds };
        predicted.finish[node] = interval.end;
        match predicted.computing[node].last_mut() {
            Some(last) if last.end >= begin => last.end = interval.end,
            _ => predicted.computing[node].push(interval),
        }
    };
    let root = tree.root() as usize;
    if shares[root] > 0 {
        computes(root, 0.0, costs.start[root] + shares[root] as f64 * costs.own(tree.root()), &mut predicted);
    }
    let mut clock = 0.0;
    for round in 0..installments {
        for served in &served {
            let node = served.node as usize;
            let bytes = installment(shares[node], round, installments) as f64;
            if bytes == 0.0 {
                continue;
            }
            let sent = TimeInterval { begin: clock, end: clock + bytes * served.link };
            predicted.sending[node].push(sent);
            clock = sent.end;
            let arrived = clock + served.latency + bytes.min(PIECE as f64) * served.forward;
            let begin = arrived.max(predicted.finish[node]);
            let start = if predicted.computing[node].is_empty() { served.start } else { 0.0 };
            computes(node, begin, start + bytes * served.compute, &mut predicted);
        }
    }
    predicted
}

/// The length of one installment of a share.
pub fn installment(share: u64, round: u32, installments: u32) -> u64 {
    let until = |round: u32| (u128::from(share) * u128::from(round) / u128::from(installments.max(1))) as u64;
    until(round + 1) - until(round)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divisible::spread::calibrate::LinkCosts;
    use proptest::prelude::*;

    fn costs(compute: &[f64], per_byte: &[f64], startup: f64) -> SpreadCosts {
        SpreadCosts {
            compute: compute.to_vec(),
            start: vec![0.0; compute.len()],
            links: per_byte.iter().map(|&per_byte| LinkCosts { startup, per_byte }).collect(),
        }
    }

    #[test]
    fn two_nodes_as_by_hand() {
        // s0 = T, s1 = T / 2 with w = z = 1 second a byte.
        let costs = costs(&[1.0, 1.0], &[0.0, 1.0], 0.0);
        let plan = plan(&SpreadTree::star(2), &costs, 3000, Some(1), u64::MAX);
        assert_eq!(plan.shares, [2000, 1000]);
        assert!((plan.predicted.makespan() - 2000.0).abs() < 1e-6);
        assert_eq!(plan.predicted.sending[1], [TimeInterval { begin: 0.0, end: 1000.0 }]);
        assert_eq!(plan.predicted.computing[1], [TimeInterval { begin: 1000.0, end: 2000.0 }]);
    }

    #[test]
    fn a_node_that_is_too_far_away_gets_nothing() {
        let costs = costs(&[1e-6, 1e-6], &[0.0, 1e-6], 10.0);
        let plan = plan(&SpreadTree::star(2), &costs, 1000, None, u64::MAX);
        assert_eq!(plan.shares, [1000, 0]);
    }

    #[test]
    fn installments_are_as_many_as_memory_asks_for() {
        let costs = costs(&[1.0, 1.0], &[0.0, 1.0], 0.0);
        let plan = plan(&SpreadTree::star(2), &costs, 3000, Some(1), 100);
        assert!(plan.installments >= 10 && plan.shares.iter().sum::<u64>() == 3000, "{plan:?}");
    }

    #[test]
    fn where_nothing_is_known_shares_follow_the_speeds() {
        let costs = costs(&[2.0, 1.0, 1.0], &[0.0, 5.0, 5.0], 10.0);
        let plan = in_proportion(&SpreadTree::star(3), &costs, 5000, None, u64::MAX);
        assert_eq!((plan.shares, plan.installments), (vec![1000, 2000, 2000], 1));
        let long = in_proportion(&SpreadTree::star(3), &costs, 50 << 20, None, u64::MAX);
        assert_eq!(long.installments, 16);
        let little_room = in_proportion(&SpreadTree::star(3), &costs, 50 << 20, Some(2), 1 << 20);
        assert_eq!(little_room.installments, 20);
    }

    #[test]
    fn a_star_is_divided_as_the_model_says() {
        use crate::divisible::model::{NamedTopology, Ports, Question, solve};
        let (speeds, slowness) = ([1.0, 2.0, 0.5, 4.0, 1.0], [1.0, 0.5, 2.0, 4.0]);
        let question = Question {
            ports: Ports::One,
            z: 0.2,
            speeds: speeds.to_vec(),
            links: slowness.to_vec(),
            ..Question::of(NamedTopology::parse("star:5").unwrap())
        };
        let solution = solve(&question).unwrap();
        let bytes = 1_000_000_000;
        let per_byte: Vec<f64> = std::iter::once(0.0).chain(slowness.map(|slow| 0.2 * slow / bytes as f64)).collect();
        let costs = costs(&speeds.map(|speed| 1.0 / speed / bytes as f64), &per_byte, 0.0);
        let plan = plan(&SpreadTree::star(5), &costs, bytes, Some(1), u64::MAX);
        assert!((plan.predicted.makespan() / solution.makespan - 1.0).abs() < 1e-6, "{plan:?} {solution:?}");
        for part in &solution.parts {
            let node = part.processor.unwrap() as usize;
            assert!((plan.shares[node] as f64 / bytes as f64 - part.alpha).abs() < 1e-6, "node {node}: {plan:?} {solution:?}");
        }
    }

    proptest! {
        #[test]
        fn all_finish_together(
            compute in prop::collection::vec(1e-9f64..1e-6, 1..17), ratio in 0.001f64..2.0, installments in 1u32..9, bytes in 1_000_000u64..100_000_000,
        ) {
            let nodes = compute.len();
            let fastest = compute.iter().copied().fold(f64::INFINITY, f64::min);
            let costs = costs(&compute, &vec![fastest * ratio; nodes], 1e-6);
            let plan = plan(&SpreadTree::star(nodes as u32), &costs, bytes, Some(installments), u64::MAX);
            prop_assert_eq!(plan.shares.iter().sum::<u64>(), bytes);
            let makespan = plan.predicted.makespan();
            for (node, finish) in plan.predicted.finish.iter().enumerate().filter(|(node, _)| plan.shares[*node] > 10_000) {
                prop_assert!((finish / makespan - 1.0).abs() < 0.01, "node {} of {:?}", node, plan);
            }
            let equal = equal(&SpreadTree::star(nodes as u32), &costs, bytes).predicted.makespan();
            prop_assert!(makespan <= equal * 1.001, "{} {}", makespan, equal);
        }

        #[test]
        fn installments_add_up(share in 0u64..1_000_000, installments in 1u32..40) {
            prop_assert_eq!((0..installments).map(|round| installment(share, round, installments)).sum::<u64>(), share);
        }
    }
}
