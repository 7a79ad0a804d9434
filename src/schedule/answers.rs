//! Answers on their way: to the parents that wait here, and to other nodes.
//!
//! A message costs its sender and its receiver a microsecond or two, as much as several short tasks. So answers to one node that come into
//! being between two polls of the network leave in one message, as tasks do. But an answer may be all that its parent waits for, and how long
//! the next task takes is not known: an answer waits for those of the next tasks only where many tasks in a row were shorter than a message,
//! and never while the node itself waits.
//!
//! ```text
//!   short tasks, here:   o o o o o o | look, events | o o o o ...        o o O-------------O o o
//!   answers leave:                   ^              ^                         ^             ^ ^ ^
//!                        together: before a poll, and before the next tasks   after a long task: each at once, for a while
//! ```

use super::accounting::Happening;
use super::computation::Computation;
use super::item::{ANSWERS, Answered, Home};
use super::moving::too_large;
use super::policy::Occurrence;
use super::runtime::Shell;
use crate::error::{Error, Result};
use crate::node::{self, Message, Ticks};
use crate::topology::NodeId;

/// Short tasks in a row, after which the next is taken to be short as well. So at most one task in so many holds answers up because it turns
/// out to be long; a long one that is sliced holds them up for a slice.
pub(super) const IN_A_ROW: u32 = 64;

/// Whether answers wait for those of the tasks that are executed next.
pub(super) struct Gathering {
    /// Tasks, or slices of them, are short that take less than this.
    below: Ticks,
    /// Short ones, one after the other.
    short: u32,
}

impl Gathering {
    pub fn new(below: Ticks) -> Gathering {
        Gathering { below, short: 0 }
    }

    /// A task or a slice took so long.
    pub fn executed(&mut self, ticks: Ticks) {
        self.short = if ticks < self.below { self.short.saturating_add(1) } else { 0 };
    }

    pub fn goes_on(&self) -> bool {
        self.short >= IN_A_ROW
    }
}

/// Answers to one node.
type Bundle<A> = (NodeId, Vec<Answered<A>>);

/// Answers that belong to other nodes and have not left. Nodes are in the order in which the first of their answers came into being.
pub(super) struct Outbound<A> {
    bundles: Vec<Bundle<A>>,
}

impl<A> Default for Outbound<A> {
    fn default() -> Self {
        Outbound { bundles: Vec::new() }
    }
}

impl<A> Outbound<A> {
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    fn push(&mut self, to: NodeId, answered: Answered<A>) {
        match self.bundles.iter_mut().find(|(node, _)| *node == to) {
            Some((_, answers)) => answers.push(answered),
            None => self.bundles.push((to, vec![answered])),
        }
    }
}

impl<C: Computation> Shell<C> {
    pub(super) fn answers_arrive(&mut self, message: &Message) -> Result<()> {
        let from = message.envelope.src;
        let (load, answers): (Option<u32>, Vec<Answered<C::Answer>>) = node::open_row(message, ANSWERS)?;
        if let Some(load) = load {
            self.tell(Occurrence::Load(from, load))?;
        }
        for answered in answers {
            self.trace(answered.name, Happening::AnswerArrived { from });
            self.answers.push_back(answered);
        }
        Ok(())
    }

    /// Brings each answer to where it belongs, and so on with the answers that follow from it here. Those that belong to other nodes are then
    /// ready to leave.
    pub(super) fn deliver_answers(&mut self) -> Result<()> {
        while let Some(answered) = self.answers.pop_front() {
            match answered.home {
                Home::Nobody => self.combine(answered.answer),
                Home::Parent { node, .. } if node != self.me => self.outbound.push(node, answered),
                Home::Root { .. } if self.host.is_none() => self.outbound.push(self.host_node, answered),
                Home::Parent { frame, index, .. } => {
                    self.label_returns(answered.label)?;
                    let resumed = self.frames.answer(frame, index, answered.chain, answered.answer).map_err(Error::Lost)?;
                    if let Some(resumed) = resumed {
                        self.resume(resumed)?;
                    }
                }
                Home::Root { graph } => {
                    self.label_returns(answered.label)?;
                    self.graph_answered(graph, answered.answer)?;
                }
            }
        }
        Ok(())
    }

    fn label_returns(&mut self, label: u32) -> Result<()> {
        if label == 0 { Ok(()) } else { self.tell(Occurrence::Answer(label)) }
    }

    /// Sends the answers that are ready to leave, unless it pays to wait for those of the next tasks.
    pub(super) fn send_answers_unless_more_follow(&mut self) -> Result<()> {
        if self.gathering.goes_on() { Ok(()) } else { self.send_answers() }
    }

    /// Sends all answers that are ready to leave.
    pub(super) fn send_answers(&mut self) -> Result<()> {
        let mut bundles = std::mem::take(&mut self.outbound.bundles);
        bundles.drain(..).try_for_each(|(to, answers)| self.send_bundle(to, &answers))?;
        self.outbound.bundles = bundles;
        Ok(())
    }

    /// Sends answers to a node, in as many messages as their sizes need.
    fn send_bundle(&mut self, to: NodeId, answers: &[Answered<C::Answer>]) -> Result<()> {
        let body = node::pack_row(&self.load_told(), answers);
        match answers {
            [answered] => self.check_answer(body.len(), || answered.name.to_string())?,
            _ if body.len() > self.options.largest_answer => {
                drop(body);
                let (first, rest) = answers.split_at(answers.len() / 2);
                self.send_bundle(to, first)?;
                return self.send_bundle(to, rest);
            }
            _ => {}
        }
        for answered in answers {
            self.trace(answered.name, Happening::AnswerLeft { to });
        }
        self.books.sent += 1;
        self.node.send_bytes(to, ANSWERS, body);
        Ok(())
    }

    pub(super) fn check_answer(&self, bytes: usize, of: impl Fn() -> String) -> Result<()> {
        match self.options.largest_answer {
            most if bytes > most => Err(Error::Failed(too_large("answer of task", &of(), bytes, most))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn answers_leave_by_node_in_the_order_in_which_they_came_into_being() {
        let mut outbound = Outbound::default();
        assert!(outbound.is_empty());
        for (number, to) in (0..).zip([5, 2, 5, 9, 2, 5]) {
            let home = Home::Parent { node: to, frame: 0, index: 0 };
            outbound.push(to, Answered { name: Name { born: to, number }, home, label: 0, chain: 0, answer: number * 10 });
        }
        assert!(!outbound.is_empty());
        let numbers = |answers: &[Answered<u64>]| answers.iter().map(|answered| answered.answer / 10).collect::<Vec<_>>();
        let bundles: Vec<_> = outbound.bundles.iter().map(|(to, answers)| (*to, numbers(answers))).collect();
        assert_eq!(bundles, [(5, vec![0, 2, 5]), (2, vec![1, 4]), (9, vec![3])]);
    }
}
