//! Sources of the loads of a case.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::workload::{LoadPattern, TaskSource};

/// The source of the loads of a case. It is displayed, and serialised, as it was asked for.
#[derive(Clone, Debug, Default)]
pub enum LoadSource {
    /// The tasks that a program made itself.
    #[default]
    Own,
    /// A list or a pattern (`--loads`).
    Pattern(LoadPattern),
    /// Real tasks: files, LBAF's data or a table (`--tasks`).
    Tasks(TaskSource),
}

impl fmt::Display for LoadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadSource::Own => f.write_str("own tasks"),
            LoadSource::Pattern(pattern) => pattern.fmt(f),
            LoadSource::Tasks(source) => source.fmt(f),
        }
    }
}

impl Serialize for LoadSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
