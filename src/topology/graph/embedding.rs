//! A graph in a hyper-grid: the first phase of Savvas and Kechadi 2004, section 3.
//!
//! The grid has dimension ceil(log2 n), as equation 15 has it, and sides of two. The nodes are bisected, one dimension after the other
//! from the highest: a half is what lies nearer to one of two nodes that are far from each other, where a link is as long as the reciprocal of its bandwidth. Which half comes first is turned so that
//! it faces the first half of the part next to it. Places without a node are *virtual nodes*, without power and without load; links of the
//! grid that the graph does not have are *virtual links*. Nothing takes part in the phase for a virtual node, and tasks go straight to their
//! destination over the graph's own links.

use super::{FASTEST, Graph};
use crate::topology::NodeId;

/// Places of the nodes of a graph in a hyper-grid with sides of two.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    dimension: u32,
    /// The nodes in the order of their places.
    order: Vec<NodeId>,
    /// Their places, in ascending order: bit k is the coordinate in dimension k.
    places: Vec<u32>,
    /// Index of each node in `order`.
    index: Vec<u32>,
    virtual_links: u64,
    longest: f64,
    mean: f64,
}

impl Embedding {
    pub(super) fn of(graph: &Graph) -> Embedding {
        let nodes = graph.nodes();
        let dimension = nodes.next_power_of_two().ilog2();
        let mut parts: Vec<Vec<NodeId>> = vec![(0..nodes).collect()];
        for _ in 0..dimension {
            let mut poles: Vec<Option<(NodeId, NodeId)>> = Vec::with_capacity(parts.len());
            let mut halves = Vec::with_capacity(2 * parts.len());
            for (number, part) in parts.into_iter().enumerate() {
                // The part that differs in the lowest dimension that is set has been bisected already.
                let beside = number.checked_sub(1).and_then(|less| poles[number & less]);
                let (near, far, pole) = bisected(graph, part, beside);
                poles.push(pole);
                halves.push(near);
                halves.push(far);
            }
            parts = halves;
        }
        let placed: Vec<(u32, NodeId)> =
            (0..).zip(parts).filter_map(|(place, part): (u32, Vec<NodeId>)| Some((place, *part.first()?))).collect();
        let mut index = vec![0; nodes as usize];
        (0..).zip(&placed).for_each(|(at, (_, node)): (u32, _)| index[*node as usize] = at);
        let (places, order): (Vec<u32>, Vec<NodeId>) = placed.into_iter().unzip();

        // The grid's links between nodes, and how many links of the graph each stands for.
        let (mut links, mut sum, mut longest, mut virtual_links) = (0u64, 0u64, 0, 0);
        let in_fastest = |cost: f64| cost / f64::from(FASTEST);
        for (at, place) in places.iter().enumerate() {
            for other in (0..dimension).map(|k| place | 1 << k).filter(|other| other != place) {
                let Ok(other) = places.binary_search(&other) else { continue };
                let cost = graph.cost(order[at], order[other]);
                links += 1;
                sum += cost;
                longest = longest.max(cost);
                virtual_links += u64::from(graph.distance(order[at], order[other]) > 1);
            }
        }
        let mean = if links == 0 { 0.0 } else { in_fastest(sum as f64) / links as f64 };
        Embedding { dimension, order, places, index, virtual_links, longest: in_fastest(longest as f64), mean }
    }

    /// Dimension of the grid, all of whose sides are two.
    pub fn dimension(&self) -> u32 {
        self.dimension
    }

    /// The nodes in the order of their places.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// A node's index in this order.
    pub fn index_of(&self, node: NodeId) -> u32 {
        self.index[node as usize]
    }

    /// The place of the node with this index: bit k is its coordinate in dimension k.
    pub fn place(&self, index: u32) -> u32 {
        self.places[index as usize]
    }

    /// Around the node with this index, what is left of the grid when all dimensions above k are fixed, in two halves along k: the index
    /// where the first half begins, where the second one begins, and where it ends. Either may be empty.
    pub fn halves(&self, index: u32, k: u32) -> [u32; 3] {
        let corner = self.place(index) >> k >> 1 << k << 1;
        let before = |place: u64| self.places.partition_point(|other| u64::from(*other) < place) as u32;
        let corner = u64::from(corner);
        [before(corner), before(corner + (1 << k)), before(corner + (2 << k))]
    }

    /// Places of the grid that no node has.
    pub fn virtual_nodes(&self) -> u64 {
        (1u64 << self.dimension) - self.order.len() as u64
    }

    /// Links of the grid, between nodes, that the graph does not have, or that are slower there than a way around.
    pub fn virtual_links(&self) -> u64 {
        self.virtual_links
    }

    /// The dilation: how much longer than over the graph's fastest link a byte takes over a link of the grid, at most and on average. Where
    /// all links have the same bandwidth it is the number of links that one of the grid stands for.
    pub fn dilation(&self) -> (f64, f64) {
        (self.longest, self.mean)
    }
}

/// Two halves of a part, the first as large as the second or larger by one; and the nodes that they lie around.
fn bisected(
    graph: &Graph,
    mut part: Vec<NodeId>,
    beside: Option<(NodeId, NodeId)>,
) -> (Vec<NodeId>, Vec<NodeId>, Option<(NodeId, NodeId)>) {
    let Some(&any) = part.first() else { return (Vec::new(), Vec::new(), None) };
    let farthest = |from: NodeId| part.iter().copied().max_by_key(|node| (graph.cost(from, *node), std::cmp::Reverse(*node)));
    let one = farthest(any).unwrap_or(any);
    let other = farthest(one).unwrap_or(one);
    let turned =
        beside.is_some_and(|(near, far)| graph.cost(one, near) + graph.cost(other, far) > graph.cost(other, near) + graph.cost(one, far));
    let (near, far) = if turned { (other, one) } else { (one, other) };
    part.sort_by_key(|node| (i128::from(graph.cost(near, *node)) - i128::from(graph.cost(far, *node)), *node));
    let second = part.split_off(part.len().div_ceil(2));
    (part, second, Some((near, far)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_a_ring_and_a_cube_lie_well() {
        let line = Graph::read("line", "0 1\n1 2\n2 3\n3 4\n4 5").unwrap();
        let embedding = line.embedding();
        assert_eq!((embedding.dimension(), embedding.virtual_nodes()), (3, 2));
        assert_eq!(embedding.halves(0, 2), [0, 3, 6]);
        let square = Graph::read("ring", "0 1\n1 2\n2 3\n3 0").unwrap();
        assert!(square.embedding().dilation().0 <= 2.0);
        let one = Graph::read("one", "0").unwrap();
        assert_eq!((one.embedding().dimension(), one.embedding().dilation()), (0, (0.0, 0.0)));
    }

    #[test]
    fn slow_links_part_what_they_join() {
        // A square whose links 0-1 and 2-3 are slow: the halves are 0 with 3, and 1 with 2.
        let square = Graph::read("square", "0 1 0.1\n1 2 1\n2 3 0.1\n3 0 1").unwrap();
        let embedding = square.embedding();
        let halves = embedding.halves(0, 1);
        let mut first = embedding.order()[halves[0] as usize..halves[1] as usize].to_vec();
        first.sort_unstable();
        assert!(first == [0, 3] || first == [1, 2], "{first:?}");
        // Two links of the grid are fast, two take ten times as long.
        assert_eq!((embedding.dilation(), embedding.virtual_links()), ((10.0, 5.5), 0));
    }

    proptest! {
        #[test]
        fn every_node_has_a_place_of_its_own(parents in prop::collection::vec(any::<u32>(), 0..60), more in prop::collection::vec((0u32..60, 0u32..60), 0..40)) {
            let nodes = parents.len() as u32 + 1;
            let mut links: Vec<(u32, u32)> = (1..nodes).zip(&parents).map(|(node, parent)| (parent % node, node)).collect();
            links.extend(more.into_iter().map(|(a, b)| (a % nodes, b % nodes)).filter(|(a, b)| a < b));
            links.sort_unstable();
            links.dedup();
            let text: Vec<String> = links.iter().map(|(a, b)| format!("{a} {b}")).collect();
            let text = if nodes == 1 { "0".into() } else { text.join("\n") };
            let graph = Graph::read("random", &text).unwrap();
            let embedding = graph.embedding();
            prop_assert!(embedding.places.is_sorted_by(|a, b| a < b));
            prop_assert!(embedding.places.iter().all(|place| u64::from(*place) < 1 << embedding.dimension()));
            for (index, &node) in (0..).zip(embedding.order()) {
                prop_assert_eq!(embedding.index_of(node), index);
                for k in 0..embedding.dimension() {
                    let [first, middle, end] = embedding.halves(index, k);
                    prop_assert!(first <= index && index < end && first <= middle && middle <= end);
                    let same = |other: u32| embedding.place(other) >> k == embedding.place(index) >> k;
                    let half = if index < middle { first..middle } else { middle..end };
                    prop_assert!((0..nodes).all(|other| same(other) == half.contains(&other)));
                    // Bisection leaves the same number on both sides, give or take one.
                    prop_assert!((middle - first) - (end - middle) <= 1);
                }
            }
            prop_assert!(embedding.dilation().0 <= f64::from(graph.diameter()));
        }
    }
}
