//! The loop that runs the programs of a rank's nodes, and its waiting strategy.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use log::debug;

use super::carrier::Carrier;
use super::local_nodes::{Run, Waits};
use super::port::MpiPort;
use super::watchdog::ControlMessage;
use super::{abort, ffi};
use crate::error::Error;
use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::Program;
use crate::transport::{Port, Step};

/// Runs a program on every node of this rank, and returns when no message of the run is left on any rank. `None` on rank 0 if the run was given up
/// because a request to end is overdue: no other run can follow.
pub(super) fn run<T>(carrier: &Rc<Carrier>, overlay: &Overlay, mut program: impl FnMut(Port) -> Program<T>) -> Option<Vec<(NodeId, T)>> {
    let overlay = Rc::new(overlay.clone());
    let number = carrier.state.borrow_mut().begin(overlay.clone());
    let nodes = overlay.placement.nodes_on(carrier.rank);
    debug!("rank {}: run {number} begins on {overlay}; nodes {nodes:?} are here", carrier.rank);
    let mut programs: Vec<Option<Program<T>>> = Vec::with_capacity(nodes.len());
    for (local_node, &node) in nodes.iter().enumerate() {
        let port = MpiPort { carrier: carrier.clone(), overlay: overlay.clone(), node, local_node, run: number };
        programs.push(Some(program(Rc::new(port))));
    }
    let mut results: Vec<Option<T>> = nodes.iter().map(|_| None).collect();
    let mut left = programs.len();
    carrier.heartbeat.set_running(true);
    let mut pause = Pause::default();
    while left > 0 {
        for local_node in 0..programs.len() {
            if let Some(result) = poll(carrier, local_node, &mut programs[local_node]) {
                results[local_node] = Some(result);
                left -= 1;
            }
        }
        let worked = slice(carrier);
        let moved = poll_network(carrier, true);
        if gives_up(carrier) {
            return None;
        }
        pause.after(carrier, worked || moved);
    }
    drop(programs);
    debug!("rank {}: the programs of run {number} have ended; messages under way are awaited", carrier.rank);
    if !quiesce(carrier, true) {
        return None;
    }
    debug!("rank {}: run {number} has ended", carrier.rank);
    carrier.heartbeat.set_running(false);
    // Events left in the inboxes are dropped here, with the state not borrowed, since destructors may use it.
    let ended = carrier.state.borrow_mut().end();
    drop(ended);
    Some(nodes.into_iter().zip(results).filter_map(|(node, result)| Some((node, result?))).collect())
}

/// Returns true if this rank gives up the current run. Only rank 0 does: it has the record, and ends the job.
fn gives_up(carrier: &Carrier) -> bool {
    carrier.rank == RankId::FIRST && carrier.state.borrow().overdue
}

/// Lets a program go on if something has happened to its node. Its result, if it ended.
fn poll<T>(carrier: &Rc<Carrier>, local_node: usize, program: &mut Option<Program<T>>) -> Option<T> {
    let future = program.as_mut()?;
    {
        let mut state = carrier.state.borrow_mut();
        let local_node = &mut state.run.as_mut()?.local_nodes[local_node];
        if !std::mem::take(&mut local_node.dirty) {
            return None;
        }
    }
    let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { return None };
    *program = None;
    if let Some(run) = &mut carrier.state.borrow_mut().run {
        run.local_nodes[local_node].waits = Waits::Ended;
    }
    match result {
        Ok(result) => Some(result),
        Err(why) => fail(carrier, &why),
    }
}

/// One slice of the first sliced work. True if there was any.
fn slice(carrier: &Carrier) -> bool {
    let Some((owner, mut work)) = carrier.state.borrow_mut().slices.take(carrier.now()) else { return false };
    let budget = u64::try_from(carrier.options.slice.as_nanos()).unwrap_or(u64::MAX);
    // The state is free meanwhile: the work may send.
    match work.step(budget) {
        Step::More { .. } => carrier.state.borrow_mut().slices.put_back(owner, work),
        Step::Done { output, .. } => {
            drop(work);
            let state = &mut *carrier.state.borrow_mut();
            let finished = state.slices.done(owner, output, carrier.now());
            state.finished(owner, finished);
        }
    }
    true
}

fn poll_network(carrier: &Carrier, watched: bool) -> bool {
    carrier.heartbeat.beat();
    let moved = carrier.state.borrow_mut().poll(watched);
    moved.unwrap_or_else(|why| fail(carrier, &why))
}

/// Waits until every rank is here and all messages of the run have arrived where they were sent to. False if this was given up.
pub(super) fn quiesce(carrier: &Carrier, watched: bool) -> bool {
    /// Time that last messages have to leave where a rank is lost.
    const LAST_SENDS: Duration = Duration::from_secs(5);
    let has_losses = || !carrier.state.borrow().lost.is_empty();
    let summing = if has_losses() { Ok(None) } else { carrier.state.borrow_mut().count() };
    let mut summing = summing.unwrap_or_else(|why| fail(carrier, &why));
    let mut expected = None;
    let mut pause = Pause::default();
    let since = Instant::now();
    loop {
        let mut moved = poll_network(carrier, watched);
        if has_losses() && (carrier.state.borrow().outbox.len() == 0 || since.elapsed() > LAST_SENDS) {
            // After a loss the sum over all ranks can't be formed any more.
            return true;
        }
        if let (None, Some(sum), false) = (expected, &mut summing, has_losses()) {
            expected = sum.result().unwrap_or_else(|why| fail(carrier, &why));
            moved |= expected.is_some();
        }
        {
            let state = carrier.state.borrow();
            let received = state.run.as_ref().map_or(0, |run| run.received);
            if (summing.is_none() || expected == Some(received)) && state.outbox.len() == 0 && state.collectives.is_idle() {
                return true;
            }
        }
        if watched && gives_up(carrier) {
            return false;
        }
        pause.after(carrier, moved);
    }
}

/// Ends the job because of an error on this rank. If many ranks fail at once (they agreed on it, say), the lowest speaks for all.
pub(super) fn fail(carrier: &Carrier, why: &Error) -> ! {
    /// Time for which a rank listens whether a lower one fails too.
    const LISTEN: Duration = Duration::from_millis(100);
    /// Time for which it leaves the ending of the job to that one.
    const LEAVE: Duration = Duration::from_secs(5);
    debug!("rank {}: a program failed: {why}", carrier.rank);
    let state = &carrier.state;
    // An error of MPI here could not be reported any better than the one at hand, so it is ignored.
    for rank in RankId::all(carrier.ranks).filter(|rank| *rank > carrier.rank) {
        let _ = state.borrow_mut().tell(rank, ControlMessage::Failing);
    }
    if carrier.rank != RankId::FIRST {
        let since = Instant::now();
        while since.elapsed() < if state.borrow().lower_fails { LEAVE } else { LISTEN } {
            let _ = state.borrow_mut().poll(false);
            thread::sleep(Duration::from_micros(200));
        }
        if state.borrow().lower_fails {
            ffi::abort(why.exit_status());
        }
    }
    abort::job(&format!("equipoise: rank {}: {why}", carrier.rank), why.exit_status())
}

/// Waiting strategy of a rank between two polls of the network that found nothing: it polls again at once, then yields the processor, then
/// sleeps, ever longer. Too little of the first makes partners sleep in lockstep (measured: 407 us instead of 2 for an exchange). Any event
/// starts it anew.
#[derive(Default)]
struct Pause {
    polls: u32,
    since: Option<Instant>,
    /// Time at which a program that goes on by itself was last left.
    left: Option<Instant>,
    nap: Duration,
}

impl Pause {
    /// Looks before the rank lets others have the processor.
    const SPIN: u32 = 8;
    /// Minimum number of polls before it sleeps ..
    const LOOKS: u32 = 20;
    /// .. and this time.
    const AWAKE: Duration = Duration::from_micros(50);
    /// Minimum number of polls for a message from any node, per time that the rank has waited for it.
    const PATIENCE: u32 = 500;
    const FIRST_NAP: Duration = Duration::from_micros(20);
    /// A program that takes longer than this between two polls computes, and does not only ask.
    const COMPUTES: Duration = Duration::from_micros(20);

    fn after(&mut self, carrier: &Carrier, moved: bool) {
        if moved {
            *self = Pause::default();
            return;
        }
        self.polls += 1;
        if self.polls <= Pause::SPIN {
            std::hint::spin_loop();
            return;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let state = carrier.state.borrow();
        let run = state.run.as_ref();
        if run.is_some_and(Run::has_dirty) {
            // A rank with work does not give the processor away: it may be a while until it comes back.
            if self.left.replace(now).is_none_or(|left| now.duration_since(left) <= Pause::COMPUTES) {
                thread::yield_now();
            }
            return;
        }
        self.left = None;
        if self.polls < Pause::LOOKS || now.duration_since(since) < Pause::AWAKE {
            thread::yield_now();
            return;
        }
        let options = &carrier.options;
        // At the end of a run all wait for all.
        let open = run.is_none_or(|run| run.listens() || run.has_ended());
        let cap = match (state.pool.is_busy(), open) {
            (true, _) => options.prompt_nap,
            // A message after a long silence is answered within a small part of that silence.
            (false, true) => {
                (now.duration_since(since) / Pause::PATIENCE).clamp(options.prompt_nap, options.longest_nap.max(options.prompt_nap))
            }
            (false, false) => options.longest_nap,
        };
        let nap = self.nap.max(Pause::FIRST_NAP).min(cap);
        let nap = state.next_timer().map_or(nap, |timer| timer.min(nap));
        drop(state);
        // A worker that ends wakes us.
        thread::park_timeout(nap);
        self.nap = (nap * 2).min(cap);
    }
}
