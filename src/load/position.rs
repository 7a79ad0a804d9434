//! Positions: work units in a row, and which node each belongs to.
//!
//! The rule of PSLB (Hegarty and Kechadi 1997, as described by Savvas and Kechadi 2004, section 3.1): W units are numbered from 0, a node with
//! the normalised power interval `[a, b)` owns the units i with a <= i / W < b. In integers its first unit is `ceil(W * prefix / sum)`,
//! where `prefix` is the power of the nodes before it and `sum` that of all.

use std::ops::Range;

use super::Powers;

/// Unit of a task that decides its destination. A task of several units cannot be divided, so one unit stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To the owner of its first unit.
    First,
    /// To the owner of its middle unit, `start + floor(weight / 2)`. A border between two owners then moves by at most half a task.
    Middle,
}

impl Aim {
    /// The unit whose owner gets a task that begins at unit `start`. Along a row these units never decrease.
    pub fn of(self, start: u64, weight: u64) -> u64 {
        match self {
            Aim::First => start,
            Aim::Middle => start + weight / 2,
        }
    }
}

/// Some units that lie in a row over consecutive nodes, each node's part in proportion to its power.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    powers: &'a Powers,
    nodes: Range<u32>,
    units: u64,
}

impl<'a> Positions<'a> {
    /// Distributes `units` units over these nodes. If there are units, at least one node must have a power above zero: otherwise the units have no
    /// owner.
    pub fn new(powers: &'a Powers, nodes: Range<u32>, units: u64) -> Positions<'a> {
        Positions { powers, nodes, units }
    }

    /// Number of units owned by the nodes before this one: its first unit. `node` may be the end of the range.
    pub fn before(&self, node: u32) -> u64 {
        let start = self.powers.before(self.nodes.start);
        let sum = self.powers.before(self.nodes.end) - start;
        let prefix = self.powers.before(node) - start;
        if sum == 0 { 0 } else { (u128::from(self.units) * u128::from(prefix)).div_ceil(u128::from(sum)) as u64 }
    }

    /// Number of units that nodes `first .. end` own.
    pub fn between(&self, first: u32, end: u32) -> u64 {
        self.before(end) - self.before(first)
    }

    /// Number of units that a node owns.
    pub fn of(&self, node: u32) -> u64 {
        self.between(node, node + 1)
    }

    /// The owners of units `start .. end`, in order, and how many of them each owns (never none).
    pub fn owners(&self, start: u64, end: u64) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut at = start;
        std::iter::from_fn(move || {
            let owner = (at < end).then(|| self.owner(at))??;
            let until = self.before(owner + 1).min(end);
            let units = until - at;
            at = until;
            Some((owner, units))
        })
    }

    /// The last node that begins at this unit or before it; those that begin there too and lie before it own nothing.
    fn owner(&self, unit: u64) -> Option<u32> {
        let (mut low, mut high) = (self.nodes.start, self.nodes.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.before(middle + 1) > unit { high = middle } else { low = middle + 1 }
        }
        (low < self.nodes.end).then_some(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unit_belongs_where_its_position_falls() {
        // Table 5 of the paper: unit 220 of 600 lies at 0.37, between 0.35 and 0.60; unit 380 at 0.63, between 0.60 and 0.90.
        let powers = Powers::listed(vec![3, 4, 5, 2, 1, 5, 5, 1, 4, 2, 6, 2]).unwrap();
        assert_eq!(Positions::new(&powers, 0..6, 600).owners(220, 221).collect::<Vec<_>>(), [(2, 1)]);
        assert_eq!(Positions::new(&powers, 6..12, 600).owners(380, 381).collect::<Vec<_>>(), [(10, 1)]);
    }

    #[test]
    fn without_power_nobody_owns_anything() {
        let powers = Powers::listed(vec![0, 0, 1]).unwrap();
        let none = Positions::new(&powers, 0..2, 0);
        assert_eq!((none.of(0), none.of(1), none.owners(0, 5).count()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn every_unit_lies_in_its_owners_interval(powers in prop::collection::vec(0u64..6, 1..9), first in 0usize..4, units in 0u64..50) {
            let nodes = (first.min(powers.len() - 1) as u32)..powers.len() as u32;
            let held = &powers[nodes.start as usize..];
            let sum: u64 = held.iter().sum();
            prop_assume!(sum > 0);
            let listed = Powers::listed(powers.clone()).unwrap();
            let positions = Positions::new(&listed, nodes.clone(), units);
            let mut owned = Vec::new();
            for (node, count) in positions.owners(0, units) {
                prop_assert!(count == positions.of(node) && count > 0);
                owned.extend(std::iter::repeat_n(node, count as usize));
            }
            prop_assert_eq!(owned.len() as u64, units);
            for (unit, &node) in owned.iter().enumerate() {
                // prefix / sum <= unit / units < (prefix + power) / sum
                let prefix: u64 = held[..(node - nodes.start) as usize].iter().sum();
                let scaled = unit as u64 * sum;
                prop_assert!(prefix * units <= scaled && scaled < (prefix + powers[node as usize]) * units);
            }
        }

        #[test]
        fn any_part_of_the_row_has_the_same_owners(powers in prop::collection::vec(0u64..=u64::MAX / 9, 1..9), units: u64, a: u64, b: u64) {
            prop_assume!(powers.iter().any(|&p| p > 0));
            let nodes = powers.len() as u32;
            let listed = Powers::listed(powers).unwrap();
            let positions = Positions::new(&listed, 0..nodes, units);
            let (start, end) = (a.min(b).min(units), a.max(b).min(units));
            let mut at = start;
            for (node, count) in positions.owners(start, end) {
                prop_assert!(positions.before(node) <= at && at + count <= positions.before(node + 1));
                at += count;
            }
            prop_assert_eq!(at, end);
            prop_assert_eq!(positions.before(nodes), units);
        }
    }
}
