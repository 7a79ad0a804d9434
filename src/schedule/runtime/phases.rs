//! System phases: in between, all nodes redistribute their ready tasks together, by a balancer, while running tasks go on.
//!
//! 1. The host's policy asks for a phase. The announcement runs down the tree of the termination waves: a node that hears it passes it on.
//! 2. The node freezes its ready tasks except those that it keeps at hand: the oldest ones become the balancer's work queue, each as its bytes.
//! 3. The balancer runs in an epoch of its own, as a future polled together with the runtime's own events: tasks begin, end, spawn and are
//!    answered meanwhile, and what is spawned has no part in the phase.
//! 4. When it has ended here, what stayed is ready again, and what came from elsewhere is placed by the policy.
//!
//! ```text
//!   ready  o o o o | x x  running      freeze: o o o are frozen, o stays at hand
//!            |  ^
//!      work queue  v  |    balancer, epoch e: messages of epoch e only, early ones wait in the inbox
//! ```
//!
//! Termination: the announcement counts as a message with tasks ([`Counts`](super::termination::Counts)) that is received only when its phase has
//! ended there. A balancer's node has ended only when everything that is sent to it has come, so that what is under way in a phase is always
//! covered by an announcement not yet received, or by a node that is not passive.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::task::{Item, Travelling, too_large};
use crate::balance::{Chosen, Phase};
use crate::error::{Error, Result};
use crate::load::{Powers, Segment, Shares, TaskBatch, WorkQueue};
use crate::node::{self, Event, LARGEST_MESSAGE, Node, Tag, Ticks, tags};
use crate::schedule::computation::Computation;
use crate::topology::NodeId;

/// Announces a phase.
pub(super) const BEGIN: Tag = tags::schedule::BEGIN;
/// Tag in the error for a task in a work queue that cannot be read.
const FROZEN: Tag = tags::schedule::FROZEN;

/// Epochs of phases begin here; those before are a run's own.
const EPOCHS: u32 = crate::node::epochs::PHASES;

/// The announcement of a phase.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    number: u32,
    /// See [`Action::Phase`](crate::schedule::policy::Action::Phase).
    kept: Vec<u32>,
}

impl Begin {
    /// Load that a node keeps.
    pub fn kept_by(&self, node: NodeId) -> u32 {
        self.kept.get(node as usize).copied().unwrap_or(0)
    }
}

/// A balancer's run on this node.
pub(super) type Balancing = Pin<Box<dyn Future<Output = Result<WorkQueue>>>>;

/// A node's part in the phases of a run.
pub(super) struct SystemPhases {
    me: NodeId,
    nodes: u32,
    balancer: Option<Arc<Chosen>>,
    /// Number of phases that have begun.
    number: u32,
    going: Option<Going>,
}

/// A phase that has not ended here.
struct Going {
    began: Ticks,
    frozen: usize,
    balancing: Balancing,
}

/// Event that an idle node waited for.
pub(super) enum Happened {
    Event(Event),
    PhaseOver(Result<WorkQueue>),
}

impl SystemPhases {
    pub fn new(me: NodeId, nodes: u32, balancer: Option<Arc<Chosen>>) -> SystemPhases {
        SystemPhases { me, nodes, balancer, number: 0, going: None }
    }

    pub fn is_going(&self) -> bool {
        self.going.is_some()
    }

    /// The host's policy asks for a phase.
    pub fn announce(&self, kept: Vec<u32>) -> Begin {
        Begin { number: self.number + 1, kept }
    }

    /// A phase is announced; returns its balancer.
    ///
    /// # Errors
    /// If it can't begin here.
    pub fn begin(&mut self, begin: &Begin) -> Result<Arc<Chosen>> {
        if begin.number != self.number + 1 {
            let (number, last, me) = (begin.number, self.number, self.me);
            return Err(Error::Failed(format!("system phase {number} begins on node {me}, whose last was number {last}")));
        }
        let Some(balancer) = self.balancer.clone() else {
            return Err(Error::Failed("the policy asks for a system phase, but its scheduler has no balancer".into()));
        };
        if self.is_going() || begin.kept.len() != self.nodes as usize {
            return Err(Error::Failed(format!("the policy asks for a system phase on node {}, which can't begin one", self.me)));
        }
        self.number += 1;
        Ok(balancer)
    }

    /// Tasks are frozen, and the balancer runs.
    pub fn balance(&mut self, now: Ticks, frozen: usize, balancing: Balancing) {
        self.going = Some(Going { began: now, frozen, balancing });
    }

    /// The balancer has ended here; returns when the phase began, and how many tasks were frozen.
    pub fn end(&mut self) -> Option<(Ticks, usize)> {
        self.going.take().map(|going| (going.began, going.frozen))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<WorkQueue>> {
        self.going.as_mut().map_or(Poll::Pending, |going| going.balancing.as_mut().poll(context))
    }

    /// Whatever happens next: an event of the run, or the end of the phase that is going on.
    pub async fn or_event(&mut self, event: impl Future<Output = Event>) -> Happened {
        let mut event = pin!(event);
        // The balancer first: what it waits for then does not hide that the node listens to all.
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(queue) => Poll::Ready(Happened::PhaseOver(queue)),
            Poll::Pending => event.as_mut().poll(context).map(Happened::Event),
        })
        .await
    }

    /// Lets the balancer continue until it waits; returns its remaining tasks if it has ended.
    pub async fn go_on(&mut self) -> Option<Result<WorkQueue>> {
        poll_fn(|context| match self.poll(context) {
            Poll::Ready(queue) => Poll::Ready(Some(queue)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

/// A frozen task, and where it was frozen.
type Frozen<T> = (NodeId, Travelling<T>);

/// The work queue of frozen tasks, and the load that stays here. The oldest lie at the back, where balancers take first.
pub(super) fn work_queue<C: Computation>(me: NodeId, frozen: Vec<Item<C>>, kept: u32) -> Result<WorkQueue> {
    let mut batch = TaskBatch::with_capacity(frozen.len());
    for Item { header, task, .. } in frozen.into_iter().rev() {
        let id = u64::from(header.name.born) << 40 | header.name.number;
        let bytes = node::pack(&(me, Travelling { header, migration: true, takes: None, task }));
        if bytes.len() > LARGEST_MESSAGE {
            return Err(Error::Failed(too_large("task", &header.name.to_string(), bytes.len(), LARGEST_MESSAGE)));
        }
        let segment = Segment::row(id, 1, 1, bytes);
        segment.into_iter().for_each(|segment| batch.push(segment));
    }
    Ok(WorkQueue::new(batch).with_pinned([Segment::range(0, kept.into())].into_iter().collect()))
}

/// The tasks in a work queue that a balancer left, and where each was frozen.
pub(super) fn frozen_tasks<T: DeserializeOwned>(me: NodeId, queue: &WorkQueue) -> impl Iterator<Item = Result<Frozen<T>>> {
    // Pinned tasks have no payload.
    let tasks = queue.segments().filter(|segment| !segment.payload().is_empty()).flat_map(Segment::tasks);
    tasks.map(move |task| node::unpack(&task.payload, me, FROZEN))
}

/// Runs a node's part in a phase on its work queue.
pub(super) fn balancing(node: &Node, balancer: Arc<Chosen>, begin: Begin, mut queue: WorkQueue) -> Balancing {
    let real = node.overlay().placement.ranks();
    let shares = Shares::new(Powers::equal(real, node.nodes()));
    let node = node.epoch(EPOCHS + begin.number);
    let shares = shares.with_pinned(begin.kept.into_iter().map(u64::from).collect());
    Box::pin(async move {
        let mut phase = Phase::begin(&node, &shares, &mut queue);
        phase.mover.only_count();
        phase.carry_out(&*balancer.made).await?;
        drop(phase);
        Ok(queue)
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Waker;

    use super::super::task::{Home, TaskHeader};
    use super::super::testing::Sum;
    use super::*;
    use crate::schedule::accounting::Name;
    use crate::schedule::policy::ItemId;
    use crate::topology::RankId;

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn phases() -> SystemPhases {
        SystemPhases::new(1, 3, Some(Arc::new(crate::balance::find("direct").unwrap())))
    }

    fn queue(tasks: &[u64]) -> WorkQueue {
        let item = |task: &u64| {
            let name = Name { born: 2, number: *task };
            Item::<Sum> { id: ItemId(*task), header: TaskHeader::new(name, Home::Detached, 0), task: *task }
        };
        work_queue(1, tasks.iter().map(item).collect(), 2).unwrap()
    }

    #[test]
    fn a_phase_begins_once_and_ends_when_the_balancer_does() {
        let mut phases = phases();
        let begin = phases.announce(vec![1, 2, 3]);
        assert_eq!((begin.kept_by(1), begin.kept_by(7)), (2, 0));
        phases.begin(&begin).unwrap();
        let why = phases.begin(&begin).err().unwrap().to_string();
        assert_eq!(why, "system phase 1 begins on node 1, whose last was number 1");
        phases.balance(40, 5, Box::pin(pending()));
        assert!(phases.is_going() && now(phases.go_on()).unwrap().is_none());
        let next = phases.announce(vec![0; 3]);
        assert!(phases.begin(&next).err().unwrap().to_string().ends_with("on node 1, which can't begin one"));
        phases.balance(40, 5, Box::pin(ready(Ok(queue(&[7, 8])))));
        let Some(Happened::PhaseOver(Ok(left))) = now(phases.or_event(pending())) else { panic!("the balancer has ended") };
        let tasks: Vec<u64> = frozen_tasks::<u64>(1, &left).map(|task| task.unwrap().1.task).collect();
        assert_eq!(tasks, [8, 7], "the oldest lie at the back");
        assert_eq!((phases.end(), phases.is_going(), phases.end()), (Some((40, 5)), false, None));
        assert!(phases.begin(&next).is_ok());
    }

    #[test]
    fn events_go_on_while_the_balancer_waits() {
        let mut phases = phases();
        for going in [false, true] {
            if going {
                phases.balance(0, 0, Box::pin(pending()));
            }
            let event = now(phases.or_event(ready(Event::RankLost(RankId::new(9)))));
            assert!(matches!(event, Some(Happened::Event(Event::RankLost(rank))) if rank == RankId::new(9)));
            assert!(now(phases.or_event(pending())).is_none());
        }
    }

    #[test]
    fn a_phase_needs_a_balancer_and_a_share_for_each_node() {
        let mut phases = phases();
        let short = phases.announce(vec![0; 2]);
        assert!(phases.begin(&short).is_err());
        let mut without = SystemPhases::new(0, 1, None);
        let begin = without.announce(vec![0]);
        assert!(without.begin(&begin).err().unwrap().to_string().ends_with("its scheduler has no balancer"));
    }
}
