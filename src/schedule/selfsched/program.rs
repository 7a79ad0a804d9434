//! The rank program: node 0 coordinates and works, all others work; with a coordinator per host its first rank does.
//!
//! 1. A rank that runs dry, or soon will, asks its coordinator and tells what it has measured since it asked last. Where tasks are short it
//!    asks for several chunks at a time, so that a message is not the price of every task.
//! 2. The [coordinator](super::coordinator) deals out tasks, to ranks that ask at the same time in order of their numbers; the tasks of one rank
//!    travel together. A rank that asks while no task has arrived waits until one does.
//! 3. A rank that hears that nothing is left finishes what it holds and says so.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::coordinator::{Coordinator, DEMAND, Demand, GRANT, Grant, SUPPLY};
use super::role::Role;
use super::rules::Measured;
use crate::error::{Error, Result};
use crate::load::Cost;
use crate::node::{Event, Message, Node, Tag, Ticks, TimerId, open};
use crate::schedule::independent::{Chunk, Effort, Executor, Figures, Independent, IndependentResult, Pace, collect};
use crate::topology::NodeId;

/// Node that waits for the end.
const FIRST: NodeId = 0;

const REQUEST: Tag = crate::node::tags::independent::REQUEST;
const FINISHED: Tag = crate::node::tags::independent::FINISHED;

/// Maximum time before it runs dry at which a rank asks, as a multiple of the usual one.
const MOST_AHEAD: Ticks = 8;

/// Time for which short tasks are executed between two polls of the network.
const SLICE: Ticks = 50_000;

/// Limits of a coordinator that executes short tasks: it polls the network after this time, or after this number of grants to itself.
const POLL_EVERY: Ticks = 10_000;
const MOST_DEALS: u32 = 16;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    /// Since the last request.
    measured: Measured,
    /// Number of chunks requested.
    chunks: u64,
    /// Time at which the rank has finished what it holds, by the model.
    free: Cost,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Finished {
    /// Time at which the rank had finished everything, by the model.
    free: Cost,
    /// Requests that it granted.
    grants: u64,
}

/// One node's part. With `counts_overhead` it measures the time between the ends of chunks, what assignments cost included, instead of the tasks'
/// own.
///
/// # Errors
/// If a rank is lost.
pub async fn execute(
    node: Node,
    work: Arc<dyn Independent>,
    pace: Pace,
    outstanding: u64,
    counts_overhead: bool,
    role: impl FnOnce(&Node, Ticks) -> Result<Role>,
) -> Result<Option<IndependentResult>> {
    let (node, recorder) = node.recorded();
    let executor = Executor::new(node.clone(), work.clone());
    let begun = node.now();
    let role = role(&node, begun)?;
    let mut program = Program {
        begun,
        executor: if pace.by_model { executor } else { executor.executing_short_tasks(&pace) },
        role,
        work,
        pace,
        requests: Requests { ahead: pace.ahead, outstanding, asked: 0, chunk: 1 },
        ended: false,
        free: 0,
        measured: Measured::default(),
        counts_overhead,
        last_end: node.now(),
        reminder: None,
        reports: Reports::default(),
        node,
    };
    program.run().await?;
    let Program { node, executor, pace, begun, reports: Reports { grants, latest, .. }, .. } = program;
    let elapsed = node.now() - begun;
    let counts = recorder.get();
    let figures = Figures { elapsed, messages: counts.messages, bytes: counts.bytes, ..executor.figures };
    let mine = (node.me() == FIRST).then(|| {
        let makespan = if pace.by_model { latest } else { pace.cost(elapsed) };
        (makespan as f64 / crate::load::CYCLE as f64, Effort { decisions: grants, ..Effort::default() })
    });
    collect(&node, figures, mine).await
}

struct Program {
    node: Node,
    work: Arc<dyn Independent>,
    pace: Pace,
    executor: Executor,
    begun: Ticks,
    role: Role,
    requests: Requests,
    /// Whether there is nothing left for this node.
    ended: bool,
    /// Time at which this node has finished what it holds, by the model.
    free: Cost,
    measured: Measured,
    /// Whether the time between the ends of chunks is measured.
    counts_overhead: bool,
    last_end: Ticks,
    /// Timer for the next request.
    reminder: Option<TimerId>,
    reports: Reports,
}

/// A rank's requests for chunks.
struct Requests {
    /// Time before it runs dry at which the rank asks; adapts to the delay of earlier answers.
    ahead: Ticks,
    /// Requests that may be under way at a time, and that are.
    outstanding: u64,
    asked: u64,
    /// Tasks that the last answer brought for each request.
    chunk: u64,
}

/// Knowledge about the nodes that report here.
#[derive(Default)]
struct Reports {
    /// Number of those that have finished.
    finished: u32,
    /// The latest end by the model.
    latest: Cost,
    grants: u64,
}

impl Reports {
    fn add(&mut self, finished: Finished) {
        self.finished += 1;
        self.latest = self.latest.max(finished.free);
        self.grants += finished.grants;
    }
}

impl Program {
    async fn run(&mut self) -> Result<()> {
        loop {
            self.ask();
            self.serve();
            if self.ended && self.executor.held() == 0 {
                break;
            }
            self.go_on().await?;
        }
        // A coordinator goes on until all have finished that report to it.
        self.reports.add(Finished { free: self.free, grants: 0 });
        while self.reports.finished < self.role.reports {
            self.next().await?;
            self.serve();
        }
        self.reports.grants += self.role.coordinators().map(|coordinator| coordinator.grants).sum::<u64>();
        if let Some(to) = self.role.reports_to {
            self.node.send(to, FINISHED, &Finished { free: self.reports.latest, grants: self.reports.grants });
        }
        Ok(())
    }

    /// Executes short tasks, or waits; hears what has come.
    async fn go_on(&mut self) -> Result<()> {
        if self.executor.is_short() {
            self.execute_short_ones();
            let Some(event) = self.node.try_event().await else { return Ok(()) };
            self.happened(event)?;
        } else {
            self.next().await?;
        }
        while !self.pace.by_model
            && let Some(event) = self.node.event_at_hand()
        {
            self.happened(event)?;
        }
        Ok(())
    }

    /// Executes short tasks until it is time to poll the network. What a coordinator deals to itself takes no message, so a poll would cost
    /// more than many of the shortest ones: it deals to itself several times before.
    fn execute_short_ones(&mut self) {
        let mut spent = 0;
        for _ in 0..MOST_DEALS {
            let (tasks, took) = self.executor.at_once(SLICE);
            self.note(tasks, took);
            spent += took;
            if self.role.own.is_none() || spent >= POLL_EVERY {
                break;
            }
            self.ask();
            self.serve();
            if !self.executor.is_short() {
                break;
            }
        }
    }

    async fn next(&mut self) -> Result<()> {
        let event = self.node.next_event().await;
        self.happened(event)
    }

    fn note(&mut self, tasks: u64, took: Ticks) {
        let now = self.node.now();
        let took = if self.counts_overhead && tasks > 0 { took.max(now.saturating_sub(self.last_end)) } else { took };
        let (count, time) = (tasks as f64, took as f64);
        self.measured.add(Measured { tasks, time, squares: time * time / count.max(1.0) });
        self.last_end = now;
    }

    fn happened(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Message(message) => self.hear(&message),
            Event::Finished { finished, .. } => {
                let done = self.executor.finished(finished)?;
                self.note(done.tasks.count(), done.took);
                Ok(())
            }
            Event::Timer { timer, .. } => {
                let is_theirs = |coordinator: &mut Option<Coordinator>| coordinator.as_mut().is_some_and(|it| it.timer(timer));
                if !is_theirs(&mut self.role.own) && !is_theirs(&mut self.role.top) {
                    self.reminder = None;
                }
                self.take_own();
                Ok(())
            }
            Event::Signal(_) => Ok(()),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
        }
    }

    fn hear(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        match message.envelope.tag {
            tag if tag == REQUEST.id() => {
                let Request { measured, chunks, free } = open(message, REQUEST)?;
                if let Some(own) = &mut self.role.own {
                    own.requested(from, &[measured], chunks, free);
                }
            }
            tag if tag == DEMAND.id() => {
                let Demand { measured, rounds } = open(message, DEMAND)?;
                if let Some(top) = &mut self.role.top {
                    top.requested(from, &measured, rounds, 0);
                }
            }
            tag if tag == SUPPLY.id() => {
                let grant = open(message, SUPPLY)?;
                if let Some(own) = &mut self.role.own {
                    own.supply(grant);
                }
            }
            tag if tag == FINISHED.id() => self.reports.add(open(message, FINISHED)?),
            tag if tag == GRANT.id() => {
                let grant: Grant = open(message, GRANT)?;
                self.executor.figures.migrated += grant.chunks.iter().map(Chunk::count).sum::<u64>();
                self.granted(grant);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks for tasks if it is time; sees to it that it is looked at again when it will be.
    fn ask(&mut self) {
        let chunks = if self.ended { 0 } else { self.wanted() };
        if chunks == 0 {
            return;
        }
        self.requests.asked += chunks;
        let request = Request { measured: std::mem::take(&mut self.measured), chunks, free: self.free };
        match &mut self.role.own {
            None => self.node.send(self.role.coordinator, REQUEST, &request),
            Some(own) => own.requested(self.node.me(), &[request.measured], chunks, request.free),
        }
    }

    /// Serves all pending requests, by the clock, and fetches the tasks for them.
    fn serve(&mut self) {
        self.role.top.iter_mut().for_each(Coordinator::serve);
        self.role.take_supply();
        while let Some(own) = &mut self.role.own {
            own.serve();
            let Some((to, demand)) = own.demand() else { break };
            match &mut self.role.top {
                Some(top) => {
                    top.requested(to, &demand.measured, demand.rounds, 0);
                    top.serve();
                }
                None => self.node.send(to, DEMAND, &demand),
            }
            if !self.role.take_supply() {
                break;
            }
        }
        self.take_own();
    }

    /// Takes what this node's own coordinator has dealt to it.
    fn take_own(&mut self) {
        let dealt = self.role.own.as_mut().map(Coordinator::own).unwrap_or_default();
        for grant in dealt {
            // A host's coordinator has its tasks from another node.
            if self.role.reports_to.is_some() {
                self.executor.figures.migrated += grant.chunks.iter().map(Chunk::count).sum::<u64>();
            }
            self.granted(grant);
        }
    }

    /// Number of chunks to request now, so that the node does not run dry while the answer is under way.
    fn wanted(&mut self) -> u64 {
        let held = self.executor.held();
        let mean = match self.executor.mean() {
            Some(mean) if !self.pace.by_model => mean.max(1),
            _ => return u64::from(held == 0 && self.requests.asked == 0),
        };
        let now = self.node.now();
        let since = if held > 0 { self.last_end } else { now };
        let coming = held + self.requests.asked * self.requests.chunk;
        // What is executed now may take longer than what was before: as in sash's forecast it is expected to take another half of its delay. Otherwise a
        // rank with a long task after short ones would fetch more and more.
        let first_ends = since.saturating_add(mean.saturating_mul(self.executor.first_piece()));
        let late = if held > 0 { now.saturating_sub(first_ends) } else { 0 };
        let runs_dry = since.saturating_add(mean.saturating_mul(coming)).saturating_add(late + late / 2);
        // A rank that is dry asks even if nothing is to be fetched ahead.
        let lacks = (now + self.requests.ahead).saturating_sub(runs_dry).max(u64::from(coming == 0));
        if lacks == 0 {
            // Without tasks the answer that is under way is what happens next.
            if held == 0 {
                return 0;
            }
            if let Some(timer) = self.reminder.take() {
                self.node.cancel_timer(timer);
            }
            self.reminder = Some(self.node.set_timer(runs_dry - self.requests.ahead));
            return 0;
        }
        let needs = lacks.div_ceil(mean.saturating_mul(self.requests.chunk).max(1));
        let may = self.requests.outstanding.saturating_sub(self.requests.asked);
        // Many small requests would cost more than one that is a little later.
        if needs <= may || 2 * may >= self.requests.outstanding { needs.min(may) } else { 0 }
    }

    fn granted(&mut self, grant: Grant) {
        self.requests.asked = self.requests.asked.saturating_sub(grant.answers);
        self.ended = grant.ended;
        let tasks: u64 = grant.chunks.iter().map(Chunk::count).sum();
        if tasks == 0 {
            return;
        }
        self.requests.chunk = tasks.div_ceil(grant.answers.max(1));
        let was_dry = self.executor.held() == 0;
        if was_dry {
            self.last_end = self.node.now();
        }
        self.adapt(was_dry);
        let mut due = None;
        if self.pace.by_model {
            let begin = self.free.max(grant.at);
            due = Some(self.begun.saturating_add(self.pace.ticks(begin)));
            let (costs, rank) = (self.work.costs(), self.node.rank_of(self.node.me()).index());
            self.free = begin;
            grant.chunks.iter().for_each(|chunk| chunk.for_each(|task| self.free = self.free.saturating_add(costs.of(task, rank))));
        }
        for chunk in grant.chunks {
            self.executor.take(chunk, due.take());
        }
    }

    /// Asks earlier if tasks came when the rank had none any more, and in time again if that doesn't go on.
    fn adapt(&mut self, came_late: bool) {
        // A rank that waits for tasks to arrive hasn't asked too late, nor has one that asks for the first time.
        if !self.work.arrivals().is_empty() || self.executor.mean().is_none() {
            return;
        }
        self.requests.ahead = match came_late {
            true => (self.requests.ahead + self.requests.ahead / 4).min(MOST_AHEAD * self.pace.ahead),
            false => (self.requests.ahead - self.requests.ahead / 32).max(self.pace.ahead),
        };
    }
}
