//! What comes into a rank: messages that are being received, in order per source.
//!
//! A message is delivered when all of it is here and everything that its source sent before is delivered: a small one waits behind a
//! large one whose body is still on its way.

use std::collections::{BTreeSet, VecDeque};

use bytes::{Buf, Bytes};

use super::ffi::{Arrived, Comm, Receiving};
use super::outbox::{CONTROL, LONG, PIECE, WHOLE};
use crate::error::{Error, Result};
use crate::topology::RankId;
use crate::transport::{Envelope, Message, wire};

/// Something that a source sent, in the order in which it did.
enum Part {
    /// Header and body in one.
    Whole(Receiving),
    /// A header whose body will follow.
    Head(Receiving),
    /// A body on its way.
    Body(Envelope, Receiving),
}

/// What a look at the network came to.
pub(super) enum Heard {
    Nothing,
    /// Something has come that is not complete, or not in order yet.
    Something,
    Message(Message),
    Control(RankId, Bytes),
}

pub(super) struct Incoming {
    /// By source: what is not delivered yet, the oldest first.
    queues: Vec<VecDeque<Part>>,
    /// Sources with something in their queue.
    busy: BTreeSet<RankId>,
    /// Carriers' words that are not complete (they are short: hardly ever).
    words: VecDeque<(RankId, Receiving)>,
    piece: usize,
}

impl Incoming {
    pub fn new(ranks: u32, piece: usize) -> Incoming {
        let queues = (0..ranks).map(|_| VecDeque::new()).collect();
        Incoming { queues, busy: BTreeSet::new(), words: VecDeque::new(), piece }
    }

    /// Looks once at the network, and takes what has come.
    pub fn look(&mut self, comm: &Comm, bulk: &Comm) -> Result<Heard> {
        let Some(arrived) = comm.probe()? else { return Ok(Heard::Nothing) };
        let (source, tag) = (arrived.source, arrived.tag);
        if tag == CONTROL {
            return self.word(arrived);
        }
        let mut receiving = arrived.receive()?;
        let queue = &mut self.queues[source as usize];
        // The usual case does not touch the queue.
        if tag == WHOLE && queue.is_empty() && receiving.is_complete()? {
            return whole(source, receiving).map(Heard::Message);
        }
        queue.push_back(if tag == WHOLE { Part::Whole(receiving) } else { Part::Head(receiving) });
        debug_assert!(tag == WHOLE || tag == LONG);
        self.busy.insert(source);
        self.expect_bodies(source, bulk)?;
        Ok(Heard::Something)
    }

    /// Delivers what has become complete, in order per source.
    pub fn finish(&mut self, bulk: &Comm, mut deliver: impl FnMut(Message)) -> Result<()> {
        if self.busy.is_empty() {
            return Ok(());
        }
        for source in self.busy.clone() {
            self.expect_bodies(source, bulk)?;
            let queue = &mut self.queues[source as usize];
            while let Some(part) = queue.front_mut() {
                let (Part::Whole(receiving) | Part::Body(_, receiving)) = part else { break };
                if !receiving.is_complete()? {
                    break;
                }
                match queue.pop_front() {
                    Some(Part::Whole(receiving)) => deliver(whole(source, receiving)?),
                    Some(Part::Body(envelope, receiving)) => deliver(Message { envelope, body: receiving.into_bytes() }),
                    _ => {}
                }
            }
            if queue.is_empty() {
                self.busy.remove(&source);
            }
        }
        Ok(())
    }

    /// A carrier's word that could not be taken at once.
    pub fn late_word(&mut self) -> Result<Option<(RankId, Bytes)>> {
        let Some((_, receiving)) = self.words.front_mut() else { return Ok(None) };
        if !receiving.is_complete()? {
            return Ok(None);
        }
        Ok(self.words.pop_front().map(|(source, receiving)| (source, receiving.into_bytes())))
    }

    /// Number of messages that are on their way in.
    pub fn len(&self) -> usize {
        self.busy.iter().map(|&source| self.queues[source as usize].len()).sum()
    }

    fn word(&mut self, arrived: Arrived) -> Result<Heard> {
        let source = arrived.source;
        let mut receiving = arrived.receive()?;
        if receiving.is_complete()? {
            return Ok(Heard::Control(source, receiving.into_bytes()));
        }
        self.words.push_back((source, receiving));
        Ok(Heard::Something)
    }

    /// Posts the receives of bodies whose headers are here. They must be posted in the order of the headers, which is the order of the
    /// pieces; so a header that is not complete stops all that follow.
    fn expect_bodies(&mut self, source: RankId, bulk: &Comm) -> Result<()> {
        for part in &mut self.queues[source as usize] {
            let Part::Head(receiving) = part else { continue };
            if !receiving.is_complete()? {
                break;
            }
            let head = std::mem::replace(receiving, Receiving::empty()).into_bytes();
            let (envelope, length) = header(source, &head)?;
            *part = Part::Body(envelope, bulk.receive_pieces(source, PIECE, length, self.piece)?);
        }
        Ok(())
    }
}

fn header(source: RankId, bytes: &[u8]) -> Result<(Envelope, u64)> {
    wire::read_header(bytes).map_err(|why| Error::Garbled { from: source, what: "header".into(), why: why.to_string() })
}

/// A message that came in one piece; the body keeps the buffer, without copying.
fn whole(source: RankId, receiving: Receiving) -> Result<Message> {
    let mut bytes = receiving.into_bytes();
    let (envelope, length) = header(source, &bytes)?;
    bytes.advance(wire::HEADER);
    if bytes.len() as u64 != length {
        let why = format!("it announces {length} bytes and brings {}", bytes.len());
        return Err(Error::Garbled { from: envelope.src, what: "in one piece".into(), why });
    }
    Ok(Message { envelope, body: bytes })
}
