//! Nodes in a row, left to right.

use super::{InvalidTopology, MAX_NODES, NodeId};

/// A row of nodes; node i is next to i - 1 and i + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    nodes: u32,
}

impl Line {
    /// A row of `nodes` nodes, 1 to [`MAX_NODES`].
    ///
    /// # Errors
    /// [`InvalidTopology::Malformed`] without nodes, [`InvalidTopology::TooManyNodes`] beyond the limit.
    pub fn new(nodes: u32) -> Result<Self, InvalidTopology> {
        check_count("line", nodes)?;
        Ok(Line { nodes })
    }

    pub(super) fn fitted(ranks: u32) -> Self {
        Line { nodes: ranks }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        let left = node.checked_sub(1);
        let right = (node + 1 < self.nodes).then_some(node + 1);
        left.into_iter().chain(right).collect()
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        a.abs_diff(b)
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        match from.cmp(&to) {
            std::cmp::Ordering::Less => from + 1,
            std::cmp::Ordering::Equal => from,
            std::cmp::Ordering::Greater => from - 1,
        }
    }
}

/// Refuses no nodes, and more than a topology may have.
pub(super) fn check_count(name: &str, nodes: u32) -> Result<(), InvalidTopology> {
    let spec = format!("{name}:{nodes}");
    match nodes {
        0 => Err(InvalidTopology::malformed(&spec, "it has no nodes; at least one is needed")),
        n if n > MAX_NODES => Err(InvalidTopology::TooManyNodes { spec }),
        _ => Ok(()),
    }
}
