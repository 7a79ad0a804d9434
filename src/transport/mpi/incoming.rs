//! Incoming messages of a rank, in order per source.
//!
//! A message is delivered when all of it is here and everything that its source sent before is delivered: a small one waits behind a
//! large one whose body is still on its way.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::ffi::{Awaited, Comm, Letter, MOST_BODIES, Mailbox, Receiving};
use super::outbox::{CONTROL, PIECE, WHOLE};
use super::pool::Pool;
use crate::error::{Error, Result};
use crate::topology::RankId;
use crate::transport::{Envelope, Message, wire};

/// Something that a source sent after a body that is not complete, or that body.
enum Pending {
    Message(Message),
    Body(Envelope, Receiving),
}

/// Result of a poll of the network.
pub(super) enum Heard {
    Nothing,
    /// Something that is not complete, or not in order yet.
    Something,
    Message(Message),
    Control(RankId, Bytes),
}

pub(super) struct Incoming {
    mailbox: Mailbox,
    /// Messages not delivered yet, by source, the oldest first.
    queues: Vec<VecDeque<Pending>>,
    /// Sources with something in their queue.
    busy: Vec<RankId>,
    /// Reusable buffer for the bodies of a poll.
    awaited: Vec<(RankId, Awaited)>,
    /// Ranks that are lost: nothing of theirs counts any more.
    lost: Vec<RankId>,
    piece: usize,
    /// Pool of buffers for bodies.
    pool: Pool,
}

impl Incoming {
    /// `short`: the longest body that comes in one piece with its header. Buffers of `spare` bytes are kept to be used again.
    pub fn new(comm: &Comm, ranks: u32, short: usize, piece: usize, spare: usize) -> Result<Incoming> {
        /// Carriers' words are shorter.
        const WORD: usize = 64;
        let mailbox = Mailbox::open(comm, (wire::HEADER + short).max(WORD))?;
        let queues = (0..ranks).map(|_| VecDeque::new()).collect();
        Ok(Incoming { mailbox, queues, busy: Vec::new(), awaited: Vec::new(), lost: Vec::new(), piece, pool: Pool::new(spare) })
    }

    /// Polls the network once, and takes arrived messages.
    pub fn poll(&mut self, comm: &Comm, bulk: &Comm) -> Result<Heard> {
        let Some(Letter { source, tag, mut bytes }) = self.letter(comm)? else { return Ok(Heard::Nothing) };
        if self.lost.contains(&source) {
            return Ok(Heard::Something);
        }
        if tag == CONTROL {
            return Ok(Heard::Control(source, bytes));
        }
        let (envelope, length) = header(source, &bytes)?;
        let queue = &mut self.queues[source.index()];
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
            Pending::Message(message)
        } else {
            // Receives of bodies are posted in the order of their headers, which is the order of the pieces.
            let mut receiving = bulk.receive_pieces(&self.pool, source, PIECE, length, &bytes, self.piece)?;
            // Often the body has come along. It is not left until the next poll: that might be a while, where ranks share processors.
            if queue.is_empty() && receiving.is_complete()? {
                return Ok(Heard::Message(Message { envelope, body: receiving.into_bytes(&self.pool).into() }));
            }
            Pending::Body(envelope, receiving)
        };
        if queue.is_empty() {
            self.busy.push(source);
        }
        queue.push_back(part);
        Ok(Heard::Something)
    }

    /// The next letter, if one has come. Notes what has come of the bodies that the sources' oldest messages wait for, too.
    fn letter(&mut self, comm: &Comm) -> Result<Option<Letter>> {
        if self.busy.is_empty() {
            return self.mailbox.poll(comm);
        }
        self.awaited.clear();
        for &source in self.busy.iter().take(MOST_BODIES) {
            if let Some(Pending::Body(_, receiving)) = self.queues[source.index()].front() {
                self.awaited.push((source, receiving.awaited()));
            }
        }
        let letter = self.mailbox.look_with(comm, &mut self.awaited)?;
        for (source, awaited) in self.awaited.drain(..) {
            if let Some(Pending::Body(_, receiving)) = self.queues[source.index()].front_mut() {
                receiving.note(awaited);
            }
        }
        Ok(letter)
    }

    /// Delivers complete messages, in order per source.
    pub fn finish(&mut self, mut deliver: impl FnMut(Message)) -> Result<()> {
        let mut at = 0;
        while let Some(&source) = self.busy.get(at) {
            let queue = &mut self.queues[source.index()];
            while let Some(part) = queue.front_mut() {
                if let Pending::Body(_, receiving) = part
                    && !receiving.is_complete()?
                {
                    break;
                }
                match queue.pop_front() {
                    Some(Pending::Message(message)) => deliver(message),
                    Some(Pending::Body(envelope, receiving)) => {
                        deliver(Message { envelope, body: receiving.into_bytes(&self.pool).into() });
                    }
                    None => {}
                }
            }
            match queue.is_empty() {
                true => _ = self.busy.remove(at),
                false => at += 1,
            }
        }
        Ok(())
    }

    /// Forgets messages in transit from a lost rank.
    pub fn lose(&mut self, rank: RankId) {
        self.lost.push(rank);
        self.busy.retain(|source| *source != rank);
        self.queues[rank.index()].clear();
    }

    /// Number of messages that are on their way in.
    pub fn len(&self) -> usize {
        self.busy.iter().map(|&source| self.queues[source.index()].len()).sum()
    }

    /// Takes the posted receive back. Nothing may be on its way any more.
    pub fn close(self) -> Result<()> {
        self.mailbox.close()
    }
}

fn header(source: RankId, bytes: &[u8]) -> Result<(Envelope, u64)> {
    wire::read_header(bytes).map_err(|why| Error::GarbledByRank { rank: source, what: "header".into(), why: why.to_string() })
}
