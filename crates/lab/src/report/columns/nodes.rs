//! The columns of the nodes of one balancing phase.

use super::super::figures::whole;
use super::{Column, Tabular, Value};
use crate::experiment::BalanceRecord;

/// One node of a phase.
pub(in crate::report) struct PhaseNode<'a> {
    record: &'a BalanceRecord,
    node: usize,
}

impl<'a> PhaseNode<'a> {
    /// All nodes of a record.
    pub fn of(record: &'a BalanceRecord) -> impl Iterator<Item = PhaseNode<'a>> {
        (0..record.loads.len()).map(move |node| PhaseNode { record, node })
    }
}

impl Tabular for PhaseNode<'_> {
    fn columns() -> Vec<Column<Self>> {
        let new = Column::<Self>::new;
        vec![
            new("node", |row| row.node.csv()).heading("node"),
            new("power", |row| row.record.powers.shown(row.node)).heading("power"),
            new("load", |row| row.record.loads[row.node].csv()).heading("load before").reads(|row| whole(row.record.loads[row.node])),
            new("quota", |row| row.record.quota[row.node].csv()).heading("quota").reads(|row| whole(row.record.quota[row.node])),
            new("final", |row| row.record.finals[row.node].csv()).heading("load after").reads(|row| whole(row.record.finals[row.node])),
        ]
    }
}
