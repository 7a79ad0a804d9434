//! GNU parallel's job log, as it is written beside a journal or instead of one. Several jobs may append to one log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use equipoise::{Error, Result, names};

use super::record;
use crate::task::Outcome;

/// Bytes that are read at a time in search of the end of the last whole line.
const PIECE: u64 = 1 << 16;

/// A job log.
pub struct Joblog {
    file: File,
    line: Vec<u8>,
}

impl Joblog {
    /// Opens it, and leaves it as it is.
    ///
    /// # Errors
    /// Wrong usage if it cannot be written to.
    pub fn open(path: &Path) -> Result<Joblog> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(|why| refused(path, why))?;
        Ok(Joblog { file, line: Vec::new() })
    }

    /// Makes it ready for the first record. It begins anew, unless the job goes on or shares it with a job that began before. A last line that was
    /// cut when a job was killed is no record: it goes away, or ends if others may be appending.
    ///
    /// # Errors
    /// Wrong usage if it cannot be written to.
    pub fn begin(&mut self, path: &Path, goes_on: bool, is_shared: bool) -> Result<()> {
        self.clean(goes_on, is_shared).map_err(|why| refused(path, why))
    }

    fn clean(&mut self, goes_on: bool, is_shared: bool) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let whole = if goes_on || is_shared { whole_lines(&self.file, length)? } else { 0 };
        match whole == length {
            true => {}
            false if is_shared => self.file.write_all(b"\n")?,
            false => self.file.set_len(whole)?,
        }
        if whole == 0 && !is_shared || length == 0 {
            self.file.write_all(format!("{}\n", record::PARALLEL).as_bytes())?;
        }
        Ok(())
    }

    /// Appends a record.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write(&mut self, host: &str, outcome: &Outcome, command: &[u8]) -> io::Result<()> {
        self.line.clear();
        record::write_parallel(&mut self.line, host, outcome, command);
        // In one piece, so that records of several jobs do not mix.
        self.file.write_all(&self.line)
    }
}

fn refused(path: &Path, why: io::Error) -> Error {
    Error::usage(format!("--joblog {}: it cannot be written to: {why}", names::shown(path)))
}

/// Bytes of the lines that have their end.
fn whole_lines(file: &File, length: u64) -> io::Result<u64> {
    let (mut end, mut buffer) = (length, Vec::new());
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        buffer.resize((end - begin) as usize, 0);
        file.read_exact_at(&mut buffer, begin)?;
        if let Some(at) = memchr::memrchr(b'\n', &buffer) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::State;

    /// Text of a log after a job has written a record.
    fn after(before: &str, goes_on: bool, is_shared: bool) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), before).unwrap();
        let mut joblog = Joblog::open(file.path()).unwrap();
        joblog.begin(file.path(), goes_on, is_shared).unwrap();
        joblog.write("h", &Outcome::without_run(7, State::Done), b"x").unwrap();
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn a_line_that_was_cut_spoils_no_other() {
        let (header, record) = (format!("{}\n", record::PARALLEL), "7\th\t0.000\t     0.000\t0\t0\t0\t0\tx\n");
        let old = format!("{header}1\th\t0.000\t     0.100\t0\t0\t0\t0\ty\n");
        let long = "y".repeat(3 * PIECE as usize);
        let cut = format!("{old}2\th\t0.000\t     0.100\t0\t0\t0\t0\t{long}");
        for (before, goes_on, is_shared, expected) in [
            (String::new(), false, false, format!("{header}{record}")),
            (old.clone(), false, false, format!("{header}{record}")),
            (old.clone(), true, false, format!("{old}{record}")),
            (old.clone(), false, true, format!("{old}{record}")),
            (cut.clone(), true, false, format!("{old}{record}")),
            (cut.clone(), true, true, format!("{cut}\n{record}")),
            (String::new(), true, true, format!("{header}{record}")),
            ("Seq\tHo".into(), true, false, format!("{header}{record}")),
        ] {
            assert!(after(&before, goes_on, is_shared) == expected, "{goes_on} {is_shared}: {}", before.len());
        }
        assert_eq!(Joblog::open(Path::new("/proc/no/log")).err().unwrap().exit_status(), 2);
    }
}
