//! The cores of the ranks, and which ranks share them.
//!
//! Each rank reports the processors that it may run on (its affinity mask) and how many of them it may use at a time (a container's quota).
//! Ranks of a host whose processors overlap are one group.

use serde::{Deserialize, Serialize};

use equipoise::agreement::one_node_per_rank;
use equipoise::error::Result;
use equipoise::judge::CoreGroup;
use equipoise::node;
use equipoise::topology::{HostId, Hosts, RankId};
use equipoise::transport::world::World;

/// Processors of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Processors {
    /// Processors that the rank may run on, by the system's numbers; empty if unknown.
    numbers: Vec<u32>,
    /// Number of processors that it may use at a time; 0 if unknown.
    at_a_time: u32,
}

impl Processors {
    fn mine() -> Processors {
        let at_a_time = std::thread::available_parallelism().map_or(0, |number| u32::try_from(number.get()).unwrap_or(u32::MAX));
        Processors { numbers: affinity(), at_a_time }
    }

    /// Returns true if a quota leaves it fewer than it may run on.
    fn are_limited(&self) -> bool {
        self.numbers.is_empty() || (self.at_a_time as usize) < self.numbers.len()
    }
}

#[cfg(target_os = "linux")]
fn affinity() -> Vec<u32> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).map(|number| number as u32).collect()
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Vec<u32> {
    Vec::new()
}

/// The groups of ranks that share cores, on rank 0; empty elsewhere, if unknown, and in simulation, where each rank has a core.
///
/// # Errors
/// As [`World::run`].
pub(super) fn groups(world: &mut World) -> Result<Vec<CoreGroup>> {
    if world.is_simulated() {
        return Ok(Vec::new());
    }
    let (overlay, hosts) = (one_node_per_rank(world)?, world.hosts());
    let all = node::run(world, &overlay, |node| async move {
        let append = |mut before: Vec<Processors>, after: Vec<Processors>| {
            before.extend(after);
            before
        };
        node.everyone().reduce(&node, vec![Processors::mine()], append).await
    })?;
    let all = all.into_iter().find_map(|(_, all)| all);
    Ok(all.map(|all| grouped(&hosts, &all)).unwrap_or_default())
}

/// The groups, from the reports of all ranks, in the order of their first ranks.
fn grouped(hosts: &Hosts, processors: &[Processors]) -> Vec<CoreGroup> {
    HostId::all(hosts.count()).flat_map(|host| of_host(&hosts.ranks_on(host), processors)).collect()
}

fn of_host(ranks: &[RankId], processors: &[Processors]) -> Vec<CoreGroup> {
    let of = |rank: RankId| processors.get(rank.index());
    let known: Vec<(RankId, &Processors)> = ranks.iter().filter_map(|rank| Some((*rank, of(*rank)?))).collect();
    // A quota belongs to the host; all its ranks draw on it, wherever they are bound.
    if known.iter().any(|(_, processors)| processors.are_limited()) {
        let cores = known.iter().map(|(_, processors)| processors.at_a_time).max().unwrap_or(0);
        let ranks = known.iter().map(|(rank, _)| *rank).collect();
        return if cores == 0 { Vec::new() } else { vec![CoreGroup { ranks, cores }] };
    }
    let mut groups: Vec<(Vec<RankId>, Vec<u32>)> = Vec::new();
    for (rank, processors) in known {
        let (mut ranks, mut numbers) = (vec![rank], processors.numbers.clone());
        let overlaps = |(_, others): &mut (Vec<RankId>, Vec<u32>)| others.iter().any(|number| processors.numbers.contains(number));
        for (others, theirs) in groups.extract_if(.., overlaps) {
            ranks.extend(others);
            numbers.extend(theirs);
        }
        ranks.sort_unstable();
        numbers.sort_unstable();
        numbers.dedup();
        groups.push((ranks, numbers));
    }
    groups.sort();
    groups.into_iter().map(|(ranks, numbers)| CoreGroup { ranks, cores: numbers.len() as u32 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(numbers: &[u32]) -> Processors {
        Processors { numbers: numbers.to_vec(), at_a_time: numbers.len() as u32 }
    }

    fn group(ranks: &[u32], cores: u32) -> CoreGroup {
        CoreGroup { ranks: ranks.iter().copied().map(RankId::new).collect(), cores }
    }

    #[test]
    fn ranks_that_are_not_bound_share_all_cores_of_their_host() {
        let hosts = Hosts::from_names(&["a", "a", "b", "a"].map(String::from));
        let processors = [on(&[0, 1]), on(&[0, 1]), on(&[0, 1, 2, 3]), on(&[0, 1])];
        assert_eq!(grouped(&hosts, &processors), [group(&[0, 1, 3], 2), group(&[2], 4)]);
        assert!(group(&[0, 1, 3], 2).is_shared() && !group(&[2], 4).is_shared());
    }

    #[test]
    fn bound_ranks_share_with_those_whose_cores_overlap() {
        let hosts = Hosts::single(5);
        let bound = [0, 1, 2, 1, 0].map(|number| on(&[number]));
        assert_eq!(grouped(&hosts, &bound), [group(&[0, 4], 1), group(&[1, 3], 1), group(&[2], 1)]);
        // The last overlaps with two that did not overlap before.
        assert_eq!(grouped(&Hosts::single(3), &[on(&[0, 1]), on(&[2, 3]), on(&[1, 2])]), [group(&[0, 1, 2], 4)]);
    }

    #[test]
    fn a_quota_counts_for_the_whole_host() {
        let limited = Processors { numbers: (0..64).collect(), at_a_time: 3 };
        assert_eq!(grouped(&Hosts::single(4), &vec![limited; 4]), [group(&[0, 1, 2, 3], 3)]);
        let unknown = Processors { numbers: Vec::new(), at_a_time: 6 };
        assert_eq!(grouped(&Hosts::single(2), &vec![unknown; 2]), [group(&[0, 1], 6)]);
        let silent = Processors { numbers: Vec::new(), at_a_time: 0 };
        assert_eq!(grouped(&Hosts::single(2), &vec![silent; 2]), []);
    }

    #[test]
    fn this_process_has_a_processor() {
        assert!(Processors::mine().at_a_time > 0);
        #[cfg(target_os = "linux")]
        assert!(!Processors::mine().numbers.is_empty());
    }
}
