//! The loop's handling of the policy's actions, and of tasks for the nodes that asked for some.

use std::collections::BTreeMap;

use bytes::Bytes;
use log::{Level, debug, log_enabled};

use super::NodeRuntime;
use super::phases::{self, BEGIN, Begin};
use super::task::{Item, TaskHeader, Travelling};
use crate::error::Result;
use crate::node::Node;
use crate::schedule::accounting::Happening;
use crate::schedule::computation::Computation;
use crate::schedule::policy::{Action, ItemId, Occurrence, Origin, POLICY};
use crate::topology::NodeId;

impl<C: Computation> NodeRuntime<C> {
    /// Does what the policy wants.
    pub(super) fn carry_out(&mut self, actions: impl Iterator<Item = Action<Bytes>>) -> Result<()> {
        let me = self.node.me();
        let mut leaving: BTreeMap<NodeId, Vec<Travelling<C::Task>>> = BTreeMap::new();
        for action in actions {
            if log_enabled!(Level::Debug) {
                log_decision(&self.node, &action);
            }
            match action {
                Action::Queue(item) => self.tasks.queue(item)?,
                Action::Send { item, to, .. } if to == me => self.tasks.queue(item)?,
                Action::Send { item, to, migration } => {
                    let Item { header, task, .. } = self.tasks.take(item)?;
                    leaving.entry(to).or_default().push(Travelling::new(header, task, migration));
                }
                Action::Label { item, label } => self.tasks.label(item, label)?,
                Action::Tell { to, message } => self.tell_policy(to, message),
                Action::Timer { at } => {
                    self.decisions.timers.insert(self.node.set_timer(at));
                }
                Action::Give { to } => self.tasks.request(to),
                Action::Forget { to } => self.tasks.forget(to),
                Action::Part { to, otherwise } => self.part(to, otherwise)?,
                Action::Share { to, most } if to != me => {
                    let oldest = self.tasks.oldest(most as usize);
                    self.send_tasks(to, oldest)?;
                }
                Action::Share { .. } => {}
                Action::Phase { kept } => self.begin_phase(self.phases.announce(kept))?,
            }
        }
        leaving.into_iter().try_for_each(|(to, tasks)| self.send_tasks(to, tasks))
    }

    pub(super) fn tell_policy(&mut self, to: NodeId, message: Bytes) {
        self.statistics.control += 1;
        self.trace(None, Happening::Announced { to });
        self.node.send_bytes(to, POLICY, message);
    }

    /// Gives spare tasks to the nodes that asked for some.
    pub(super) fn share(&mut self) -> Result<()> {
        while self.tasks.longest_waiting().is_some() {
            let next_here = self.execution.workers().saturating_sub(self.running());
            if let Some((to, tasks)) = self.tasks.share(next_here) {
                self.send_tasks(to, tasks)?;
                continue;
            }
            let Some(mut item) = self.tasks.take_sliced() else { break };
            let given = self.give_part(&mut item);
            self.tasks.pause(item);
            if !given? {
                break;
            }
        }
        Ok(())
    }

    /// Gives part of a task between two of its slices to the node that has waited longest for tasks; says whether it did.
    fn give_part(&mut self, item: &mut Item<C>) -> Result<bool> {
        let Some(to) = self.tasks.longest_waiting() else { return Ok(false) };
        let Some((header, task)) = self.split(item) else { return Ok(false) };
        self.tasks.is_served();
        self.send_tasks(to, vec![Travelling::new(header, task, true)])?;
        Ok(true)
    }

    /// Gives part of the task that is being executed between its slices, now or at its next pause, or says that there is none.
    fn part(&mut self, to: NodeId, otherwise: Bytes) -> Result<()> {
        if let Some(mut item) = self.tasks.take_sliced() {
            let given = self.part_or_word(&mut item, to, otherwise);
            self.tasks.pause(item);
            return given;
        }
        if let Err(otherwise) = self.execution.request_part(to, otherwise) {
            self.tell_policy(to, otherwise);
        }
        Ok(())
    }

    fn part_or_word(&mut self, item: &mut Item<C>, to: NodeId, otherwise: Bytes) -> Result<()> {
        match self.split(item) {
            Some((header, task)) => self.send_tasks(to, vec![Travelling::new(header, task, true)]),
            None => {
                self.tell_policy(to, otherwise);
                Ok(())
            }
        }
    }

    /// Between two slices on a worker: gives parts to the nodes that asked, and to an idle worker here.
    pub(super) fn give_parts(&mut self, item: &mut Item<C>) -> Result<()> {
        while let Some((to, otherwise)) = self.execution.next_part_request() {
            self.part_or_word(item, to, otherwise)?;
        }
        while self.give_part(item)? {}
        if self.tasks.ready() == 0
            && self.execution.running() + 1 < self.execution.workers()
            && let Some((header, task)) = self.split(item)
        {
            let part = self.tasks.enter(header, task);
            self.tell(Occurrence::New(&[part], Origin::Split))?;
        }
        Ok(())
    }

    /// Takes a part off a task that is being executed. Who waits for the task then waits for both.
    fn split(&mut self, item: &mut Item<C>) -> Option<(TaskHeader, C::Task)> {
        let part = self.execution.split(&mut item.task)?;
        let home = self.joins.split(item.id, &mut item.header);
        let header = self.tasks.birth(home, item.header.chain);
        Some((TaskHeader { divided: true, ..header }, part))
    }

    /// Passes the announcement of a phase on, freezes, and begins.
    pub(super) fn begin_phase(&mut self, begin: Begin) -> Result<()> {
        let balancer = self.phases.begin(&begin)?;
        for child in &self.termination.tree().children {
            self.statistics.control += 1;
            self.node.send(*child, BEGIN, &begin);
        }
        self.termination.sent_down();
        self.tell(Occurrence::Freeze)?;
        let own = begin.kept_by(self.node.me());
        let frozen = self.tasks.freeze((own as usize).saturating_sub(self.running()));
        let count = frozen.len();
        let queue = phases::work_queue(self.node.me(), frozen, own)?;
        let balancing = phases::balancing(&self.node, balancer, begin, queue);
        self.phases.balance(self.node.now(), count, balancing);
        Ok(())
    }
}

/// Logs a decision of the node's policy. A message to another policy is none of its own: the node logs it where it is sent.
#[cold]
fn log_decision(node: &Node, action: &Action<Bytes>) {
    match action {
        Action::Queue(ItemId(task)) => debug!("{node} queues task {task}"),
        Action::Send { item: ItemId(task), to, .. } if *to == node.me() => debug!("{node} queues task {task}"),
        Action::Send { item: ItemId(task), to, migration: true } => debug!("{node} places task {task} at node {to}"),
        Action::Send { item: ItemId(task), to, migration: false } => debug!("{node} submits task {task} to node {to}"),
        Action::Label { item: ItemId(task), label } => debug!("{node} labels task {task} with {label}"),
        Action::Timer { at } => debug!("{node} decides again at {at} ns"),
        Action::Give { to } => debug!("{node} is to give node {to} tasks that it can spare"),
        Action::Forget { to } => debug!("{node} is to give node {to} no tasks any more"),
        Action::Part { to, .. } => debug!("{node} is to give node {to} part of the task that it executes"),
        Action::Share { to, most } => debug!("{node} gives node {to} up to {most} of its ready tasks"),
        Action::Phase { kept } => {
            let kept: u64 = kept.iter().map(|kept| u64::from(*kept)).sum();
            debug!("{node} begins a system phase on all nodes, which keep {kept} tasks");
        }
        Action::Tell { .. } => {}
    }
}
