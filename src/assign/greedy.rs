//! Longest task first (R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17, 1969): the heaviest task that is left goes
//! to the rank that is done with it first.
//!
//! Guarantee on equal ranks: at most 4/3 - 1/(3 m) of the optimum's time (theorem 2 there). On ranks of different power: at most 2 - 2/(m + 1)
//! (Gonzalez, Ibarra and Sahni 1977).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Assignment, Problem};
use crate::load::RankTime;

/// Assigns every task anew, the heaviest first. Among ranks that are done at the same time the task's owner comes first, then the lowest.
///
/// O(n log n + n (c + log m)) for n tasks on m ranks with c different powers.
pub fn greedy(problem: &Problem<'_>) -> Assignment {
    // Of ranks with the same power only the one with the least work can be the first.
    let mut by_power: BTreeMap<u64, BinaryHeap<Reverse<(u64, u32)>>> = BTreeMap::new();
    let mut loads = problem.fixed.to_vec();
    for (rank, power) in (0..).zip(problem.powers).filter(|(_, power)| **power > 0) {
        by_power.entry(*power).or_default().push(Reverse((loads[rank as usize], rank)));
    }
    let mut assignment = problem.owners.to_vec();
    for task in problem.heaviest_first() {
        let (weight, owner) = (problem.weights[task], problem.owners[task]);
        let end = |rank: u32, loads: &[u64]| RankTime { work: loads[rank as usize] + weight, power: problem.powers[rank as usize] };
        let first = by_power.values_mut().filter_map(|heap| least_loaded(heap, &loads)).min_by_key(|rank| (end(*rank, &loads), *rank));
        let Some(first) = first else { break };
        let stays = problem.powers[owner as usize] > 0 && end(owner, &loads) <= end(first, &loads);
        let rank = if stays { owner } else { first };
        loads[rank as usize] += weight;
        if let Some(heap) = by_power.get_mut(&problem.powers[rank as usize]) {
            heap.push(Reverse((loads[rank as usize], rank)));
        }
        assignment[task] = rank;
    }
    assignment
}

/// The rank with the least work. Entries that are out of date go.
fn least_loaded(heap: &mut BinaryHeap<Reverse<(u64, u32)>>, loads: &[u64]) -> Option<u32> {
    while let Some(Reverse((load, rank))) = heap.peek().copied() {
        if loads[rank as usize] == load {
            return Some(rank);
        }
        heap.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::{optimum, seconds};
    use super::*;
    use proptest::prelude::*;

    /// The rule word by word: all ranks are looked at for every task.
    fn by_definition(problem: &Problem<'_>) -> Vec<u64> {
        let mut weights = problem.weights.to_vec();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let mut loads = problem.fixed.to_vec();
        for weight in weights {
            let end = |rank: &usize| problem.time(*rank, loads[*rank] + weight);
            let first = (0..loads.len()).filter(|rank| problem.powers[*rank] > 0).min_by_key(end).unwrap();
            loads[first] += weight;
        }
        loads
    }

    #[test]
    fn the_worst_case_of_graham() {
        // Theorem 2: 2m - 1, 2m - 1, 2m - 2, 2m - 2, .., m + 1, m + 1, m, m, m on m ranks take 4m - 1, the optimum 3m.
        let problem = Problem { weights: &[5, 5, 4, 4, 3, 3, 3], owners: &[0; 7], fixed: &[0; 3], powers: &[1; 3] };
        assert_eq!(problem.slowest(&problem.loads(&greedy(&problem))), RankTime { work: 11, power: 1 });
        assert_eq!(optimum(&problem), RankTime { work: 9, power: 1 });
    }

    #[test]
    fn nothing_goes_to_a_rank_without_power() {
        let problem = Problem { weights: &[2, 2], owners: &[0, 0], fixed: &[0, 0, 0], powers: &[0, 1, 1] };
        assert_eq!(problem.loads(&greedy(&problem)), [0, 2, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn is_as_by_definition_on_equal_ranks(weights in prop::collection::vec(0u64..100, 0..60), ranks in 1usize..9) {
            let owners: Vec<u32> = (0..weights.len()).map(|task| (task % ranks) as u32).collect();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &vec![0; ranks], powers: &vec![3; ranks] };
            let (mut ours, mut theirs) = (problem.loads(&greedy(&problem)), by_definition(&problem));
            ours.sort_unstable();
            theirs.sort_unstable();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn keeps_its_bound(weights in prop::collection::vec(1u64..30, 1..7), powers in prop::collection::vec(1u64..5, 1..4)) {
            let owners = vec![0; weights.len()];
            let problem = Problem { weights: &weights, owners: &owners, fixed: &vec![0; powers.len()], powers: &powers };
            let (time, best) = (problem.slowest(&problem.loads(&greedy(&problem))), optimum(&problem));
            let ranks = powers.len() as f64;
            let bound = if powers.iter().all(|power| *power == powers[0]) { 4.0 / 3.0 - 1.0 / (3.0 * ranks) } else { 2.0 - 2.0 / (ranks + 1.0) };
            prop_assert!(seconds(time) <= bound * seconds(best) + 1e-9, "{:?} {:?}", time, best);
        }
    }
}
