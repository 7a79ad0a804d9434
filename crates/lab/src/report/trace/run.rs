//! Runs of task graphs: a process for each node, with a row for each task that is executed at the same time; messages and migrations are marks.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Event, Row, Shape, Writer};
use crate::experiment::RunRecord;
use crate::experiment::run::{Happening, NodeTimeline, TraceEntry};

/// Writes the timelines of all records, in sequence if there are several.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, records: &[RunRecord]) -> io::Result<()> {
    let mut writer = Writer::begin(out)?;
    let mut begins = 0;
    for record in records {
        for timeline in &record.timeline {
            writer.process(timeline.node as usize, &format!("node {} on rank {}", timeline.node, timeline.rank))?;
            for event in events(timeline, begins, &record.scheduler) {
                writer.event(&event)?;
            }
        }
        let ends = record.timeline.iter().flat_map(|node| &node.entries).map(end).max().unwrap_or(0);
        begins += ends + ends / 10;
    }
    writer.end(json!({}))
}

fn end(line: &TraceEntry) -> u64 {
    match line.what {
        Happening::Executed { ticks } => line.at + ticks,
        _ => line.at,
    }
}

/// Ticks as microseconds.
fn us(ticks: u64) -> f64 {
    ticks as f64 / 1e3
}

fn events<'a>(timeline: &NodeTimeline, begins: u64, scheduler: &'a str) -> Vec<Event<'a>> {
    let event = |name, tid, at, shape, args| Event {
        name,
        cat: scheduler,
        row: Row { pid: timeline.node as usize, tid },
        ts: us(begins + at),
        shape,
        args,
    };
    let mut executed: Vec<&TraceEntry> = timeline.entries.iter().filter(|line| matches!(line.what, Happening::Executed { .. })).collect();
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
        events.push(event(name, row + 1, line.at, Shape::Slice { dur: us(end(line) - line.at) }, Value::Null));
    }
    for line in &timeline.entries {
        let (what, other) = match line.what {
            Happening::Executed { .. } => continue,
            Happening::Left { to } => ("task left to", to),
            Happening::Arrived { from } => ("task arrived from", from),
            Happening::AnswerLeft { to } => ("answer left to", to),
            Happening::AnswerArrived { from } => ("answer arrived from", from),
            Happening::Announced { to } => ("told", to),
            Happening::Heard { from } => ("heard", from),
            Happening::Waits { children } => ("waits for children:", children),
            Happening::Resumed => ("resumed", timeline.node),
        };
        let task = line.task.map(|task| task.to_string());
        events.push(event(format!("{what} {other}"), 0, line.at, Shape::MARK, json!({"task": task})));
    }
    events
}
