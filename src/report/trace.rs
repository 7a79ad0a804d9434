//! A run's timeline in the trace format of Chrome (`chrome://tracing`, ui.perfetto.dev): a process for each node, in it a row for each task
//! that is executed beside others; messages and migrations are marks.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::experiment::RunRecord;
use crate::experiment::run::{Happening, Line, Timeline};

/// Writes the timelines of all records, one after the other in time where there are several.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, records: &[RunRecord]) -> io::Result<()> {
    let mut before = "[\n";
    let mut begins = 0;
    for record in records {
        for timeline in &record.timeline {
            let name = format!("node {} on rank {}", timeline.node, timeline.rank);
            let named = json!({"name": "process_name", "ph": "M", "pid": timeline.node, "args": {"name": name}});
            write!(out, "{before}{named}")?;
            before = ",\n";
            for event in events(timeline, begins, &record.scheduler) {
                write!(out, "{before}{event}")?;
            }
        }
        let ends = record.timeline.iter().flat_map(|node| &node.entries).map(end).max().unwrap_or(0);
        begins += ends + ends / 10;
    }
    out.write_all(if before == "[\n" { b"[]\n" } else { b"\n]\n" })
}

fn end(line: &Line) -> u64 {
    match line.what {
        Happening::Executed { ticks } => line.at + ticks,
        _ => line.at,
    }
}

/// Ticks as microseconds.
fn us(ticks: u64) -> f64 {
    ticks as f64 / 1e3
}

fn events(timeline: &Timeline, begins: u64, scheduler: &str) -> Vec<Value> {
    let mut executed: Vec<&Line> = timeline.entries.iter().filter(|line| matches!(line.what, Happening::Executed { .. })).collect();
    executed.sort_by_key(|line| line.at);
    // A row is free again when its last task has ended.
    let mut rows: Vec<u64> = Vec::new();
    let mut events = Vec::with_capacity(timeline.entries.len());
    for line in executed {
        let row = rows.iter().position(|free| *free <= line.at).unwrap_or(rows.len());
        if row == rows.len() {
            rows.push(0);
        }
        rows[row] = end(line);
        let name = line.task.map_or("task".into(), |task| format!("task {task}"));
        events.push(json!({
            "name": name, "cat": scheduler, "ph": "X", "pid": timeline.node, "tid": row + 1,
            "ts": us(begins + line.at), "dur": us(end(line) - line.at)
        }));
    }
    for line in &timeline.entries {
        let (what, other) = match line.what {
            Happening::Executed { .. } => continue,
            Happening::Left { to } => ("task left to", to),
            Happening::Arrived { from } => ("task arrived from", from),
            Happening::AnswerLeft { to } => ("answer left to", to),
            Happening::AnswerArrived { from } => ("answer arrived from", from),
            Happening::Told { to } => ("told", to),
            Happening::Heard { from } => ("heard", from),
            Happening::Waits { children } => ("waits for children:", children),
            Happening::Resumed => ("resumed", timeline.node),
        };
        let task = line.task.map(|task| task.to_string());
        events.push(json!({
            "name": format!("{what} {other}"), "cat": scheduler, "ph": "i", "s": "t", "pid": timeline.node, "tid": 0,
            "ts": us(begins + line.at), "args": {"task": task}
        }));
    }
    events
}
