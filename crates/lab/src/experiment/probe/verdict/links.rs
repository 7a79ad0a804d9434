//! Detection of slow links: of a pair of hosts, or all of a host.
//!
//! A link is compared with its likes: the other links of the same rack, or between the same two racks. Where these are fewer than [`ENOUGH`], or one of the
//! racks is a single host, it is compared with the other links within racks, or between racks, whichever it is itself. The ratio of
//! a host is the smallest ratio of its links, so that one slow link does not make the whole host slow.

use std::collections::BTreeMap;

use equipoise::topology::{HostId, Hosts, RackId};

use super::super::fit::median;
use super::{LINK, ratios_to_others, slow};

/// Number of others with which a link is compared before all of its kind are taken.
const ENOUGH: usize = 2;

/// Slow links, by the hosts' numbers: all links of a host, or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowLink {
    /// All links of a host.
    Of(HostId, f64),
    /// The link between two hosts.
    Between(HostId, HostId, f64),
}

/// The links that are slow. `pairs` are the two hosts of each link; `times[round][link]`.
pub fn links(pairs: &[(HostId, HostId)], hosts: &Hosts, times: &[Vec<f64>]) -> Vec<SlowLink> {
    let likes = Likes::of(pairs, hosts);
    let touches = |host: HostId, pair: &(HostId, HostId)| pair.0 == host || pair.1 == host;
    let seen = pairs.iter().map(|(_, high)| high.index() + 1).max().unwrap_or(0);
    // Of three hosts or more: with two the only link has nothing to be compared with.
    let named = if seen < 3 { Vec::new() } else { slow(&times.iter().map(|round| likes.of_hosts(round, seen)).collect::<Vec<_>>(), LINK) };
    let mut all: Vec<SlowLink> = named.iter().map(|(host, factor)| SlowLink::Of(HostId::new(*host as u32), *factor)).collect();
    // What a named host explains is not judged again.
    let rest: Vec<usize> =
        (0..pairs.len()).filter(|link| !named.iter().any(|(host, _)| touches(HostId::new(*host as u32), &pairs[*link]))).collect();
    let of_links = slow(&times.iter().map(|round| likes.of_links(round, &rest)).collect::<Vec<_>>(), LINK);
    all.extend(of_links.into_iter().map(|(place, factor)| {
        let (low, high) = pairs[rest[place]];
        SlowLink::Between(low, high, factor)
    }));
    all
}

/// Which links are alike: a pair of racks, the same rack twice for links within it; `None` where a rack of one host takes part.
type Likeness = (bool, Option<(RackId, RackId)>);

/// The links by what they are like.
struct Likes<'a> {
    pairs: &'a [(HostId, HostId)],
    of_link: Vec<Likeness>,
}

impl Likes<'_> {
    fn of<'a>(pairs: &'a [(HostId, HostId)], hosts: &Hosts) -> Likes<'a> {
        let sizes: Vec<usize> = RackId::all(hosts.racks()).map(|rack| hosts.hosts_in(rack).len()).collect();
        let likeness = |(low, high): &(HostId, HostId)| {
            let (a, b) = (hosts.rack_of(*low), hosts.rack_of(*high));
            let racks = (a.min(b), a.max(b));
            (a == b, (sizes[a.index()] > 1 && sizes[b.index()] > 1).then_some(racks))
        };
        Likes { pairs, of_link: pairs.iter().map(likeness).collect() }
    }

    /// For each of some links, its time over that of its likes among them.
    fn of_links(&self, round: &[f64], links: &[usize]) -> Vec<Option<f64>> {
        let mut ratios = vec![None; links.len()];
        // The kinds first; where a link has enough closer likes, these count.
        let (mut kinds, mut closer) = (BTreeMap::<bool, Vec<usize>>::new(), BTreeMap::<(RackId, RackId), Vec<usize>>::new());
        for (place, link) in links.iter().enumerate() {
            let (kind, racks) = self.of_link[*link];
            kinds.entry(kind).or_default().push(place);
            if let Some(racks) = racks {
                closer.entry(racks).or_default().push(place);
            }
        }
        for group in kinds.into_values().chain(closer.into_values().filter(|group| group.len() > ENOUGH)) {
            let times: Vec<f64> = group.iter().map(|place| round[links[*place]]).collect();
            for (place, ratio) in group.into_iter().zip(ratios_to_others(&times)) {
                ratios[place] = ratio;
            }
        }
        ratios
    }

    /// Ratio of each host: the smallest ratio of one of its links to comparable links of other hosts.
    fn of_hosts(&self, round: &[f64], hosts: usize) -> Vec<Option<f64>> {
        let mut ascending: Vec<usize> = (0..self.pairs.len()).collect();
        ascending.sort_by(|a, b| round[*a].total_cmp(&round[*b]));
        let of_host = |host: HostId| {
            let touches = |link: usize| self.pairs[link].0 == host || self.pairs[link].1 == host;
            let elsewhere = |is_like: &dyn Fn(Likeness) -> bool| -> Vec<f64> {
                ascending.iter().filter(|link| is_like(self.of_link[**link]) && !touches(**link)).map(|link| round[*link]).collect()
            };
            let mut usual: BTreeMap<Likeness, Option<f64>> = BTreeMap::new();
            let ratio = |link: usize| {
                let (kind, racks) = self.of_link[link];
                let found = usual.entry((kind, racks)).or_insert_with(|| {
                    let closer = racks.map(|_| elsewhere(&|(_, other)| other == racks)).filter(|times| times.len() >= ENOUGH);
                    median(&closer.unwrap_or_else(|| elsewhere(&|(other, _)| other == kind)))
                });
                Some(round[link] / (*found)?)
            };
            (0..self.pairs.len()).filter(|link| touches(*link)).filter_map(ratio).reduce(f64::min)
        };
        HostId::all(hosts as u32).map(of_host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::times;
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    /// A cluster of hosts of one rank in these racks.
    fn cluster(racks: &[u32]) -> Hosts {
        Hosts::from_names(&(0..racks.len()).map(|host| format!("h{host}")).collect::<Vec<_>>()).with_racks(racks)
    }

    fn pairs(hosts: &Hosts) -> Vec<(HostId, HostId)> {
        let count = hosts.count();
        HostId::all(count).flat_map(|a| HostId::all(count).skip(a.index() + 1).map(move |b| (a, b))).collect()
    }

    /// Times of the links: four times as long between racks, and changed by what is slow.
    fn factors(hosts: &Hosts, slow: impl Fn(HostId, HostId) -> f64) -> Vec<f64> {
        let usual = |a, b| if hosts.rack_of(a) == hosts.rack_of(b) { 1.0 } else { 4.0 };
        pairs(hosts).into_iter().map(|(a, b)| usual(a, b) * slow(a, b)).collect()
    }

    fn found(hosts: &Hosts, slow: impl Fn(HostId, HostId) -> f64) -> Vec<SlowLink> {
        links(&pairs(hosts), hosts, &vec![factors(hosts, slow); 12])
    }

    const RACKS: [&[u32]; 7] = [
        &[0; 8],
        &[0, 0, 0, 0, 0, 0, 1, 1],
        &[0, 0, 1, 1],
        &[0, 0, 0, 1, 1, 1],
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 0, 0, 1, 1, 2],
        &[0, 1, 1, 0, 0, 1, 2],
    ];

    #[test]
    fn links_are_judged_by_their_likes() {
        for racks in RACKS {
            let hosts = cluster(racks);
            assert_eq!(found(&hosts, |_, _| 1.0), [], "{racks:?}: a false alarm");
            for (low, high) in pairs(&hosts) {
                let one = found(&hosts, |a, b| if (a, b) == (low, high) { 4.0 } else { 1.0 });
                assert_eq!(one, [SlowLink::Between(low, high, 4.0)], "{racks:?}");
            }
            for slow in HostId::all(hosts.count()) {
                let all = found(&hosts, |a, b| if a == slow || b == slow { 4.0 } else { 1.0 });
                assert_eq!(all, [SlowLink::Of(slow, 4.0)], "{racks:?}");
            }
        }
    }

    #[test]
    fn a_link_that_takes_four_times_as_long_is_found_through_noise_and_no_other() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for case in 0..200 {
            let hosts = cluster(RACKS[[0, 1, 3, 4][case % 4]]);
            let pairs = pairs(&hosts);
            let mut judged = |slow: &dyn Fn(HostId, HostId) -> f64| links(&pairs, &hosts, &times(&mut rng, 0.1, &factors(&hosts, slow)));
            assert_eq!(judged(&|_, _| 1.0), [], "case {case}: a false alarm");
            let (low, high) = pairs[case % pairs.len()];
            match judged(&|a, b| if (a, b) == (low, high) { 4.0 } else { 1.0 })[..] {
                [SlowLink::Between(a, b, factor)] => assert!((a, b) == (low, high) && (3.2..4.8).contains(&factor), "{factor}"),
                ref other => panic!("case {case}: {other:?}"),
            }
            let host = HostId::new(case as u32 % hosts.count());
            match judged(&|a, b| if a == host || b == host { 4.0 } else { 1.0 })[..] {
                [SlowLink::Of(found, factor)] => assert!(found == host && (2.8..4.8).contains(&factor), "{factor}"),
                ref other => panic!("case {case}: {other:?}"),
            }
        }
    }

    #[test]
    fn where_nothing_can_be_compared_nothing_is_named() {
        let two = cluster(&[0, 0]);
        assert_eq!(links(&pairs(&two), &two, &vec![vec![5.0]; 9]), []);
        assert_eq!(links(&[], &Hosts::single(1), &vec![vec![]; 9]), []);
    }
}
