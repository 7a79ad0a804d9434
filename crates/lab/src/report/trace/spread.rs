//! Timeline of divisions of one input: a process for the prediction and one for the measurement; in each two rows for a rank, for the
//! transfer of its share and for its computing.

use std::io::{self, Write};

use serde_json::json;

use super::{Event, Row, Shape, Writer};
use crate::experiment::SpreadRecord;
use crate::experiment::spread::TimeInterval;

const KINDS: [&str; 2] = ["predicted", "measured"];

/// Writes a division.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, record: &SpreadRecord) -> io::Result<()> {
    let mut writer = Writer::begin(out)?;
    for (pid, kind) in KINDS.iter().enumerate() {
        writer.process(pid, &format!("{}, {kind}", record.kernel))?;
        for (rank, pair) in record.charts.iter().enumerate() {
            let (link, work) = (Row { pid, tid: 2 * rank }, Row { pid, tid: 2 * rank + 1 });
            writer.row(link, &format!("link to rank {rank}"), link.tid)?;
            writer.row(work, &format!("rank {rank}"), work.tid)?;
            let share = record.shares.get(rank).copied().unwrap_or(0);
            for interval in &pair[pid].sending {
                writer.event(&slice("share on the way", interval, link, share))?;
            }
            for interval in &pair[pid].computing {
                writer.event(&slice("computing", interval, work, share))?;
            }
        }
    }
    writer.end(json!({}))
}

fn slice(name: &str, interval: &TimeInterval, row: Row, share: u64) -> Event<'static> {
    let dur = 1e6 * (interval.end - interval.begin);
    Event {
        name: name.into(),
        cat: KINDS[row.pid],
        row,
        ts: 1e6 * interval.begin,
        shape: Shape::Slice { dur },
        args: json!({"share": share}),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::spread_page::tests::record;

    #[test]
    fn every_bar_of_the_chart_is_a_slice() {
        let mut out = Vec::new();
        write(&mut out, &record()).unwrap();
        let written: Value = serde_json::from_slice(&out).unwrap();
        let events = written["traceEvents"].as_array().unwrap();
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let of = |cat: &str, name: &str| slices.iter().filter(|slice| slice["cat"] == cat && slice["name"] == name).count();
        assert_eq!([of("predicted", "computing"), of("measured", "computing"), of("measured", "share on the way")], [2, 3, 1]);
        let last = slices.last().unwrap();
        let took = last["dur"].as_f64().unwrap();
        assert!(last["ts"] == json!(800_000.0) && (took - 300_000.0).abs() < 1e-6 && last["tid"] == 3 && last["args"]["share"] == 400);
        let names = ["link to rank 0", "rank 0", "link to rank 1", "rank 1"];
        assert!(names.iter().all(|name| events.iter().any(|event| event["args"]["name"] == *name)));
    }
}
