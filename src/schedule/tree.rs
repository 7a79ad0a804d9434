//! A binomial tree over all nodes, along which counts and reports are summed up and announcements are passed down.
//!
//! ```text
//!   places, 8 nodes:        0
//!                        / | \
//!                       4  2  1
//!                      /|  |
//!                     6 5  3
//!                     |
//!                     7
//! ```

use crate::topology::NodeId;

/// A node's place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub root: NodeId,
    /// `None` at the root.
    pub parent: Option<NodeId>,
    pub children: Vec<NodeId>,
}

impl Tree {
    /// The binomial tree over `nodes` nodes whose root is `root`: places are counted from there.
    pub fn new(me: NodeId, root: NodeId, nodes: u32) -> Tree {
        let node = |place: u64| ((u64::from(root) + place) % u64::from(nodes)) as NodeId;
        let place = u64::from((me + nodes - root) % nodes);
        // Place p's children set one bit below its lowest set bit.
        let below = if place == 0 { 32 } else { place.trailing_zeros() };
        let children = (0..below).rev().map(|bit| place | 1 << bit).filter(|child| *child < u64::from(nodes)).map(node).collect();
        Tree { root, parent: (place != 0).then(|| node(place & (place - 1))), children }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_binomial_for_any_number_of_nodes_and_any_root() {
        for nodes in 1..70u32 {
            for root in [0, nodes / 2, nodes - 1] {
                let trees: Vec<Tree> = (0..nodes).map(|me| Tree::new(me, root, nodes)).collect();
                for (me, tree) in (0..).zip(&trees) {
                    assert_eq!(tree.parent.is_none(), me == root);
                    for child in &tree.children {
                        assert_eq!(trees[*child as usize].parent, Some(me));
                    }
                    let depth = std::iter::successors(Some(me), |node| trees[*node as usize].parent).count() as u32 - 1;
                    assert!(depth <= nodes.next_power_of_two().ilog2());
                }
                assert_eq!(trees.iter().map(|tree| tree.children.len() as u32).sum::<u32>(), nodes - 1);
            }
        }
        // The drawing.
        assert_eq!(Tree::new(0, 0, 8).children, [4, 2, 1]);
        assert_eq!(Tree::new(6, 0, 8), Tree { root: 0, parent: Some(4), children: vec![7] });
    }
}
