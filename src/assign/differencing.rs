//! The largest differencing method (N. Karmarkar and R. M. Karp, The differencing method of set partitioning, UCB/CSD 82/113, 1982) for m sets:
//! two partial partitions are put together so that the heavy sets of one meet the light sets of the other, until one is left.
//!
//! On equal ranks it is seldom worse than longest task first, and far better where many tasks are alike in size: the difference between the heaviest
//! and the lightest set falls as n^(-c log n) on average for two sets (Yakir 1996).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::matching::matched;
use super::{Assignment, Problem, greedy, refine};

/// Sets of tasks, at most one per rank, without empty ones, the heaviest first.
struct Partition(Vec<Set>);

struct Set {
    work: u64,
    tasks: Vec<usize>,
}

impl Partition {
    /// Weight of the heaviest set minus that of the lightest.
    fn difference(&self, ranks: usize) -> u64 {
        let lightest = if self.0.len() < ranks { 0 } else { self.0.last().map_or(0, |set| set.work) };
        self.0.first().map_or(0, |set| set.work) - lightest
    }

    /// Both as one: the heaviest set of one and the lightest of the other become one set, and so on.
    fn with(self, other: Partition, ranks: usize) -> Partition {
        let (mut sets, mut others) = (self.0, other.0);
        // If both fit next to each other, only empty sets are paired.
        while sets.len() + others.len() > ranks {
            let Some(mut light) = others.pop() else { break };
            // Its partner is the one that lies as far from the front as it lies from the end.
            let partner = &mut sets[ranks - 1 - others.len()];
            if partner.tasks.len() < light.tasks.len() {
                std::mem::swap(&mut partner.tasks, &mut light.tasks);
            }
            partner.work += light.work;
            partner.tasks.append(&mut light.tasks);
        }
        sets.append(&mut others);
        sets.sort_by_key(|set| Reverse(set.work));
        Partition(sets)
    }
}

/// Assigns every task anew. The sets are matched with ranks so that most work stays where it is.
///
/// Equal ranks without fixed work only; on others it is [longest task first](super::greedy) and then [`refine`](super::refine).
/// O(n m log m) for n tasks on m ranks at most, and the matching's O(m^3) for up to 256 ranks.
pub fn differencing(problem: &Problem<'_>) -> Assignment {
    if !problem.is_uniform() {
        let assignment = greedy(problem);
        return refine(&Problem { owners: &assignment, ..*problem });
    }
    let sets = partition(problem.weights, problem.ranks());
    let mut assignment = problem.owners.to_vec();
    for (set, rank) in sets.iter().zip(matched(problem, &sets)) {
        set.iter().for_each(|task| assignment[*task] = rank);
    }
    assignment
}

/// The tasks of each set.
fn partition(weights: &[u64], ranks: usize) -> Vec<Vec<usize>> {
    let mut partitions: Vec<Option<Partition>> = Vec::with_capacity(2 * weights.len());
    // The largest difference first; among equal ones the older.
    let mut largest = BinaryHeap::with_capacity(weights.len());
    for (task, weight) in weights.iter().enumerate() {
        largest.push((*weight, Reverse(task)));
        partitions.push(Some(Partition(vec![Set { work: *weight, tasks: vec![task] }])));
    }
    while let (Some((_, Reverse(one))), Some((_, Reverse(other)))) = (largest.pop(), largest.peek().copied()) {
        largest.pop();
        let (Some(one), Some(other)) = (partitions[one].take(), partitions[other].take()) else { break };
        let both = one.with(other, ranks);
        largest.push((both.difference(ranks), Reverse(partitions.len())));
        partitions.push(Some(both));
    }
    let last = partitions.pop().flatten().map_or(Vec::new(), |partition| partition.0);
    last.into_iter().map(|set| set.tasks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums(weights: &[u64], ranks: usize) -> Vec<u64> {
        let mut sums: Vec<u64> = partition(weights, ranks).iter().map(|set| set.iter().map(|task| weights[*task]).sum()).collect();
        sums.resize(ranks, 0);
        sums.sort_unstable();
        sums
    }

    /// The method word by word: whole tuples of sums, empty sets included.
    fn by_definition(weights: &[u64], ranks: usize) -> Vec<u64> {
        let tuple = |weight: &u64| (0..ranks).map(|at| if at == ranks - 1 { *weight } else { 0 }).collect::<Vec<u64>>();
        let mut all: Vec<(usize, Vec<u64>)> = weights.iter().map(tuple).enumerate().collect();
        let mut next = all.len();
        while all.len() > 1 {
            all.sort_by_key(|(number, sums)| (Reverse(sums[ranks - 1] - sums[0]), *number));
            let (one, other) = (all.remove(0).1, all.remove(0).1);
            let mut both: Vec<u64> = one.iter().zip(other.iter().rev()).map(|(a, b)| a + b).collect();
            both.sort_unstable();
            all.push((next, both));
            next += 1;
        }
        all.pop().map_or(vec![0; ranks], |(_, sums)| sums)
    }

    #[test]
    fn the_example_that_everybody_uses() {
        // 8, 7, 6, 5, 4 in two sets: differences 1, 6, 5, 4; 1, 1, 4 .. and 16 against 14.
        assert_eq!(sums(&[8, 7, 6, 5, 4], 2), [14, 16]);
        // In three sets the optimum.
        assert_eq!(sums(&[8, 7, 6, 5, 4], 3), [8, 11, 11]);
        assert_eq!(sums(&[], 3), [0, 0, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn is_as_by_definition(weights in prop::collection::vec(0u64..1000, 0..40), ranks in 1usize..9) {
            let (ours, theirs) = (sums(&weights, ranks), by_definition(&weights, ranks));
            prop_assert_eq!(ours.iter().sum::<u64>(), weights.iter().sum::<u64>());
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn every_task_goes_somewhere_and_most_work_stays(weights in prop::collection::vec(0u64..50, 0..30), ranks in 1usize..6) {
            let owners: Vec<u32> = (0..weights.len()).map(|task| (task % ranks) as u32).collect();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &vec![0; ranks], powers: &vec![1; ranks] };
            let assignment = differencing(&problem);
            let mut loads = problem.loads(&assignment);
            loads.sort_unstable();
            prop_assert_eq!(loads, sums(&weights, ranks));
            // Of all ways to name the sets none moves less: ranks in any order.
            for shift in 1..ranks as u32 {
                let renamed: Vec<u32> = assignment.iter().map(|rank| (rank + shift) % ranks as u32).collect();
                prop_assert!(problem.moved(&assignment) <= problem.moved(&renamed));
            }
        }
    }
}
