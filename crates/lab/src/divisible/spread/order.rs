//! The order of a distribution that every node gets, and the reports that the nodes give.

use serde::{Deserialize, Serialize};

use super::kernel::Range;
use equipoise::error::{Error, Result};
use equipoise::node::{Message, Tag, Ticks};
use equipoise::topology::NodeId;

pub(super) const DONE: Tag = crate::tags::spread::DONE;

/// The plan of a distribution, which every node gets beforehand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadOrder {
    /// The node that has the input, and gets the answers.
    pub origin: NodeId,
    /// Range of the input that each node gets as its share.
    pub ranges: Vec<Range>,
    pub installments: u32,
    /// The nodes beyond the originator in the order in which they are served.
    pub order: Vec<NodeId>,
    /// Maximum number of bytes of its share that a node keeps, apart from those in transit to it (640 KiB).
    pub room: u64,
}

/// Activities of a node; times are on its own clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpreadNodeReport {
    /// Times of the first and the last piece of its share.
    pub receiving: Option<(Ticks, Ticks)>,
    /// Intervals with a short pause between them are one.
    pub computing: Vec<(Ticks, Ticks)>,
    /// Computing time without pauses.
    pub busy: Ticks,
    /// Time at which it was done with its share.
    pub finished: Ticks,
    /// Bytes of shares that it sent on each of its links before it was done itself, by the node at the other end.
    pub sent: Vec<(NodeId, u64)>,
    pub pieces: u64,
    /// Maximum number of bytes of its share that waited for its worker.
    pub waiting: u64,
}

/// Result of a distribution on the originator.
#[derive(Debug)]
pub struct SpreadEnding {
    /// Begin of the distribution and arrival of the last answer, on the originator's clock.
    pub began: Ticks,
    pub ended: Ticks,
    /// Report of each node.
    pub reports: Vec<SpreadNodeReport>,
    /// Answers of the shares that are not empty, in the order of the input; or the error of the first one that failed.
    pub answers: Result<Vec<(NodeId, Range, Vec<u8>)>>,
}

/// The error of a message that no part of a distribution waits for.
pub(super) fn unexpected(message: &Message) -> Error {
    Error::Garbled { from: message.envelope.src, what: format!("with tag {}", message.envelope.tag), why: "nobody waits for it".into() }
}
