//! The binary d-cube Q_d: 2^d nodes named by their addresses, neighbours differ in one bit.

use super::{InvalidTopology, MAX_DIMENSION, NodeId};

/// The binary d-cube.
///
/// ```text
///   110---111        dimension k joins the nodes that differ in bit k;
///   /|    /|         distance is the number of differing bits;
/// 010---011|         routes correct the highest differing bit first (e-cube).
///  |100--|101
///  |/    |/
/// 000---001
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercube {
    dimension: u32,
}

impl Hypercube {
    /// The cube of dimension `dimension`, 0 to [`MAX_DIMENSION`]; dimension 0 is a single node.
    ///
    /// # Errors
    /// [`InvalidTopology::TooManyDimensions`] beyond that limit.
    pub fn new(dimension: u32) -> Result<Self, InvalidTopology> {
        if dimension > MAX_DIMENSION {
            return Err(InvalidTopology::TooManyDimensions { spec: format!("hypercube:{dimension}") });
        }
        Ok(Hypercube { dimension })
    }

    /// The smallest cube with at least `ranks` nodes, `1 <= ranks <= 2^30`.
    pub(super) fn fitted(ranks: u32) -> Self {
        Hypercube { dimension: ranks.next_power_of_two().trailing_zeros() }
    }

    /// Its dimension d, the number of address bits.
    pub fn dimension(&self) -> u32 {
        self.dimension
    }

    /// 2^d.
    pub fn nodes(&self) -> u32 {
        1 << self.dimension
    }

    /// The neighbour across dimension `k`, `k < dimension`.
    pub fn across(&self, node: NodeId, k: u32) -> NodeId {
        debug_assert!(k < self.dimension);
        node ^ (1 << k)
    }

    pub(super) fn neighbours(&self, node: NodeId) -> Vec<NodeId> {
        // Clearing a set bit gives a smaller address, the higher the bit the smaller; setting a clear one a greater address.
        let cleared = (0..self.dimension).rev().filter(|k| node >> k & 1 == 1);
        let set = (0..self.dimension).filter(|k| node >> k & 1 == 0);
        cleared.chain(set).map(|k| self.across(node, k)).collect()
    }

    pub(super) fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        (a ^ b).count_ones()
    }

    pub(super) fn next_hop(&self, from: NodeId, to: NodeId) -> NodeId {
        match (from ^ to).checked_ilog2() {
            Some(k) => self.across(from, k),
            None => from,
        }
    }
}
