//! Topologies: the networks that balancers and schedulers work on, and the placement of their nodes on ranks.
//!
//! A [`Topology`] is a pure shape over nodes `0..nodes()`: neighbours, distances in hops, and one deterministic shortest route
//! between any two nodes. It is parsed from a specification ([`Topology::parse`]) or fitted to a number of ranks
//! ([`Topology::fitted`]). A [`Placement`] lays the nodes onto ranks and hosts, with virtual nodes where the ranks do not fill the
//! topology. [`hadamard`] finds the medians of a hypercube, [`regions`] the processors that each median serves.
//!
//! Hypercubes, meshes, grids, lines and complete graphs are arithmetic: a million nodes cost no memory. Trees hold 20 bytes a node,
//! graphs two bytes a pair of nodes, shared between clones.

mod complete;
mod error;
mod fit;
mod graph;
#[doc(hidden)]
pub mod hadamard;
mod hosts;
mod hypercube;
mod ids;
mod kind;
mod known;
mod lattice;
mod line;
mod overlay;
mod placing;
#[doc(hidden)]
pub mod regions;
mod side;
mod spec;
mod tree;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use complete::Complete;
pub use error::{InvalidTopology, MAX_VIRTUAL_PER_RANK};
pub use graph::{Embedding, Graph, Link, MAX_GRAPH_NODES};
pub use hosts::Hosts;
pub use hypercube::Hypercube;
pub use ids::{HostId, RackId, RankId};
pub use kind::Kind;
pub use known::KnownNetwork;
pub use lattice::{Grid, Mesh};
pub use line::Line;
pub use overlay::{Overlay, Placement};
pub use placing::PlacementRule;
pub use side::Side;
pub use tree::Tree;

/// A node of the topology, `0..nodes`.
pub type NodeId = u32;

/// Maximum number of nodes that a topology may have.
pub const MAX_NODES: u32 = 1 << 30;
/// Maximum number of dimensions that a topology may have.
pub const MAX_DIMENSION: u32 = 30;

/// A network of nodes.
///
/// It serialises as its canonical name, see [`Topology::name`] (a graph as its edges, wherever it came from), so that whatever is read back went
/// through the same checks as the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Topology {
    /// The binary d-cube: nodes are addresses, neighbours differ in one bit.
    Hypercube(Hypercube),
    /// A mesh of any dimension, row-major; wrapped around it is a torus, and in one dimension a ring.
    Mesh(Mesh),
    /// A rooted tree, numbered in preorder (Wu 1997, section 3.1).
    Tree(Arc<Tree>),
    /// The hyper-grid of Savvas and Kechadi 2004, with links between direct neighbours.
    Grid(Grid),
    /// Nodes in a row.
    Line(Line),
    /// Every node next to every other.
    Complete(Complete),
    /// Nodes and links as an edge list gives them.
    Graph(Arc<Graph>),
}

impl Topology {
    /// The number of nodes, virtual ones included.
    pub fn nodes(&self) -> u32 {
        match self {
            Topology::Hypercube(cube) => cube.nodes(),
            Topology::Mesh(mesh) => mesh.nodes(),
            Topology::Tree(tree) => tree.nodes(),
            Topology::Grid(grid) => grid.nodes(),
            Topology::Line(line) => line.nodes(),
            Topology::Complete(complete) => complete.nodes(),
            Topology::Graph(graph) => graph.nodes(),
        }
    }

    /// Family of the topology. A wrapped mesh of one dimension is a ring, of more a torus.
    pub fn kind(&self) -> Kind {
        match self {
            Topology::Hypercube(_) => Kind::Hypercube,
            Topology::Mesh(mesh) if !mesh.wraps() => Kind::Mesh,
            Topology::Mesh(mesh) if mesh.dims().len() == 1 => Kind::Ring,
            Topology::Mesh(_) => Kind::Torus,
            Topology::Tree(_) => Kind::Tree,
            Topology::Grid(_) => Kind::Grid,
            Topology::Line(_) => Kind::Line,
            Topology::Complete(_) => Kind::Complete,
            Topology::Graph(_) => Kind::Graph,
        }
    }

    /// The nodes one hop away, in ascending order. On a complete graph: all the others, so ask for them only where they are few.
    pub fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        match self {
            Topology::Hypercube(cube) => cube.neighbours(node),
            Topology::Mesh(mesh) => mesh.neighbours(node),
            Topology::Tree(tree) => tree.neighbours(node),
            Topology::Grid(grid) => grid.neighbours(node),
            Topology::Line(line) => line.neighbours(node),
            Topology::Complete(complete) => complete.neighbours(node),
            Topology::Graph(graph) => graph.neighbours(node),
        }
    }

    /// The length of a shortest route between two nodes, in hops.
    pub fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        match self {
            Topology::Hypercube(cube) => cube.distance(a, b),
            Topology::Mesh(mesh) => mesh.distance(a, b),
            Topology::Tree(tree) => tree.distance(a, b),
            Topology::Grid(grid) => grid.distance(a, b),
            Topology::Line(line) => line.distance(a, b),
            Topology::Complete(complete) => complete.distance(a, b),
            Topology::Graph(graph) => graph.distance(a, b),
        }
    }

    /// The first hop of the one shortest route that messages from `from` to `to` take; `from` itself when it is there already.
    ///
    /// Hypercube: e-cube, the highest differing bit first. Mesh, torus and grid: dimension by dimension, the first one first; half
    /// way round a torus the way up. Tree: through the nearest common ancestor. Graph: the lowest neighbour that is nearer.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        match self {
            Topology::Hypercube(cube) => cube.next_hop(from, to),
            Topology::Mesh(mesh) => mesh.next_hop(from, to),
            Topology::Tree(tree) => tree.next_hop(from, to),
            Topology::Grid(grid) => grid.next_hop(from, to),
            Topology::Line(line) => line.next_hop(from, to),
            Topology::Complete(complete) => complete.next_hop(from, to),
            Topology::Graph(graph) => graph.next_hop(from, to),
        }
    }

    /// The nodes that a message from `from` to `to` visits after `from`, `to` included; empty when they are the same.
    pub fn route(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            (at != to).then(|| {
                at = self.next_hop(at, to);
                at
            })
        })
    }

    /// The greatest distance between two nodes, in hops.
    pub fn diameter(&self) -> u32 {
        match self {
            Topology::Hypercube(cube) => cube.dimension(),
            Topology::Mesh(mesh) => mesh.diameter(),
            Topology::Tree(tree) => tree.diameter(),
            Topology::Grid(grid) => grid.diameter(),
            Topology::Line(line) => line.nodes() - 1,
            Topology::Complete(complete) => u32::from(complete.nodes() > 1),
            Topology::Graph(graph) => graph.diameter(),
        }
    }
}

#[cfg(test)]
mod tests;
