//! A task of the list, and its result.

use serde::{Deserialize, Serialize};

/// The variable by which disBatch tells a command its index.
pub const REPEAT_INDEX: &[u8] = b"DISBATCH_REPEAT_INDEX";

/// One command of the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its number in the list: commands count from 1, comments and blank lines do not count.
    pub seq: u64,
    /// Its line in the file, from 1.
    pub line: u64,
    /// The command as written, without directives.
    pub text: Vec<u8>,
    /// Way in which the text is run.
    pub how: How,
    /// Resources of its rank that it takes while it runs.
    pub needs: Needs,
    /// Estimated run time in seconds.
    pub cost: Option<f64>,
    /// It is not started with less time left than this, in seconds.
    pub min: Option<f64>,
    /// Ranges of Seq that must have succeeded before.
    pub after: Vec<(u64, u64)>,
    /// Working directory.
    pub dir: Option<Vec<u8>>,
    /// File that is its standard input.
    pub stdin: Option<Vec<u8>>,
    /// Variables of its own.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Way in which a command is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Split into words as by a shell; the first is the program.
    #[default]
    Words,
    /// Command that is run by `sh -c`.
    Shell,
    /// Nothing is run: a task of `--empty`.
    Empty,
    /// A built-in task that sleeps: a task of `--sleep`.
    Sleep,
}

/// Resources that a task takes of its rank's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Needs {
    pub cpus: u32,
    pub gpus: u32,
    /// Bytes.
    pub mem: u64,
}

impl Task {
    /// Its index among the commands of its line, where disBatch's REPEAT makes several of one.
    pub fn repeat_index(&self) -> Option<u64> {
        let (_, value) = self.variables.iter().find(|(name, _)| name == REPEAT_INDEX)?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// The least time that must be left for it to be started, in seconds.
    pub fn least_time(&self) -> f64 {
        self.min.or(self.cost).unwrap_or(0.0)
    }
}

/// State of a task after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Exit status 0.
    Done,
    /// Anything else, and there is no further attempt.
    Failed,
    /// It failed, and is tried again.
    Again,
    /// It was not run: a task that it comes after failed.
    Skipped,
    /// It was not started, or was stopped with the job: there is no record of it, and a resumed job runs it.
    Left,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Failed => "failed",
            State::Again => "again",
            State::Skipped => "skipped",
            State::Left => "left",
        }
    }

    pub fn parse(text: &[u8]) -> Option<State> {
        [State::Done, State::Failed, State::Again, State::Skipped, State::Left].into_iter().find(|state| state.name().as_bytes() == text)
    }

    /// Returns true if nothing more happens to the task.
    pub fn is_final(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Skipped)
    }
}

/// The exit status in a record of a command that ran into its time limit, as GNU parallel has it.
pub const TIMED_OUT: i32 = -1;
/// Exit status of a command whose program does not exist, as in shells.
pub const NOT_FOUND: i32 = 127;
/// The exit status of a command whose program cannot be executed.
pub const NOT_EXECUTABLE: i32 = 126;

/// An attempt at a task that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub seq: u64,
    pub attempt: u32,
    pub state: State,
    pub exit: i32,
    /// The signal that ended it; 0 if none did.
    pub signal: i32,
    /// Seconds since 1970.
    pub start: f64,
    /// Seconds.
    pub runtime: f64,
    /// Processor time in seconds, of the user and of the system.
    pub cpu: f64,
    /// Largest resident memory in KiB.
    pub memory: u64,
    pub out: Capture,
    pub err: Capture,
    /// The end of its standard error, at most [`LAST_BYTES`], of a failure that is reported; wherever the output itself goes.
    pub last: Vec<u8>,
}

/// Bytes of the end of standard error that are reported.
pub const LAST_BYTES: u64 = 2048;

impl Outcome {
    /// Outcome of a task that was not run.
    pub fn without_run(seq: u64, state: State) -> Outcome {
        let (out, err) = (Capture::default(), Capture::default());
        Outcome { seq, attempt: 0, state, exit: 0, signal: 0, start: 0.0, runtime: 0.0, cpu: 0.0, memory: 0, out, err, last: Vec::new() }
    }
}

/// One output of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    pub bytes: u64,
    pub lines: u64,
    pub kept: Kept,
}

/// Place of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// There is no output, or it is in a file of `--results`.
    #[default]
    Nowhere,
    Here(Vec<u8>),
    /// In this file on the host of the rank, which is removed when it has been read.
    File(Vec<u8>),
}
