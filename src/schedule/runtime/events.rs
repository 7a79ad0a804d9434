//! The loop's handling of events: a message, the end of a task or of a phase, a timer, a root that arrives.

use std::collections::BTreeMap;

use super::NodeRuntime;
use super::execution::Returned;
use super::graphs::Graphs;
use super::phases::{self, BEGIN};
use super::task::{ANSWERS, Answered, Cargo, Home, Item, TASKS, Travelling};
use super::termination::WAVE;
use crate::error::{Error, Result};
use crate::load::WorkQueue;
use crate::node::{self, Event, Finished, Message, TimerId};
use crate::schedule::accounting::Happening;
use crate::schedule::computation::{Computation, Roots, Slice};
use crate::schedule::policy::{New, Occurrence, Origin, POLICY, PhaseEnd};
use crate::topology::NodeId;

impl<C: Computation> NodeRuntime<C> {
    pub(super) fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Message(message) => self.hear(&message),
            Event::Timer { timer, .. } => self.timer(timer),
            Event::Finished { finished, .. } => self.finished(finished),
            Event::Signal(_) => Ok(()),
            Event::RankLost(rank) => Err(Error::RankLost { rank }),
        }
    }

    fn hear(&mut self, message: &Message) -> Result<()> {
        let (tag, from) = (message.envelope.tag, message.envelope.src);
        if tag == TASKS.id() {
            self.termination.received();
            self.tasks_arrive(message)
        } else if tag == ANSWERS.id() {
            self.termination.received();
            self.answers_arrive(message)
        } else if tag == POLICY.id() {
            self.trace(None, Happening::Heard { from });
            self.tell(Occurrence::Message(message))
        } else if tag == WAVE.id() {
            let pass_down = self.termination.hear(node::open(message, WAVE)?).map_err(Error::Failed)?;
            pass_down.into_iter().for_each(|say| self.say_down(say));
            Ok(())
        } else if tag == BEGIN.id() {
            self.begin_phase(node::open(message, BEGIN)?)
        } else {
            Err(Error::Failed(format!("a message with tag {tag:#06x} from node {from} does not belong to the run")))
        }
    }

    /// Tasks have come. Each migration among them is under way for a while longer, if migrations take time.
    fn tasks_arrive(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        let cargo: Cargo<C::Task> = node::open(message, TASKS)?;
        let mut news = std::mem::take(&mut self.news);
        for task in cargo.tasks {
            news.extend(self.land(from, task));
        }
        if let Some(load) = cargo.load {
            self.tell(Occurrence::Load(from, load))?;
        }
        self.tell_new(&news, Origin::Migrated { from })?;
        self.reuse(news);
        Ok(())
    }

    /// A task has come, to be placed unless its migration is under way for a while longer.
    fn land(&mut self, from: NodeId, arrived: Travelling<C::Task>) -> Option<New> {
        self.statistics.migrated_in += u64::from(arrived.migration);
        self.trace(Some(arrived.header.name), Happening::Arrived { from });
        let takes = self.migration.arrive(&arrived);
        let item = self.tasks.item(arrived.header, arrived.task);
        let Some(takes) = takes else { return Some(self.tasks.admit(item)) };
        let timer = self.node.expect_at(self.node.now().saturating_add(takes));
        self.tasks.migrate(timer, from, item);
        None
    }

    fn answers_arrive(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        let (load, answers): (Option<u32>, Vec<Answered<C::Answer>>) = node::open_row(message, ANSWERS)?;
        if let Some(load) = load {
            self.tell(Occurrence::Load(from, load))?;
        }
        for answered in answers {
            self.trace(Some(answered.name), Happening::AnswerArrived { from });
            self.joins.arrive(answered);
        }
        Ok(())
    }

    fn timer(&mut self, timer: TimerId) -> Result<()> {
        if self.decisions.timers.remove(&timer) {
            return self.tell(Occurrence::Timer);
        }
        if let Some((from, item)) = self.tasks.migrated(timer) {
            let new = self.tasks.admit(item);
            return self.tell_new(&[new], Origin::Migrated { from });
        }
        if !self.termination.pause_over(timer)
            && let Some(root) = self.graphs.as_mut().and_then(|graphs| graphs.arrived(timer))
        {
            self.submit(vec![root], true)?;
            self.node.progressed();
            self.await_root();
        }
        Ok(())
    }

    /// A worker has ended a task, or a slice of it.
    fn finished(&mut self, finished: Finished) -> Result<()> {
        let Some(Returned { id, header, executed }) = self.execution.finished(finished)? else { return Ok(()) };
        let ticks = executed.ended.saturating_sub(executed.began);
        self.statistics.trace(executed.began, Some(header.name), Happening::Executed { ticks });
        match executed.slice {
            Slice::More(task) => {
                let mut item = Item { id, header, task };
                self.give_parts(&mut item)?;
                self.start(item);
                Ok(())
            }
            Slice::Done(yielded) => {
                self.task_ends(id, header, yielded)?;
                if self.execution.running() == 0 {
                    // Nodes that asked for a part of a task that is being executed get none.
                    while let Some((to, otherwise)) = self.execution.next_part_request() {
                        self.tell_policy(to, otherwise);
                    }
                }
                Ok(())
            }
        }
    }

    /// The balancer has ended here; the work queue is what it left.
    pub(super) fn phase_over(&mut self, queue: WorkQueue) -> Result<()> {
        let Some((began, frozen)) = self.phases.end() else { return Ok(()) };
        if self.termination.tree().parent.is_some() {
            self.termination.received();
        }
        let me = self.node.me();
        let mut stayed = Vec::new();
        let mut arrived: BTreeMap<NodeId, Vec<New>> = BTreeMap::new();
        for task in phases::frozen_tasks(me, &queue) {
            let (from, mut task) = task?;
            if from == me {
                stayed.push(self.tasks.item(task.header, task.task));
            } else {
                task.header.hops += 1;
                arrived.entry(from).or_default().extend(self.land(from, task));
            }
        }
        let moved = frozen.saturating_sub(stayed.len()) as u32;
        self.outbox.migrate_otherwise(moved);
        self.tasks.thaw(stayed);
        for (from, news) in arrived {
            self.tell_new(&news, Origin::Migrated { from })?;
        }
        let took = self.node.now().saturating_sub(began);
        self.tell(Occurrence::Phase(PhaseEnd { moved, took }))
    }

    pub(super) fn begin(&mut self, roots: Roots<C>) -> Result<()> {
        let (tasks, source) = match roots {
            Roots::One(task) => (vec![task], None),
            Roots::Many(tasks) => (tasks, None),
            Roots::Stream(source) => (Vec::new(), Some(source)),
            Roots::Elsewhere => return Err(Error::Failed(format!("node {} is the host, but was given no roots", self.node.me()))),
        };
        self.graphs = Some(Graphs::new(source));
        self.submit(tasks, false)?;
        self.await_root();
        Ok(())
    }

    fn submit(&mut self, tasks: Vec<C::Task>, stream: bool) -> Result<()> {
        let now = self.statistics.since_began(self.node.now());
        let Some(graphs) = &mut self.graphs else { return Ok(()) };
        let mut news = std::mem::take(&mut self.news);
        self.tasks.spawn(tasks.into_iter().map(|task| (Home::Root { graph: graphs.submit(now) }, task)), 0, &mut news);
        self.tell_new(&news, Origin::Root { stream })?;
        self.reuse(news);
        Ok(())
    }

    /// Asks the source for the next root, if there is one.
    fn await_root(&mut self) {
        if let Some(graphs) = &mut self.graphs
            && let Some((at, task)) = graphs.next_root()
        {
            graphs.wait_for(self.node.expect_at(self.statistics.at(at)), task);
        }
    }
}
