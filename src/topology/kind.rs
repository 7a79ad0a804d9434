//! The families of topologies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A family of topologies; displayed as the word that specifications take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The binary d-cube.
    Hypercube,
    /// A mesh of any dimension.
    Mesh,
    /// A mesh of two or more dimensions with wrap-around links (the k-ary n-cube).
    Torus,
    /// A rooted tree.
    Tree,
    /// The hyper-grid of Savvas and Kechadi 2004.
    Grid,
    /// Nodes in a row.
    Line,
    /// Nodes in a circle.
    Ring,
    /// Every node next to every other.
    Complete,
    /// Nodes and links as an edge list gives them.
    Graph,
}

impl Kind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Kind; 9] =
        [Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Complete, Kind::Graph];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Hypercube => "hypercube",
            Kind::Mesh => "mesh",
            Kind::Torus => "torus",
            Kind::Tree => "tree",
            Kind::Grid => "grid",
            Kind::Line => "line",
            Kind::Ring => "ring",
            Kind::Complete => "complete",
            Kind::Graph => "graph",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
