//! Where real tasks come from: what `--tasks` says.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::items::{shortened, whole};
use super::measured::MeasuredTasks;
use super::{lbaf, task_table};
use crate::error::{Error, Result};

pub(super) const OPTION: &str = "--tasks";

/// Where tasks come from, as given by `--tasks`; [`Display`](fmt::Display) writes what [`TaskSource::parse`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskSource {
    /// Every file below a folder is a task, see [`FileTasks`](super::FileTasks).
    Files(PathBuf),
    /// Task times of a real run, a file for each of its ranks, see [`lbaf`]; of one phase, the first if none is named.
    Lbaf { folder: PathBuf, phase: Option<u64> },
    /// A table of tasks, see [`task_table`].
    Table(PathBuf),
}

impl TaskSource {
    /// Reads `files:DIR | lbaf:DIR[,phase=N] | FILE.csv`, without looking at folders or files.
    pub fn parse(text: &str) -> Result<TaskSource> {
        let text = text.trim();
        let wrong = |why: &str| Error::usage(format!("{OPTION} {}: {why}", shortened(text)));
        match text.split_once(':') {
            Some(("files" | "lbaf", "")) => Err(wrong("the name of a folder is missing")),
            Some(("files", folder)) => Ok(TaskSource::Files(folder.into())),
            Some(("lbaf", rest)) => {
                let (folder, phase) = match rest.rsplit_once(",phase=") {
                    Some((folder, phase)) => (folder, Some(whole(phase).map_err(|why| wrong(&format!("phase: {why}")))?)),
                    None => (rest, None),
                };
                if folder.is_empty() {
                    return Err(wrong("the name of a folder is missing"));
                }
                Ok(TaskSource::Lbaf { folder: folder.into(), phase })
            }
            _ if text.len() > 4 && text.ends_with(".csv") => Ok(TaskSource::Table(text.into())),
            _ => Err(wrong("unknown tasks; known are files:DIR, lbaf:DIR[,phase=N] and FILE.csv")),
        }
    }

    /// The tasks that were measured, read; `None` where the source is files to be carried.
    ///
    /// # Errors
    /// If they cannot be read, or are not what they should be; the sentence names the file and the place in it.
    pub fn measured(&self) -> Result<Option<MeasuredTasks>> {
        match self {
            TaskSource::Files(_) => Ok(None),
            TaskSource::Lbaf { folder, phase } => lbaf::read(folder, *phase).map(Some),
            TaskSource::Table(path) => task_table::read(path).map(Some),
        }
    }

    /// Seconds that a unit of work lasted; `None` where that is not told.
    pub fn unit_seconds(&self) -> Option<f64> {
        match self {
            TaskSource::Lbaf { .. } => Some(1e-9),
            TaskSource::Files(_) | TaskSource::Table(_) => None,
        }
    }
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
            TaskSource::Files(folder) => write!(f, "files:{}", folder.display()),
            TaskSource::Lbaf { folder, phase: None } => write!(f, "lbaf:{}", folder.display()),
            TaskSource::Lbaf { folder, phase: Some(phase) } => write!(f, "lbaf:{},phase={phase}", folder.display()),
            TaskSource::Table(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_read_back() {
        for text in ["files:src/a:b", "lbaf:runs/one", "lbaf:a,b,phase=901", "loads.csv"] {
            assert_eq!(TaskSource::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_sources_are_refused_in_one_sentence() {
        for (text, why) in [
            ("files:", "--tasks files:: the name of a folder is missing"),
            ("lbaf:", "--tasks lbaf:: the name of a folder is missing"),
            ("lbaf:,phase=1", "--tasks lbaf:,phase=1: the name of a folder is missing"),
            ("lbaf:runs,phase=-1", "--tasks lbaf:runs,phase=-1: phase: -1 is negative"),
            ("src", "--tasks src: unknown tasks; known are files:DIR, lbaf:DIR[,phase=N] and FILE.csv"),
            (".csv", "--tasks .csv: unknown tasks; known are files:DIR, lbaf:DIR[,phase=N] and FILE.csv"),
        ] {
            assert_eq!(TaskSource::parse(text).unwrap_err().to_string(), why);
        }
    }
}
