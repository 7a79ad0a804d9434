//! Worth of a balancing phase: whether it should be carried out at all, and the figure by which phases on the same tasks are compared.
//!
//! | tasks | a phase is worth it if | the better of two phases |
//! |---|---|---|
//! | beyond a rank's capacity | all ranks are within their capacities after it | as below |
//! | with several weights | the largest ratio of a rank's load over its fair share falls | has the smaller largest ratio |
//! | of known duration | the slowest rank is faster; over a given number of steps by more than the phase takes | takes less time: a step after it, and its own time spread over the steps |
//! | otherwise | the slowest rank is faster | has the faster slowest rank |

use super::compare::CompareRecord;
use equipoise::load::Holding;

/// Sums of the same numbers in another order differ in their last digits.
const ROUNDING: f64 = 1e-9;

impl CompareRecord {
    /// Seconds of a unit of work on a rank of average power: those given for the comparison, or else those of the tasks' source.
    pub fn unit_seconds(&self) -> Option<f64> {
        self.task_seconds.or(self.weighing.unit_seconds)
    }

    /// The largest ratio of a rank's load over its fair share, of all weights, before and after the phase; `None` if tasks have one weight.
    pub fn largest_ratios(&self) -> Option<[f64; 2]> {
        let columns = self.columns.as_ref()?;
        let both = |[before, after]: [f64; 2], next: [f64; 2]| [before.max(next[0]), after.max(next[1])];
        Some(columns.iter().map(|column| [column.before, column.after]).fold([0.0; 2], both))
    }

    /// A rank that was beyond its capacity before the phase: then tasks must move, whatever that costs.
    pub fn beyond_capacity(&self) -> Option<Holding> {
        self.memory.as_ref()?.fullest_before().filter(Holding::is_beyond)
    }

    /// Returns true if the phase should be carried out, rather than none.
    pub fn is_worth_it(&self) -> bool {
        if let (Some(memory), Some(_)) = (&self.memory, self.beyond_capacity()) {
            return !memory.fullest_after().is_some_and(|fullest| fullest.is_beyond());
        }
        if let Some([before, after]) = self.largest_ratios() {
            return before > after * (1.0 + ROUNDING);
        }
        match (self.break_even_us, self.unit_seconds(), self.lasting) {
            (Some(us), Some(seconds), Some(steps)) => us / 1e6 < seconds * steps as f64,
            (break_even_us, ..) => break_even_us.is_some(),
        }
    }

    /// Number of steps after which the phase has gained the time that it took; `None` if it never does, or if the duration of tasks is unknown.
    pub fn steps_until_it_pays(&self) -> Option<u64> {
        Some((self.break_even_us? / 1e6 / self.unit_seconds()?).ceil().max(1.0) as u64)
    }

    /// The figure by which phases on the same tasks are compared, the smaller the better: see the module. The time of the phase is
    /// spread over `steps` steps.
    pub fn goal(&self, steps: u64) -> f64 {
        match (self.largest_ratios(), self.unit_seconds()) {
            (Some([_, after]), _) => after,
            (None, Some(seconds)) => self.makespan_after * seconds * 1e3 + self.ms_median / steps.max(1) as f64,
            (None, None) => self.makespan_after,
        }
    }

    /// The [goal](Self::goal) with the time of each round, where the duration of tasks is known and the phase was measured; `None` where the goal
    /// repeats exactly.
    pub fn measured_goals(&self, steps: u64) -> Option<Vec<f64>> {
        let seconds = self.unit_seconds().filter(|_| self.columns.is_none() && self.site.network.is_none())?;
        Some(self.ms_rounds.iter().map(|ms| self.makespan_after * seconds * 1e3 + ms / steps.max(1) as f64).collect())
    }
}
