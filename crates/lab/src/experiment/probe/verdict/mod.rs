//! Detection of slow hosts, ranks and links.
//!
//! # The rule
//!
//! Everything is measured once in each of R rounds, so that drift affects all alike. In each round the time of a candidate is divided by
//! the median of the times of all *others* (of an even number, the longer of the two in the middle). A candidate is slow if the median of its R ratios is above a limit, and all its ratios are
//! above a lower limit, which is above 1; one may be below for every 32 rounds. A disturbance makes times longer: that of a slow candidate,
//! or one beyond the others' median, and neither changes the result.
//!
//! [`computing()`] (of ranks and hosts) and [`links()`] say which are the others, and which is named where several candidates are slow.
//!
//! # How often it is wrong
//!
//! A candidate as fast as the others is above the others' median in a round with a probability of at most one half, whatever the
//! distribution of the noise. If rounds are independent, this happens in all of R rounds with a probability of at most 1 / 2^R: 0.02 % for
//! 12 rounds. The limits, 10 % for computing and 50 % for links, make it less; with [`false_alarms`] the report gives the bound for all
//! candidates together. Where this bound is above 5 % there are too few rounds, and no candidate is named: [`rounds_needed`] returns the
//! number that is needed.

mod computing;
mod links;

use equipoise::topology::RankId;
use serde::Serialize;

use super::fit::median;
pub use computing::{SlowComputer, computing};
pub use links::{SlowLink, links};

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
    /// A rank that computes slowly, unlike the others of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankId>,
    /// A host whose links are all slow, or two hosts with a slow link between them: `h1`, `h1-h4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Its time over that of the others.
    pub factor: f64,
}

/// The candidates that are slow, with their factors. `ratios[round][candidate]`: its time over that of the others; `None` where it has none to be compared with.
fn slow(ratios: &[Vec<Option<f64>>], limits: Limits) -> Vec<(usize, f64)> {
    if ratios.len() < LEAST_ROUNDS {
        return Vec::new();
    }
    let candidates = ratios.iter().map(Vec::len).min().unwrap_or(0);
    let judged = |candidate: usize| {
        let own: Vec<f64> = ratios.iter().filter_map(|round| round[candidate]).filter(|ratio| ratio.is_finite()).collect();
        let above = own.iter().filter(|ratio| **ratio > limits.round).count();
        let factor = median(&own).filter(|factor| *factor >= limits.median)?;
        (own.len() == ratios.len() && above + misses(ratios.len()) >= ratios.len()).then_some((candidate, factor))
    };
    (0..candidates).filter_map(judged).collect()
}

/// For each of the times, the median of all others; `None` if it is the only one.
fn medians_of_others(times: &[f64]) -> Vec<Option<f64>> {
    let mut medians = vec![None; times.len()];
    let Some(others) = times.len().checked_sub(1).filter(|others| *others > 0) else { return medians };
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    for (place, candidate) in order.iter().enumerate() {
        let other = |at: usize| times[order[at + usize::from(at >= place)]];
        // Of an even number the longer of the two in the middle: one as fast as the others is beyond it in less than half of the rounds, while the
        // middle of the two can be exceeded more often if times are skewed.
        medians[*candidate] = Some(other(others / 2));
    }
    medians
}

/// Each time over the median of all others.
fn ratios_to_others(times: &[f64]) -> Vec<Option<f64>> {
    times.iter().zip(medians_of_others(times)).map(|(time, others)| Some(time / others?)).collect()
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

/// Number of candidates on these hosts and ranks: hosts, ranks where a host has several, and links with two sizes of messages each.
pub fn candidates(hosts: u32, ranks: u32) -> usize {
    let (hosts, ranks) = (hosts as usize, ranks as usize);
    // Of many hosts each meets a sample of the others.
    let pairs = hosts * hosts.saturating_sub(1).min(super::rounds::ALL_UP_TO as usize) / 2;
    let computing = match hosts {
        0 | 1 => {
            if ranks > 1 {
                ranks
            } else {
                0
            }
        }
        _ => hosts + if ranks > hosts { ranks } else { 0 },
    };
    // The only link has nothing to be compared with.
    let links = if pairs > 1 { 2 * (pairs + hosts) } else { 0 };
    computing + links
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::topology::Hosts;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, LogNormal};

    const ROUNDS: usize = 10;

    /// Times of some candidates, with noise of this size, occasional large noise, and common drift.
    pub(super) fn times(rng: &mut ChaCha8Rng, noise: f64, factors: &[f64]) -> Vec<Vec<f64>> {
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
    fn a_median_of_others_is_what_sorting_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for count in 0..9 {
            let times: Vec<f64> = (0..count).map(|_| f64::from(rng.random_range(0..5))).collect();
            let others = |without: usize| {
                let mut others: Vec<f64> = (0..count).filter(|other| *other != without).map(|other| times[other]).collect();
                others.sort_by(f64::total_cmp);
                others.get(others.len() / 2).copied()
            };
            assert_eq!(medians_of_others(&times), (0..count).map(others).collect::<Vec<_>>(), "{times:?}");
        }
    }

    /// Nothing but noise, and limits without effect: the bound holds all the same, for one host and for several.
    #[test]
    fn false_alarms_are_as_rare_as_they_are_said_to_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let cases = 2_000;
        for (hosts, rounds) in [(1, 8), (4, 8)] {
            let map = Hosts::from_names(&(0..8).map(|rank| format!("h{}", rank % hosts)).collect::<Vec<_>>());
            let drawn = |rng: &mut ChaCha8Rng| (0..8).map(|_| rng.random_range(1.0..100.0)).collect();
            let is_alarm = |rng: &mut ChaCha8Rng| !computing(&map, &(0..rounds).map(|_| drawn(rng)).collect::<Vec<_>>()).is_empty();
            let alarms = (0..cases).filter(|_| is_alarm(&mut rng)).count();
            let judged = if hosts == 1 { 8 } else { 8 + hosts };
            let bound = false_alarms(judged, rounds);
            assert!((alarms as f64) < bound * f64::from(cases) && alarms > 0, "{alarms} of {cases}, bound {bound}");
        }
        assert!((false_alarms(8, 8) - 8.0 / 256.0).abs() < 1e-12);
        assert!((false_alarms(3, 64) - 3.0 * (1.0 + 64.0 + 2016.0) / 2f64.powi(64)).abs() < 1e-25);
        assert_eq!([rounds_needed(0), rounds_needed(1), rounds_needed(8), rounds_needed(80)], [4, 5, 8, 11]);
        assert_eq!(false_alarms(8, 3), 0.0);
    }

    #[test]
    fn hosts_ranks_and_links_are_candidates() {
        let needed = [(1, 1), (1, 8), (2, 2), (2, 8), (3, 12), (8, 8), (8, 64), (64, 64), (1000, 1000)];
        assert_eq!(needed.map(|(hosts, ranks)| candidates(hosts, ranks)), [0, 8, 2, 10, 27, 80, 144, 4_224, 67_000]);
    }
}
