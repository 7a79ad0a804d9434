//! Several weights of each task: work, memory, whatever ranks have a fair share of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Powers, TaskId};
use crate::topology::{Placement, RankId};

/// One weight of each task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, as in the table that it comes from.
    pub name: String,
    /// Weight of each task, indexed by task number; their sum is below 2^64.
    pub weights: Vec<u64>,
}

/// One weight over the ranks, before and after a phase: the largest load over its rank's fair share. 1 is even; a weight with sum 0 counts
/// as even.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnRatio {
    /// The column's name.
    pub name: String,
    /// Ratio before the phase.
    pub before: f64,
    /// Ratio after the phase.
    pub after: f64,
}

impl Column {
    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    /// The largest load over its rank's share (a part of the total in proportion to the rank's power), with tasks on these ranks. Load on a rank
    /// without power is left out.
    pub fn ratio(&self, rank_of: &BTreeMap<TaskId, RankId>, powers: &Powers, placement: &Placement) -> f64 {
        let mut loads = vec![0u64; placement.ranks() as usize];
        for (task, rank) in rank_of {
            loads[rank.index()] += self.weights.get(*task as usize).copied().unwrap_or(0);
        }
        let powers: Vec<u64> = RankId::all(placement.ranks()).map(|rank| powers.of(placement.real_node_of(rank))).collect();
        let total = loads.iter().sum();
        let ratios = loads.iter().zip(&powers).filter(|(_, power)| **power > 0);
        ratios.map(|(load, power)| *load as f64 * scale(total, &powers, *power)).fold(if total == 0 { 1.0 } else { 0.0 }, f64::max)
    }
}

/// Factor from a rank's load to its ratio over the rank's fair share.
pub(crate) fn scale(total: u64, powers: &[u64], power: u64) -> f64 {
    let all = powers.iter().map(|power| u128::from(*power)).sum::<u128>() as f64;
    if total == 0 || power == 0 { 0.0 } else { all / (total as f64 * power as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_largest_load_over_its_share() {
        let placement = Placement::one_host(3, 3).unwrap();
        let column = |weights: &[u64]| Column { name: "bytes".into(), weights: weights.to_vec() };
        let rank_of = BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 2)].map(|(task, rank)| (task, RankId::new(rank))));
        let powers = Powers::listed(vec![2, 1, 1]).unwrap();
        assert_eq!(column(&[4, 4, 4, 4]).ratio(&rank_of, &powers, &placement), 1.0);
        assert_eq!(column(&[1, 2, 5, 0]).ratio(&rank_of, &powers, &placement), 2.5);
        assert_eq!(column(&[0; 4]).ratio(&rank_of, &powers, &placement), 1.0);
    }
}
