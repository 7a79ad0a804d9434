//! Every node next to every other: a switched network seen from its ends.

use super::line::check_count;
use super::{InvalidTopology, NodeId};

/// The complete graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete {
    nodes: u32,
}

impl Complete {
    /// The complete graph of `nodes` nodes, 1 to [`super::MAX_NODES`].
    ///
    /// # Errors
    /// [`InvalidTopology::Malformed`] without nodes, [`InvalidTopology::TooManyNodes`] beyond the limit.
    pub fn new(nodes: u32) -> Result<Self, InvalidTopology> {
        check_count("complete", nodes)?;
        Ok(Complete { nodes })
    }

    pub(super) fn fitted(ranks: u32) -> Self {
        Complete { nodes: ranks }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        (0..self.nodes).filter(|other| *other != node).collect()
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        u32::from(a != b)
    }

    pub(super) fn next_hop(&self, _from: NodeId, to: NodeId) -> NodeId {
        to
    }
}
