//! The least imbalance with which balancing pays: found between loads of the same total, each of which is simulated.

use crate::error::Result;

/// Halvings of the way between loads that do not pay and loads that do.
const HALVINGS: u32 = 8;

/// Some loads: their imbalance, and the seconds that balancing them gains beyond its cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub imbalance: f64,
    pub net: f64,
}

impl Point {
    fn pays(self) -> bool {
        self.net > 0.0
    }
}

/// The loads of a question, and others of the same total.
pub(super) struct Case<'a> {
    pub even: &'a [u64],
    pub given: &'a [u64],
    /// The hottest that there are; the first one that pays counts.
    pub hottest: &'a [Vec<u64>],
    /// Points of the balancers on the given loads.
    pub at_given: &'a [Point],
    /// The best of them.
    pub best: usize,
}

/// The least imbalance with which balancing pays, by a judge of a balancer and loads: between even loads and the given ones if these pay, otherwise
/// between the given ones and the hottest ones, with the balancer that is the best for these. `None` if none pays there.
///
/// # Errors
/// The judge's.
pub(super) fn least_imbalance(case: &Case, mut judge: impl FnMut(usize, &[u64]) -> Result<Point>) -> Result<Option<f64>> {
    let Case { even, given, hottest, at_given, best } = *case;
    if at_given[best].pays() {
        let at_even = judge(best, even)?;
        return between((even, at_even), (given, at_given[best]), |loads| judge(best, loads)).map(Some);
    }
    for (place, hot) in hottest.iter().enumerate() {
        if hottest[..place].contains(hot) {
            continue;
        }
        let mut at_hot = Vec::new();
        for balancer in 0..at_given.len() {
            at_hot.push((balancer, judge(balancer, hot)?));
        }
        let most = at_hot.into_iter().max_by(|(_, a), (_, b)| a.net.total_cmp(&b.net));
        if let Some((balancer, at_hot)) = most.filter(|(_, point)| point.pays()) {
            return between((given, at_given[balancer]), (hot, at_hot), |loads| judge(balancer, loads)).map(Some);
        }
    }
    Ok(None)
}

/// The imbalance from which it pays, between loads that do not pay and loads that do: halved on the way from the ones to the others, then linear.
fn between(from: (&[u64], Point), to: (&[u64], Point), mut judge: impl FnMut(&[u64]) -> Result<Point>) -> Result<f64> {
    let ((from, mut below), (to, mut above)) = (from, to);
    if below.pays() {
        return Ok(below.imbalance);
    }
    let (mut low, mut high) = (0u32, 1 << HALVINGS);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let at = judge(&part_of_the_way(from, to, middle))?;
        if at.pays() {
            (high, above) = (middle, at);
        } else {
            (low, below) = (middle, at);
        }
    }
    let part = -below.net / (above.net - below.net);
    Ok(below.imbalance + (above.imbalance - below.imbalance) * part)
}

/// Loads of the same total on the way between two, `of` in 2^[`HALVINGS`] parts from the first.
fn part_of_the_way(from: &[u64], to: &[u64], of: u32) -> Vec<u64> {
    let (mut difference, mut moved) = (0i128, 0i128);
    let load = |(from, to): (&u64, &u64)| {
        difference += i128::from(*to) - i128::from(*from);
        // Sums are rounded, so that the total is kept; each load is rounded up or down.
        let until_here = (difference * i128::from(of)) >> HALVINGS;
        let load = i128::from(*from) + until_here - std::mem::replace(&mut moved, until_here);
        load as u64
    };
    from.iter().zip(to).map(load).collect()
}

/// The same tasks, all on one rank; if that would have more than `most` tasks and than it has now, the others keep the rest, in proportion to what
/// they have.
pub(super) fn hottest(loads: &[u64], rank: usize, most: u64) -> Vec<u64> {
    let total: u64 = loads.iter().sum();
    let hot = total.min(most.max(loads[rank]));
    let (others, rest) = (u128::from(total - loads[rank]), u128::from(total - hot));
    let (mut sum, mut kept) = (0u128, 0u128);
    let load = |(other, load): (usize, &u64)| {
        if other == rank {
            return hot;
        }
        sum += u128::from(*load);
        let until_here = (sum * rest).checked_div(others).unwrap_or(0);
        (until_here - std::mem::replace(&mut kept, until_here)) as u64
    };
    loads.iter().enumerate().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second of two balancers costs more, and the first does nothing about more than twice the mean.
    fn judge(cost: f64, balancer: usize, loads: &[u64]) -> Point {
        let (most, mean) = (*loads.iter().max().unwrap() as f64, loads.iter().sum::<u64>() as f64 / loads.len() as f64);
        let net = match balancer {
            0 if most > 2.0 * mean => -cost,
            0 => most - mean - cost,
            _ => most - mean - 2.0 * cost,
        };
        Point { imbalance: most / mean, net }
    }

    fn least(given: &[u64], cost: f64) -> Option<f64> {
        let even = vec![given.iter().sum::<u64>() / given.len() as u64; given.len()];
        let at_given = [0, 1].map(|balancer| judge(cost, balancer, given));
        let best = usize::from(at_given[1].net > at_given[0].net);
        let hottest = [0, 1].map(|rank| hottest(given, rank, u64::MAX));
        let case = Case { even: &even, given, hottest: &hottest, at_given: &at_given, best };
        least_imbalance(&case, |balancer, loads| Ok(judge(cost, balancer, loads))).unwrap()
    }

    #[test]
    fn it_is_found_on_both_sides_of_the_given_loads() {
        let given = [4_000, 6_000, 1_000, 1_000];
        // A mean of 3,000; with a cost of 3,000 the first balancer does not pay on the given loads, and the second one not below 3.
        for (cost, expected) in [(300.0, 1.1), (2_999.0, 1.9997), (3_000.0, 3.0), (4_499.0, 3.9993)] {
            let least = least(&given, cost).unwrap();
            assert!((least - expected).abs() < 1e-3, "{cost}: {least}");
        }
        assert_eq!(least(&given, 4_500.0), None);
        assert_eq!(least(&[5, 5], 0.0), Some(1.0));
    }

    #[test]
    fn on_the_way_the_total_is_kept() {
        for (from, to) in [([u64::MAX, 0, 0], [0, 0, u64::MAX]), ([3, 3, 4], [0, 10, 0]), ([1, 0, 6], [2, 2, 3])] {
            let total: u64 = from.iter().sum();
            assert_eq!((part_of_the_way(&from, &to, 0), part_of_the_way(&from, &to, 1 << HALVINGS)), (from.to_vec(), to.to_vec()));
            for part in 0..1 << HALVINGS {
                let loads = part_of_the_way(&from, &to, part);
                assert_eq!(loads.iter().sum::<u64>(), total);
                let is_between = |(load, (a, b)): (&u64, (&u64, &u64))| (a.min(b)..=a.max(b)).contains(&load);
                assert!(loads.iter().zip(from.iter().zip(&to)).all(is_between), "{loads:?}");
            }
        }
    }

    #[test]
    fn the_hottest_loads_have_all_tasks_on_one_rank_or_as_many_as_fit() {
        assert_eq!(hottest(&[3, 4, 5], 1, u64::MAX), [0, 12, 0]);
        assert_eq!(hottest(&[3, 4, 6], 1, 10), [1, 10, 2]);
        assert_eq!(hottest(&[3, 4, 5], 2, 2), [3, 4, 5]);
        assert_eq!((hottest(&[0, 0], 0, 9), hottest(&[7], 0, 9)), (vec![0, 0], vec![7]));
    }
}
