//! The mover: carries tasks from node to node, and logs the transfers.
//!
//! A transfer is the balancer's own data, then the table of rows, then the payloads, in one flat buffer at its receiver. The receiver
//! slices the payloads out of it without copying, once for each row of alike tasks. The payloads of a single row are not copied at the
//! sender's either.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{HEADER_BYTES, Message, Node, Tag};
use crate::error::{Error, Result};
use crate::load::{Segment, TaskBatch, TaskId, Transfer, WorkQueue};
use crate::topology::NodeId;
use crate::transport::{OutgoingBody, buffer, wire};

const TASKS: Tag = crate::node::tags::mover::TASKS;
const BACK: Tag = crate::node::tags::mover::BACK;

/// A node's tasks while they are being redistributed, and the log of its transfers.
pub struct Mover<'a> {
    node: &'a Node,
    /// The node's tasks.
    pub queue: &'a mut WorkQueue,
    sent: Vec<Transfer>,
    /// Whether each transfer is logged, and not only counted.
    logs: bool,
    transfers: u64,
    /// Lower bound on the step of this node's next transfer: one more than that of the last transfer that it received.
    step: u32,
    /// Transfers out and in, in their order, if they may have to be taken back.
    passages: Option<Vec<TraceEvent>>,
}

/// Tasks that went through this node's door.
enum TraceEvent {
    Out {
        dst: NodeId,
        work: u64,
    },
    In {
        src: NodeId,
        /// First id and number of each row.
        rows: Vec<(TaskId, u64)>,
    },
}

/// Tasks that arrived, with their sender's data.
pub struct Arrival<T> {
    /// The node that sent them.
    pub src: NodeId,
    /// The message sent with them.
    pub said: T,
    /// The tasks; may be none.
    pub batch: TaskBatch,
}

impl<'a> Mover<'a> {
    /// A mover of the tasks in this node's work queue.
    pub fn new(node: &'a Node, queue: &'a mut WorkQueue) -> Mover<'a> {
        Mover { node, queue, sent: Vec::new(), logs: true, transfers: 0, step: 0, passages: None }
    }

    /// Counts transfers from now on instead of logging them: a million nodes need not keep a log that is never read.
    pub fn only_count(&mut self) {
        self.logs = false;
    }

    /// Remembers from now on which tasks went where, so that they can be [taken back](Mover::take_back).
    pub fn remember(&mut self) {
        self.passages = Some(Vec::new());
    }

    /// Number of transfers sent so far.
    pub fn transfers(&self) -> u64 {
        self.transfers
    }

    /// Transfers that were sent so far, in order of sending.
    pub fn into_sent(self) -> Vec<Transfer> {
        self.sent
    }

    /// Begins a step of the algorithm: transfers from now on have at least this number.
    pub fn at_step(&mut self, step: u32) {
        self.step = self.step.max(step);
    }

    /// Sends tasks together with a message about them (with an empty batch, the message alone).
    pub fn send<T: Serialize>(&mut self, dst: NodeId, said: &T, batch: TaskBatch) {
        if let (Some(passages), false) = (&mut self.passages, batch.is_empty()) {
            passages.push(TraceEvent::Out { dst, work: batch.work() });
        }
        self.send_as(TASKS, dst, said, batch);
    }

    fn send_as<T: Serialize>(&mut self, tag: Tag, dst: NodeId, said: &T, batch: TaskBatch) {
        if !batch.is_empty() {
            self.transfers += 1;
            if self.logs {
                self.sent.push(Transfer { step: self.step, src: self.node.me(), dst, tasks: batch.len(), work: batch.work() });
            }
        }
        match encode(&(self.step, said), &batch) {
            Ok(outgoing) => self.node.send_tasks(dst, tag, outgoing, batch.len()),
            Err(why) => self.node.fail(why),
        }
    }

    /// Takes about this amount of work off the work queue, foreign tasks first, and sends it; see [`WorkQueue::take`]. Returns how much it was.
    pub fn give<T: Serialize>(&mut self, dst: NodeId, said: &T, amount: u64) -> u64 {
        self.give_within(dst, said, amount, u64::MAX)
    }

    /// The same, but never more than `most`; see [`WorkQueue::take_within`].
    pub fn give_within<T: Serialize>(&mut self, dst: NodeId, said: &T, amount: u64, most: u64) -> u64 {
        let batch = self.queue.take_within(amount, most);
        let work = batch.work();
        self.send(dst, said, batch);
        work
    }

    /// Sends the tasks at some places among those of the work queue that may move, counted from 0 in their order: first place, number and receiver,
    /// in ascending order and not overlapping. What each node gets keeps its order.
    pub async fn deal_out(&mut self, parts: &[(u64, u64, NodeId)]) {
        for (dst, batch) in self.queue.take_places(parts) {
            self.node.ready_to_send().await;
            self.send(dst, &(), batch);
        }
    }

    /// Receives the tasks that these nodes, in ascending order, have dealt out to this one. Tasks from nodes before this one go in front of
    /// all others, so tasks in node order stay in it.
    ///
    /// # Errors
    /// If a rank is lost or a message is garbled.
    pub async fn take_in_order(&mut self, sources: &[NodeId]) -> Result<()> {
        let mut in_front = TaskBatch::default();
        for src in sources {
            let arrival = self.receive::<()>(*src).await?;
            if *src < self.node.me() {
                in_front.append(arrival.batch);
            } else {
                self.queue.put_behind(arrival.batch);
            }
        }
        self.queue.put_before(in_front);
        Ok(())
    }

    /// Receives a transfer from a node. The caller puts the tasks onto the work queue.
    ///
    /// # Errors
    /// If the node's rank is lost or the message is garbled.
    pub async fn receive<T: DeserializeOwned>(&mut self, src: NodeId) -> Result<Arrival<T>> {
        let message = self.node.receive_message(Some(src), TASKS).await?;
        let arrival = self.unpack(message)?;
        self.remember_arrival(&arrival);
        Ok(arrival)
    }

    /// Receives a transfer from any node.
    ///
    /// # Errors
    /// If a rank is lost or the message is garbled.
    pub async fn receive_any<T: DeserializeOwned>(&mut self) -> Result<Arrival<T>> {
        let arrival = self.unpack_any().await?;
        self.remember_arrival(&arrival);
        Ok(arrival)
    }

    async fn unpack_any<T: DeserializeOwned>(&mut self) -> Result<Arrival<T>> {
        let message = self.node.receive_message(None, TASKS).await?;
        self.unpack(message)
    }

    fn remember_arrival<T>(&mut self, arrival: &Arrival<T>) {
        if let (Some(passages), false) = (&mut self.passages, arrival.batch.is_empty()) {
            let rows = arrival.batch.segments().map(|segment| (segment.first(), segment.len())).collect();
            passages.push(TraceEvent::In { src: arrival.src, rows });
        }
    }

    /// Receives a transfer from a node, puts its tasks behind the work queue, and returns their work and the sender's data.
    ///
    /// # Errors
    /// If the node's rank is lost or the message is garbled.
    pub async fn take_in<T: DeserializeOwned>(&mut self, src: NodeId) -> Result<(u64, T)> {
        let arrival = self.receive::<T>(src).await?;
        let work = arrival.batch.work();
        self.queue.put_behind(arrival.batch);
        Ok((work, arrival.said))
    }

    /// Receives from any nodes until the amounts that they announce add up to this number of units of a row, and returns the arrivals in
    /// the order of their sources. A sender announces the number of units that its part of the row has in common with the receiver's; its
    /// tasks may have more or fewer.
    ///
    /// # Errors
    /// If a rank is lost, a message is garbled, or more units come.
    pub async fn receive_units(&mut self, units: u64) -> Result<Vec<Arrival<u64>>> {
        let mut arrivals = Vec::new();
        let mut missing = units;
        while missing > 0 {
            let arrival = self.unpack_any::<u64>().await?;
            missing = missing.checked_sub(arrival.said).ok_or_else(|| Error::Garbled {
                from: arrival.src,
                what: "'tasks'".into(),
                why: format!("it stands for {} units where {missing} were missing", arrival.said),
            })?;
            arrivals.push(arrival);
        }
        arrivals.sort_by_key(|arrival| arrival.src);
        // In an order that does not depend on the network.
        arrivals.iter().for_each(|arrival| self.remember_arrival(arrival));
        Ok(arrivals)
    }

    /// Gives tasks back to those that sent them, until this node holds no more than `cap` work units, which all that it had at first fits
    /// into; and takes in what others give back. All nodes do this together.
    ///
    /// Everybody goes back through what went in and out of it, the last first: where tasks went out, some of them come back; where tasks
    /// came in, they leave again if this node would hold too much with them and with all that may still come back. From then on what it holds
    /// and what may come back is no more than the cap, or all of these tasks have left; in the end only its own could be there.
    /// No cycle of waiting nodes can arise, since all follow the order in which the transfers happened, from its end.
    ///
    /// # Errors
    /// If a rank is lost or a message is garbled.
    pub async fn take_back(&mut self, cap: u64) -> Result<()> {
        let passages = self.passages.take().unwrap_or_default();
        let away = |passage: &TraceEvent| if let TraceEvent::Out { work, .. } = passage { *work } else { 0 };
        let mut away: u128 = passages.iter().map(away).map(u128::from).sum();
        for passage in passages.into_iter().rev() {
            match passage {
                TraceEvent::Out { dst, work } => {
                    let message = self.node.receive_message(Some(dst), BACK).await?;
                    let arrival = self.unpack::<()>(message)?;
                    away -= u128::from(work);
                    self.queue.put_behind(arrival.batch);
                }
                TraceEvent::In { src, rows } => {
                    let too_much = (u128::from(self.queue.work()) + away).saturating_sub(cap.into());
                    let batch = self.queue.take_of(&rows, u64::try_from(too_much).unwrap_or(u64::MAX));
                    self.node.ready_to_send().await;
                    self.send_as(BACK, src, &(), batch);
                }
            }
        }
        Ok(())
    }

    fn unpack<T: DeserializeOwned>(&mut self, message: Message) -> Result<Arrival<T>> {
        let Message { envelope, body } = message;
        let src = envelope.src;
        let garbled = |why: String| Error::Garbled { from: src, what: "'tasks'".into(), why };
        let ((step, said), batch) = decode::<(u32, T)>(&body.into()).map_err(garbled)?;
        if batch.len() != envelope.tasks {
            return Err(garbled(format!("it holds {} tasks, its envelope says {}", batch.len(), envelope.tasks)));
        }
        if !batch.is_empty() {
            self.step = self.step.max(step + 1);
        }
        Ok(Arrival { src, said, batch })
    }
}

/// Upper bound on the bytes of a transfer of one range of tasks, without its sender's message: header, step, number of rows, and one row.
pub const TRANSFER_BYTES: u64 = HEADER_BYTES + 3 + 1 + 10 + 10 + 1 + 1;

/// Encodes the balancer's own data, the number of rows, the table of rows (first id, number of tasks, weight and payload bytes of each),
/// and all payloads in order.
fn encode<T: Serialize>(said: &T, batch: &TaskBatch) -> Result<OutgoingBody> {
    // What is not alike at its sender may still be alike on the way: single tasks that continue each other are one row.
    let mut rows = 0u64;
    let mut table = Vec::with_capacity(64);
    for_each_row(batch, |row| {
        rows += 1;
        for number in row {
            wire::write_number(number, &mut table);
        }
    });
    let mut buffers = batch.segments().map(Segment::payload).filter(|payload| !payload.is_empty());
    let (only, more) = (buffers.next(), buffers.next().is_some());
    let copied: usize = if more { batch.segments().map(|segment| segment.payload().len()).sum() } else { 0 };
    let mut out = buffer(64usize.saturating_add(table.len()).saturating_add(copied))?;
    wire::write_compactly(said, &mut out);
    wire::write_number(rows, &mut out);
    out.extend_from_slice(&table);
    if !more {
        return Ok(OutgoingBody { front: Bytes::from(out).into(), rest: only.cloned().unwrap_or_default() });
    }
    for segment in batch.segments() {
        out.extend_from_slice(segment.payload());
    }
    Ok(Bytes::from(out).into())
}

/// First id, number of tasks, weight and size of each row of tasks that are alike.
fn for_each_row(batch: &TaskBatch, mut each: impl FnMut([u64; 4])) {
    let mut open: Option<[u64; 4]> = None;
    for segment in batch.segments() {
        let row = [segment.first(), segment.len(), segment.weight(), segment.size() as u64];
        match &mut open {
            Some(open) if open[0].wrapping_add(open[1]) == row[0] && open[2..] == row[2..] => open[1] = open[1].wrapping_add(row[1]),
            _ => open.replace(row).into_iter().for_each(&mut each),
        }
    }
    open.into_iter().for_each(&mut each);
}

fn decode<T: DeserializeOwned>(body: &Bytes) -> Result<(T, TaskBatch), String> {
    let short = || "it is too short".to_string();
    let (said, mut at) = wire::read_compactly::<T>(body).map_err(|why| why.to_string())?;
    let mut number = || wire::read_number(body, &mut at).ok_or_else(short);
    let rows = number()?;
    // A row takes at least four bytes.
    if rows > body.len() as u64 / 4 {
        return Err(short());
    }
    let mut table = Vec::with_capacity(rows as usize);
    for _ in 0..rows {
        table.push([number()?, number()?, number()?, number()?]);
    }
    let mut payloads = body.slice(at..);
    let mut batch = TaskBatch::with_capacity(table.len());
    for [first, count, weight, size] in table {
        let bytes = count.checked_mul(size).and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= payloads.len());
        let payload = match bytes.ok_or_else(short)? {
            0 => Bytes::new(),
            bytes => payloads.split_to(bytes),
        };
        batch.push(Segment::row(first, count, weight, payload).ok_or_else(short)?);
    }
    if payloads.is_empty() { Ok((said, batch)) } else { Err("it is too long".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Task;

    fn encoded<T: Serialize>(said: &T, batch: &TaskBatch) -> Bytes {
        encode(said, batch).and_then(OutgoingBody::into_body).unwrap().into()
    }

    fn batch() -> TaskBatch {
        let task = |id: u64, length: usize| Segment::from(Task { id, weight: id % 7, payload: Bytes::from(vec![id as u8; length]) });
        [task(1, 0), Segment::range(5, 1 << 40), task(2, 3000), task(u64::MAX, 1)].into_iter().collect()
    }

    #[test]
    fn a_transfer_returns_as_it_was() {
        let said = (7u32, vec![-1i64, 3]);
        let body = encoded(&said, &batch());
        assert_eq!(decode::<(u32, Vec<i64>)>(&body), Ok((said, batch())));
        assert_eq!(decode::<()>(&encoded(&(), &TaskBatch::default())), Ok(((), TaskBatch::default())));
    }

    #[test]
    fn single_tasks_that_are_alike_travel_as_a_row() {
        let payload = |id: u64| Bytes::from(vec![id as u8; 5]);
        let tasks = |ids: std::ops::Range<u64>| ids.map(|id| Segment::from(Task { id, weight: 2, payload: payload(id) }));
        let batch: TaskBatch = tasks(300..400).chain(tasks(7..9)).chain(tasks(400..401)).collect();
        let body = encoded(&(), &batch);
        // The number of rows, three rows of four numbers (ids of two bytes in the first and the last), and the payloads.
        assert_eq!(body.len(), 1 + 3 * 4 + 2 + 103 * 5);
        let arrived = decode::<()>(&body).unwrap().1;
        assert_eq!(arrived.segments().map(Segment::len).collect::<Vec<_>>(), [100, 2, 1]);
        assert!(arrived.segments().flat_map(Segment::tasks).eq(batch.segments().flat_map(Segment::tasks)));
    }

    #[test]
    fn the_payloads_of_a_single_row_are_not_copied() {
        let payload = Bytes::from(vec![7u8; 400]);
        let row = Segment::row(5, 100, 1, payload.clone()).unwrap();
        let outgoing = encode(&(), &[Segment::range(1, 3), row].into_iter().collect()).unwrap();
        assert_eq!(outgoing.rest.as_ptr(), payload.as_ptr());
        assert_eq!(decode::<()>(&outgoing.into_body().unwrap().into()).unwrap().1.len(), 103);
    }

    #[test]
    fn a_table_that_claims_too_much_is_an_error() {
        let claims = |numbers: &[u64]| {
            let mut body = Vec::new();
            numbers.iter().for_each(|&number| wire::write_number(number, &mut body));
            decode::<()>(&Bytes::from(body)).map(|((), batch)| batch.len())
        };
        assert_eq!(claims(&[1, 0, u64::MAX, 1, 0]), Ok(u64::MAX));
        assert_eq!(claims(&[1, 0, 0, 1, 0]), Ok(0));
        assert!(claims(&[u64::MAX]).is_err());
        assert!(claims(&[1, 0, u64::MAX, 1, 2]).is_err());
        assert!(claims(&[1, 0, 1 << 32, 1, 1 << 32]).is_err());
        assert!(claims(&[2, 0, 1, 1, 0]).is_err());
    }

    #[test]
    fn a_cut_or_lengthened_transfer_is_an_error() {
        let body = encoded(&(), &batch());
        for length in 0..body.len() {
            assert!(decode::<()>(&body.slice(..length)).is_err(), "{length} bytes");
        }
        let longer: Bytes = [&body[..], &[0]].concat().into();
        assert!(decode::<()>(&longer).is_err());
    }
}
