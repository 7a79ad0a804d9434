//! Decision on the destination of each item, from the data of all ranks.

use super::balancers::{self, Items};
use super::status::{Failure, Result};
use super::units::{near_one, units};
use super::verdict::{Judged, Ratios};
use crate::assign::Problem;
use crate::assign::capacity::{self, NoRoom, Rooms};
use crate::load::Place;

/// Everything that a plan is made from, in the order of the owners.
pub struct All {
    /// Number of items of each rank.
    pub counts: Vec<usize>,
    pub weights: Vec<f64>,
    pub bytes: Vec<u64>,
    pub pinned: Vec<bool>,
    pub places: Option<Vec<Place>>,
    /// Power of each rank.
    pub powers: Vec<f64>,
    /// Bytes by rank.
    pub capacity: Option<Vec<u64>>,
    /// Topology that a simulated balancer moves work along; none: its own.
    pub topology: Option<String>,
}

/// Destination of each item, and the quality of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub destinations: Vec<u32>,
    pub ratios: Ratios,
    pub moved: u64,
    pub bytes: u64,
    pub busiest: Busiest,
}

/// Most items, and most bytes, that leave or reach one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busiest {
    pub items: u64,
    pub bytes: u64,
}

impl All {
    /// The rank of each item.
    pub fn owners(&self) -> Vec<u32> {
        (0..).zip(&self.counts).flat_map(|(rank, count)| std::iter::repeat_n(rank, *count)).collect()
    }

    /// Decides by a balancer.
    ///
    /// # Errors
    /// Wrong usage, if data that the balancer needs is missing, a capacity cannot be kept or all powers are 0.
    pub fn decide(&self, balancer: &str, tolerance: f64, seed: u64) -> Result<Decision> {
        self.check_powers()?;
        let owners = self.owners();
        let (destinations, movable) = self.balanced(balancer, tolerance, seed, &owners)?;
        let judged = self.judged(&owners);
        let keeps = |assignment: &[u32]| match &self.capacity {
            Some(capacity) => capacity::are_kept(assignment, &self.bytes, capacity),
            None => true,
        };
        let mut destinations = destinations;
        if let Some(capacity) = &self.capacity
            && !keeps(&destinations)
        {
            let weights = judged.without_what_is_stuck();
            let (weights, _) = near_one(weights.as_deref().unwrap_or(judged.weights));
            let (powers, _) = near_one(judged.powers);
            let rooms = Rooms { weights: &weights, owners: &owners, bytes: &self.bytes, movable: &movable, powers: &powers, capacity };
            destinations = capacity::keep(&rooms, &destinations).map_err(refused)?;
        }
        let (before, after) = judged.ratios(&destinations).free;
        // Nothing moves for nothing; what is ordered by places may move for the order's sake.
        let is_in_vain = after > before || (after == before && !balancers::needs_places(balancer));
        if is_in_vain && keeps(&owners) {
            destinations.clone_from(&owners);
        }
        Ok(self.decided(&owners, destinations))
    }

    /// Gain, cost and verdict of an assignment that the caller has made.
    ///
    /// # Errors
    /// Wrong usage, if a capacity is not kept or all powers are 0.
    #[cfg(any(feature = "_ranks", test))]
    pub fn given(&self, destinations: Vec<u32>) -> Result<Decision> {
        self.check_powers()?;
        if let Some(capacity) = &self.capacity {
            capacity::check(&destinations, &self.bytes, capacity).map_err(refused)?;
        }
        Ok(self.decided(&self.owners(), destinations))
    }

    fn check_powers(&self) -> Result<()> {
        if self.powers.iter().all(|power| *power == 0.0) {
            return Err(Failure::usage("option powers: all ranks have power 0"));
        }
        Ok(())
    }

    fn judged<'a>(&'a self, owners: &'a [u32]) -> Judged<'a> {
        Judged { weights: &self.weights, owners, pinned: &self.pinned, powers: &self.powers }
    }

    fn decided(&self, owners: &[u32], destinations: Vec<u32>) -> Decision {
        let ratios = self.judged(owners).ratios(&destinations);
        let moving = || (0..owners.len()).filter(|item| owners[*item] != destinations[*item]);
        let bytes = moving().map(|item| self.bytes.get(item).copied().unwrap_or(0)).fold(0, u64::saturating_add);
        let moved = moving().count() as u64;
        let mut through = vec![Busiest::default(); self.counts.len()];
        for item in moving() {
            for rank in [owners[item], destinations[item]] {
                let rank = &mut through[rank as usize];
                rank.items += 1;
                rank.bytes = rank.bytes.saturating_add(self.bytes.get(item).copied().unwrap_or(0));
            }
        }
        let most = |of: fn(&Busiest) -> u64| through.iter().map(of).max().unwrap_or(0);
        let busiest = Busiest { items: most(|rank| rank.items), bytes: most(|rank| rank.bytes) };
        Decision { destinations, ratios, moved, bytes, busiest }
    }

    /// The balancer's assignment, and the items that it could choose a rank for.
    fn balanced(&self, balancer: &str, tolerance: f64, seed: u64, owners: &[u32]) -> Result<(Vec<u32>, Vec<usize>)> {
        let units = units(&self.weights);
        let mut fixed = vec![0; self.counts.len()];
        let mut movable = Vec::with_capacity(units.len());
        for (item, unit) in units.iter().enumerate() {
            let owner = owners[item] as usize;
            match self.pinned[item] {
                // What is pinned where there is no power never ends, whatever the others do.
                true if self.powers[owner] == 0.0 => {}
                true => fixed[owner] += unit,
                false => movable.push(item),
            }
        }
        let weights: Vec<u64> = movable.iter().map(|item| units[*item]).collect();
        let holders: Vec<u32> = movable.iter().map(|item| owners[*item]).collect();
        let places: Option<Vec<Place>> = self.places.as_ref().map(|places| movable.iter().map(|item| places[*item]).collect());
        let powers = whole_powers(&self.powers);
        let problem = Problem { weights: &weights, owners: &holders, fixed: &fixed, powers: &powers };
        let mut destinations = owners.to_vec();
        if self.counts.len() > 1 && !movable.is_empty() {
            let items = Items { problem, places: places.as_deref(), tolerance, seed, topology: self.topology.as_deref() };
            for (item, rank) in movable.iter().zip(balancers::assign(balancer, &items)?) {
                destinations[*item] = rank;
            }
        }
        Ok((destinations, movable))
    }
}

fn refused(why: NoRoom) -> Failure {
    Failure::usage(format!("option capacity: {why}"))
}

/// Powers as whole numbers: as they are if they are whole and small, and otherwise in parts of the largest.
fn whole_powers(powers: &[f64]) -> Vec<u64> {
    const PARTS: f64 = (1u64 << 20) as f64;
    let are_whole = powers.iter().all(|power| power.fract() == 0.0 && *power <= PARTS);
    if are_whole {
        return powers.iter().map(|power| *power as u64).collect();
    }
    let (near, _) = near_one(powers);
    let scale = PARTS / near.iter().copied().fold(0.0, f64::max);
    near.iter().map(|power| ((power * scale).round() as u64).max(u64::from(*power > 0.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(counts: &[usize], weights: &[f64]) -> All {
        All {
            counts: counts.to_vec(),
            weights: weights.to_vec(),
            bytes: vec![8; weights.len()],
            pinned: vec![false; weights.len()],
            places: None,
            powers: vec![1.0; counts.len()],
            capacity: None,
            topology: None,
        }
    }

    #[test]
    fn the_eight_ranks_of_uneven_cells() {
        // Cells of cost 100 to 2,020, four on each of eight ranks, the light ones first.
        let weights: Vec<f64> = (0..32).map(|cell| 100.0 + f64::from(cell) * 1920.0 / 31.0).collect();
        let plan = all(&[4; 8], &weights).decide("refine", 1.0, 0).unwrap();
        assert!(plan.ratios.before > 1.7 && plan.ratios.after < 1.05, "{:?}", plan.ratios);
        assert!(plan.moved > 0 && plan.bytes == 8 * plan.moved);
    }

    #[test]
    fn the_busiest_rank_has_what_leaves_and_what_reaches_it() {
        let mut four = all(&[4, 2, 0, 1], &[1.0; 7]);
        four.bytes = vec![1, 2, 4, 8, 16, 32, 64];
        // Three leave rank 0 for three ranks, and one reaches it; what stays counts nowhere.
        let decision = four.given(vec![0, 1, 2, 3, 0, 1, 3]).unwrap();
        assert_eq!((decision.moved, decision.bytes, decision.busiest), (4, 30, Busiest { items: 4, bytes: 30 }));
        let decision = four.given(vec![0, 0, 0, 0, 1, 2, 2]).unwrap();
        assert_eq!((decision.bytes, decision.busiest), (96, Busiest { items: 2, bytes: 96 }));
        let decision = four.given(vec![0, 0, 0, 3, 2, 1, 3]).unwrap();
        assert_eq!((decision.bytes, decision.busiest), (24, Busiest { items: 1, bytes: 16 }));
    }

    #[test]
    fn nothing_moves_in_vain() {
        let even = all(&[2, 2], &[1.0; 4]);
        for balancer in ["refine", "greedy", "kk", "direct", "cwa", "none"] {
            assert_eq!(even.decide(balancer, 1.0, 0).unwrap().destinations, [0, 0, 1, 1], "{balancer}");
        }
        let empty = all(&[0, 0, 0], &[]).decide("refine", 1.0, 0).unwrap();
        assert_eq!((empty.ratios.before, empty.ratios.after, empty.ratios.bound, empty.moved), (1.0, 1.0, 1.0, 0));
    }

    #[test]
    fn pins_and_powers_are_kept() {
        let mut pinned = all(&[4, 0], &[5.0, 5.0, 1.0, 1.0]);
        pinned.pinned = vec![true, true, false, false];
        let plan = pinned.decide("refine", 1.0, 0).unwrap();
        assert_eq!(plan.destinations, [0, 0, 1, 1]);
        let mut weak = all(&[2, 2], &[1.0; 4]);
        weak.powers = vec![0.0, 1.5];
        let plan = weak.decide("refine", 1.0, 0).unwrap();
        assert_eq!(plan.destinations, [1; 4]);
        assert!(plan.ratios.before.is_infinite() && plan.ratios.after == 1.0);
        weak.powers = vec![0.0, 0.0];
        assert!(weak.decide("refine", 1.0, 0).is_err());
    }

    #[test]
    fn the_units_of_weights_and_powers_do_not_matter() {
        let usual = all(&[4, 0, 0], &[1.0, 2.0, 3.0, 4.0]).decide("refine", 1.0, 0).unwrap();
        assert_eq!(usual.ratios.before, 3.0);
        let is_near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        for power in [1e-310, 1e308] {
            let plan = All { powers: vec![power; 3], ..all(&[4, 0, 0], &[1.0, 2.0, 3.0, 4.0]) }.decide("refine", 1.0, 0).unwrap();
            assert_eq!(plan.destinations, usual.destinations, "powers {power}");
            let both = [(plan.ratios.before, 3.0), (plan.ratios.after, usual.ratios.after), (plan.ratios.gain, usual.ratios.gain)];
            assert!(both.into_iter().all(|(a, b)| is_near(a, b)), "powers {power}: {:?}", plan.ratios);
        }
        assert_eq!(whole_powers(&[1e308, 5e307, 0.0]), [1 << 20, 1 << 19, 0]);
        assert_eq!(whole_powers(&[1e-310, 5e-311]), [1 << 20, 1 << 19]);
        for (weights, before) in [([1e308, 1e308], 3.0), ([5e-324, 0.0], 3.0), ([5e-324, 5e-324], 3.0)] {
            let plan = all(&[2, 0, 0], &weights).decide("refine", 1.0, 0).unwrap();
            let after = if weights[1] > 0.0 { 1.5 } else { 3.0 };
            let both = [(plan.ratios.before, before), (plan.ratios.after, after), (plan.ratios.bound, after)];
            assert!(both.into_iter().all(|(a, b)| is_near(a, b)), "{weights:?}: {:?}", plan.ratios);
        }
        let mut tight = all(&[3, 0], &[1e308; 3]);
        tight.capacity = Some(vec![16, 8]);
        assert_eq!(tight.decide("refine", 1.0, 0).unwrap().moved, 1);
    }

    #[test]
    fn what_is_pinned_without_power_stops_nothing() {
        let places = |items: u32| Some((0..items).map(|at| [f64::from(at), 0.0, 0.0]).collect::<Vec<Place>>());
        let mut even = 0;
        for balancer in crate::balance::SIMPLEST_FIRST {
            let free = All { powers: vec![0.0, 1.0, 1.0], places: places(8), ..all(&[0, 8, 0], &[1.0; 8]) };
            let mut stuck = All { powers: free.powers.clone(), places: places(9), ..all(&[1, 8, 0], &[1.0; 9]) };
            stuck.pinned[0] = true;
            let (expected, plan) = (free.decide(balancer, 1.0, 0).unwrap(), stuck.decide(balancer, 1.0, 0).unwrap());
            assert_eq!((plan.destinations[0], &plan.destinations[1..]), (0, &expected.destinations[..]), "{balancer}");
            assert!(plan.ratios.before.is_infinite() && plan.ratios.after.is_infinite(), "{balancer}");
            assert_eq!((plan.ratios.free, plan.ratios.gain > 0.0), ((2.0, expected.ratios.after), plan.moved > 0), "{balancer}");
            if plan.ratios.free.1 > 1.0 {
                continue;
            }
            even += 1;
            // Within capacities, too; and what may leave that rank leaves it.
            stuck.capacity = Some(vec![64, 64, 24]);
            assert_eq!(stuck.decide(balancer, 1.0, 0).unwrap().moved, 3, "{balancer}");
            let both = All { powers: free.powers.clone(), pinned: stuck.pinned.clone(), places: places(9), ..all(&[2, 7, 0], &[1.0; 9]) };
            let plan = both.decide(balancer, 1.0, 0).unwrap();
            assert_eq!(plan.destinations.iter().filter(|to| **to == 0).count(), 1, "{balancer}: {plan:?}");
        }
        assert!(even > 12, "{even} balancers");
    }

    #[test]
    fn a_capacity_is_kept_or_refused() {
        let mut tight = all(&[4, 0], &[1.0; 4]);
        tight.capacity = Some(vec![32, 8]);
        let plan = tight.decide("refine", 1.0, 0).unwrap();
        assert_eq!(plan.moved, 1);
        tight.capacity = Some(vec![8, 16]);
        let why = tight.decide("refine", 1.0, 0).unwrap_err();
        assert!(why.text.contains("rank"), "{}", why.text);
        // More room than where they are, and less balance.
        tight.capacity = Some(vec![0, 32]);
        assert_eq!(tight.decide("refine", 1.0, 0).unwrap().destinations, [1; 4]);
        assert!(tight.given(vec![0, 1, 1, 1]).unwrap_err().text.contains("rank 0"));
    }
}
