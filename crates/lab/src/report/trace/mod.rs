//! Traces in Chrome's format, which Perfetto (ui.perfetto.dev), chrome://tracing and speedscope show: processes with rows, on which lie slices
//! of time, marks, and arrows from one row to another. See the "Trace Event Format" document.

mod phase;
mod run;
mod spread;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

pub use phase::write as phases;
pub use run::write as runs;
pub use spread::write as spread;

/// A row of a process.
#[derive(Clone, Copy, Serialize)]
struct Row {
    pid: usize,
    tid: usize,
}

/// Something that happened on a row.
#[derive(Serialize)]
struct Event<'a> {
    name: String,
    cat: &'a str,
    #[serde(flatten)]
    row: Row,
    /// Start, in microseconds.
    ts: f64,
    #[serde(flatten)]
    shape: Shape,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

/// Kind of an event.
#[derive(Serialize)]
#[serde(tag = "ph")]
enum Shape {
    #[serde(rename = "X")]
    Slice {
        /// Duration, in microseconds.
        dur: f64,
    },
    /// A point in time, with its scope.
    #[serde(rename = "i")]
    Mark { s: char },
    /// Both ends of an arrow have the same number.
    #[serde(rename = "s")]
    ArrowBegins { id: u64 },
    /// With the binding point, what it ends at.
    #[serde(rename = "f")]
    ArrowEnds { id: u64, bp: char },
}

impl Shape {
    /// A point in the time of its row ("thread").
    const MARK: Shape = Shape::Mark { s: 't' };

    /// The end of an arrow at the slice around it ("enclosing").
    fn arrow_ends(id: u64) -> Shape {
        Shape::ArrowEnds { id, bp: 'e' }
    }
}

impl Event<'_> {
    /// In microseconds; 0 of what is no slice.
    fn duration(&self) -> f64 {
        match self.shape {
            Shape::Slice { dur } => dur,
            _ => 0.0,
        }
    }
}

/// A trace being written, an event a line.
struct Writer<'a> {
    out: &'a mut dyn Write,
    is_first: bool,
}

impl<'a> Writer<'a> {
    fn begin(out: &'a mut dyn Write) -> io::Result<Writer<'a>> {
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Writer { out, is_first: true })
    }

    /// Names a process; processes are shown in the order of their numbers.
    fn process(&mut self, pid: usize, name: &str) -> io::Result<()> {
        self.put(&json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}))?;
        self.put(&json!({"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": pid}}))
    }

    /// Names a row, and says which place it has among the rows of its process.
    fn row(&mut self, Row { pid, tid }: Row, name: &str, place: usize) -> io::Result<()> {
        self.put(&json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}))?;
        self.put(&json!({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": place}}))
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.put(event)
    }

    fn put(&mut self, event: &impl Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", if std::mem::take(&mut self.is_first) { "" } else { "," })?;
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    /// Ends the trace with what is to be said about all of it, an object.
    fn end(self, mut about: Value) -> io::Result<()> {
        about["producer"] = concat!("equipoise ", env!("CARGO_PKG_VERSION")).into();
        writeln!(self.out, "\n],\"otherData\":{about}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_fields_that_viewers_read() {
        let row = Row { pid: 3, tid: 5 };
        let event = |shape, args| Event { name: "task 7".into(), cat: "steal", row, ts: 1.5, shape, args };
        let mut out = Vec::new();
        let mut writer = Writer::begin(&mut out).unwrap();
        writer.process(3, "node 3").unwrap();
        writer.row(row, "rank 1", 2).unwrap();
        writer.event(&event(Shape::Slice { dur: 0.25 }, Value::Null)).unwrap();
        writer.event(&event(Shape::MARK, json!({"task": 7}))).unwrap();
        writer.event(&event(Shape::ArrowBegins { id: 9 }, Value::Null)).unwrap();
        writer.event(&event(Shape::arrow_ends(9), Value::Null)).unwrap();
        writer.end(json!({"arrows": 1})).unwrap();
        let written: Value = serde_json::from_slice(&out).unwrap();
        let events = json!([
            {"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "node 3"}},
            {"name": "process_sort_index", "ph": "M", "pid": 3, "args": {"sort_index": 3}},
            {"name": "thread_name", "ph": "M", "pid": 3, "tid": 5, "args": {"name": "rank 1"}},
            {"name": "thread_sort_index", "ph": "M", "pid": 3, "tid": 5, "args": {"sort_index": 2}},
            {"name": "task 7", "cat": "steal", "ph": "X", "pid": 3, "tid": 5, "ts": 1.5, "dur": 0.25},
            {"name": "task 7", "cat": "steal", "ph": "i", "s": "t", "pid": 3, "tid": 5, "ts": 1.5, "args": {"task": 7}},
            {"name": "task 7", "cat": "steal", "ph": "s", "id": 9, "pid": 3, "tid": 5, "ts": 1.5},
            {"name": "task 7", "cat": "steal", "ph": "f", "bp": "e", "id": 9, "pid": 3, "tid": 5, "ts": 1.5}
        ]);
        assert_eq!(written["traceEvents"], events);
        assert_eq!(written["otherData"]["arrows"], 1);
    }

    #[test]
    fn a_trace_of_nothing_is_one() {
        let mut out = Vec::new();
        Writer::begin(&mut out).unwrap().end(json!({})).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()["traceEvents"], json!([]));
    }
}
