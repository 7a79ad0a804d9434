//! The list of tasks: a file, standard input, a template for the lines of a file, a range of numbers. Read one task at a time.

pub mod digest;
pub mod formats;
pub mod line;
pub mod sleep;
pub mod template;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use equipoise::{Error, Result, names};

use crate::task::{How, REPEAT_INDEX, Task};
use formats::{Format, Item, Memory, Repeat};
use line::Directives;
use template::Template;

/// Source of tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Commands, one a line; `-` is standard input.
    Commands { file: PathBuf, format: Format },
    /// Arguments of a template, one line each; `-` is standard input.
    Arguments { file: PathBuf, template: Template },
    /// A template for a range of numbers.
    Array { first: u64, last: u64, step: u64, template: Template },
    /// This number of tasks that do nothing.
    Empty(u64),
    /// Built-in tasks that sleep.
    Sleep(sleep::Sleep),
}

impl Origin {
    /// Returns true if GNU parallel, given this list, would number its commands by its lines: it counts blank lines and comments, too. Lists of which it
    /// cannot run a command a line are numbered by Seq, arrays either way.
    pub fn counts_lines(&self) -> bool {
        match self {
            Origin::Commands { format, .. } => matches!(format, Format::Plain | Format::Parallel),
            Origin::Arguments { .. } => true,
            Origin::Array { .. } | Origin::Empty(_) | Origin::Sleep(_) => false,
        }
    }
}

/// Next entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Task(Task),
    /// Later tasks wait until all earlier ones have ended; with `check`, they run only if all of those succeeded.
    Barrier {
        check: bool,
    },
    /// A command for each host, at its start or its end.
    PerHost {
        text: Vec<u8>,
        at_start: bool,
    },
    /// Nothing now; a list that is followed may grow.
    Later,
}

/// Reads the tasks.
pub struct List {
    origin: Origin,
    lines: Option<Lines>,
    by_shell: bool,
    stdin: Option<Vec<u8>>,
    memory: Memory,
    /// Directives for the next command, and their last line.
    ahead: Directives,
    ahead_line: u64,
    /// Further commands of a line that has several.
    several: Repeat,
    /// The Seq of each line, where dependencies are lines.
    seq_of_line: BTreeMap<u64, u64>,
    seq: u64,
    warned: bool,
    /// Remarks for the author of the list, each made once.
    pub remarks: Vec<String>,
}

impl List {
    /// Opens the list. With `follow` its end is awaited for ever.
    ///
    /// # Errors
    /// Wrong usage if the file cannot be read.
    pub fn open(origin: &Origin, by_shell: bool, stdin: Option<Vec<u8>>, follow: bool) -> Result<List> {
        let lines = match origin {
            Origin::Commands { file, .. } | Origin::Arguments { file, .. } => Some(Lines::open(file, follow)?),
            Origin::Array { .. } | Origin::Empty(_) | Origin::Sleep(_) => None,
        };
        let by_shell = by_shell || matches!(origin, Origin::Commands { format, .. } if *format != Format::Plain);
        Ok(List {
            origin: origin.clone(),
            lines,
            by_shell,
            stdin,
            memory: Memory::default(),
            ahead: Directives::default(),
            ahead_line: 0,
            several: Repeat::default(),
            seq_of_line: BTreeMap::new(),
            seq: 0,
            warned: false,
            remarks: Vec::new(),
        })
    }

    /// Number of tasks that were read.
    pub fn tasks(&self) -> u64 {
        self.seq
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// Wrong usage that names the line.
    pub fn entry(&mut self) -> Result<Option<Entry>> {
        match &self.origin {
            Origin::Empty(tasks) => {
                if self.seq == *tasks {
                    return Ok(None);
                }
                self.seq += 1;
                Ok(Some(Entry::Task(Task { seq: self.seq, line: self.seq, how: How::Empty, ..Task::default() })))
            }
            Origin::Sleep(sleep) => {
                if self.seq == sleep.tasks {
                    return Ok(None);
                }
                self.seq += 1;
                Ok(Some(Entry::Task(sleep.task(self.seq))))
            }
            Origin::Array { first, last, step, template } => {
                let number = self.seq.checked_mul(*step).and_then(|far| far.checked_add(*first)).filter(|number| number <= last);
                let Some(number) = number else { return Ok(None) };
                self.seq += 1;
                let text = template.fill(self.seq, number.to_string().as_bytes(), self.by_shell);
                self.task(text, self.seq).map(Some)
            }
            Origin::Arguments { template, .. } => {
                let template = template.clone();
                loop {
                    let (number, line) = match self.lines.as_mut().map_or(Ok(Read::End), Lines::next)? {
                        Read::Line(number, line) => (number, line),
                        Read::Later => return Ok(Some(Entry::Later)),
                        Read::End => return Ok(None),
                    };
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    self.seq += 1;
                    let text = template.fill(self.seq, &line, self.by_shell);
                    return self.task(text, number).map(Some);
                }
            }
            Origin::Commands { .. } => self.next_command(),
        }
    }

    fn next_command(&mut self) -> Result<Option<Entry>> {
        let Origin::Commands { format, .. } = self.origin else { return Ok(None) };
        loop {
            if let Some(index) = self.several.next() {
                self.seq += 1;
                let entry = self.task(self.several.text.clone(), self.lines.as_ref().map_or(0, |lines| lines.number))?;
                return Ok(Some(with_variables(entry, Some(index))));
            }
            let (number, text) = match self.lines.as_mut().map_or(Ok(Read::End), Lines::next)? {
                Read::Line(number, text) => (number, text),
                Read::Later => return Ok(Some(Entry::Later)),
                Read::End if std::mem::take(&mut self.ahead) != Directives::default() => {
                    return Err(self.wrong(self.ahead_line, "there is no command behind these directives"));
                }
                Read::End => return Ok(None),
            };
            if format == Format::Plain
                && let line::Line::Ahead(said) = line::parse(&text).map_err(|why| self.wrong(number, &why))?
            {
                (self.ahead, self.ahead_line) = (std::mem::take(&mut self.ahead).and(said), number);
                continue;
            }
            match formats::parse(format, &mut self.memory, number, &text).map_err(|why| self.wrong(number, &why))? {
                Item::Nothing => {}
                Item::Barrier { check } => return Ok(Some(Entry::Barrier { check })),
                Item::PerHost { text, at_start } => return Ok(Some(Entry::PerHost { text, at_start })),
                Item::Repeat(repeat) => self.several = repeat,
                Item::Command { text, directives, by_line, index } => {
                    self.seq += 1;
                    let mut said = std::mem::take(&mut self.ahead).and(directives);
                    if by_line {
                        said.after = self.by_seq(number, &said.after)?;
                        self.seq_of_line.insert(number, self.seq);
                    }
                    let Entry::Task(mut task) = self.task(text, number)? else { return Ok(None) };
                    if let Some((_, last)) = said.after.iter().find(|(_, last)| *last >= self.seq) {
                        return Err(self.wrong(number, &format!("after={last}: a command can only come after those before it")));
                    }
                    let stdin = said.stdin.clone().or(task.stdin.take());
                    said.apply(&mut task);
                    task.stdin = stdin;
                    return Ok(Some(with_variables(Entry::Task(task), index)));
                }
            }
        }
    }

    /// Dependencies on lines as dependencies on numbers of commands.
    fn by_seq(&self, number: u64, lines: &[(u64, u64)]) -> Result<Vec<(u64, u64)>> {
        let mut found = Vec::new();
        for &(first, last) in lines {
            if last >= number {
                return Err(self.wrong(number, &format!("it depends on line {last}, which is not before it")));
            }
            found.extend(self.seq_of_line.range(first..=last).map(|(_, seq)| (*seq, *seq)));
        }
        Ok(found)
    }

    fn task(&mut self, text: Vec<u8>, number: u64) -> Result<Entry> {
        let how = if self.by_shell { How::Shell } else { How::Words };
        if how == How::Words {
            let words = line::words(&text).ok_or_else(|| self.wrong(number, "a quote is not closed"))?;
            if words.is_empty() {
                return Err(self.wrong(number, "there is no command in it"));
            }
            if let (Some(operator), false) = (line::needs_a_shell(&text), self.warned) {
                self.warned = true;
                self.remarks.push(format!("{}: without --shell '{operator}' is an argument like any other", self.place(number)));
            }
        }
        if text.contains(&0) {
            return Err(self.wrong(number, "it has a zero byte, which no command can have"));
        }
        Ok(Entry::Task(Task { seq: self.seq, line: number, text, how, stdin: self.stdin.clone(), ..Task::default() }))
    }

    fn place(&self, number: u64) -> String {
        match &self.origin {
            Origin::Commands { file, .. } => format!("{}, line {number}", names::shown(file)),
            Origin::Arguments { file, .. } => format!("--args {}, line {number}", names::shown(file)),
            Origin::Array { .. } | Origin::Empty(_) | Origin::Sleep(_) => format!("task {number}"),
        }
    }

    /// The error of a line.
    pub(crate) fn wrong(&self, number: u64, why: &str) -> Error {
        Error::usage(format!("{}: {why}", self.place(number)))
    }
}

fn with_variables(entry: Entry, index: Option<u64>) -> Entry {
    match (entry, index) {
        (Entry::Task(mut task), Some(index)) => {
            task.variables.push((REPEAT_INDEX.to_vec(), index.to_string().into_bytes()));
            Entry::Task(task)
        }
        (entry, _) => entry,
    }
}

/// Result of reading a line.
enum Read {
    Line(u64, Vec<u8>),
    Later,
    End,
}

/// The lines of a file.
struct Lines {
    source: Source,
    shown: String,
    number: u64,
    follow: bool,
    /// Beginning of a line whose end has not been written yet.
    begun: Vec<u8>,
}

enum Source {
    File(BufReader<File>),
    /// A source that may block (a pipe, a terminal) is read by a thread of its own.
    Piped(Receiver<io::Result<Vec<u8>>>),
}

/// A longer line is no command.
const LONGEST: usize = 16 << 20;
/// Lines that are read ahead from a pipe.
const AHEAD: usize = 1024;

impl Lines {
    fn open(path: &Path, follow: bool) -> Result<Lines> {
        let shown = names::shown(path);
        let unreadable = |why: io::Error| Error::usage(format!("farm {shown}: the list cannot be read: {why}"));
        let source = if path.as_os_str() == "-" {
            Source::Piped(piped(io::stdin()).map_err(unreadable)?)
        } else {
            let file = File::open(path).map_err(unreadable)?;
            let kind = file.metadata().map_err(unreadable)?.file_type();
            if kind.is_dir() {
                return Err(Error::usage(format!("farm {shown}: it is a folder, not a list of commands")));
            }
            match kind.is_file() {
                true => Source::File(BufReader::with_capacity(1 << 16, file)),
                false => Source::Piped(piped(file).map_err(unreadable)?),
            }
        };
        Ok(Lines { source, shown, number: 0, follow, begun: Vec::new() })
    }

    fn next(&mut self) -> Result<Read> {
        let mut line = std::mem::take(&mut self.begun);
        let failed = |why: io::Error| Error::Failed(format!("farm {}: the list cannot be read any further: {why}", self.shown));
        match &mut self.source {
            Source::File(reader) => {
                read_line(reader, &mut line).map_err(failed)?;
                if line.last() != Some(&b'\n') && line.len() <= LONGEST && self.follow {
                    self.begun = line;
                    return Ok(Read::Later);
                }
            }
            Source::Piped(lines) => match lines.try_recv() {
                Ok(read) => line = read.map_err(failed)?,
                Err(TryRecvError::Empty) => return Ok(Read::Later),
                Err(TryRecvError::Disconnected) => return Ok(Read::End),
            },
        }
        if line.is_empty() {
            return Ok(Read::End);
        }
        self.number += 1;
        if line.len() > LONGEST {
            return Err(Error::usage(format!("{}, line {}: it is longer than {LONGEST} bytes", self.shown, self.number)));
        }
        if self.number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        while line.last().is_some_and(|byte| *byte == b'\n' || *byte == b'\r') {
            line.pop();
        }
        Ok(Read::Line(self.number, line))
    }
}

/// Appends a line with its end to what has been read of it; nothing at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    io::Read::take(reader, LONGEST as u64 + 1).read_until(b'\n', line).map(|_| ())
}

fn piped(from: impl io::Read + Send + 'static) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (give, take) = bounded(AHEAD);
    let read = move || {
        let mut reader = BufReader::with_capacity(1 << 16, from);
        loop {
            let mut line = Vec::new();
            let read = read_line(&mut reader, &mut line).map(|()| line);
            let is_last = read.as_ref().map_or(true, Vec::is_empty);
            // There is no receiver any more if the job ends early.
            if (!read.as_ref().is_ok_and(Vec::is_empty) && give.send(read).is_err()) || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("list".into()).spawn(read)?;
    Ok(take)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tasks(text: &str, format: Format) -> Result<Vec<Entry>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let origin = Origin::Commands { file: file.path().to_path_buf(), format };
        let mut list = List::open(&origin, false, None, false)?;
        std::iter::from_fn(|| list.entry().transpose()).collect()
    }

    fn shown(entries: &[Entry]) -> Vec<String> {
        let one = |entry: &Entry| match entry {
            Entry::Task(task) => format!("{}@{} {}", task.seq, task.line, String::from_utf8_lossy(&task.text)),
            other => format!("{other:?}"),
        };
        entries.iter().map(one).collect()
    }

    #[test]
    fn commands_count_from_one_without_comments_and_blank_lines() {
        let entries = tasks("# list\n\necho a\r\n#EQ cost=5\necho b\n#EQ barrier\necho 'c d' #EQ after=1-2\nlast", Format::Plain).unwrap();
        assert_eq!(shown(&entries), ["1@3 echo a", "2@5 echo b", "Barrier { check: false }", "3@7 echo 'c d'", "4@8 last"]);
        assert!(matches!(&entries[1], Entry::Task(task) if task.cost == Some(5.0)));
        assert!(matches!(&entries[3], Entry::Task(task) if task.after == [(1, 2)]));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, why) in [
            ("a\necho 'x\n", "line 2: a quote is not closed"),
            ("a #EQ after=1\n", "line 1: after=1: a command can only come after those before it"),
            ("a\nb #EQ cost=x\n", "line 2: #EQ cost=x: it must be a number of seconds, 0 or more, such as 0.5, 500ms or 1:30:00"),
            ("a\n#EQ cost=1\n# b\n", "line 2: there is no command behind these directives"),
            ("a\0b\n", "line 1: it has a zero byte, which no command can have"),
        ] {
            let said = tasks(text, Format::Plain).unwrap_err();
            assert!(said.to_string().ends_with(why) && said.exit_status() == 2, "{said}");
        }
        let missing = Origin::Commands { file: "/no/such/list".into(), format: Format::Plain };
        let why = List::open(&missing, false, None, false).err().unwrap().to_string();
        assert_eq!(why, "farm /no/such/list: the list cannot be read: No such file or directory (os error 2)");
    }

    #[test]
    fn greasy_dependencies_are_lines() {
        let entries = tasks("# c\n./a\n\n[# 2 #] ./b\n[# -1, 2 #] ./c\n", Format::Greasy).unwrap();
        let after: Vec<_> = entries.iter().map(|entry| matches!(entry, Entry::Task(task) if !task.after.is_empty())).collect();
        assert_eq!(after, [false, true, true]);
        assert!(matches!(&entries[2], Entry::Task(task) if task.after == [(2, 2), (1, 1)] && task.how == How::Shell));
    }

    #[test]
    fn a_list_that_is_followed_grows() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "one\ntw").unwrap();
        let origin = Origin::Commands { file: file.path().to_path_buf(), format: Format::Plain };
        let mut list = List::open(&origin, false, None, true).unwrap();
        assert!(matches!(list.entry().unwrap(), Some(Entry::Task(task)) if task.text == b"one"));
        assert_eq!(list.entry().unwrap(), Some(Entry::Later));
        writeln!(file, "o").unwrap();
        assert!(matches!(list.entry().unwrap(), Some(Entry::Task(task)) if task.text == b"two" && task.seq == 2));
        assert_eq!(list.entry().unwrap(), Some(Entry::Later));
    }

    #[test]
    fn arrays_and_templates_make_commands() {
        let template = Template::new(vec![b"run".to_vec(), b"{}".to_vec(), b"{#}".to_vec()]);
        let mut list = List::open(&Origin::Array { first: 1, last: 6, step: 2, template }, false, None, false).unwrap();
        let all: Vec<Entry> = std::iter::from_fn(|| list.entry().transpose()).collect::<Result<_>>().unwrap();
        assert_eq!(shown(&all), ["1@1 run 1 1", "2@2 run 3 2", "3@3 run 5 3"]);
        let mut empty = List::open(&Origin::Empty(2), false, None, false).unwrap();
        assert_eq!(std::iter::from_fn(|| empty.entry().unwrap()).count(), 2);
    }
}
