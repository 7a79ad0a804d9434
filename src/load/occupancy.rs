//! Bytes of tasks that each rank holds, where ranks have room for a limited number of bytes.

use serde::{Deserialize, Serialize};

use crate::topology::{Placement, RankId};

/// Bytes of tasks' payloads by rank, before and after a phase, and the capacity of each rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Occupancy {
    /// Bytes that each rank has room for.
    pub capacity: Vec<u64>,
    /// Bytes that each rank held before the phase.
    pub before: Vec<u64>,
    /// Bytes that each rank held after the phase.
    pub after: Vec<u64>,
}

/// Bytes that one rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// The rank.
    pub rank: RankId,
    /// Bytes that it holds.
    pub held: u64,
    /// Bytes that it has room for.
    pub capacity: u64,
}

impl Holding {
    /// Returns true if it holds more than it has room for.
    pub fn is_beyond(&self) -> bool {
        self.held > self.capacity
    }

    /// Returns true if it holds a larger part of its capacity than another rank.
    fn is_fuller(&self, than: &Holding) -> bool {
        u128::from(self.held) * u128::from(than.capacity) > u128::from(than.held) * u128::from(self.capacity)
    }
}

impl Occupancy {
    /// Occupancy computed from the bytes of each node before and after a phase; a virtual node's bytes count for the rank that hosts it.
    pub fn new(capacity: &[u64], by_node: &[[u64; 2]], placement: &Placement) -> Occupancy {
        let mut sums = vec![[0u64; 2]; capacity.len()];
        for (node, bytes) in (0..).zip(by_node) {
            if let Some(sum) = sums.get_mut(placement.rank_of(node).index()) {
                *sum = [0, 1].map(|when| sum[when].saturating_add(bytes[when]));
            }
        }
        let at = |when: usize| sums.iter().map(|sum| sum[when]).collect();
        Occupancy { capacity: capacity.to_vec(), before: at(0), after: at(1) }
    }

    /// The rank that held the largest part of its capacity before the phase, the first of equal ones; `None` if no rank held anything.
    pub fn fullest_before(&self) -> Option<Holding> {
        self.fullest(&self.before)
    }

    /// The same after the phase.
    pub fn fullest_after(&self) -> Option<Holding> {
        self.fullest(&self.after)
    }

    fn fullest(&self, held: &[u64]) -> Option<Holding> {
        let ranks = (0..).map(RankId::new).zip(held.iter().zip(&self.capacity));
        let holdings = ranks.map(|(rank, (held, capacity))| Holding { rank, held: *held, capacity: *capacity });
        holdings.filter(|holding| holding.held > 0).reduce(|most, next| if next.is_fuller(&most) { next } else { most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_rank_is_named() {
        let placement = Placement::one_host(4, 3).unwrap();
        let host = placement.rank_of(3).index();
        // Nodes 0 to 2 are real ones; node 3 is virtual, and its bytes are on the rank that hosts it.
        let occupancy = Occupancy::new(&[100; 3], &[[5, 1], [5, 9], [5, 6], [30, 2]], &placement);
        assert_eq!(occupancy.before[host], 35);
        assert_eq!(occupancy.after.iter().sum::<u64>(), 18);
        let fullest = occupancy.fullest_before().unwrap();
        assert_eq!((fullest.rank.index(), fullest.held, fullest.is_beyond()), (host, 35, false));

        let of = |capacity: &[u64], held: &[u64]| {
            let occupancy = Occupancy { capacity: capacity.to_vec(), before: held.to_vec(), after: vec![0; held.len()] };
            assert_eq!(occupancy.fullest_after(), None);
            occupancy.fullest_before().map(|fullest| (fullest.rank.get(), fullest.is_beyond()))
        };
        assert_eq!(of(&[10, 100], &[9, 50]), Some((0, false)), "by parts");
        assert_eq!(of(&[10, 10], &[4, 4]), Some((0, false)), "the first of equal ones");
        assert_eq!(of(&[0, 10, 0], &[0, 3, 0]), Some((1, false)), "no room, and nothing held");
        assert_eq!(of(&[10, 0], &[99, 1]), Some((1, true)), "no room at all");
        // As floating-point numbers both would be full.
        assert_eq!(of(&[1 << 60, 1 << 60], &[1 << 60, (1 << 60) + 1]), Some((1, true)));
    }
}
