//! Messages between the lead (on rank 0) and the hands (one on each rank).

use serde::{Deserialize, Serialize};

use crate::limits::Demand;
use crate::task::{Outcome, Task};

/// Message from the lead to a hand.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToHand {
    /// Comes first. The number of the job among those on its journal.
    Begin { job: u32, deadline: Option<f64> },
    /// Tasks to run, with the number of attempts they had in earlier jobs.
    Tasks(Vec<(Task, u32)>),
    /// Tasks that are not run but get their record.
    Skip(Vec<Task>),
    /// Stop starting tasks; stop those that still run after `grace` seconds.
    Drain { grace: f64 },
    /// A piece of a long output is wanted, from this place on.
    Pull { seq: u64, stream: Stream, from: u64 },
    /// A command for the host.
    OnHost { text: Vec<u8>, variables: Vec<(String, String)> },
    /// All is done.
    End,
}

/// Message from a hand to the lead.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToLead {
    /// Tasks have ended, so that there is room for others; their records are being written. Number of tasks, number of failed ones,
    /// seconds, sum of squared seconds, and what they took of the rank's resources.
    Freed { tasks: u64, failed: u64, time: f64, squares: f64, demand: Demand },
    /// Tasks whose records are on the disk.
    Ended(Vec<Outcome>),
    /// A piece of a long output; none behind its end.
    Piece { seq: u64, bytes: Vec<u8> },
    /// A command for the host has ended.
    OnHost(Outcome),
    /// This rank was asked to end soon, for the first time or again.
    Signalled { again: bool },
    /// The job cannot go on.
    Failed(String),
    /// The hand has ended.
    Gone,
}

/// An output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stream {
    Out,
    Err,
}
