//! The tree that shares go down: the routes of the topology from the originator, virtual nodes left out.
//!
//! On a hypercube a node's parent lacks its lowest bit, so that all but the first hops stay among near numbers, which lie on one host:
//!
//! ```text
//!   0 --> 1     layer = number of hops from the originator, node 0 here
//!   0 --> 2 --> 3
//!   0 --> 4 --> 5
//!         4 --> 6 --> 7
//! ```

use equipoise::topology::{NodeId, Topology};

/// A tree over the real nodes `0..len()`, rooted at the originator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadTree {
    root: NodeId,
    parent: Vec<NodeId>,
    children: Vec<Vec<NodeId>>,
    layer: Vec<u32>,
}

impl SpreadTree {
    /// The tree of the routes of a topology from `root` to the nodes below `real`, of which `root` is one.
    pub fn of(topology: &Topology, real: u32, root: NodeId) -> SpreadTree {
        let parent: Vec<NodeId> = (0..real)
            .map(|node| {
                // The last real node before it.
                topology.route(root, node).filter(|&at| at < real && at != node).last().unwrap_or(root)
            })
            .collect();
        SpreadTree::from_parents(parent, root)
    }

    /// All nodes but 0 are children of 0.
    #[cfg(test)]
    pub fn star(real: u32) -> SpreadTree {
        SpreadTree::from_parents(vec![0; real as usize], 0)
    }

    fn from_parents(parent: Vec<NodeId>, root: NodeId) -> SpreadTree {
        let mut children = vec![Vec::new(); parent.len()];
        for (node, &above) in (0..).zip(&parent).filter(|(node, _)| *node != root) {
            children[above as usize].push(node);
        }
        let mut tree = SpreadTree { root, layer: vec![0; parent.len()], parent, children };
        let mut next = vec![root];
        while let Some(node) = next.pop() {
            for child in tree.children[node as usize].clone() {
                tree.layer[child as usize] = tree.layer[node as usize] + 1;
                next.push(child);
            }
        }
        tree
    }

    pub fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// The originator.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// All nodes but the originator, in ascending order.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let root = self.root;
        (0..self.len()).filter(move |node| *node != root)
    }

    /// The node above; the originator is its own.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parent[node as usize]
    }

    pub fn children(&self, node: NodeId) -> &[NodeId] {
        &self.children[node as usize]
    }

    /// Hops from the originator along the tree.
    pub fn layer(&self, node: NodeId) -> u32 {
        self.layer[node as usize]
    }

    /// The nodes from a node up to, not including, the originator: each stands for the link from its parent.
    pub fn way_up(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors((node != self.root).then_some(node), |&at| Some(self.parent(at)).filter(|&above| above != self.root))
    }

    /// All nodes below a node.
    pub fn below(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut waiting = self.children(node).to_vec();
        std::iter::from_fn(move || {
            let next = waiting.pop()?;
            waiting.extend_from_slice(self.children(next));
            Some(next)
        })
    }

    /// The child of `from` through which `to`, a node below it, is reached; `None` if it is not below.
    pub fn towards(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        self.way_up(to).find(|&at| self.parent(at) == from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(spec: &str, ranks: u32) -> SpreadTree {
        SpreadTree::of(&Topology::parse(spec, ranks).unwrap(), ranks, 0)
    }

    #[test]
    fn a_hypercube_loses_its_lowest_bit() {
        let cube = tree("hypercube:3", 8);
        assert_eq!((1..8).map(|node| cube.parent(node)).collect::<Vec<_>>(), [0, 0, 2, 0, 4, 4, 6]);
        assert_eq!((0..8).map(|node| cube.layer(node)).collect::<Vec<_>>(), [0, 1, 1, 2, 1, 2, 2, 3]);
        assert_eq!((cube.towards(0, 7), cube.towards(4, 7), cube.towards(6, 7), cube.towards(1, 7)), (Some(4), Some(6), Some(7), None));
    }

    #[test]
    fn every_real_node_is_reached_on_every_topology_and_any_number_of_ranks() {
        for spec in ["hypercube", "mesh", "torus", "tree:binary", "grid", "line", "ring", "complete"] {
            for ranks in 1..20 {
                let topology = Topology::parse(spec, ranks).unwrap();
                for root in [0, ranks / 2, ranks - 1] {
                    let tree = SpreadTree::of(&topology, ranks, root);
                    assert_eq!((tree.root(), tree.parent(root), tree.layer(root)), (root, root, 0));
                    assert_eq!((tree.below(root).count() as u32, tree.others().count() as u32), (ranks - 1, ranks - 1));
                    for node in tree.others() {
                        assert!(tree.layer(node) > 0, "{spec} on {ranks} from {root}: node {node}");
                        assert!(tree.below(node).all(|below| tree.towards(node, below).is_some()));
                        assert_eq!(tree.way_up(node).count() as u32, tree.layer(node));
                    }
                }
            }
        }
        assert_eq!(tree("line", 4), SpreadTree::from_parents(vec![0, 0, 1, 2], 0));
        assert_eq!(tree("complete", 4), SpreadTree::star(4));
    }
}
