//! Outgoing messages of a node: tasks and answers, packed; answers wait here until they leave.
//!
//! A message costs its sender and its receiver a microsecond or two, as much as several short tasks. So answers to one node that come into
//! being between two polls of the network leave in one message, as tasks do. But an answer may be all that its parent waits for, and how long
//! the next task takes is not known: an answer waits for those of the next tasks only where many tasks in a row were shorter than a message,
//! and never while the node itself waits.
//!
//! ```text
//!   short tasks, here:   o o o o o o | poll, events | o o o o ...        o o O-------------O o o
//!   answers leave:                   ^              ^                         ^             ^ ^ ^
//!                        together: before a poll, and before the next tasks   after a long task: each at once, for a while
//! ```

use serde::Serialize;

use super::effects::Effects;
use super::task::{ANSWERS, Answered, Cargo, TASKS, Travelling, too_large};
use crate::error::{Error, Result};
use crate::node::{self, LARGEST_MESSAGE, Ticks};
use crate::schedule::accounting::Happening;
use crate::topology::NodeId;

/// Number of short tasks in a row after which the next is taken to be short as well. So at most one task in this many holds answers up because
/// it turns out to be long; a long one that is sliced holds them up for a slice.
pub(in crate::schedule) const IN_A_ROW: u32 = 64;

/// State of the decision whether answers wait for those of the tasks that are executed next.
struct Gathering {
    /// Tasks, or slices of them, are short that take less than this.
    below: Ticks,
    /// Number of short ones since the last long one.
    short: u32,
}

impl Gathering {
    fn new(below: Ticks) -> Gathering {
        Gathering { below, short: 0 }
    }

    /// A task or a slice took this long.
    fn executed(&mut self, ticks: Ticks) {
        self.short = if ticks < self.below { self.short.saturating_add(1) } else { 0 };
    }

    fn goes_on(&self) -> bool {
        self.short >= IN_A_ROW
    }
}

pub(super) struct Outbox<A> {
    /// Answers by node, in the order in which the first of each node's came into being.
    answers: Vec<(NodeId, Vec<Answered<A>>)>,
    gathering: Gathering,
    /// Whether messages carry the sender's load.
    loads_travel: bool,
    /// The largest answer that may be sent, in bytes.
    largest_answer: usize,
    /// Number of migrations that left.
    migrated: u64,
}

impl<A: Serialize> Outbox<A> {
    pub fn new(gather_below: Ticks, loads_travel: bool, largest_answer: usize) -> Outbox<A> {
        let gathering = Gathering::new(gather_below);
        Outbox { answers: Vec::new(), gathering, loads_travel, largest_answer, migrated: 0 }
    }

    /// Returns true if no answer waits here.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// An answer is ready to leave.
    pub fn answer(&mut self, to: NodeId, answered: Answered<A>) {
        match self.answers.iter_mut().find(|(node, _)| *node == to) {
            Some((_, answers)) => answers.push(answered),
            None => self.answers.push((to, vec![answered])),
        }
    }

    /// A task or a slice took this long on the communication thread.
    pub fn executed(&mut self, ticks: Ticks) {
        self.gathering.executed(ticks);
    }

    /// Returns true if it pays to let answers wait for those of the next tasks.
    pub fn gathers(&self) -> bool {
        self.gathering.goes_on()
    }

    /// Number of migrations that left.
    pub fn migrated(&self) -> u64 {
        self.migrated
    }

    /// Tasks that leave in no message of ours, but with a balancer.
    pub fn migrate_otherwise(&mut self, tasks: u32) {
        self.migrated += u64::from(tasks);
    }

    /// Packs tasks for a node into messages, as few as their sizes allow.
    ///
    /// # Errors
    /// If a task is too large for a message.
    pub fn pack_tasks<T: Serialize>(&mut self, to: NodeId, load: u32, tasks: Vec<Travelling<T>>, effects: &mut Effects) -> Result<()> {
        let mut cargo = Cargo { load: self.loads_travel.then_some(load), tasks };
        let body = node::pack(&cargo);
        let count = cargo.tasks.len();
        if body.len() > LARGEST_MESSAGE {
            if let [task] = &cargo.tasks[..] {
                return Err(Error::Failed(too_large("task", &task.header.name.to_string(), body.len(), LARGEST_MESSAGE)));
            }
            let rest = cargo.tasks.split_off(count / 2);
            self.pack_tasks(to, load, cargo.tasks, effects)?;
            return self.pack_tasks(to, load, rest, effects);
        }
        self.migrated += cargo.tasks.iter().map(|task| u64::from(task.migration)).sum::<u64>();
        effects.trace(cargo.tasks.iter().map(|task| task.header.name), Happening::Left { to });
        effects.send(to, TASKS, body, count);
        Ok(())
    }

    /// Packs all answers that are ready to leave.
    ///
    /// # Errors
    /// If an answer is too large for a message.
    pub fn pack_answers(&mut self, load: u32, effects: &mut Effects) -> Result<()> {
        let mut all = std::mem::take(&mut self.answers);
        let head = self.loads_travel.then_some(load);
        all.drain(..).try_for_each(|(to, answers)| self.pack_answers_to(to, head, &answers, effects))?;
        self.answers = all;
        Ok(())
    }

    fn pack_answers_to(&self, to: NodeId, load: Option<u32>, answers: &[Answered<A>], effects: &mut Effects) -> Result<()> {
        let body = node::pack_row(&load, answers);
        match answers {
            [answered] => self.check_answer(body.len(), || answered.name.to_string())?,
            _ if body.len() > self.largest_answer => {
                drop(body);
                let (first, rest) = answers.split_at(answers.len() / 2);
                self.pack_answers_to(to, load, first, effects)?;
                return self.pack_answers_to(to, load, rest, effects);
            }
            _ => {}
        }
        effects.trace(answers.iter().map(|answered| answered.name), Happening::AnswerLeft { to });
        effects.send(to, ANSWERS, body, 0);
        Ok(())
    }

    /// Maximum bytes of a message.
    pub fn largest(&self) -> usize {
        self.largest_answer
    }

    /// Refuses an answer that is too large to be sent.
    ///
    /// # Errors
    /// A sentence that names the answer.
    pub fn check_answer(&self, bytes: usize, of: impl Fn() -> String) -> Result<()> {
        match self.largest_answer {
            most if bytes > most => Err(Error::Failed(too_large("answer of task", &of(), bytes, most))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::effects::Effect;
    use super::super::task::{Home, TaskHeader};
    use super::*;
    use crate::schedule::accounting::Name;

    #[test]
    fn answers_wait_only_after_many_short_tasks_in_a_row() {
        let mut gathering = Gathering::new(100);
        for _ in 0..3 {
            for executed in 0..2 * IN_A_ROW {
                assert_eq!(gathering.goes_on(), executed >= IN_A_ROW, "after {executed}");
                gathering.executed(99);
            }
            gathering.executed(100);
        }
        assert!(!gathering.goes_on());
        let mut never = Gathering::new(0);
        (0..2 * IN_A_ROW).for_each(|_| never.executed(0));
        assert!(!never.goes_on());
    }

    fn answered(number: u64, to: NodeId, answer: Vec<u8>) -> Answered<Vec<u8>> {
        let home = Home::Parent { node: to, frame: 0, index: 0 };
        Answered::new(TaskHeader::new(Name { born: to, number }, home, 0), answer)
    }

    /// Messages to be sent: destination, tag, number of tasks, and number of lines of the trace before it, of each.
    fn messages(effects: &mut Effects) -> Vec<(NodeId, u16, u64, usize)> {
        let (mut messages, mut lines) = (Vec::new(), 0);
        for effect in effects.list.drain(..) {
            match effect {
                Effect::Trace { .. } => lines += 1,
                Effect::Send { to, tag, tasks, .. } => messages.push((to, tag.id(), tasks, std::mem::take(&mut lines))),
            }
        }
        messages
    }

    #[test]
    fn answers_leave_by_node_in_the_order_in_which_they_came_into_being() {
        let mut outbox = Outbox::new(0, true, 1 << 20);
        assert!(outbox.is_empty());
        for (number, to) in (0..).zip([5, 2, 5, 9, 2, 5]) {
            outbox.answer(to, answered(number, to, Vec::new()));
        }
        assert!(!outbox.is_empty());
        let numbers = |answers: &[Answered<_>]| answers.iter().map(|answered| answered.name.number).collect::<Vec<_>>();
        let by_node: Vec<_> = outbox.answers.iter().map(|(to, answers)| (*to, numbers(answers))).collect();
        assert_eq!(by_node, [(5, vec![0, 2, 5]), (2, vec![1, 4]), (9, vec![3])]);
        let mut effects = Effects::new(true);
        outbox.pack_answers(17, &mut effects).unwrap();
        assert!(outbox.is_empty());
        let answers = ANSWERS.id();
        assert_eq!(messages(&mut effects), [(5, answers, 0, 3), (2, answers, 0, 2), (9, answers, 0, 1)]);
    }

    #[test]
    fn answers_that_are_too_large_together_leave_in_several_messages_and_one_that_is_too_large_is_named() {
        let mut outbox = Outbox::new(0, false, 1_200);
        (0..5).for_each(|number| outbox.answer(1, answered(number, 1, vec![0; 300])));
        let mut effects = Effects::new(false);
        outbox.pack_answers(0, &mut effects).unwrap();
        assert_eq!(messages(&mut effects).len(), 2);
        outbox.answer(1, answered(6, 1, vec![0; 2_000]));
        let why = outbox.pack_answers(0, &mut effects).unwrap_err().to_string();
        assert!(why.starts_with("the answer of task 6 of node 1 takes 20") && why.ends_with("no more than 1200 can be sent"), "{why}");
    }

    #[test]
    fn tasks_leave_in_one_message_and_only_migrations_count() {
        let mut outbox = Outbox::<()>::new(0, true, 1_000);
        let task = |number, migration| Travelling::new(TaskHeader::new(Name { born: 0, number }, Home::Detached, 0), number, migration);
        let mut effects = Effects::new(true);
        outbox.pack_tasks(4, 2, vec![task(0, true), task(1, false), task(2, true)], &mut effects).unwrap();
        let Some(Effect::Send { body, .. }) = effects.list.last() else { panic!("{effects:?}") };
        let cargo: Cargo<u64> = node::unpack(body, 0, TASKS).unwrap();
        assert_eq!((cargo.load, cargo.tasks.len(), cargo.tasks[2].header.hops), (Some(2), 3, 1));
        assert_eq!(messages(&mut effects), [(4, TASKS.id(), 3, 3)]);
        outbox.migrate_otherwise(3);
        assert_eq!(outbox.migrated(), 5);
    }
}
