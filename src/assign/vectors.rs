//! Tasks with several weights: a rank is as late as the largest of its loads, each over the rank's fair share of that weight. (Vector scheduling:
//! Chekuri and Khanna, On multidimensional packing problems, SIAM J. Comput. 33, 2004.)
//!
//! - [`greedy`](fn@greedy): the task with the largest part of any total first, to the rank where the largest ratio then is smallest. With d weights
//!   and equal ranks at most d + 1 times the best possible: when the last task of the slowest rank came, some rank had at most the mean over ranks of
//!   all columns together, d, and neither 1 nor a single task is more than the best.
//! - [`refine`](fn@refine): from the rank with the largest ratio, as with one weight: moves and swaps as long as they make it smaller.
//! - [`greedy_refine`](fn@greedy_refine): of both, and of greedy followed by refinement, the result that moves least among those that are
//!   good enough.
//!
//! Ratios are compared as floating-point numbers, computed in the same way and order on all ranks, so all ranks get the same result.

use std::collections::BTreeSet;

use super::Assignment;
use crate::load::columns::scale;

/// Pairs of a task and a rank, or of two tasks, that one call looks at, at most.
const LOOKS: u64 = 1 << 27;

/// Steps of refinement for each task, at most.
const STEPS_PER_TASK: usize = 8;

/// Tasks with several weights on ranks.
#[derive(Clone, Copy, Debug)]
pub struct Vectors<'a> {
    /// Weights of the tasks, indexed by column, then task.
    pub weights: &'a [Vec<u64>],
    /// Load that cannot move, by column and rank.
    pub fixed: &'a [Vec<u64>],
    /// The rank that holds each task now.
    pub owners: &'a [u32],
    /// Power of each rank; not all 0.
    pub powers: &'a [u64],
}

impl Vectors<'_> {
    /// The largest ratio of a load over its rank's fair share, over ranks with power and columns.
    pub fn ratio(&self, assignment: &[u32]) -> f64 {
        State::new(self, assignment.to_vec()).slowest().1
    }

    /// Size of the tasks that are away from their owners. A task's size is its largest part of any column.
    fn moved(&self, assignment: &[u32]) -> f64 {
        let sizes = self.sizes();
        self.owners.iter().zip(assignment).zip(sizes).filter(|((owner, rank), _)| owner != rank).map(|(_, size)| size).sum()
    }

    /// The largest part of any column's total that each task is.
    fn sizes(&self) -> Vec<f64> {
        let totals: Vec<u64> = self.totals();
        let part = |task: usize, column: usize| match totals[column] {
            0 => 0.0,
            total => self.weights[column][task] as f64 / total as f64,
        };
        (0..self.owners.len()).map(|task| (0..self.weights.len()).map(|column| part(task, column)).fold(0.0, f64::max)).collect()
    }

    fn totals(&self) -> Vec<u64> {
        self.weights.iter().zip(self.fixed).map(|(movable, fixed)| movable.iter().chain(fixed).sum()).collect()
    }
}

/// Assigns every task anew. O(n m d) for n tasks with d weights on m ranks.
pub fn greedy(vectors: &Vectors<'_>) -> Assignment {
    let sizes = vectors.sizes();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|a, b| sizes[*b].total_cmp(&sizes[*a]));
    let mut state = State::empty(vectors);
    for task in order {
        let owner = vectors.owners[task] as usize;
        let able = (0..vectors.powers.len()).filter(|rank| vectors.powers[*rank] > 0);
        // The owner first among equals, then the lowest.
        let best = able
            .map(|rank| (state.with(rank, task), rank != owner, rank))
            .min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        if let Some((.., rank)) = best {
            state.put(task, rank);
        }
    }
    state.assignment
}

/// Takes work off the rank with the largest ratio as long as that helps; then as much goes back as `tolerance` (at least 1) times the ratio that
/// was reached allows.
pub fn refine(vectors: &Vectors<'_>, tolerance: f64) -> Assignment {
    let mut state = State::new(vectors, vectors.owners.to_vec());
    state.even_out(0.0);
    let limit = state.slowest().1 * tolerance.max(1.0);
    state.settle(limit);
    // No further than the limit from the start moves less, or else what moved goes back.
    let mut short = State::new(vectors, vectors.owners.to_vec());
    short.even_out(limit);
    short.settle(limit);
    let is_less = short.slowest().1 <= limit && vectors.moved(&short.assignment) < vectors.moved(&state.assignment);
    if is_less { short.assignment } else { state.assignment }
}

/// Chooses among [`refine`](fn@refine), [`greedy`](fn@greedy) and greedy followed by refinement the result that moves least, of those with
/// a largest ratio of at most `tolerance` (at least 1) times the best.
pub fn greedy_refine(vectors: &Vectors<'_>, tolerance: f64) -> Assignment {
    let anew = greedy(vectors);
    let mut better = State::new(vectors, anew.clone());
    better.even_out(0.0);
    let starts = [refine(vectors, 1.0), anew, better.assignment];
    let best = starts.iter().map(|assignment| vectors.ratio(assignment)).fold(f64::INFINITY, f64::min);
    let limit = best * tolerance.max(1.0);
    let mut found: Vec<Assignment> = Vec::new();
    for start in starts {
        let mut state = State::new(vectors, start);
        state.settle(limit);
        found.push(state.assignment);
    }
    found.push(refine(vectors, tolerance));
    let good = found.into_iter().filter(|assignment| vectors.ratio(assignment) <= limit);
    let moved = |assignment: &Assignment| vectors.moved(assignment);
    good.min_by(|a, b| moved(a).total_cmp(&moved(b))).unwrap_or_else(|| vectors.owners.to_vec())
}

struct State<'a> {
    vectors: &'a Vectors<'a>,
    assignment: Assignment,
    /// Loads, indexed by rank, then column.
    loads: Vec<Vec<u64>>,
    /// Factor from a load to its ratio, by rank and column.
    scales: Vec<Vec<f64>>,
    /// The largest ratio of each rank; that of a rank without power is 0 if it holds nothing, and infinite otherwise.
    ratios: Vec<f64>,
    held: Vec<BTreeSet<usize>>,
    looks: u64,
}

impl<'a> State<'a> {
    /// State without tasks: the fixed loads only.
    fn empty(vectors: &'a Vectors<'a>) -> State<'a> {
        let (ranks, totals) = (vectors.powers.len(), vectors.totals());
        let scales =
            (0..ranks).map(|rank| totals.iter().map(|total| scale(*total, vectors.powers, vectors.powers[rank])).collect()).collect();
        // What is fixed where there is no power never ends, whatever the others do.
        let fixed = |rank: usize| vectors.fixed.iter().map(|column| if vectors.powers[rank] > 0 { column[rank] } else { 0 }).collect();
        let mut state = State {
            vectors,
            assignment: vectors.owners.to_vec(),
            loads: (0..ranks).map(fixed).collect(),
            scales,
            ratios: vec![0.0; ranks],
            held: vec![BTreeSet::new(); ranks],
            looks: LOOKS,
        };
        (0..ranks).for_each(|rank| state.ratios[rank] = state.ratio(rank, |_| 0));
        state
    }

    fn new(vectors: &'a Vectors<'a>, assignment: Assignment) -> State<'a> {
        let mut state = State::empty(vectors);
        for (task, rank) in assignment.into_iter().enumerate() {
            state.put(task, rank as usize);
        }
        state
    }

    /// The largest ratio of a rank if its loads change by these amounts.
    fn ratio(&self, rank: usize, change: impl Fn(usize) -> i128) -> f64 {
        let loads = self.loads[rank].iter().enumerate().map(|(column, load)| (column, i128::from(*load) + change(column)));
        if self.vectors.powers[rank] == 0 {
            return if loads.into_iter().any(|(_, load)| load > 0) { f64::INFINITY } else { 0.0 };
        }
        loads.map(|(column, load)| load as f64 * self.scales[rank][column]).fold(0.0, f64::max)
    }

    fn weight(&self, task: usize, column: usize) -> i128 {
        i128::from(self.vectors.weights[column][task])
    }

    fn with(&self, rank: usize, task: usize) -> f64 {
        self.ratio(rank, |column| self.weight(task, column))
    }

    fn without(&self, rank: usize, task: usize) -> f64 {
        self.ratio(rank, |column| -self.weight(task, column))
    }

    /// With one task instead of another.
    fn exchanged(&self, rank: usize, gets: usize, gives: usize) -> f64 {
        self.ratio(rank, |column| self.weight(gets, column) - self.weight(gives, column))
    }

    fn put(&mut self, task: usize, rank: usize) {
        for (column, load) in self.loads[rank].iter_mut().enumerate() {
            *load += self.vectors.weights[column][task];
        }
        self.held[rank].insert(task);
        self.assignment[task] = rank as u32;
        self.ratios[rank] = self.ratio(rank, |_| 0);
    }

    fn carry(&mut self, task: usize, to: usize) {
        let from = self.assignment[task] as usize;
        for (column, load) in self.loads[from].iter_mut().enumerate() {
            *load -= self.vectors.weights[column][task];
        }
        self.held[from].remove(&task);
        self.ratios[from] = self.ratio(from, |_| 0);
        self.put(task, to);
    }

    /// The rank with the largest ratio, the lowest of those; and the ratio.
    fn slowest(&self) -> (usize, f64) {
        let ratios = self.ratios.iter().copied().enumerate();
        ratios.fold((0, 0.0), |worst, (rank, ratio)| if ratio > worst.1 { (rank, ratio) } else { worst })
    }

    /// Steps until no ratio is above `enough`, or none helps.
    fn even_out(&mut self, enough: f64) {
        for _ in 0..STEPS_PER_TASK * self.assignment.len() {
            if self.slowest().1 <= enough || !self.improve() {
                break;
            }
        }
    }

    /// One move or swap after which the slowest rank and its partner have smaller ratios than the slowest had; `false` if there is none.
    fn improve(&mut self) -> bool {
        let (from, slowest) = self.slowest();
        let is_partner = |rank: &usize| self.vectors.powers[*rank] > 0 && self.ratios[*rank] < slowest;
        let mut partners: Vec<usize> = (0..self.ratios.len()).filter(is_partner).collect();
        // Of those that end equally well the one that has least.
        partners.sort_by(|a, b| self.ratios[*a].total_cmp(&self.ratios[*b]));
        let tasks: Vec<usize> = self.held[from].iter().copied().collect();
        let work = (partners.len() * tasks.len()) as u64;
        if self.looks < work {
            return false;
        }
        self.looks -= work;
        // Whatever leaves a rank without power helps.
        let left = |task: &usize| if self.vectors.powers[from] > 0 { self.without(from, *task) } else { 0.0 };
        let left: Vec<f64> = tasks.iter().map(left).collect();
        let mut best: Option<(f64, usize, usize)> = None;
        for (task, left) in tasks.iter().zip(&left).filter(|(_, left)| **left < slowest) {
            for to in &partners {
                let ratio = left.max(self.with(*to, *task));
                if ratio < slowest && best.is_none_or(|(least, ..)| ratio < least) {
                    best = Some((ratio, *task, *to));
                }
            }
        }
        if let Some((_, task, to)) = best {
            self.carry(task, to);
            return true;
        }
        self.swap(from, slowest, &partners, &tasks)
    }

    fn swap(&mut self, from: usize, slowest: f64, partners: &[usize], tasks: &[usize]) -> bool {
        let mut best: Option<(f64, usize, usize, usize)> = None;
        for to in partners {
            let work = (self.held[*to].len() * tasks.len()) as u64;
            if self.looks < work {
                break;
            }
            self.looks -= work;
            for task in tasks {
                for other in &self.held[*to] {
                    let here = self.exchanged(from, *other, *task);
                    if here >= slowest || best.is_some_and(|(least, ..)| here >= least) {
                        continue;
                    }
                    let ratio = here.max(self.exchanged(*to, *task, *other));
                    if ratio < slowest && best.is_none_or(|(least, ..)| ratio < least) {
                        best = Some((ratio, *task, *other, *to));
                    }
                }
            }
        }
        let Some((_, task, other, to)) = best else { return false };
        self.carry(task, to);
        self.carry(other, from);
        true
    }

    /// Tasks go back to their owners, the largest first, where no ratio comes above the limit by that.
    fn settle(&mut self, limit: f64) {
        let sizes = self.vectors.sizes();
        let mut away: Vec<usize> = (0..sizes.len()).filter(|task| self.assignment[*task] != self.vectors.owners[*task]).collect();
        away.sort_by(|a, b| sizes[*b].total_cmp(&sizes[*a]));
        loop {
            let before = away.len();
            away.retain(|task| {
                let home = self.vectors.owners[*task] as usize;
                let fits = self.vectors.powers[home] > 0 && self.with(home, *task) <= limit;
                if fits {
                    self.carry(*task, home);
                }
                !fits
            });
            if away.len() == before {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least of the largest ratio over all assignments, by trying them.
    fn optimum(vectors: &Vectors<'_>) -> f64 {
        let (ranks, tasks) = (vectors.powers.len() as u64, vectors.owners.len() as u32);
        let assignment = |number: u64| -> Assignment { (0..tasks).map(|task| (number / ranks.pow(task) % ranks) as u32).collect() };
        (0..ranks.pow(tasks)).map(|number| by_definition(vectors, &assignment(number))).fold(f64::INFINITY, f64::min)
    }

    /// The largest of the ratios, word by word.
    fn by_definition(vectors: &Vectors<'_>, assignment: &[u32]) -> f64 {
        let powers: u64 = vectors.powers.iter().sum();
        let mut largest: f64 = 0.0;
        for (weights, fixed) in vectors.weights.iter().zip(vectors.fixed) {
            let total: u64 = weights.iter().chain(fixed).sum();
            for (rank, power) in vectors.powers.iter().enumerate() {
                let load: u64 = weights.iter().zip(assignment).filter(|(_, on)| **on as usize == rank).map(|(weight, _)| weight).sum();
                let share = total as f64 * *power as f64 / powers as f64;
                if total > 0 {
                    largest = largest.max((load + fixed[rank]) as f64 / share);
                }
            }
        }
        largest
    }

    #[test]
    fn what_is_even_in_one_column_is_evened_in_the_other() {
        // Work is even at first, memory is all on rank 0.
        let weights = [vec![4, 4, 4, 4], vec![6, 6, 0, 0]];
        let vectors = Vectors { weights: &weights, fixed: &[vec![0; 2], vec![0; 2]], owners: &[0, 0, 1, 1], powers: &[1, 1] };
        assert_eq!(vectors.ratio(vectors.owners), 2.0);
        for assignment in [greedy(&vectors), refine(&vectors, 1.0), greedy_refine(&vectors, 1.0)] {
            assert_eq!(by_definition(&vectors, &assignment), 1.0, "{assignment:?}");
        }
        // One task of each kind goes, and nothing else.
        let changed = |assignment: &Assignment| assignment.iter().zip(vectors.owners).filter(|(rank, owner)| rank != owner).count();
        assert_eq!((changed(&refine(&vectors, 1.0)), changed(&refine(&vectors, 2.0))), (2, 0));
    }

    #[test]
    fn nothing_stays_on_a_rank_without_power() {
        let weights = [vec![2, 2], vec![0, 1]];
        let vectors = Vectors { weights: &weights, fixed: &[vec![0; 3], vec![0; 3]], owners: &[0, 0], powers: &[0, 1, 1] };
        for mut assignment in [greedy(&vectors), refine(&vectors, 1.0)] {
            assignment.sort_unstable();
            assert_eq!(assignment, [1, 2]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn all_are_near_the_optimum_and_refinement_makes_nothing_worse(
            tasks in prop::collection::vec((1u64..40, 0u64..40, 0u32..3), 1..8),
            fixed in prop::collection::vec((0u64..20, 0u64..20), 3),
            powers in prop::collection::vec(1u64..4, 3),
        ) {
            let weights = [tasks.iter().map(|task| task.0).collect(), tasks.iter().map(|task| task.1).collect()];
            let fixed = [fixed.iter().map(|fixed| fixed.0).collect(), fixed.iter().map(|fixed| fixed.1).collect()];
            let owners: Vec<u32> = tasks.iter().map(|task| task.2).collect();
            let vectors = Vectors { weights: &weights, fixed: &fixed, owners: &owners, powers: &powers };
            let before = by_definition(&vectors, &owners);
            prop_assert!((vectors.ratio(&owners) - before).abs() < 1e-9);
            for assignment in [refine(&vectors, 1.0), greedy_refine(&vectors, 1.0)] {
                let after = by_definition(&vectors, &assignment);
                prop_assert!(after <= before + 1e-9, "{} after {}", after, before);
            }
            let equal = Vectors { powers: &[1, 1, 1], ..vectors };
            let best = optimum(&equal);
            for assignment in [greedy(&equal), greedy_refine(&equal, 1.0)] {
                let after = by_definition(&equal, &assignment);
                prop_assert!(after <= 3.0 * best + 1e-9, "{} against {}", after, best);
            }
            // The tolerance counts from the best of these, before less movement is looked for, which may come upon something better.
            let best = by_definition(&vectors, &refine(&vectors, 1.0)).min(by_definition(&vectors, &greedy(&vectors)));
            let loose = by_definition(&vectors, &greedy_refine(&vectors, 1.5));
            prop_assert!(loose <= 1.5 * best + 1e-9, "{} against {}", loose, best);
        }
    }
}
