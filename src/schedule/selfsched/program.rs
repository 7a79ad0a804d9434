//! The rank program: node 0 coordinates and works, all others work.
//!
//! 1. A rank that runs dry, or soon will, asks the coordinator and tells what it has measured since it asked last.
//! 2. The coordinator deals out tasks, those who ask at the same time in order of their numbers.
//! 3. A rank that is told that there is nothing left finishes what it holds and says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::dealer::{Dealer, Lot};
use super::rules::Measured;
use crate::error::{Error, Result};
use crate::load::Cost;
use crate::node::{Event, Message, Node, Tag, Ticks, TimerId, open};
use crate::schedule::independent::{Effort, Figures, Hands, Independent, Outcome, Pace, collect};
use crate::topology::NodeId;

const COORDINATOR: NodeId = 0;

const REQUEST: Tag = Tag::background(0x0601, "request for tasks");
const GRANT: Tag = Tag::new(0x0602, "grant of tasks");
const FINISHED: Tag = Tag::new(0x0603, "end of tasks");

/// By the model messages take no time, but a tick in the simulator: those who ask at the same time are heard within so many.
const SAME_TIME: Ticks = 3;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    /// Since the last request.
    measured: Measured,
    /// When the rank has finished what it holds, by the model.
    free: Cost,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Grant {
    lot: Lot,
    /// When it is given, by the model.
    at: Cost,
}

/// One node's part. `dealer` is the coordinator's.
///
/// # Errors
/// If a rank is lost.
pub async fn execute(node: Node, work: Arc<dyn Independent>, pace: Pace, dealer: Option<Dealer>) -> Result<Option<Outcome>> {
    let (node, recorder) = node.recorded();
    let mut program = Program {
        begun: node.now(),
        hands: Hands::new(node.clone(), work.clone()),
        dealer,
        work,
        pace,
        asked: false,
        ended: false,
        free: 0,
        measured: Measured::default(),
        last_end: node.now(),
        pending: BTreeSet::new(),
        hearing: None,
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
    /// Whether an answer is under way.
    asked: bool,
    /// Whether there is nothing left for us.
    ended: bool,
    /// When we have finished what we hold, by the model.
    free: Cost,
    measured: Measured,
    last_end: Ticks,
    /// When to ask.
    reminder: Option<TimerId>,
    dealer: Option<Dealer>,
    /// At the coordinator: who asks, sorted; when all who ask at the same time have been heard; ranks that have finished; the latest of them
    /// by the model; what was given.
    pending: BTreeSet<(Cost, NodeId)>,
    hearing: Option<TimerId>,
    finished: u32,
    latest: Cost,
    grants: u64,
}

impl Program {
    async fn run(&mut self) -> Result<()> {
        loop {
            self.ask();
            if self.ended && self.hands.held() == 0 {
                break;
            }
            self.next().await?;
        }
        if self.dealer.is_none() {
            self.node.send(COORDINATOR, FINISHED, &self.free);
            return Ok(());
        }
        self.finish(self.free);
        while self.finished < self.node.nodes() {
            self.next().await?;
        }
        Ok(())
    }

    fn finish(&mut self, free: Cost) {
        self.finished += 1;
        self.latest = self.latest.max(free);
    }

    async fn next(&mut self) -> Result<()> {
        match self.node.next_event().await {
            Event::Message(message) => self.hear(&message),
            Event::Finished { finished, .. } => {
                let done = self.hands.finished(finished)?;
                let (count, took) = (done.tasks.len() as f64, done.took as f64);
                self.measured.add(Measured { tasks: done.tasks.len() as u64, time: took, squares: took * took / count.max(1.0) });
                self.last_end = self.node.now();
                Ok(())
            }
            Event::Timer { timer, .. } if self.hearing == Some(timer) => {
                self.hearing = None;
                while let Some((free, from)) = self.pending.pop_first() {
                    self.grant(from, free);
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
                self.hands.figures.migrated += grant.lot.count();
                self.granted(&grant);
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks for tasks if it is time; sees to it that it is looked at again when it will be.
    fn ask(&mut self) {
        if self.asked || self.ended {
            return;
        }
        let held = self.hands.held() as Ticks;
        if held > 0 {
            if self.pace.by_model {
                return;
            }
            let Some(mean) = self.hands.mean() else { return };
            let runs_dry = self.last_end.saturating_add(mean.saturating_mul(held));
            let at = runs_dry.saturating_sub(self.pace.ahead);
            if at > self.node.now() {
                if let Some(timer) = self.reminder.take() {
                    self.node.cancel_timer(timer);
                }
                self.reminder = Some(self.node.set_timer(at));
                return;
            }
        }
        self.asked = true;
        let request = Request { measured: std::mem::take(&mut self.measured), free: self.free };
        match self.dealer {
            None => self.node.send(COORDINATOR, REQUEST, &request),
            Some(_) => self.requested(COORDINATOR, request),
        }
    }

    fn requested(&mut self, from: NodeId, request: Request) {
        if let Some(dealer) = &mut self.dealer {
            dealer.learn(self.node.rank_of(from) as usize, request.measured);
        }
        if !self.pace.by_model {
            return self.grant(from, request.free);
        }
        self.pending.insert((request.free, from));
        if self.hearing.is_none() {
            self.hearing = Some(self.node.set_timer(self.node.now() + SAME_TIME));
        }
    }

    fn grant(&mut self, to: NodeId, at: Cost) {
        let rank = self.node.rank_of(to) as usize;
        let Some(dealer) = &mut self.dealer else { return };
        let lot = dealer.deal(rank);
        self.grants += u64::from(lot != Lot::Nothing);
        let grant = Grant { lot, at };
        match to == self.node.me() {
            true => self.granted(&grant),
            false => self.node.send(to, GRANT, &grant),
        }
    }

    fn granted(&mut self, grant: &Grant) {
        self.asked = false;
        if grant.lot == Lot::Nothing {
            self.ended = true;
            return;
        }
        if self.hands.held() == 0 {
            self.last_end = self.node.now();
        }
        let mut due = None;
        if self.pace.by_model {
            let begin = self.free.max(grant.at);
            due = Some(self.begun + self.pace.ticks(begin));
            let (costs, rank) = (self.work.costs(), self.node.rank_of(self.node.me()) as usize);
            self.free = grant.lot.tasks().fold(begin, |free, task| free.saturating_add(costs.of(task, rank)));
        }
        self.hands.take(grant.lot.tasks(), due);
    }
}
