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
            new("trigger", |row| row.trigger.clone())
                .heading("trigger")
                .left()
                .about("criterion for balancing; optimum is the best schedule"),
            new("total", |row| row.total.csv()).heading("total").reads(|row| small(row.total)).about("time of all steps and balancings"),
            new("ratio", |row| row.ratio.csv())
                .heading("ratio")
                .reads(|row| format!("{:.4}", row.ratio))
                .about("the total over that of the optimum"),
            new("balancings", |row| row.balancings.csv())
                .heading("balancings")
                .reads(|row| whole(row.balancings))
                .about("number of balancings"),
            new("balanced_at", |row| listed(&row.balanced_at, usize::MAX))
                .heading("before steps")
                .reads(|row| listed(&row.balanced_at, SHOWN))
                .about("steps before which it balances; phases of a run"),
            new("steps", |row| row.steps.csv()),
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
