//! Assignment of whole tasks to ranks, as plain functions: every weight and owner is known, nothing is sent.
//!
//! A rank's *time* is its work over its power, and a result is as good as its slowest rank is fast. Scheduling whole tasks is NP-hard
//! (number partitioning), so all of these are heuristics; each states what it guarantees.
//!
//! - [`greedy`](fn@greedy): longest task first (Graham 1969), from scratch.
//! - [`differencing`]: the largest differencing method of Karmarkar and Karp (1982), from scratch.
//! - [`chains`](fn@chains): contiguous pieces of an ordered list, optimally (Pinar and Aykanat 2004).
//! - [`bisection`] and [`along_curve`]: by places in space.
//! - [`refine`](fn@refine): moves and swaps from the current assignment, away from the slowest rank.
//! - [`hierarchical`](fn@hierarchical): refinement between hosts, longest task first within them.
//! - [`near`](fn@near): tasks that exchange much data are placed together.
//! - [`vectors`]: longest first and refinement for tasks with several weights.
//! - [`capacity`]: memory limits of ranks, and rounds of moves in which space is freed first.
//! - [`fewest`](fn@fewest): little movement within a given time of the slowest rank.
//! - [`greedy_refine`]: the result with the fewest moves among those that are good enough.

pub mod capacity;
mod chains;
mod differencing;
mod fewest;
mod geometry;
mod greedy;
mod greedy_refine;
mod hierarchical;
mod matching;
mod near;
mod refine;
pub mod vectors;

use crate::load::RankTime;

pub use chains::{chains, ordered_chains};
pub use differencing::differencing;
pub use fewest::fewest;
pub use geometry::{along_curve, bisection};
pub use greedy::greedy;
pub use greedy_refine::greedy_refine;
pub use hierarchical::hierarchical;
pub use near::{Neighbours, near};
pub use refine::{TOLERANCE, frugal_refine, local_refine, quick_refine, refine, refine_towards};

/// Tasks, ranks and the powers of the ranks. Ranks are places in these lists: those of one host are a problem, too, and so are whole hosts.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Work units of each task that may move.
    pub weights: &'a [u64],
    /// The rank that holds it now, by task.
    pub owners: &'a [u32],
    /// Work units that cannot move, by rank.
    pub fixed: &'a [u64],
    /// Power of each rank; not all 0.
    pub powers: &'a [u64],
}

/// The rank that each task goes to, by task.
pub type Assignment = Vec<u32>;

impl Problem<'_> {
    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.powers.len()
    }

    /// Work units of each rank under an assignment.
    pub fn loads(&self, assignment: &[u32]) -> Vec<u64> {
        let mut loads = self.fixed.to_vec();
        for (weight, rank) in self.weights.iter().zip(assignment) {
            loads[*rank as usize] += weight;
        }
        loads
    }

    /// Returns a rank's time with this amount of work.
    pub fn time(&self, rank: usize, work: u64) -> RankTime {
        RankTime { work, power: self.powers[rank] }
    }

    /// The time of the slowest rank with these loads.
    pub fn slowest(&self, loads: &[u64]) -> RankTime {
        let times = loads.iter().enumerate().map(|(rank, work)| self.time(rank, *work));
        times.max().unwrap_or(RankTime { work: 0, power: 1 })
    }

    /// Work units of the tasks that an assignment takes away from their owners.
    pub fn moved(&self, assignment: &[u32]) -> u64 {
        let tasks = self.weights.iter().zip(self.owners).zip(assignment);
        tasks.filter(|((_, owner), rank)| owner != rank).map(|((weight, _), _)| weight).sum()
    }

    /// Returns true if all ranks have the same power, and nothing is fixed.
    fn is_uniform(&self) -> bool {
        self.powers.iter().all(|power| *power == self.powers[0]) && self.fixed.iter().all(|work| *work == 0)
    }

    /// Tasks by weight, the heaviest first; equal ones in their order.
    fn heaviest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.weights.len()).collect();
        order.sort_by_key(|task| std::cmp::Reverse(self.weights[*task]));
        order
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// The least time of the slowest rank over all assignments, by trying them.
    pub fn optimum(problem: &Problem<'_>) -> RankTime {
        let ranks = problem.ranks() as u64;
        let all = ranks.pow(problem.weights.len() as u32);
        let assignment = |number: u64| -> Assignment {
            (0..problem.weights.len() as u32).map(|task| (number / ranks.pow(task) % ranks) as u32).collect()
        };
        (0..all).map(|number| problem.slowest(&problem.loads(&assignment(number)))).min().unwrap()
    }

    /// A time as a number.
    pub fn seconds(time: RankTime) -> f64 {
        if time.work == 0 { 0.0 } else { time.work as f64 / time.power as f64 }
    }
}
