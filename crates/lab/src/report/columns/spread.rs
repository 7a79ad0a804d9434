//! The columns of an input divided over ranks: its ranks, and the links between them.

use super::super::figures::{bytes, seconds, three};
use super::{Column, Tabular, Value};
use crate::experiment::SpreadRecord;
use crate::experiment::spread::{LinkRecord, Split};

/// One rank of a division.
pub(in crate::report) struct RankShare<'a> {
    record: &'a SpreadRecord,
    rank: usize,
}

impl<'a> RankShare<'a> {
    /// All ranks of a record.
    pub fn of(record: &'a SpreadRecord) -> impl Iterator<Item = RankShare<'a>> {
        (0..record.split.len()).map(move |rank| RankShare { record, rank })
    }

    fn split(&self) -> &Split {
        &self.record.split[self.rank]
    }

    /// A time; `-` without a share.
    fn time(&self, time: f64) -> String {
        if self.record.shares[self.rank] > 0 { seconds(time) } else { "-".into() }
    }
}

impl Tabular for RankShare<'_> {
    fn columns() -> Vec<Column<Self>> {
        let new = Column::<Self>::new;
        vec![
            new("rank", |row| row.rank.csv()).heading("rank"),
            new("share", |row| row.record.shares[row.rank].csv()).heading("share").reads(|row| bytes(row.record.shares[row.rank])),
            new("calibrated", |row| row.split().calibrated.csv())
                .heading("calibrated")
                .unit("ns/B")
                .reads(|row| per_byte(row.split().calibrated)),
            new("achieved", |row| row.split().achieved.csv()).heading("achieved").unit("ns/B").reads(|row| per_byte(row.split().achieved)),
            new("predicted_finish", |row| row.record.predicted_finish[row.rank].csv())
                .heading("predicted\nfinish")
                .reads(|row| if row.record.predicts { row.time(row.record.predicted_finish[row.rank]) } else { "-".into() }),
            new("finish", |row| row.record.finish[row.rank].csv()).heading("finish").reads(|row| row.time(row.record.finish[row.rank])),
            new("waiting", |row| row.split().waiting.csv()).heading("waiting").reads(|row| row.time(row.split().waiting)),
            new("computing", |row| row.split().computing.csv()).heading("computing").reads(|row| row.time(row.split().computing)),
            new("pausing", |row| row.split().pausing.csv()).heading("pausing").reads(|row| row.time(row.split().pausing)),
            new("idle", |row| row.split().idle.csv()).heading("idle").reads(|row| row.time(row.split().idle)),
            new("most_waiting", |row| row.split().most_waiting.csv()),
        ]
    }
}

fn per_byte(cost: f64) -> String {
    if cost > 0.0 { three(cost * 1e9) } else { "-".into() }
}

/// One link of a division.
pub(in crate::report) struct SpreadLink<'a>(pub &'a LinkRecord);

impl Tabular for SpreadLink<'_> {
    fn columns() -> Vec<Column<Self>> {
        let shown = Column::<Self>::shown;
        vec![
            shown("link", |row| format!("{} to {}", row.0.from, row.0.to)),
            shown("sent", |row| bytes(row.0.bytes)),
            shown("start-up", |row| seconds(row.0.startup)),
            shown("bandwidth", |row| if row.0.seconds_per_byte > 0.0 { three(1e-6 / row.0.seconds_per_byte) } else { "-".into() })
                .unit("MB/s"),
        ]
    }
}
