//! A division of a load by the model, for people.

use super::columns::{LayerRow, ProcessorRow};
use super::figures::{several, three};
use super::table::{self, lines};
use crate::experiment::ModelRecord;

/// Maximum number of processors or layers that are listed.
const SHOWN: usize = 64;

/// A sentence on the whole, and a table by layer, or by processor where those of a layer differ and are few.
pub fn model(record: &ModelRecord, width: u16) -> String {
    let mut out = format!(
        "{}, {} by {}: all done after {} s\nspeedup {}, utilisation {}, as good as one processor of w = {}\n\n",
        record.topology,
        if record.ports == "one" { "one port," } else { "all ports," },
        record.method,
        three(record.makespan),
        three(record.speedup),
        three(record.utilisation),
        three(record.equivalent_w)
    );
    if !record.by_processor.is_empty() && record.by_processor.len() <= SHOWN {
        out.push_str(&lines(&table::of(&record.by_processor.iter().map(ProcessorRow).collect::<Vec<_>>(), width)));
        return out;
    }
    let loaded = record.volume.iter().rposition(|volume| *volume > 0.0).map_or(0, |last| last + 1);
    let shown = loaded.min(SHOWN);
    out.push_str(&lines(&table::of(&(0..shown).map(|layer| LayerRow { record, layer }).collect::<Vec<_>>(), width)));
    if shown < loaded {
        out.push_str(&format!("and {} more (--output json has them all)\n", several((loaded - shown) as u64, "layer")));
    }
    if loaded < record.layers.len() {
        out.push_str(&format!("nothing for {} more\n", several((record.layers.len() - loaded) as u64, "layer")));
    }
    out
}
