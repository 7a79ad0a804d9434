//! A simulated node's port.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use super::state::{Due, NodeState, Opaque, Shared, Slices, State, Waits};
use crate::error::Error;
use crate::topology::{NodeId, Overlay};
use crate::transport::shelf::Shelf;
use crate::transport::used_after_its_run;
use crate::transport::{Envelope, Event, Interest, Job, Message, OutgoingBody, Scope, Ticks, TimerId, Transport, Wanted, WorkId, Worker};

pub(super) struct SimPort {
    pub node: NodeId,
    pub shared: Rc<Shared>,
}

impl SimPort {
    /// Does something with the run's state and this node's; nothing if the node's program has ended or its rank is lost. Panics if the run is
    /// over.
    fn with<R>(&self, over: R, act: impl FnOnce(&mut State, NodeId) -> R) -> R {
        let mut state = self.shared.state.borrow_mut();
        match state.nodes.get(self.node as usize) {
            Some(node) if !node.ended => act(&mut state, self.node),
            Some(_) => over,
            None => {
                used_after_its_run(self.node, self.shared.run);
                over
            }
        }
    }
}

impl State {
    fn node(&mut self, number: NodeId) -> &mut NodeState {
        &mut self.nodes[number as usize]
    }

    fn waits(&mut self, number: NodeId, waits: Waits) {
        let since = self.time_of(number);
        let node = self.node(number);
        node.waits = waits;
        node.since = since;
    }
}

impl Transport for SimPort {
    fn node(&self) -> NodeId {
        self.node
    }

    fn overlay(&self) -> &Overlay {
        &self.shared.overlay
    }

    fn run(&self) -> u32 {
        self.shared.run
    }

    fn seed(&self) -> u64 {
        self.shared.seed
    }

    fn now(&self) -> Ticks {
        self.shared.state.borrow().time_of(self.node)
    }

    fn charge(&self, ticks: Ticks) {
        let rank = self.shared.overlay.placement.rank_of(self.node);
        self.with((), |state, me| {
            let clock = state.time_of(me).saturating_add(state.scaled(rank, ticks));
            state.node(me).clock = clock;
            if ticks > 0 {
                state.progressed(clock);
            }
        });
    }

    fn send(&self, envelope: Envelope, outgoing: OutgoingBody) {
        debug_assert_eq!(envelope.src, self.node);
        self.with((), |state, _| match outgoing.into_body() {
            Ok(body) => state.send(&self.shared.overlay, Message { envelope, body }),
            Err(why) => {
                state.failure.get_or_insert(why);
            }
        });
    }

    fn fail(&self, why: Error) {
        self.with((), |state, _| {
            state.failure.get_or_insert(why);
        });
    }

    fn poll_room(&self) -> Poll<()> {
        self.with(Poll::Pending, |state, me| {
            if state.outbox[me as usize] <= state.model.outbox {
                return Poll::Ready(());
            }
            state.waits(me, Waits::Room);
            state.node(me).full = true;
            Poll::Pending
        })
    }

    fn poll_event(&self, interest: &Interest) -> Poll<Event> {
        self.with(Poll::Pending, |state, me| {
            if let Some(event) = state.node(me).inbox.take(interest) {
                return Poll::Ready(event);
            }
            if !state.lost.is_empty()
                && let Wanted::Message { from, .. } = interest.what
            {
                let loss = match from.map(|node| self.shared.overlay.placement.rank_of(node)) {
                    Some(rank) => state.is_lost(rank).then_some(Event::RankLost(rank)),
                    None => state.node(me).inbox.take_loss(),
                };
                if let Some(loss) = loss {
                    return Poll::Ready(loss);
                }
            }
            state.waits(me, Waits::Event(*interest));
            Poll::Pending
        })
    }

    fn poll_turn(&self, asked: &mut Option<u64>) -> Poll<()> {
        self.with(Poll::Pending, |state, me| {
            if asked.replace(state.polls).is_none() {
                let poll = state.model.poll;
                state.node(me).clock = state.time_of(me).saturating_add(poll);
                state.polls += 1;
            } else if state.node(me).clock <= state.now {
                return Poll::Ready(());
            }
            state.waits(me, Waits::Turn);
            state.wake(me);
            Poll::Pending
        })
    }

    fn set_timer(&self, scope: Scope, at: Ticks) -> TimerId {
        self.with(TimerId(0), |state, me| {
            let timer = TimerId(state.node(me).number());
            state.node(me).rest.get_or_insert_default().timers.set(at, timer, scope);
            let at = at.max(state.time_of(me).saturating_add(1));
            state.calendar.enter(at, Due::Timer(me));
            timer
        })
    }

    fn cancel_timer(&self, timer: TimerId) {
        self.with((), |state, me| {
            let node = state.node(me);
            if !node.rest.as_mut().is_some_and(|rest| rest.timers.cancel(timer)) {
                node.inbox.forget_timer(timer);
            }
        });
    }

    fn start(&self, scope: Scope, job: Job) -> WorkId {
        self.with(WorkId(0), |state, me| {
            let work = WorkId(state.node(me).number());
            match job {
                Job::Opaque(job) => {
                    let at = state.time_of(me);
                    state.calendar.enter(at, Due::Submit(Box::new(Opaque { node: me, scope, work, job })));
                }
                Job::Sliced(job) => {
                    let slices = Slices { scope, work, job, began: None, spent: 0 };
                    state.node(me).rest.get_or_insert_default().slices.push_back(slices);
                }
            }
            work
        })
    }

    fn worker(&self) -> Box<dyn Worker> {
        let port = SimPort { node: self.node, shared: self.shared.clone() };
        Box::new(OwnWork { port, computed: 0, slept: 0 })
    }

    fn shelf(&self) -> Option<&RefCell<Shelf>> {
        Some(&self.shared.shelf)
    }

    fn progressed(&self) {
        self.with((), |state, me| state.progressed(state.time_of(me)));
    }

    fn expects(&self, at: Ticks) {
        self.with((), |state, me| state.progressed(at.max(state.time_of(me))));
    }
}

/// Work that a node's program does itself: it passes on the node's own clock.
struct OwnWork {
    port: SimPort,
    /// At speed 1.
    computed: Ticks,
    slept: Ticks,
}

impl Worker for OwnWork {
    fn checkpoint(&mut self) {}

    fn charge(&mut self, ticks: Ticks) {
        self.computed = self.computed.saturating_add(ticks);
        self.port.charge(ticks);
    }

    fn sleep(&mut self, ticks: Ticks) {
        self.slept = self.slept.saturating_add(ticks);
        self.port.with((), |state, me| {
            let clock = state.time_of(me).saturating_add(ticks);
            state.node(me).clock = clock;
            state.progressed(clock);
        });
    }

    fn spin(&mut self, ticks: Ticks) {
        self.charge(ticks);
    }

    fn asleep(&self) -> Ticks {
        self.slept
    }

    fn computed(&self) -> Option<Ticks> {
        Some(self.computed)
    }
}
