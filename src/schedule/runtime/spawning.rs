//! Execution of tasks on the communication thread, and the consequences of the end of any task: children, answers, joins.

use super::execution::BATCH;
use super::frames::Resumed;
use super::joins::{Delivery, Spawned};
use super::task::{Item, TaskHeader};
use super::{NodeRuntime, graphs};
use crate::error::Result;
use crate::schedule::accounting::Happening;
use crate::schedule::computation::{Computation, Slice, Yield};
use crate::schedule::policy::{ItemId, New, Occurrence, Origin};

impl<C: Computation> NodeRuntime<C> {
    /// Executes tasks on this thread until it is time to poll the network.
    pub(super) fn execute_here(&mut self) -> Result<()> {
        let mut worker = self.node.worker();
        let start = self.execution.begin_batch(&self.node);
        for _ in 0..BATCH {
            let Some(Item { id, mut header, task }) = self.tasks.next_here() else { break };
            let executed = self.execution.execute(&mut header, task, &mut *worker, &self.node);
            let ticks = executed.ended.saturating_sub(executed.began);
            self.statistics.trace(executed.began, Some(header.name), Happening::Executed { ticks });
            self.statistics.executed(ticks);
            self.outbox.executed(ticks);
            match executed.slice {
                Slice::More(task) => {
                    self.tasks.pause(Item { id, header, task });
                    break;
                }
                Slice::Done(yielded) => {
                    // Asking for the time again would cost a good part of what follows from the end of a task.
                    self.clock = Some(executed.ended);
                    self.task_ends(id, header, yielded)?;
                    self.deliver_answers()?;
                    self.send_answers_unless_more_follow()?;
                    self.clock = None;
                }
            }
            if self.execution.is_over(executed.ended.saturating_sub(start)) {
                break;
            }
        }
        self.node.progressed();
        self.send_answers()
    }

    pub(super) fn task_ends(&mut self, id: ItemId, mut header: TaskHeader, yielded: Yield<C>) -> Result<()> {
        self.execution.count(&mut header);
        let spawned = self.joins.take(id, header, yielded);
        let news = self.spawn(header, spawned);
        self.tell(Occurrence::End(id, &news))?;
        self.reuse(news);
        Ok(())
    }

    /// Enters the tasks that a task or a join spawned.
    fn spawn(&mut self, parent: TaskHeader, spawned: Option<Spawned<C::Task>>) -> Vec<New> {
        let mut news = std::mem::take(&mut self.news);
        if let Some(spawned) = spawned {
            if spawned.frame.is_some() {
                self.trace(Some(parent.name), Happening::Waits { children: spawned.tasks.len() as u32 });
            }
            self.tasks.spawn(spawned.with_homes(), parent.chain, &mut news);
        }
        news
    }

    /// Delivers each answer to where it belongs, and so on with the answers that follow from it here. Those that belong to other nodes are then
    /// ready to leave.
    pub(super) fn deliver_answers(&mut self) -> Result<()> {
        while let Some(delivery) = self.joins.next() {
            match delivery {
                Delivery::Elsewhere(to, answered) => self.outbox.answer(to, answered),
                Delivery::Parent(child, answered) => {
                    self.label_returns(answered.label)?;
                    if let Some(resumed) = self.joins.answer(child, answered.chain, answered.answer)? {
                        self.resume(resumed)?;
                    }
                }
                Delivery::Graph(number, answered) => {
                    self.label_returns(answered.label)?;
                    let now = self.statistics.since_began(self.node.now());
                    self.graphs.as_mut().ok_or_else(|| graphs::unknown(number))?.answer(number, now)?;
                    self.joins.combine(answered.answer);
                }
            }
        }
        Ok(())
    }

    fn label_returns(&mut self, label: u32) -> Result<()> {
        if label == 0 { Ok(()) } else { self.tell(Occurrence::Answer(label)) }
    }

    /// A parent's children are all answered.
    fn resume(&mut self, resumed: Resumed<C>) -> Result<()> {
        let (parent, header) = (resumed.parent, resumed.header);
        self.trace(Some(header.name), Happening::Resumed);
        let spawned = self.joins.resume(resumed);
        let news = self.spawn(header, spawned);
        self.tell_new(&news, Origin::Joined { parent })?;
        self.reuse(news);
        Ok(())
    }
}
