//! Trace of single messages, kept by a [recording](super::record) port on request. It is bounded, since phases may send without end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Envelope, Ticks};
use crate::topology::NodeId;

/// A message that left this node, or that its program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Time of the event on the node's own clock.
    pub at: Ticks,
    /// Whether it was sent here; otherwise the program took it.
    pub sent: bool,
    /// The node at the other end.
    pub other: NodeId,
    pub epoch: u32,
    pub tag: u16,
    /// Number of earlier messages with the same two nodes, epoch and tag: the same at both ends, since order is kept per pair.
    pub number: u32,
    pub tasks: u64,
    /// Header included.
    pub bytes: u64,
}

/// The recorded passages of one node, up to a limit.
#[derive(Debug)]
pub struct MessageTrace {
    limit: usize,
    passages: Vec<TraceEvent>,
    missed: u64,
    numbers: BTreeMap<(bool, NodeId, u32, u16), u32>,
}

impl MessageTrace {
    /// Returns an empty tape for `limit` passages.
    pub fn new(limit: usize) -> MessageTrace {
        MessageTrace { limit, passages: Vec::new(), missed: 0, numbers: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, at: Ticks, sent: bool, envelope: &Envelope, bytes: u64) {
        if self.passages.len() >= self.limit {
            self.missed += 1;
            return;
        }
        let (other, epoch, tag) = (if sent { envelope.dst } else { envelope.src }, envelope.scope.epoch, envelope.tag);
        let next = self.numbers.entry((sent, other, epoch, tag)).or_default();
        let number = *next;
        *next += 1;
        self.passages.push(TraceEvent { at, sent, other, epoch, tag, number, tasks: envelope.tasks, bytes });
    }

    /// Takes the recorded events, in order, and the number of events that were dropped because the tape was full.
    pub fn take(&mut self) -> (Vec<TraceEvent>, u64) {
        (std::mem::take(&mut self.passages), self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Scope;

    #[test]
    fn a_tape_numbers_by_pair_and_ends_when_it_is_full() {
        let envelope = |src, dst, tag| Envelope { src, dst, scope: Scope { run: 1, epoch: 0 }, tag, chain: 0, tasks: 0 };
        let mut tape = MessageTrace::new(4);
        for (at, sent, envelope) in [
            (1, true, envelope(0, 1, 7)),
            (2, true, envelope(0, 1, 7)),
            (3, true, envelope(0, 2, 7)),
            (4, false, envelope(1, 0, 7)),
            (5, true, envelope(0, 1, 7)),
        ] {
            tape.note(at, sent, &envelope, 50);
        }
        let (passages, missed) = tape.take();
        assert_eq!(passages.iter().map(|p| (p.other, p.number)).collect::<Vec<_>>(), [(1, 0), (1, 1), (2, 0), (1, 0)]);
        assert_eq!(missed, 1);
    }
}
