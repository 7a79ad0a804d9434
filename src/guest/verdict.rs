//! The verdict on a plan: its gain and its cost.

use serde::{Deserialize, Serialize};

use super::units::{near_one, scaled};

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
    /// `before` and `after` without what is pinned on ranks of power 0: that never ends, whatever moves. Plans are compared by these.
    pub free: (f64, f64),
    /// Work that a rank of mean power would do in the time of the slowest rank after the plan, in units of weight.
    pub left: f64,
    /// The same now less that after the plan.
    pub gain: f64,
    /// The gain as a part of all work.
    pub part: f64,
}

impl Ratios {
    /// Without work.
    const NOTHING: Ratios = Ratios { before: 1.0, after: 1.0, bound: 1.0, free: (1.0, 1.0), left: 0.0, gain: 0.0, part: 0.0 };
}

impl Judged<'_> {
    /// Judges an assignment.
    pub fn ratios(&self, assignment: &[u32]) -> Ratios {
        // Ratios have no unit, and sums of any finite numbers are finite in this one.
        let ((weights, unit), (powers, _)) = (near_one(self.weights), near_one(self.powers));
        let near = Judged { weights: &weights, powers: &powers, ..*self };
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            return Ratios::NOTHING;
        }
        let (before, after, mean) = near.before_and_after(assignment);
        let bound = (near.bound() / mean).max(1.0).min(after);
        let freed = near.without_what_is_stuck();
        let (free, free_total) = match &freed {
            None => ((before, after), total),
            Some(weights) => {
                let (before, after, _) = Judged { weights, ..near }.before_and_after(assignment);
                ((before, after), weights.iter().sum())
            }
        };
        // Units of the caller's; what is beyond all doubles is the largest.
        let mean = free_total / powers.len() as f64;
        let in_units = |work: f64| if work.is_finite() { scaled(work, unit).clamp(f64::MIN, f64::MAX) } else { work };
        let gain = if free.0.is_infinite() && free.1.is_infinite() { 0.0 } else { (free.0 - free.1) * mean };
        Ratios { before, after, bound, free, left: in_units(free.1 * mean), gain: in_units(gain), part: gain / total }
    }

    /// Time of the slowest rank over the mean, now and after the assignment, and the mean. The mean is 1 without work.
    fn before_and_after(&self, assignment: &[u32]) -> (f64, f64, f64) {
        let total: f64 = self.weights.iter().sum();
        if total <= 0.0 {
            return (1.0, 1.0, 1.0);
        }
        let mean = total / self.powers.iter().sum::<f64>();
        // Rounding must not make a perfect plan better than perfect.
        let over = |time: f64| (time / mean).max(1.0);
        (over(self.slowest(self.owners)), over(self.slowest(assignment)), mean)
    }

    /// The weights, but 0 of what is pinned on ranks of power 0; `None` if that is nothing.
    pub fn without_what_is_stuck(&self) -> Option<Vec<f64>> {
        let items = || self.weights.iter().zip(self.owners).zip(self.pinned);
        let is_stuck = |owner: u32, pinned: bool| pinned && self.powers[owner as usize] == 0.0;
        let any = items().any(|((weight, owner), pinned)| *weight > 0.0 && is_stuck(*owner, *pinned));
        any.then(|| items().map(|((weight, owner), pinned)| if is_stuck(*owner, *pinned) { 0.0 } else { *weight }).collect())
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
        let expected = Ratios { before: 2.0, after: 1.0, bound: 1.0, free: (2.0, 1.0), left: 4.0, gain: 4.0, part: 0.5 };
        assert_eq!(judged.ratios(&[0, 1, 1]), expected);
        let slow = Judged { powers: &[0.0, 1.0], ..judged };
        let ratios = slow.ratios(&[1, 1, 1]);
        assert!(ratios.before.is_infinite() && ratios.after == 1.0);
        let nothing = Judged { weights: &[0.0; 3], ..judged };
        assert_eq!(nothing.ratios(&[0, 1, 1]), Ratios::NOTHING);
    }

    #[test]
    fn the_unit_does_not_matter() {
        let usual = Judged { weights: &[4.0, 2.0, 2.0], owners: &[0, 0, 0], pinned: &[false; 3], powers: &[1.0, 1.0] };
        let of = |judged: Judged<'_>| {
            let Ratios { before, after, bound, free, part, .. } = judged.ratios(&[0, 1, 1]);
            (before, after, bound, free, part)
        };
        for power in [1e-310, 5e-324, 1e-300, 1e300, 1e308, f64::MAX] {
            assert_eq!(of(Judged { powers: &[power; 2], ..usual }), of(usual), "powers {power}");
        }
        for weight in [5e-324, 1e-310, 1e307, 2f64.powi(1021)] {
            assert_eq!(of(Judged { weights: &[4.0 * weight / 2.0, weight, weight], ..usual }), of(usual), "weights of {weight}");
        }
        // A gain beyond all doubles is the largest, and one item is one item.
        let heavy = Judged { weights: &[f64::MAX; 8], owners: &[0; 8], pinned: &[false; 8], powers: &[1.0; 2] };
        let ratios = heavy.ratios(&[0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!((ratios.before, ratios.after, ratios.gain), (2.0, 1.0, f64::MAX));
        let light = Judged { weights: &[5e-324], owners: &[0], pinned: &[false], powers: &[1.0; 3] };
        assert_eq!((light.ratios(&[0]).before, light.ratios(&[0]).bound), (3.0, 3.0));
    }

    #[test]
    fn what_is_pinned_without_power_is_left_out_of_comparisons() {
        // The first item never ends. The others would take 4, and take 2.
        let stuck = Judged {
            weights: &[9.0, 1.0, 1.0, 1.0, 1.0],
            owners: &[0, 1, 1, 1, 1],
            pinned: &[true, false, false, false, false],
            powers: &[0.0, 1.0, 1.0],
        };
        let ratios = stuck.ratios(&[0, 1, 1, 2, 2]);
        assert!(ratios.before.is_infinite() && ratios.after.is_infinite() && ratios.bound.is_infinite());
        assert_eq!((ratios.free, ratios.left), ((2.0, 1.0), 4.0 / 3.0));
        assert_eq!(ratios.gain, 4.0 / 3.0);
        assert!((ratios.part - 4.0 / 39.0).abs() < 1e-15);
        // What may leave, and does not, never ends either.
        assert!(stuck.ratios(&[0, 1, 1, 2, 0]).free.1.is_infinite());
        let alone = Judged { weights: &[9.0], owners: &[0], pinned: &[true], powers: &[0.0, 1.0] };
        assert_eq!(alone.ratios(&[0]).free, (1.0, 1.0));
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
