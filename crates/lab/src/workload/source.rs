//! Sources of real tasks: the option `--tasks`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::items::{shortened, whole};
use super::measured::{MeasuredTasks, TASKS};
use super::time::TimeUnit;
use super::{lbaf, task_table};
use equipoise::error::{Error, Result};
use equipoise::load::Column;
use equipoise::names;

/// Source of tasks, as given by `--tasks`; [`Display`](fmt::Display) writes the form that [`TaskSource::parse`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskSource {
    /// Every file below a folder is a task, see [`FileTasks`](super::FileTasks).
    Files(PathBuf),
    /// Task times of a real run, a file for each of its ranks, see [`lbaf`]; of one phase, the first if none is named, and of one set of
    /// files, if the folder has several.
    Lbaf { folder: PathBuf, set: Option<OsString>, phase: Option<u64> },
    /// A table of tasks, see [`task_table`]; if work is time, its unit.
    Table { path: PathBuf, unit: Option<TimeUnit> },
}

impl TaskSource {
    /// Reads `files:DIR | lbaf:DIR[,set=NAME][,phase=N] | FILE.csv[,unit=us] | -[,unit=us]`, without looking at folders or files. `-` is a
    /// table on standard input.
    ///
    /// # Errors
    /// [`Error::Input`] if it is none of these, a folder's name is missing, or an option is wrong.
    pub fn parse(text: &str) -> Result<TaskSource> {
        let text = text.trim();
        let wrong = |why: &str| Error::input(TASKS, format!(" {}: {why}", shortened(text)));
        match text.split_once(':') {
            Some(("files" | "lbaf", "")) => Err(wrong("the name of a folder is missing")),
            Some(("files", folder)) => Ok(TaskSource::Files(names::path(folder))),
            Some(("lbaf", rest)) => {
                let (folder, [set, phase]) = split_off(rest, ["set", "phase"]).map_err(|why| wrong(&why))?;
                if folder.is_empty() {
                    return Err(wrong("the name of a folder is missing"));
                }
                let phase = phase.map(|phase| whole(phase).map_err(|why| wrong(&format!("phase: {why}")))).transpose()?;
                Ok(TaskSource::Lbaf { folder: names::path(folder), set: set.map(names::argument), phase })
            }
            _ => {
                let (path, [unit]) = split_off(text, ["unit"]).map_err(|why| wrong(&why))?;
                let read = |unit: &str| unit.parse().map_err(|why| wrong(&format!("unit: \"{}\": {why}", shortened(unit))));
                let unit = unit.map(read).transpose()?;
                match path == "-" || path.strip_suffix(".csv").is_some_and(|name| !name.is_empty()) {
                    true => Ok(TaskSource::Table { path: names::path(path), unit }),
                    false => Err(wrong("unknown tasks; known are files:DIR, lbaf:DIR[,set=NAME][,phase=N], FILE.csv[,unit=us] and -")),
                }
            }
        }
    }

    /// The tasks that were measured, read; `None` where the source is files to be carried.
    ///
    /// # Errors
    /// If they cannot be read, or are not what they should be; the sentence names the file and the place in it.
    pub fn measured(&self) -> Result<Option<MeasuredTasks>> {
        self.measured_in(&[])
    }

    /// The same with these columns as the tasks' weights; none: their work alone. A table's work is its column `work`, or the first of these where it
    /// has none.
    ///
    /// # Errors
    /// As [`measured`](TaskSource::measured); and if there are no such columns, or their sums are beyond 2^64 - 1.
    pub fn measured_in(&self, columns: &[String]) -> Result<Option<MeasuredTasks>> {
        let mut run = match self {
            TaskSource::Files(_) if columns.is_empty() => return Ok(None),
            TaskSource::Files(_) => return Err(no_column(self, "files have no weights")),
            TaskSource::Lbaf { folder, set, phase } => lbaf::read(folder, set.as_deref(), *phase)?,
            TaskSource::Table { path, unit } => task_table::read(path, *unit, columns)?,
        };
        for name in columns {
            if run.columns.iter().all(|known| known.name != *name) {
                let column = run.column(name);
                let unknown = || no_column(self, &format!("the tasks have no \"{}\", but work and bytes", shortened(name)));
                run.columns.push(column.ok_or_else(unknown)?);
            }
        }
        let place = |column: &Column| columns.iter().position(|name| *name == column.name);
        run.columns.sort_by_key(place);
        for column in &run.columns {
            if column.weights.iter().try_fold(0u64, |sum, weight| sum.checked_add(*weight)).is_none() {
                return Err(no_column(self, &format!("the sum of {} is beyond 2^64 - 1", column.name)));
            }
        }
        Ok(Some(run))
    }
}

fn no_column(source: &TaskSource, why: &str) -> Error {
    Error::input("weights-columns", format!(" with --tasks {source}: {why}"))
}

/// The names in a list `NAME,NAME,..`, in lower case, as tables have them.
///
/// # Errors
/// If one is empty or is there twice.
pub fn column_names(list: &str) -> Result<Vec<String>> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
    let wrong = |why: &str| Error::input("weights-columns", format!(" {}: {why}", shortened(list)));
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(wrong("the name of a column is missing"));
        }
        if names[..at].contains(name) {
            return Err(wrong(&format!("{name} is named twice")));
        }
    }
    Ok(names)
}

/// A name, and the values of `,key=value` behind it, in the order of the keys. Only what ends with them is split off: a comma may be part
/// of a name.
pub(super) fn split_off<'a, const N: usize>(text: &'a str, keys: [&str; N]) -> Result<(&'a str, [Option<&'a str>; N]), String> {
    let (mut name, mut values) = (text, [None; N]);
    while let Some((before, option)) = name.rsplit_once(',') {
        let Some((key, value)) = option.split_once('=') else { break };
        let Some(place) = keys.iter().position(|known| *known == key.trim()) else { break };
        if values[place].replace(value.trim()).is_some() {
            return Err(format!("{} is given twice", keys[place]));
        }
        name = before;
    }
    Ok((name, values))
}

impl FromStr for TaskSource {
    type Err = Error;

    fn from_str(text: &str) -> Result<TaskSource> {
        TaskSource::parse(text)
    }
}

impl fmt::Display for TaskSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskSource::Files(folder) => write!(f, "files:{}", names::shown(folder)),
            TaskSource::Lbaf { folder, set, phase } => {
                write!(f, "lbaf:{}", names::shown(folder))?;
                set.as_ref().map_or(Ok(()), |set| write!(f, ",set={}", names::shown_argument(set)))?;
                phase.map_or(Ok(()), |phase| write!(f, ",phase={phase}"))
            }
            TaskSource::Table { path, unit } => {
                f.write_str(&names::shown(path))?;
                unit.map_or(Ok(()), |unit| write!(f, ",unit={unit}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_read_back() {
        for text in [
            "files:src/a:b",
            "lbaf:runs/one",
            "lbaf:a,b,phase=901",
            "lbaf:a,set=b.c,phase=9",
            "loads.csv",
            "a,b.csv,unit=us",
            "-",
            "-,unit=s",
        ] {
            assert_eq!(TaskSource::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_sources_are_refused_in_one_sentence() {
        for (text, why) in [
            ("files:", "tasks files:: the name of a folder is missing"),
            ("lbaf:", "tasks lbaf:: the name of a folder is missing"),
            ("lbaf:,phase=1", "tasks lbaf:,phase=1: the name of a folder is missing"),
            ("lbaf:runs,phase=-1", "tasks lbaf:runs,phase=-1: phase: -1 is negative"),
            ("src", "tasks src: unknown tasks; known are files:DIR, lbaf:DIR[,set=NAME][,phase=N], FILE.csv[,unit=us] and -"),
            (".csv", "tasks .csv: unknown tasks; known are files:DIR, lbaf:DIR[,set=NAME][,phase=N], FILE.csv[,unit=us] and -"),
            ("a.csv,unit=h", "tasks a.csv,unit=h: unit: \"h\": known units of time are ps, ns, us, ms and s"),
            ("a.csv,unit=s,unit=s", "tasks a.csv,unit=s,unit=s: unit is given twice"),
        ] {
            assert_eq!(TaskSource::parse(text).unwrap_err().to_string(), why);
        }
    }
}
