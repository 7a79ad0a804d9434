//! A node, as programs see it: typed messages, events, time and work, the same on real ranks and in simulation.
//!
//! A program is a straight-line `async fn` that takes a [`Node`]. [`run`] starts one on every node of a world.
//!
//! ```
//! use equipoise::{node, topology::{Overlay, Topology}, transport::{Tag, sim, world::World}};
//!
//! const GREETING: Tag = Tag::new(1, "greeting");
//! let mut world = World::simulated(4, sim::Model::default());
//! let overlay = Overlay::one_host(Topology::parse("ring", 4)?, 4)?;
//! let heard = node::run(&mut world, &overlay, |node| async move {
//!     let (left, right) = ((node.me() + 3) % 4, (node.me() + 1) % 4);
//!     node.send(right, GREETING, &node.me());
//!     node.receive::<u32>(left, GREETING).await
//! })?;
//! assert_eq!(heard, [(0, 3), (1, 0), (2, 1), (3, 2)]);
//! # Ok::<(), equipoise::Error>(())
//! ```

pub mod collective;
mod concurrent;
pub mod migrate;
pub mod tags;
mod tree;

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use log::{Level, log, log_enabled, trace};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::topology::{HostId, NodeId, Overlay, RankId, Topology};
pub use crate::transport::record::{Counts, Recorder};
use crate::transport::tape::MessageTrace;
use crate::transport::world::World;
use crate::transport::{Body, Envelope, Interest, Job, Numbered, OutgoingBody, Port, Scope, Wanted, name_in_logs, wire};
pub use crate::transport::{Event, Finished, Message, Needed, Output, Signal, Sliced, Step, Tag, Ticks, TimerId, WorkId, Worker};
pub use collective::{Gathered, Group};
pub use concurrent::Either;
pub use tags::epochs;

/// Bytes of a message's header, which count as much as its body's.
pub const HEADER_BYTES: u64 = wire::HEADER as u64;

/// Runs a program on every node of the overlay; see [`World::run`] for results and errors.
///
/// # Errors
/// The first error of a node's program; [`Error::Stuck`] when no node can go on; [`Error::Interrupted`] when a request to end is overdue.
/// On real ranks an error of a program ends the job. Wrong usage if the overlay is for another number of ranks.
pub fn run<T, F>(world: &mut World, overlay: &Overlay, mut program: impl FnMut(Node) -> F) -> Result<Vec<(NodeId, T)>>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    if log_enabled!(Level::Trace) {
        name_in_logs(&tags::all());
    }
    world.run(overlay, |port| Box::pin(program(Node::new(port))))
}

/// A node's view of its world, within one scope. Cheap to clone; all clones are the same node.
///
/// # How its futures are polled
///
/// There is no async runtime, and there are no wakers: a world polls a node's whole program again whenever something has happened to the
/// node, and the waker in the context that it passes does nothing. So a program may await the futures of its own node, and combinations of them that
/// poll all of their parts each time: [`join`](Node::join), [`select`](Node::select), or your own `poll_fn`. A future that relies on being
/// woken (a channel's, a timer's of an async runtime, `FuturesUnordered`) is polled only when something else happens to the node, and may
/// stand still until the watchdog reports it.
///
/// # Lifetime
///
/// A node belongs to one run. Using a clone of it to send, receive, wait, start work or set timers after [`run`] has returned is a bug, and
/// panics.
#[derive(Clone)]
pub struct Node {
    port: Port,
    scope: Scope,
}

impl Node {
    /// A node on its port, in epoch 0 of the port's run.
    pub(crate) fn new(port: Port) -> Node {
        let scope = Scope { run: port.run(), epoch: epochs::MAIN };
        Node { port, scope }
    }

    /// The same node in another epoch. Messages, timers and work of different epochs are separate.
    pub fn epoch(&self, epoch: u32) -> Node {
        Node { port: self.port.clone(), scope: Scope { epoch, ..self.scope } }
    }

    /// The same node, with everything that it sends from now on counted.
    pub fn recorded(&self) -> (Node, Rc<Recorder>) {
        let recorder = Recorder::around(self.port.clone());
        (Node { port: recorder.clone(), scope: self.scope }, recorder)
    }

    /// The same as [`recorded`](Node::recorded), with every message noted on a tape.
    pub(crate) fn taped(&self, tape: Rc<RefCell<MessageTrace>>) -> (Node, Rc<Recorder>) {
        let recorder = Recorder::taping(self.port.clone(), tape);
        (Node { port: recorder.clone(), scope: self.scope }, recorder)
    }

    /// This node's number.
    pub fn me(&self) -> NodeId {
        self.port.node()
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.overlay().placement.nodes()
    }

    /// The topology, and where its nodes sit.
    pub fn overlay(&self) -> &Overlay {
        self.port.overlay()
    }

    /// The topology that the nodes form.
    pub fn topology(&self) -> &Topology {
        &self.overlay().topology
    }

    /// The rank that hosts a node.
    pub fn rank_of(&self, node: NodeId) -> RankId {
        self.overlay().placement.rank_of(node)
    }

    /// The host that a node's rank runs on.
    pub fn host_of(&self, node: NodeId) -> HostId {
        self.overlay().placement.host_of(self.rank_of(node))
    }

    /// All nodes as a group.
    pub fn everyone(&self) -> Group {
        Group::everyone(self.nodes(), self.me())
    }

    /// The node's clock: nanoseconds, of real or of virtual time.
    pub fn now(&self) -> Ticks {
        self.port.now()
    }

    /// Processor time of the program's thread so far; `None` in simulation, where threads do not compete for processors. A call takes some tenths of
    /// a microsecond.
    pub fn processor_time(&self) -> Option<Ticks> {
        self.port.processor_time()
    }

    /// Accounts for own computing in virtual time (nothing on real ranks).
    pub fn charge(&self, ticks: Ticks) {
        self.port.charge(ticks);
    }

    /// The node's own stream of random numbers, from the start: the same for the same seed. Keep it; each call begins anew.
    pub fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.port.seed());
        rng.set_stream(u64::from(self.me()));
        rng
    }

    /// Sends a control message. Returns at once.
    ///
    /// If there is no node `to`, or the value's `Serialize` refuses, nothing is sent and the run ends with an error.
    pub fn send<T: Serialize>(&self, to: NodeId, tag: Tag, value: &T) {
        match written(value, tag) {
            Ok(body) => self.send_tasks(to, tag, body, 0),
            Err(why) => self.fail(why),
        }
    }

    /// Sends bytes. Returns at once. If there is no node `to`, the run ends with an error.
    pub fn send_bytes(&self, to: NodeId, tag: Tag, body: Bytes) {
        self.send_tasks(to, tag, body, 0);
    }

    /// Sends bytes that hold this number of tasks. Returns at once. If there is no node `to`, the run ends with an error.
    pub fn send_tasks(&self, to: NodeId, tag: Tag, body: impl Into<OutgoingBody>, tasks: u64) {
        let nodes = self.overlay().placement.nodes();
        if to >= nodes {
            let me = self.me();
            self.fail(Error::Failed(format!("node {me} sends '{}' to node {to}, but the nodes are 0 to {}", tag.name(), nodes - 1)));
            return;
        }
        let (envelope, outgoing) = (Envelope { src: self.me(), dst: to, scope: self.scope, tag: tag.id(), chain: 0, tasks }, body.into());
        // Moves of tasks and what policies say are what a scheduler decided; all else is every message.
        let level = if tasks > 0 || tag == tags::schedule::POLICY { Level::Debug } else { Level::Trace };
        if log_enabled!(level) {
            name_in_logs(&[tag]);
            log!(level, "{self} sends '{}' to node {to} ({}): {} bytes, {tasks} tasks", tag.name(), self.scope, outgoing.len());
        }
        self.port.send(envelope, outgoing);
    }

    /// The run cannot go on, because of something that this node could not do: it ends with this error.
    pub(super) fn fail(&self, why: Error) {
        self.port.fail(why);
    }

    /// Waits until the outbox has room; messages go on arriving meanwhile. A program that sends much calls this before each large send.
    pub async fn ready_to_send(&self) {
        poll_fn(|_| self.port.poll_room()).await;
    }

    /// Receives the next message with this tag from one node.
    ///
    /// # Errors
    /// If the node's rank is lost, or the message is not a `T`.
    pub fn receive<T: DeserializeOwned>(&self, from: NodeId, tag: Tag) -> impl Future<Output = Result<T>> {
        poll_fn(move |_| self.poll_message(Some(from), tag).map(|message| open(&message?, tag)))
    }

    /// Receives the next message with this tag from any node, and returns its source and content.
    ///
    /// # Errors
    /// If a rank was lost and this has not been reported yet, or if the message is not a `T`.
    pub fn receive_any<T: DeserializeOwned>(&self, tag: Tag) -> impl Future<Output = Result<(NodeId, T)>> {
        let opened = move |message: Message| Ok((message.envelope.src, open(&message, tag)?));
        poll_fn(move |_| self.poll_message(None, tag).map(|message| message.and_then(opened)))
    }

    /// Receives the next message with this tag without decoding it; see [`receive`](Node::receive) and [`receive_any`](Node::receive_any).
    pub fn receive_message(&self, from: Option<NodeId>, tag: Tag) -> impl Future<Output = Result<Message>> {
        poll_fn(move |_| self.poll_message(from, tag))
    }

    /// One poll of a receive. Receives hold little more than their source and tag, so that a million programs can wait at once.
    fn poll_message(&self, from: Option<NodeId>, tag: Tag) -> Poll<Result<Message>> {
        self.poll_event(Wanted::Message { from, tag }).map(|event| match event {
            Event::Message(message) => Ok(message),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
            other => Err(Error::Failed(format!("the carrier answered a receive with {other:?}"))),
        })
    }

    /// Waits for whatever happens next in this scope: a message, the end of work, a timer, a signal, the loss of a rank.
    pub async fn next_event(&self) -> Event {
        poll_fn(|_| self.poll_event(Wanted::Anything)).await
    }

    /// Returns the next event that has happened already, if any, without waiting. Costs at least one tick of virtual time, so a loop that
    /// only polls ends.
    pub async fn try_event(&self) -> Option<Event> {
        let mut asked = None;
        poll_fn(|_| self.port.poll_turn(&mut asked)).await;
        self.event_at_hand()
    }

    /// Returns the next event of the last poll of the network that has not been returned yet, without another poll and without taking time.
    /// Drains the events that [`next_event`](Node::next_event) or [`try_event`](Node::try_event) began to return.
    pub fn event_at_hand(&self) -> Option<Event> {
        match self.poll_event(Wanted::Anything) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn poll_event(&self, what: Wanted) -> Poll<Event> {
        let event = self.port.poll_event(&Interest { scope: self.scope, what });
        if let Poll::Ready(event) = &event
            && log_enabled!(Level::Trace)
        {
            self.log_taken(what, event);
        }
        event
    }

    #[cold]
    fn log_taken(&self, what: Wanted, event: &Event) {
        if let Wanted::Message { tag, .. } = what {
            name_in_logs(&[tag]);
        }
        match event {
            Event::Message(Message { envelope, body }) => {
                trace!("{self} takes {} from node {} ({}): {} bytes", Numbered(envelope.tag), envelope.src, envelope.scope, body.len());
            }
            other => trace!("{self} takes {other:?}"),
        }
    }

    /// Asks for an [`Event::Timer`] at this time of the node's clock.
    pub fn set_timer(&self, at: Ticks) -> TimerId {
        self.port.set_timer(self.scope, at)
    }

    /// The same for something that is known to happen then by itself, such as a task's arrival: until then waiting is no standstill to the
    /// watchdog, however long.
    pub fn expect_at(&self, at: Ticks) -> TimerId {
        self.port.expects(at);
        self.set_timer(at)
    }

    /// Forgets a timer: its event does not come any more.
    pub fn cancel_timer(&self, timer: TimerId) {
        self.port.cancel_timer(timer);
    }

    /// Starts opaque work on a worker of the rank. The answer comes as [`Event::Finished`].
    pub fn start<T: Send + 'static>(&self, work: impl FnOnce(&mut dyn Worker) -> T + Send + 'static) -> WorkId {
        self.port.start(self.scope, Job::Opaque(Box::new(move |worker| Box::new(work(worker)))))
    }

    /// Starts sliced work between polls of the network. The answer comes as [`Event::Finished`].
    pub fn start_sliced(&self, work: impl Sliced + 'static) -> WorkId {
        self.port.start(self.scope, Job::Sliced(Box::new(work)))
    }

    /// A worker for work that the program does itself, at once. In simulation the time of its work and sleep passes on the node's own clock.
    pub fn worker(&self) -> Box<dyn Worker> {
        self.port.worker()
    }

    /// Tells the watchdog of progress that neither a message nor the end of work shows.
    pub fn progressed(&self) {
        self.port.progressed();
    }
}

/// Name of a node in log records: its rank, its number and its clock.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} node {} at {} ns", self.rank_of(self.me()), self.me(), self.now())
    }
}

/// The largest control message that can be sent, in bytes.
pub const LARGEST_MESSAGE: usize = wire::CONTROL_LIMIT;

/// The body of a message with this tag.
///
/// # Errors
/// If the value's `Serialize` refuses.
pub(crate) fn written<T: Serialize>(value: &T, tag: Tag) -> Result<Body> {
    wire::try_write_body(value).map_err(|why| Error::Failed(format!("a message '{}' cannot be written: {why}", tag.name())))
}

/// Writes a control message, to be sent later or measured first; [`open`] reads it.
///
/// # Panics
/// If the value's `Serialize` refuses.
pub fn pack<T: Serialize>(value: &T) -> Bytes {
    wire::write(value)
}

/// Writes a control message of one value followed by a row of others, which [`open_row`] reads. The length of the row is not written.
///
/// # Panics
/// If a value's `Serialize` refuses.
pub fn pack_row<T: Serialize>(head: &impl Serialize, row: &[T]) -> Bytes {
    let mut out = Vec::new();
    wire::write_into(head, &mut out);
    row.iter().for_each(|value| wire::write_into(value, &mut out));
    Bytes::from(out)
}

/// Reads a value that [`pack`] wrote, and that came from a node in another way than as a message of its own.
///
/// # Errors
/// If it is not a `T`.
pub fn unpack<T: DeserializeOwned>(bytes: &Bytes, from: NodeId, tag: Tag) -> Result<T> {
    wire::read(bytes).map_err(|why| garbled(from, tag, &why))
}

/// Reads a control message.
///
/// # Errors
/// If the message is not a `T`.
pub fn open<T: DeserializeOwned>(message: &Message, tag: Tag) -> Result<T> {
    wire::read(&message.body).map_err(|why| garbled(message.envelope.src, tag, &why))
}

/// Reads a message that [`pack_row`] wrote.
///
/// # Errors
/// If the message is not an `H` and a row of `T`.
pub fn open_row<H: DeserializeOwned, T: DeserializeOwned>(message: &Message, tag: Tag) -> Result<(H, Vec<T>)> {
    wire::read_row(&message.body).map_err(|why| garbled(message.envelope.src, tag, &why))
}

fn garbled(from: NodeId, tag: Tag, why: &wire::Unreadable) -> Error {
    Error::Garbled { from, what: format!("'{}'", tag.name()), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::transport::sim;

    const DATA: Tag = Tag::new(1, "data");

    /// A value without a length beforehand, which the encoding needs.
    #[derive(Serialize)]
    struct Flat {
        name: u32,
        #[serde(flatten)]
        others: BTreeMap<u32, u32>,
    }

    fn flat() -> Flat {
        Flat { name: 1, others: BTreeMap::from([(2, 3)]) }
    }

    fn failure<F>(program: impl FnMut(Node) -> F) -> String
    where
        F: Future<Output = Result<()>> + 'static,
    {
        let overlay = Overlay::one_host(Topology::parse("line", 2).unwrap(), 2).unwrap();
        run(&mut World::simulated(2, sim::Model::default()), &overlay, program).unwrap_err().to_string()
    }

    #[test]
    fn a_message_that_cannot_be_sent_ends_the_run_even_if_all_programs_have_ended() {
        let absent = failure(|node| async move {
            node.send(2, DATA, &1u32);
            Ok(())
        });
        assert_eq!(absent, "node 0 sends 'data' to node 2, but the nodes are 0 to 1");
        let unwritable = failure(|node| async move {
            node.send(1 - node.me(), DATA, &flat());
            Ok(())
        });
        assert!(unwritable.starts_with("a message 'data' cannot be written: "), "{unwritable}");
    }

    #[test]
    fn a_message_that_cannot_be_sent_ends_the_run_before_its_receiver_waits_for_ever() {
        let unwritable = failure(|node| async move {
            match node.me() {
                0 => node.send(1, DATA, &flat()),
                _ => drop(node.receive::<u32>(0, DATA).await?),
            }
            Ok(())
        });
        assert!(unwritable.starts_with("a message 'data' cannot be written: "), "{unwritable}");
    }
}
