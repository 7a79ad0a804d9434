//! Chains on chains: an ordered list of tasks is cut into one contiguous piece for each rank, in rank order, so that the slowest rank is done first.
//! Exact, by probing and bisection (D. M. Nicol, Rectilinear partitioning of irregular data parallel computations, 1994; A. Pinar and C. Aykanat,
//! Fast optimal load balancing algorithms for 1D partitioning, J. Parallel Distrib. Comput. 64, 2004, section 4).
//!
//! Neighbours in the list stay neighbours, as needed by codes with space-filling curves and by time series. The largest task is a lower
//! bound; without the order [`refine`](super::refine) is never worse.

use super::{Assignment, Problem};
use crate::load::RankTime;

/// Cuts the tasks, in the order of their owners, with the least time of the slowest rank. Among equally good cuts, each border lies as near
/// as possible to the border between the owners.
///
/// O(m log n) for a probe of n tasks on m ranks, and a probe for each bit of the limit; m log n probes where 64 bits can't tell limits apart.
pub fn chains(problem: &Problem<'_>) -> Assignment {
    // The list's order is that of the owners: by owner, and then as each holds them.
    let mut order: Vec<usize> = (0..problem.weights.len()).collect();
    order.sort_by_key(|task| problem.owners[*task]);
    let weights: Vec<u64> = order.iter().map(|task| problem.weights[*task]).collect();
    let owners: Vec<u32> = order.iter().map(|task| problem.owners[*task]).collect();
    let cut = ordered_chains(&Problem { weights: &weights, owners: &owners, ..*problem });
    let mut assignment = vec![0; order.len()];
    for (task, rank) in order.into_iter().zip(cut) {
        assignment[task] = rank;
    }
    assignment
}

/// The same for tasks in any order, regardless of their owners.
pub fn ordered_chains(problem: &Problem<'_>) -> Assignment {
    let list = List::new(problem);
    let limit = list.bottleneck();
    let cuts = list.cuts(limit);
    let mut assignment = vec![0; problem.weights.len()];
    for (rank, piece) in (0..).zip(cuts.windows(2)) {
        assignment[piece[0]..piece[1]].fill(rank);
    }
    assignment
}

struct List<'a> {
    problem: &'a Problem<'a>,
    /// Work units in front of each task, and of all.
    before: Vec<u64>,
}

impl<'a> List<'a> {
    fn new(problem: &'a Problem<'a>) -> List<'a> {
        let mut before = Vec::with_capacity(problem.weights.len() + 1);
        before.push(0);
        before.extend(problem.weights.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }));
        List { problem, before }
    }

    fn tasks(&self) -> usize {
        self.problem.weights.len()
    }

    /// A rank's time with the tasks from one place to another.
    fn time(&self, rank: usize, from: usize, until: usize) -> RankTime {
        self.problem.time(rank, self.problem.fixed[rank] + self.before[until] - self.before[from])
    }

    /// Returns the end of a rank's longest piece that begins at `from` and stays within the limit; `None` if the rank's fixed work exceeds the
    /// limit.
    fn longest(&self, rank: usize, from: usize, limit: RankTime) -> Option<usize> {
        let room = limit.most_work(self.problem.powers[rank]).checked_sub(self.problem.fixed[rank])?;
        let end = self.before[from].saturating_add(room);
        Some(self.before.partition_point(|before| *before <= end) - 1)
    }

    /// The same for a piece that ends here, from the back.
    fn longest_before(&self, rank: usize, until: usize, limit: RankTime) -> usize {
        let room = limit.most_work(self.problem.powers[rank]).saturating_sub(self.problem.fixed[rank]);
        let begin = self.before[until].saturating_sub(room);
        self.before.partition_point(|before| *before < begin)
    }

    /// Returns true if the ranks from `first` on can do the tasks from `from` on within the limit.
    fn fits(&self, first: usize, from: usize, limit: RankTime) -> bool {
        (first..self.problem.ranks()).try_fold(from, |at, rank| self.longest(rank, at, limit)) == Some(self.tasks())
    }

    /// The least limit that a cut can keep.
    fn bottleneck(&self) -> RankTime {
        let fixed = (0..self.problem.ranks()).map(|rank| self.time(rank, 0, 0)).max().unwrap_or(RankTime { work: 0, power: 1 });
        if fixed.is_endless() {
            return fixed;
        }
        self.by_value(fixed).unwrap_or_else(|| self.by_pieces(fixed))
    }

    /// Finds the least limit by bisection, in units of time so short that no two different times of ranks lie between two of them. `None` if numbers
    /// of 64 bits are too short for that.
    fn by_value(&self, fixed: RankTime) -> Option<RankTime> {
        let powers = self.problem.powers;
        let fastest = (0..powers.len()).max_by_key(|rank| powers[*rank])?;
        let power = powers[fastest];
        let unit = if powers.iter().all(|other| *other == power) { power } else { power.checked_mul(power)? };
        // The fastest could do all.
        let all = self.time(fastest, 0, self.tasks()).max(fixed);
        let product = u128::from(all.work) * u128::from(unit);
        let (mut least, mut most) = (0, u64::try_from(product.checked_div(u128::from(all.power))? + 1).ok()?);
        while least < most {
            let middle = u64::midpoint(least, most);
            if self.fits(0, 0, RankTime { work: middle, power: unit }) {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        Some(RankTime { work: least, power: unit })
    }

    /// Nicol's search. For each rank in turn the shortest piece is found whose time is a limit that suffices for the rest
    /// as well; in every better cut the rank has one task less, and then may as well have all of these.
    fn by_pieces(&self, fixed: RankTime) -> RankTime {
        let ranks = self.problem.ranks();
        let (mut best, mut from): (Option<RankTime>, usize) = (None, 0);
        for rank in 0..ranks {
            let limit = |until: usize| self.time(rank, from, until).max(fixed);
            // By bisection: what is below `least` does not suffice.
            let (mut least, mut until) = (from, self.tasks());
            while least < until {
                let middle = usize::midpoint(least, until);
                if self.fits(rank, from, limit(middle)) {
                    until = middle;
                } else {
                    least = middle + 1;
                }
            }
            if !self.fits(rank, from, limit(until)) {
                break;
            }
            let found = limit(until);
            best = Some(best.map_or(found, |best| best.min(found)));
            if until == from {
                break;
            }
            from = until - 1;
        }
        best.unwrap_or(fixed)
    }

    /// Start of each piece, and the end of the last one.
    fn cuts(&self, limit: RankTime) -> Vec<usize> {
        let ranks = self.problem.ranks();
        // The earliest beginning of each piece with which the rest still fits.
        let mut earliest = vec![self.tasks(); ranks + 1];
        for rank in (0..ranks).rev() {
            earliest[rank] = self.longest_before(rank, earliest[rank + 1], limit);
        }
        let ordered = self.problem.owners.is_sorted();
        let mut cuts = vec![0];
        for rank in 0..ranks {
            let from = cuts[rank];
            let latest = self.longest(rank, from, limit).unwrap_or(from);
            let wanted = if ordered { self.problem.owners.partition_point(|owner| *owner as usize <= rank) } else { latest };
            let least = earliest[rank + 1].max(from);
            cuts.push(wanted.clamp(least, latest.max(least)));
        }
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the least limit by dynamic programming over all cuts.
    fn by_dynamic_programming(problem: &Problem<'_>) -> RankTime {
        let list = List::new(problem);
        let tasks = problem.weights.len();
        // The least time of the slowest of the ranks so far, by number of tasks that they have.
        let mut best: Vec<Option<RankTime>> = vec![None; tasks + 1];
        best[0] = Some(RankTime { work: 0, power: 1 });
        for rank in 0..problem.ranks() {
            let of = |until: usize| (0..=until).filter_map(|from| Some(best[from]?.max(list.time(rank, from, until)))).min();
            best = (0..=tasks).map(of).collect();
        }
        best[tasks].unwrap()
    }

    #[test]
    fn what_is_even_stays() {
        let problem = Problem { weights: &[1, 2, 3, 3, 1, 2], owners: &[0, 0, 1, 2, 3, 3], fixed: &[0; 4], powers: &[1; 4] };
        assert_eq!(chains(&problem), [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn fixed_work_and_missing_power_are_seen() {
        let problem = Problem { weights: &[4, 4, 4], owners: &[0, 0, 0], fixed: &[0, 0, 4], powers: &[1, 0, 2] };
        assert_eq!(chains(&problem), [0, 2, 2], "4 on power 1; 12 on power 2 would take 6, 8 on power 1 would take 8");
        assert_eq!(chains(&Problem { weights: &[], owners: &[], fixed: &[3, 0], powers: &[1, 1] }), [0u32; 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn is_the_optimum(
            weights in prop::collection::vec(0u64..30, 0..25),
            ranks in prop::collection::vec((0u64..4, 0u64..10), 1..7),
        ) {
            let (mut powers, fixed): (Vec<u64>, Vec<u64>) = ranks.into_iter().unzip();
            powers[0] = powers[0].max(1);
            let mut owners: Vec<u32> = (0..weights.len()).map(|task| (task * 7 % powers.len()) as u32).collect();
            owners.sort_unstable();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &fixed, powers: &powers };
            let assignment = chains(&problem);
            prop_assert!(assignment.is_sorted());
            let best = by_dynamic_programming(&problem);
            prop_assert_eq!(problem.slowest(&problem.loads(&assignment)), best);
            let list = List::new(&problem);
            let fixed = (0..powers.len()).map(|rank| list.time(rank, 0, 0)).max().unwrap();
            prop_assert!(best.is_endless() || list.by_pieces(fixed) == best);
        }
    }
}
