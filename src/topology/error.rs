//! What can be wrong with a topology, each as one sentence for the person who typed it.

use super::{Kind, MAX_DIMENSION, MAX_NODES, MAX_VIRTUAL_PER_RANK};

/// A topology, or a placement of it on ranks, that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopology {
    /// The name before the colon is none that we know.
    #[error("--topology {spec}: unknown topology; known are {}", Kind::names())]
    UnknownName {
        /// What was given.
        spec: String,
    },
    /// The part after the colon does not read as a size or shape.
    #[error("--topology {spec}: {reason}")]
    Malformed {
        /// What was given, shortened when long.
        spec: String,
        /// What is wrong with it and what is expected.
        reason: String,
    },
    /// More than [`MAX_NODES`] nodes.
    #[error("--topology {spec}: more than {MAX_NODES} nodes, the most a topology may have")]
    TooManyNodes {
        /// What was given or asked for.
        spec: String,
    },
    /// More than [`MAX_DIMENSION`] dimensions.
    #[error("--topology {spec}: more than {MAX_DIMENSION} dimensions, the most a topology may have")]
    TooManyDimensions {
        /// What was given.
        spec: String,
    },
    /// The parents of a tree are not those of nodes numbered in preorder.
    #[error(
        "--topology tree:parents=..: {reason}; parents are given in preorder (the root first, then each child followed by all its descendants)"
    )]
    NotPreorder {
        /// Which node breaks the order, and how.
        reason: String,
    },
    /// Some rank would have no node.
    #[error("--topology: it has {nodes} nodes for {ranks} ranks, and every rank needs a node of its own")]
    TooFewNodes {
        /// Nodes of the topology.
        nodes: u32,
        /// Ranks of the run.
        ranks: u32,
    },
    /// Some rank would host more than [`MAX_VIRTUAL_PER_RANK`] virtual nodes.
    #[error(
        "--topology: its {nodes} nodes on {ranks} ranks give a rank {virtual_nodes} virtual nodes; at most {MAX_VIRTUAL_PER_RANK} are allowed"
    )]
    TooManyVirtual {
        /// Nodes of the topology.
        nodes: u32,
        /// Ranks of the run.
        ranks: u32,
        /// The most virtual nodes that one rank would host.
        virtual_nodes: u32,
    },
    /// A run without ranks.
    #[error("--topology: there are no ranks to place it on; at least one is needed")]
    NoRanks,
    /// A placement that does not fit its ranks or hosts.
    #[error("--topology: {reason}")]
    Placement {
        /// What does not fit.
        reason: String,
    },
}

impl InvalidTopology {
    /// A malformed specification; a long one is shown by its beginning.
    pub(super) fn malformed(spec: &str, reason: impl Into<String>) -> Self {
        InvalidTopology::Malformed { spec: shortened(spec), reason: reason.into() }
    }
}

/// The beginning of a specification, so that a tree of thousands of parents does not drown the sentence about it.
pub(super) fn shortened(spec: &str) -> String {
    const SHOWN: usize = 60;
    match spec.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &spec[..end]),
        None => spec.to_string(),
    }
}
