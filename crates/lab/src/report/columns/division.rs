//! The columns of a division by the model: its processors, or its layers.

use super::super::figures::{small, whole};
use super::{Column, Tabular};
use crate::experiment::ModelRecord;
use crate::experiment::division::ProcessorRecord;

/// One processor of a division.
pub(in crate::report) struct ProcessorRow<'a>(pub &'a ProcessorRecord);

impl Tabular for ProcessorRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        let shown = Column::<Self>::shown;
        vec![
            shown("processor", |row| row.0.processor.to_string()),
            shown("layer", |row| row.0.layer.to_string()),
            shown("alpha", |row| small(row.0.alpha)),
            shown("volume", |row| small(row.0.volume)),
            shown("arrival", |row| small(row.0.arrival)).unit("s"),
            shown("finish", |row| small(row.0.finish)).unit("s"),
        ]
    }
}

/// The processors of one distance from the source.
pub(in crate::report) struct LayerRow<'a> {
    pub record: &'a ModelRecord,
    pub layer: usize,
}

impl LayerRow<'_> {
    /// A time of the layer; `-` where single processors were not calculated.
    fn time(&self, times: &[f64]) -> String {
        times.get(self.layer).map_or("-".into(), |time| small(*time))
    }
}

impl Tabular for LayerRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        let shown = Column::<Self>::shown;
        vec![
            shown("layer", |row| row.layer.to_string()),
            shown("processors", |row| whole(row.record.layers[row.layer])),
            shown("alpha", |row| small(row.record.alpha[row.layer])),
            shown("volume", |row| small(row.record.volume[row.layer])),
            shown("of all", |row| small(row.record.alpha[row.layer] * row.record.layers[row.layer] as f64)),
            shown("arrival", |row| row.time(&row.record.arrival)).unit("s"),
            shown("finish", |row| row.time(&row.record.finish)).unit("s"),
        ]
    }
}
