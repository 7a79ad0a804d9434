//! The loop that lets virtual time pass: an instant's events happen, then the programs that they concern are polled.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Model;
use super::port::SimPort;
use super::report::{self, Reason};
use super::state::{Due, Ended, NodeState, Opaque, Shared, State, Waits};
use crate::error::{Error, Result};
use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::Program;
use crate::transport::interrupt::Interrupt;
use crate::transport::{Event, Finished, Needed, Port, Step, Ticks, Worker};

/// Looks at the network without progress after which a run is stuck, however little virtual time they take: of all nodes, and by node.
const LOOKS: (u64, u64) = (50_000_000, 50_000);

/// Events and turns whose nodes are fetched from memory together; see [`State::fetch`].
const TOGETHER: usize = 16;

/// Runs a program on every node; also tells the virtual time at the end.
pub(super) fn run<T>(
    overlay: &Overlay,
    model: &Model,
    run: u32,
    interrupt: Option<&Interrupt>,
    mut program: impl FnMut(Port) -> Program<T>,
) -> (Result<Vec<(NodeId, T)>>, Ticks) {
    let state = RefCell::new(State::new(overlay, model));
    let shared = Rc::new(Shared { overlay: overlay.clone(), run, seed: model.seed, state, shelf: RefCell::default() });
    // Leftovers may hold ports, and those the state: it is taken apart at the end, and when a program panics.
    let _leftovers = Leftovers(shared.clone());
    let nodes = overlay.placement.nodes();
    let port = |node| Rc::new(SimPort { node, shared: shared.clone() });
    let programs: Vec<_> = (0..nodes).map(|node| Some(program(port(node)))).collect();
    let results = (0..nodes).map(|_| None).collect();
    let mut engine = Engine { shared: shared.clone(), programs, results, live: nodes };
    let outcome = engine.go(interrupt);
    let Engine { programs, results, .. } = engine;
    drop(programs);
    let elapsed = shared.state.borrow().now;
    let results = outcome.map(|()| (0..).zip(results).filter_map(|(node, result)| Some((node, result?))).collect());
    (results, elapsed)
}

struct Leftovers(Rc<Shared>);

impl Drop for Leftovers {
    fn drop(&mut self) {
        let taken = {
            let mut state = self.0.state.borrow_mut();
            (std::mem::take(&mut state.nodes), std::mem::take(&mut state.calendar), std::mem::take(&mut state.workers))
        };
        drop(taken);
    }
}

struct Engine<T> {
    shared: Rc<Shared>,
    programs: Vec<Option<Program<T>>>,
    results: Vec<Option<T>>,
    /// Nodes whose programs go on.
    live: u32,
}

impl<T> Engine<T> {
    fn go(&mut self, interrupt: Option<&Interrupt>) -> Result<()> {
        for node in 0..self.programs.len() as NodeId {
            self.turn(node)?;
        }
        let mut ready = Vec::new();
        while self.live > 0 {
            if interrupt.is_some_and(Interrupt::is_overdue) {
                return Err(Error::Interrupted);
            }
            self.instant()?;
            std::mem::swap(&mut ready, &mut self.shared.state.borrow_mut().ready);
            for nodes in ready.chunks(TOGETHER) {
                self.shared.state.borrow().fetch_nodes(nodes);
                for &node in nodes {
                    self.turn(node)?;
                }
            }
            ready.clear();
        }
        // One of the last programs may have failed to send something, and have ended in the same instant.
        self.shared.state.borrow_mut().failure.take().map_or(Ok(()), Err)
    }

    /// Lets the next instant's events happen.
    fn instant(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        let overlay = &shared.overlay;
        if let Some(why) = shared.state.borrow_mut().failure.take() {
            return Err(why);
        }
        let Some((at, mut events)) = shared.state.borrow_mut().calendar.turn() else {
            return Err(report::stuck(&self.shared, Reason::NothingLeft));
        };
        if at == Ticks::MAX {
            // What never happens is entered here, too.
            let is_never = |due: &Due| matches!(due, Due::Timer(_) | Due::Lose(_) | Due::Signal(_));
            return Err(match events.iter().all(is_never) {
                true => report::stuck(&self.shared, Reason::NothingLeft),
                false => Error::usage(
                    "a simulation: tasks, messages or pauses take longer together than 2^64 ns (584 years), which is all that can be counted",
                ),
            });
        }
        if self.shared.state.borrow().disturbance.rules.shuffle {
            self.shuffle(at, &mut events);
        }
        let mut coming = events.drain(..);
        let mut fetched = 0;
        loop {
            if fetched == 0 {
                fetched = coming.len().min(TOGETHER);
                shared.state.borrow().fetch(&coming.as_slice()[..fetched]);
            }
            let Some(due) = coming.next() else { break };
            fetched -= 1;
            let mut state = shared.state.borrow_mut();
            if state.is_void(&due, at) {
                continue;
            }
            state.now = at;
            match due {
                Due::Deliver(message) => state.deliver(overlay, message),
                Due::Leave(message) => state.leave(overlay, message),
                Due::LeaveHost(message) => state.leave_host(overlay, message),
                Due::Head(message) => state.head(overlay, message),
                Due::ReachRank(message) => state.reach_rank(overlay, message),
                Due::Hop(message, node) => state.forward(overlay, message, node),
                Due::Wake(node) => state.woken(node),
                Due::Timer(node) => {
                    while let Some(event) = state.timer(node) {
                        state.tell(node, event);
                    }
                }
                Due::Signal(signal) => {
                    for node in 0..state.nodes.len() as NodeId {
                        state.tell(node, Event::Signal(signal));
                    }
                }
                Due::Submit(work) => {
                    drop(state);
                    self.submit(work);
                }
                Due::Finish(ended) => {
                    drop(state);
                    self.finish(*ended);
                }
                Due::Lose(rank) => {
                    drop(state);
                    self.lose(rank);
                }
            }
        }
        drop(coming);
        let mut state = shared.state.borrow_mut();
        state.calendar.give_back(events);
        let idle = state.now.saturating_sub(state.progress);
        if state.running == 0 && (idle > state.model.timeout || state.polls > LOOKS.0.max(LOOKS.1 * state.nodes.len() as u64)) {
            drop(state);
            return Err(report::stuck(&self.shared, Reason::NoProgress));
        }
        Ok(())
    }

    /// Puts the messages of different pairs that arrive at one instant into random order.
    fn shuffle(&self, at: Ticks, events: &mut [Due]) {
        let state = self.shared.state.borrow();
        events.sort_by_cached_key(|due| match due {
            Due::Deliver(message) => state.disturbance.shuffle_key(&message.envelope, at),
            _ => 0,
        });
    }

    /// A node's turn: its program, then a slice of its work.
    fn turn(&mut self, node: NodeId) -> Result<()> {
        {
            let mut state = self.shared.state.borrow_mut();
            let now = state.now;
            let own = &mut state.nodes[node as usize];
            own.ready = false;
            if own.ended {
                return Ok(());
            }
            own.clock = own.clock.max(now);
            own.waits = Waits::Unknown;
            own.since = now;
        }
        let Some(program) = &mut self.programs[node as usize] else { return Ok(()) };
        match program.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => {
                self.results[node as usize] = Some(result?);
                self.end(node);
            }
            Poll::Pending => self.slice(node),
        }
        Ok(())
    }

    /// A node's program has ended, or its rank is lost.
    fn end(&mut self, node: NodeId) {
        let left = self.shared.state.borrow_mut().end(node);
        self.live -= 1;
        self.programs[node as usize] = None;
        drop(left);
    }

    /// One slice of the node's sliced work, if it has any and the world has caught up with its clock.
    fn slice(&mut self, node: NodeId) {
        let (mut slices, budget, now) = {
            let mut state = self.shared.state.borrow_mut();
            let (now, budget) = (state.now, state.model.slice);
            let NodeState { clock, rest: Some(rest), .. } = &mut state.nodes[node as usize] else { return };
            if rest.slices.is_empty() {
                return;
            }
            if *clock > now {
                return state.wake(node);
            }
            let Some(slices) = rest.slices.pop_front() else { return };
            (slices, budget, now)
        };
        let began = *slices.began.get_or_insert(now);
        let step = slices.job.step(budget);
        let mut state = self.shared.state.borrow_mut();
        let rank = self.shared.overlay.placement.rank_of(node);
        let (Step::More { spent } | Step::Done { spent, .. }) = &step;
        let until = now.saturating_add(state.scaled(rank, *spent).max(1));
        slices.spent = slices.spent.saturating_add((*spent).max(1));
        state.nodes[node as usize].clock = until;
        state.progressed(until);
        match step {
            Step::More { .. } => {
                let rest = state.nodes[node as usize].rest.get_or_insert_default();
                rest.slices.push_front(slices);
            }
            Step::Done { output, .. } => {
                let finished = Finished { work: slices.work, output, began, ended: until, needed: Needed::all(slices.spent) };
                let ended = Ended { node, scope: slices.scope, finished, opaque: false };
                state.calendar.enter(until, Due::Finish(Box::new(ended)));
                drop(state);
                drop(slices.job);
                return;
            }
        }
        state.wake(node);
    }

    /// Hands opaque work to its rank's workers.
    fn submit(&mut self, work: Box<Opaque>) {
        let rank = self.shared.overlay.placement.rank_of(work.node);
        {
            let mut state = self.shared.state.borrow_mut();
            if state.is_lost(rank) {
                drop(state);
                return;
            }
            let most = state.model.workers;
            let workers = state.workers.entry(rank).or_default();
            if workers.busy == most {
                workers.queue.push_back(work);
                return;
            }
            workers.busy += 1;
        }
        self.begin(rank, work);
    }

    /// A worker of the rank begins the work, or the next that waits if its node has ended.
    fn begin(&mut self, rank: RankId, work: Box<Opaque>) {
        let mut next = Some(work);
        while let Some(work) = next {
            if !self.shared.state.borrow().nodes[work.node as usize].ended {
                return self.compute(rank, *work);
            }
            drop(work);
            next = self.next_work(rank);
        }
    }

    /// The next work that waits for the rank's workers; one of them gets free if there is none.
    fn next_work(&mut self, rank: RankId) -> Option<Box<Opaque>> {
        let mut state = self.shared.state.borrow_mut();
        let workers = state.workers.get_mut(&rank)?;
        let next = workers.queue.pop_front();
        if next.is_none() {
            workers.busy -= 1;
        }
        next
    }

    fn compute(&mut self, rank: RankId, work: Opaque) {
        let mut meter = Meter { computed: 0, slept: 0 };
        let output = (work.job)(&mut meter);
        let mut state = self.shared.state.borrow_mut();
        let began = state.now;
        let took = state.scaled(rank, meter.computed).saturating_add(meter.slept).max(1);
        let ended = began.saturating_add(took);
        state.running += 1;
        state.progressed(began);
        // Everything takes a tick.
        let needed = Needed { processor: meter.computed.max(u64::from(meter.slept == 0)), asleep: meter.slept };
        let finished = Finished { work: work.work, output, began, ended, needed };
        let due = Due::Finish(Box::new(Ended { node: work.node, scope: work.scope, finished, opaque: true }));
        state.calendar.enter(ended, due);
    }

    fn finish(&mut self, ended: Ended) {
        let rank = self.shared.overlay.placement.rank_of(ended.node);
        let lost = {
            let mut state = self.shared.state.borrow_mut();
            let now = state.now;
            state.progressed(now);
            state.running -= u64::from(ended.opaque);
            state.is_lost(rank)
        };
        if lost {
            return;
        }
        if ended.opaque
            && let Some(next) = self.next_work(rank)
        {
            self.begin(rank, next);
        }
        let Ended { node, scope, finished, .. } = ended;
        self.shared.state.borrow_mut().tell(node, Event::Finished { scope, finished });
    }

    /// Ends a rank with the programs of its nodes; the other nodes receive an event.
    fn lose(&mut self, rank: RankId) {
        let work = {
            let mut state = self.shared.state.borrow_mut();
            if !state.lost.insert(rank) {
                return;
            }
            state.workers.remove(&rank)
        };
        drop(work);
        for node in self.shared.overlay.placement.nodes_on(rank) {
            self.results[node as usize] = None;
            if !self.shared.state.borrow().nodes[node as usize].ended {
                self.end(node);
            }
        }
        let mut state = self.shared.state.borrow_mut();
        for node in 0..state.nodes.len() as NodeId {
            state.tell(node, Event::RankLost(rank));
        }
    }
}

/// Adds up the time that opaque work says it takes.
struct Meter {
    computed: Ticks,
    slept: Ticks,
}

impl Worker for Meter {
    fn checkpoint(&mut self) {}

    fn charge(&mut self, ticks: Ticks) {
        self.computed = self.computed.saturating_add(ticks);
    }

    fn sleep(&mut self, ticks: Ticks) {
        self.slept = self.slept.saturating_add(ticks);
    }

    fn spin(&mut self, ticks: Ticks) {
        self.charge(ticks);
    }
}
