//! The fastest of several contenders, as far as the measurements can tell them apart.
//!
//! Every round measures all of them, so they are compared by the ratio of their times within a round: what slows a machine down for a while slows
//! all of a round. Whether one is slower than the fastest is judged by the confidence interval of the median ratio, between order statistics, with
//! the error rate divided by the number of pairs (Bonferroni), so that all comparisons together are right with 95 %: the fastest is known from the
//! same times only, and may be any of them. Contenders that cannot be distinguished from the fastest are tied with it, and of those the first in a
//! fixed order is named: the next launch then names the same one.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde::Serialize;

use super::statistics::{CONFIDENCE, Estimate, median, median_covered};

/// With fewer rounds nothing is ranked: an interval of 95 % takes six.
const LEAST_ROUNDS: usize = 6;

/// Simulated times are equal if their relative difference is below this.
const EQUAL: f64 = 1e-9;

/// The result of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Ranked(Ranking),
    /// Too few rounds to rank the contenders; at least `needed` are required.
    TooFew {
        rounds: usize,
        needed: usize,
    },
}

/// Ranking of contenders, by their indices in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The recommended contender: the first in the fixed order among those than which none is known to be faster.
    pub best: usize,
    /// The others that nothing is known to be faster than, in the fixed order.
    pub tied: Vec<usize>,
    /// Ratio of each contender's time to that of the recommended one within a round: the median over the rounds.
    pub over_best: Vec<Estimate>,
}

/// Whether something takes longer than something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compared {
    Shorter,
    /// Neither is significantly shorter.
    Tied,
    Longer,
}

/// The order in which a round measures the contenders: each comes first in its turn, and the others after it in an order given by the seed, so that
/// no contender always follows the same one. The same on all ranks.
pub fn turns(contenders: usize, round: u64, seed: u64) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(round);
    let first = (round % contenders.max(1) as u64) as usize;
    let mut others: Vec<usize> = (0..contenders).filter(|contender| *contender != first).collect();
    others.shuffle(&mut random);
    (0..contenders).take(1).map(|_| first).chain(others).collect()
}

/// Number of rounds required to rank this number of contenders.
pub fn rounds_needed(contenders: usize) -> usize {
    let confidence = confidence_each(contenders);
    // The widest interval, from the least to the largest of n, covers with 1 - 2 / 2^n.
    (LEAST_ROUNDS..).find(|rounds| 1.0 - 2.0 * 0.5f64.powi(*rounds as i32) >= confidence).unwrap_or(LEAST_ROUNDS)
}

/// Number of rounds with which one odd round decides nothing: the interval from the second least to the second largest covers.
pub fn rounds_advised(contenders: usize) -> u32 {
    let confidence = confidence_each(contenders);
    let covers = |rounds: i32| 1.0 - 2.0 * f64::from(1 + rounds) * 0.5f64.powi(rounds) >= confidence;
    (LEAST_ROUNDS as i32..).find(|rounds| covers(*rounds)).unwrap_or(LEAST_ROUNDS as i32).unsigned_abs()
}

/// The confidence of each comparison with which all are right with 95 %. Only those with the fastest are made, but which one is the fastest is known
/// from the same times: it may be any pair.
fn confidence_each(contenders: usize) -> f64 {
    let pairs = contenders * contenders.saturating_sub(1) / 2;
    1.0 - (1.0 - CONFIDENCE) / pairs.max(1) as f64
}

/// Ranks contenders. `times` are by contender and round, each round with all of them; `order` is the priority of each contender among tied
/// ones. `None` if there is nothing to rank.
pub fn rank(times: &[Vec<f64>], order: &[usize]) -> Option<Verdict> {
    let rounds = times.iter().map(Vec::len).min().filter(|rounds| *rounds > 0)?;
    let needed = rounds_needed(times.len());
    if rounds < needed && times.len() > 1 {
        return Some(Verdict::TooFew { rounds, needed });
    }
    let confidence = confidence_each(times.len());
    ranked(times, order, |mine, other| {
        let ratio = median_covered(&ratios(mine, other), confidence)?;
        Some(if ratio.low > 1.0 { Compared::Longer } else { Compared::Tied })
    })
}

/// Returns true if a contender takes more than `factor` times as long as another, beyond the doubt that is allowed for this number of contenders.
/// Too few rounds leave it open.
pub fn is_known_longer(mine: &[f64], other: &[f64], factor: f64, contenders: usize) -> bool {
    let enough = mine.len().min(other.len()) >= rounds_needed(contenders);
    let ratio = median_covered(&ratios(mine, other), confidence_each(contenders));
    enough && ratio.is_some_and(|ratio| ratio.low > factor)
}

/// Ranks contenders by times that repeat exactly: one round of each.
pub fn rank_exact(times: &[Vec<f64>], order: &[usize]) -> Option<Verdict> {
    ranked(times, order, |mine, other| {
        let (mine, other) = (*mine.first()?, *other.first()?);
        Some(if mine > other * (1.0 + EQUAL) { Compared::Longer } else { Compared::Tied })
    })
}

fn ranked(times: &[Vec<f64>], order: &[usize], compared: impl Fn(&[f64], &[f64]) -> Option<Compared>) -> Option<Verdict> {
    let fastest = fastest(times)?;
    let mut level: Vec<usize> =
        (0..times.len()).filter(|one| *one == fastest || compared(&times[*one], &times[fastest]) == Some(Compared::Tied)).collect();
    level.sort_by_key(|one| order.get(*one).copied().unwrap_or(usize::MAX));
    let (best, tied) = level.split_first()?;
    let over_best = times.iter().map(|times_of| median(&ratios(times_of, &times[*best]))).collect::<Option<_>>()?;
    Some(Verdict::Ranked(Ranking { best: *best, tied: tied.to_vec(), over_best }))
}

/// Compares two series of times round by round. `None` if there are too few rounds.
pub fn compared(mine: &[f64], other: &[f64]) -> Option<Compared> {
    let ratio = median(&ratios(mine, other)).filter(|ratio| ratio.coverage >= CONFIDENCE)?;
    Some(match ratio {
        Estimate { low, .. } if low > 1.0 => Compared::Longer,
        Estimate { high, .. } if high < 1.0 => Compared::Shorter,
        _ => Compared::Tied,
    })
}

/// The contender with the smallest relative time within a round, in the median round.
fn fastest(times: &[Vec<f64>]) -> Option<usize> {
    let rounds = times.iter().map(Vec::len).min()?;
    let log = |contender: &Vec<f64>, round: usize| contender[round].max(f64::MIN_POSITIVE).ln();
    let mean = |round: usize| times.iter().map(|contender| log(contender, round)).sum::<f64>() / times.len() as f64;
    let means: Vec<f64> = (0..rounds).map(mean).collect();
    let part = |contender: &Vec<f64>| {
        let parts: Vec<f64> = (0..rounds).map(|round| log(contender, round) - means[round]).collect();
        median(&parts).map_or(f64::INFINITY, |part| part.value)
    };
    let parts: Vec<f64> = times.iter().map(part).collect();
    (0..parts.len()).min_by(|a, b| parts[*a].total_cmp(&parts[*b]))
}

fn ratios(mine: &[f64], other: &[f64]) -> Vec<f64> {
    let ratio = |(mine, other): (&f64, &f64)| if mine == other { 1.0 } else { mine / other };
    mine.iter().zip(other).map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_by_a_factor_is_known_from_enough_rounds() {
        let (one, other) = (vec![1.0; 9], [1.3, 1.2, 1.0, 1.3, 1.2, 1.3, 1.2, 1.3, 1.2]);
        assert!(is_known_longer(&other, &one, 1.1, 2) && !is_known_longer(&other, &one, 1.25, 2));
        assert!(!is_known_longer(&other[..5], &one, 1.1, 2) && !is_known_longer(&one, &other, 1.0, 2));
        // With more contenders one odd round is too many.
        assert!(!is_known_longer(&other, &one, 1.1, 20));
    }

    #[test]
    fn more_contenders_take_more_rounds() {
        assert_eq!([1, 2, 10, 19, 20, 22].map(rounds_advised), [9, 9, 15, 17, 18, 18]);
        assert!((2..60).all(|contenders| rounds_advised(contenders) as usize > rounds_needed(contenders)));
        // One round in which the machine was slow does not hide which is faster.
        let rounds = rounds_advised(2) as usize;
        let (slow, mut fast) = (vec![2.0; rounds], vec![1.0; rounds]);
        fast[3] = 9.0;
        match rank(&[slow, fast], &[0, 1]) {
            Some(Verdict::Ranked(ranking)) => assert_eq!((ranking.best, ranking.tied), (1, vec![])),
            other => panic!("{other:?}"),
        }
    }
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn best(verdict: Option<Verdict>) -> (usize, Vec<usize>) {
        match verdict {
            Some(Verdict::Ranked(ranking)) => (ranking.best, ranking.tied),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn few_rounds_rank_nothing() {
        for rounds in 1..6 {
            let times = [vec![1.0; rounds], vec![2.0; rounds]];
            assert_eq!(rank(&times, &[0, 1]), Some(Verdict::TooFew { rounds, needed: 6 }));
        }
        assert_eq!(rank(&[], &[]), None);
        assert_eq!(rank(&[vec![], vec![]], &[0, 1]), None);
        // The more are compared, the more rounds it takes: 1 - 2 / 2^n of 1 - 0.05 / pairs.
        assert_eq!([1, 2, 3, 4, 10, 12, 20].map(rounds_needed), [6, 6, 7, 8, 11, 12, 13]);
        // One alone is the best of all.
        assert_eq!(best(rank(&[vec![3.0]], &[0])), (0, vec![]));
    }

    #[test]
    fn rounds_are_compared_within() {
        // The machine slows down by and by: intervals of both overlap widely, but the second is slower in every round.
        let first: Vec<f64> = (1..=8).map(f64::from).collect();
        let second: Vec<f64> = first.iter().map(|time| time * 1.05).collect();
        let (a, b) = (median(&first).unwrap(), median(&second).unwrap());
        assert!(a.high > b.low);
        let Some(Verdict::Ranked(ranking)) = rank(&[second.clone(), first.clone()], &[0, 1]) else { panic!("not ranked") };
        assert_eq!((ranking.best, &ranking.tied[..]), (1, &[][..]));
        assert!((ranking.over_best[0].value - 1.05).abs() < 1e-12 && ranking.over_best[1].value == 1.0);
        assert_eq!((compared(&second, &first), compared(&first, &second)), (Some(Compared::Longer), Some(Compared::Shorter)));
        assert_eq!((compared(&first, &first), compared(&first[..5], &second[..5])), (Some(Compared::Tied), None));
    }

    #[test]
    fn those_that_tie_come_in_a_fixed_order() {
        let level = |shift: usize| (0..9).map(|round| if (round + shift).is_multiple_of(2) { 1.0 } else { 1.01 }).collect::<Vec<_>>();
        let slow = vec![3.0; 9];
        let times = [level(0), slow.clone(), level(1), level(0)];
        assert_eq!(best(rank(&times, &[2, 0, 1, 3])), (2, vec![0, 3]));
        assert_eq!(best(rank(&times, &[0, 1, 2, 3])), (0, vec![2, 3]));
    }

    #[test]
    fn each_comes_first_in_its_turn() {
        for contenders in [1, 2, 5] {
            let rounds: Vec<Vec<usize>> = (0..60).map(|round| turns(contenders, round, 7)).collect();
            for (round, order) in rounds.iter().enumerate() {
                assert_eq!(order[0], round % contenders);
                let mut all = order.clone();
                all.sort_unstable();
                assert_eq!(all, (0..contenders).collect::<Vec<_>>());
            }
            assert_eq!(rounds, (0..60).map(|round| turns(contenders, round, 7)).collect::<Vec<_>>());
        }
        // No contender always follows the same one.
        let follows: std::collections::BTreeSet<usize> = (0..60).step_by(5).map(|round| turns(5, round, 7)[1]).collect();
        assert!(follows.len() > 2, "{follows:?}");
        assert_eq!(turns(0, 3, 1), Vec::<usize>::new());
    }

    #[test]
    fn exact_times_need_one_round() {
        let times = [vec![2.0], vec![1.0], vec![1.0 + 1e-12], vec![0.0]];
        assert_eq!(best(rank_exact(&times[..3], &[0, 2, 1])), (2, vec![1]));
        assert_eq!(best(rank_exact(&times, &[0, 1, 2, 3])), (3, vec![]));
        assert_eq!(best(rank_exact(&[vec![0.0], vec![0.0]], &[1, 0])), (1, vec![0]));
    }

    /// Number of pairs, of `pairs` with noise of some 15 %, in which the first alone is named if the second takes `slower` times as long.
    fn winners(pairs: u32, rounds: usize, slower: f64) -> u32 {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut times = || (0..rounds).map(|_| 1.0 + rng.random_range(0.0..0.15)).collect::<Vec<f64>>();
        let mut named = 0;
        for _ in 0..pairs {
            let slow = times().into_iter().map(|time| time * slower).collect();
            let (best, tied) = best(rank(&[times(), slow], &[0, 1]));
            named += u32::from(best == 0 && tied.is_empty());
        }
        named
    }

    #[test]
    fn the_same_twice_seldom_has_a_winner_and_a_slower_one_is_seen() {
        // 1,000 pairs of the same: the first is named in half of the 3.9 % in which the interval of nine rounds leaves out 1.
        let same = winners(1000, 9, 1.0);
        assert!((5..=40).contains(&same), "{same} of 1000");
        assert!(winners(1000, 9, 1.2) > 950);
    }

    /// Number of comparisons, of `comparisons`, that find one slower among contenders that are all the same.
    fn false_alarms(comparisons: u32, contenders: usize, rounds: usize) -> u32 {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let order: Vec<usize> = (0..contenders).collect();
        let mut alarms = 0;
        for _ in 0..comparisons {
            let times: Vec<Vec<f64>> = (0..contenders).map(|_| (0..rounds).map(|_| rng.random_range(1.0..2.0)).collect()).collect();
            alarms += u32::from(best(rank(&times, &order)).1.len() < contenders - 1);
        }
        alarms
    }

    #[test]
    fn of_many_that_are_the_same_all_tie_in_19_of_20_comparisons() {
        // The fastest is chosen by the same times, which makes the others look slower than they are: with the error divided among the comparisons
        // with the fastest alone, one of twenty was called slower in 12 % of the comparisons.
        for contenders in [3, 10, 20] {
            for rounds in [rounds_needed(contenders), rounds_advised(contenders) as usize] {
                let alarms = false_alarms(1000, contenders, rounds);
                assert!(alarms <= 50, "{alarms} of 1000 with {contenders} contenders in {rounds} rounds");
            }
        }
    }
}
