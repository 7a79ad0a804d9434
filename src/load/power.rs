//! Powers: how fast each node is, relative to the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::topology::Placement;

/// The powers of all nodes, as exact integers: only their ratios matter. A node of power 0 (every virtual node has it) should end with nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Powers {
    /// The first `real` nodes have power 1, the others (virtual nodes) 0.
    Equal {
        /// Number of nodes of power 1.
        real: u32,
        /// Number of all nodes.
        nodes: u32,
    },
    /// A power for each node.
    Listed(Arc<Listed>),
}

/// Powers that differ, with their prefix sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    powers: Vec<u64>,
    /// `prefix[i]` is the sum of the first `i` powers.
    prefix: Vec<u64>,
}

/// Why some powers are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPowers {
    #[error("all powers are zero")]
    AllZero,
    #[error("the sum of all powers is beyond 2^64 - 1")]
    TooLarge,
}

impl Powers {
    /// Power 1 for each of the first `real` nodes, 0 for the rest. At least one node is real.
    pub fn equal(real: u32, nodes: u32) -> Powers {
        Powers::Equal { real, nodes }
    }

    /// The given powers.
    ///
    /// # Errors
    /// If none is above zero, or their sum does not fit into 64 bits.
    pub fn listed(powers: Vec<u64>) -> Result<Powers, InvalidPowers> {
        let mut prefix = Vec::with_capacity(powers.len() + 1);
        let mut sum = 0u64;
        prefix.push(0);
        for power in &powers {
            sum = sum.checked_add(*power).ok_or(InvalidPowers::TooLarge)?;
            prefix.push(sum);
        }
        if sum == 0 { Err(InvalidPowers::AllZero) } else { Ok(Powers::Listed(Arc::new(Listed { powers, prefix }))) }
    }

    /// The same by node of a placement, where these are by rank, with those of virtual nodes behind them.
    #[must_use]
    pub fn on(&self, placement: &Placement) -> Powers {
        match self {
            Powers::Equal { .. } => self.clone(),
            // The sum is the same.
            Powers::Listed(listed) => Powers::listed(placement.by_node(&listed.powers)).unwrap_or_else(|_| self.clone()),
        }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        match self {
            Powers::Equal { nodes, .. } => *nodes,
            Powers::Listed(listed) => listed.powers.len() as u32,
        }
    }

    /// The power of a node.
    pub fn of(&self, node: u32) -> u64 {
        match self {
            Powers::Equal { real, .. } => u64::from(node < *real),
            Powers::Listed(listed) => listed.powers[node as usize],
        }
    }

    /// The sum of the powers of the nodes before this one (`node` up to the number of nodes).
    pub fn before(&self, node: u32) -> u64 {
        match self {
            Powers::Equal { real, .. } => u64::from(node.min(*real)),
            Powers::Listed(listed) => listed.prefix[node as usize],
        }
    }

    /// The sum of all powers.
    pub fn total(&self) -> u64 {
        self.before(self.nodes())
    }

    /// All powers, by node.
    pub fn to_vec(&self) -> Vec<u64> {
        (0..self.nodes()).map(|node| self.of(node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Hosts, RankId};

    #[test]
    fn powers_of_ranks_are_put_by_node() {
        let placement = Placement::custom([0, 2, 1, 3, 1].map(RankId::new).to_vec(), 4, Hosts::single(4)).unwrap();
        let powers = Powers::listed(vec![1, 2, 3, 4, 0]).unwrap();
        assert_eq!(powers.on(&placement).to_vec(), [1, 3, 2, 4, 0]);
        assert_eq!(Powers::equal(4, 5).on(&placement), Powers::equal(4, 5));
    }
}
