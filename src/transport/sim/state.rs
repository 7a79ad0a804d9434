//! The state of a run: of each node, of the coming events, and of the progress made.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::calendar::Calendar;
use super::links::Links;
use super::order::Order;
use super::rules::Disturbance;
use super::{Model, Speed};
use crate::error::Error;
use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::inbox::Inbox;
use crate::transport::shelf::Shelf;
use crate::transport::timers::Timers;
use crate::transport::{Event, Finished, Interest, Message, Scope, Signal, Sliced, Ticks, WorkId, work};

/// State shared by the ports and the engine of one run.
pub(super) struct Shared {
    pub overlay: Overlay,
    pub run: u32,
    pub seed: u64,
    pub state: RefCell<State>,
    pub shelf: RefCell<Shelf>,
}

/// Something that is to happen.
pub(super) enum Due {
    /// A message arrives.
    Deliver(Message),
    /// A message leaves its node (only where messages contend).
    Leave(Message),
    /// A message has got its rank's port, and comes to the one that its host's ranks share (measured).
    LeaveHost(Message),
    /// The first byte of a message is at its destination's port (switched with contention, and measured).
    Head(Message),
    /// A message has got the port of its destination's host, and comes to the rank's (measured).
    ReachRank(Message),
    /// A message is wholly at a node on its route (hops, with contention).
    Hop(Message, NodeId),
    /// The world catches up with a node's own clock.
    Wake(NodeId),
    /// A timer of a node may have run out.
    Timer(NodeId),
    /// Hand opaque work to its rank's workers.
    Submit(Box<Opaque>),
    /// Work ends.
    Finish(Box<Ended>),
    Lose(RankId),
    Signal(Signal),
}

pub(super) struct Opaque {
    pub node: NodeId,
    pub scope: Scope,
    pub work: WorkId,
    pub job: work::Opaque,
}

pub(super) struct Ended {
    pub node: NodeId,
    pub scope: Scope,
    pub finished: Finished,
    /// Whether one of the rank's workers becomes free.
    pub opaque: bool,
}

pub(super) struct Slices {
    pub scope: Scope,
    pub work: WorkId,
    pub job: Box<dyn Sliced>,
    pub began: Option<Ticks>,
    /// Time that its slices would have taken a rank of speed 1.
    pub spent: Ticks,
}

/// A rank's workers and the work that waits for them.
#[derive(Default)]
pub(super) struct Workers {
    pub busy: u32,
    pub queue: VecDeque<Box<Opaque>>,
}

/// Condition that a node's program was last found to wait for.
#[derive(Clone, Copy)]
pub(super) enum Waits {
    /// For nothing that its port knows of.
    Unknown,
    Event(Interest),
    Room,
    Turn,
}

/// In an order that keeps together what is looked at together.
#[repr(C)]
pub(super) struct NodeState {
    pub order: Order,
    /// Condition that it waits for, and since when.
    pub waits: Waits,
    pub since: Ticks,
    pub rest: Option<Box<Rest>>,
    /// Time at which it is next woken, `NEVER` if it is not.
    wake: Ticks,
    /// The node's own clock; behind the world's while the node waits.
    pub clock: Ticks,
    /// To be polled at this instant.
    pub ready: bool,
    /// Waits for room in its outbox.
    pub full: bool,
    /// Its program has ended or its rank is lost.
    pub ended: bool,
    pub inbox: Inbox,
}

/// State that few nodes have.
#[derive(Default)]
pub(super) struct Rest {
    pub timers: Timers<Scope>,
    pub slices: VecDeque<Slices>,
    /// The next number for a timer or for work.
    pub number: u64,
}

const NEVER: Ticks = Ticks::MAX;

impl NodeState {
    fn new() -> NodeState {
        NodeState {
            order: Order::default(),
            waits: Waits::Unknown,
            since: 0,
            rest: None,
            wake: NEVER,
            clock: 0,
            ready: false,
            full: false,
            ended: false,
            inbox: Inbox::default(),
        }
    }

    /// The next number for a timer or for work.
    pub fn number(&mut self) -> u64 {
        let rest = self.rest.get_or_insert_default();
        rest.number += 1;
        rest.number
    }
}

pub(super) struct State {
    pub now: Ticks,
    pub calendar: Calendar<Due>,
    pub nodes: Vec<NodeState>,
    /// Bytes under way, by source.
    pub outbox: Vec<u64>,
    /// Nodes to be polled at this instant, in the order in which something happened to them.
    pub ready: Vec<NodeId>,
    pub lost: BTreeSet<RankId>,
    pub links: Links,
    pub disturbance: Disturbance,
    pub workers: BTreeMap<RankId, Workers>,
    /// Opaque work that goes on.
    pub running: u64,
    /// Time of the last progress; ahead of the clock while a node computes.
    pub progress: Ticks,
    /// Looks at the network since then.
    pub polls: u64,
    /// Failure with which the run ends at the next instant.
    pub failure: Option<Error>,
    pub model: Settings,
}

/// Settings of the [`Model`] that the run needs.
pub(super) struct Settings {
    speeds: Vec<Speed>,
    pub workers: u32,
    pub slice: Ticks,
    pub poll: Ticks,
    pub outbox: u64,
    pub timeout: Ticks,
}

impl State {
    pub fn new(overlay: &Overlay, model: &Model) -> State {
        let nodes = overlay.placement.nodes();
        let mut calendar = Calendar::default();
        for &(at, rank) in &model.rules.losses {
            calendar.enter(at, Due::Lose(rank));
        }
        for &(at, signal) in &model.rules.signals {
            calendar.enter(at, Due::Signal(signal));
        }
        State {
            now: 0,
            calendar,
            nodes: (0..nodes).map(|_| NodeState::new()).collect(),
            outbox: vec![0; nodes as usize],
            ready: Vec::new(),
            lost: BTreeSet::new(),
            links: Links::new(model.network.clone(), overlay.placement.ranks()),
            disturbance: Disturbance::new(model.rules.clone()),
            workers: BTreeMap::new(),
            running: 0,
            progress: 0,
            polls: 0,
            failure: None,
            model: Settings {
                speeds: model.speeds.clone(),
                workers: model.workers,
                slice: model.slice.max(1),
                poll: model.poll.max(1),
                outbox: model.outbox,
                timeout: model.timeout,
            },
        }
    }

    /// The node's own time.
    pub fn time_of(&self, node: NodeId) -> Ticks {
        self.nodes.get(node as usize).map_or(self.now, |state| state.clock.max(self.now))
    }

    /// Ticks that a rank needs for work that takes a rank of speed 1 `ticks` ticks.
    pub fn scaled(&self, rank: RankId, ticks: Ticks) -> Ticks {
        self.model.speeds.get(rank.index()).map_or(ticks, |speed| speed.time(ticks))
    }

    pub fn is_lost(&self, rank: RankId) -> bool {
        !self.lost.is_empty() && self.lost.contains(&rank)
    }

    /// Something made progress that lasts until the given time.
    pub fn progressed(&mut self, until: Ticks) {
        self.progress = self.progress.max(until);
        self.polls = 0;
    }

    /// Something happened to a node: it is polled at this instant, or when the world has caught up with its clock.
    pub fn touch(&mut self, number: NodeId) {
        let Some(node) = self.nodes.get_mut(number as usize) else { return };
        if node.ended || node.ready {
            return;
        }
        if node.clock > self.now {
            self.wake(number);
        } else {
            node.ready = true;
            self.ready.push(number);
        }
    }

    /// Sees to it that the node is polled when the world has caught up with its clock.
    pub fn wake(&mut self, number: NodeId) {
        let Some(node) = self.nodes.get_mut(number as usize) else { return };
        if node.wake > node.clock {
            node.wake = node.clock;
            self.calendar.enter(node.clock, Due::Wake(number));
        }
    }

    /// The world has caught up with a node's clock (or had, when the clock was moved on).
    pub fn woken(&mut self, number: NodeId) {
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.wake = NEVER;
        }
        self.touch(number);
    }

    /// Delivers an event to a node.
    pub fn tell(&mut self, number: NodeId, event: Event) {
        let Some(node) = self.nodes.get_mut(number as usize) else { return };
        if !node.ended {
            node.inbox.push(event);
            self.touch(number);
        }
    }

    /// Looks at the nodes that these events concern. Of a million nodes none is in the caches when something happens to it; the processor
    /// fetches several at a time if nothing lies between the looks.
    pub fn fetch(&self, events: &[Due]) {
        let poll = |due: &Due| match due {
            Due::Deliver(message) => self.poll(message.envelope.dst) + self.outbox[message.envelope.src as usize],
            _ => 0,
        };
        std::hint::black_box(events.iter().map(poll).fold(0, u64::wrapping_add));
    }

    /// The same for nodes whose turn comes.
    pub fn fetch_nodes(&self, nodes: &[NodeId]) {
        std::hint::black_box(nodes.iter().map(|node| self.poll(*node)).fold(0, u64::wrapping_add));
    }

    fn poll(&self, node: NodeId) -> u64 {
        let node = &self.nodes[node as usize];
        (node.since & 1) + (node.clock & 1) + u64::from(node.inbox.is_empty())
    }

    /// Returns true if an event, drawn at its time, does not happen because its timer was cancelled. No time passes for it.
    pub fn is_void(&self, due: &Due, at: Ticks) -> bool {
        let Due::Timer(node) = due else { return false };
        let rest = self.nodes.get(*node as usize).and_then(|node| node.rest.as_ref());
        rest.and_then(|rest| rest.timers.first()).is_none_or(|first| first > at)
    }

    /// Takes the node's first timer that has run out.
    pub fn timer(&mut self, node: NodeId) -> Option<Event> {
        let now = self.now;
        let (timer, scope) = self.nodes.get_mut(node as usize)?.rest.as_mut()?.timers.take_due(now)?;
        Some(Event::Timer { scope, timer })
    }

    /// Ends a node, which receives no more events. Returns its remainder, to be dropped when the state is not borrowed.
    pub fn end(&mut self, number: NodeId) -> Option<NodeState> {
        let node = self.nodes.get_mut(number as usize)?;
        // Messages that it sent still arrive in order.
        let order = std::mem::take(&mut node.order);
        let ended = NodeState { ended: true, order, ..NodeState::new() };
        Some(std::mem::replace(node, ended))
    }
}
