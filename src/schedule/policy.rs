//! The interface for schedulers: decisions as plain values, without network or waiting.
//!
//! The runtime calls the policy of its node when something happens ([`Policy`]), passes it the node's state ([`View`]), and carries out the
//! actions that it requests ([`Actions`]).

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use bytes::Bytes;

use crate::error::Result;
use crate::node::{self, Message, Ticks};
use crate::topology::{NodeId, Overlay, RankId};

/// A task that is at a node, as the node's policy names it. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId(pub u64);

/// A task that must be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct New {
    /// The task.
    pub item: ItemId,
    /// Number of its migrations.
    pub hops: u32,
}

/// Origin of new tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Submitted at the host, at the start or (`stream`) over time.
    Root {
        /// Whether it was submitted over time.
        stream: bool,
    },
    /// Spawned by a task that ended here.
    Spawned,
    /// Spawned by the join of a task that had waited here.
    Joined {
        /// The task that had waited.
        parent: ItemId,
    },
    /// Split off a task that is being executed here.
    Split,
    /// Sent here.
    Migrated {
        /// The node that sent it.
        from: NodeId,
    },
}

/// Order in which ready tasks are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// First come, first served.
    Fifo,
    /// The newest first: depth-first, so that few tasks wait at a time. Roots come last, the oldest of them first: otherwise roots that
    /// arrive over time would let older ones wait for ever.
    Lifo,
}

/// A node's place in the overlay; the same throughout a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Place {
    /// The node.
    pub me: NodeId,
    /// Node to which roots are submitted; a real node.
    pub host: NodeId,
    /// The topology, and the ranks of its nodes.
    pub overlay: Overlay,
    /// Tasks that a real node executes at a time.
    pub workers: u32,
    /// Ticks in one unit of the workload's time.
    pub unit: Ticks,
}

impl Place {
    /// The place of node `me`, of which roots are submitted to `host`: `workers` is the number of tasks that a real node executes at a time, `unit` the
    /// ticks in one unit of the workload's time.
    pub fn new(me: NodeId, host: NodeId, overlay: Overlay, workers: u32, unit: Ticks) -> Place {
        Place { me, host, overlay, workers, unit }
    }

    /// Returns true if this node executes nothing.
    pub fn is_virtual(&self) -> bool {
        self.overlay.placement.is_virtual(self.me)
    }

    /// Number of real nodes.
    pub fn real_nodes(&self) -> u32 {
        self.overlay.placement.ranks()
    }

    /// A real node, uniformly at random.
    pub fn any_real(&self, rng: &mut ChaCha8Rng) -> NodeId {
        self.overlay.placement.real_node_of(RankId::new(rng.random_range(0..self.real_nodes())))
    }

    /// The real nodes next to this real node, in ascending order. Under an overlay a virtual node stands for the real node of its rank: two ranks
    /// are neighbours if any of their nodes are.
    pub fn neighbours(&self) -> Vec<NodeId> {
        let placement = &self.overlay.placement;
        let rank = placement.rank_of(self.me);
        let around = placement.nodes_on(rank).into_iter().flat_map(|node| self.overlay.topology.neighbours(node));
        let mut ranks: Vec<_> = around.map(|node| placement.rank_of(node)).filter(|other| *other != rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut nodes: Vec<_> = ranks.into_iter().map(|rank| placement.real_node_of(rank)).collect();
        nodes.sort_unstable();
        nodes
    }
}

/// The state of a node at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// Time of the node's clock.
    pub now: Ticks,
    /// Number of tasks that wait for a worker, without tasks not placed yet and waiting parents.
    pub ready: u32,
    /// Number of tasks that are being executed.
    pub running: u32,
    /// Number of tasks that can be executed at a time; 0 on a virtual node.
    pub workers: u32,
}

impl View {
    /// The state at time `now` (ticks) of a node with this number of ready tasks, of running ones, and of tasks that it can execute at a time.
    pub fn new(now: Ticks, ready: u32, running: u32, workers: u32) -> View {
        View { now, ready, running, workers }
    }

    /// The node's load: tasks that are ready or running.
    pub fn load(&self) -> u32 {
        self.ready + self.running
    }

    /// Returns true if a worker has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.ready == 0 && self.running < self.workers
    }
}

/// Something that a policy wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action<M> {
    /// Execute a task here.
    Queue(ItemId),
    /// Send a task to a node, whose policy places it. A migration is counted and charged; a root's way to its first node is not.
    Send {
        /// The task.
        item: ItemId,
        /// The node that gets it.
        to: NodeId,
        /// Whether it counts as a migration.
        migration: bool,
    },
    /// Write a number other than 0 on a task: it comes back with its answer ([`Policy::on_answer`]).
    Label {
        /// The task.
        item: ItemId,
        /// The number.
        label: u32,
    },
    /// Send a message to the policy of another node.
    Tell {
        /// The other node.
        to: NodeId,
        /// The message.
        message: M,
    },
    /// Call [`Policy::on_timer`] at this time.
    Timer {
        /// Time of the node's clock.
        at: Ticks,
    },
    /// Give a node the oldest of the ready tasks that the workers here won't begin next, half of them (or less where more nodes wait); or part
    /// of a task that is being executed if it can be split. If there is nothing now, the request waits until there is.
    Give {
        /// The node that gets them.
        to: NodeId,
    },
    /// The node needs nothing any more: forget its request.
    Forget {
        /// The node.
        to: NodeId,
    },
    /// Give a node part of the task that is being executed here, at its next pause; if it can't be split, send its policy this message instead.
    Part {
        /// The node that gets it.
        to: NodeId,
        /// Message to its policy if there is no part.
        otherwise: M,
    },
    /// Give a node this number of the ready tasks, the oldest first, or all if there are fewer.
    Share {
        /// The node that gets them.
        to: NodeId,
        /// Maximum number of tasks.
        most: u32,
    },
    /// At the host only, and only when the one before has ended on all nodes: begin a system phase, in which the scheduler's
    /// [balancer](super::Scheduler::balancer) redistributes the ready tasks of all nodes. `kept` is the number of tasks that each node
    /// keeps: running tasks and, beyond those, ready ones. They are load that does not move.
    Phase {
        /// Number of tasks that each node keeps, by node.
        kept: Vec<u32>,
    },
}

impl<M> Action<M> {
    /// The same with another message.
    pub fn map<N>(self, message_from: impl FnOnce(M) -> N) -> Action<N> {
        match self {
            Action::Queue(item) => Action::Queue(item),
            Action::Send { item, to, migration } => Action::Send { item, to, migration },
            Action::Label { item, label } => Action::Label { item, label },
            Action::Tell { to, message } => Action::Tell { to, message: message_from(message) },
            Action::Timer { at } => Action::Timer { at },
            Action::Give { to } => Action::Give { to },
            Action::Forget { to } => Action::Forget { to },
            Action::Part { to, otherwise } => Action::Part { to, otherwise: message_from(otherwise) },
            Action::Share { to, most } => Action::Share { to, most },
            Action::Phase { kept } => Action::Phase { kept },
        }
    }
}

/// A system phase, as one node saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseEnd {
    /// Tasks that left the node.
    pub moved: u32,
    /// Execution time there.
    pub took: Ticks,
}

/// Actions that a policy requests, in this order.
#[derive(Debug)]
pub struct Actions<M> {
    list: Vec<Action<M>>,
}

impl<M> Default for Actions<M> {
    fn default() -> Self {
        Actions { list: Vec::new() }
    }
}

impl<M> Actions<M> {
    /// See [`Action::Queue`].
    pub fn queue(&mut self, item: ItemId) {
        self.list.push(Action::Queue(item));
    }

    /// Sends a task as a migration; see [`Action::Send`].
    pub fn migrate(&mut self, item: ItemId, to: NodeId) {
        self.list.push(Action::Send { item, to, migration: true });
    }

    /// Sends a root to where it is first scheduled; see [`Action::Send`].
    pub fn submit(&mut self, item: ItemId, to: NodeId) {
        self.list.push(Action::Send { item, to, migration: false });
    }

    /// See [`Action::Label`].
    pub fn label(&mut self, item: ItemId, label: u32) {
        self.list.push(Action::Label { item, label });
    }

    /// See [`Action::Tell`].
    pub fn tell(&mut self, to: NodeId, message: M) {
        self.list.push(Action::Tell { to, message });
    }

    /// See [`Action::Timer`].
    pub fn timer(&mut self, at: Ticks) {
        self.list.push(Action::Timer { at });
    }

    /// See [`Action::Give`].
    pub fn give(&mut self, to: NodeId) {
        self.list.push(Action::Give { to });
    }

    /// See [`Action::Forget`].
    pub fn forget(&mut self, to: NodeId) {
        self.list.push(Action::Forget { to });
    }

    /// See [`Action::Part`].
    pub fn part(&mut self, to: NodeId, otherwise: M) {
        self.list.push(Action::Part { to, otherwise });
    }

    /// See [`Action::Share`].
    pub fn share(&mut self, to: NodeId, most: u32) {
        self.list.push(Action::Share { to, most });
    }

    /// See [`Action::Phase`].
    pub fn phase(&mut self, kept: Vec<u32>) {
        self.list.push(Action::Phase { kept });
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<Action<M>> {
        std::mem::take(&mut self.list)
    }
}

/// The decisions of one node. A policy must place each new task, now or later: queue it here, or send it on.
#[expect(unused_variables, reason = "the names tell what the arguments are")]
pub trait Policy {
    /// Message between the policies of nodes.
    type Message: Serialize + DeserializeOwned;

    /// Order in which ready tasks are executed.
    fn order(&self) -> QueueOrder {
        QueueOrder::Fifo
    }

    /// The run begins.
    fn start(&mut self, view: &View, act: &mut Actions<Self::Message>) {}

    /// Called when new tasks need to be placed.
    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Self::Message>);

    /// A task that was executed here ended, and spawned these (with a parent or detached), which must be placed.
    fn on_end(&mut self, item: ItemId, spawned: &[New], view: &View, act: &mut Actions<Self::Message>) {
        if !spawned.is_empty() {
            self.on_new(spawned, Origin::Spawned, view, act);
        }
    }

    /// A message from the policy of another node.
    fn on_message(&mut self, from: NodeId, message: Self::Message, view: &View, act: &mut Actions<Self::Message>) {}

    /// A worker of this node has nothing to do. Called once, until a task was begun again.
    fn on_idle(&mut self, view: &View, act: &mut Actions<Self::Message>) {}

    /// A time that the policy asked for has come.
    fn on_timer(&mut self, view: &View, act: &mut Actions<Self::Message>) {}

    /// The node's [load](View::load) has changed.
    fn on_change(&mut self, view: &View, act: &mut Actions<Self::Message>) {}

    /// A task that this policy had labelled was answered. Called on the node where the answer belongs.
    fn on_answer(&mut self, label: u32, view: &View, act: &mut Actions<Self::Message>) {}

    /// A message of tasks or answers came from another node, whose load then was this (if loads travel with messages).
    fn on_load(&mut self, from: NodeId, load: u32, view: &View, act: &mut Actions<Self::Message>) {}

    /// A [system phase](Action::Phase) begins: ready tasks are about to be frozen. Tasks that are not placed have no part in it.
    fn on_freeze(&mut self, view: &View, act: &mut Actions<Self::Message>) {}

    /// A system phase has ended on this node.
    fn on_phase(&mut self, phase: PhaseEnd, view: &View, act: &mut Actions<Self::Message>) {}
}

/// Something that happened, for a policy of any type; see the methods of [`Policy`].
#[derive(Debug)]
pub enum Occurrence<'a> {
    /// As [`Policy::start`].
    Start,
    /// As [`Policy::on_new`].
    New(&'a [New], Origin),
    /// As [`Policy::on_end`].
    End(ItemId, &'a [New]),
    /// As [`Policy::on_message`].
    Message(&'a Message),
    /// As [`Policy::on_idle`].
    Idle,
    /// As [`Policy::on_timer`].
    Timer,
    /// As [`Policy::on_change`].
    Change,
    /// As [`Policy::on_answer`].
    Answer(u32),
    /// As [`Policy::on_load`].
    Load(NodeId, u32),
    /// As [`Policy::on_freeze`].
    Freeze,
    /// As [`Policy::on_phase`].
    Phase(PhaseEnd),
}

/// A policy whose messages are bytes, so that the runtime need not know their type. [`erase`] makes one of any policy.
pub trait AnyPolicy {
    /// See [`Policy::order`].
    fn order(&self) -> QueueOrder;

    /// Tells the policy what happened, and appends what it wants done.
    ///
    /// # Errors
    /// If a message can't be read.
    fn tell(&mut self, what: Occurrence<'_>, view: &View, out: &mut Vec<Action<Bytes>>) -> Result<()>;
}

/// The tag of what policies tell each other: requests and announcements are no progress.
pub(super) const POLICY: node::Tag = crate::node::tags::schedule::POLICY;

struct Erased<P: Policy> {
    policy: P,
    act: Actions<P::Message>,
}

/// A policy, with its type forgotten.
pub fn erase(policy: impl Policy + 'static) -> Box<dyn AnyPolicy> {
    Box::new(Erased { policy, act: Actions::default() })
}

impl<P: Policy> AnyPolicy for Erased<P> {
    fn order(&self) -> QueueOrder {
        self.policy.order()
    }

    fn tell(&mut self, what: Occurrence<'_>, view: &View, out: &mut Vec<Action<Bytes>>) -> Result<()> {
        let Erased { policy, act } = self;
        match what {
            Occurrence::Start => policy.start(view, act),
            Occurrence::New(items, origin) => policy.on_new(items, origin, view, act),
            Occurrence::End(item, spawned) => policy.on_end(item, spawned, view, act),
            Occurrence::Message(message) => policy.on_message(message.envelope.src, node::open(message, POLICY)?, view, act),
            Occurrence::Idle => policy.on_idle(view, act),
            Occurrence::Timer => policy.on_timer(view, act),
            Occurrence::Change => policy.on_change(view, act),
            Occurrence::Answer(label) => policy.on_answer(label, view, act),
            Occurrence::Load(from, load) => policy.on_load(from, load, view, act),
            Occurrence::Freeze => policy.on_freeze(view, act),
            Occurrence::Phase(phase) => policy.on_phase(phase, view, act),
        }
        out.extend(act.list.drain(..).map(|action| action.map(|message| node::pack(&message))));
        Ok(())
    }
}
