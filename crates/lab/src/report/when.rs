//! A series of steps under each criterion, for people.

use super::figures::several;
use super::table::{self, lines};
use crate::experiment::WhenRecord;

/// A sentence on the series, and a table of the criteria, the best first.
pub fn table(records: &[WhenRecord], width: u16) -> String {
    let Some(first) = records.first() else { return String::new() };
    let mut sorted = records.to_vec();
    sorted.sort_by(|one, other| one.total.total_cmp(&other.total));
    let head = format!("{} on {}, a balancing costs {}\n\n", several(first.series_steps, "step"), several(first.ranks, "rank"), first.cost);
    head + &lines(&table::of(&sorted, width))
}
