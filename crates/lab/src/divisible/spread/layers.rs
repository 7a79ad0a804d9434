//! The distribution of Blazewicz and Drozdowski 1995: layer by layer away from the originator, over all links.
//!
//! Layer i is what lies i hops away from the originator. All nodes of a layer get equal shares: on a hypercube by the paper's equations, on a mesh by the
//! same idea. The bytes of a share go over all shortest routes: every node sends an equal part of what it has for an owner through each of its links that
//! lead nearer to it. On a hypercube every link between two layers so carries the same. Which bytes go where is computed here, and alike on all nodes,
//! so that messages need not say it.
//!
//! ```text
//!   owner 6 = 110    0 --a..b--> 2 --\                      from 0 to 2 and 4: half of 6's share each, with their own shares
//!                    0 --b..c--> 4 ---+--> 6 = a..c         and their halves of 3's and 5's
//! ```
//!
//! On a mesh links between two layers carry unequal loads, because nodes at its border have fewer of them, and the layer waits for the fullest. With
//! `alpha_i` the share of a node of layer i, `w` its time for all of the load, `z` that of a link, and `load_i` the part of it that the fullest link from
//! layer i to the next carries, all layers finish together if
//!
//! ```text
//!   w alpha_i = z load_i + w alpha_(i+1)      from the last layer to the first; load_i follows from the shares beyond layer i
//! ```
//!
//! which on a hypercube are equations 2 and 3. Nodes that their share reaches before the layer's last finish earlier.

use std::collections::{BTreeMap, BTreeSet};

use super::calibrate::{LinkCosts, SpreadCosts};
use super::kernel::Range;
use super::plan::{Prediction, SpreadPlan, TimeInterval, whole};
use crate::divisible::model::hypercube;
use equipoise::topology::{NodeId, Topology};

/// The largest dimension of a hypercube: a link to the last layers then carries some thousand ranges.
pub const MOST_DIMENSIONS: u32 = 10;
const MOST_NODES: u32 = 1 << MOST_DIMENSIONS;

/// The networks that have a layered form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayeredForm {
    Hypercube,
    Mesh,
}

impl LayeredForm {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LayeredForm::Hypercube => "hypercube",
            LayeredForm::Mesh => "mesh",
        }
    }

    /// The topology of this form for a number of ranks, where none is asked for: the hypercube, or the squarest mesh that has a node for each rank and
    /// no others.
    pub fn topology(self, ranks: u32) -> String {
        match self {
            LayeredForm::Hypercube => "hypercube".into(),
            LayeredForm::Mesh => {
                let columns = (1..=ranks.isqrt()).rev().find(|columns| ranks.is_multiple_of(*columns)).unwrap_or(1);
                format!("mesh:{}x{columns}", ranks / columns)
            }
        }
    }
}

/// A network, every node of which is a rank, in layers around the originator.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    topology: Topology,
    origin: NodeId,
    /// The layer of each node.
    layer: Vec<u32>,
}

/// Load of every link: ranges of the input in ascending order, by sender and receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    links: BTreeMap<(NodeId, NodeId), Vec<Range>>,
    /// Senders to each node.
    senders: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

impl Layers {
    /// The layers of a topology on this number of ranks around a node, or the reason why there are none, as a clause.
    ///
    /// # Errors
    /// If the topology does not have this form, has virtual nodes, or is too large.
    pub fn of(form: LayeredForm, topology: &Topology, ranks: u32, origin: NodeId) -> Result<Layers, String> {
        match (form, topology) {
            (LayeredForm::Hypercube, Topology::Hypercube(cube)) => {
                let nodes = cube.nodes();
                if !ranks.is_power_of_two() {
                    return Err(format!("it needs a power of two of ranks, one for each node of the hypercube; there are {ranks}"));
                }
                if nodes != ranks {
                    return Err(format!("{topology} has {nodes} nodes, and there are {ranks} ranks; it needs a rank for each"));
                }
                if cube.dimension() > MOST_DIMENSIONS {
                    return Err(format!("it goes up to dimension {MOST_DIMENSIONS}; the hypercube has {}", cube.dimension()));
                }
            }
            (LayeredForm::Mesh, Topology::Mesh(mesh)) if !mesh.wraps() => {
                if mesh.nodes() != ranks {
                    let name = topology.name();
                    return Err(format!("it needs a rank for each of the {} nodes of {name}; there are {ranks}", mesh.nodes()));
                }
                if ranks > MOST_NODES {
                    return Err(format!("it goes up to {MOST_NODES} ranks; there are {ranks}"));
                }
            }
            _ => return Err(format!("it needs a {}, not {}", form.name(), topology.name())),
        }
        Ok(Layers::around(topology.clone(), origin))
    }

    fn around(topology: Topology, origin: NodeId) -> Layers {
        let layer = (0..topology.nodes()).map(|node| topology.distance(origin, node)).collect();
        Layers { topology, origin, layer }
    }

    /// The number of the last layer.
    pub fn last(&self) -> u32 {
        self.layer.iter().copied().max().unwrap_or(0)
    }

    /// The form.
    pub fn form(&self) -> LayeredForm {
        if matches!(self.topology, Topology::Hypercube(_)) { LayeredForm::Hypercube } else { LayeredForm::Mesh }
    }

    /// The layer of a node.
    pub fn layer(&self, node: NodeId) -> u32 {
        self.layer[node as usize]
    }

    fn nodes(&self) -> u32 {
        self.layer.len() as u32
    }

    /// The neighbours of a node in the next layer that lie on shortest routes to `owner`, in ascending order.
    fn nearer(&self, node: NodeId, owner: NodeId) -> Vec<NodeId> {
        let nearer = self.topology.distance(node, owner).wrapping_sub(1);
        let mut next = self.topology.neighbours(node);
        next.retain(|next| self.layer(*next) > self.layer(node) && self.topology.distance(*next, owner) == nearer);
        next.sort_unstable();
        next
    }

    /// The nodes beyond the originator, layer by layer: the order of their shares in the input.
    fn order(&self) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = (0..self.nodes()).filter(|node| *node != self.origin).collect();
        order.sort_by_key(|node| (self.layer(*node), *node));
        order
    }

    /// The part of the load that a node of each layer computes, if all nodes and all links are as fast as the mean of them.
    /// Links count as nothing, and all nodes get as much, where it is not known how fast the nodes are.
    pub fn shares(&self, costs: &SpreadCosts, bytes: u64, predicts: bool) -> Vec<f64> {
        let (w, z) = self.means(costs);
        let (w, z) = if predicts && w > 0.0 { (w, z) } else { (1.0, 0.0) };
        match &self.topology {
            Topology::Hypercube(cube) => hypercube::shares(cube.dimension(), &w, &z, &(bytes.max(1) as f64), &(bytes.max(1) as f64)).alpha,
            _ => self.shares_of_any(w, z),
        }
    }

    /// The shares of layers on any network: see the module's text.
    fn shares_of_any(&self, w: f64, z: f64) -> Vec<f64> {
        let last = self.last() as usize;
        // By layer of the sender, by link: the number of shares of each layer that it carries.
        let mut loads: Vec<BTreeMap<(NodeId, NodeId), Vec<f64>>> = vec![BTreeMap::new(); last];
        for owner in self.order() {
            self.routed(
                owner,
                1.0,
                |whole, count| vec![whole / count as f64; count],
                |part, more| *part += more,
                |from, to, part| {
                    let carried = loads[self.layer(from) as usize].entry((from, to)).or_insert_with(|| vec![0.0; last + 1]);
                    carried[self.layer(owner) as usize] += part;
                },
            );
        }
        let mut alpha = vec![1.0; last + 1];
        for layer in (0..last).rev() {
            let load = |carried: &Vec<f64>| (layer + 1..=last).map(|beyond| carried[beyond] * alpha[beyond]).sum::<f64>();
            alpha[layer] = alpha[layer + 1] + z / w * loads[layer].values().map(load).fold(0.0, f64::max);
        }
        let all: f64 = self.layer.iter().map(|layer| alpha[*layer as usize]).sum();
        alpha.iter().map(|share| share / all).collect()
    }

    /// Sends something over all shortest routes to its owner: `split` parts what a node has among its links, `join` adds what comes to a node through
    /// several, `link` sees what goes through each.
    fn routed<T: Clone>(
        &self,
        owner: NodeId,
        whole: T,
        split: impl Fn(T, usize) -> Vec<T>,
        join: impl Fn(&mut T, T),
        mut link: impl FnMut(NodeId, NodeId, &T),
    ) {
        // By layer, so that a node has all that it is to get before it sends.
        let mut held: BTreeMap<(u32, NodeId), T> = BTreeMap::from([((0, self.origin), whole)]);
        while let Some(((_, node), here)) = held.pop_first() {
            if node == owner {
                break;
            }
            let next = self.nearer(node, owner);
            for (next, part) in next.iter().zip(split(here, next.len())) {
                link(node, *next, &part);
                match held.entry((self.layer(*next), *next)) {
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert(part);
                    }
                    std::collections::btree_map::Entry::Occupied(mut entry) => join(entry.get_mut(), part),
                }
            }
        }
    }

    /// Seconds per byte of the mean node and of the mean link.
    fn means(&self, costs: &SpreadCosts) -> (f64, f64) {
        let mean = |numbers: &mut dyn Iterator<Item = f64>, count: usize| numbers.sum::<f64>() / count.max(1) as f64;
        let links: Vec<f64> = (0..).zip(&costs.links).filter(|(node, _)| *node != self.origin).map(|(_, link)| link.per_byte).collect();
        (mean(&mut costs.compute.iter().copied(), costs.compute.len()), mean(&mut links.iter().copied(), links.len()))
    }

    /// Plans the division of an input of `bytes` bytes.
    pub fn plan(&self, costs: &SpreadCosts, bytes: u64, predicts: bool) -> SpreadPlan {
        let alpha = self.shares(costs, bytes, predicts);
        let weights: Vec<f64> = (0..self.nodes()).map(|node| alpha[self.layer(node) as usize]).collect();
        self.of_shares(costs, whole(&weights, bytes, self.origin))
    }

    /// A plan of given shares.
    fn of_shares(&self, costs: &SpreadCosts, shares: Vec<u64>) -> SpreadPlan {
        let mut plan = SpreadPlan { origin: self.origin, order: self.order(), installments: 1, shares, predicted: Prediction::default() };
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
    pub fn with_cuts(&self, plan: &SpreadPlan, costs: &SpreadCosts, cuts: &[Range]) -> (SpreadPlan, Vec<Range>) {
        let mut ranges = vec![Range::default(); plan.shares.len()];
        plan.input_order().zip(cuts).for_each(|(node, range)| ranges[node as usize] = *range);
        (self.of_shares(costs, ranges.iter().map(Range::len).collect()), ranges)
    }

    /// Predicts when every node would be done with these ranges: it computes and sends on when all that it is to get has come.
    pub fn predict(&self, costs: &SpreadCosts, ranges: &[Range]) -> Prediction {
        let nodes = ranges.len();
        let routes = self.routes(ranges);
        let mut predicted = Prediction { finish: vec![0.0; nodes], sending: vec![Vec::new(); nodes], computing: vec![Vec::new(); nodes] };
        let mut arrival = vec![0.0f64; nodes];
        let leaving = routes.links_from(self.origin).count() as f64;
        for node in std::iter::once(self.origin).chain(self.order()) {
            let me = node as usize;
            for (from, carried) in routes.links_to(node) {
                let LinkCosts { startup, per_byte } = costs.links[me];
                // The originator reads what goes out through all of its links at once.
                let reading = if from == self.origin { costs.links[from as usize].per_byte * leaving } else { 0.0 };
                let begin = arrival[from as usize];
                let end = begin + startup + length(carried) as f64 * per_byte.max(reading);
                predicted.sending[me].push(TimeInterval { begin, end });
                arrival[me] = arrival[me].max(end);
            }
            let share = ranges[me].len();
            if share > 0 {
                let reading = if node == self.origin { costs.links[me].per_byte } else { 0.0 };
                let end = arrival[me] + costs.start[me] + share as f64 * (costs.compute[me] + reading);
                predicted.computing[me].push(TimeInterval { begin: arrival[me], end });
                predicted.finish[me] = end;
            }
        }
        predicted
    }

    /// Load of every link, if node i is to get `ranges[i]`.
    pub fn routes(&self, ranges: &[Range]) -> Routes {
        let mut routes = Routes::default();
        for (owner, range) in (0..).zip(ranges).filter(|(owner, range)| *owner != self.origin && !range.is_empty()) {
            let split = |mut here: Vec<Range>, count| {
                here.sort_unstable();
                parts(&here, count)
            };
            self.routed(owner, vec![*range], split, Vec::extend, |from, to, part| {
                routes.links.entry((from, to)).or_default().extend(part);
                routes.senders.entry(to).or_default().insert(from);
            });
        }
        routes.links.values_mut().for_each(merge);
        routes
    }
}

impl Routes {
    /// The links from a node, and their loads.
    pub fn links_from(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &[Range])> {
        self.links.range((node, 0)..=(node, NodeId::MAX)).map(|((_, to), ranges)| (*to, ranges.as_slice()))
    }

    /// The links to a node, and their loads.
    pub fn links_to(&self, node: NodeId) -> impl Iterator<Item = (NodeId, &[Range])> {
        let senders = self.senders.get(&node).into_iter().flatten();
        senders.filter_map(move |from| Some((*from, self.links.get(&(*from, node))?.as_slice())))
    }

    /// Bytes that a node receives, including those that it forwards.
    pub fn volume(&self, node: NodeId) -> u64 {
        self.links_to(node).map(|(_, ranges)| length(ranges)).sum()
    }
}

/// Bytes of some ranges.
pub fn length(ranges: &[Range]) -> u64 {
    ranges.iter().map(Range::len).sum()
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
        around(&format!("hypercube:{dimension}"), 0)
    }

    fn around(spec: &str, origin: NodeId) -> Layers {
        Layers::around(Topology::parse(spec, 1).unwrap(), origin)
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
            routes
                .links
                .iter()
                .for_each(|((from, _), ranges)| by_layer.entry(layers(dimension).layer(*from)).or_default().push(length(ranges)));
            for (layer, lengths) in by_layer {
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                // Bytes are whole: parts of parts are off by one each.
                assert!(most - least < 1000, "{dimension}, layer {layer}: {least} {most}");
            }
        }
    }

    #[test]
    fn every_byte_reaches_its_owner_through_nodes_that_have_it() {
        for (spec, origin) in [("hypercube:4", 0), ("hypercube:4", 11), ("mesh:4x4", 0), ("mesh:4x4", 6), ("mesh:5x3", 7), ("mesh:7", 2)] {
            let layers = around(spec, origin);
            let nodes = u64::from(layers.nodes());
            let ranges: Vec<Range> =
                (0..nodes).map(|node| Range { start: node * 101, end: node * 101 + if node == 5 { 0 } else { 101 } }).collect();
            let routes = layers.routes(&ranges);
            let bytes = |ranges: &[Range]| ranges.iter().flat_map(|range| range.start..range.end).collect::<Vec<u64>>();
            for node in layers.order() {
                let mut got: Vec<u64> = routes.links_to(node).flat_map(|(_, ranges)| bytes(ranges)).collect();
                got.sort_unstable();
                let mut needed: Vec<u64> = bytes(&[ranges[node as usize]]);
                needed.extend(routes.links_from(node).flat_map(|(_, ranges)| bytes(ranges)));
                needed.sort_unstable();
                // Nothing comes twice, and nothing comes that is neither kept nor sent on.
                assert_eq!(got, needed, "{spec} from {origin}: node {node}");
                assert!(routes.links_from(node).all(|(to, _)| layers.layer(to) == layers.layer(node) + 1));
            }
            assert_eq!(routes.links_to(origin).count(), 0);
        }
    }

    #[test]
    fn the_rule_for_any_network_is_the_papers_on_hypercubes_wherever_the_load_lies() {
        for (dimension, origin) in [(1, 1), (2, 0), (3, 5), (4, 9), (6, 0)] {
            for (w, z) in [(1.0, 1.0), (2e-6, 3e-6), (1.0, 0.0), (0.1, 10.0)] {
                let ours = around(&format!("hypercube:{dimension}"), origin).shares_of_any(w, z);
                let papers = hypercube::shares(dimension, &w, &z, &1.0, &1.0).alpha;
                assert!(ours.iter().zip(&papers).all(|(ours, papers)| (ours / papers - 1.0).abs() < 1e-9), "{ours:?} {papers:?}");
            }
        }
    }

    #[test]
    fn a_mesh_by_hand() {
        // Two by two is a hypercube of dimension 2; a line hands on all that lies behind: from the end a_1 = 1, a_0 = 1 + z/w.
        let near = |ours: Vec<f64>, theirs: &[f64]| ours.iter().zip(theirs).all(|(ours, theirs)| (ours - theirs).abs() < 1e-12);
        assert!(near(around("mesh:2x2", 0).shares_of_any(1.0, 1.0), &[7.0 / 15.0, 3.0 / 15.0, 2.0 / 15.0]));
        assert!(near(around("mesh:3", 0).shares_of_any(1.0, 1.0), &[5.0 / 8.0, 2.0 / 8.0, 1.0 / 8.0]));
        // From the middle both neighbours get as much.
        assert!(near(around("mesh:3", 1).shares_of_any(1.0, 1.0), &[0.5, 0.25]));
        // 3 x 2 from the corner: layers of 1, 2, 2 and 1 nodes, numbered 0; 1 2; 3 4; 5. Node 2 keeps a_1 and gets for 3, 4 and 5:
        // a_3 = 1, a_2 = 1 + 1/2, and of the links out of layer 1 the one from 2 to 4 carries most: a_2 + 1/4 .. 1/2.
        let shares = around("mesh:3x2", 0).shares_of_any(1.0, 1.0);
        let costs = costs(6, 1e-6, 1e-6);
        let plan = around("mesh:3x2", 0).plan(&costs, 60_000_000, true);
        let most = plan.predicted.finish.iter().fold(0.0f64, |most, at| most.max(*at));
        // The layers' last nodes finish together, none later, and all before the originator would alone.
        assert!((most - 60.0 * shares[0]).abs() < 1e-3 && most < 60.0 / 2.0, "{most} {shares:?}");
        assert!(plan.predicted.finish.iter().all(|finish| finish / most > 0.8), "{:?}", plan.predicted.finish);
    }

    #[test]
    fn what_has_no_layers_is_refused() {
        let of = |form, spec: &str, ranks| Layers::of(form, &Topology::parse(spec, ranks).unwrap(), ranks, 0);
        let cube = |spec, ranks| of(LayeredForm::Hypercube, spec, ranks);
        assert_eq!(cube("hypercube", 8), Ok(layers(3)));
        assert_eq!(cube("hypercube", 1), Ok(layers(0)));
        assert_eq!(cube("hypercube:3", 4).unwrap_err(), "hypercube:3 has 8 nodes, and there are 4 ranks; it needs a rank for each");
        assert_eq!(cube("hypercube", 6).unwrap_err(), "it needs a power of two of ranks, one for each node of the hypercube; there are 6");
        assert_eq!(cube("mesh", 6).unwrap_err(), "it needs a hypercube, not mesh:3x2");
        assert!(cube("hypercube", 2048).unwrap_err().contains("dimension 10"));
        let mesh = |spec, ranks| of(LayeredForm::Mesh, spec, ranks);
        assert_eq!(mesh("mesh:3x2", 6).map(|layers| layers.last()), Ok(3));
        assert_eq!(mesh("mesh", 5).unwrap_err(), "it needs a rank for each of the 6 nodes of mesh:3x2; there are 5");
        for (ranks, spec) in [(1, "mesh:1x1"), (2, "mesh:2x1"), (5, "mesh:5x1"), (8, "mesh:4x2"), (12, "mesh:4x3"), (16, "mesh:4x4")] {
            assert_eq!(LayeredForm::Mesh.topology(ranks), spec);
            assert!(mesh(spec, ranks).is_ok());
        }
        assert_eq!(mesh("torus", 6).unwrap_err(), "it needs a mesh, not torus:3x2");
        assert!(mesh("mesh:41x25", 1025).unwrap_err().contains("1024 ranks"));
    }
}
