//! `farm status DIR`: how far a job is, from its journal alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::UNIX_EPOCH;

use equipoise::{Error, Result, names};

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
    let (mut work, mut torn, mut latest, mut first) = (0.0, 0, 0.0f64, f64::INFINITY);
    for path in &files {
        let modified = std::fs::metadata(path).and_then(|data| data.modified()).map_err(unreadable)?;
        let age = now - modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let (mut records, mut busy) = (0u64, 0.0);
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(unreadable)? > 0 {
            match line.strip_suffix(b"\n").and_then(record::read) {
                Some(record) => {
                    records += 1;
                    busy += record.runtime;
                    latest = latest.max(record.start + record.runtime);
                    first = first.min(record.start);
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
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        text += &format!("{name}: {records} records, {busy:.1} s of work, last written {} ago\n", clock(age.max(0.0)));
    }
    let count = |state: State| states.values().filter(|(_, known)| *known == state).count();
    let (done, failed, skipped) = (count(State::Done), count(State::Failed), count(State::Skipped));
    let seconds = (latest - first).max(0.0);
    text += &format!("{done} done, {failed} failed, {skipped} skipped; {work:.1} s of work in {}", clock(seconds));
    if seconds > 0.0 {
        text += &format!(", {:.1}/s", (done + failed) as f64 / seconds);
    }
    if torn > 0 {
        text += &format!("; {torn} torn records");
    }
    text.push('\n');
    Ok(text)
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
    }
}
