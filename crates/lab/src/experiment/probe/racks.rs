//! Racks: hosts that are nearer to each other than to all others.
//!
//! Single linkage: pairs of hosts are joined from the nearest to the farthest, and before each step the groups so far are looked at. They are
//! racks if at least two of them have several hosts, and the next pair is [`APART`] times as far apart as the pair joined last, and as the hosts of one group are
//! at the median. Of several such steps the one with the largest factor counts.
//!
//! A group of one host is either a host with slow links or a rack of one host. It belongs to a rack if it is nearer to a host of that rack than to all others by the same
//! factor; otherwise it is a rack of its own. Distances cannot tell a rack of two hosts with a slow link between them from two hosts in no rack.

use equipoise::topology::HostId;

use super::fit::median;

/// Factor between distances from which on hosts are in different racks.
const APART: f64 = 2.0;

/// A pair of hosts and the time of a message between them.
pub type Distance = ((HostId, HostId), f64);

/// The rack of each host by a number; all 0 where there are no racks, or not all pairs were measured.
pub fn racks(hosts: u32, distances: &[Distance]) -> Vec<u32> {
    let all = vec![0; hosts as usize];
    if distances.len() != all.len() * all.len().saturating_sub(1) / 2 {
        return all;
    }
    let mut ascending = distances.to_vec();
    ascending.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut group_of: Vec<u32> = (0..hosts).collect();
    let mut best: Option<(f64, Vec<u32>)> = None;
    let mut last = f64::INFINITY;
    for ((low, high), next) in &ascending {
        let (mine, other) = (group_of[low.index()], group_of[high.index()]);
        if mine == other {
            continue;
        }
        let factor = separation(&group_of, &ascending, last, *next).filter(|factor| *factor >= APART);
        if let Some(factor) = factor.filter(|factor| best.as_ref().is_none_or(|(best, _)| factor > best)) {
            best = Some((factor, group_of.clone()));
        }
        group_of.iter_mut().filter(|group| **group == other).for_each(|group| *group = mine);
        last = *next;
    }
    best.map_or(all, |(_, groups)| with_lone_hosts(groups, distances))
}

/// How far the next pair is apart, relative to the last one and to the hosts of one group; `None` if fewer than two groups have several hosts.
fn separation(group_of: &[u32], distances: &[Distance], last: f64, next: f64) -> Option<f64> {
    let several = (0..group_of.len() as u32).filter(|group| size(group_of, *group) > 1).count();
    let same: Vec<f64> =
        distances.iter().filter(|((low, high), _)| group_of[low.index()] == group_of[high.index()]).map(|(_, far)| *far).collect();
    let usual = median(&same).filter(|_| several > 1)?;
    Some(next.max(1.0) / usual.max(last).max(1.0))
}

fn size(group_of: &[u32], group: u32) -> usize {
    group_of.iter().filter(|other| **other == group).count()
}

/// Hosts that are alone in their groups join the rack that is much nearer than the others, if there is one.
fn with_lone_hosts(groups: Vec<u32>, distances: &[Distance]) -> Vec<u32> {
    let racks: Vec<u32> = (0..groups.len() as u32).filter(|group| size(&groups, *group) > 1).collect();
    let rack_for = |host: HostId| {
        let from_host = |rack: u32| {
            let links = distances.iter().filter(|((low, high), _)| {
                (*low == host && groups[high.index()] == rack) || (*high == host && groups[low.index()] == rack)
            });
            // The nearest of its hosts: one slow link does not make a rack far.
            links.map(|(_, far)| far.max(1.0)).fold(f64::INFINITY, f64::min)
        };
        let mut near: Vec<(f64, u32)> = racks.iter().map(|rack| (from_host(*rack), *rack)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        match near[..] {
            [(nearest, rack), (second, _), ..] if second >= APART * nearest => rack,
            _ => groups[host.index()],
        }
    };
    let lone = |host: HostId| size(&groups, groups[host.index()]) == 1;
    HostId::all(groups.len() as u32).map(|host| if lone(host) { rack_for(host) } else { groups[host.index()] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use rand_distr::{Distribution, LogNormal};

    /// Distances of hosts in these racks: 20 us within and 80 us between, each changed by what `changed` returns for the pair.
    fn distances(racks: &[u32], mut changed: impl FnMut(u32, u32) -> f64) -> Vec<Distance> {
        let pairs = HostId::all(racks.len() as u32)
            .flat_map(|low| HostId::all(racks.len() as u32).skip(low.index() + 1).map(move |high| (low, high)));
        pairs
            .map(|(low, high)| {
                let usual = if racks[low.index()] == racks[high.index()] { 20_000.0 } else { 80_000.0 };
                ((low, high), usual * changed(low.get(), high.get()))
            })
            .collect()
    }

    /// The same grouping, numbered by first hosts.
    fn numbered(racks: &[u32]) -> Vec<usize> {
        racks.iter().map(|rack| racks.iter().position(|other| other == rack).unwrap()).collect()
    }

    fn assert_found(given: &[u32], distances: &[Distance], case: &str) {
        let found = racks(given.len() as u32, distances);
        assert_eq!(numbered(&found), numbered(given), "{case}: {given:?}");
    }

    const CLUSTERS: [&[u32]; 7] = [
        &[0, 0, 1, 1],
        &[0, 0, 0, 0, 0, 0, 1, 1],
        &[0, 1, 0, 1, 0, 1],
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 0, 0, 1, 1, 1, 2],
        &[0, 1, 1, 1, 2, 2, 3],
        &[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
    ];

    #[test]
    fn racks_are_found_whatever_their_sizes() {
        for given in CLUSTERS {
            assert_found(given, &distances(given, |_, _| 1.0), "exact");
        }
    }

    #[test]
    fn one_rack_is_none_and_so_is_what_is_too_little() {
        for hosts in 0..9 {
            let given = vec![0; hosts];
            assert_found(&given, &distances(&given, |_, _| 1.0), "one rack");
        }
        // One host apart has slow links; each pair of hosts may be a rack, but a rack of two is one of two at least.
        for given in [&[0, 1][..], &[0, 0, 1], &[0, 1, 2], &[0, 0, 0, 0, 0, 1], &[0, 1, 2, 3]] {
            assert_found(&vec![0; given.len()], &distances(given, |_, _| 1.0), "apart");
        }
        // Twice as far is a rack, less is none.
        for (factor, is_found) in [(0.51, true), (0.49, false)] {
            let two = [0, 0, 1, 1];
            let far = distances(&two, |low, high| if two[low as usize] == two[high as usize] { 1.0 } else { factor });
            assert_found(if is_found { &two } else { &[0; 4] }, &far, "twice");
        }
        // A sample of the pairs says nothing.
        let mut sample = distances(CLUSTERS[0], |_, _| 1.0);
        sample.pop();
        assert_eq!(racks(4, &sample), [0; 4]);
        assert_eq!(numbered(&racks(4, &distances(CLUSTERS[0], |_, _| 0.0))), [0; 4], "where nothing takes time");
    }

    #[test]
    fn a_slow_link_or_a_slow_host_leaves_the_racks_as_they_are() {
        for given in CLUSTERS {
            let hosts = given.len() as u32;
            let in_rack = |host: u32| given.iter().filter(|rack| **rack == given[host as usize]).count();
            for (a, b) in (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| (a, b))) {
                // Two hosts with a slow link between them are no rack that distances show.
                if given[a as usize] == given[b as usize] && in_rack(a) == 2 {
                    continue;
                }
                assert_found(given, &distances(given, |low, high| if (low, high) == (a, b) { 4.0 } else { 1.0 }), "a slow link");
            }
            // Where a rack of two has a slow host, the other is alone.
            for slow in (0..hosts).filter(|host| in_rack(*host) > 2) {
                let far = distances(given, |low, high| if low == slow || high == slow { 4.0 } else { 1.0 });
                let found = racks(hosts, &far);
                let others = |racks: &[u32]| {
                    numbered(&racks.iter().enumerate().filter(|(host, _)| *host as u32 != slow).map(|(_, rack)| *rack).collect::<Vec<_>>())
                };
                assert_eq!(others(&found), others(given), "slow host {slow} of {given:?}");
            }
        }
    }

    #[test]
    fn noise_makes_no_racks_and_hides_none() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for case in 0..300 {
            let noise = LogNormal::new(0.0, [0.05, 0.15, 0.3][case % 3]).unwrap();
            let hosts = 4 + case % 13;
            let given = vec![0; hosts];
            assert_found(&given, &distances(&given, |_, _| noise.sample(&mut rng)), &format!("case {case}"));
            let noise = LogNormal::new(0.0, [0.02, 0.05, 0.1][case % 3]).unwrap();
            let given = CLUSTERS[case % CLUSTERS.len()];
            assert_found(given, &distances(given, |_, _| noise.sample(&mut rng)), &format!("case {case}"));
        }
    }
}
