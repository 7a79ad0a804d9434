//! The rank program: node 0 coordinates and works, all others work.
//!
//! 1. A rank that runs dry, or soon will, asks the coordinator and tells what it has measured since it asked last. Where tasks are short it
//!    asks for several lots at a time, so that a message is not the price of every task.
//! 2. The coordinator deals out tasks, those who ask at the same time in order of their numbers; what one rank gets travels together. Who
//!    asks while nothing has arrived waits until something does.
//! 3. A rank that is told that there is nothing left finishes what it holds and says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dealer::{Deal, Dealer};
use super::rules::Measured;
use crate::error::{Error, Result};
use crate::load::Cost;
use crate::node::{Event, Message, Node, Tag, Ticks, TimerId, open};
use crate::schedule::independent::{Effort, Figures, Hands, Independent, Lot, Outcome, Pace, collect, lot};
use crate::topology::NodeId;

const COORDINATOR: NodeId = 0;

const REQUEST: Tag = Tag::background(0x0601, "request for tasks");
const GRANT: Tag = Tag::new(0x0602, "grant of tasks");
const FINISHED: Tag = Tag::new(0x0603, "end of tasks");

/// By the model messages take no time, but a tick in the simulator: those who ask at the same time are heard within so many.
const SAME_TIME: Ticks = 3;

/// Short tasks are executed for so long between two looks at the network.
const SLICE: Ticks = 50_000;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    /// Since the last request.
    measured: Measured,
    /// How many lots are asked for.
    lots: u64,
    /// When the rank has finished what it holds, by the model.
    free: Cost,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Grant {
    /// What was dealt, and for how many requests; those that follow each other in one.
    lots: Vec<Lot>,
    answers: u64,
    /// Whether there is nothing left for the rank.
    ended: bool,
    /// When it is given, by the model.
    at: Cost,
}

/// One node's part. `dealer` is the coordinator's.
///
/// # Errors
/// If a rank is lost.
pub async fn execute(
    node: Node,
    work: Arc<dyn Independent>,
    pace: Pace,
    outstanding: u64,
    dealer: Option<Dealer>,
) -> Result<Option<Outcome>> {
    let (node, recorder) = node.recorded();
    let hands = Hands::new(node.clone(), work.clone());
    let mut program = Program {
        begun: node.now(),
        hands: if pace.by_model { hands } else { hands.executing_short_tasks() },
        dealer,
        work,
        pace,
        outstanding,
        asked: 0,
        lot: 1,
        ended: false,
        free: 0,
        measured: Measured::default(),
        last_end: node.now(),
        pending: BTreeSet::new(),
        hearing: None,
        asking: Vec::new(),
        patient: Vec::new(),
        arrival: None,
        reminder: None,
        finished: 0,
        latest: 0,
        grants: 0,
        node,
    };
    program.run().await?;
    let Program { node, hands, pace, begun, grants, latest, dealer, .. } = program;
    let elapsed = node.now() - begun;
    let counts = recorder.get();
    let figures = Figures { elapsed, messages: counts.messages, bytes: counts.bytes, ..hands.figures };
    let mine = dealer.map(|_| {
        let makespan = if pace.by_model { latest } else { pace.cost(elapsed) };
        (makespan as f64 / crate::load::CYCLE as f64, Effort { decisions: grants, ..Effort::default() })
    });
    collect(&node, figures, mine).await
}

struct Program {
    node: Node,
    work: Arc<dyn Independent>,
    pace: Pace,
    hands: Hands,
    begun: Ticks,
    /// Requests that may be under way at a time, and that are; tasks that the last of them brought.
    outstanding: u64,
    asked: u64,
    lot: u64,
    /// Whether there is nothing left for us.
    ended: bool,
    /// When we have finished what we hold, by the model.
    free: Cost,
    measured: Measured,
    last_end: Ticks,
    /// When to ask.
    reminder: Option<TimerId>,
    dealer: Option<Dealer>,
    /// At the coordinator: who asks by the model, sorted; when all who ask at the same time have been heard; who asks by the clock, for how
    /// many lots; who waits for tasks to arrive, and when the next does; ranks that have finished; the latest of them by the model; what was given.
    pending: BTreeSet<(Cost, NodeId)>,
    hearing: Option<TimerId>,
    asking: Vec<(NodeId, u64)>,
    patient: Vec<(NodeId, u64)>,
    arrival: Option<TimerId>,
    finished: u32,
    latest: Cost,
    grants: u64,
}

impl Program {
    async fn run(&mut self) -> Result<()> {
        loop {
            self.ask();
            self.serve();
            if self.ended && self.hands.held() == 0 {
                break;
            }
            self.go_on().await?;
        }
        if self.dealer.is_none() {
            self.node.send(COORDINATOR, FINISHED, &self.free);
            return Ok(());
        }
        self.finish(self.free);
        while self.finished < self.node.nodes() {
            self.serve();
            self.next().await?;
        }
        Ok(())
    }

    /// Executes short tasks, or waits; hears what has come.
    async fn go_on(&mut self) -> Result<()> {
        if !self.hands.is_short() {
            self.next().await?;
        } else {
            let (tasks, took) = self.hands.at_once(SLICE);
            self.note(tasks, took);
            let Some(event) = self.node.try_event().await else { return Ok(()) };
            self.happened(event)?;
        }
        while !self.pace.by_model
            && let Some(event) = self.node.event_at_hand()
        {
            self.happened(event)?;
        }
        Ok(())
    }

    fn finish(&mut self, free: Cost) {
        self.finished += 1;
        self.latest = self.latest.max(free);
    }

    async fn next(&mut self) -> Result<()> {
        let event = self.node.next_event().await;
        self.happened(event)
    }

    fn note(&mut self, tasks: u64, took: Ticks) {
        let (count, time) = (tasks as f64, took as f64);
        self.measured.add(Measured { tasks, time, squares: time * time / count.max(1.0) });
        self.last_end = self.node.now();
    }

    fn happened(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Message(message) => self.hear(&message),
            Event::Finished { finished, .. } => {
                let done = self.hands.finished(finished)?;
                self.note(done.tasks.count(), done.took);
                Ok(())
            }
            Event::Timer { timer, .. } if self.hearing == Some(timer) || self.arrival == Some(timer) => {
                let arrived = (self.arrival == Some(timer)).then(|| self.pace.cost(self.node.now() - self.begun));
                self.hearing = self.hearing.filter(|hearing| *hearing != timer);
                self.arrival = self.arrival.filter(|arrival| *arrival != timer);
                if arrived.is_some() {
                    self.asking.splice(0..0, self.patient.drain(..));
                }
                for (free, from) in std::mem::take(&mut self.pending) {
                    self.grant(from, 1, free, arrived.map_or(free, |now| free.max(now)));
                }
                Ok(())
            }
            Event::Timer { .. } => {
                self.reminder = None;
                Ok(())
            }
            Event::Signal(_) => Ok(()),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
        }
    }

    fn hear(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        match message.envelope.tag {
            tag if tag == REQUEST.id() => self.requested(from, open(message, REQUEST)?),
            tag if tag == FINISHED.id() => self.finish(open(message, FINISHED)?),
            tag if tag == GRANT.id() => {
                let grant: Grant = open(message, GRANT)?;
                self.hands.figures.migrated += grant.lots.iter().map(Lot::count).sum::<u64>();
                self.granted(grant);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks for tasks if it is time; sees to it that it is looked at again when it will be.
    fn ask(&mut self) {
        let lots = if self.ended { 0 } else { self.wanted() };
        if lots == 0 {
            return;
        }
        self.asked += lots;
        let request = Request { measured: std::mem::take(&mut self.measured), lots, free: self.free };
        match self.dealer {
            None => self.node.send(COORDINATOR, REQUEST, &request),
            Some(_) => self.requested(COORDINATOR, request),
        }
    }

    /// How many lots to ask for now: as many as it takes not to run dry while the answer is under way.
    fn wanted(&mut self) -> u64 {
        let held = self.hands.held();
        let mean = match self.hands.mean() {
            Some(mean) if !self.pace.by_model => mean.max(1),
            _ => return u64::from(held == 0 && self.asked == 0),
        };
        let now = self.node.now();
        let since = if held > 0 { self.last_end } else { now };
        let coming = held + self.asked * self.lot;
        let runs_dry = since.saturating_add(mean.saturating_mul(coming));
        let lacks = (now + self.pace.ahead).saturating_sub(runs_dry);
        if lacks == 0 {
            // Without tasks the answer that is under way is what happens next.
            if held == 0 {
                return 0;
            }
            if let Some(timer) = self.reminder.take() {
                self.node.cancel_timer(timer);
            }
            self.reminder = Some(self.node.set_timer(runs_dry - self.pace.ahead));
            return 0;
        }
        let needs = lacks.div_ceil(mean.saturating_mul(self.lot).max(1));
        let may = self.outstanding.saturating_sub(self.asked);
        // Many small requests would cost more than one that is a little later.
        if needs <= may || 2 * may >= self.outstanding { needs.min(may) } else { 0 }
    }

    fn requested(&mut self, from: NodeId, request: Request) {
        if let Some(dealer) = &mut self.dealer {
            dealer.learn(self.node.rank_of(from) as usize, request.measured);
        }
        if self.pace.by_model {
            self.pending.insert((request.free, from));
            if self.hearing.is_none() {
                self.hearing = Some(self.node.set_timer(self.node.now() + SAME_TIME));
            }
            return;
        }
        match self.asking.iter_mut().find(|(asks, _)| *asks == from) {
            Some((_, lots)) => *lots += request.lots,
            None => self.asking.push((from, request.lots)),
        }
    }

    /// Serves all who ask, by the clock.
    fn serve(&mut self) {
        if self.asking.is_empty() {
            return;
        }
        let now = self.pace.cost(self.node.now() - self.begun);
        for at in 0..self.asking.len() {
            let (from, lots) = self.asking[at];
            self.grant(from, lots, now, now);
        }
        self.asking.clear();
    }

    /// Deals out what a rank gets at this time, which asks since a time of its own. What is to come later, it waits for.
    fn grant(&mut self, to: NodeId, lots: u64, since: Cost, at: Cost) {
        let rank = self.node.rank_of(to) as usize;
        let Some(dealer) = &mut self.dealer else { return };
        let mut grant = Grant { lots: Vec::with_capacity(1), answers: 0, ended: false, at };
        let mut later = None;
        while grant.answers < lots && later.is_none() && !grant.ended {
            match dealer.deal(rank, at) {
                Deal::Lot(dealt) => {
                    lot::push(&mut grant.lots, dealt);
                    grant.answers += 1;
                }
                Deal::Later(arrival) => later = Some(arrival),
                Deal::Nothing => grant.ended = true,
            }
        }
        self.grants += grant.answers;
        if let Some(arrival) = later {
            match self.pace.by_model {
                true => _ = self.pending.insert((since, to)),
                false => self.patient.push((to, lots - grant.answers)),
            }
            if self.arrival.is_none() {
                let at = self.begun + self.pace.ticks(arrival);
                self.arrival = Some(self.node.set_timer(at.max(self.node.now())));
            }
        }
        if grant.answers == 0 && !grant.ended {
            return;
        }
        match to == self.node.me() {
            true => self.granted(grant),
            false => self.node.send(to, GRANT, &grant),
        }
    }

    fn granted(&mut self, grant: Grant) {
        self.asked = self.asked.saturating_sub(grant.answers);
        self.ended = grant.ended;
        let tasks: u64 = grant.lots.iter().map(Lot::count).sum();
        if tasks == 0 {
            return;
        }
        self.lot = tasks.div_ceil(grant.answers.max(1));
        if self.hands.held() == 0 {
            self.last_end = self.node.now();
        }
        let mut due = None;
        if self.pace.by_model {
            let begin = self.free.max(grant.at);
            due = Some(self.begun + self.pace.ticks(begin));
            let (costs, rank) = (self.work.costs(), self.node.rank_of(self.node.me()) as usize);
            self.free = begin;
            grant.lots.iter().for_each(|lot| lot.for_each(|task| self.free = self.free.saturating_add(costs.of(task, rank))));
        }
        for lot in grant.lots {
            self.hands.take(lot, due.take());
        }
    }
}
