//! A trace in Chrome's format, which Perfetto (ui.perfetto.dev), chrome://tracing and speedscope show: a row for each node, the parts of a
//! phase as slices, messages as arrows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::experiment::Trace;
use crate::experiment::trace::NodeTrace;

/// One event. See the "Trace Event Format" document; times are in microseconds.
#[derive(Serialize)]
struct Event {
    name: String,
    cat: &'static str,
    ph: &'static str,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: usize,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// An arrow ends at the slice around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// Writes the traces, each as a process of its own that begins at time 0.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, traces: &[&Trace]) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut first = true;
    let (mut arrows, mut missed) = (0, 0);
    for (pid, trace) in traces.iter().enumerate() {
        for value in names(pid, trace) {
            separate(out, &mut first)?;
            serde_json::to_writer(&mut *out, &value)?;
        }
        for event in events(pid, trace, &mut arrows) {
            separate(out, &mut first)?;
            serde_json::to_writer(&mut *out, &event)?;
        }
        missed += trace.rows.iter().map(|row| row.missed).sum::<u64>();
    }
    let other = json!({ "producer": concat!("equipoise ", env!("CARGO_PKG_VERSION")), "arrows": arrows, "messages left out": missed });
    writeln!(out, "\n],\"otherData\":{other}}}")
}

fn separate(out: &mut dyn Write, first: &mut bool) -> io::Result<()> {
    writeln!(out, "{}", if std::mem::take(first) { "" } else { "," })
}

/// What the process and its rows are called, and in which order they stand.
fn names(pid: usize, trace: &Trace) -> Vec<Value> {
    let placement = &trace.overlay.placement;
    let mut names = vec![
        json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": trace.name}}),
        json!({"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": pid}}),
    ];
    let mut order: Vec<(u32, u32)> = trace.rows.iter().map(|row| (placement.rank_of(row.node), row.node)).collect();
    order.sort_unstable();
    for (index, (rank, node)) in order.into_iter().enumerate() {
        let name = match (placement.is_virtual(node), rank == node) {
            (true, _) => format!("rank {rank}: virtual node {node}"),
            (false, true) => format!("rank {rank}"),
            (false, false) => format!("rank {rank}: node {node}"),
        };
        names.push(json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": node, "args": {"name": name}}));
        names.push(json!({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": node, "args": {"sort_index": index}}));
    }
    names
}

/// What happened, in the order of time.
fn events(pid: usize, trace: &Trace, arrows: &mut u64) -> Vec<Event> {
    let time = |row: &NodeTrace, at: u64| i128::from(at) + i128::from(row.offset);
    let began = trace.rows.iter().flat_map(|row| row.spans.iter().map(move |span| time(row, span.from))).min().unwrap_or(0);
    let us = |row: &NodeTrace, at: u64| (time(row, at) - began) as f64 / 1e3;
    // A message is known by its ends, its tag and its number; an arrow needs both of its ends.
    let mut ends: BTreeMap<_, (u8, u64)> = BTreeMap::new();
    for row in &trace.rows {
        for passage in &row.passages {
            let (src, dst) = if passage.sent { (row.node, passage.other) } else { (passage.other, row.node) };
            ends.entry((src, dst, passage.epoch, passage.tag, passage.number)).or_default().0 += 1;
        }
    }
    for (_, id) in ends.values_mut().filter(|(seen, _)| *seen == 2) {
        *arrows += 1;
        *id = *arrows;
    }
    let mut events = Vec::new();
    for row in &trace.rows {
        let event = |name: String, cat, ph, at| Event {
            name,
            cat,
            ph,
            ts: us(row, at),
            dur: None,
            pid,
            tid: row.node,
            id: None,
            bp: None,
            args: None,
        };
        for span in &row.spans {
            let dur = Some((span.until - span.from) as f64 / 1e3);
            events.push(Event { dur, ..event(span.part.name().into(), "phase", "X", span.from) });
        }
        for passage in &row.passages {
            let (src, dst) = if passage.sent { (row.node, passage.other) } else { (passage.other, row.node) };
            let what = if passage.tasks > 0 { "tasks" } else { "word" };
            let name = if passage.sent { format!("{what} to {dst}") } else { format!("{what} from {src}") };
            let args = Some(json!({ "tasks": passage.tasks, "bytes": passage.bytes }));
            events.push(Event { dur: Some(0.0), args, ..event(name, "message", "X", passage.at) });
            if let Some((2, id)) = ends.get(&(src, dst, passage.epoch, passage.tag, passage.number)) {
                let (ph, bp) = if passage.sent { ("s", None) } else { ("f", Some("e")) };
                events.push(Event { id: Some(*id), bp, ..event(what.into(), "message", ph, passage.at) });
            }
        }
    }
    events.sort_by(|a, b| a.ts.total_cmp(&b.ts).then(b.dur.unwrap_or(0.0).total_cmp(&a.dur.unwrap_or(0.0))));
    events
}
