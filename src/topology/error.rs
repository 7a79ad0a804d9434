//! Errors of topologies, each as one sentence.

use crate::names;
use crate::spec::{InvalidSpec, shown};

use super::{MAX_DIMENSION, MAX_NODES};

/// Maximum number of virtual nodes that one rank may host.
pub const MAX_VIRTUAL_PER_RANK: u32 = 1024;

/// A topology, or a placement of it on ranks, that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTopology {
    /// The name is unknown, or its size or shape is not allowed.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    /// The size or shape is impossible.
    #[error("topology {spec}: {reason}")]
    Malformed {
        /// The specification, shortened when long.
        spec: String,
        /// The mistake and the expected form.
        reason: String,
    },
    /// More than [`MAX_NODES`] nodes.
    #[error("topology {spec}: more than {MAX_NODES} nodes, the most a topology may have")]
    TooManyNodes {
        /// The specification, given or requested.
        spec: String,
    },
    /// More than [`MAX_DIMENSION`] dimensions.
    #[error("topology {spec}: more than {MAX_DIMENSION} dimensions, the most a topology may have")]
    TooManyDimensions {
        /// The specification.
        spec: String,
    },
    /// The parents of a tree do not number its nodes in preorder.
    #[error(
        "topology tree:parents=..: {reason}; parents are given in preorder (the root first, then each child followed by all its descendants)"
    )]
    NotPreorder {
        /// The node that breaks the order, and how.
        reason: String,
    },
    /// Some rank would have no node.
    #[error("topology: it has {nodes} nodes for {ranks} ranks, and every rank needs a node of its own")]
    TooFewNodes {
        /// Nodes of the topology.
        nodes: u32,
        /// Ranks of the run.
        ranks: u32,
    },
    /// Some rank would host more than [`MAX_VIRTUAL_PER_RANK`] virtual nodes.
    #[error(
        "topology: its {nodes} nodes on {ranks} ranks give a rank {virtual_nodes} virtual nodes; at most {MAX_VIRTUAL_PER_RANK} are allowed"
    )]
    TooManyVirtual {
        /// Nodes of the topology.
        nodes: u32,
        /// Ranks of the run.
        ranks: u32,
        /// Maximum number of virtual nodes that one rank would host.
        virtual_nodes: u32,
    },
    /// A run without ranks.
    #[error("topology: there are no ranks to place it on; at least one is needed")]
    NoRanks,
    /// A placement that does not fit its ranks or hosts.
    #[error("topology: {reason}")]
    Placement {
        /// Reason why the placement does not fit.
        reason: String,
    },
}

impl InvalidTopology {
    /// The noun with which each sentence begins.
    pub const SUBJECT: &'static str = "topology";

    /// A malformed specification; a long one is shown by its beginning, and neither it nor the reason gives orders to a terminal.
    pub(super) fn malformed(spec: &str, reason: impl Into<String>) -> Self {
        InvalidTopology::Malformed { spec: shown(spec), reason: names::one_line(reason.into()) }
    }
}
