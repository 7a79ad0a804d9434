//! Detection of hosts and ranks that compute slowly.
//!
//! Each rank is compared with all other ranks, and each host (the median of its ranks) with the other hosts. A host is named if all of its ranks are slow, or if it
//! is slow, and remains so without those of its ranks that are; its ranks are not named again. Otherwise its slow ranks are named: one slow rank of two
//! makes no slow host.

use equipoise::topology::{HostId, Hosts, RankId};

use super::super::fit::median;
use super::{COMPUTING, ratios_to_others, slow};

/// A host or rank that computes slowly, and its time over that of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowComputer {
    /// A host, of several.
    Host(HostId, f64),
    /// A rank.
    Rank(RankId, f64),
}

/// The hosts and ranks that are slow by computing, host by host. `times[round][rank]`.
pub fn computing(hosts: &Hosts, times: &[Vec<f64>]) -> Vec<SlowComputer> {
    let slow_ranks: Vec<(RankId, f64)> = slower(times).into_iter().map(|(rank, factor)| (RankId::new(rank as u32), factor)).collect();
    if hosts.count() == 1 {
        return slow_ranks.into_iter().map(|(rank, factor)| SlowComputer::Rank(rank, factor)).collect();
    }
    let ranks_on: Vec<Vec<RankId>> = HostId::all(hosts.count()).map(|host| hosts.ranks_on(host)).collect();
    let slow_hosts = slower(&medians(&ranks_on, times));
    let mut found = Vec::new();
    for host in HostId::all(hosts.count()) {
        let own: Vec<(RankId, f64)> = slow_ranks.iter().filter(|(rank, _)| hosts.host_of(*rank) == host).copied().collect();
        let others: Vec<RankId> = ranks_on[host.index()].iter().filter(|rank| own.iter().all(|(slow, _)| slow != *rank)).copied().collect();
        let factor = slow_hosts.iter().find(|(slow, _)| *slow == host.index()).map(|(_, factor)| *factor);
        let remains = || {
            let mut without = ranks_on.clone();
            without[host.index()].clone_from(&others);
            slower(&medians(&without, times)).iter().any(|(slow, _)| *slow == host.index())
        };
        let of_host = if others.is_empty() {
            factor.or_else(|| median(&own.iter().map(|(_, factor)| *factor).collect::<Vec<_>>()))
        } else {
            factor.filter(|_| own.is_empty() || remains())
        };
        match of_host {
            Some(factor) => found.push(SlowComputer::Host(host, factor)),
            None => found.extend(own.into_iter().map(|(rank, factor)| SlowComputer::Rank(rank, factor))),
        }
    }
    found
}

/// The time of each group of ranks in each round: the median of its ranks.
fn medians(groups: &[Vec<RankId>], times: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let of_group = |ranks: &Vec<RankId>, round: &[f64]| median(&ranks.iter().map(|rank| round[rank.index()]).collect::<Vec<_>>());
    times.iter().map(|round| groups.iter().map(|ranks| of_group(ranks, round).unwrap_or(f64::NAN)).collect()).collect()
}

/// The candidates that are slow by computing, with their factors. `times[round][candidate]`.
fn slower(times: &[Vec<f64>]) -> Vec<(usize, f64)> {
    slow(&times.iter().map(|round| ratios_to_others(round)).collect::<Vec<_>>(), COMPUTING)
}

#[cfg(test)]
mod tests {
    use super::super::tests::times;
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    /// This many hosts of `each` ranks.
    fn cluster(hosts: usize, each: usize) -> Hosts {
        Hosts::from_names(&(0..hosts * each).map(|rank| format!("h{}", rank / each)).collect::<Vec<_>>())
    }

    fn host(number: usize, factor: f64) -> SlowComputer {
        SlowComputer::Host(HostId::new(number as u32), factor)
    }

    fn rank(number: usize, factor: f64) -> SlowComputer {
        SlowComputer::Rank(RankId::new(number as u32), factor)
    }

    /// Hosts and ranks that are named where these ranks take these times the usual time, and all others that.
    fn named(hosts: &Hosts, slow: &[(usize, f64)]) -> Vec<SlowComputer> {
        let mut round = vec![1.0; hosts.ranks() as usize];
        slow.iter().for_each(|(rank, factor)| round[*rank] = *factor);
        computing(hosts, &vec![round; 12])
    }

    #[test]
    fn the_slow_rank_is_named_and_not_its_healthy_host() {
        // One of four, of three and of two; where both are compared, the host would be 1.5 times as slow.
        assert_eq!(named(&cluster(3, 4), &[(1, 2.0)]), [rank(1, 2.0)]);
        assert_eq!(named(&cluster(2, 3), &[(5, 4.0)]), [rank(5, 4.0)]);
        assert_eq!(named(&cluster(2, 2), &[(1, 2.0)]), [rank(1, 2.0)]);
        assert_eq!(named(&cluster(3, 4), &[(1, 2.0), (2, 2.0), (7, 4.0)]), [rank(1, 2.0), rank(2, 2.0), rank(7, 4.0)]);
        assert_eq!(named(&cluster(1, 4), &[(3, 2.0)]), [rank(3, 2.0)]);
    }

    #[test]
    fn the_slow_host_is_named_and_not_its_ranks() {
        let all_four = |factor| [(4, factor), (5, factor), (6, factor), (7, factor)];
        assert_eq!(named(&cluster(3, 4), &all_four(2.0)), [host(1, 2.0)]);
        assert_eq!(named(&cluster(2, 4), &all_four(1.25)), [host(1, 1.25)]);
        assert_eq!(named(&cluster(8, 1), &[(3, 1.25)]), [host(3, 1.25)]);
        // One of its ranks is slower yet, one hardly slower than usual.
        assert_eq!(named(&cluster(3, 4), &[(4, 2.0), (5, 4.0), (6, 2.0), (7, 2.0)]), [host(1, 2.0)]);
        assert_eq!(named(&cluster(3, 4), &[(4, 2.0), (5, 2.0), (6, 1.2), (7, 1.09)]), [rank(4, 2.0), rank(5, 2.0), rank(6, 1.2)]);
        assert_eq!(named(&cluster(3, 4), &[]), []);
    }

    /// Most ranks are on one fast host: each host is as slow as the median of the others, each rank of theirs is slower than most.
    #[test]
    fn all_ranks_of_a_host_are_the_host() {
        let hosts = Hosts::from_names(&(0..13).map(|rank| format!("h{}", if rank < 9 { 0 } else { rank })).collect::<Vec<_>>());
        let slow: Vec<(usize, f64)> = (9..13).map(|rank| (rank, 2.0)).collect();
        let slow_hosts: Vec<SlowComputer> = (1..=4).map(|number| host(number, 2.0)).collect();
        assert_eq!(named(&hosts, &slow), slow_hosts);
    }

    #[test]
    fn where_nothing_can_be_compared_nothing_is_named() {
        assert_eq!(computing(&Hosts::single(1), &vec![vec![5.0]; 9]), []);
        assert_eq!(computing(&Hosts::single(1), &[]), []);
        assert_eq!(computing(&cluster(2, 1), &[]), []);
        // Three rounds are too few.
        assert_eq!(computing(&Hosts::single(3), &vec![vec![1.0, 1.0, 2.0]; 3]), []);
        assert_eq!(computing(&Hosts::single(3), &vec![vec![1.0, 1.0, 2.0]; 4]), [rank(2, 2.0)]);
        // Of two the slower one.
        assert_eq!(computing(&Hosts::single(2), &vec![vec![1.0, 2.0]; 9]), [rank(1, 2.0)]);
        assert_eq!(computing(&cluster(2, 1), &vec![vec![1.0, 2.0]; 9]), [host(1, 2.0)]);
    }

    #[test]
    fn what_computes_at_80_per_cent_is_found_through_noise_and_nothing_else() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for case in 0..200 {
            let (noise, hosts) = ([0.005, 0.02, 0.04][case % 3], [cluster(8, 1), cluster(4, 2), cluster(1, 8)][case % 3].clone());
            let mut factors = [1.0; 8];
            assert_eq!(computing(&hosts, &times(&mut rng, noise, &factors)), [], "case {case}: a false alarm");
            factors[case % 8] = 1.25;
            let is_near = |factor: f64| (factor - 1.25).abs() < 0.1;
            match (hosts.count(), &computing(&hosts, &times(&mut rng, noise, &factors))[..]) {
                (8, [SlowComputer::Host(found, factor)]) => assert!(found.index() == case % 8 && is_near(*factor), "case {case}: {factor}"),
                (1 | 4, [SlowComputer::Rank(found, factor)]) => {
                    assert!(found.index() == case % 8 && is_near(*factor), "case {case}: {factor}");
                }
                (_, found) => panic!("case {case}: {found:?}"),
            }
        }
    }
}
