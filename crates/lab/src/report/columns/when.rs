//! The columns of a series of steps under each criterion.

use super::super::figures::small;
use super::super::figures::whole;
use super::{Column, Tabular, Value};
use crate::experiment::WhenRecord;

/// Maximum number of balancings whose steps people see.
const SHOWN: usize = 8;

impl Tabular for WhenRecord {
    fn columns() -> Vec<Column<Self>> {
        let new = Column::<Self>::new;
        vec![
            new("criterion", |row| row.criterion.clone())
                .heading("criterion")
                .left()
                .about("criterion for balancing; optimal is the best schedule"),
            new("total", |row| row.total.csv()).heading("total").reads(|row| small(row.total)).about("time of all steps and balancings"),
            new("ratio", |row| row.ratio.csv())
                .heading("ratio")
                .reads(|row| row.ratio.map_or("-".into(), |ratio| format!("{ratio:.4}")))
                .about("the total over that of the best schedule; - if that is 0"),
            new("balancings", |row| row.balancings.csv())
                .heading("balancings")
                .reads(|row| whole(row.balancings))
                .about("number of balancings"),
            new("steps", |row| listed(&row.steps, usize::MAX))
                .heading("before steps")
                .reads(|row| listed(&row.steps, SHOWN))
                .about("steps before which it balances; phases of a run"),
            new("series_steps", |row| row.series_steps.csv()),
            new("ranks", |row| row.ranks.csv()),
            new("cost", |row| row.cost.csv()),
        ]
    }
}

fn listed(steps: &[u64], most: usize) -> String {
    let mut text = steps.iter().take(most).map(u64::to_string).collect::<Vec<_>>().join(" ");
    if steps.len() > most {
        text.push_str(" ..");
    }
    text
}
