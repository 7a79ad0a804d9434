//! `farm status DIR`: how far a job is, from its journal alone.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::UNIX_EPOCH;

use equipoise::{Error, Result, names};

use crate::joining;
use crate::journal::{self, record};
use crate::lead::counts::clock;
use crate::task::State;

/// Returns a summary of the journal in a folder at a time (seconds since 1970).
///
/// # Errors
/// Wrong usage if it is no journal.
pub fn of(folder: &Path, now: f64) -> Result<String> {
    let unreadable = |why: io::Error| Error::usage(format!("farm status {}: it cannot be read: {why}", names::shown(folder)));
    let files = journal::files(folder).map_err(unreadable)?;
    if files.is_empty() {
        return Err(Error::usage(format!("farm status {}: there are no records in it (rank-N.log)", names::shown(folder))));
    }
    // The latest final state of each task.
    let (mut states, mut text): (HashMap<u64, (f64, State)>, String) = (HashMap::new(), String::new());
    // Beginning and end of each job.
    let mut jobs: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let (mut work, mut torn) = (0.0, 0);
    for path in &files {
        let modified = std::fs::metadata(path).and_then(|data| data.modified()).map_err(unreadable)?;
        let age = now - modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let (mut records, mut busy) = (0u64, 0.0);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let job = jobs.entry(journal::numbers(&name).map_or(1, |(_, job)| job)).or_insert((f64::INFINITY, 0.0));
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(unreadable)? > 0 {
            match record::read_line(&line) {
                Some(record) => {
                    records += 1;
                    busy += record.runtime;
                    *job = (job.0.min(record.start), job.1.max(record.start + record.runtime));
                    let known = states.entry(record.seq).or_insert((record.start, record.state));
                    if record.state.is_final() && (record.start >= known.0 || !known.1.is_final()) {
                        *known = (record.start, record.state);
                    }
                }
                None if line.starts_with(b"Seq\t") => {}
                None => torn += 1,
            }
            line.clear();
        }
        work += busy;
        text += &format!("{name}: {records} records, {busy:.1} s of work, last written {} ago\n", clock(age.max(0.0)));
    }
    // Records behind the end of a list that has become shorter do not count.
    let tasks = joining::tasks_of(folder);
    let recorded = states.len();
    let ran = states.values().filter(|(_, state)| matches!(state, State::Done | State::Failed)).count();
    states.retain(|seq, _| tasks.is_none_or(|tasks| *seq <= tasks));
    let behind = recorded - states.len();
    let count = |state: State| states.values().filter(|(_, known)| *known == state).count();
    let (done, failed, skipped) = (count(State::Done), count(State::Failed), count(State::Skipped));
    let seconds = length_of_all(jobs.into_values());
    text += &format!("{done} done, {failed} failed, {skipped} skipped; {work:.1} s of work in {}", clock(seconds));
    let rate = if seconds > 0.0 { ran as f64 / seconds } else { 0.0 };
    if rate > 0.0 {
        text += &format!(", {rate:.1}/s");
    }
    if let Some(tasks) = tasks {
        let ended = states.values().filter(|(_, state)| state.is_final()).count() as u64;
        text += &match tasks.saturating_sub(ended) {
            0 => format!("; all {tasks} tasks of the list have ended"),
            left if rate > 0.0 => format!("; {left} of {tasks} tasks left, at this rate for {}", clock(left as f64 / rate)),
            left => format!("; {left} of {tasks} tasks left"),
        };
    }
    if behind > 0 {
        text += &format!("; {behind} tasks with records are behind the end of the list, and do not count");
    }
    if torn > 0 {
        text += &format!("; {torn} torn records");
    }
    text.push('\n');
    Ok(text)
}

/// Seconds in which at least one job ran, of jobs that ran from one time to another: pauses between them do not count, nor does any time twice.
fn length_of_all(jobs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut jobs: Vec<(f64, f64)> = jobs.collect();
    jobs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let add = |(sum, until): (f64, f64), (from, to): (f64, f64)| (sum + (to - from.max(until)).max(0.0), until.max(to));
    jobs.into_iter().fold((0.0, f64::NEG_INFINITY), add).0
}

#[cfg(test)]
mod tests {
    use equipoise::topology::RankId;

    use super::*;
    use crate::task::Outcome;

    #[test]
    fn the_latest_record_of_each_task_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path(), 0.0).unwrap_err().exit_status(), 2);
        let mut text = record::header().into_bytes();
        for (seq, state, start) in [(1, State::Failed, 1.0), (1, State::Done, 5.0), (2, State::Again, 2.0), (3, State::Skipped, 3.0)] {
            record::write(&mut text, "h", &Outcome { start, runtime: 2.0, ..Outcome::without_run(seq, state) }, b"x");
        }
        text.extend(b"4\th\t1");
        std::fs::write(journal::file(folder.path(), RankId::FIRST, 1), text).unwrap();
        let said = of(folder.path(), 0.0).unwrap();
        assert!(said.ends_with("1 done, 0 failed, 1 skipped; 8.0 s of work in 6 s, 0.2/s; 1 torn records\n"), "{said}");
        // As a job with a shorter list says it.
        std::fs::write(folder.path().join("job-1.joined"), "1\tshared\t2\t0f\n").unwrap();
        let said = of(folder.path(), 0.0).unwrap();
        let behind = "; 1 tasks with records are behind the end of the list, and do not count; 1 torn records\n";
        assert!(said.contains("1 done, 0 failed, 0 skipped;") && said.ends_with(behind), "{said}");
    }

    /// Two jobs with a pause of a thousand seconds between them, and a third at the same time as the second.
    #[test]
    fn rate_and_time_left_are_those_of_the_time_in_which_jobs_ran() {
        let folder = tempfile::tempdir().unwrap();
        for (job, records) in [(1, [(1, 100.0), (2, 104.0)]), (2, [(3, 1100.0), (4, 1104.0)]), (3, [(5, 1103.0), (12, 1108.0)])] {
            let mut text = record::header().into_bytes();
            for (seq, start) in records {
                record::write(&mut text, "h", &Outcome { start, runtime: 2.0, ..Outcome::without_run(seq, State::Done) }, b"x");
            }
            std::fs::write(journal::file(folder.path(), RankId::FIRST, job), text).unwrap();
        }
        let said = || of(folder.path(), 0.0).unwrap();
        assert!(said().ends_with("6 done, 0 failed, 0 skipped; 12.0 s of work in 16 s, 0.4/s\n"), "{}", said());
        // The list has become shorter: the last record does not count.
        std::fs::write(folder.path().join("job-3.joined"), "3\tshared\t11\t00\n").unwrap();
        let behind = "; 1 tasks with records are behind the end of the list, and do not count\n";
        assert!(said().ends_with(&format!(", 0.4/s; 6 of 11 tasks left, at this rate for 16 s{behind}")), "{}", said());
        std::fs::write(folder.path().join("job-3.joined"), "3\tshared\t5\t00\n").unwrap();
        assert!(said().ends_with(&format!("; all 5 tasks of the list have ended{behind}")), "{}", said());
    }
}
