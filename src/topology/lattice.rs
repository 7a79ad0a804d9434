//! Meshes, tori, rings and hyper-grids: nodes at the integer points of a box, numbered row-major.
//!
//! The first dimension is the slowest: node = sum over k of coordinate k times stride k, the last stride being 1. A 2-D mesh
//! `RxC` has R rows and C columns, node `i * C + j` in row i and column j (Wu 1997, section 3.3).

use std::sync::Arc;

use super::{InvalidTopology, MAX_DIMENSION, MAX_NODES, NodeId};

/// The box of points that meshes and grids share.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lattice {
    dims: Arc<[u32]>,
    strides: Arc<[u32]>,
    nodes: u32,
}

impl Lattice {
    fn new(name: &str, dims: &[u32]) -> Result<Self, InvalidTopology> {
        let spec = || format!("{name}:{}", joined(dims));
        if dims.is_empty() {
            return Err(InvalidTopology::malformed(&spec(), "it has no sides; at least one is needed"));
        }
        if dims.contains(&0) {
            return Err(InvalidTopology::malformed(&spec(), "a side is zero; every side needs at least one node"));
        }
        if dims.len() > MAX_DIMENSION as usize {
            return Err(InvalidTopology::TooManyDimensions { spec: spec() });
        }
        let mut nodes: u64 = 1;
        for side in dims {
            nodes *= u64::from(*side);
            if nodes > u64::from(MAX_NODES) {
                return Err(InvalidTopology::TooManyNodes { spec: spec() });
            }
        }
        Ok(Lattice::of(dims))
    }

    /// The lattice of sides known to be positive, their product at most [`MAX_NODES`].
    fn of(dims: &[u32]) -> Self {
        let mut strides = vec![1; dims.len()];
        for k in (1..dims.len()).rev() {
            strides[k - 1] = strides[k] * dims[k];
        }
        Lattice { nodes: dims.iter().product(), dims: dims.into(), strides: strides.into() }
    }

    fn coordinate(&self, node: NodeId, k: usize) -> u32 {
        node / self.strides[k] % self.dims[k]
    }

    fn coordinates(&self, node: NodeId) -> Vec<u32> {
        (0..self.dims.len()).map(|k| self.coordinate(node, k)).collect()
    }

    fn node_at(&self, coordinates: &[u32]) -> NodeId {
        debug_assert_eq!(coordinates.len(), self.dims.len());
        coordinates.iter().zip(&*self.strides).map(|(x, stride)| x * stride).sum()
    }

    /// The node one step up or down in dimension k, round the end when wrapped; `None` over an edge and in a side of one node.
    fn beside(&self, node: NodeId, k: usize, up: bool, wrap: bool) -> Option<NodeId> {
        let (x, side, stride) = (self.coordinate(node, k), self.dims[k], self.strides[k]);
        match (up, wrap) {
            (true, _) if x + 1 < side => Some(node + stride),
            (false, _) if x > 0 => Some(node - stride),
            (true, true) if side > 1 => Some(node - x * stride),
            (false, true) if side > 1 => Some(node + (side - 1) * stride),
            _ => None,
        }
    }

    fn neighbours(&self, node: NodeId, wrap: bool) -> Vec<NodeId> {
        let mut all: Vec<NodeId> =
            (0..self.dims.len()).flat_map(|k| [self.beside(node, k, false, wrap), self.beside(node, k, true, wrap)]).flatten().collect();
        all.sort_unstable();
        // On a ring of two the ways up and down lead to the same node.
        all.dedup();
        all
    }

    fn distance(&self, a: NodeId, b: NodeId, wrap: bool) -> u32 {
        (0..self.dims.len())
            .map(|k| {
                let apart = self.coordinate(a, k).abs_diff(self.coordinate(b, k));
                if wrap { apart.min(self.dims[k] - apart) } else { apart }
            })
            .sum()
    }

    fn next_hop(&self, from: NodeId, to: NodeId, wrap: bool) -> NodeId {
        for k in 0..self.dims.len() {
            let (here, there, side) = (self.coordinate(from, k), self.coordinate(to, k), self.dims[k]);
            if here == there {
                continue;
            }
            let up = if wrap {
                let upwards = (there + side - here) % side;
                upwards <= side - upwards
            } else {
                here < there
            };
            return self.beside(from, k, up, wrap).unwrap_or(from);
        }
        from
    }
}

/// Sides as a specification writes them, `4x4x2`.
pub(super) fn joined(dims: &[u32]) -> String {
    let sides: Vec<String> = dims.iter().map(u32::to_string).collect();
    sides.join("x")
}

/// The accessors that meshes and grids have in common.
macro_rules! on_lattice {
    () => {
        /// The length of each side, the slowest dimension first.
        pub fn dims(&self) -> &[u32] {
            &self.lattice.dims
        }

        /// Difference of the numbers of two neighbours along each dimension; the last is 1.
        pub fn strides(&self) -> &[u32] {
            &self.lattice.strides
        }

        /// The number of nodes, the product of the sides.
        pub fn nodes(&self) -> u32 {
            self.lattice.nodes
        }

        /// Position of a node, one coordinate per dimension.
        pub fn coordinates(&self, node: NodeId) -> Vec<u32> {
            self.lattice.coordinates(node)
        }

        /// Coordinate of a node along dimension `k`.
        pub fn coordinate(&self, node: NodeId, k: usize) -> u32 {
            self.lattice.coordinate(node, k)
        }

        /// The node at the given coordinates, one per dimension, each less than its side.
        pub fn node_at(&self, coordinates: &[u32]) -> NodeId {
            self.lattice.node_at(coordinates)
        }
    };
}

/// A mesh of any dimension; wrapped around, a torus (k-ary n-cube), and in one dimension a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    lattice: Lattice,
    wrap: bool,
}

impl Mesh {
    /// The mesh, or with `wrap` the torus, of the given sides: 1 to 30 of them, at least 1 each, at most 2^30 nodes in all.
    ///
    /// # Errors
    /// [`InvalidTopology::Malformed`] without sides or if one is zero; [`InvalidTopology::TooManyDimensions`] or
    /// [`InvalidTopology::TooManyNodes`] beyond the limits.
    pub fn new(dims: &[u32], wrap: bool) -> Result<Self, InvalidTopology> {
        let name = match (wrap, dims.len()) {
            (false, _) => "mesh",
            (true, 1) => "ring",
            (true, _) => "torus",
        };
        Ok(Mesh { lattice: Lattice::new(name, dims)?, wrap })
    }

    pub(super) fn of(dims: &[u32], wrap: bool) -> Self {
        Mesh { lattice: Lattice::of(dims), wrap }
    }

    on_lattice!();

    /// Returns true if its sides close to rings.
    pub fn wraps(&self) -> bool {
        self.wrap
    }

    /// The node one step up (`up`) or down from `node` in dimension `k`, round the end on a torus; `None` where there is none.
    pub fn beside(&self, node: NodeId, k: usize, up: bool) -> Option<NodeId> {
        self.lattice.beside(node, k, up, self.wrap)
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        self.lattice.neighbours(node, self.wrap)
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        self.lattice.distance(a, b, self.wrap)
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        self.lattice.next_hop(from, to, self.wrap)
    }

    pub(super) fn diameter(&self) -> u32 {
        let across = |side: &u32| if self.wrap { side / 2 } else { side - 1 };
        self.dims().iter().map(across).sum()
    }
}

/// The hyper-grid of Savvas and Kechadi 2004, section 3: sides n_1 x ... x n_d, links between direct neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    lattice: Lattice,
}

impl Grid {
    /// The grid of the given sides: 1 to 30 of them, at least 1 each, at most 2^30 nodes in all.
    ///
    /// # Errors
    /// As [`Mesh::new`].
    pub fn new(dims: &[u32]) -> Result<Self, InvalidTopology> {
        Ok(Grid { lattice: Lattice::new("grid", dims)? })
    }

    pub(crate) fn of(dims: &[u32]) -> Self {
        Grid { lattice: Lattice::of(dims) }
    }

    on_lattice!();

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        self.lattice.neighbours(node, false)
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        self.lattice.distance(a, b, false)
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        self.lattice.next_hop(from, to, false)
    }

    pub(super) fn diameter(&self) -> u32 {
        self.dims().iter().map(|side| side - 1).sum()
    }
}
