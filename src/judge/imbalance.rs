//! Imbalance of loads, and the speedup that even loads give.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::load::RankTime;
use crate::topology::Placement;

/// The three figures that the field calls imbalance. With powers, a load counts relative to its power: "max" is the largest load over
/// power, and "mean" all load over all power.
///
/// Loads that sum to zero are even: 1, 0, 1. A node of power 0 that holds tasks never finishes: the first two figures are infinite (null in
/// JSON), the third is 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    /// At least 1; 1 is even. How many times longer than ideal it takes.
    pub max_over_mean: f64,
    /// At least 0; 0 is even. The part of time above the ideal.
    pub max_over_mean_less_one: f64,
    /// In 0..=1; 1 is even. The efficiency: the part of the time that ranks are busy.
    pub mean_over_max: f64,
}

/// The imbalance of loads with powers, both by rank (or both by node).
pub fn imbalance(loads: &[u64], powers: &[u64]) -> Imbalance {
    let mean = total(loads) as f64 / loads.len().max(1) as f64;
    if mean == 0.0 {
        return Imbalance { max_over_mean: 1.0, max_over_mean_less_one: 0.0, mean_over_max: 1.0 };
    }
    // Rounding must not make even loads better than even.
    let max_over_mean = (finish(loads, powers) / mean).max(1.0);
    Imbalance { max_over_mean, max_over_mean_less_one: max_over_mean - 1.0, mean_over_max: 1.0 / max_over_mean }
}

/// Time at which the slowest rank has done its load, in units of the time that a rank of mean power takes for one task. With equal powers: the
/// largest load. Infinite if a rank of power 0 holds tasks.
pub fn finish(loads: &[u64], powers: &[u64]) -> f64 {
    let slowest = loads.iter().zip(powers).map(|(load, power)| RankTime { work: *load, power: *power }).max();
    slowest.map_or(0.0, |time| MeanPower::of(powers).in_tasks(time))
}

/// Time at which each rank has done its load, in the units of [`finish`].
pub fn finishes(loads: &[u64], powers: &[u64]) -> Vec<f64> {
    let mean = MeanPower::of(powers);
    loads.iter().zip(powers).map(|(load, power)| mean.in_tasks(RankTime { work: *load, power: *power })).collect()
}

/// Lower bound on max/mean (see [`Imbalance`]) for whole tasks with `total` units of work together, the largest of which has `largest`
/// units, with `pinned` units on each rank: all work over all power, in whole units, the largest task on the fastest rank, and pinned work
/// in place.
pub fn bound(total: u64, largest: u64, pinned: &[u64], powers: &[u64]) -> f64 {
    let mean = total as f64 / powers.len().max(1) as f64;
    if total == 0 {
        return 1.0;
    }
    let fastest = powers.iter().copied().max().unwrap_or(0);
    let largest = MeanPower::of(powers).in_tasks(RankTime { work: largest, power: fastest });
    let least = least_finish(total, powers).max(largest).max(finish(pinned, powers));
    (least / mean).max(1.0)
}

/// The earliest finish (see [`finish`]) that any distribution of `total` whole tasks has. With equal powers: the mean, rounded up.
pub fn least_finish(total: u64, powers: &[u64]) -> f64 {
    let sum: u128 = powers.iter().map(|power| u128::from(*power)).sum();
    if total == 0 || sum == 0 {
        return if total == 0 { 0.0 } else { f64::INFINITY };
    }
    // No rank finishes earlier than with the floor of its exact share. What rounding leaves, fewer tasks than ranks, goes where the next
    // task would be done first. A product beyond 128 bits is impossible: both factors have 64, since powers sum to less than 2^64.
    let floor = |power: u64| (u128::from(total) * u128::from(power) / sum) as u64;
    let shares: Vec<RankTime> = powers.iter().map(|power| RankTime { work: floor(*power), power: *power }).collect();
    let left = total - shares.iter().map(|share| share.work).sum::<u64>();
    let mut slowest = shares.iter().copied().max();
    let more = |share: &RankTime| Reverse(RankTime { work: share.work.saturating_add(1), power: share.power });
    if left > 0 {
        let mut next: BinaryHeap<Reverse<RankTime>> = shares.iter().filter(|share| share.power > 0).map(more).collect();
        for _ in 0..left {
            let Some(Reverse(share)) = next.pop() else { break };
            next.push(more(&share));
            slowest = Some(share);
        }
    }
    slowest.map_or(0.0, |time| MeanPower::of(powers).in_tasks(time))
}

/// Ticks that a task must last, on a rank of mean power, for a phase to pay: `phase_ticks` is the duration of the phase, the finishes (see
/// [`finish`], and [`makespan`](super::makespan) where ranks share cores) are those before and after it. Nothing if the phase made nothing better,
/// however long the tasks.
pub fn break_even_task_ticks(phase_ticks: u64, finish_before: f64, finish_after: f64) -> Option<f64> {
    // Sums of the same times in another order differ in their last digits.
    (finish_before > finish_after * (1.0 + 1e-9)).then(|| phase_ticks as f64 / (finish_before - finish_after))
}

/// Sums values of nodes (loads, powers) over the nodes that each rank hosts: a virtual node's tasks count for its host.
pub fn by_rank(by_node: &[u64], placement: &Placement) -> Vec<u64> {
    let mut by_rank = vec![0; placement.ranks() as usize];
    for (node, value) in by_node.iter().enumerate() {
        by_rank[placement.rank_of(node as u32).index()] += value;
    }
    by_rank
}

/// The mean of powers, as a fraction.
struct MeanPower {
    total: u128,
    ranks: u128,
}

impl MeanPower {
    fn of(powers: &[u64]) -> MeanPower {
        MeanPower { total: total(powers), ranks: powers.len() as u128 }
    }

    /// A rank's time, in tasks on the mean power. Multiplied in integers, so that equal times come out equal.
    fn in_tasks(&self, time: RankTime) -> f64 {
        let above = u128::from(time.work).saturating_mul(self.total);
        let below = u128::from(time.power) * self.ranks;
        match time {
            _ if time.is_endless() => f64::INFINITY,
            RankTime { work: 0, .. } => 0.0,
            _ => above as f64 / below as f64,
        }
    }
}

fn total(values: &[u64]) -> u128 {
    values.iter().map(|value| u128::from(*value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Powers, Quota};
    use proptest::prelude::*;

    /// Powers are summed once: a sum for each of a million ranks would take an hour.
    #[test]
    fn no_assignment_of_whole_tasks_is_below_the_bound() {
        assert_eq!(bound(16, 6, &[0, 0], &[1, 1]), 1.0);
        assert_eq!(bound(16, 12, &[0, 0], &[1, 1]), 1.5, "the largest task");
        assert_eq!(bound(16, 12, &[0, 0], &[1, 3]), 1.0, "which the faster rank takes");
        assert_eq!(bound(16, 1, &[14, 0], &[1, 1]), 1.75, "what is pinned");
        assert_eq!(bound(3, 1, &[0, 0], &[1, 1]), 4.0 / 3.0, "whole units");
        assert_eq!(bound(0, 0, &[0, 0], &[1, 1]), 1.0);
        assert!(bound(5, 1, &[1, 0], &[0, 1]).is_infinite());
    }

    #[test]
    fn a_million_ranks_are_no_trouble() {
        let ends = finishes(&vec![3; 1_000_000], &vec![2; 1_000_000]);
        assert!(ends.len() == 1_000_000 && ends.iter().all(|end| *end == 3.0));
    }

    fn figures(loads: &[u64], powers: &[u64]) -> (f64, f64, f64) {
        let Imbalance { max_over_mean, max_over_mean_less_one, mean_over_max } = imbalance(loads, powers);
        (max_over_mean, max_over_mean_less_one, mean_over_max)
    }

    #[test]
    fn three_figures_by_their_names() {
        assert_eq!(figures(&[4, 0, 2, 2], &[1; 4]), (2.0, 1.0, 0.5));
        assert_eq!(figures(&[3, 3, 3], &[1; 3]), (1.0, 0.0, 1.0));
        assert_eq!(figures(&[0, 0], &[1, 1]), (1.0, 0.0, 1.0));
        assert_eq!(figures(&[], &[]), (1.0, 0.0, 1.0));
        // In proportion to the powers is even; 6 tasks on power 1 of 3 take three times the ideal.
        assert_eq!(figures(&[2, 4], &[1, 2]), (1.0, 0.0, 1.0));
        assert_eq!(figures(&[6, 0], &[1, 2]), (3.0, 2.0, 1.0 / 3.0));
        assert_eq!(figures(&[1, 5], &[0, 2]), (f64::INFINITY, f64::INFINITY, 0.0));
        assert_eq!(figures(&[0, 5], &[0, 2]), (1.0, 0.0, 1.0));
    }

    #[test]
    fn the_slowest_rank_decides() {
        assert_eq!(finish(&[19, 11, 2], &[1; 3]), 19.0);
        assert_eq!(finish(&[6, 0], &[1, 2]), 9.0);
        assert_eq!(finish(&[0, 0], &[1, 2]), 0.0);
        assert_eq!(finish(&[1, 0], &[0, 2]), f64::INFINITY);
        assert_eq!(finish(&[1], &[0]), f64::INFINITY);
        assert_eq!(finishes(&[6, 0, 3], &[1, 2, 0]), [6.0, 0.0, f64::INFINITY]);
        assert_eq!(least_finish(41, &[1; 9]), 5.0);
        assert_eq!(least_finish(40, &[1; 8]), 5.0);
        assert_eq!(least_finish(0, &[1, 2]), 0.0);
        // One task goes to the faster of two ranks (mean power 1.5): 1 / 2 * 1.5.
        assert_eq!(least_finish(1, &[1, 2]), 0.75);
        assert_eq!(least_finish(1, &[0, 0]), f64::INFINITY);
        assert_eq!(least_finish(u64::MAX, &[u64::MAX / 2, 0]), u64::MAX as f64 / 2.0);
    }

    #[test]
    fn a_phase_pays_from_some_length_of_task_on() {
        assert_eq!(break_even_task_ticks(900, 19.0, 10.0), Some(100.0));
        assert_eq!(break_even_task_ticks(0, 19.0, 10.0), Some(0.0));
        assert_eq!(break_even_task_ticks(900, 10.0, 10.0), None);
        assert_eq!(break_even_task_ticks(900, 10.0, 11.0), None);
        assert_eq!(break_even_task_ticks(900, f64::INFINITY, 11.0), Some(0.0));
        assert_eq!(break_even_task_ticks(900, f64::INFINITY, f64::INFINITY), None);
    }

    #[test]
    fn a_virtual_nodes_tasks_count_for_its_host() {
        let placement = Placement::one_host(8, 3).unwrap();
        assert_eq!(by_rank(&[1, 2, 3, 10, 20, 30, 100, 200], &placement), [111, 222, 33]);
    }

    proptest! {
        #[test]
        fn nothing_finishes_before_the_least(ranks in prop::collection::vec((0u64..6, 0u64..30), 1..7)) {
            let (powers, loads): (Vec<u64>, Vec<u64>) = ranks.into_iter().unzip();
            prop_assume!(powers.iter().any(|power| *power > 0));
            let total = loads.iter().sum();
            let least = least_finish(total, &powers);
            prop_assert!(least <= finish(&loads, &powers));
            let quota = Quota::proportional(total, &Powers::listed(powers.clone()).unwrap()).to_vec();
            prop_assert!(least <= finish(&quota, &powers));
            if powers.iter().all(|power| *power == powers[0]) {
                prop_assert_eq!(least, finish(&quota, &powers));
            }
        }

        #[test]
        fn the_least_finish_is_reached(powers in prop::collection::vec(0u64..5, 1..4), total in 0u64..9) {
            prop_assume!(powers.iter().any(|power| *power > 0));
            // All distributions of the tasks, one by one.
            let mut best = f64::INFINITY;
            let mut loads = vec![0; powers.len()];
            loop {
                if loads.iter().sum::<u64>() == total {
                    best = best.min(finish(&loads, &powers));
                }
                let Some(digit) = loads.iter().position(|load| *load < total) else { break };
                loads[digit] += 1;
                loads[..digit].fill(0);
            }
            prop_assert_eq!(least_finish(total, &powers), best);
        }
    }
}
