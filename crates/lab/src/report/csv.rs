//! CSV: one row per record, one column per figure. Missing values are left empty.

use std::io::{self, Write};

use super::columns::{self, PhaseNode, RankShare, Tabular};
use crate::experiment::papers::{Judged, Point};
use crate::experiment::{BalanceRecord, CaseResult, ProbeRecord, RunRecord, SpreadRecord, WhenRecord};

/// Writes the records of a comparison, with a header.
///
/// # Errors
/// If the writer fails.
pub fn compare(out: impl Write, results: &[CaseResult]) -> io::Result<()> {
    table(out, results.iter().flat_map(|result| &result.records))
}

/// Writes the nodes of one phase, with a header: power, load before, quota and load after of each.
///
/// # Errors
/// If the writer fails.
pub fn balance(out: impl Write, record: &BalanceRecord) -> io::Result<()> {
    table(out, PhaseNode::of(record).collect::<Vec<_>>().iter())
}

/// Writes runs, with a header.
///
/// # Errors
/// If the writer fails.
pub fn run(out: impl Write, records: &[RunRecord]) -> io::Result<()> {
    table(out, records.iter())
}

/// Writes the ranks of a division, with a header: bytes, seconds, seconds per byte.
///
/// # Errors
/// If the writer fails.
pub fn spread(out: impl Write, record: &SpreadRecord) -> io::Result<()> {
    table(out, RankShare::of(record).collect::<Vec<_>>().iter())
}

/// Writes a series of steps under each criterion, with a header.
///
/// # Errors
/// If the writer fails.
pub fn when(out: impl Write, records: &[WhenRecord]) -> io::Result<()> {
    table(out, records.iter())
}

/// Writes the links that a probe measured, with a header.
///
/// # Errors
/// If the writer fails.
pub fn probe(out: impl Write, record: &ProbeRecord) -> io::Result<()> {
    table(out, record.links.iter())
}

/// Writes the points of papers, with a header.
///
/// # Errors
/// If the writer fails.
pub fn points(out: impl Write, points: &[Point]) -> io::Result<()> {
    table(out, points.iter())
}

/// Writes the verdicts on papers' claims, with a header.
///
/// # Errors
/// If the writer fails.
pub fn claims(out: impl Write, judged: &[Judged]) -> io::Result<()> {
    table(out, judged.iter())
}

fn table<'a, R: Tabular + 'a>(out: impl Write, rows: impl Iterator<Item = &'a R>) -> io::Result<()> {
    let (header, rows) = columns::csv(rows);
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(header)?;
    for row in rows {
        table.write_record(row)?;
    }
    table.flush()
}
