//! Logs of other farms, so that a list can be moved over in the middle: GNU parallel's job log, disBatch's status file, GREASY's log.

use std::io;
use std::path::Path;

use super::past::Past;
use super::record;
use crate::task::State;

/// Adds what a log says.
///
/// # Errors
/// If it cannot be read, or is of none of the known forms.
pub fn read(past: &mut Past, path: &Path) -> io::Result<()> {
    let text = std::fs::read(path)?;
    if text.starts_with(b"Seq\t") {
        return past.read_file(path);
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut found = 0;
    for line in lines {
        if let Some((seq, state, command)) = disbatch(line) {
            past.add_foreign(Some(seq), None, Some(command), state);
            found += 1;
        } else if let Some((line, state)) = greasy(line) {
            past.add_foreign(None, Some(line), None, state);
            found += 1;
        }
    }
    match found {
        0 if !text.is_empty() => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is no journal of ours, no job log of GNU parallel, no status file of disBatch and no log of GREASY",
        )),
        _ => Ok(()),
    }
}

/// Fifteen columns: flags, number (from 0), line, repeat index, host, process, status, seconds, start, end, bytes and beginning of the output, the
/// same of errors, command.
fn disbatch(line: &[u8]) -> Option<(u64, State, &[u8])> {
    let columns: Vec<&[u8]> = line.splitn(15, |byte| *byte == b'\t').collect();
    let [_, id, _, _, _, _, status, .., command] = columns.as_slice() else { return None };
    if columns.len() != 15 {
        return None;
    }
    let number = |column: &[u8]| std::str::from_utf8(column).ok()?.trim().parse::<i64>().ok();
    let (id, status) = (u64::try_from(number(id)?).ok()?, number(status)?);
    Some((id + 1, if status == 0 { State::Done } else { State::Failed }, command))
}

/// `.. Task 3 .. completed successfully ..`, where 3 is a line of the file.
fn greasy(line: &[u8]) -> Option<(u64, State)> {
    let text = std::str::from_utf8(line).ok()?.to_ascii_lowercase();
    let after = text.split_once("task ")?.1;
    let digits = after.trim_start_matches('#');
    let number = digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()?;
    let state = match (text.contains("completed successfully"), text.contains("failed")) {
        (true, _) => State::Done,
        (_, true) => State::Failed,
        _ => return None,
    };
    Some((number, state))
}

/// Returns true if this is the first line of a job log.
pub fn is_job_log(line: &[u8]) -> bool {
    line.starts_with(record::PARALLEL.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::past::Verdict;
    use crate::task::Task;

    fn judged(log: &str, tasks: &[(u64, u64, &str)]) -> Vec<Verdict> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, log).unwrap();
        let mut past = Past::default();
        read(&mut past, &path).unwrap();
        let task = |(seq, line, text): &(u64, u64, &str)| Task { seq: *seq, line: *line, text: (*text).into(), ..Task::default() };
        tasks.iter().map(|one| past.judge(&task(one), false)).collect()
    }

    #[test]
    fn other_logs_are_read() {
        let finished = [Verdict::Finished(State::Done), Verdict::Finished(State::Failed), Verdict::Run { attempts: 0 }];
        let tasks = [(1, 2, "run a"), (2, 3, "run b"), (3, 5, "run c")];
        let parallel =
            format!("{}\n1\t:\t1.000\t     0.100\t0\t0\t0\t0\trun a\n2\t:\t1.0\t     0.1\t0\t0\t3\t0\trun b\n", record::PARALLEL);
        assert_eq!(judged(&parallel, &tasks), finished);
        let one = |id: u64, status: i32, text: &str| {
            format!(" OR \t{id}\t{}\t-1\tn1\t88\t{status}\t1.5\t10.0\t11.5\t0\t''\t0\t''\t{text}\n", id + 1)
        };
        assert_eq!(judged(&(one(0, 0, "run a") + &one(1, 3, "run b")), &tasks), finished);
        let greasy = "[2024-01-01 00:00:00] INFO: Task 2 completed successfully on node n1. Elapsed: 00:00:03\n\
                      [2024-01-01 00:00:00] ERROR: Task 3 failed with exit code 1 on node n1. Elapsed: 00:00:03\n";
        assert_eq!(judged(greasy, &tasks), finished);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let mut past = Past::default();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "what is this\n").unwrap();
        assert!(read(&mut past, file.path()).unwrap_err().to_string().starts_with("it is no journal of ours"));
    }
}
