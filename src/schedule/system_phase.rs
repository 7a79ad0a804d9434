//! System phases: in between, all nodes redistribute their ready tasks together, by a balancer, while running tasks go on.
//!
//! 1. The host's policy asks for a phase. The word that it begins runs down the tree of the termination waves; a node that hears it passes it on.
//! 2. The node freezes its ready tasks but those that it keeps at hand: the oldest ones become the balancer's work queue, each with its bytes.
//! 3. The balancer runs in an epoch of its own, as a future beside the runtime's own events: tasks begin, end, spawn and are answered
//!    meanwhile, and what is spawned has no part in the phase.
//! 4. When it has ended here, what stayed is ready again, and what came from elsewhere is placed by the policy.
//!
//! ```text
//!   ready  o o o o | x x  running      freeze: o o o are frozen, o stays at hand
//!            |  ^
//!      work queue  v  |    balancer, epoch e: messages of epoch e only, early ones wait in the inbox
//! ```
//!
//! Termination: the word counts as a message with tasks ([`Counts`](super::termination::Counts)) that is received only when its phase has
//! ended there. A balancer's node has ended only when everything that is sent to it has come, so that what is under way in a phase is always
//! covered by a word not yet received, or by a node that is not passive.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use super::computation::Computation;
use super::item::{Item, Travelling};
use super::moving::too_large;
use super::policy::{Occurrence, Order, PhaseEnd};
use super::runtime::Shell;
use crate::balance::{Chosen, Phase};
use crate::error::{Error, Result};
use crate::load::{Powers, Segment, Shares, TaskBatch, WorkQueue};
use crate::node::{self, Event, LARGEST_MESSAGE, Message, Node, Tag, Ticks};
use crate::topology::NodeId;

pub(super) const BEGIN: Tag = Tag::background(0x0206, "system phase");
/// What a task in a work queue is called when it can't be read.
const FROZEN: Tag = Tag::new(0x0207, "frozen task");

/// Epochs of phases begin here; those before are a run's own.
const EPOCHS: u32 = 1 << 16;

/// The word that a phase begins.
#[derive(Serialize, Deserialize)]
struct Begin {
    number: u32,
    /// See [`Action::Phase`](super::policy::Action::Phase).
    kept: Vec<u32>,
}

/// A node's part in the phases of a run.
pub(super) struct SystemPhases {
    balancer: Option<Arc<Chosen>>,
    /// Phases that have begun.
    number: u32,
    going: Option<Going>,
}

/// A phase that has not ended here.
struct Going {
    began: Ticks,
    frozen: u32,
    balancing: Pin<Box<dyn Future<Output = Result<WorkQueue>>>>,
}

impl SystemPhases {
    pub fn new(balancer: Option<Arc<Chosen>>) -> SystemPhases {
        SystemPhases { balancer, number: 0, going: None }
    }

    pub fn is_going(&self) -> bool {
        self.going.is_some()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WorkQueue>> {
        self.going.as_mut().map_or(Poll::Pending, |going| going.balancing.as_mut().poll(context))
    }
}

/// What a node that has nothing to do was waiting for.
pub(super) enum Happened {
    Event(Event),
    PhaseOver(Result<WorkQueue>),
}

/// A frozen task, and where it was frozen.
type Frozen<T> = (NodeId, Travelling<T>);

impl<C: Computation> Shell<C> {
    /// Whatever happens next: an event of the run, or the end of the phase that is going on.
    pub(super) async fn next(&mut self) -> Happened {
        let mut event = pin!(self.node.next_event());
        let phases = &mut self.phases;
        // The balancer first: what it waits for then does not hide that the node listens to all.
        poll_fn(|context| match phases.poll(context) {
            Poll::Ready(queue) => Poll::Ready(Happened::PhaseOver(queue)),
            Poll::Pending => event.as_mut().poll(context).map(Happened::Event),
        })
        .await
    }

    /// Lets the balancer go on as far as it can.
    pub(super) async fn go_on_with_phase(&mut self) -> Result<()> {
        if !self.phases.is_going() {
            return Ok(());
        }
        match poll_fn(|context| Poll::Ready(self.phases.poll(context))).await {
            Poll::Ready(queue) => self.phase_over(queue?),
            Poll::Pending => Ok(()),
        }
    }

    pub(super) fn phase_begins(&mut self, message: &Message) -> Result<()> {
        let Begin { number, kept } = node::open(message, BEGIN)?;
        if number != self.phases.number + 1 {
            let last = self.phases.number;
            return Err(Error::Failed(format!("system phase {number} begins on node {}, whose last was number {last}", self.me)));
        }
        self.begin_phase(kept)
    }

    /// Passes the word on, and freezes.
    pub(super) fn begin_phase(&mut self, kept: Vec<u32>) -> Result<()> {
        let Some(balancer) = self.phases.balancer.clone() else {
            return Err(Error::Failed("the policy asks for a system phase, but its scheduler has no balancer".into()));
        };
        if self.phases.is_going() || kept.len() != self.node.nodes() as usize {
            return Err(Error::Failed(format!("the policy asks for a system phase on node {}, which can't begin one", self.me)));
        }
        self.phases.number += 1;
        let begin = Begin { number: self.phases.number, kept };
        for child in self.waves.tree.children.clone() {
            self.books.sent += 1;
            self.report.control += 1;
            self.node.send(child, BEGIN, &begin);
        }
        self.tell(Occurrence::Freeze)?;
        let own = begin.kept.get(self.me as usize).copied().unwrap_or(0);
        let at_hand = own.saturating_sub(self.view().running) as usize;
        let frozen: Vec<_> = self.ready.drain(..self.ready.len().saturating_sub(at_hand)).collect();
        let count = frozen.len() as u32;
        let queue = self.work_queue(frozen)?.with_pinned([Segment::range(0, own.into())].into_iter().collect());
        let real = self.node.overlay().placement.ranks();
        let pinned = begin.kept.into_iter().map(u64::from).collect();
        let shares = Shares::new(Powers::equal(real, self.node.nodes())).with_pinned(pinned);
        let balancing = Box::pin(balance(self.node.epoch(EPOCHS + begin.number), balancer, shares, queue));
        self.phases.going = Some(Going { began: self.node.now(), frozen: count, balancing });
        Ok(())
    }

    /// The oldest lie at the back, where balancers take first.
    fn work_queue(&self, frozen: Vec<Item<C>>) -> Result<WorkQueue> {
        let mut batch = TaskBatch::with_capacity(frozen.len());
        for Item { header, task, .. } in frozen.into_iter().rev() {
            let id = u64::from(header.name.born) << 40 | header.name.number;
            let bytes = node::pack(&(self.me, Travelling { header, migration: true, takes: None, task }));
            if bytes.len() > LARGEST_MESSAGE {
                return Err(Error::Failed(too_large("task", &header.name.to_string(), bytes.len(), LARGEST_MESSAGE)));
            }
            let segment = Segment::row(id, 1, 1, bytes);
            segment.into_iter().for_each(|segment| batch.push(segment));
        }
        Ok(WorkQueue::new(batch))
    }

    /// The balancer has ended here; the work queue is what it left.
    pub(super) fn phase_over(&mut self, queue: WorkQueue) -> Result<()> {
        let Some(Going { began, frozen, .. }) = self.phases.going.take() else { return Ok(()) };
        self.books.received += u64::from(self.me != self.host_node);
        let mut stayed = Vec::new();
        let mut arrived: BTreeMap<NodeId, Vec<Item<C>>> = BTreeMap::new();
        // What is pinned carries nothing.
        for task in queue.segments().filter(|segment| !segment.payload().is_empty()).flat_map(Segment::tasks) {
            let (from, mut task): Frozen<C::Task> = node::unpack(&task.payload, self.me, FROZEN)?;
            if from == self.me {
                stayed.push(Item { id: self.number(), header: task.header, task: task.task });
            } else {
                task.header.hops += 1;
                arrived.entry(from).or_default().extend(self.land(from, task));
            }
        }
        let moved = frozen.saturating_sub(stayed.len() as u32);
        self.report.migrated_out += u64::from(moved);
        self.thaw(stayed);
        for (from, items) in arrived {
            self.migrated(from, items)?;
        }
        let took = self.node.now().saturating_sub(began);
        self.tell(Occurrence::Phase(PhaseEnd { moved, took }))
    }

    /// Makes tasks ready again that were frozen and stayed, the newest in front: they are older than all that were not frozen.
    fn thaw(&mut self, stayed: Vec<Item<C>>) {
        let (roots, others): (Vec<_>, Vec<_>) = stayed.into_iter().rev().partition(|item| self.order == Order::Lifo && item.is_root());
        let behind_roots = if self.order == Order::Lifo { self.ready.partition_point(Item::is_root) } else { 0 };
        let newer = self.ready.split_off(behind_roots);
        let newer_roots = std::mem::take(&mut self.ready);
        self.ready.extend(roots.into_iter().chain(newer_roots).chain(others).chain(newer));
    }
}

/// One node's part in a phase, with all that it needs.
async fn balance(node: Node, balancer: Arc<Chosen>, shares: Shares, mut queue: WorkQueue) -> Result<WorkQueue> {
    let mut phase = Phase::begin(&node, &shares, &mut queue);
    phase.mover.only_count();
    phase.carry_out(&*balancer.made).await?;
    drop(phase);
    Ok(queue)
}
