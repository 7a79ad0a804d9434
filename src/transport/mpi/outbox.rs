//! Outbox of a rank: immediate sends that own their bytes.
//!
//! A message goes out as one MPI message, header and body together, while its body is short; a longer one sends its header ahead, with the
//! front of its body if that is short, and the rest in pieces on a communicator of their own, without copying it. Both leave in the order in
//! which they are sent.

use super::ffi::{Comm, Outgoing};
use super::sends::Sends;
use crate::error::Result;
use crate::topology::RankId;
use crate::transport::{Envelope, OutgoingBody, wire};

/// A message in one piece.
pub(super) const WHOLE: i32 = 1;
/// The header of a message, and the front of its body, whose rest follows in pieces on the other communicator.
pub(super) const LONG: i32 = 2;
/// Talk between carriers.
pub(super) const CONTROL: i32 = 3;
/// A piece of a body.
pub(super) const PIECE: i32 = 4;

/// Maximum number of buffers that are kept for reuse.
const SPARE: usize = 64;
/// Sends may work queue up while a program does not wait; now and then one looks which are over.
const LOOK_EVERY: u32 = 32;

pub(super) struct Outbox {
    sends: Sends,
    /// Bytes of the sends that are not over.
    bytes: usize,
    spare: Vec<Vec<u8>>,
    since_look: u32,
    /// Bodies up to this length travel with their header.
    inline_limit: usize,
    /// No piece is longer.
    piece: usize,
}

impl Outbox {
    pub fn new(inline_limit: usize, piece: usize) -> Outbox {
        Outbox { sends: Sends::default(), bytes: 0, spare: Vec::new(), since_look: 0, inline_limit, piece }
    }

    /// Bytes that wait to be taken over by MPI or the receiver.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of sends that are not over.
    pub fn len(&self) -> usize {
        self.sends.len()
    }

    /// Sends a message to another rank.
    pub fn send(&mut self, comm: &Comm, bulk: &Comm, to: RankId, envelope: &Envelope, outgoing: OutgoingBody) -> Result<()> {
        let mut head = self.spare.pop().unwrap_or_default();
        wire::write_header(envelope, outgoing.len() as u64, &mut head);
        if outgoing.len() <= self.inline_limit {
            head.extend_from_slice(&outgoing.front);
            head.extend_from_slice(&outgoing.rest);
            return self.start(comm, to, WHOLE, Outgoing::Own(head));
        }
        let mut rest = if !outgoing.rest.is_empty() && outgoing.front.len() <= self.inline_limit {
            head.extend_from_slice(&outgoing.front);
            outgoing.rest
        } else {
            outgoing.into_body()?.into()
        };
        self.start(comm, to, LONG, Outgoing::Own(head))?;
        while !rest.is_empty() {
            let piece = rest.split_to(self.piece.min(rest.len()));
            self.start(bulk, to, PIECE, Outgoing::Shared(piece))?;
        }
        Ok(())
    }

    /// Sends a word from carrier to carrier.
    pub fn send_control(&mut self, comm: &Comm, to: RankId, message: Vec<u8>) -> Result<()> {
        self.start(comm, to, CONTROL, Outgoing::Own(message))
    }

    /// Releases finished sends. Returns true if there were any.
    pub fn collect(&mut self) -> Result<bool> {
        self.since_look = 0;
        let Outbox { sends, bytes, spare, .. } = self;
        let before = sends.len();
        sends.collect(|over| {
            *bytes -= over.len();
            keep(spare, over);
        })?;
        Ok(sends.len() < before)
    }

    fn start(&mut self, comm: &Comm, to: RankId, tag: i32, out: Outgoing) -> Result<()> {
        let length = out.len();
        match self.sends.start(comm, to, tag, out)? {
            Some(over) => keep(&mut self.spare, over),
            None => {
                self.bytes += length;
                self.since_look += 1;
                if self.since_look >= LOOK_EVERY {
                    self.collect()?;
                }
            }
        }
        Ok(())
    }
}

/// Keeps a buffer for later, unless there are enough.
fn keep(spare: &mut Vec<Vec<u8>>, over: Outgoing) {
    if let Outgoing::Own(mut buffer) = over
        && spare.len() < SPARE
    {
        buffer.clear();
        spare.push(buffer);
    }
}
