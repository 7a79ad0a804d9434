//! The mover: carries tasks from node to node, and keeps the books.
//!
//! A transfer is one flat buffer: what the walk has to say, then the table of segments, then the payloads. The receiver slices the payloads
//! out of the buffer without copying.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{HEADER_BYTES, Message, Node, Tag};
use crate::error::{Error, Result};
use crate::load::{Parcel, Pile, Segment, Task, Transfer};
use crate::topology::NodeId;
use crate::transport::wire;

const TASKS: Tag = Tag::new(0x7e01, "tasks");

/// A node's tasks while they are being redistributed, and the log of what it sent.
pub struct Mover<'a> {
    node: &'a Node,
    pub pile: &'a mut Pile,
    sent: Vec<Transfer>,
    /// Whether each transfer is logged, or only counted.
    logs: bool,
    transfers: u64,
    /// The step that this node's next transfer gets at the least: one more than that of the last one that it received.
    step: u32,
}

/// Tasks that arrived, with what their sender had to say.
pub struct Arrival<T> {
    pub src: NodeId,
    pub said: T,
    pub parcel: Parcel,
}

impl<'a> Mover<'a> {
    pub fn new(node: &'a Node, pile: &'a mut Pile) -> Mover<'a> {
        Mover { node, pile, sent: Vec::new(), logs: true, transfers: 0, step: 0 }
    }

    /// Only counts transfers from now on: a million nodes need not keep a log that nobody reads.
    pub fn only_count(&mut self) {
        self.logs = false;
    }

    /// Number of transfers sent so far.
    pub fn transfers(&self) -> u64 {
        self.transfers
    }

    /// What was sent so far, in order of sending.
    pub fn into_sent(self) -> Vec<Transfer> {
        self.sent
    }

    /// Begins a step of the algorithm: transfers from now on have at least this number.
    pub fn at_step(&mut self, step: u32) {
        self.step = self.step.max(step);
    }

    /// Sends tasks, and what the receiver must know beside them (an empty parcel carries only that).
    pub fn send<T: Serialize>(&mut self, dst: NodeId, said: &T, parcel: Parcel) {
        if !parcel.is_empty() {
            self.transfers += 1;
            if self.logs {
                self.sent.push(Transfer { step: self.step, src: self.node.me(), dst, tasks: parcel.len(), work: parcel.work() });
            }
        }
        self.node.send_tasks(dst, TASKS, encode(&(self.step, said), &parcel), parcel.len());
    }

    /// Takes about so much work off the pile, foreign tasks first, and sends it; see [`Pile::take`]. Returns how much it was.
    pub fn give<T: Serialize>(&mut self, dst: NodeId, said: &T, amount: u64) -> u64 {
        let parcel = self.pile.take(amount);
        let work = parcel.work();
        self.send(dst, said, parcel);
        work
    }

    /// Receives what a node sends. The tasks are the caller's to put onto the pile.
    ///
    /// # Errors
    /// If the node's rank is lost or the message is garbled.
    pub async fn receive<T: DeserializeOwned>(&mut self, src: NodeId) -> Result<Arrival<T>> {
        let message = self.node.receive_message(Some(src), TASKS).await?;
        self.unpack(message)
    }

    /// Receives what any node sends.
    ///
    /// # Errors
    /// If a rank is lost or the message is garbled.
    pub async fn receive_any<T: DeserializeOwned>(&mut self) -> Result<Arrival<T>> {
        let message = self.node.receive_message(None, TASKS).await?;
        self.unpack(message)
    }

    /// Receives what a node sends, puts its tasks behind the pile, and returns how much work they are and what was said.
    ///
    /// # Errors
    /// If the node's rank is lost or the message is garbled.
    pub async fn take_in<T: DeserializeOwned>(&mut self, src: NodeId) -> Result<(u64, T)> {
        let arrival = self.receive::<T>(src).await?;
        let work = arrival.parcel.work();
        self.pile.put_behind(arrival.parcel);
        Ok((work, arrival.said))
    }

    /// Receives from any nodes until what they say are so many units of a row, and returns the arrivals in the order of their sources. A
    /// sender says how many units its part of the row has in common with the receiver's; its tasks may have more or fewer.
    ///
    /// # Errors
    /// If a rank is lost, a message is garbled, or more units come.
    pub async fn receive_units(&mut self, units: u64) -> Result<Vec<Arrival<u64>>> {
        let mut arrivals = Vec::new();
        let mut missing = units;
        while missing > 0 {
            let arrival = self.receive_any::<u64>().await?;
            missing = missing.checked_sub(arrival.said).ok_or_else(|| Error::Garbled {
                from: arrival.src,
                what: "'tasks'".into(),
                why: format!("it stands for {} units where {missing} were missing", arrival.said),
            })?;
            arrivals.push(arrival);
        }
        arrivals.sort_by_key(|arrival| arrival.src);
        Ok(arrivals)
    }

    fn unpack<T: DeserializeOwned>(&mut self, message: Message) -> Result<Arrival<T>> {
        let Message { envelope, body } = message;
        let src = envelope.src;
        let garbled = |why: String| Error::Garbled { from: src, what: "'tasks'".into(), why };
        let ((step, said), parcel) = decode::<(u32, T)>(&body.into()).map_err(garbled)?;
        if parcel.len() != envelope.tasks {
            return Err(garbled(format!("it holds {} tasks, its envelope says {}", parcel.len(), envelope.tasks)));
        }
        if !parcel.is_empty() {
            self.step = self.step.max(step + 1);
        }
        Ok(Arrival { src, said, parcel })
    }
}

/// Bytes of a transfer of one range of tasks, beside what its sender has to say: header, step, length of the table, table.
pub const TRANSFER_BYTES: u64 = HEADER_BYTES + 4 + 8 + 24;

/// How a segment stands in the table: 24 bytes each.
const RANGE: u64 = u64::MAX;

fn encode<T: Serialize>(said: &T, parcel: &Parcel) -> Bytes {
    let mut front = Vec::with_capacity(64);
    wire::write_into(said, &mut front);
    let payloads: usize = parcel.segments().map(payload_length).sum();
    let mut out = Vec::with_capacity(front.len() + 8 + parcel.segments().len() * 24 + payloads);
    out.extend_from_slice(&front);
    out.extend_from_slice(&(parcel.segments().len() as u64).to_le_bytes());
    for segment in parcel.segments() {
        let entry = match segment {
            Segment::Range { first, count } => [*first, *count, RANGE],
            Segment::One(task) => [task.id, task.weight, task.payload.len() as u64],
        };
        let mut bytes = [0; 24];
        bytes.chunks_exact_mut(8).zip(entry).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        out.extend_from_slice(&bytes);
    }
    for segment in parcel.segments() {
        if let Segment::One(task) = segment {
            out.extend_from_slice(&task.payload);
        }
    }
    Bytes::from(out)
}

fn payload_length(segment: &Segment) -> usize {
    match segment {
        Segment::Range { .. } => 0,
        Segment::One(task) => task.payload.len(),
    }
}

fn decode<T: DeserializeOwned>(body: &Bytes) -> Result<(T, Parcel), String> {
    let (said, used) = wire::read_prefix::<T>(body).map_err(|why| why.to_string())?;
    let short = || "it is too short".to_string();
    let word = |at: usize| -> Result<u64, String> {
        let bytes = body.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).ok_or_else(short)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let segments = usize::try_from(word(used)?).map_err(|_| short())?;
    let table = used + 8;
    let mut payload_at =
        segments.checked_mul(24).and_then(|length| table.checked_add(length)).filter(|&end| end <= body.len()).ok_or_else(short)?;
    let mut parcel = Parcel::with_capacity(segments);
    for entry in (table..payload_at).step_by(24) {
        let (first, second, third) = (word(entry)?, word(entry + 8)?, word(entry + 16)?);
        parcel.push(if third == RANGE {
            Segment::Range { first, count: second }
        } else {
            let end = usize::try_from(third)
                .ok()
                .and_then(|length| payload_at.checked_add(length))
                .filter(|&end| end <= body.len())
                .ok_or_else(short)?;
            let payload = body.slice(payload_at..end);
            payload_at = end;
            Segment::One(Task { id: first, weight: second, payload })
        });
    }
    if payload_at == body.len() { Ok((said, parcel)) } else { Err("it is too long".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel() -> Parcel {
        let task = |id: u64, length: usize| Segment::One(Task { id, weight: id % 7, payload: Bytes::from(vec![id as u8; length]) });
        [task(1, 0), Segment::Range { first: 5, count: 1 << 40 }, task(2, 3000), task(u64::MAX, 1)].into_iter().collect()
    }

    #[test]
    fn a_transfer_returns_as_it_was() {
        let said = (7u32, vec![-1i64, 3]);
        let body = encode(&said, &parcel());
        assert_eq!(decode::<(u32, Vec<i64>)>(&body), Ok((said, parcel())));
        assert_eq!(decode::<()>(&encode(&(), &Parcel::default())), Ok(((), Parcel::default())));
    }

    #[test]
    fn a_cut_or_lengthened_transfer_is_an_error() {
        let body = encode(&(), &parcel());
        for length in 0..body.len() {
            assert!(decode::<()>(&body.slice(..length)).is_err(), "{length} bytes");
        }
        let longer: Bytes = [&body[..], &[0]].concat().into();
        assert!(decode::<()>(&longer).is_err());
    }
}
