//! Detection of slow hosts, ranks and links.
//!
//! # The rule
//!
//! Everything is measured once in each of R rounds, so that drift affects all alike. In each round the time of a candidate is divided by
//! the median of the times of all *others*. A candidate is slow if the median of its R ratios is above a limit, and all its ratios are
//! above a lower limit, which is above 1; one may be below for every 32 rounds. A disturbance makes times longer: that of a slow candidate,
//! or one beyond the others' median, and neither changes the result.
//!
//! # How often it is wrong
//!
//! A candidate as fast as the others is above the others' median in a round with a probability of at most one half, whatever the
//! distribution of the noise. If rounds are independent, this happens in all of R rounds with a probability of at most 1 / 2^R: 0.02 % for
//! 12 rounds. The limits, 10 % for computing and 50 % for links, make it less; with [`false_alarms`] the report gives the bound for all
//! candidates together. Where this bound is above 5 % there are too few rounds, and no candidate is named: [`rounds_needed`] returns the
//! number that is needed.

use serde::Serialize;

use super::fit::median;
use equipoise::topology::{HostId, RankId};

/// Ratios to the others' computing time from which on a host or a rank is slow: of the median of the rounds, and of each round.
const COMPUTING: Limits = Limits { median: 1.10, round: 1.03 };
/// A link likewise.
const LINK: Limits = Limits { median: 1.5, round: 1.2 };
/// Minimum number of rounds for a verdict, of however few candidates.
const LEAST_ROUNDS: usize = 4;

/// Maximum probability of a false alarm.
const MOST_FALSE_ALARMS: f64 = 0.05;

#[derive(Clone, Copy)]
struct Limits {
    median: f64,
    round: f64,
}

/// A slow part, and its time relative to the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slow {
    /// A host whose ranks compute slowly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A rank that computes slowly, where there is one host only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankId>,
    /// A host whose links are all slow, or two hosts with a slow link between them: `h1`, `h1-h4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Its time over that of the others.
    pub factor: f64,
}

/// The candidates that are slow by computing, with their factors. `times[round][candidate]`.
pub fn computing(times: &[Vec<f64>]) -> Vec<(usize, f64)> {
    let candidates = times.iter().map(Vec::len).min().unwrap_or(0);
    let others = |candidate: usize, round: &[f64]| {
        let others: Vec<f64> = (0..candidates).filter(|other| *other != candidate).map(|other| round[other]).collect();
        median(&others)
    };
    slow(candidates, times, COMPUTING, |candidate, round| Some(round[candidate] / others(candidate, round)?))
}

/// Slow links of hosts, by the hosts' numbers: all links of a host, or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowLink {
    /// All links of a host.
    Of(HostId, f64),
    /// The link between two hosts.
    Between(HostId, HostId, f64),
}

/// The links that are slow. `pairs` are the two hosts of each link; `times[round][link]`.
pub fn links(pairs: &[(HostId, HostId)], times: &[Vec<f64>]) -> Vec<SlowLink> {
    let hosts = pairs.iter().map(|(_, high)| high.index() + 1).max().unwrap_or(0);
    let touches = |host: HostId, pair: &(HostId, HostId)| pair.0 == host || pair.1 == host;
    let times_of = |round: &[f64], which: &dyn Fn(&(HostId, HostId)) -> bool| {
        let times: Vec<f64> = pairs.iter().zip(round).filter(|(pair, _)| which(pair)).map(|(_, time)| *time).collect();
        median(&times)
    };
    // Of three hosts or more: with two the only link has nothing to be compared with.
    let of_host = |host: usize, round: &[f64]| {
        let host = HostId::new(host as u32);
        // The fastest of its links: one slow link does not make all slow.
        let own = pairs.iter().zip(round).filter(|(pair, _)| touches(host, pair)).map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        Some(own / times_of(round, &|pair| !touches(host, pair))?)
    };
    let hosts = if hosts < 3 { Vec::new() } else { slow(hosts, times, LINK, of_host) };
    let is_told = |pair: &(HostId, HostId)| hosts.iter().any(|(host, _)| touches(HostId::new(*host as u32), pair));
    let of_pair = |link: usize, round: &[f64]| {
        let pair = pairs[link];
        if is_told(&pair) {
            return None;
        }
        Some(round[link] / times_of(round, &|other| *other != pair && !is_told(other))?)
    };
    let mut all: Vec<SlowLink> = hosts.iter().map(|(host, factor)| SlowLink::Of(HostId::new(*host as u32), *factor)).collect();
    all.extend(slow(pairs.len(), times, LINK, of_pair).into_iter().map(|(link, factor)| {
        let (low, high) = pairs[link];
        SlowLink::Between(low, high, factor)
    }));
    all
}

fn slow(candidates: usize, times: &[Vec<f64>], limits: Limits, ratio: impl Fn(usize, &[f64]) -> Option<f64>) -> Vec<(usize, f64)> {
    if times.len() < LEAST_ROUNDS {
        return Vec::new();
    }
    let judged = |candidate: usize| {
        let ratios: Vec<f64> = times.iter().filter_map(|round| ratio(candidate, round)).filter(|ratio| ratio.is_finite()).collect();
        let above = ratios.iter().filter(|ratio| **ratio > limits.round).count();
        let factor = median(&ratios).filter(|factor| *factor >= limits.median)?;
        (ratios.len() == times.len() && above + misses(times.len()) >= times.len()).then_some((candidate, factor))
    };
    (0..candidates).filter_map(judged).collect()
}

/// In how many of the rounds a slow candidate may be below the lower limit.
fn misses(rounds: usize) -> usize {
    rounds / 32
}

/// Upper bound on the probability that any of `candidates` healthy candidates is named.
pub fn false_alarms(candidates: usize, rounds: usize) -> f64 {
    if rounds < LEAST_ROUNDS {
        return 0.0;
    }
    // The sum of the first binomial coefficients over 2^R, each term from the one before it.
    let mut term = 0.5f64.powi(rounds as i32);
    let mut sum = term;
    for missed in 1..=misses(rounds) {
        term *= (rounds - missed + 1) as f64 / missed as f64;
        sum += term;
    }
    (candidates as f64 * sum).min(1.0)
}

/// Minimum number of rounds after which false alarms are rare enough.
pub fn rounds_needed(candidates: usize) -> usize {
    (LEAST_ROUNDS..).find(|rounds| false_alarms(candidates, *rounds) <= MOST_FALSE_ALARMS).unwrap_or(LEAST_ROUNDS)
}

/// Number of candidates on these hosts and ranks: hosts and links, each link with two sizes of messages; on one host, ranks.
pub fn candidates(hosts: u32, ranks: u32) -> usize {
    let (hosts, ranks) = (hosts as usize, ranks as usize);
    // Of many hosts each meets a sample of the others.
    let pairs = hosts * hosts.saturating_sub(1).min(super::rounds::ALL_UP_TO as usize) / 2;
    match (hosts, pairs) {
        (0 | 1, _) => {
            if ranks > 1 {
                ranks
            } else {
                0
            }
        }
        (_, 1) => hosts,
        _ => hosts + 2 * (pairs + hosts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, LogNormal};

    const ROUNDS: usize = 10;

    /// Times of eight hosts, with noise of this size, occasional large noise, and common drift.
    fn times(rng: &mut ChaCha8Rng, noise: f64, factors: &[f64]) -> Vec<Vec<f64>> {
        let normal = LogNormal::new(0.0, noise).unwrap();
        let round = |round: usize| {
            let drift = 1.0 + 0.1 * round as f64;
            let one = |factor: &f64| {
                let hiccup = if rng.random_bool(0.03) { 2.0 } else { 1.0 };
                1e8 * drift * factor * normal.sample(rng) * hiccup
            };
            factors.iter().map(one).collect()
        };
        (0..ROUNDS).map(round).collect()
    }

    #[test]
    fn a_host_that_computes_at_80_per_cent_is_found_and_no_other() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for case in 0..200 {
            let noise = [0.005, 0.02, 0.04][case % 3];
            let mut factors = [1.0; 8];
            assert_eq!(computing(&times(&mut rng, noise, &factors)), [], "case {case}: a false alarm");
            factors[case % 8] = 1.25;
            let found = computing(&times(&mut rng, noise, &factors));
            assert!(found.len() == 1 && found[0].0 == case % 8 && (found[0].1 - 1.25).abs() < 0.1, "case {case}: {found:?}");
        }
    }

    #[test]
    fn a_link_that_takes_four_times_as_long_is_found_and_no_other() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let pairs: Vec<(HostId, HostId)> = HostId::all(8).flat_map(|a| HostId::all(8).skip(a.index() + 1).map(move |b| (a, b))).collect();
        for case in 0..200 {
            let mut factors = vec![1.0; pairs.len()];
            assert_eq!(links(&pairs, &times(&mut rng, 0.1, &factors)), [], "case {case}: a false alarm");
            factors[case % pairs.len()] = 4.0;
            let (a, b) = pairs[case % pairs.len()];
            match links(&pairs, &times(&mut rng, 0.1, &factors))[..] {
                [SlowLink::Between(low, high, factor)] => assert!((low, high) == (a, b) && (3.2..4.8).contains(&factor)),
                ref other => panic!("case {case}: {other:?}"),
            }
            let host = HostId::new(case as u32 % 8);
            let factors: Vec<f64> = pairs.iter().map(|(a, b)| if *a == host || *b == host { 4.0 } else { 1.0 }).collect();
            match links(&pairs, &times(&mut rng, 0.1, &factors))[..] {
                [SlowLink::Of(found, factor)] => assert!(found == host && (2.8..4.8).contains(&factor), "{factor}"),
                ref other => panic!("case {case}: {other:?}"),
            }
        }
    }

    #[test]
    fn where_nothing_can_be_compared_nothing_is_named() {
        assert_eq!(computing(&vec![vec![5.0]; 9]), []);
        assert_eq!(computing(&[]), []);
        assert_eq!(links(&[(HostId::FIRST, HostId::new(1))], &vec![vec![5.0]; 9]), []);
        assert_eq!(links(&[], &vec![vec![]; 9]), []);
        // Three rounds are too few.
        assert_eq!(computing(&vec![vec![1.0, 1.0, 2.0]; 3]), []);
        assert_eq!(computing(&vec![vec![1.0, 1.0, 2.0]; 4]), [(2, 2.0)]);
        // Of two hosts the slower one.
        assert_eq!(computing(&vec![vec![1.0, 2.0]; 9]), [(1, 2.0)]);
    }

    /// Nothing but noise, and limits without effect: the bound holds all the same.
    #[test]
    fn false_alarms_are_as_rare_as_they_are_said_to_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let (mut alarms, cases) = (0, 2_000);
        for _ in 0..cases {
            let rounds: Vec<Vec<f64>> = (0..8).map(|_| (0..8).map(|_| rng.random_range(1.0..100.0)).collect()).collect();
            alarms += usize::from(!computing(&rounds).is_empty());
        }
        let bound = false_alarms(8, 8);
        assert!((bound - 8.0 / 256.0).abs() < 1e-12);
        assert!((false_alarms(3, 64) - 3.0 * (1.0 + 64.0 + 2016.0) / 2f64.powi(64)).abs() < 1e-25);
        assert_eq!([rounds_needed(0), rounds_needed(1), rounds_needed(8), rounds_needed(80)], [4, 5, 8, 11]);
        let needed = [(1, 1), (1, 8), (2, 8), (8, 64), (64, 64), (1000, 1000)].map(|(hosts, ranks)| candidates(hosts, ranks));
        assert_eq!(needed, [0, 8, 2, 80, 4_224, 67_000]);
        assert!((alarms as f64) < bound * f64::from(cases) && alarms > 0, "{alarms} of {cases}, bound {bound}");
        assert_eq!(false_alarms(8, 3), 0.0);
    }
}
