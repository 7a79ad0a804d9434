//! A node's port on real ranks.

use std::rc::Rc;
use std::task::Poll;

use super::carrier::{Carrier, State};
use super::local_nodes::{Run, Waits};
use super::workers::Owner;
use crate::error::Error;
use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::native::{Collected, Collective, CollectiveId};
use crate::transport::{Envelope, Event, Interest, Job, OutgoingBody, Scope, Ticks, TimerId, Transport, WorkId, used_after_its_run, work};

/// A node's port. Using it after its run has ended is a bug of the program, and panics.
pub(super) struct MpiPort {
    pub carrier: Rc<Carrier>,
    pub overlay: Rc<Overlay>,
    pub node: NodeId,
    pub local_node: usize,
    pub run: u32,
}

impl MpiPort {
    /// The run that this port belongs to. `None` only while a panic unwinds.
    fn run_in<'a>(&self, state: &'a mut State) -> Option<&'a mut Run> {
        let run = state.run_of(self.run);
        if run.is_none() {
            used_after_its_run(self.node, self.run);
        }
        run
    }
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

    fn send(&self, envelope: Envelope, outgoing: OutgoingBody) {
        let mut state = self.carrier.state.borrow_mut();
        if self.run_in(&mut state).is_some() {
            state.send(envelope, outgoing);
        }
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
        if let Some(run) = self.run_in(&mut state) {
            let local_node = &mut run.local_nodes[self.local_node];
            (local_node.waits, local_node.full) = (Waits::Room, true);
        }
        Poll::Pending
    }

    fn poll_event(&self, interest: &Interest) -> Poll<Event> {
        let mut state = self.carrier.state.borrow_mut();
        let Some(run) = self.run_in(&mut state) else { return Poll::Pending };
        let local_node = &mut run.local_nodes[self.local_node];
        match local_node.inbox.take(interest) {
            Some(event) => {
                local_node.waits = Waits::Nothing;
                Poll::Ready(event)
            }
            None => {
                local_node.waits = Waits::Event(*interest);
                match state.loss_instead(self.local_node, interest) {
                    Some(loss) => Poll::Ready(loss),
                    None => Poll::Pending,
                }
            }
        }
    }

    fn poll_turn(&self, asked: &mut Option<u64>) -> Poll<()> {
        let mut state = self.carrier.state.borrow_mut();
        let polls = state.polls;
        let Some(run) = self.run_in(&mut state) else { return Poll::Pending };
        let local_node = &mut run.local_nodes[self.local_node];
        if *asked.get_or_insert(polls) < polls {
            local_node.waits = Waits::Nothing;
            return Poll::Ready(());
        }
        (local_node.waits, local_node.turn) = (Waits::Turn, true);
        Poll::Pending
    }

    fn has_collectives(&self) -> bool {
        self.carrier.native.get()
    }

    fn begin_collective(&self, members: Vec<RankId>, operation: Collective) -> Option<CollectiveId> {
        let mut state = self.carrier.state.borrow_mut();
        let name = operation.name();
        let run = self.run_in(&mut state)?;
        run.local_nodes[self.local_node].waits = Waits::Collective(name);
        state.begin_collective(self.local_node, members, operation)
    }

    fn poll_collective(&self, id: CollectiveId) -> Poll<Collected> {
        let mut state = self.carrier.state.borrow_mut();
        let Some(collected) = state.collectives.take(id) else { return Poll::Pending };
        if let Some(run) = self.run_in(&mut state) {
            run.local_nodes[self.local_node].waits = Waits::Nothing;
        }
        Poll::Ready(collected)
    }

    fn set_timer(&self, scope: Scope, at: Ticks) -> TimerId {
        let mut state = self.carrier.state.borrow_mut();
        let Some(run) = self.run_in(&mut state) else { return TimerId(0) };
        let timer = TimerId(run.number());
        run.timers.set(at, timer, (self.local_node, scope));
        timer
    }

    fn cancel_timer(&self, timer: TimerId) {
        let mut state = self.carrier.state.borrow_mut();
        if let Some(run) = self.run_in(&mut state)
            && !run.timers.cancel(timer)
        {
            run.local_nodes[self.local_node].inbox.forget_timer(timer);
        }
    }

    fn start(&self, scope: Scope, job: Job) -> WorkId {
        let mut state = self.carrier.state.borrow_mut();
        let Some(run) = self.run_in(&mut state) else { return WorkId(0) };
        let work = WorkId(run.number());
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

    fn expects(&self, at: Ticks) {
        let mut state = self.carrier.state.borrow_mut();
        if let Some(run) = self.run_in(&mut state) {
            run.expected = run.expected.max(at);
        }
    }
}
