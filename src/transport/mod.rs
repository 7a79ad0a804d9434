//! The contract between a program that runs on a node and the world that carries its messages.
//!
//! A [`Transport`] is one node's port into its world. There are two worlds: [`mpi`] (real ranks) and [`sim`] (virtual time, one
//! process). Programs never see either: they are written against [`Node`](crate::node::Node), which stands on this trait.
//!
//! # What a carrier promises
//!
//! 1. **Eager sends.** [`send`](Transport::send) returns without waiting for the receiver, however large the message.
//! 2. **Order per pair.** Two messages from one node to another arrive in the order in which they were sent, whatever their sizes.
//!    Between different pairs there is no order.
//! 3. **Exactly once.** A message arrives once, unless the receiver's rank is lost.
//! 4. **Nothing from the future.** A message can be taken only after it has arrived.
//! 5. **Scopes are separate.** A receive for one [`Scope`] never gets messages of another; those wait in the inbox.
//!    When a run has ended, its messages are gone: no later run sees them.
//! 6. **Loss is an event.** A named receive from a rank that died, with nothing left of it in the inbox, yields
//!    [`Event::RankLost`]. Sends to it vanish.
//! 7. **Watched.** A carrier notices that no node makes [progress](Transport::progressed) and ends the run with [`Error::Stuck`], which says which
//!    node waits for which.

mod body;
mod inbox;
pub mod interrupt;
#[doc(hidden)]
pub mod launcher;
#[cfg(feature = "_ranks")]
pub mod mpi;
pub(crate) mod native;
pub(crate) mod record;
pub(crate) mod shelf;
pub mod sim;
mod tag_names;
pub(crate) mod tape;
mod timers;
/// Public for the fuzzer of this workspace only.
#[doc(hidden)]
pub mod wire;
mod work;
pub mod world;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::task::Poll;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::topology::{NodeId, Overlay, RankId};
pub(crate) use body::buffer;
pub(crate) use body::row;
pub use body::{Body, OutgoingBody};
use native::{Collected, Collective, CollectiveId};
use shelf::Shelf;
pub(crate) use tag_names::Numbered;
pub use tag_names::name_in_logs;
pub(crate) use work::Job;
pub use work::{Finished, Needed, Output, Sliced, Step, Worker};

/// One node's program, ready to be polled.
pub(crate) type Program<T> = std::pin::Pin<Box<dyn Future<Output = crate::error::Result<T>>>>;

/// Time: nanoseconds since the world began on real ranks, virtual nanoseconds in the simulator.
pub type Ticks = u64;

/// Reports that a program used a node's port after the node's run, because it kept a clone of its node for too long.
#[cold]
fn used_after_its_run(node: NodeId, run: u32) {
    // A thread that unwinds drops its values, and must not panic again.
    if !std::thread::panicking() {
        panic!("node {node} is used after run {run} has ended; a `Node` belongs to the run that it was made for");
    }
}

/// One node's port, as programs hold it.
pub(crate) type Port = Rc<dyn Transport>;

/// Scope of a message: a run of the world, and an epoch within it.
///
/// A balancer that runs inside a scheduler has its own epoch; so has the closing check of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Number of the run, from 1.
    pub run: u32,
    /// The epoch; see [`epochs`](crate::node::epochs).
    pub epoch: u32,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {}, epoch {}", self.run, self.epoch)
    }
}

/// Kind of a message. The name is for people: it appears in the report of what each node waits for.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    id: u16,
    name: &'static str,
}

impl Tag {
    const BACKGROUND: u16 = 1 << 15;

    /// A tag whose messages count as progress.
    ///
    /// # Panics
    /// If the number is not below 2^15.
    pub const fn new(id: u16, name: &'static str) -> Tag {
        assert!(id & Tag::BACKGROUND == 0);
        Tag { id, name }
    }

    /// A tag for periodic announcements, requests for work and the like: a job in which only these are exchanged makes no progress.
    ///
    /// # Panics
    /// If the number is not below 2^15.
    pub const fn background(id: u16, name: &'static str) -> Tag {
        assert!(id & Tag::BACKGROUND == 0);
        Tag { id: id | Tag::BACKGROUND, name }
    }

    /// The tag's number on the wire: [`number`](Tag::number), and whether it is of the background.
    pub const fn id(self) -> u16 {
        self.id
    }

    /// The number that the tag was made with.
    pub const fn number(self) -> u16 {
        self.id & !Tag::BACKGROUND
    }

    /// The name that people read.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl PartialEq for Tag {
    fn eq(&self, other: &Tag) -> bool {
        self.id == other.id
    }
}

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The node that sends.
    pub src: NodeId,
    /// The node that receives.
    pub dst: NodeId,
    /// The run and epoch that the message belongs to.
    pub scope: Scope,
    /// The [`Tag`]'s number.
    pub tag: u16,
    /// Length of the longest chain of dependent messages that ends with this one, as far as its sender knew (see [`record`]).
    pub chain: u32,
    /// Number of tasks in the message.
    pub tasks: u64,
}

impl Envelope {
    /// Returns true if the message's arrival counts as progress.
    pub fn is_progress(&self) -> bool {
        self.tag & Tag::BACKGROUND == 0
    }
}

/// A message that has arrived. The body is shared, never copied: slices of it keep it alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its sender, receiver and tag.
    pub envelope: Envelope,
    /// Its content.
    pub body: Body,
}

/// A timer, as [`Transport::set_timer`] named it. Numbers are unique within a node's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub u64);

/// A piece of work, as [`Transport::start`] named it. Numbers are unique within a node's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// A signal that the launcher passed on to the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
}

/// An event of a node.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message has arrived.
    Message(Message),
    /// A timer of this scope has run out.
    Timer {
        /// The scope in which the timer was set.
        scope: Scope,
        /// The timer.
        timer: TimerId,
    },
    /// Work that was started in this scope has ended.
    Finished {
        /// The scope in which the work was started.
        scope: Scope,
        /// The finished work and its result.
        finished: Finished,
    },
    /// The process received a signal.
    Signal(Signal),
    /// A rank died.
    RankLost(RankId),
}

/// The event that a program waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interest {
    pub scope: Scope,
    pub what: Wanted,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// A message with this tag, from one node or from any. A loss of the named rank, or of any rank not yet reported, ends the wait too.
    Message { from: Option<NodeId>, tag: Tag },
    /// Whatever happens next in the scope.
    Anything,
}

impl Interest {
    /// Returns true if the awaited message may come from any node.
    #[cfg(feature = "_ranks")]
    pub fn is_open(&self) -> bool {
        !matches!(self.what, Wanted::Message { from: Some(_), .. })
    }
}

impl fmt::Display for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Wanted::Message { from: Some(node), tag } => write!(f, "a message '{}' from node {node} ({})", tag.name(), self.scope),
            Wanted::Message { from: None, tag } => write!(f, "a message '{}' from any node ({})", tag.name(), self.scope),
            Wanted::Anything => write!(f, "any event ({})", self.scope),
        }
    }
}

/// One node's port into its world. Single-threaded; all methods return at once. Using a port after its run has ended panics.
///
/// `poll_*` methods take no waker: a world polls a program again whenever something has happened to its node.
pub(crate) trait Transport {
    /// The node whose port this is.
    fn node(&self) -> NodeId;

    /// The topology, and which rank and host each of its nodes sits on.
    fn overlay(&self) -> &Overlay;

    /// The number of the run that the program belongs to.
    fn run(&self) -> u32;

    /// The seed of the world: what repeats, repeats by it.
    fn seed(&self) -> u64;

    /// The node's own clock. In the simulator it includes what the node has been charged.
    fn now(&self) -> Ticks;

    /// Accounts for computing that the program did itself: passes virtual time, divided by the rank's speed, in the simulator; nothing on real ranks.
    fn charge(&self, ticks: Ticks);

    /// Sends without waiting (promises 1 to 3). `envelope.src` is this node.
    fn send(&self, envelope: Envelope, outgoing: OutgoingBody);

    /// The run cannot go on, because of something that the node itself could not do: it ends with this error.
    fn fail(&self, why: Error);

    /// Ready when the outbox is below its limit. Meanwhile messages go on arriving.
    fn poll_room(&self) -> Poll<()>;

    /// Takes the first event that the interest covers, in the order of arrival.
    fn poll_event(&self, interest: &Interest) -> Poll<Event>;

    /// Gives the world a turn: everything that has arrived by now can be taken afterwards. `asked` is `None` at the first call and
    /// belongs to the transport until the turn is over. Costs at least one tick in the simulator.
    fn poll_turn(&self, asked: &mut Option<u64>) -> Poll<()>;

    /// Asks for an [`Event::Timer`] at the given time (at once if it is past).
    fn set_timer(&self, scope: Scope, at: Ticks) -> TimerId;

    /// Forgets a timer. Its event does not come any more, even if it has run out already and was not taken.
    fn cancel_timer(&self, timer: TimerId);

    /// Starts work that runs concurrently with the program; an [`Event::Finished`] reports its end. Work beyond what the rank can do at once waits,
    /// first come, first served.
    fn start(&self, scope: Scope, job: Job) -> WorkId;

    /// A worker for work that the program does itself, on its own thread. The default is that of real ranks.
    fn worker(&self) -> Box<dyn Worker> {
        Box::new(work::RealWorker::default())
    }

    /// Processor time of the program's thread so far; `None` in the simulator, where threads do not compete for processors. A call takes some tenths
    /// of a microsecond.
    fn processor_time(&self) -> Option<Ticks> {
        None
    }

    /// Store of values shared by the nodes of one process; `None` where a process holds few nodes.
    fn shelf(&self) -> Option<&RefCell<Shelf>> {
        None
    }

    /// Returns true if the world's own collective operations are to be used on native overlays. The same on all nodes at any point of a
    /// program.
    fn has_collectives(&self) -> bool {
        false
    }

    /// Begins an operation of this rank and others, in an order that is theirs, too; `None` where the world has none of its own. All of these ranks
    /// must begin it, and in the same order as others of the same ranks.
    fn begin_collective(&self, members: Vec<RankId>, operation: Collective) -> Option<CollectiveId> {
        let _ = (members, operation);
        None
    }

    /// Result of an operation that this node began; returned once.
    fn poll_collective(&self, id: CollectiveId) -> Poll<Collected> {
        let _ = id;
        Poll::Pending
    }

    /// Counts a message that was not sent, since the world did something else instead: its destination, the bytes of its body, and the longest
    /// chain that would end with it.
    fn account(&self, to: NodeId, bytes: u64, chain: u32) {
        let _ = (to, bytes, chain);
    }

    /// The longest chain of messages that the node knows of, while chains are counted.
    fn chain(&self) -> u32 {
        0
    }

    /// The node has heard of a chain in another way than by a message.
    fn hear(&self, chain: u32) {
        let _ = chain;
    }

    /// Tells the watchdog that a task began, moved or ended without a message or work that shows it.
    fn progressed(&self);

    /// Tells the watchdog that something is known to happen at this time, such as a task's arrival: until then waiting is no standstill.
    fn expects(&self, at: Ticks);
}
