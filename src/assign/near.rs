//! Placement of communicating tasks together, with no rank above a time limit.
//!
//! Passes over the tasks, after C. M. Fiduccia and R. M. Mattheyses (A linear-time heuristic for improving network partitions, 1982),
//! without their worsening steps. A task goes to the rank with which it communicates most if that has time. Otherwise it changes places
//! with a task there, if both together then communicate less with other ranks. Communication between ranks falls with every step, so this
//! ends, at an optimum of such steps. It is no partitioner: for many tasks, where only their graph matters, METIS finds better partitions
//! ([`from_parts`](crate::balance::from_parts) carries these out).

use std::collections::BTreeMap;

use super::{Assignment, Problem};
use crate::load::RankTime;

/// Passes over all tasks, at most.
const PASSES: usize = 16;

/// Tasks that are tried for a change of places, at most, over all passes.
const LOOKS: usize = 1 << 24;

/// Communication of each task: with tasks that may move, and with tasks that stay on their ranks.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Communication of each task with tasks that may move: the other task, and bytes.
    pub tasks: Vec<Vec<(usize, f64)>>,
    /// Communication of each task with tasks that stay on their ranks: the rank, and bytes.
    pub ranks: Vec<Vec<(u32, f64)>>,
}

impl Neighbours {
    /// Bytes that a task exchanges with each rank.
    fn said(&self, task: usize, assignment: &[u32]) -> BTreeMap<u32, f64> {
        let mut said: BTreeMap<u32, f64> = BTreeMap::new();
        let to_tasks = self.tasks[task].iter().map(|(other, bytes)| (assignment[*other], *bytes));
        for (rank, bytes) in to_tasks.chain(self.ranks[task].iter().copied()) {
            *said.entry(rank).or_default() += bytes;
        }
        said
    }

    /// Bytes that two tasks exchange.
    fn between(&self, task: usize, other: usize) -> f64 {
        self.tasks[task].iter().filter(|(number, _)| *number == other).map(|(_, bytes)| bytes).sum()
    }

    /// Bytes that leave their rank.
    pub fn crossing(&self, assignment: &[u32]) -> f64 {
        let of_task = |task: usize| {
            let to_tasks =
                self.tasks[task].iter().filter(|(other, _)| assignment[*other] != assignment[task]).map(|(_, bytes)| bytes / 2.0);
            let to_ranks = self.ranks[task].iter().filter(|(rank, _)| *rank != assignment[task]).map(|(_, bytes)| *bytes);
            to_tasks.chain(to_ranks).sum::<f64>()
        };
        (0..self.tasks.len()).map(of_task).sum()
    }
}

/// Reduces the bytes between ranks of an assignment that is within a limit; the result is within the limit, too.
pub fn near(problem: &Problem<'_>, neighbours: &Neighbours, assignment: Assignment, limit: RankTime) -> Assignment {
    let (weights, mut assignment, mut looks) = (problem.weights, assignment, LOOKS);
    let mut loads = problem.loads(&assignment);
    let caps: Vec<u64> = problem.powers.iter().map(|power| limit.most_work(*power)).collect();
    for _ in 0..PASSES {
        let mut is_better = false;
        for task in 0..weights.len() {
            let from = assignment[task];
            let said = neighbours.said(task, &assignment);
            let at_home = said.get(&from).copied().unwrap_or(0.0);
            let mut others: Vec<(u32, f64)> = said.into_iter().filter(|(rank, bytes)| *rank != from && *bytes > at_home).collect();
            others.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            for (to, bytes) in others {
                if problem.powers[to as usize] == 0 {
                    continue;
                }
                let other = if loads[to as usize] + weights[task] <= caps[to as usize] {
                    None
                } else {
                    // Tasks that the rank can give in exchange.
                    let fits = |other: &usize| {
                        assignment[*other] == to
                            && loads[to as usize] - weights[*other] + weights[task] <= caps[to as usize]
                            && loads[from as usize] - weights[task] + weights[*other] <= caps[from as usize]
                    };
                    if looks < weights.len() {
                        continue;
                    }
                    looks -= weights.len();
                    let gain = |other: usize| {
                        let said = neighbours.said(other, &assignment);
                        let of = |rank: u32| said.get(&rank).copied().unwrap_or(0.0);
                        // Communication between the two crosses ranks before and after.
                        of(from) - of(to) + bytes - at_home - 2.0 * neighbours.between(task, other)
                    };
                    let best = (0..weights.len())
                        .filter(fits)
                        .map(|other| (gain(other), other))
                        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
                    match best {
                        Some((gain, other)) if gain > 0.0 => Some(other),
                        _ => continue,
                    }
                };
                let passes = other.map_or(0, |other| weights[other]);
                loads[from as usize] = loads[from as usize] - weights[task] + passes;
                loads[to as usize] = loads[to as usize] - passes + weights[task];
                assignment[task] = to;
                if let Some(other) = other {
                    assignment[other] = from;
                }
                is_better = true;
                break;
            }
        }
        if !is_better {
            break;
        }
    }
    assignment
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn neighbours(tasks: usize, links: &[(usize, usize, f64)]) -> Neighbours {
        let mut found = Neighbours { tasks: vec![Vec::new(); tasks], ranks: vec![Vec::new(); tasks] };
        for (a, b, bytes) in links {
            found.tasks[*a].push((*b, *bytes));
            found.tasks[*b].push((*a, *bytes));
        }
        found
    }

    #[test]
    fn pairs_come_together_by_changing_places() {
        // Each rank has one of two pairs; no rank has room for a third task.
        let problem = Problem { weights: &[1; 4], owners: &[0, 1, 0, 1], fixed: &[0, 0], powers: &[1, 1] };
        let talk = neighbours(4, &[(0, 1, 5.0), (2, 3, 7.0)]);
        let limit = RankTime { work: 2, power: 1 };
        let assignment = near(&problem, &talk, problem.owners.to_vec(), limit);
        assert_eq!((talk.crossing(problem.owners), talk.crossing(&assignment)), (12.0, 0.0), "{assignment:?}");
        assert_eq!(problem.loads(&assignment), [2, 2]);
        // With time, all could be on one rank; what stays elsewhere pulls.
        let mut pulled = neighbours(1, &[]);
        pulled.ranks[0].push((1, 3.0));
        let one = Problem { weights: &[1], owners: &[0], fixed: &[0, 0], powers: &[1, 1] };
        assert_eq!(near(&one, &pulled, vec![0], limit), [1]);
        let idle = Problem { powers: &[1, 0], ..one };
        assert_eq!(near(&idle, &pulled, vec![0], limit), [0], "a rank without power is not gone to");
    }

    proptest! {
        #[test]
        fn never_crosses_more_and_stays_within_the_limit(
            tasks in prop::collection::vec((1u64..20, 0u32..4), 2..24),
            links in prop::collection::vec((0usize..24, 0usize..24, 0u32..50), 0..60),
        ) {
            let (weights, owners): (Vec<u64>, Vec<u32>) = tasks.iter().copied().unzip();
            let n = weights.len();
            let links: Vec<(usize, usize, f64)> =
                links.iter().map(|(a, b, bytes)| (a % n, b % n, f64::from(*bytes))).filter(|(a, b, _)| a != b).collect();
            let talk = neighbours(n, &links);
            let problem = Problem { weights: &weights, owners: &owners, fixed: &[0, 3, 0, 0], powers: &[1, 1, 2, 1] };
            let limit = problem.slowest(&problem.loads(&owners));
            let assignment = near(&problem, &talk, owners.clone(), limit);
            prop_assert!(talk.crossing(&assignment) <= talk.crossing(&owners));
            prop_assert!(problem.slowest(&problem.loads(&assignment)) <= limit);
        }
    }
}
