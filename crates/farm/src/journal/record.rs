//! One record: a line with a column for each figure. Whatever would be taken for the end of a column or line is written out.

use crate::task::{Outcome, State};

/// The columns of GNU parallel's job log.
pub const PARALLEL: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";

/// The first line of a file of records.
pub fn header() -> String {
    format!("{PARALLEL}\tCpuTime\tMaxMemory\tOutBytes\tOutLines\tErrBytes\tErrLines\tAttempt\tState\n")
}

/// The record of an attempt, with the end of its line. `MaxMemory` is in KiB.
pub fn write(out: &mut Vec<u8>, host: &str, outcome: &Outcome, command: &[u8]) {
    parallel(out, outcome.seq, host, outcome);
    escape(out, command);
    let Outcome { cpu, memory, out: output, err, attempt, state, .. } = outcome;
    let (o, e) = (output, err);
    let own = format!("\t{cpu:.3}\t{memory}\t{}\t{}\t{}\t{}\t{attempt}\t{}\n", o.bytes, o.lines, e.bytes, e.lines, state.name());
    out.extend(own.into_bytes());
}

/// The record in the format of GNU parallel's job log, with its number for the command: the command as it is, but for ends of lines, which are zero bytes
/// there.
pub fn write_parallel(out: &mut Vec<u8>, number: u64, host: &str, outcome: &Outcome, command: &[u8]) {
    parallel(out, number, host, outcome);
    out.extend(exchanged(command, b'\n', 0));
    out.push(b'\n');
}

fn exchanged(text: &[u8], one: u8, by: u8) -> impl Iterator<Item = u8> {
    text.iter().map(move |byte| if *byte == one { by } else { *byte })
}

fn parallel(out: &mut Vec<u8>, number: u64, host: &str, outcome: &Outcome) {
    let Outcome { start, runtime, exit, signal, .. } = outcome;
    let mut named = Vec::new();
    escape(&mut named, host.as_bytes());
    out.extend(number.to_string().into_bytes());
    out.push(b'\t');
    out.extend(named);
    out.extend(format!("\t{start:.3}\t{runtime:10.3}\t0\t{}\t{exit}\t{signal}\t", outcome.out.bytes).into_bytes());
}

/// Escapes tabs, ends of lines, backslashes, other control characters and bytes that are not UTF-8.
pub fn escape(out: &mut Vec<u8>, text: &[u8]) {
    for part in text.utf8_chunks() {
        for &byte in part.valid().as_bytes() {
            match byte {
                b'\t' => out.extend(b"\\t"),
                b'\n' => out.extend(b"\\n"),
                b'\\' => out.extend(b"\\\\"),
                0..=31 | 127 => out.extend(format!("\\x{byte:02x}").into_bytes()),
                byte => out.push(byte),
            }
        }
        for byte in part.invalid() {
            out.extend(format!("\\x{byte:02x}").into_bytes());
        }
    }
}

/// Reverses [`escape`].
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (byte, used) = match (first, after) {
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b'x', high, low, ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (16 * high + low, 4),
                _ => (b'\\', 1),
            },
            (byte, _) => (*byte, 1),
        };
        out.push(byte);
        rest = &rest[used..];
    }
    out
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub seq: u64,
    pub host: String,
    pub start: f64,
    pub runtime: f64,
    pub exit: i32,
    pub signal: i32,
    pub command: Vec<u8>,
    pub attempt: u32,
    pub state: State,
    /// It has the columns of a journal; otherwise it is from a job log of GNU parallel.
    pub is_ours: bool,
    /// Processor time and largest memory (KiB), and the bytes of both outputs; zero in others' logs.
    pub cpu: f64,
    pub memory: u64,
    pub out_bytes: u64,
    pub err_bytes: u64,
}

/// Reads a record of ours or of GNU parallel, without the end of its line; `None` for a line that is none.
pub fn read(line: &[u8]) -> Option<Record> {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    // A command in a job log may have tabs, too.
    let Some(state) = columns.get(16).filter(|_| columns.len() == 17).and_then(|name| State::parse(name)) else {
        return read_parallel(line);
    };
    Some(Record {
        command: unescape(columns[8]),
        attempt: number(columns[15])?,
        state,
        is_ours: true,
        cpu: number(columns[9])?,
        memory: number(columns[10])?,
        out_bytes: number(columns[11])?,
        err_bytes: number(columns[13])?,
        ..begin(&columns)?
    })
}

/// Reads a line of a file, with its end. A line that was cut has none, and is no record unless the end is all that it lacks: no state's name begins
/// with another's, so a record of ours whose last column is a state is whole.
pub fn read_line(line: &[u8]) -> Option<Record> {
    match line.strip_suffix(b"\n") {
        Some(line) => read(line),
        None => read(line).filter(|record| record.is_ours),
    }
}

/// Reads a record of GNU parallel.
pub fn read_parallel(line: &[u8]) -> Option<Record> {
    let columns: Vec<&[u8]> = line.splitn(9, |byte| *byte == b'\t').collect();
    let command = exchanged(columns.get(8)?, 0, b'\n').collect();
    Some(Record { command, ..begin(&columns)? })
}

/// Record of the columns that both have.
fn begin(columns: &[&[u8]]) -> Option<Record> {
    let seconds = |column| number::<f64>(column).filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let (exit, signal) = (number(columns[6])?, number(columns[7])?);
    Some(Record {
        seq: number(columns[0]).filter(|seq| *seq > 0)?,
        host: std::str::from_utf8(columns[1]).ok()?.trim().to_string(),
        start: seconds(columns[2])?,
        runtime: seconds(columns[3])?,
        exit,
        signal,
        command: Vec::new(),
        attempt: 1,
        state: if exit == 0 && signal == 0 { State::Done } else { State::Failed },
        is_ours: false,
        cpu: 0.0,
        memory: 0,
        out_bytes: 0,
        err_bytes: 0,
    })
}

fn number<T: std::str::FromStr>(column: &[u8]) -> Option<T> {
    std::str::from_utf8(column).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Capture;
    use proptest::prelude::*;

    fn outcome() -> Outcome {
        let out = Capture { bytes: 12, lines: 3, ..Capture::default() };
        let (start, runtime, cpu, memory) = (1.5e9, 0.25, 0.125, 2048);
        Outcome { out, start, runtime, cpu, memory, exit: 3, attempt: 2, ..Outcome::without_run(7, State::Failed) }
    }

    #[test]
    fn the_first_columns_are_parallels() {
        let mut line = Vec::new();
        write(&mut line, "node1", &outcome(), b"echo 'a\tb'\n\xff");
        let text = String::from_utf8(line).unwrap();
        assert_eq!(text, "7\tnode1\t1500000000.000\t     0.250\t0\t12\t3\t0\techo 'a\\tb'\\n\\xff\t0.125\t2048\t12\t3\t0\t0\t2\tfailed\n");
        assert_eq!(header().split('\t').count(), text.split('\t').count());
        let mut line = Vec::new();
        write_parallel(&mut line, 7, "node1", &outcome(), b"echo a\tb");
        assert_eq!(String::from_utf8(line).unwrap(), "7\tnode1\t1500000000.000\t     0.250\t0\t12\t3\t0\techo a\tb\n");
    }

    #[test]
    fn records_of_both_forms_are_read() {
        let mut line = Vec::new();
        write(&mut line, "node1", &outcome(), b"a\tb");
        let record = read(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((record.seq, record.exit, record.attempt, record.state), (7, 3, 2, State::Failed));
        assert_eq!((record.cpu, record.memory, record.out_bytes, record.command.as_slice()), (0.125, 2048, 12, &b"a\tb"[..]));
        let theirs = read(b"2\t:\t1700000000.123\t     0.003\t0\t0\t0\t0\techo a\tb").unwrap();
        let tabs = read(b"2\t:\t1.5\t     0.003\t0\t0\t0\t0\t1\t2\t3\t4\t5\t6\t7\t8\t9").unwrap();
        assert_eq!((tabs.is_ours, tabs.command.as_slice()), (false, &b"1\t2\t3\t4\t5\t6\t7\t8\t9"[..]));
        assert_eq!((theirs.seq, theirs.state, theirs.command.as_slice()), (2, State::Done, &b"echo a\tb"[..]));
        for wrong in ["", "x", header().trim_end(), "0\t:\t1\t1\t0\t0\t0\t0\tx", "1\t:\t1\t1\t0\t0\t0"] {
            assert_eq!(read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn ends_of_lines_in_a_job_log_are_zero_bytes() {
        let mut line = Vec::new();
        write_parallel(&mut line, 7, "node1", &outcome(), b"echo a\necho\tb\n");
        assert_eq!([b'\n', 0].map(|byte| memchr::memchr_iter(byte, &line).count()), [1, 2]);
        assert_eq!(read(line.strip_suffix(b"\n").unwrap()).unwrap().command, b"echo a\necho\tb\n");
    }

    proptest! {
        #[test]
        fn whatever_is_escaped_is_read_again(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut escaped = Vec::new();
            escape(&mut escaped, &text);
            prop_assert!(!escaped.iter().any(|byte| *byte < 32) && std::str::from_utf8(&escaped).is_ok());
            prop_assert_eq!(unescape(&escaped), text);
        }
    }
}
