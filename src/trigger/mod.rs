//! Triggers: published criteria for when to balance, as conditions on the steps since the last balancing, and the total time of a series of
//! steps under each.
//!
//! A program runs in steps; in each the slowest rank takes `max`, the ranks take `mean` on average. Balancing costs C. If it is too rare,
//! steps become slow; if it is too frequent, C is paid for little. `u = max - mean` is the loss of a step by imbalance.
//!
//! | criterion | balances when |
//! |---|---|
//! | [`Never`](Criterion::Never) | never |
//! | [`Every`](Criterion::Every) | k steps have passed |
//! | [`Threshold`](Criterion::Threshold) | the last `window` steps all had max/mean above a bound, `cooldown` steps or more after the last balancing |
//! | [`Cumulative`](Criterion::Cumulative) | the sum of u reaches C (Menon, Jain, Zheng and Kalé 2012) |
//! | [`Excess`](Criterion::Excess) | the same of u less that of the first step after the last balancing, which it could not repair (Boulmier et al. 2021) |
//! | [`Interval`](Criterion::Interval) | sqrt(2 C / m) steps have passed, where u grows by m a step (Menon et al. 2012) |
//! | [`Degradation`](Criterion::Degradation) | the sum of (median of the last three max, less the mean of all since) reaches C (Zhai et al. 2018) |
//! | [`Area`](Criterion::Area) | n u - (sum of u), over n steps, reaches C: the area above the curve of u (Boulmier et al. 2021) |
//! | [`Efficiency`](Criterion::Efficiency) | a step that is as efficient as the first one after a balancing, plus C, takes less than `factor` steps like the last (Procassini et al. 2005) |
//! | [`Predicted`](Criterion::Predicted) | what balancing now gains, u less that of the first step after the last balancing, in each step for which the loads are expected to last, is above C: the model of [`advice`] |
//! | [`Tolerance`](Criterion::Tolerance) | a rank is more than a part above or below the mean (Márquez et al. 2013) |
//!
//! Where C is 0, criteria that compare a loss with C balance at the first loss, and not where there is none.

mod decision;
mod registry;
mod series;

pub use decision::Trigger;
pub use registry::{Chosen, Entry, Facts, find};
pub use series::{InvalidSeries, Outcome, Series};

use crate::advice;

/// Part of the ranks' times below which a difference is taken for one of rounding: even ranks are no reason to balance, even if that costs
/// nothing.
const ROUNDING: f64 = 1e-12;

/// A criterion for when to balance. See the [module](self) for definitions and sources.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Criterion {
    /// Never.
    Never,
    /// Number of steps, at least 1.
    Every(u64),
    /// Several steps in a row were uneven.
    Threshold {
        /// Bound of max over mean, at least 1.
        above: f64,
        /// Number of steps that must be above it in a row, at least 1.
        window: u64,
        /// Number of steps after a balancing before the next.
        cooldown: u64,
    },
    /// The loss by imbalance has reached the cost.
    Cumulative,
    /// The loss beyond that of the first step after the last balancing has reached the cost.
    Excess,
    /// The best interval for an imbalance that grows steadily is over.
    Interval,
    /// The loss by slower steps has reached the cost.
    Degradation,
    /// The possible saving by balancings in between has reached the cost.
    Area,
    /// A balanced step and the balancing are expected to be faster than the last step.
    Efficiency {
        /// Number of steps like the last that a balanced step and the balancing may take, above 0.
        factor: f64,
    },
    /// Balancing now is expected to gain more than it costs.
    Predicted {
        /// Number of steps for which the loads are expected to last; `None`: for as long again as since the last balancing.
        steps: Option<u64>,
        /// Number of times its cost that a balancing must gain, above 0.
        margin: f64,
    },
    /// A rank is too far from the mean.
    Tolerance {
        /// Largest distance from the mean, as a part of the mean, 0 or more.
        part: f64,
    },
}

/// Times of a step over the ranks, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// Time of the slowest rank.
    pub max: f64,
    /// Mean over all ranks.
    pub mean: f64,
    /// Time of the fastest rank. Used by [`Criterion::Tolerance`] only.
    pub min: f64,
}

/// A criterion, and its memory of the steps since the last balancing.
#[derive(Clone, Debug)]
pub struct Watch {
    criterion: Criterion,
    /// Steps since the last balancing.
    steps: u64,
    /// The first of them, and the last three, the latest last.
    first: Option<Step>,
    last: [Option<Step>; 3],
    /// Steps in a row that were above the threshold.
    above: u64,
    /// Sums over the steps since then: of u, of u above that of the first step, of max, and of the terms of [`Criterion::Degradation`].
    lost: f64,
    excess: f64,
    max: f64,
    degradation: f64,
    /// Mean over max in the first steps after balancings: their sum and number.
    efficiency: (f64, u64),
    has_balanced: bool,
}

impl Step {
    /// Times of a step: of the slowest rank, the mean over all, and of the fastest.
    pub fn new(max: f64, mean: f64, min: f64) -> Step {
        Step { max, mean, min }
    }

    /// Time that the step loses by imbalance.
    pub fn lost(&self) -> f64 {
        self.max - self.mean
    }

    fn efficiency(&self) -> f64 {
        if self.max > 0.0 { self.mean / self.max } else { 1.0 }
    }
}

impl Watch {
    /// A criterion before the first step.
    pub fn new(criterion: Criterion) -> Watch {
        Watch {
            criterion,
            steps: 0,
            first: None,
            last: [None; 3],
            above: 0,
            lost: 0.0,
            excess: 0.0,
            max: 0.0,
            degradation: 0.0,
            efficiency: (0.0, 0),
            has_balanced: false,
        }
    }

    /// Notes a step that has ended; returns whether to balance before the next, where that costs `cost`, in the steps' unit of time.
    pub fn ended(&mut self, step: Step, cost: f64) -> bool {
        self.note(step);
        self.says(step, cost)
    }

    /// Forgets the past steps: ranks were balanced, for whatever reason.
    pub fn balanced(&mut self) {
        *self = Watch { efficiency: self.efficiency, has_balanced: true, ..Watch::new(self.criterion) };
    }

    fn note(&mut self, step: Step) {
        if self.steps == 0 && self.has_balanced {
            self.efficiency = (self.efficiency.0 + step.efficiency(), self.efficiency.1 + 1);
        }
        self.steps += 1;
        self.first.get_or_insert(step);
        self.last = [self.last[1], self.last[2], Some(step)];
        self.lost += step.lost();
        self.excess += (step.lost() - self.baseline()).max(0.0);
        self.max += step.max;
        self.degradation += self.median_of_last() - self.max / self.steps as f64;
        if let Criterion::Threshold { above, .. } = self.criterion {
            self.above = if is_above(step.max, above * step.mean) { self.above + 1 } else { 0 };
        }
    }

    /// Loss of a step right after a balancing. Before the first balancing all loss is assumed to be avoidable.
    fn baseline(&self) -> f64 {
        self.first.filter(|_| self.has_balanced).map_or(0.0, |first| first.lost())
    }

    fn median_of_last(&self) -> f64 {
        let mut last: Vec<f64> = self.last.iter().flatten().map(|step| step.max).collect();
        last.sort_by(f64::total_cmp);
        match last[..] {
            [] => 0.0,
            [one] => one,
            [one, other] => f64::midpoint(one, other),
            [_, middle, ..] => middle,
        }
    }

    fn says(&self, step: Step, cost: f64) -> bool {
        match self.criterion {
            Criterion::Never => false,
            Criterion::Every(steps) => self.steps >= steps.max(1),
            Criterion::Threshold { window, cooldown, .. } => self.above >= window.max(1) && self.steps >= cooldown,
            Criterion::Cumulative => self.has_reached(self.lost, cost),
            Criterion::Excess => self.has_reached(self.excess, cost),
            Criterion::Interval => self.interval(step, cost).is_some_and(|steps| self.steps as f64 >= steps),
            Criterion::Degradation => self.has_reached(self.degradation, cost),
            Criterion::Area => self.has_reached(self.steps as f64 * step.lost() - self.lost, cost),
            Criterion::Efficiency { factor } => {
                let (sum, balancings) = self.efficiency;
                let after = if balancings == 0 { 1.0 } else { sum / balancings as f64 };
                is_above(factor * step.max, step.max * (step.efficiency() / after) + cost)
            }
            Criterion::Predicted { steps, margin } => {
                let each = Some(step.lost() - self.baseline()).filter(|gain| *gain > ROUNDING * step.max).unwrap_or(0.0);
                advice::pays(each * steps.unwrap_or(self.steps) as f64, margin * cost)
            }
            Criterion::Tolerance { part } => is_above(step.max, step.mean * (1.0 + part)) || is_above(step.mean * (1.0 - part), step.min),
        }
    }

    /// Returns true if there is a loss since the last balancing, and it has reached the cost.
    fn has_reached(&self, loss: f64, cost: f64) -> bool {
        loss >= cost && loss > ROUNDING * self.max
    }

    /// Steps from one balancing to the next, if u goes on growing as it did; `None` if it does not grow.
    fn interval(&self, step: Step, cost: f64) -> Option<f64> {
        let grown = step.lost() - self.first?.lost();
        let steps = (self.steps - 1) as f64;
        (grown > ROUNDING * step.max).then(|| (2.0 * cost * steps / grown).sqrt())
    }
}

/// Returns true if a time is above another by more than rounding.
fn is_above(time: f64, other: f64) -> bool {
    time > other * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the step, from 0, after which a criterion balances for the first time if u is 0, 1, 2, ..; the mean is 10.
    fn first(criterion: Criterion, cost: f64) -> Option<u64> {
        let mut watch = Watch::new(criterion);
        (0..1000).find(|at| watch.ended(Step { max: 10.0 + *at as f64, mean: 10.0, min: 10.0 - *at as f64 / 10.0 }, cost))
    }

    #[test]
    fn each_by_hand() {
        assert_eq!(first(Criterion::Never, 0.0), None);
        assert_eq!(first(Criterion::Every(5), 3.0), Some(4), "before the sixth step");
        // 0 + 1 + .. + 6 = 21.
        assert_eq!(first(Criterion::Cumulative, 20.0), Some(6));
        assert_eq!(first(Criterion::Excess, 20.0), Some(6));
        // sqrt(2 * 18 / 1) = 6 steps.
        assert_eq!(first(Criterion::Interval, 18.0), Some(5));
        // After n steps (n - 1) n - n (n - 1) / 2 = n (n - 1) / 2.
        assert_eq!(first(Criterion::Area, 21.0), Some(6));
        // n u = n (n - 1) is above 20 after 6 steps, 10 u from u = 3 on, half of it from u = 5 on.
        assert_eq!(first(Criterion::Predicted { steps: None, margin: 1.0 }, 20.0), Some(5));
        assert_eq!(first(Criterion::Predicted { steps: Some(10), margin: 1.0 }, 20.0), Some(3));
        assert_eq!(first(Criterion::Predicted { steps: Some(10), margin: 2.0 }, 20.0), Some(5));
        // Above 1.25 first with u = 3; three in a row are 3, 4, 5.
        assert_eq!(first(Criterion::Threshold { above: 1.25, window: 3, cooldown: 0 }, 9.0), Some(5));
        assert_eq!(first(Criterion::Threshold { above: 1.25, window: 1, cooldown: 9 }, 9.0), Some(8));
        // Balanced 10 + 4 < 10 + u from u = 5 on.
        assert_eq!(first(Criterion::Efficiency { factor: 1.0 }, 4.0), Some(5));
        assert_eq!(first(Criterion::Tolerance { part: 0.25 }, 0.0), Some(3));
        // Medians 0, 0.5, 1, 2, 3, ..; means 0, 0.5, 1, 1.5, 2: differences 0, 0, 0, 0.5, 1, 1.5, 2.
        assert_eq!(first(Criterion::Degradation, 3.0), Some(5));
    }

    /// Even where balancing costs nothing.
    #[test]
    fn without_imbalance_nothing_is_balanced() {
        let criteria = [
            Criterion::Threshold { above: 1.0, window: 1, cooldown: 0 },
            Criterion::Cumulative,
            Criterion::Excess,
            Criterion::Interval,
            Criterion::Degradation,
            Criterion::Area,
            Criterion::Efficiency { factor: 1.0 },
            Criterion::Predicted { steps: None, margin: 1.0 },
            Criterion::Predicted { steps: Some(1000), margin: 0.5 },
            Criterion::Tolerance { part: 0.0 },
        ];
        // The mean of three times 0.7 is 0.6999999999999998.
        for (time, ranks) in [(1.0, 1), (0.7, 3), (0.1, 3), (0.1, 7), (1e-9, 11), (0.0, 4)] {
            let series = Series::new(vec![vec![time; ranks]; 50], 0.0).unwrap();
            for criterion in criteria {
                assert_eq!(series.under(criterion).balanced_at, [0; 0], "{criterion:?}: {ranks} ranks of {time}");
                // Nor after a balancing.
                let mut watch = Watch::new(criterion);
                watch.balanced();
                let mean = (0..ranks).map(|_| time).sum::<f64>() / ranks as f64;
                assert!((0..50).all(|_| !watch.ended(Step { max: time, mean, min: time }, 0.0)), "{criterion:?}");
            }
        }
        // The first imbalance is reason enough, unless it needs a median of three steps.
        let mut work = vec![vec![0.7; 3]; 5];
        work.push(vec![0.7, 0.7, 0.8]);
        work.push(vec![0.7, 0.7, 0.8]);
        let series = Series::new(work, 0.0).unwrap();
        for criterion in criteria.into_iter().filter(|criterion| *criterion != Criterion::Degradation) {
            assert_eq!(series.under(criterion).balanced_at, [6], "{criterion:?}");
        }
    }

    #[test]
    fn what_balancing_cannot_repair_is_no_excess() {
        let steps = |criterion| {
            let mut watch = Watch::new(criterion);
            watch.balanced();
            (0..100).any(|_| watch.ended(Step { max: 12.0, mean: 10.0, min: 9.0 }, 50.0))
        };
        assert!(steps(Criterion::Cumulative));
        assert!(!steps(Criterion::Excess));
        // As efficient as after the balancing: nothing is to be won.
        assert!(!steps(Criterion::Efficiency { factor: 1.0 }));
    }

    #[test]
    fn a_balancing_begins_anew() {
        let mut watch = Watch::new(Criterion::Every(2));
        let step = Step { max: 1.0, mean: 1.0, min: 1.0 };
        assert!(!watch.ended(step, 1.0));
        watch.balanced();
        assert!(!watch.ended(step, 1.0));
        assert!(watch.ended(step, 1.0));
    }
}
