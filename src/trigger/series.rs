//! Cost of a series of steps under a criterion, and the minimum cost.

use super::{Criterion, Step, Watch};

/// Work of each rank in each step as it is without balancing, in units of time, and the cost of a balancing.
///
/// Balancing at the beginning of step k costs C and gives every rank the mean of step k. From then on each rank's work changes as it does
/// in the series. So step t, last balanced at k, takes the largest over ranks r of `mean(k) + W[t][r] - W[k][r]`; before the first
/// balancing, the largest `W[t][r]`. A rank whose work would fall below 0 keeps the negative number; the largest is never negative, since
/// the mean over the ranks is that of step t.
#[derive(Clone, Debug)]
pub struct Series {
    /// Work of each rank in each step, indexed by step, then rank; all steps have the same number of ranks.
    work: Vec<Vec<f64>>,
    /// Mean work of the ranks in each step.
    means: Vec<f64>,
    cost: f64,
}

/// Why something is no series of steps.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSeries {
    /// A step has another number of ranks than the first, or none.
    #[error("step {step} has {ranks} ranks, and step 0 has {first}")]
    Ranks {
        /// Number of the step, from 0.
        step: usize,
        /// Number of its ranks.
        ranks: usize,
        /// Number of ranks of step 0.
        first: usize,
    },
    /// A time is negative or not finite.
    #[error("step {step}, rank {rank}: {time} is no time")]
    Time {
        /// Number of the step, from 0.
        step: usize,
        /// Number of the rank, from 0.
        rank: usize,
        /// The invalid time.
        time: f64,
    },
    /// The cost is negative or not finite.
    #[error("{0} is no cost of a balancing")]
    Cost(f64),
    /// The sum exceeds the range of floating-point numbers.
    #[error("the sum of all times is too large")]
    TooLarge,
}

/// Result of a series.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Time of all steps and balancings.
    pub total: f64,
    /// The steps before which ranks were balanced, from 0, in ascending order.
    pub balanced_at: Vec<usize>,
}

impl Series {
    /// A series of steps: the work of each rank by step, and the cost of a balancing in the same unit.
    ///
    /// # Errors
    /// If steps differ in their number of ranks, or a number is negative, not finite, or too large together with the others.
    pub fn new(work: Vec<Vec<f64>>, cost: f64) -> Result<Series, InvalidSeries> {
        let is_time = |number: f64| number.is_finite() && number >= 0.0;
        let first = work.first().map_or(1, Vec::len);
        for (step, ranks) in work.iter().enumerate() {
            if ranks.len() != first || first == 0 {
                return Err(InvalidSeries::Ranks { step, ranks: ranks.len(), first });
            }
            if let Some(rank) = ranks.iter().position(|time| !is_time(*time)) {
                return Err(InvalidSeries::Time { step, rank, time: ranks[rank] });
            }
        }
        if !is_time(cost) {
            return Err(InvalidSeries::Cost(cost));
        }
        // No step takes longer than the largest work, the largest mean and what is added to it.
        let largest = work.iter().flatten().fold(cost, |largest, time| largest.max(*time));
        if !(largest * 4.0 * (work.len() as f64 + 1.0) * first as f64).is_finite() {
            return Err(InvalidSeries::TooLarge);
        }
        let means = work.iter().map(|step| step.iter().sum::<f64>() / step.len() as f64).collect();
        Ok(Series { work, means, cost })
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// Returns true if there is no step.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Number of ranks; 0 if there is no step.
    pub fn ranks(&self) -> usize {
        self.work.first().map_or(0, Vec::len)
    }

    /// A step's times, last balanced at the beginning of step `balanced`.
    fn step(&self, at: usize, balanced: Option<usize>) -> Step {
        let work = self.work[at].iter();
        let extremes = |(max, min): (f64, f64), time: f64| (max.max(time), min.min(time));
        let none = (f64::NEG_INFINITY, f64::INFINITY);
        let (max, min) = match balanced {
            None => work.copied().fold(none, extremes),
            Some(before) => {
                let (max, min) = work.zip(&self.work[before]).map(|(now, then)| now - then).fold(none, extremes);
                (self.means[before] + max, self.means[before] + min)
            }
        };
        Step { max, mean: self.means[at], min }
    }

    /// The series under a criterion, which knows the steps that have ended. It is asked after each step but the last.
    pub fn under(&self, criterion: Criterion) -> Outcome {
        let mut watch = Watch::new(criterion);
        let mut outcome = Outcome { total: 0.0, balanced_at: Vec::new() };
        for at in 0..self.len() {
            let step = self.step(at, outcome.balanced_at.last().copied());
            outcome.total += step.max;
            if watch.ended(step, self.cost) && at + 1 < self.len() {
                outcome.total += self.cost;
                outcome.balanced_at.push(at + 1);
                watch.balanced();
            }
        }
        outcome
    }

    /// The number of steps from one balancing to the next that is best for [`Criterion::Every`], known afterwards: the largest of several. The
    /// number of steps of the series, or more, is not to balance at all. O(steps^2 * ranks).
    pub fn best_interval(&self) -> u64 {
        let totals = (1..=self.len() as u64).map(|steps| (steps, self.under(Criterion::Every(steps)).total));
        totals.fold((1, f64::INFINITY), |best, next| if next.1 <= best.1 { next } else { best }).0
    }

    /// Schedule of balancings with the least time, by dynamic programming over the last balancing. Among equal ones it is the one that
    /// balances less often and later. O(steps^2 * ranks).
    pub fn optimum(&self) -> Outcome {
        optimum(self.len(), self.cost, |at, balanced| self.step(at, balanced).max)
    }
}

/// The schedule of balancings with the least time over this number of steps, where step `at`, last balanced at the beginning of step `balanced`,
/// takes `time(at, balanced)`.
fn optimum(steps: usize, cost: f64, time: impl Fn(usize, Option<usize>) -> f64) -> Outcome {
    // By the number of steps that are over: the least time that they take, and the last balancing in them.
    let mut until: Vec<(f64, Option<usize>)> = vec![(0.0, None)];
    for at in 0..steps {
        until.push((until[at].0 + time(at, None), None));
    }
    for balanced in 0..steps {
        let mut total = until[balanced].0 + cost;
        for at in balanced..steps {
            total += time(at, Some(balanced));
            if total < until[at + 1].0 {
                until[at + 1] = (total, Some(balanced));
            }
        }
    }
    let mut balanced_at = Vec::new();
    let mut over = steps;
    while let Some(at) = until[over].1 {
        balanced_at.push(at);
        over = at;
    }
    balanced_at.reverse();
    Outcome { total: until[steps].0, balanced_at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    /// The time of a schedule, step by step.
    fn time(series: &Series, balanced_at: &[usize]) -> f64 {
        let last = |at: usize| balanced_at.iter().rev().find(|before| **before <= at).copied();
        (0..series.len()).map(|at| series.step(at, last(at)).max).sum::<f64>() + series.cost * balanced_at.len() as f64
    }

    fn drawn(rng: &mut ChaCha8Rng, steps: usize) -> Series {
        let ranks = rng.random_range(1..5);
        let work = (0..steps).map(|_| (0..ranks).map(|_| f64::from(rng.random_range(0..20u32))).collect()).collect();
        Series::new(work, f64::from(rng.random_range(0..15u32))).unwrap()
    }

    #[test]
    fn the_optimum_is_that_of_all_schedules() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            let series = drawn(&mut rng, 12);
            let schedules = (0u32..1 << 12).map(|bits| (0..12).filter(|at| bits >> at & 1 == 1).collect::<Vec<usize>>());
            let least = schedules.map(|schedule| time(&series, &schedule)).fold(f64::INFINITY, f64::min);
            let found = series.optimum();
            assert!((found.total - least).abs() < 1e-9, "{found:?} against {least}: {series:?}");
            assert!((time(&series, &found.balanced_at) - least).abs() < 1e-9);
        }
    }

    #[test]
    fn a_criterion_costs_what_its_schedule_costs() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let criteria = [
            Criterion::Never,
            Criterion::Every(3),
            Criterion::Threshold { above: 1.2, window: 2, cooldown: 3 },
            Criterion::Cumulative,
            Criterion::Excess,
            Criterion::Interval,
            Criterion::Degradation,
            Criterion::Area,
            Criterion::Efficiency { factor: 1.0 },
            Criterion::Tolerance { part: 0.2 },
        ];
        for _ in 0..50 {
            let series = drawn(&mut rng, 30);
            let least = series.optimum().total;
            for criterion in criteria {
                let outcome = series.under(criterion);
                assert!((outcome.total - time(&series, &outcome.balanced_at)).abs() < 1e-9, "{criterion:?}");
                assert!(outcome.total >= least - 1e-9, "{criterion:?}");
            }
        }
    }

    #[test]
    fn load_that_grows_on_one_rank() {
        // One of two ranks gains one unit a step: u grows by a half, and the best interval is sqrt(2 * 4 / 0.5) = 4 steps.
        let series = Series::new((0..40).map(|at| vec![10.0 + f64::from(at), 10.0]).collect(), 4.0).unwrap();
        let best = series.optimum();
        let every = |steps| series.under(Criterion::Every(steps)).total;
        assert!((1..12).all(|steps| best.total <= every(steps)));
        assert!(every(4) <= every(2) && every(4) <= every(8));
        assert!(series.under(Criterion::Never).total > 1.15 * best.total);
    }

    /// Figures that LBOPT (Boulmier) prints for `-W 10 -p 10 -C 20 -d 1 -i 10`: the three best schedules of a load that one of ten ranks gets, by
    /// exhaustive search. There the imbalance is n dW(t), n steps after a balancing, with dW(t) = 5 / (1 + 0.2 t), and the mean grows by dW(t) / 10.
    #[test]
    fn the_optimum_is_what_others_published() {
        let growth = |at: usize| 5.0 / (1.0 + 0.2 * at as f64);
        let mean = |at: usize| (10.0 + (0..at).map(growth).sum::<f64>()) / 10.0;
        let step = |at: usize, balanced: Option<usize>| {
            let since = balanced.unwrap_or(0);
            mean(since) + (at - since) as f64 * growth(at)
        };
        let found = optimum(10, 20.0, step);
        assert_eq!(found.balanced_at, [4]);
        assert!((found.total - 90.11871).abs() < 5e-6, "{}", found.total);
        let total = |balanced_at: &[usize]| {
            let last = |at: usize| balanced_at.iter().rev().find(|before| **before <= at).copied();
            (0..10).map(|at| step(at, last(at))).sum::<f64>() + 20.0 * balanced_at.len() as f64
        };
        assert!((total(&[5]) - 90.46755).abs() < 5e-6, "{}", total(&[5]));
        assert!((total(&[3, 6]) - 92.65171).abs() < 5e-6, "{}", total(&[3, 6]));
    }

    #[test]
    fn the_best_interval_is_found_among_all() {
        let growing = |steps: u32| Series::new((0..steps).map(|at| vec![10.0 + f64::from(at), 10.0]).collect(), 4.0).unwrap();
        let series = growing(40);
        let best = series.under(Criterion::Every(series.best_interval())).total;
        assert!((1..=40).all(|steps| best <= series.under(Criterion::Every(steps)).total));
        let even = Series::new(vec![vec![2.0, 2.0]; 7], 1.0).unwrap();
        assert_eq!(even.best_interval(), 7, "never");
    }

    #[test]
    fn what_is_no_series_is_refused() {
        let why = |work: &[&[f64]], cost: f64| Series::new(work.iter().map(|step| step.to_vec()).collect(), cost).unwrap_err().to_string();
        assert_eq!(why(&[&[1.0], &[1.0, 2.0]], 1.0), "step 1 has 2 ranks, and step 0 has 1");
        assert_eq!(why(&[&[]], 1.0), "step 0 has 0 ranks, and step 0 has 0");
        assert_eq!(why(&[&[1.0], &[f64::NAN]], 1.0), "step 1, rank 0: NaN is no time");
        assert_eq!(why(&[&[1.0]], -1.0), "-1 is no cost of a balancing");
        assert_eq!(why(&[&[1e308], &[1e308]], 0.0), "the sum of all times is too large");
        assert_eq!(Series::new(vec![], 1.0).unwrap().optimum(), Outcome { total: 0.0, balanced_at: vec![] });
    }
}
