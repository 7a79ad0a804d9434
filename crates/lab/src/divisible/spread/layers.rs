//! The distribution of Blazewicz and Drozdowski 1995: layer by layer away from node 0, over all links.
//!
//! Layer i of a hypercube is what lies i hops away. All nodes of a layer get equal shares, by the paper's equations. The bytes of a share go over
//! all shortest routes: its owner gets an equal part through each of its links from the layer before, each sender of these parts got an equal part of
//! them through each of its own, and so on. So every link between two layers carries the same. Which bytes go where is computed here, and alike on all nodes,
//! so that messages need not say it.
//!
//! ```text
//!   owner 6 = 110    0 --a..b--> 2 --\                      from 0 to 2 and 4: half of 6's share each, with their own shares
//!                    0 --b..c--> 4 ---+--> 6 = a..c         and their halves of 3's and 5's
//! ```

use std::collections::BTreeMap;

use super::calibrate::{LinkCosts, SpreadCosts};
use super::kernel::Range;
use super::plan::{Prediction, SpreadPlan, TimeInterval, whole};
use crate::divisible::model::hypercube;
use equipoise::topology::{NodeId, Topology};

/// The largest dimension: a link to the last layers then carries some thousand ranges.
pub const MOST_DIMENSIONS: u32 = 10;

/// A hypercube, every node of which is a rank, in layers around node 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    dimension: u32,
}

/// What every link carries: ranges of the input in ascending order, by sender and receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    links: BTreeMap<(NodeId, NodeId), Vec<Range>>,
}

impl Layers {
    /// The layers of a topology on this number of ranks; otherwise why there are none (a clause).
    ///
    /// # Errors
    /// If it is no hypercube, has virtual nodes, or is too large.
    pub fn of(topology: &Topology, ranks: u32) -> Result<Layers, String> {
        let Topology::Hypercube(cube) = topology else {
            return Err(format!("it needs a hypercube, not {}", topology.name()));
        };
        if cube.nodes() != ranks {
            return Err(format!("it needs a power of two of ranks, one for each node of the hypercube; there are {ranks}"));
        }
        if cube.dimension() > MOST_DIMENSIONS {
            return Err(format!("it goes up to dimension {MOST_DIMENSIONS}; the hypercube has {}", cube.dimension()));
        }
        Ok(Layers { dimension: cube.dimension() })
    }

    /// Dimension of the hypercube, which is the number of the last layer.
    pub fn dimension(self) -> u32 {
        self.dimension
    }

    fn nodes(self) -> u32 {
        1 << self.dimension
    }

    /// The layer of a node.
    pub fn layer(node: NodeId) -> u32 {
        node.count_ones()
    }

    /// The neighbours of a node in the next layer.
    fn next(self, node: NodeId) -> impl Iterator<Item = NodeId> {
        (0..self.dimension).map(move |k| node | 1 << k).filter(move |next| *next != node)
    }

    /// The nodes beyond node 0, layer by layer: the order of their shares in the input.
    fn order(self) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = (1..self.nodes()).collect();
        order.sort_by_key(|node| (Layers::layer(*node), *node));
        order
    }

    /// The part of the load that a node of each layer computes (equations 2 and 3), if all nodes and all links are as fast as the mean of them.
    /// Where it is not known how fast the nodes are, links count as nothing, and all nodes get as much.
    pub fn shares(self, costs: &SpreadCosts, bytes: u64, predicts: bool) -> Vec<f64> {
        let (w, z) = self.means(costs);
        let (w, z) = if predicts && w > 0.0 { (w, z) } else { (1.0, 0.0) };
        hypercube::shares(self.dimension, &w, &z, &(bytes.max(1) as f64), &(bytes.max(1) as f64)).alpha
    }

    /// Seconds per byte of the mean node and of the mean link.
    fn means(self, costs: &SpreadCosts) -> (f64, f64) {
        let mean = |numbers: &mut dyn Iterator<Item = f64>, count: usize| numbers.sum::<f64>() / count.max(1) as f64;
        let links = &costs.links[1..];
        (mean(&mut costs.compute.iter().copied(), costs.compute.len()), mean(&mut links.iter().map(|link| link.per_byte), links.len()))
    }

    /// Plans the division of an input of `bytes` bytes.
    pub fn plan(self, costs: &SpreadCosts, bytes: u64, predicts: bool) -> SpreadPlan {
        let alpha = self.shares(costs, bytes, predicts);
        let weights: Vec<f64> = (0..self.nodes()).map(|node| alpha[Layers::layer(node) as usize]).collect();
        self.of_shares(costs, whole(&weights, bytes))
    }

    /// A plan of given shares.
    fn of_shares(self, costs: &SpreadCosts, shares: Vec<u64>) -> SpreadPlan {
        let mut plan = SpreadPlan { order: self.order(), installments: 1, shares, predicted: Prediction::default() };
        let mut at = 0;
        let mut ranges = vec![Range::default(); plan.shares.len()];
        for node in plan.input_order() {
            let length = plan.shares[node as usize];
            ranges[node as usize] = Range { start: at, end: at + length };
            at += length;
        }
        plan.predicted = self.predict(costs, &ranges);
        plan
    }

    /// The plan with the shares that were really cut, in the order of the input, and the ranges by node.
    pub fn with_cuts(self, plan: &SpreadPlan, costs: &SpreadCosts, cuts: &[Range]) -> (SpreadPlan, Vec<Range>) {
        let mut ranges = vec![Range::default(); plan.shares.len()];
        plan.input_order().zip(cuts).for_each(|(node, range)| ranges[node as usize] = *range);
        (self.of_shares(costs, ranges.iter().map(Range::len).collect()), ranges)
    }

    /// When every node would be done with these ranges: it computes and sends on when all that it is to get has come.
    pub fn predict(self, costs: &SpreadCosts, ranges: &[Range]) -> Prediction {
        let nodes = ranges.len();
        let routes = self.routes(ranges);
        let mut told = Prediction { finish: vec![0.0; nodes], sending: vec![Vec::new(); nodes], computing: vec![Vec::new(); nodes] };
        let mut arrival = vec![0.0f64; nodes];
        for node in std::iter::once(0).chain(self.order()) {
            let me = node as usize;
            for (from, carried) in routes.links_to(node) {
                let LinkCosts { startup, per_byte } = costs.links[me];
                // Node 0 reads what goes out through all of its links at once.
                let reading = if from == 0 { costs.links[0].per_byte * f64::from(self.dimension) } else { 0.0 };
                let begin = arrival[from as usize];
                let end = begin + startup + length(carried) as f64 * per_byte.max(reading);
                told.sending[me].push(TimeInterval { begin, end });
                arrival[me] = arrival[me].max(end);
            }
            let share = ranges[me].len();
            if share > 0 {
                let reading = if node == 0 { costs.links[0].per_byte } else { 0.0 };
                let end = arrival[me] + costs.start[me] + share as f64 * (costs.compute[me] + reading);
                told.computing[me].push(TimeInterval { begin: arrival[me], end });
                told.finish[me] = end;
            }
        }
        told
    }

    /// What every link carries, if node i is to get `ranges[i]`.
    pub fn routes(self, ranges: &[Range]) -> Routes {
        let mut routes = Routes::default();
        for (owner, range) in (0..).zip(ranges).skip(1).filter(|(_, range)| !range.is_empty()) {
            // What each node has of this share: sub-cubes of the owner's coordinates, in ascending order, so layers never come back.
            let mut held: BTreeMap<NodeId, Vec<Range>> = BTreeMap::from([(0, vec![*range])]);
            for node in subsets(owner) {
                let Some(mut here) = held.remove(&node).filter(|_| node != owner) else { continue };
                here.sort_unstable();
                let next: Vec<NodeId> = self.next(node).filter(|next| next & !owner == 0).collect();
                for (next, part) in next.iter().zip(parts(&here, next.len())) {
                    routes.links.entry((node, *next)).or_default().extend(&part);
                    held.entry(*next).or_default().extend(part);
                }
            }
        }
        routes.links.values_mut().for_each(merge);
        routes
    }
}

impl Routes {
    /// The links from a node, and what they carry.
    pub fn links_from(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &[Range])> {
        self.links.range((node, 0)..=(node, NodeId::MAX)).map(|((_, to), ranges)| (*to, ranges.as_slice()))
    }

    /// The links to a node, and what they carry.
    pub fn links_to(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &[Range])> {
        let bits = (0..NodeId::BITS).map(move |k| node & !(1 << k)).filter(move |from| *from != node);
        bits.filter_map(move |from| Some((from, self.links.get(&(from, node))?.as_slice())))
    }

    /// Bytes that a node gets, those that it sends on included.
    pub fn volume(&self, node: NodeId) -> u64 {
        self.links_to(node).map(|(_, ranges)| length(ranges)).sum()
    }
}

/// Bytes of some ranges.
pub fn length(ranges: &[Range]) -> u64 {
    ranges.iter().map(Range::len).sum()
}

/// All nodes whose coordinates are among those of `node`, in ascending order: each comes after those on the ways to it.
fn subsets(node: NodeId) -> impl Iterator<Item = NodeId> {
    std::iter::successors(Some(0), move |subset: &NodeId| (*subset != node).then(|| (subset | !node).wrapping_add(1) & node))
}

/// Some ranges in consecutive parts of equal length, to a byte.
fn parts(ranges: &[Range], count: usize) -> Vec<Vec<Range>> {
    let total = length(ranges);
    let mut parts = vec![Vec::new(); count];
    let mut before = 0;
    for range in ranges {
        for (index, part) in parts.iter_mut().enumerate() {
            let border = |index: usize| (u128::from(total) * index as u128 / count as u128) as u64;
            let (from, until) = (border(index).max(before), border(index + 1).min(before + range.len()));
            if from < until {
                part.push(Range { start: range.start + (from - before), end: range.start + (until - before) });
            }
        }
        before += range.len();
    }
    parts
}

/// Sorts ranges, and joins those that follow each other.
fn merge(ranges: &mut Vec<Range>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let follows = range.end == next.start;
        if follows {
            range.end = next.end;
        }
        follows
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(dimension: u32) -> Layers {
        Layers { dimension }
    }

    fn costs(nodes: usize, compute: f64, per_byte: f64) -> SpreadCosts {
        SpreadCosts {
            compute: vec![compute; nodes],
            start: vec![0.0; nodes],
            links: (0..nodes).map(|node| LinkCosts { startup: 0.0, per_byte: if node == 0 { 0.0 } else { per_byte } }).collect(),
        }
    }

    fn cut(plan: &SpreadPlan) -> Vec<Range> {
        let mut at = 0;
        let behind = |length: u64| {
            at += length;
            Range { start: at - length, end: at }
        };
        plan.lengths().into_iter().map(behind).collect()
    }

    #[test]
    fn the_papers_example() {
        // d = 2, ones everywhere: 7/15, 3/15, 2/15.
        let plan = layers(2).plan(&costs(4, 1e-6, 1e-6), 15_000_000, true);
        assert_eq!(plan.shares, [7_000_000, 3_000_000, 3_000_000, 2_000_000]);
        assert!(plan.predicted.finish.iter().all(|finish| (finish - 7.0).abs() < 1e-5), "{:?}", plan.predicted);
        // Each neighbour gets its share and half of node 3's.
        let (_, ranges) = layers(2).with_cuts(&plan, &costs(4, 1e-6, 1e-6), &cut(&plan));
        let routes = layers(2).routes(&ranges);
        assert_eq!([1, 2, 3].map(|node| routes.volume(node)), [4_000_000, 4_000_000, 2_000_000]);
        assert_eq!(routes.links_from(2).collect::<Vec<_>>(), [(3, &[Range { start: 14_000_000, end: 15_000_000 }][..])]);
    }

    #[test]
    fn all_nodes_finish_together_and_links_between_layers_carry_the_same() {
        for dimension in 1..=6 {
            let nodes = 1 << dimension;
            let costs = costs(nodes, 2e-6, 3e-6);
            let plan = layers(dimension).plan(&costs, 100_000_007, true);
            assert_eq!(plan.shares.iter().sum::<u64>(), 100_000_007);
            let (least, most) = plan.predicted.finish.iter().fold((f64::MAX, 0.0f64), |(a, b), at| (a.min(*at), b.max(*at)));
            assert!((most - least) / most < 1e-3, "{dimension}: {least} {most}");
            let (_, ranges) = layers(dimension).with_cuts(&plan, &costs, &cut(&plan));
            let routes = layers(dimension).routes(&ranges);
            let mut by_layer: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
            routes.links.iter().for_each(|((from, _), ranges)| by_layer.entry(Layers::layer(*from)).or_default().push(length(ranges)));
            for (layer, lengths) in by_layer {
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                // Bytes are whole: parts of parts are off by one each.
                assert!(most - least < 1000, "{dimension}, layer {layer}: {least} {most}");
            }
        }
    }

    #[test]
    fn every_byte_reaches_its_owner_through_nodes_that_have_it() {
        let dimension = 4;
        let ranges: Vec<Range> =
            (0..16u64).map(|node| Range { start: node * 101, end: node * 101 + if node == 5 { 0 } else { 101 } }).collect();
        let routes = layers(dimension).routes(&ranges);
        let bytes = |ranges: &[Range]| ranges.iter().flat_map(|range| range.start..range.end).collect::<Vec<u64>>();
        for node in 1..16 {
            let mut got: Vec<u64> = routes.links_to(node).flat_map(|(_, ranges)| bytes(ranges)).collect();
            got.sort_unstable();
            let mut needed: Vec<u64> = bytes(&[ranges[node as usize]]);
            needed.extend(routes.links_from(node).flat_map(|(_, ranges)| bytes(ranges)));
            needed.sort_unstable();
            // Nothing comes twice, and nothing comes that is neither kept nor sent on.
            assert_eq!(got, needed, "node {node}");
        }
        assert_eq!(routes.links_from(15).count(), 0);
    }

    #[test]
    fn what_has_no_layers_is_refused() {
        let of = |spec: &str, ranks| Layers::of(&Topology::parse(spec, ranks).unwrap(), ranks);
        assert_eq!(of("hypercube", 8), Ok(layers(3)));
        assert_eq!(of("hypercube", 1), Ok(layers(0)));
        assert_eq!(of("hypercube", 6).unwrap_err(), "it needs a power of two of ranks, one for each node of the hypercube; there are 6");
        assert_eq!(of("mesh", 6).unwrap_err(), "it needs a hypercube, not mesh:3x2");
        assert!(of("hypercube", 2048).unwrap_err().contains("dimension 10"));
    }
}
