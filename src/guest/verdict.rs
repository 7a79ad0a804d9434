//! The verdict on a plan: its gain and its cost.

use serde::{Deserialize, Serialize};

/// Effect of a plan, for all ranks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Largest over mean of work over power, now. 1 without work; infinite if a rank of power 0 has work.
    pub before: f64,
    /// The same after the plan.
    pub after: f64,
    /// No assignment has less.
    pub bound: f64,
    /// Seconds that were spent on the plan.
    pub plan_seconds: f64,
    /// Seconds that the move is expected to take.
    pub move_seconds: f64,
    /// Seconds that a unit of weight must last for the move to pay once; infinite if it never does.
    pub pays_from_seconds_per_unit: f64,
    /// Number of items that change their rank.
    pub moved: u64,
    /// Their bytes, where these are known.
    pub bytes: u64,
    /// Whether balancing pays; `None` if the duration of a unit is unknown.
    pub pays: Option<bool>,
    /// Name of the balancer.
    pub balancer: String,
}

/// Items on ranks, with the weights that the caller gave.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Judged<'a> {
    pub weights: &'a [f64],
    pub owners: &'a [u32],
    pub pinned: &'a [bool],
    pub powers: &'a [f64],
}

/// Times of the slowest rank, in units of weight over power, relative to the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ratios {
    pub before: f64,
    pub after: f64,
    pub bound: f64,
    /// Time of the slowest rank now less that after the plan, in units over power.
    pub gain: f64,
}

impl Judged<'_> {
    /// Judges an assignment.
    pub fn ratios(&self, assignment: &[u32]) -> Ratios {
        let (before, after) = (self.slowest(self.owners), self.slowest(assignment));
        let total: f64 = self.weights.iter().sum();
        let mean = total / self.powers.iter().sum::<f64>();
        if total <= 0.0 {
            return Ratios { before: 1.0, after: 1.0, bound: 1.0, gain: 0.0 };
        }
        // Rounding must not make a perfect plan better than perfect.
        let over = |time: f64| (time / mean).max(1.0);
        let (before, after) = (over(before), over(after));
        let bound = over(self.bound()).min(after);
        let gain = if before.is_infinite() && after.is_infinite() { 0.0 } else { (before - after) * mean };
        Ratios { before, after, bound, gain }
    }

    /// Time of the slowest rank.
    fn slowest(&self, assignment: &[u32]) -> f64 {
        let mut loads = vec![0.0; self.powers.len()];
        for (weight, rank) in self.weights.iter().zip(assignment) {
            loads[*rank as usize] += weight;
        }
        let time = |(load, power): (&f64, &f64)| if *load == 0.0 { 0.0 } else { load / power };
        loads.iter().zip(self.powers).map(time).fold(0.0, f64::max)
    }

    /// A time that the slowest rank of no assignment is below: the mean; what is pinned on a rank; the heaviest item on the fastest rank; on
    /// equal ranks two of the p + 1 heaviest that must meet.
    fn bound(&self) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let mut bound = total / self.powers.iter().sum::<f64>();
        let fastest = self.powers.iter().copied().fold(0.0, f64::max);
        let mut fixed = vec![0.0; self.powers.len()];
        let mut movable: Vec<f64> = Vec::new();
        for ((weight, owner), pinned) in self.weights.iter().zip(self.owners).zip(self.pinned) {
            if *pinned {
                fixed[*owner as usize] += weight;
            } else {
                movable.push(*weight);
            }
        }
        for (work, power) in fixed.iter().zip(self.powers).filter(|(work, _)| **work > 0.0) {
            bound = bound.max(work / power);
        }
        movable.sort_by(|a, b| b.total_cmp(a));
        if let Some(heaviest) = movable.first() {
            bound = bound.max(heaviest / fastest);
        }
        // Of the k p + 1 heaviest, some rank gets k + 1.
        let ranks = self.powers.iter().filter(|power| **power > 0.0).count();
        for k in 1..=(movable.len().saturating_sub(1) / ranks.max(1)).min(64) {
            let together: f64 = movable[k * ranks - k..=k * ranks].iter().sum();
            bound = bound.max(together / fastest);
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let judged = Judged { weights: &[4.0, 2.0, 2.0], owners: &[0, 0, 0], pinned: &[false; 3], powers: &[1.0, 1.0] };
        assert_eq!(judged.ratios(&[0, 1, 1]), Ratios { before: 2.0, after: 1.0, bound: 1.0, gain: 4.0 });
        let slow = Judged { powers: &[0.0, 1.0], ..judged };
        let ratios = slow.ratios(&[1, 1, 1]);
        assert!(ratios.before.is_infinite() && ratios.after == 1.0);
        let nothing = Judged { weights: &[0.0; 3], ..judged };
        assert_eq!(nothing.ratios(&[0, 1, 1]), Ratios { before: 1.0, after: 1.0, bound: 1.0, gain: 0.0 });
    }

    proptest! {
        #[test]
        fn nothing_is_below_the_bound(
            items in prop::collection::vec((0u32..20, 0u32..3, any::<bool>()), 1..7),
            powers in prop::collection::vec(1u32..4, 3),
        ) {
            let weights: Vec<f64> = items.iter().map(|item| f64::from(item.0)).collect();
            let owners: Vec<u32> = items.iter().map(|item| item.1).collect();
            let pinned: Vec<bool> = items.iter().map(|item| item.2).collect();
            let powers: Vec<f64> = powers.into_iter().map(f64::from).collect();
            let judged = Judged { weights: &weights, owners: &owners, pinned: &pinned, powers: &powers };
            let least = (0..3u32.pow(items.len() as u32)).filter_map(|number| {
                let assignment: Vec<u32> = (0..items.len() as u32).map(|at| number / 3u32.pow(at) % 3).collect();
                let allowed = (0..items.len()).all(|at| !pinned[at] || assignment[at] == owners[at]);
                allowed.then(|| judged.slowest(&assignment))
            });
            let least = least.fold(f64::INFINITY, f64::min);
            prop_assert!(judged.bound() <= least * (1.0 + 1e-12), "{} {}", judged.bound(), least);
        }
    }
}
