//! What a series of steps costs under a criterion, and at the least.

use super::{Criterion, Step, Watch};

/// Work of each rank in each step as it is without balancing, in units of time, and what a balancing costs.
///
/// Balancing at the beginning of step k gives every rank the mean of step k; from then on each rank's work changes as it does in the series. So step t, last
/// balanced at k, takes the largest over ranks r of `mean(k) + W[t][r] - W[k][r]`; before the first balancing, the largest `W[t][r]`.
#[derive(Clone, Debug)]
pub struct Series {
    /// By step and rank; all steps have as many ranks.
    work: Vec<Vec<f64>>,
    cost: f64,
}

/// What came of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time of all steps and balancings.
    pub total: f64,
    /// The steps before which ranks were balanced, in ascending order.
    pub balanced_at: Vec<usize>,
}

impl Series {
    /// A series of steps; `None` if steps differ in their number of ranks, there are none, or a number is negative or not finite.
    pub fn new(work: Vec<Vec<f64>>, cost: f64) -> Option<Series> {
        let ranks = work.first().map_or(1, Vec::len);
        let sound = |number: &f64| number.is_finite() && *number >= 0.0;
        let even = work.iter().all(|step| step.len() == ranks && ranks > 0 && step.iter().all(sound));
        (even && sound(&cost)).then_some(Series { work, cost })
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.work.len()
    }

    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// A step's times, last balanced at the beginning of step `balanced`.
    fn step(&self, at: usize, balanced: Option<usize>) -> Step {
        let work = &self.work[at];
        let ranks = work.len() as f64;
        let since = balanced.map(|before| (&self.work[before], self.work[before].iter().sum::<f64>() / ranks));
        let mut step = Step { max: f64::NEG_INFINITY, mean: 0.0, min: f64::INFINITY };
        for (rank, work) in work.iter().enumerate() {
            let time = since.map_or(*work, |(before, mean)| mean + work - before[rank]);
            step = Step { max: step.max.max(time), mean: step.mean + time / ranks, min: step.min.min(time) };
        }
        step
    }

    /// The series under a criterion, which knows the steps that have ended.
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

    /// The schedule of balancings with the least time, by dynamic programming over the last balancing. Among equal ones the one that balances less often
    /// and later. O(steps^2 * ranks).
    pub fn optimum(&self) -> Outcome {
        // The best way until the beginning of step k with a balancing there: its time, and the balancing before.
        let mut best: Vec<(f64, Option<usize>)> = Vec::with_capacity(self.len());
        let unbalanced = self.sums(None);
        let mut total = (unbalanced.last().copied().unwrap_or(0.0), None);
        let mut until: Vec<(f64, Option<usize>)> = unbalanced.iter().map(|sum| (*sum, None)).collect();
        for at in 0..self.len() {
            best.push((until[at].0 + self.cost, until[at].1));
            for (steps, sum) in self.sums(Some(at)).iter().enumerate().skip(1) {
                let time = best[at].0 + sum;
                if time < until[at + steps].0 {
                    until[at + steps] = (time, Some(at));
                }
            }
        }
        if let Some(end) = until.last() {
            total = *end;
        }
        let mut balanced_at = Vec::new();
        let mut last = total.1;
        while let Some(at) = last {
            balanced_at.push(at);
            last = best[at].1;
        }
        balanced_at.reverse();
        Outcome { total: total.0, balanced_at }
    }

    /// Times of the steps from a balancing on (or from the beginning without one), summed up: of none, of one, of two, ..
    fn sums(&self, balanced: Option<usize>) -> Vec<f64> {
        let mut sums = vec![0.0];
        for at in balanced.unwrap_or(0)..self.len() {
            sums.push(sums[sums.len() - 1] + self.step(at, balanced).max);
        }
        sums
    }
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

    #[test]
    fn what_is_no_series_is_refused() {
        assert!(Series::new(vec![vec![1.0], vec![1.0, 2.0]], 1.0).is_none());
        assert!(Series::new(vec![vec![f64::NAN]], 1.0).is_none());
        assert!(Series::new(vec![vec![1.0]], -1.0).is_none());
        assert_eq!(Series::new(vec![], 1.0).unwrap().optimum(), Outcome { total: 0.0, balanced_at: vec![] });
    }
}
