//! Phases of balancers: a process for each phase, in it a row for each node; the parts of the phase are slices, messages are arrows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Event, Row, Shape, Writer};
use crate::experiment::Trace;
use equipoise::phase::trace::NodeTrace;
use equipoise::topology::{NodeId, RankId};

/// Writes phases, each as a process of its own that begins at time 0.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, traces: &[&Trace]) -> io::Result<()> {
    let mut writer = Writer::begin(out)?;
    let (mut arrows, mut missed) = (0, 0);
    for (pid, trace) in traces.iter().enumerate() {
        writer.process(pid, &trace.name)?;
        name_rows(&mut writer, pid, trace)?;
        for event in events(pid, trace, &mut arrows) {
            writer.event(&event)?;
        }
        missed += trace.rows.iter().map(|row| row.missed).sum::<u64>();
    }
    writer.end(json!({ "arrows": arrows, "messages left out": missed }))
}

/// Names and order of the rows.
fn name_rows(writer: &mut Writer<'_>, pid: usize, trace: &Trace) -> io::Result<()> {
    let placement = &trace.overlay.placement;
    let mut order: Vec<(RankId, NodeId)> = trace.rows.iter().map(|row| (placement.rank_of(row.node), row.node)).collect();
    order.sort_unstable();
    for (place, (rank, node)) in order.into_iter().enumerate() {
        let name = match (placement.is_virtual(node), rank.get() == node) {
            (true, _) => format!("rank {rank}: virtual node {node}"),
            (false, true) => format!("rank {rank}"),
            (false, false) => format!("rank {rank}: node {node}"),
        };
        writer.row(Row { pid, tid: node as usize }, &name, place)?;
    }
    Ok(())
}

/// Events in the order of time.
fn events(pid: usize, trace: &Trace, arrows: &mut u64) -> Vec<Event<'static>> {
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
        let event = |name: String, cat, at, shape, args| Event {
            name,
            cat,
            row: Row { pid, tid: row.node as usize },
            ts: us(row, at),
            shape,
            args,
        };
        for span in &row.spans {
            let shape = Shape::Slice { dur: (span.until - span.from) as f64 / 1e3 };
            events.push(event(span.stage.name().into(), "phase", span.from, shape, Value::Null));
        }
        for passage in &row.passages {
            let (src, dst) = if passage.sent { (row.node, passage.other) } else { (passage.other, row.node) };
            let what = if passage.tasks > 0 { "tasks" } else { "word" };
            let name = if passage.sent { format!("{what} to {dst}") } else { format!("{what} from {src}") };
            let args = json!({ "tasks": passage.tasks, "bytes": passage.bytes });
            events.push(event(name, "message", passage.at, Shape::Slice { dur: 0.0 }, args));
            if let Some((2, id)) = ends.get(&(src, dst, passage.epoch, passage.tag, passage.number)) {
                let shape = if passage.sent { Shape::ArrowBegins { id: *id } } else { Shape::arrow_ends(*id) };
                events.push(event(what.into(), "message", passage.at, shape, Value::Null));
            }
        }
    }
    // Enclosing events come before the enclosed ones.
    events.sort_by(|a, b| a.ts.total_cmp(&b.ts).then(b.duration().total_cmp(&a.duration())));
    events
}
