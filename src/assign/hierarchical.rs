//! Two levels: hosts first, then the ranks of each host.
//!
//! Between hosts tasks are dear to move, so [`refine`](super::refine) decides there, with a host as one rank that has the powers of all of its ranks. Within a host they are
//! cheap, so longest task first ([`greedy`](super::greedy)) deals them out to its ranks, whoever had them.
//!
//! Source: the tree of Charm++'s hybrid balancer (G. Zheng, A. Bhatelé, E. Meneses, L. V. Kalé, Periodic hierarchical load balancing for large supercomputers, Int. J. High
//! Perform. Comput. Appl. 25, 2011), of two levels.

use super::{Assignment, Problem, frugal_refine, greedy};
use crate::topology::HostId;

/// Assigns tasks to hosts with little movement between these, within `tolerance` (at least 1) of the best time found for hosts, and then to their ranks.
///
/// `hosts` has the host of each rank, numbered from 0. A rank without power gets nothing while another rank of its host has some.
pub fn hierarchical(problem: &Problem<'_>, hosts: &[HostId], tolerance: f64) -> Assignment {
    let count = hosts.iter().max().map_or(0, |last| last.index() + 1);
    let mut ranks_of = vec![Vec::new(); count];
    for (rank, host) in (0u32..).zip(hosts) {
        ranks_of[host.index()].push(rank);
    }
    let sums = |values: &[u64]| -> Vec<u64> {
        let sum = |ranks: &Vec<u32>| ranks.iter().map(|rank| values[*rank as usize]).fold(0, u64::saturating_add);
        ranks_of.iter().map(sum).collect()
    };
    let (powers, fixed) = (sums(problem.powers), sums(problem.fixed));
    let holders: Vec<u32> = problem.owners.iter().map(|rank| hosts[*rank as usize].get()).collect();
    let of_hosts = Problem { weights: problem.weights, owners: &holders, fixed: &fixed, powers: &powers };
    let host_of_task = frugal_refine(&of_hosts, tolerance);

    let mut tasks_of = vec![Vec::new(); count];
    for (task, host) in host_of_task.iter().enumerate() {
        tasks_of[*host as usize].push(task);
    }
    let mut assignment = problem.owners.to_vec();
    for (host, (ranks, tasks)) in ranks_of.iter().zip(&tasks_of).enumerate() {
        if powers[host] == 0 {
            // Nothing came, and what is here finds no rank that works on it.
            continue;
        }
        let place_of = |rank: u32| ranks.binary_search(&rank).ok().map(|at| at as u32);
        let of = |values: &[u64]| -> Vec<u64> { ranks.iter().map(|rank| values[*rank as usize]).collect() };
        // A task from another host has no owner here; it counts as the first rank's.
        let owners: Vec<u32> = tasks.iter().map(|task| place_of(problem.owners[*task]).unwrap_or(0)).collect();
        let weights: Vec<u64> = tasks.iter().map(|task| problem.weights[*task]).collect();
        let (fixed, powers) = (of(problem.fixed), of(problem.powers));
        let within = greedy(&Problem { weights: &weights, owners: &owners, fixed: &fixed, powers: &powers });
        for (task, at) in tasks.iter().zip(within) {
            assignment[*task] = ranks[at as usize];
        }
    }
    assignment
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Work units of the tasks that change their host.
    fn between(problem: &Problem<'_>, hosts: &[HostId], assignment: &[u32]) -> u64 {
        let host = |rank: u32| hosts[rank as usize];
        let tasks = problem.weights.iter().zip(problem.owners).zip(assignment);
        tasks.filter(|((_, owner), rank)| host(**owner) != host(**rank)).map(|((weight, _), _)| weight).sum()
    }

    #[test]
    fn only_what_a_host_has_too_much_leaves_it() {
        // Rank 0 has all of its host's work, and the hosts are nearly even.
        let weights = [4, 4, 4, 4, 4, 3, 3, 3, 3];
        let owners = [0, 0, 0, 0, 0, 2, 2, 3, 3];
        let problem = Problem { weights: &weights, owners: &owners, fixed: &[0; 4], powers: &[1; 4] };
        let hosts = [0, 0, 1, 1].map(HostId::new);
        let assignment = hierarchical(&problem, &hosts, 1.0);
        assert_eq!(between(&problem, &hosts, &assignment), 4, "20 and 12 become 16 and 16: {assignment:?}");
        assert_eq!(problem.loads(&assignment), [8, 8, 7, 9]);
        // One host: longest task first. A host for each rank: refinement.
        assert_eq!(hierarchical(&problem, &[HostId::FIRST; 4], 1.0), greedy(&problem));
        assert_eq!(hierarchical(&problem, &[0, 1, 2, 3].map(HostId::new), 1.0), frugal_refine(&problem, 1.0));
    }

    #[test]
    fn ranks_and_hosts_without_power_get_nothing() {
        let problem = Problem { weights: &[5, 5, 5, 5], owners: &[0, 0, 1, 3], fixed: &[0; 4], powers: &[0, 2, 0, 0] };
        assert_eq!(hierarchical(&problem, &[0, 0, 1, 1].map(HostId::new), 1.0), [1; 4]);
    }

    proptest! {
        #[test]
        fn ends_near_the_mean_and_moves_less_between_hosts_than_longest_first(
            weights in prop::collection::vec(1u64..100, 60..120),
            first in prop::collection::vec(0u32..8, 120),
        ) {
            let hosts = [0, 1, 0, 1, 2, 2, 3, 3].map(HostId::new);
            // Ranks 6 and 7 have nothing at first.
            let owners: Vec<u32> = first[..weights.len()].iter().map(|rank| rank % 6).collect();
            let problem = Problem { weights: &weights, owners: &owners, fixed: &[0; 8], powers: &[1; 8] };
            let assignment = hierarchical(&problem, &hosts, 1.0);
            let (total, largest) = (weights.iter().sum::<u64>(), *weights.iter().max().unwrap());
            let most = problem.slowest(&problem.loads(&assignment)).work;
            prop_assert!(most * 8 <= total + 8 * 2 * largest, "{most} of {total}");
            prop_assert!(between(&problem, &hosts, &assignment) <= between(&problem, &hosts, &greedy(&problem)));
        }
    }
}
