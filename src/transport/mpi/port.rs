//! A node's port on real ranks.

use std::rc::Rc;
use std::task::Poll;

use super::carrier::Carrier;
use super::local_nodes::Waits;
use super::workers::Owner;
use crate::error::Error;
use crate::topology::{NodeId, Overlay};
use crate::transport::{Envelope, Event, Freight, Interest, Job, Scope, Ticks, TimerId, Transport, WorkId, work};

/// A port that outlives its run sends nothing and hears nothing.
pub(super) struct MpiPort {
    pub carrier: Rc<Carrier>,
    pub overlay: Rc<Overlay>,
    pub node: NodeId,
    pub local_node: usize,
    pub run: u32,
}

impl Transport for MpiPort {
    fn node(&self) -> NodeId {
        self.node
    }

    fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    fn run(&self) -> u32 {
        self.run
    }

    fn seed(&self) -> u64 {
        self.carrier.seed.get()
    }

    fn now(&self) -> Ticks {
        self.carrier.now()
    }

    fn processor_time(&self) -> Option<Ticks> {
        work::processor_time()
    }

    fn charge(&self, _: Ticks) {}

    fn send(&self, envelope: Envelope, freight: Freight) {
        self.carrier.state.borrow_mut().send(envelope, freight);
    }

    fn fail(&self, why: Error) {
        self.carrier.state.borrow_mut().failure.get_or_insert(why);
    }

    fn poll_room(&self) -> Poll<()> {
        let mut state = self.carrier.state.borrow_mut();
        if !state.has_room()
            && let Err(why) = state.outbox.collect()
        {
            state.failure.get_or_insert(why);
        }
        if state.has_room() {
            return Poll::Ready(());
        }
        state.waits_for_room(self.run, self.local_node);
        Poll::Pending
    }

    fn poll_event(&self, interest: &Interest) -> Poll<Event> {
        let mut state = self.carrier.state.borrow_mut();
        let Some(run) = state.run_of(self.run) else { return Poll::Pending };
        let local_node = &mut run.local_nodes[self.local_node];
        match local_node.inbox.take(interest) {
            Some(event) => {
                local_node.waits = Waits::Nothing;
                Poll::Ready(event)
            }
            None => {
                local_node.waits = Waits::Event(*interest);
                Poll::Pending
            }
        }
    }

    fn poll_turn(&self, asked: &mut bool) -> Poll<()> {
        let mut state = self.carrier.state.borrow_mut();
        let polls = state.polls;
        let Some(run) = state.run_of(self.run) else { return Poll::Pending };
        let waits = &mut run.local_nodes[self.local_node].waits;
        match *waits {
            Waits::Turn(before) if *asked && before < polls => {
                *waits = Waits::Nothing;
                Poll::Ready(())
            }
            Waits::Turn(_) if *asked => Poll::Pending,
            _ => {
                *asked = true;
                *waits = Waits::Turn(polls);
                Poll::Pending
            }
        }
    }

    fn set_timer(&self, scope: Scope, at: Ticks) -> TimerId {
        let mut state = self.carrier.state.borrow_mut();
        match state.run_of(self.run) {
            Some(run) => run.timers.set(self.local_node, scope, at),
            None => TimerId(0),
        }
    }

    fn cancel_timer(&self, timer: TimerId) {
        let mut state = self.carrier.state.borrow_mut();
        if let Some(run) = state.run_of(self.run)
            && !run.timers.cancel(timer)
        {
            run.local_nodes[self.local_node].inbox.forget_timer(timer);
        }
    }

    fn start(&self, scope: Scope, job: Job) -> WorkId {
        let mut state = self.carrier.state.borrow_mut();
        let Some(run) = state.run_of(self.run) else { return WorkId(0) };
        run.works += 1;
        let work = WorkId(run.works);
        let owner = Owner { local_node: self.local_node, scope, work };
        state.progressed();
        match job {
            Job::Sliced(sliced) => state.slices.give(owner, sliced),
            Job::Opaque(opaque) => {
                if let Err(why) = state.pool.give(owner, opaque) {
                    state.failure.get_or_insert(why);
                }
            }
        }
        work
    }

    fn progressed(&self) {
        self.carrier.state.borrow_mut().progressed();
    }
}
