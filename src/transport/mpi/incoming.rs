//! What comes into a rank: messages that are being received, in order per source.
//!
//! A message is delivered when all of it is here and everything that its source sent before is delivered: a small one waits behind a
//! large one whose body is still on its way.

use std::collections::{BTreeSet, VecDeque};

use bytes::{Buf, Bytes};

use super::ffi::{Comm, Letter, Mailbox, Receiving};
use super::outbox::{CONTROL, PIECE, WHOLE};
use crate::error::{Error, Result};
use crate::topology::RankId;
use crate::transport::{Envelope, Message, wire};

/// Something that a source sent after a body that is not complete, or that body.
enum Part {
    Whole(Message),
    Body(Envelope, Receiving),
}

/// What a look at the network came to.
pub(super) enum Heard {
    Nothing,
    /// Something that is not complete, or not in order yet.
    Something,
    Message(Message),
    Control(RankId, Bytes),
}

pub(super) struct Incoming {
    mailbox: Mailbox,
    /// By source: what is not delivered yet, the oldest first.
    queues: Vec<VecDeque<Part>>,
    /// Sources with something in their queue.
    busy: BTreeSet<RankId>,
    piece: usize,
}

impl Incoming {
    /// `short`: the longest body that comes in one piece with its header.
    pub fn new(comm: &Comm, ranks: u32, short: usize, piece: usize) -> Result<Incoming> {
        /// Carriers' words are shorter.
        const WORD: usize = 64;
        let mailbox = Mailbox::open(comm, (wire::HEADER + short).max(WORD))?;
        let queues = (0..ranks).map(|_| VecDeque::new()).collect();
        Ok(Incoming { mailbox, queues, busy: BTreeSet::new(), piece })
    }

    /// Looks once at the network, and takes what has come.
    pub fn look(&mut self, comm: &Comm, bulk: &Comm) -> Result<Heard> {
        let Some(Letter { source, tag, mut bytes }) = self.mailbox.look(comm)? else { return Ok(Heard::Nothing) };
        if tag == CONTROL {
            return Ok(Heard::Control(source, bytes));
        }
        let (envelope, length) = header(source, &bytes)?;
        let queue = &mut self.queues[source as usize];
        bytes.advance(wire::HEADER);
        let part = if tag == WHOLE {
            // The body keeps the buffer, without copying.
            if bytes.len() as u64 != length {
                let why = format!("it announces {length} bytes and brings {}", bytes.len());
                return Err(Error::Garbled { from: envelope.src, what: "in one piece".into(), why });
            }
            let message = Message { envelope, body: bytes.into() };
            // The usual case does not touch the queue.
            if queue.is_empty() {
                return Ok(Heard::Message(message));
            }
            Part::Whole(message)
        } else {
            // Receives of bodies are posted in the order of their headers, which is the order of the pieces.
            Part::Body(envelope, bulk.receive_pieces(source, PIECE, length, &bytes, self.piece)?)
        };
        queue.push_back(part);
        self.busy.insert(source);
        Ok(Heard::Something)
    }

    /// Delivers what has become complete, in order per source.
    pub fn finish(&mut self, mut deliver: impl FnMut(Message)) -> Result<()> {
        if self.busy.is_empty() {
            return Ok(());
        }
        for source in self.busy.clone() {
            let queue = &mut self.queues[source as usize];
            while let Some(part) = queue.front_mut() {
                if let Part::Body(_, receiving) = part
                    && !receiving.is_complete()?
                {
                    break;
                }
                match queue.pop_front() {
                    Some(Part::Whole(message)) => deliver(message),
                    Some(Part::Body(envelope, receiving)) => deliver(Message { envelope, body: receiving.into_bytes().into() }),
                    None => {}
                }
            }
            if queue.is_empty() {
                self.busy.remove(&source);
            }
        }
        Ok(())
    }

    /// Number of messages that are on their way in.
    pub fn len(&self) -> usize {
        self.busy.iter().map(|&source| self.queues[source as usize].len()).sum()
    }

    /// Takes the posted receive back. Nothing may be on its way any more.
    pub fn close(self) -> Result<()> {
        self.mailbox.close()
    }
}

fn header(source: RankId, bytes: &[u8]) -> Result<(Envelope, u64)> {
    wire::read_header(bytes).map_err(|why| Error::GarbledByRank { rank: source, what: "header".into(), why: why.to_string() })
}
