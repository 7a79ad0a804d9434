//! What leaves a node and what arrives: tasks, the policies' messages, and at the end the reports. Answers are in `answers`.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::RngExt;

use super::accounting::{Happening, NodeReport, Outcome};
use super::computation::{Computation, Style};
use super::host::Host;
use super::item::{Cargo, Item, TASKS, TaskHeader, Travelling};
use super::policy::{Action, ItemId, New, Occurrence, Order, Origin, POLICY};
use super::runtime::Shell;
use super::termination::REPORT;
use crate::error::{Error, Result};
use crate::node::{self, LARGEST_MESSAGE, Message, Ticks};
use crate::topology::NodeId;

impl<C: Computation> Shell<C> {
    /// Does what the policy wants.
    pub(super) fn carry_out(&mut self, actions: impl Iterator<Item = Action<Bytes>>) -> Result<()> {
        let mut leaving: BTreeMap<NodeId, Vec<Travelling<C::Task>>> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Queue(item) => self.queue(item)?,
                Action::Send { item, to, .. } if to == self.me => self.queue(item)?,
                Action::Send { item, to, migration } => {
                    let item = self.placed(item)?;
                    leaving.entry(to).or_default().push(self.travelling(item.header, item.task, migration));
                }
                Action::Label { item, label } => {
                    let Some(found) = self.unplaced.get_mut(item) else { return Err(self.unknown(item)) };
                    found.header.label = label;
                }
                Action::Tell { to, message } => self.tell_policy(to, message),
                Action::Timer { at } => self.set_policy_timer(at),
                Action::Give { to } if self.hungry.contains(&to) => {}
                Action::Give { to } => self.hungry.push_back(to),
                Action::Forget { to } => self.hungry.retain(|other| *other != to),
                Action::Part { to, otherwise } => self.part(to, otherwise)?,
                Action::Share { to, most } if to != self.me => self.give_oldest(to, self.ready.len().min(most as usize))?,
                Action::Share { .. } => {}
                Action::Phase { kept } => self.begin_phase(kept)?,
            }
        }
        leaving.into_iter().try_for_each(|(to, tasks)| self.send_tasks(to, tasks))
    }

    fn unknown(&self, item: ItemId) -> Error {
        Error::Failed(format!("the policy of node {} places item {}, which is not there to be placed", self.me, item.0))
    }

    fn placed(&mut self, item: ItemId) -> Result<Item<C>> {
        self.unplaced.remove(item).ok_or_else(|| self.unknown(item))
    }

    fn queue(&mut self, item: ItemId) -> Result<()> {
        if self.workers == 0 {
            return Err(Error::Failed(format!("the policy queues a task on node {}, which is virtual", self.me)));
        }
        let item = self.placed(item)?;
        match self.order == Order::Lifo && item.is_root() {
            // Roots stand before all others.
            true => self.ready.insert(self.ready.partition_point(Item::is_root), item),
            false => self.ready.push_back(item),
        }
        Ok(())
    }

    /// Gives to the nodes that asked for tasks, the longest waiting first, what there is to spare. They and this node get equal shares.
    pub(super) fn share(&mut self) -> Result<()> {
        while !self.hungry.is_empty() {
            let next_here = self.workers.saturating_sub(self.view().running as usize);
            let spare = self.ready.len().saturating_sub(next_here);
            if spare > 0 {
                let count = spare.div_ceil(self.hungry.len() + 1);
                let Some(to) = self.hungry.pop_front() else { break };
                self.give_oldest(to, count)?;
                continue;
            }
            let Some(mut item) = self.sliced.take() else { break };
            let given = self.give_part(&mut item);
            self.sliced = Some(item);
            if !given? {
                break;
            }
        }
        Ok(())
    }

    /// Gives part of a task between two of its slices to the node that has waited longest for tasks; says whether it did.
    pub(super) fn give_part(&mut self, item: &mut Item<C>) -> Result<bool> {
        let Some(to) = self.hungry.front().copied() else { return Ok(false) };
        let Some((header, task)) = self.split(item) else { return Ok(false) };
        self.hungry.pop_front();
        self.send_tasks(to, vec![self.travelling(header, task, true)])?;
        Ok(true)
    }

    /// Gives part of the task that is being executed between its slices, now or at its next pause, or the word that there is none.
    fn part(&mut self, to: NodeId, otherwise: Bytes) -> Result<()> {
        if let Some(mut item) = self.sliced.take() {
            let given = self.part_or_word(&mut item, to, otherwise);
            self.sliced = Some(item);
            return given;
        }
        match self.style == Style::Sliced && !self.running.is_empty() {
            true => self.awaiting_parts.push_back((to, otherwise)),
            false => self.tell_policy(to, otherwise),
        }
        Ok(())
    }

    pub(super) fn part_or_word(&mut self, item: &mut Item<C>, to: NodeId, otherwise: Bytes) -> Result<()> {
        match self.split(item) {
            Some((header, task)) => self.send_tasks(to, vec![self.travelling(header, task, true)]),
            None => {
                self.tell_policy(to, otherwise);
                Ok(())
            }
        }
    }

    /// The oldest `count` of the ready tasks.
    fn give_oldest(&mut self, to: NodeId, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let given: Vec<_> = self.ready.drain(..count).collect();
        let given = given.into_iter().map(|item| self.travelling(item.header, item.task, true)).collect();
        self.send_tasks(to, given)
    }

    /// No task is being executed any more: those who asked for a part of one get none.
    pub(super) fn disappoint(&mut self) {
        while let Some((to, otherwise)) = self.awaiting_parts.pop_front() {
            self.tell_policy(to, otherwise);
        }
    }

    pub(super) fn tell_policy(&mut self, to: NodeId, message: Bytes) {
        self.report.control += 1;
        self.trace(None, Happening::Told { to });
        self.node.send_bytes(to, POLICY, message);
    }

    pub(super) fn travelling(&self, mut header: TaskHeader, task: C::Task, migration: bool) -> Travelling<C::Task> {
        header.hops += u32::from(migration);
        Travelling { header, migration, takes: None, task }
    }

    /// How long a migration is under way that has to queue for its link: served once, first come first served, on this node's link of the
    /// highest bit in which the two nodes' numbers differ.
    fn queue_for_link(&mut self, to: NodeId, mean: Ticks) -> Ticks {
        let (now, service) = (self.node.now(), exponential(&mut self.rng, mean));
        let bit = (self.me ^ to).checked_ilog2().unwrap_or(0) as usize;
        if self.links.len() <= bit {
            self.links.resize(bit + 1, 0);
        }
        self.links[bit] = self.links[bit].max(now).saturating_add(service);
        self.links[bit] - now
    }

    /// This node's load, if loads travel.
    pub(super) fn load_told(&self) -> Option<u32> {
        self.options.loads_travel.then(|| self.view().load())
    }

    /// Sends tasks, in as many messages as their sizes need.
    pub(super) fn send_tasks(&mut self, to: NodeId, mut tasks: Vec<Travelling<C::Task>>) -> Result<()> {
        if let Some(mean) = self.options.migration.filter(|_| self.options.contention) {
            for task in tasks.iter_mut().filter(|task| task.migration && task.takes.is_none()) {
                task.takes = Some(self.queue_for_link(to, mean));
            }
        }
        let mut cargo = Cargo { load: self.load_told(), tasks };
        let body = node::pack(&cargo);
        let count = cargo.tasks.len();
        if body.len() > LARGEST_MESSAGE {
            if let [task] = &cargo.tasks[..] {
                return Err(Error::Failed(too_large("task", &task.header.name.to_string(), body.len(), LARGEST_MESSAGE)));
            }
            let rest = cargo.tasks.split_off(count / 2);
            self.send_tasks(to, cargo.tasks)?;
            return self.send_tasks(to, rest);
        }
        for task in &cargo.tasks {
            self.report.migrated_out += u64::from(task.migration);
            self.trace(task.header.name, Happening::Left { to });
        }
        self.books.sent += 1;
        self.node.send_tasks(to, TASKS, body, count as u64);
        Ok(())
    }

    /// Tasks have come. Each migration among them is under way for a while longer, if migrations take time.
    pub(super) fn arrive(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        let cargo: Cargo<C::Task> = node::open(message, TASKS)?;
        let here = cargo.tasks.into_iter().filter_map(|task| self.land(from, task)).collect();
        if let Some(load) = cargo.load {
            self.tell(Occurrence::Load(from, load))?;
        }
        self.migrated(from, here)
    }

    /// A task has come; it is here now unless its migration is under way for a while longer.
    pub(super) fn land(&mut self, from: NodeId, arrived: Travelling<C::Task>) -> Option<Item<C>> {
        let Travelling { header, migration, takes, task } = arrived;
        self.report.migrated_in += u64::from(migration);
        self.trace(header.name, Happening::Arrived { from });
        let item = Item { id: self.number(), header, task };
        match self.options.migration {
            Some(mean) if migration => {
                let takes = takes.unwrap_or_else(|| exponential(&mut self.rng, mean));
                let timer = self.node.set_timer(self.node.now().saturating_add(takes));
                self.delayed.insert(timer, (from, item));
                None
            }
            _ => Some(item),
        }
    }

    /// Tasks from another node are to be placed.
    pub(super) fn migrated(&mut self, from: NodeId, items: Vec<Item<C>>) -> Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        let news: Vec<New> = items.iter().map(|item| New { item: item.id, hops: item.header.hops }).collect();
        items.into_iter().for_each(|item| self.unplaced.push(item.id, item));
        self.tell(Occurrence::New(&news, Origin::Migrated { from }))
    }

    /// All is done: the reports of all nodes and the answers that nobody waited for go to the host.
    pub(super) async fn end(mut self) -> Result<Outcome<C::Answer>> {
        let now = self.node.now();
        self.rests();
        if let Some(left) = self.leftover() {
            return Err(Error::Lost(format!("all seemed done, but on node {} there is left: {left}", self.me)));
        }
        let counts = self.counts.get();
        let mut report = std::mem::take(&mut self.report);
        report.elapsed = now.saturating_sub(self.began);
        (report.messages, report.bytes) = (counts.messages, counts.bytes);
        report.peak_waiting = self.frames.peak as u64;
        let mut reports = vec![report];
        for child in self.waves.tree.children.clone() {
            let (mut theirs, partial): (Vec<NodeReport>, Option<C::Answer>) = self.node.receive(child, REPORT).await?;
            reports.append(&mut theirs);
            if let Some(partial) = partial {
                self.combine(partial);
            }
        }
        let partial = self.partial.take();
        if let Some(parent) = self.waves.tree.parent {
            let body = node::pack(&(&reports, &partial));
            self.check_answer(body.len(), || "all detached tasks of a sub-tree of nodes".into())?;
            self.node.send_bytes(parent, REPORT, body);
            return Ok(Outcome { answer: None, graphs: Vec::new(), gave_up: false, nodes: Vec::new(), makespan: 0 });
        }
        reports.sort_by_key(|report| report.node);
        let (graphs, gave_up) = self.host.take().map(Host::end).unwrap_or_default();
        let first = graphs.iter().map(|graph| graph.submitted).min().unwrap_or(0);
        let last = match reports.iter().any(|report| report.detached > 0) {
            true => now.saturating_sub(self.began),
            false => graphs.iter().map(|graph| graph.answered).max().unwrap_or(0),
        };
        Ok(Outcome { answer: partial, graphs, gave_up, nodes: reports, makespan: last - first })
    }
}

pub(super) fn too_large(what: &str, name: &str, bytes: usize, most: usize) -> String {
    format!("the {what} {name} takes {bytes} bytes; no more than {most} can be sent")
}

/// A time drawn from the exponential distribution with this mean.
fn exponential(rng: &mut impl rand::Rng, mean: Ticks) -> Ticks {
    let uniform: f64 = rng.random();
    (-(1.0 - uniform).ln() * mean as f64).round() as Ticks
}
