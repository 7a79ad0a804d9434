//! Logs of other farms, so that a list can be moved over in the middle: GNU parallel's job log, disBatch's status file, GREASY's log.
//!
//! disBatch and GREASY name a command by its line in the list. Their own numbers of commands are not ours: disBatch counts barriers, too.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use super::past::{ByLine, Past};
use super::record;

/// Adds what a log says.
///
/// # Errors
/// If it cannot be read, or is of none of the known forms.
pub fn read(past: &mut Past, path: &Path) -> io::Result<()> {
    let (has_records, source) = super::source(path)?;
    if has_records {
        return past.read_records(source);
    }
    let text = super::whole(source)?;
    let mut is_known = text.is_empty();
    // A last line without its end was cut.
    for line in text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
        let said = disbatch(line).or_else(|| greasy(line));
        is_known |= said.is_some();
        if let Some(Said::Ended(entry)) = said {
            past.add_by_line(&entry);
        }
    }
    let unknown = "it is no journal of ours, no job log of GNU parallel, no status file of disBatch and no log of GREASY";
    if is_known { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, unknown)) }
}

/// Content of a line of another program's log.
enum Said<'a> {
    /// A command has ended.
    Ended(ByLine<'a>),
    /// Something else.
    Other,
}

/// The first line of a status file, where one was asked for, begins with this.
const STATUS: &[u8] = b"ROE[ PSZ]\tTaskID\tLineNum\t";

/// Fifteen columns: flags, number (from 0), line, repeat index (or -1), host, process, status, seconds, start, end, bytes and beginning of the
/// output, the same of errors, command. Flags are four letters or blanks; barriers, commands of an engine and those that were given up before they
/// ended have a letter of their own there. Early versions wrote commands as Python literals, later ones only those that are no UTF-8.
fn disbatch(line: &[u8]) -> Option<Said<'_>> {
    if line.starts_with(STATUS) {
        return Some(Said::Other);
    }
    let columns: Vec<&[u8]> = line.splitn(15, |byte| *byte == b'\t').collect();
    let [flags, id, number, index, _, _, status, _, start, .., command] = columns.as_slice() else { return None };
    if columns.len() != 15 || !flags.iter().all(|flag| b" ROEPSZBCD".contains(flag)) {
        return None;
    }
    let (id, number, index, status): (u64, u64, i64, i64) = (whole(id)?, whole(number)?, whole(index)?, whole(status)?);
    if flags.iter().any(|flag| b"BCDPZ".contains(flag)) {
        return Some(Said::Other);
    }
    Some(Said::Ended(ByLine {
        line: number,
        index: u64::try_from(index).ok(),
        id: Some(id),
        texts: [Some(Cow::Borrowed(*command)), literal(command).map(Cow::Owned)],
        start: whole(start).filter(|start: &f64| start.is_finite()).unwrap_or_default(),
        succeeded: status == 0,
    }))
}

fn whole<T: std::str::FromStr>(column: &[u8]) -> Option<T> {
    std::str::from_utf8(column).ok()?.trim().parse().ok()
}

/// The bytes that a literal of Python means, as `'a b'` or `b"it's \xff"`.
fn literal(text: &[u8]) -> Option<Vec<u8>> {
    let quoted = text.strip_prefix(b"b").unwrap_or(text);
    let [first @ (b'\'' | b'"'), inner @ .., last] = quoted else { return None };
    if first != last {
        return None;
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [byte, after @ ..] = rest {
        let (meant, used) = match (byte, after) {
            (b'\\', [b'r', ..]) => (vec![b'\r'], 2),
            (b'\\', [quote @ (b'\'' | b'"'), ..]) => (vec![*quote], 2),
            (b'\\', [b'x', _, _, ..]) => (record::unescape(&rest[..4]), 4),
            (b'\\', [_, ..]) => (record::unescape(&rest[..2]), 2),
            _ => (vec![*byte], 1),
        };
        out.extend(meant);
        rest = &rest[used..];
    }
    Some(out)
}

/// `[time] INFO: Task 2 located in line 5 completed successfully on node ..`, where 5 is a line of the file. Without `located in line`, as one of its
/// engines and early versions have it, the number of the task is that of its line.
fn greasy(line: &[u8]) -> Option<Said<'_>> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, message) = text.strip_prefix('[')?.split_once("] ")?;
    let (level, message) = message.split_once(": ")?;
    if !["ERROR", "WARNING", "INFO", "DEBUG", "DEVEL"].contains(&level) {
        return None;
    }
    let ended = || {
        let (number, mut how) = leading(message.strip_prefix("Task ")?)?;
        let mut line = number;
        if let Some(place) = how.strip_prefix("located in line ") {
            (line, how) = leading(place)?;
        }
        let succeeded = how.starts_with("completed successfully");
        (succeeded || how.starts_with("failed")).then_some(ByLine { line, succeeded, ..ByLine::default() })
    };
    Some(ended().map_or(Said::Other, Said::Ended))
}

/// The number at the beginning, and the text behind it.
fn leading(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = text.split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::past::Verdict;
    use crate::list::formats::Format;
    use crate::list::{Entry, List, Origin};
    use crate::task::State;

    /// Verdicts on the commands of a list after a log.
    fn judged(format: Format, list: &str, log: &str) -> Vec<Verdict> {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = (folder.path().join("log"), folder.path().join("list"));
        std::fs::write(&path, log).unwrap();
        std::fs::write(&file, list).unwrap();
        let origin = Origin::Commands { file, format };
        let mut past = Past::of(&origin);
        read(&mut past, &path).unwrap();
        let mut list = List::open(&origin, false, None, false).unwrap();
        let entries = std::iter::from_fn(|| list.entry().unwrap());
        entries.filter_map(|entry| if let Entry::Task(task) = entry { Some(past.judge(&task, false)) } else { None }).collect()
    }

    const DONE: Verdict = Verdict::Finished(State::Done);
    const FAILED: Verdict = Verdict::Finished(State::Failed);
    const RUN: Verdict = Verdict::Run { attempts: 0 };

    #[test]
    fn job_logs_of_gnu_parallel_are_read() {
        // Written by GNU parallel 20221122, but for the failure: blank lines and comments have numbers.
        let ended = |number: u64, exit: i32, text: &str| format!("{number}\t:\t1795998312.521\t     0.001\t0\t0\t{exit}\t0\t{text}\n");
        let log = |ended: &[String]| format!("{}\n{}", record::PARALLEL, ended.concat());
        let all = [ended(1, 0, "# x"), ended(3, 0, ""), ended(2, 0, "run a"), ended(4, 3, "run b")];
        for format in [Format::Plain, Format::Parallel] {
            assert_eq!(judged(format, "# x\nrun a\n\nrun b\nrun c\n", &log(&all)), [DONE, FAILED, RUN]);
            // The same command twice: only the numbers tell them apart.
            assert_eq!(judged(format, "\nrun\nrun\n", &log(&[ended(1, 0, ""), ended(2, 0, "run")])), [DONE, RUN]);
            assert_eq!(judged(format, "\nrun x\n", &log(&[ended(2, 0, "run y")])), [Verdict::Edited]);
        }
        // It quotes otherwise than we do.
        for (text, theirs) in [("run \"d'e\"", r#"run 'd'"'"'e'"#), ("run 'a b' ''", r"run a\ b ''"), ("echo 'a", "echo 'a")] {
            assert_eq!(judged(Format::Parallel, &format!("{text}\n"), &log(&[ended(1, 0, theirs)])), [DONE], "{text}");
        }
        // Of lists that it cannot run a job log counts the commands.
        let two = [ended(1, 0, "run a"), ended(3, 0, "run b")];
        assert_eq!(judged(Format::Disbatch, "# x\nrun a\n#DISBATCH REPEAT 2 run b\n", &log(&two)), [DONE, RUN, DONE]);
    }

    #[test]
    fn logs_of_greasy_name_lines() {
        // Without comments and blank lines, task 2 is line 5.
        let list = "# a list\nrun a\n\n# the rest\nrun b\nrun c\n";
        let log = "[2024-01-01 00:00:00] INFO: Start greasing list\n\
                   [2024-01-01 00:00:01] DEBUG: Task 3 located in line 6 to Worker 1 wants to execute echo Task 6 completed successfully\n\
                   [2024-01-01 00:00:01] ERROR: Task 2 located in line 5 failed with exit code 1 on node n1. Elapsed: 00:00:03\n\
                   [2024-01-01 00:00:01] WARNING: Retry 0/1 of task 5\n\
                   [2024-01-01 00:00:02] INFO: Task 2 located in line 5 completed successfully on node n1. Elapsed: 00:00:03\n";
        assert_eq!(judged(Format::Greasy, list, log), [RUN, DONE, RUN]);
        let log = "[2024-01-01 00:00:00] INFO: Task 2 completed successfully. Elapsed: 00:00:03\n\
                   [2024-01-01 00:00:00] ERROR: Task 5 failed with exit code 1 on node n1. Elapsed: 00:00:03\n\
                   [2024-01-01 00:00:00] INFO: Task 6 completed successfu";
        assert_eq!(judged(Format::Greasy, list, log), [DONE, FAILED, RUN]);
        assert_eq!(judged(Format::Greasy, list, "[2024-01-01 00:00:00] INFO: Start greasing list\n"), [RUN; 3]);
    }

    fn status(flags: &str, id: u64, line: u64, index: i64, status: i32, text: &str) -> String {
        format!("{flags}\t{id}\t{line}\t{index}\tn1\t88\t{status}\t1.500\t10.000\t11.500\t0\t''\t0\t''\t{text}\n")
    }

    #[test]
    fn status_files_of_disbatch_name_lines_and_indices() {
        let list = "#DISBATCH PREFIX run \n#DISBATCH PERENGINE START init\na\n#DISBATCH BARRIER\nb\n#DISBATCH REPEAT 3 start 7 c\nd\n";
        let log = [
            "ROE[ PSZ]\tTaskID\tLineNum\tRepeatIndex\tNode\tPID\tReturnCode\tElapsed\tStart\tFinish\tBytesOfLeakedOutput\tOutputSnippet\t\
             BytesOfLeakedError\tErrorSnippet\tCommand\n",
            &status("   P", 0, 2, -1, 0, "run init"),
            &status("    ", 0, 3, -1, 0, "run a"),
            &status("B    ", 1, 4, -1, 0, "#DISBATCH BARRIER"),
            &status("R   ", 2, 5, -1, 3, "run b"),
            &status("    ", 4, 6, 8, 0, "run c"),
            &status(" O S", 5, 6, 9, 0, "run c"),
            // Taken for dead, and ended later after all.
            &status("R   ", 6, 7, -1, -100, "run d"),
            &status("   Z", 6, 7, -1, 0, "run d"),
        ]
        .concat();
        assert_eq!(judged(Format::Disbatch, list, &log), [DONE, FAILED, RUN, DONE, DONE, FAILED]);
        assert_eq!(judged(Format::Disbatch, list, &status("    ", 0, 3, -1, 0, "run x"))[0], Verdict::Edited);
    }

    #[test]
    fn disbatch_writes_some_commands_as_python_does() {
        for (text, list) in
            [("'echo \\'a\\' \"b\"'", "echo 'a' \"b\"\n"), ("\"echo it's\"", "echo it's\n"), ("b'echo \\\\n \\x41'", "echo \\n A\n")]
        {
            assert_eq!(judged(Format::Disbatch, list, &status("    ", 0, 1, -1, 0, text)), [DONE], "{text}");
        }
        assert_eq!(literal(b"b'\\xff\\t\\r'"), Some(b"\xff\t\r".to_vec()));
        assert_eq!([literal(b"'"), literal(b"echo"), literal(b"'a\"")], [None, None, None]);
    }

    #[test]
    fn commands_that_a_log_does_not_tell_apart_run_again() {
        let list = "#DISBATCH REPEAT 2 step 0 run\nlast\n";
        let log = status("    ", 0, 1, 0, 0, "run") + &status("    ", 1, 1, 0, 0, "run") + &status("    ", 2, 2, -1, 0, "last");
        assert_eq!(judged(Format::Disbatch, list, &log), [RUN, RUN, DONE]);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let mut past = Past::default();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "what is this\n").unwrap();
        assert!(read(&mut past, file.path()).unwrap_err().to_string().starts_with("it is no journal of ours"));
    }
}
