//! When to balance, for a program that asks once a step.

use super::{Criterion, Step, Watch, find};
use crate::spec::InvalidSpec;

/// Answers once a step whether to balance before the next.
///
/// It is a plain value and sends nothing: each rank has one, and gives it values that all ranks share, such as the results of an all-reduce. Then all
/// ranks get the same answers. Times are in one unit, such as seconds.
///
/// ```
/// use equipoise::trigger::Trigger;
///
/// let mut trigger = Trigger::find("menon", 1.5)?; // A balancing is expected to take 1.5 s.
/// let mut balanced_before = Vec::new();
/// for step in 1..=6 {
///     // The slowest rank's time and the mean over the ranks, from all-reduces.
///     let (max, mean) = (2.5, 2.0);
///     if trigger.ended(max, mean) {
///         // balance here, and take the time of the slowest rank
///         trigger.balanced(1.0);
///         balanced_before.push(step + 1);
///     }
/// }
/// // Half a second is lost in each step: 1.5 s after three, and the measured 1.0 s after two more.
/// assert_eq!(balanced_before, [4, 6]);
/// # Ok::<(), equipoise::spec::InvalidSpec>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trigger {
    watch: Watch,
    /// Expected cost of a balancing, and the sum and number of the measured costs.
    expected: f64,
    measured: (f64, u64),
}

impl Trigger {
    /// A trigger of this criterion. `cost` is the time that a balancing is expected to take, until the first one is measured; 0 if nothing is known,
    /// which makes criteria that weigh the cost balance at the first imbalance. A cost that is negative or not finite counts as 0.
    pub fn new(criterion: Criterion, cost: f64) -> Trigger {
        Trigger { watch: Watch::new(criterion), expected: sound(cost).unwrap_or(0.0), measured: (0.0, 0) }
    }

    /// The same of a criterion by name, `NAME[:key=value,..]`; `equipoise list` shows all.
    ///
    /// # Errors
    /// If there is none of this name, or its options are wrong.
    pub fn find(text: &str, cost: f64) -> Result<Trigger, InvalidSpec> {
        Ok(Trigger::new(find(text)?.made, cost))
    }

    /// Notes a step that took the slowest rank `max` and the ranks `mean` on average. Returns true if the ranks should be balanced before
    /// the next one.
    ///
    /// For [`Criterion::Tolerance`], use [`ended_within`](Trigger::ended_within): here the fastest rank counts as a mean one. A step with
    /// negative or infinite times is ignored, and the result is false.
    pub fn ended(&mut self, max: f64, mean: f64) -> bool {
        self.ended_within(Step { max, mean, min: mean })
    }

    /// The same with the time of the fastest rank.
    pub fn ended_within(&mut self, step: Step) -> bool {
        let is_sound = [step.max, step.mean, step.min].into_iter().all(|time| sound(time).is_some());
        is_sound && self.watch.ended(step, self.cost())
    }

    /// Ranks were balanced, whether the trigger asked for that or not; `seconds` is the time that it took, the same on all ranks. A time that is
    /// negative or not finite is not learnt from.
    pub fn balanced(&mut self, seconds: f64) {
        self.watch.balanced();
        if let Some(seconds) = sound(seconds) {
            self.measured = (self.measured.0 + seconds, self.measured.1 + 1);
        }
    }

    /// Expected cost of a balancing: the mean of the measured ones, if there are any.
    pub fn cost(&self) -> f64 {
        match self.measured {
            (_, 0) => self.expected,
            (sum, count) => sum / count as f64,
        }
    }
}

fn sound(time: f64) -> Option<f64> {
    Some(time).filter(|time| time.is_finite() && *time >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::trigger::Facts;

    #[test]
    fn the_cost_is_the_mean_of_what_was_measured() {
        let mut trigger = Trigger::find("menon", 8.0).unwrap();
        assert_eq!(trigger.cost(), 8.0);
        trigger.balanced(2.0);
        trigger.balanced(f64::NAN);
        trigger.balanced(4.0);
        assert_eq!(trigger.cost(), 3.0);
        assert_eq!(Trigger::new(Criterion::Cumulative, -1.0).cost(), 0.0);
    }

    #[test]
    fn times_that_are_none_count_for_nothing() {
        let mut trigger = Trigger::find("menon", 1.0).unwrap();
        for (max, mean) in [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (3.0, -1.0)] {
            assert!(!trigger.ended(max, mean));
        }
        assert!(!trigger.ended(1.5, 1.0));
        assert!(trigger.ended(1.5, 1.0));
    }

    #[test]
    fn the_fastest_rank_counts_where_it_is_known() {
        let slow = Step { max: 1.05, mean: 1.0, min: 0.5 };
        assert!(!Trigger::find("marquez", 0.0).unwrap().ended(slow.max, slow.mean));
        assert!(Trigger::find("marquez", 0.0).unwrap().ended_within(slow));
    }

    /// All ranks see the same values, so all must answer alike: nothing else may matter.
    #[test]
    fn equal_values_give_equal_answers() {
        for example in registry::examples::<Facts>() {
            let answers = || {
                let mut trigger = Trigger::find(example, 2.0).unwrap();
                let answer = |at: u32| {
                    let asked = trigger.ended(3.0 + f64::from(at * 7 % 5), 2.0);
                    if asked {
                        trigger.balanced(1.0 + f64::from(at % 3));
                    }
                    asked
                };
                (0..60).map(answer).collect::<Vec<bool>>()
            };
            assert_eq!(answers(), answers(), "{example}");
            assert_eq!(answers().contains(&true), example != "never", "{example}");
        }
    }
}
