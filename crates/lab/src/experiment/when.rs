//! When to balance: a series of steps under each criterion, and under the schedule that is best for it.

use equipoise::error::{Error, Result};
use equipoise::trigger::{Chosen, Criterion, Outcome, Series};
use serde::Serialize;

use crate::workload::steps::Steps;

/// Maximum number of times that are compared to find the best schedule: minutes of work.
const MOST_COMPARED: f64 = 1e11;

/// A series of steps under one criterion. Serialised, it is a line of `when --output json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhenRecord {
    /// The criterion with its options; `optimal` is the best of all schedules.
    pub criterion: String,
    /// Time of all steps and balancings, in the unit of the series.
    pub total: f64,
    /// The total over that of the best schedule: 1 if both are 0; `None` if that of the best schedule alone is 0.
    pub ratio: Option<f64>,
    /// Number of balancings, and the steps before which they are, by the numbers that the series gives them.
    pub balancings: u64,
    pub steps: Vec<u64>,
    /// Number of steps in the series and of ranks, and cost of a balancing.
    pub series_steps: u64,
    pub ranks: u64,
    pub cost: f64,
}

/// The name of the record of the best schedule.
pub const OPTIMAL: &str = "optimal";

/// Looks at a series under these criteria, in their order, after the best schedule, which comes first.
///
/// # Errors
/// Wrong usage if the best schedule would take hours to find, because of the number of steps and ranks, or if the sum of the times is too large.
pub fn when(steps: Steps, cost: f64, triggers: &[Chosen]) -> Result<Vec<WhenRecord>> {
    let Steps { work, numbers, .. } = steps;
    let series = Series::new(work, cost).map_err(|why| Error::input("series", format!(": {why}")))?;
    let (series_steps, ranks) = (series.len(), series.ranks());
    if (series_steps as f64).powi(2) / 2.0 * ranks as f64 > MOST_COMPARED {
        let why = format!(": {series_steps} steps of {ranks} ranks are too many; steps^2 / 2 x ranks may be {MOST_COMPARED:e} at most");
        return Err(Error::input("series", why));
    }
    let best = series.optimum();
    let least = best.total;
    let record = |criterion: &str, outcome: Outcome| WhenRecord {
        criterion: criterion.into(),
        ratio: ratio(outcome.total, least),
        total: outcome.total,
        balancings: outcome.balanced_at.len() as u64,
        steps: outcome.balanced_at.into_iter().map(|step| numbers[step]).collect(),
        series_steps: series_steps as u64,
        ranks: ranks as u64,
        cost,
    };
    let mut records = vec![record(OPTIMAL, best)];
    for trigger in triggers {
        records.push(match **trigger {
            // Without a number of steps, the best that could have been chosen.
            Criterion::Every(_) if trigger.name == "every" => {
                let interval = series.best_interval();
                record(&format!("every:steps={interval}"), series.under(Criterion::Every(interval)))
            }
            criterion => record(&trigger.name, series.under(criterion)),
        });
    }
    Ok(records)
}

/// A total over the least one; `None` if it would be infinite.
fn ratio(total: f64, least: f64) -> Option<f64> {
    match (total > 0.0, least > 0.0) {
        (_, true) => Some(total / least).filter(|ratio| ratio.is_finite()),
        (false, false) => Some(1.0),
        (true, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::registry::Registered;
    use equipoise::trigger::{Facts, find};

    fn growing(steps: u32, ranks: usize) -> Steps {
        let step = |at| (0..ranks).map(|rank| if rank == 0 { 10.0 + f64::from(at) } else { 10.0 }).collect();
        Steps { work: (0..steps).map(step).collect(), numbers: (0..u64::from(steps)).map(|at| 100 + at).collect(), skipped: Vec::new() }
    }

    #[test]
    fn the_best_schedule_comes_first_and_nothing_is_better() {
        let triggers: Vec<Chosen> = Facts::ALL.iter().map(|entry| find(entry.name).unwrap()).collect();
        let records = when(growing(40, 2), 4.0, &triggers).unwrap();
        assert_eq!(records.len(), 1 + Facts::ALL.len());
        assert_eq!((records[0].criterion.as_str(), records[0].ratio), (OPTIMAL, Some(1.0)));
        assert!(records.iter().all(|record| record.ratio >= Some(1.0) && record.balancings == record.steps.len() as u64));
        assert!(records.iter().all(|record| record.steps.iter().all(|step| (100..140).contains(step))));
        let named = |name: &str| records.iter().find(|record| record.criterion.starts_with(name)).unwrap();
        // u grows by a half a step: sqrt(2 * 4 / 0.5) = 4 steps.
        assert_eq!(named("every").criterion, "every:steps=4");
        assert_eq!(named("never").balancings, 0);
        // 10, 11, .., 49.
        assert_eq!(named("never").total, 1180.0);
    }

    #[test]
    fn nothing_to_do_is_no_worse_than_nothing_to_do() {
        let idle = Steps { work: vec![vec![0.0; 3]; 5], numbers: (0..5).collect(), skipped: Vec::new() };
        let records = when(idle, 1.0, &[find("menon").unwrap()]).unwrap();
        assert!(records.iter().all(|record| record.ratio == Some(1.0) && record.total == 0.0));
    }

    #[test]
    fn a_ratio_that_is_infinite_is_none() {
        let idle = Steps { work: vec![vec![0.0; 2]; 3], numbers: (0..3).collect(), skipped: Vec::new() };
        let records = when(idle, 1.0, &[find("every:steps=1").unwrap()]).unwrap();
        assert_eq!(records.iter().map(|record| (record.total, record.ratio)).collect::<Vec<_>>(), [(0.0, Some(1.0)), (2.0, None)]);
        assert_eq!((ratio(3.0, 2.0), ratio(1e300, 1e-300)), (Some(1.5), None));
    }

    #[test]
    fn what_would_take_hours_is_refused() {
        let why = when(growing(20_000, 501), 1.0, &[]).unwrap_err();
        assert_eq!(
            (why.to_string().as_str(), why.exit_status()),
            ("series: 20000 steps of 501 ranks are too many; steps^2 / 2 x ranks may be 1e11 at most", 2)
        );
    }
}
