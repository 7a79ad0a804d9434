//! Tasks of a helper that are not running commands: waiting for resources, or ended with an unknown outcome.

use std::process::ExitStatus;
use std::time::Instant;

use crate::task::{Outcome, Task};

/// A task that waits for room.
pub struct Waiting {
    pub task: Task,
    /// Attempts so far, those of earlier jobs included.
    pub attempts: u32,
    /// Attempts of this job that failed.
    pub tries: u32,
}

/// A task that may have been ended with its job.
pub struct Doubtful {
    pub task: Task,
    pub tries: u32,
    pub outcome: Outcome,
    pub status: ExitStatus,
    pub until: Instant,
}
