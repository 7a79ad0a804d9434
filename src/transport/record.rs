//! A decorator that counts the messages of a port.
//!
//! It counts messages between ranks; messages between two nodes of one rank stay in memory and are not counted (except for task-hops, which
//! are defined on the topology). The *longest chain of dependent messages*, which we call steps, is measured: each message carries one more
//! than the longest chain that its sender knew when it sent it, and the receiver remembers it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use serde::{Deserialize, Serialize};

use super::native::{Collected, Collective, CollectiveId};
use super::shelf::Shelf;
use super::tape::MessageTrace;
use super::{Envelope, Event, Interest, Job, OutgoingBody, Port, Scope, Ticks, TimerId, Transport, WorkId, Worker, wire};
use crate::error::Error;
use crate::topology::{NodeId, Overlay, RankId};

/// Messages that one node sent, and the longest chain of messages that it took part in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Messages to nodes of other ranks.
    pub messages: u64,
    /// Bytes of these, headers included.
    pub bytes: u64,
    /// Bytes of these that went to another host.
    pub host_bytes: u64,
    /// Tasks sent, each as often as it was sent, whatever the ranks.
    pub tasks: u64,
    /// Sum over all tasks sent of the topology's distance from source to destination.
    pub task_hops: u128,
    /// Longest chain of dependent messages that ended at this node or left it.
    pub chain: u32,
}

impl Counts {
    /// The counts of two nodes together: sums, and the longer chain.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            host_bytes: self.host_bytes + other.host_bytes,
            tasks: self.tasks.saturating_add(other.tasks),
            task_hops: self.task_hops.saturating_add(other.task_hops),
            chain: self.chain.max(other.chain),
        }
    }
}

/// A port that counts.
pub struct Recorder {
    inner: Port,
    counts: Cell<Counts>,
    /// Longest chain that this node has heard of.
    heard: Cell<u32>,
    tape: Option<Rc<RefCell<MessageTrace>>>,
}

impl Recorder {
    /// A port that counts what goes through it to `inner`.
    pub(crate) fn around(inner: Port) -> Rc<Recorder> {
        Rc::new(Recorder { inner, counts: Cell::default(), heard: Cell::new(0), tape: None })
    }

    /// A port that counts, and notes on a tape which messages go through it.
    pub(crate) fn taping(inner: Port, tape: Rc<RefCell<MessageTrace>>) -> Rc<Recorder> {
        Rc::new(Recorder { inner, counts: Cell::default(), heard: Cell::new(0), tape: Some(tape) })
    }

    /// Counts so far.
    pub fn get(&self) -> Counts {
        let counts = self.counts.get();
        Counts { chain: counts.chain.max(self.heard.get()), ..counts }
    }

    /// Counts a message to another rank.
    fn count(&self, to: NodeId, body_bytes: u64, chain: u32) {
        let placement = &self.inner.overlay().placement;
        let (from, to) = (placement.rank_of(self.inner.node()), placement.rank_of(to));
        let bytes = wire::HEADER as u64 + body_bytes;
        let mut counts = self.counts.get();
        counts.messages += 1;
        counts.bytes += bytes;
        if placement.host_of(from) != placement.host_of(to) {
            counts.host_bytes += bytes;
        }
        counts.chain = counts.chain.max(chain);
        self.counts.set(counts);
    }

    fn note(&self, sent: bool, envelope: &Envelope, body_bytes: usize) {
        if let Some(tape) = &self.tape {
            tape.borrow_mut().note(self.inner.now(), sent, envelope, (wire::HEADER + body_bytes) as u64);
        }
    }
}

impl Transport for Recorder {
    fn fail(&self, why: Error) {
        self.inner.fail(why);
    }

    fn send(&self, mut envelope: Envelope, outgoing: OutgoingBody) {
        let overlay = self.inner.overlay();
        let placement = &overlay.placement;
        let (from, to) = (placement.rank_of(envelope.src), placement.rank_of(envelope.dst));
        envelope.chain = self.heard.get();
        if from != to {
            envelope.chain += 1;
            self.count(envelope.dst, outgoing.len() as u64, envelope.chain);
        }
        let mut counts = self.counts.get();
        if envelope.tasks > 0 {
            let hops = overlay.topology.distance(envelope.src, envelope.dst);
            counts.tasks = counts.tasks.saturating_add(envelope.tasks);
            counts.task_hops = counts.task_hops.saturating_add(u128::from(envelope.tasks) * u128::from(hops));
        }
        self.counts.set(counts);
        self.note(true, &envelope, outgoing.len());
        self.inner.send(envelope, outgoing);
    }

    fn poll_event(&self, interest: &Interest) -> Poll<Event> {
        let event = self.inner.poll_event(interest);
        if let Poll::Ready(Event::Message(message)) = &event {
            self.note(false, &message.envelope, message.body.len());
            self.heard.set(self.heard.get().max(message.envelope.chain));
        }
        event
    }

    fn node(&self) -> NodeId {
        self.inner.node()
    }

    fn overlay(&self) -> &Overlay {
        self.inner.overlay()
    }

    fn run(&self) -> u32 {
        self.inner.run()
    }

    fn seed(&self) -> u64 {
        self.inner.seed()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn processor_time(&self) -> Option<Ticks> {
        self.inner.processor_time()
    }

    fn charge(&self, ticks: Ticks) {
        self.inner.charge(ticks);
    }

    fn poll_room(&self) -> Poll<()> {
        self.inner.poll_room()
    }

    fn poll_turn(&self, asked: &mut Option<u64>) -> Poll<()> {
        self.inner.poll_turn(asked)
    }

    fn set_timer(&self, scope: Scope, at: Ticks) -> TimerId {
        self.inner.set_timer(scope, at)
    }

    fn cancel_timer(&self, timer: TimerId) {
        self.inner.cancel_timer(timer);
    }

    fn start(&self, scope: Scope, job: Job) -> WorkId {
        self.inner.start(scope, job)
    }

    fn worker(&self) -> Box<dyn Worker> {
        self.inner.worker()
    }

    fn shelf(&self) -> Option<&RefCell<Shelf>> {
        self.inner.shelf()
    }

    /// A tape shows every message, so operations are made of messages where there is one.
    fn has_collectives(&self) -> bool {
        self.tape.is_none() && self.inner.has_collectives()
    }

    fn begin_collective(&self, members: Vec<RankId>, operation: Collective) -> Option<CollectiveId> {
        self.inner.begin_collective(members, operation)
    }

    fn poll_collective(&self, id: CollectiveId) -> Poll<Collected> {
        self.inner.poll_collective(id)
    }

    fn account(&self, to: NodeId, bytes: u64, chain: u32) {
        self.count(to, bytes, chain);
        self.inner.account(to, bytes, chain);
    }

    fn chain(&self) -> u32 {
        self.heard.get()
    }

    fn hear(&self, chain: u32) {
        self.heard.set(self.heard.get().max(chain));
        self.inner.hear(chain);
    }

    fn progressed(&self) {
        self.inner.progressed();
    }

    fn expects(&self, at: Ticks) {
        self.inner.expects(at);
    }
}
