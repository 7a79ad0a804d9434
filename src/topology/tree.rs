//! Rooted trees, numbered in preorder: the root is node 0, every node is followed by all its descendants.
//!
//! Wu 1997 (section 3.1) numbers trees so. The subtree of node v is then the range `v..v + n_v`, with n_v its size.

use super::{HostId, Hosts, InvalidTopology, MAX_NODES, NodeId, RackId, RankId};

/// The root's entry in the list of parents.
const NO_PARENT: NodeId = NodeId::MAX;

/// A rooted tree in preorder; 20 bytes a node.
#[derive(Clone, Debug)]
pub struct Tree {
    parents: Vec<NodeId>,
    /// Children of node v: `children[first_child[v]..first_child[v + 1]]`, in ascending order.
    first_child: Vec<u32>,
    children: Vec<NodeId>,
    sizes: Vec<u32>,
    depths: Vec<u32>,
    diameter: u32,
    /// Set when the tree was built heap-shaped, so that its name stays short.
    arity: Option<u32>,
}

impl Tree {
    /// The tree with the given parents, in preorder: `None` for the root, which comes first.
    ///
    /// # Errors
    /// [`InvalidTopology::NotPreorder`] if they are none or in another order; [`InvalidTopology::TooManyNodes`] beyond the limit.
    pub fn from_parents(parents: &[Option<NodeId>]) -> Result<Self, InvalidTopology> {
        if parents.len() > MAX_NODES as usize {
            return Err(InvalidTopology::TooManyNodes { spec: "tree:parents=..".into() });
        }
        let broken = |reason: String| Err(InvalidTopology::NotPreorder { reason });
        match parents.first() {
            None => return broken("no node is given".into()),
            Some(Some(parent)) => {
                return broken(format!("node 0 has parent {parent}, but it is the root and has none (-)"));
            }
            Some(None) => {}
        }
        let mut checked: Vec<NodeId> = Vec::with_capacity(parents.len());
        checked.push(NO_PARENT);
        for (node, parent) in parents.iter().enumerate().skip(1) {
            let Some(parent) = *parent else {
                return broken(format!("node {node} is a second root"));
            };
            if parent as usize >= node {
                return broken(format!("node {node} has parent {parent}, which does not come before it"));
            }
            // In preorder the parent is the node just before or an ancestor of it. The branches climbed out of here are complete and
            // are not entered again, so that all climbs together are linear.
            let mut branch = node as NodeId - 1;
            while branch != parent {
                branch = checked[branch as usize];
                if branch == NO_PARENT {
                    return broken(format!("node {node} has parent {parent}, whose descendants had ended before node {}", node - 1));
                }
            }
            checked.push(parent);
        }
        Ok(Tree::of(checked, None))
    }

    /// The tree shaped like a heap of `nodes` nodes in which each has up to `arity` children, renumbered in preorder. Both are at
    /// least 1.
    pub(super) fn heap_shaped(nodes: u32, arity: u32) -> Self {
        let (nodes, arity) = (nodes.max(1), arity.max(1));
        let mut parents = Vec::with_capacity(nodes as usize);
        let mut ahead = vec![(0u64, NO_PARENT)];
        while let Some((heap, parent)) = ahead.pop() {
            let node = parents.len() as NodeId;
            parents.push(parent);
            let first = heap * u64::from(arity) + 1;
            let end = (first + u64::from(arity)).min(u64::from(nodes));
            ahead.extend((first..end).rev().map(|child| (child, node)));
        }
        Tree::of(parents, Some(arity))
    }

    /// The tree of a cluster: a binary tree of the ranks of each host, a binary tree of the hosts of each rack, and a binary tree of these. Only one
    /// link for each host but the first joins ranks of different hosts, and only one for each rack but the first joins racks. The nodes of a host are
    /// consecutive, hosts in their order rack by rack, as [`PlacementRule::Hosts`](super::PlacementRule::Hosts) places them.
    pub fn of_hosts(hosts: &Hosts) -> Self {
        let mut ranks_on = vec![0u32; hosts.count() as usize];
        RankId::all(hosts.ranks()).for_each(|rank| ranks_on[hosts.host_of(rank).index()] += 1);
        let on_host = |host: HostId| Tree::heap_shaped(ranks_on[host.index()], 2).parents;
        let in_rack = |rack: RackId| Tree::joined(hosts.hosts_in(rack).into_iter().map(on_host).collect());
        Tree::of(Tree::joined(RackId::all(hosts.racks()).map(in_rack).collect()), None)
    }

    /// The parents of a binary tree of trees, each given by the parents of its nodes: the roots of all but the first get the roots of others as parents.
    fn joined(trees: Vec<Vec<NodeId>>) -> Vec<NodeId> {
        let above = Tree::heap_shaped(trees.len() as u32, 2);
        let mut parents: Vec<NodeId> = Vec::with_capacity(trees.iter().map(Vec::len).sum());
        let mut first: Vec<NodeId> = Vec::with_capacity(trees.len());
        for (tree, parent) in trees.into_iter().zip(&above.parents) {
            let begin = parents.len() as NodeId;
            parents.push(if *parent == NO_PARENT { NO_PARENT } else { first[*parent as usize] });
            parents.extend(tree.iter().skip(1).map(|inner| begin + inner));
            first.push(begin);
        }
        parents
    }

    /// The tree of parents known to be in preorder.
    fn of(parents: Vec<NodeId>, arity: Option<u32>) -> Self {
        let nodes = parents.len();
        let mut sizes = vec![1u32; nodes];
        let mut depths = vec![0u32; nodes];
        let mut first_child = vec![0u32; nodes + 1];
        for node in 1..nodes {
            let parent = parents[node] as usize;
            depths[node] = depths[parent] + 1;
            first_child[parent + 1] += 1;
        }
        for node in 0..nodes {
            first_child[node + 1] += first_child[node];
        }
        let mut children = vec![0; nodes - 1];
        let mut free = first_child.clone();
        for node in 1..nodes {
            let slot = &mut free[parents[node] as usize];
            children[*slot as usize] = node as NodeId;
            *slot += 1;
        }
        // From the leaves up: sizes, heights, and the longest route that turns at each node.
        let mut heights = vec![0u32; nodes];
        let mut diameter = 0;
        for node in (1..nodes).rev() {
            let parent = parents[node] as usize;
            sizes[parent] += sizes[node];
            let height = heights[node] + 1;
            diameter = diameter.max(heights[parent] + height);
            heights[parent] = heights[parent].max(height);
        }
        Tree { parents, first_child, children, sizes, depths, diameter, arity }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.parents.len() as u32
    }

    /// The parent of a node; `None` for the root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        Some(self.parents[node as usize]).filter(|parent| *parent != NO_PARENT)
    }

    /// The parents of all nodes, in preorder.
    pub fn parents(&self) -> impl Iterator<Item = Option<NodeId>> + '_ {
        (0..self.nodes()).map(|node| self.parent(node))
    }

    /// The children of a node, in ascending order.
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        let node = node as usize;
        &self.children[self.first_child[node] as usize..self.first_child[node + 1] as usize]
    }

    /// The number of nodes in a node's subtree, itself included (Wu's n_i); the subtree is the range `node..node + size`.
    pub fn subtree_size(&self, node: NodeId) -> u32 {
        self.sizes[node as usize]
    }

    /// Returns true if `node` is `ancestor` or one of its descendants.
    pub fn in_subtree(&self, ancestor: NodeId, node: NodeId) -> bool {
        node.checked_sub(ancestor).is_some_and(|offset| offset < self.subtree_size(ancestor))
    }

    /// Depth of a node: its distance from the root in hops.
    pub fn depth(&self, node: NodeId) -> u32 {
        self.depths[node as usize]
    }

    /// The depth of the deepest node (Wu's m, the height of the tree), in hops.
    pub fn height(&self) -> u32 {
        self.depths.iter().copied().max().unwrap_or(0)
    }

    /// The number of children per node when the tree was built heap-shaped.
    pub fn arity(&self) -> Option<u32> {
        self.arity
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        self.parent(node).into_iter().chain(self.children(node).iter().copied()).collect()
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        let mut common = a;
        while !self.in_subtree(common, b) {
            common = self.parents[common as usize];
        }
        self.depth(a) + self.depth(b) - 2 * self.depth(common)
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        if from == to {
            return from;
        }
        if !self.in_subtree(from, to) {
            return self.parents[from as usize];
        }
        // The child whose range holds `to` is the last that begins at or before it.
        let children = self.children(from);
        children[children.partition_point(|child| *child <= to) - 1]
    }

    pub(super) fn diameter(&self) -> u32 {
        self.diameter
    }
}

/// Trees are equal when their parents are, however they were given.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.parents == other.parents
    }
}

impl Eq for Tree {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Overlay, PlacementRule, Topology};

    #[test]
    fn a_tree_of_hosts_crosses_between_hosts_once_for_each() {
        for (ranks, hosts, cyclic) in [(16, 4, false), (16, 4, true), (13, 5, true), (7, 7, false), (5, 1, false), (1, 1, false)] {
            let name = |rank: u32| format!("h{}", if cyclic { rank % hosts } else { rank * hosts / ranks });
            for racks in 1..=hosts {
                let hosts = Hosts::from_names(&(0..ranks).map(name).collect::<Vec<_>>());
                // Hosts are dealt to racks in turn.
                let racked = hosts.with_racks(&(0..ranks).map(|host| host % racks).collect::<Vec<_>>());
                assert_tree_of_hosts(&racked, racks);
            }
        }
    }

    fn assert_tree_of_hosts(hosts: &Hosts, racks: u32) {
        let (ranks, tree) = (hosts.ranks(), Tree::of_hosts(hosts));
        let given: Vec<_> = tree.parents().collect();
        assert_eq!(Tree::from_parents(&given).unwrap(), tree, "in preorder");
        let overlay = Overlay::placed(Topology::Tree(tree.clone().into()), hosts.clone(), PlacementRule::Hosts, 1).unwrap();
        let host = |node| hosts.host_of(overlay.placement.rank_of(node));
        let rack = |node| hosts.rack_of(host(node));
        let crossing = |differ: &dyn Fn(NodeId, NodeId) -> bool| {
            (1..ranks).filter(|node| tree.parent(*node).is_some_and(|parent| differ(parent, *node))).count() as u32
        };
        assert_eq!((tree.nodes(), crossing(&|a, b| host(a) != host(b))), (ranks, hosts.count() - 1));
        assert_eq!((hosts.racks(), crossing(&|a, b| rack(a) != rack(b))), (racks, racks - 1));
    }
}
