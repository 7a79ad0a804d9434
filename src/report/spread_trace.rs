//! A division in the trace format of Chrome (`chrome://tracing`, ui.perfetto.dev): a process for what was predicted and one for what was
//! measured; in each two rows for a rank, when its share was on the way and when it computed.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::experiment::SpreadRecord;
use crate::experiment::spread::Interval;

const KINDS: [&str; 2] = ["predicted", "measured"];

/// Writes it.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, record: &SpreadRecord) -> io::Result<()> {
    let mut before = "[\n";
    for (pid, kind) in KINDS.iter().enumerate() {
        let name = format!("{}, {kind}", record.kernel);
        let process = json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}});
        write!(out, "{before}{process}")?;
        before = ",\n";
        for (rank, pair) in record.charts.iter().enumerate() {
            let (link, work) = (2 * rank, 2 * rank + 1);
            for (row, name) in [(link, format!("link to rank {rank}")), (work, format!("rank {rank}"))] {
                let named = json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": row, "args": {"name": name}});
                write!(out, "{before}{named}")?;
                let sorted = json!({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": row, "args": {"sort_index": row}});
                write!(out, "{before}{sorted}")?;
            }
            let share = record.shares.get(rank).copied().unwrap_or(0);
            for interval in &pair[pid].sending {
                write!(out, "{before}{}", slice("share on the way", interval, pid, link, share))?;
            }
            for interval in &pair[pid].computing {
                write!(out, "{before}{}", slice("computing", interval, pid, work, share))?;
            }
        }
    }
    out.write_all(b"\n]\n")
}

/// Times are in microseconds there.
fn slice(name: &str, interval: &Interval, pid: usize, row: usize, share: u64) -> Value {
    json!({
        "name": name, "cat": KINDS[pid], "ph": "X", "pid": pid, "tid": row,
        "ts": 1e6 * interval.begin, "dur": 1e6 * (interval.end - interval.begin), "args": {"share": share}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_of_the_chart_is_a_slice() {
        let mut out = Vec::new();
        write(&mut out, &super::super::spread_page::tests::record()).unwrap();
        let events: Vec<Value> = serde_json::from_slice(&out).unwrap();
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
