//! The tree that shares go down: the routes of the topology from node 0, virtual nodes left out.
//!
//! On a hypercube a node's parent lacks its lowest bit, so that all but the first hops stay among near numbers, which lie on one host:
//!
//! ```text
//!   0 --> 1     layer = number of hops from node 0
//!   0 --> 2 --> 3
//!   0 --> 4 --> 5
//!         4 --> 6 --> 7
//! ```

use equipoise::topology::{NodeId, Topology};

/// A tree over the real nodes `0..len()`, rooted at node 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadTree {
    parent: Vec<NodeId>,
    children: Vec<Vec<NodeId>>,
    layer: Vec<u32>,
}

impl SpreadTree {
    /// The tree of the routes of a topology from node 0 to the nodes below `real`.
    pub fn of(topology: &Topology, real: u32) -> SpreadTree {
        let parent: Vec<NodeId> = (0..real)
            .map(|node| {
                // The last real node before it.
                topology.route(0, node).filter(|&at| at < real && at != node).last().unwrap_or(0)
            })
            .collect();
        SpreadTree::from_parents(parent)
    }

    /// All nodes but 0 are children of 0.
    pub fn star(real: u32) -> SpreadTree {
        SpreadTree::from_parents(vec![0; real as usize])
    }

    fn from_parents(parent: Vec<NodeId>) -> SpreadTree {
        let mut children = vec![Vec::new(); parent.len()];
        for (node, &above) in parent.iter().enumerate().skip(1) {
            children[above as usize].push(node as NodeId);
        }
        let mut tree = SpreadTree { layer: vec![0; parent.len()], parent, children };
        let mut next = vec![0];
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

    /// The node above; node 0 is its own.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parent[node as usize]
    }

    pub fn children(&self, node: NodeId) -> &[NodeId] {
        &self.children[node as usize]
    }

    /// Hops from node 0 along the tree.
    pub fn layer(&self, node: NodeId) -> u32 {
        self.layer[node as usize]
    }

    /// The nodes from a node up to, not including, node 0: each stands for the link from its parent.
    pub fn way_up(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors((node != 0).then_some(node), |&at| Some(self.parent(at)).filter(|&above| above != 0))
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
        SpreadTree::of(&Topology::parse(spec, ranks).unwrap(), ranks)
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
                let tree = SpreadTree::of(&Topology::parse(spec, ranks).unwrap(), ranks);
                assert_eq!(tree.below(0).count() as u32, ranks - 1);
                for node in 1..ranks {
                    assert!(tree.layer(node) > 0, "{spec} on {ranks}: node {node}");
                    assert!(tree.below(node).all(|below| tree.towards(node, below).is_some()));
                    assert_eq!(tree.way_up(node).count() as u32, tree.layer(node));
                }
            }
        }
        assert_eq!(tree("line", 4), SpreadTree::from_parents(vec![0, 0, 1, 2]));
        assert_eq!(tree("complete", 4), SpreadTree::star(4));
    }
}
