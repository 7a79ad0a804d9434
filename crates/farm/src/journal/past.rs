//! Results of earlier jobs on the list, from their records.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::path::Path;

use super::by_seq::BySeq;
use super::known::{Known, hash, hash_words};
use super::record::{self, Record};
use super::times::Times;
use crate::list::Origin;
use crate::task::{State, Task};

/// A line of a list, and where a line stands for several commands the index of one of them.
type Place = (u64, Option<u64>);

/// An entry of a log that names commands by their lines.
#[derive(Clone, Debug, Default)]
pub struct ByLine<'a> {
    pub line: u64,
    /// The index of a command whose line stands for several.
    pub index: Option<u64>,
    /// The number that the other program gave the command. Two numbers at one place cannot be told apart.
    pub id: Option<u64>,
    /// Texts that the command may have had; nothing if the log does not say it.
    pub texts: [Option<std::borrow::Cow<'a, [u8]>>; 2],
    /// Seconds since 1970; 0 if it is not known.
    pub start: f64,
    pub succeeded: bool,
}

/// The records of earlier jobs.
#[derive(Debug, Default)]
pub struct Past {
    by_seq: BySeq,
    /// As `by_seq`, from job logs, whose numbers are GNU parallel's.
    by_number: BySeq,
    /// These numbers are lines of the list.
    counts_lines: bool,
    /// As `by_seq`, from logs that name lines instead, with the number that the other program gave the command.
    by_line: HashMap<Place, (Option<u64>, Known)>,
    /// Places of several commands that their log does not tell apart: which of them are finished is not known.
    ambiguous: HashSet<Place>,
    /// Mean run times by program and arguments, and by program: of these there are few, which a table of both would keep for each run until it is sorted.
    times: Times,
    programs: Times,
    /// Lines that are no records: cut short when a job was killed.
    pub torn: u64,
}

/// Decision on a task of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is to be run: no earlier job finished it.
    Run { attempts: u32 },
    /// It has a final record.
    Finished(State),
    /// The record of this number is about another command.
    Edited,
}

impl Past {
    /// Nothing yet about a list.
    pub fn of(list: &Origin) -> Past {
        Past { counts_lines: list.counts_lines(), ..Past::default() }
    }

    /// Adds all records of a folder's journal.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_folder(&mut self, folder: &Path) -> io::Result<()> {
        super::files(folder)?.iter().try_for_each(|path| self.read_file(path))
    }

    /// Adds the records of a file of ours or of GNU parallel's. A last line without its end was cut, and does not count.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_file(&mut self, path: &Path) -> io::Result<()> {
        self.read_records(super::source(path)?.1)
    }

    /// The same, where it was opened already.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_records(&mut self, source: impl BufRead) -> io::Result<()> {
        self.torn += records_of(source, |record| self.add(&record))?;
        Ok(())
    }

    /// Adds a record. Of several final ones of a task the latest counts.
    pub fn add(&mut self, record: &Record) {
        let is_ours = record.is_ours;
        let (records, hashed) = if is_ours { (&mut self.by_seq, hash as fn(&[u8]) -> u64) } else { (&mut self.by_number, hash_words as _) };
        let known = Known {
            texts: [Some(hashed(&record.command)), None],
            by_words: !is_ours,
            state: record.state,
            start: record.start,
            attempts: record.attempt,
            is_ours,
        };
        if records.get(record.seq).is_none_or(|old| known.precedence() >= old.precedence()) {
            records.set(record.seq, known);
        }
        if record.state == State::Done {
            self.times.add(hash(&record.command), record.runtime);
            program(&record.command).iter().for_each(|key| self.programs.add(*key, record.runtime));
        }
    }

    /// Adds an entry of a log that names commands by line.
    pub fn add_by_line(&mut self, entry: &ByLine) {
        let texts = entry.texts.each_ref().map(|text| text.as_deref().map(hash));
        let state = if entry.succeeded { State::Done } else { State::Failed };
        let known = Known { texts, by_words: false, state, start: entry.start, attempts: 1, is_ours: false };
        let place = (entry.line, entry.index);
        let (id, old) = self.by_line.entry(place).or_insert((entry.id, known));
        if *id != entry.id {
            self.ambiguous.insert(place);
        }
        if known.precedence() >= old.precedence() {
            *old = known;
        }
    }

    /// Takes from other records only how long commands took.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn learn(&mut self, read: impl FnOnce(&mut Past) -> io::Result<()>) -> io::Result<()> {
        let mut other = Past::default();
        read(&mut other)?;
        self.times.take_over(other.times);
        self.programs.take_over(other.programs);
        Ok(())
    }

    /// All has been read: what is asked for is found at once from now on.
    pub fn settle(&mut self) {
        self.times.settle();
        self.programs.settle();
    }

    /// Returns true if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.by_seq.is_empty() && self.by_number.is_empty() && self.by_line.is_empty()
    }

    /// Returns true if the task of this number has a record.
    pub fn has(&self, seq: u64) -> bool {
        self.by_seq.get(seq).is_some()
    }

    /// Number of tasks with a greater number than this that have records, and the last of them.
    pub fn behind(&self, seq: u64) -> Option<(u64, u64)> {
        self.by_seq.behind(seq)
    }

    /// The final state of the task of this number, if it has one.
    pub fn final_state(&self, seq: u64) -> Option<State> {
        self.by_seq.get(seq).map(|known| known.state).filter(|state| state.is_final())
    }

    /// Decision on a task. With `retry`, tasks that failed or were skipped are run again.
    pub fn judge(&self, task: &Task, retry: bool) -> Verdict {
        let place = (task.line, task.repeat_index());
        let by_line = self.by_line.get(&place).map(|(_, known)| *known).filter(|_| !self.ambiguous.contains(&place));
        let number = if self.counts_lines { task.line } else { task.seq };
        let all = [self.by_seq.get(task.seq), self.by_number.get(number), by_line];
        let known = all.into_iter().flatten().reduce(|one, other| if other.precedence() > one.precedence() { other } else { one });
        match known {
            None => Verdict::Run { attempts: 0 },
            Some(known) if !known.is_about(&task.text) => Verdict::Edited,
            Some(known) if !known.state.is_final() => Verdict::Run { attempts: known.attempts },
            Some(known) if retry && known.state != State::Done => Verdict::Run { attempts: known.attempts },
            Some(known) => Verdict::Finished(known.state),
        }
    }

    /// Run time in earlier runs: of the same command, else of its program with other arguments.
    pub fn learnt(&self, text: &[u8]) -> Option<f64> {
        self.times.get(hash(text)).or_else(|| self.programs.get(program(text)?))
    }
}

/// Hands over the records of a file of ours or of GNU parallel's, and returns the number of lines that are none. A last line without its end was cut.
///
/// # Errors
/// If it cannot be read.
pub fn records(path: &Path, each: impl FnMut(Record)) -> io::Result<u64> {
    records_of(super::source(path)?.1, each)
}

fn records_of(mut source: impl BufRead, mut each: impl FnMut(Record)) -> io::Result<u64> {
    let (mut line, mut is_first, mut torn, mut is_parallels) = (Vec::new(), true, 0, false);
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line)? == 0 {
            return Ok(torn);
        }
        is_parallels |= is_first && line.trim_ascii_end() == record::PARALLEL.as_bytes();
        let record = if is_parallels { line.strip_suffix(b"\n").and_then(record::read_parallel) } else { record::read_line(&line) };
        match record {
            Some(record) => each(record),
            None if is_first && line.starts_with(b"Seq\t") => {}
            None => torn += 1,
        }
        is_first = false;
    }
}

/// Key of a command's program.
fn program(text: &[u8]) -> Option<u64> {
    text.trim_ascii().split(u8::is_ascii_whitespace).next().filter(|word| !word.is_empty()).map(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Outcome;
    use std::io::Write;

    fn task(seq: u64, text: &str) -> Task {
        Task { seq, line: seq, text: text.into(), ..Task::default() }
    }

    fn line(seq: u64, state: State, start: f64, command: &str) -> Vec<u8> {
        let mut line = Vec::new();
        let outcome = Outcome { start, runtime: 2.0, attempt: 1, ..Outcome::without_run(seq, state) };
        record::write(&mut line, "h", &outcome, command.as_bytes());
        line
    }

    #[test]
    fn what_is_finished_is_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("rank-0.log")).unwrap();
        file.write_all(record::header().as_bytes()).unwrap();
        for (seq, state) in [(1, State::Done), (2, State::Failed), (3, State::Again), (4, State::Skipped)] {
            file.write_all(&line(seq, state, 1.0, "x")).unwrap();
        }
        // Cut within the line, as by a kill; of another file nothing is lost but the end of the line.
        let cut = line(5, State::Done, 1.0, "x");
        file.write_all(&cut[..cut.len() - 2]).unwrap();
        let whole = [record::header().into_bytes(), line(7, State::Done, 1.0, "x")].concat();
        std::fs::write(folder.path().join("rank-1.log"), &whole[..whole.len() - 1]).unwrap();
        let mut past = Past::default();
        past.read_folder(folder.path()).unwrap();
        assert_eq!(past.judge(&task(7, "x"), false), Verdict::Finished(State::Done));
        let judged = |retry: bool| (1..=6).map(|seq| past.judge(&task(seq, "x"), retry)).collect::<Vec<_>>();
        let (run, again) = (Verdict::Run { attempts: 0 }, Verdict::Run { attempts: 1 });
        let finished = Verdict::Finished;
        assert_eq!(judged(false), [finished(State::Done), finished(State::Failed), again, finished(State::Skipped), run, run]);
        assert_eq!(judged(true), [finished(State::Done), again, again, again, run, run]);
        assert_eq!((past.judge(&task(1, "y"), false), past.torn), (Verdict::Edited, 1));
    }

    #[test]
    fn the_latest_final_record_counts() {
        let mut past = Past::default();
        for (state, start) in [(State::Done, 5.0), (State::Failed, 1.0), (State::Again, 9.0)] {
            past.add(&record::read(line(1, state, start, "x").strip_suffix(b"\n").unwrap()).unwrap());
        }
        assert_eq!(past.judge(&task(1, "x"), true), Verdict::Finished(State::Done));
    }

    #[test]
    fn times_are_learnt_by_program_and_arguments() {
        let mut past = Past::default();
        for (seq, command, runtime) in [(1, "run a", 2.0), (2, "run b", 4.0)] {
            let mut record = record::read(line(seq, State::Done, 1.0, command).strip_suffix(b"\n").unwrap()).unwrap();
            record.runtime = runtime;
            past.add(&record);
        }
        assert_eq!([past.learnt(b"run a"), past.learnt(b"run c"), past.learnt(b"walk")], [Some(2.0), Some(3.0), None]);
    }
}
