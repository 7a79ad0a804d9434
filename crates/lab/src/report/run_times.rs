//! The times of a run's record: with their units, and in parts.

use super::figures::{duration_us, three, whole};
use crate::experiment::RunRecord;

/// A time of a record with its unit.
pub(super) fn time(record: &RunRecord, time: f64) -> String {
    match (&record.scheduling, has_unit(record)) {
        (Some(_), true) => format!("{} cycles", whole(time.round() as u64)),
        (_, true) => format!("{} u", three(time)),
        (_, false) => duration_us(time * 1e6),
    }
}

/// An interval of times with their unit: `1.00-4.21 ms`.
pub(super) fn range(record: &RunRecord, [low, high]: [f64; 2]) -> String {
    let (low, high) = (time(record, low), time(record, high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}-{high}"),
        _ => format!("{low}-{high}"),
    }
}

pub(super) fn has_unit(record: &RunRecord) -> bool {
    record.unit_seconds != 1.0
}

pub(super) fn percent(share: f64) -> String {
    format!("{}%", three(100.0 * share))
}

/// Busy, overhead and idle time of a worker on average, in the first round. Overhead is part of the idle time where it is not more.
pub(super) fn parts_of_time(record: &RunRecord) -> [f64; 3] {
    let workers = record.busy.len().max(1) as f64 * f64::from(record.workers.max(1));
    let mean = |times: &[f64]| times.iter().sum::<f64>() / workers;
    let (busy, idle) = (mean(&record.busy), mean(&record.idle));
    let overhead =
        record.busy.iter().zip(&record.idle).zip(&record.overhead).map(|((_, idle), overhead)| overhead.min(*idle)).sum::<f64>() / workers;
    [busy, overhead, idle - overhead]
}

#[cfg(test)]
mod tests {
    use super::super::run_page::tests::record;
    use super::*;

    #[test]
    fn an_interval_names_its_unit_once() {
        let record = record("steal", 1.0);
        assert_eq!(range(&record, [0.001, 0.00421]), "1.00-4.21 ms");
        assert_eq!(range(&record, [0.0001, 0.00421]), "100 us-4.21 ms");
    }
}
