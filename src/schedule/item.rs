//! A task on its way through the runtime, and the parents that wait.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accounting::Name;
use super::computation::Computation;
use super::policy::ItemId;
use crate::node::{Tag, Ticks};
use crate::topology::NodeId;

/// Tasks on their way.
pub(super) const TASKS: Tag = Tag::new(0x0201, "tasks");
/// An answer on its way to the parent that waits for it.
pub(super) const ANSWER: Tag = Tag::new(0x0202, "answer");

/// Who waits for a task's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Home {
    /// The family of this number on this node, where the task is child number `index`.
    Parent { node: NodeId, family: u64, index: u32 },
    /// The host: the task is the root of this graph.
    Root { graph: u64 },
    /// Nobody.
    Nobody,
}

/// All that is known of a task but what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    pub name: Name,
    pub home: Home,
    /// What the policy of the home's node wrote on it; 0 for nothing.
    pub label: u32,
    /// How often it has migrated.
    pub hops: u32,
    /// Length of the chain of tasks before it.
    pub chain: Ticks,
    /// How long it has been executed so far, when it is executed in slices.
    pub spent: Ticks,
    /// Whether a part was split off it, or it off another: then its length says nothing of how finely the work could be divided.
    pub divided: bool,
}

/// A task at a node.
pub(super) struct Item<C: Computation> {
    pub id: ItemId,
    pub card: Card,
    pub task: C::Task,
}

impl<C: Computation> Item<C> {
    /// Whether it begins a graph.
    pub fn is_root(&self) -> bool {
        matches!(self.card.home, Home::Root { .. })
    }
}

/// A task in a message.
#[derive(Serialize, Deserialize)]
pub(super) struct Travelling<T> {
    pub card: Card,
    /// Whether this is a migration, which may cost time at the receiver.
    pub migration: bool,
    /// How long it takes, where the sender knows.
    pub takes: Option<Ticks>,
    pub task: T,
}

/// A message of tasks.
#[derive(Serialize, Deserialize)]
pub(super) struct Cargo<T> {
    /// The sender's load, if loads travel.
    pub load: Option<u32>,
    pub tasks: Vec<Travelling<T>>,
}

/// An answer, and where it belongs.
#[derive(Serialize, Deserialize)]
pub(super) struct Answered<A> {
    /// The task whose answer it is.
    pub name: Name,
    pub home: Home,
    pub label: u32,
    /// Length of the longest chain of tasks up to the answer.
    pub chain: Ticks,
    pub answer: A,
}

/// A message with an answer.
#[derive(Serialize, Deserialize)]
pub(super) struct Letter<A> {
    pub load: Option<u32>,
    pub answered: Answered<A>,
}

/// What is to be done when a family's answers are there.
pub(super) enum Then<C: Computation> {
    Join(C::Waiting),
    /// The children are the parts of one task that was split.
    Combine,
}

/// A parent that waits for its children.
pub(super) struct Family<C: Computation> {
    /// The parent, as it was when it ended.
    pub parent: ItemId,
    pub card: Card,
    pub then: Then<C>,
    answers: Vec<Option<C::Answer>>,
    missing: u32,
    /// Longest chain up to any answer so far.
    chain: Ticks,
}

/// The families of a node, by number.
pub(super) struct Families<C: Computation> {
    waiting: BTreeMap<u64, Family<C>>,
    next: u64,
    pub peak: usize,
}

impl<C: Computation> Default for Families<C> {
    fn default() -> Self {
        Families { waiting: BTreeMap::new(), next: 0, peak: 0 }
    }
}

impl<C: Computation> Families<C> {
    /// Enters a parent of so many children; returns the family's number.
    pub fn found(&mut self, parent: ItemId, card: Card, then: Then<C>, children: u32) -> u64 {
        let number = self.next;
        self.next += 1;
        let answers = (0..children).map(|_| None).collect();
        self.waiting.insert(number, Family { parent, card, then, answers, missing: children, chain: 0 });
        self.peak = self.peak.max(self.waiting.len());
        number
    }

    /// Takes a child's answer. Returns the family when it was the last one, with the answers in the order of the children.
    ///
    /// # Errors
    /// If there is no such child, or it was answered before.
    pub fn answer(&mut self, number: u64, index: u32, chain: Ticks, answer: C::Answer) -> Result<Option<Resumed<C>>, String> {
        let wrong = |what| format!("the answer of child {index} of family {number} came, {what}");
        let family = self.waiting.get_mut(&number).ok_or_else(|| wrong("but nobody waits for it"))?;
        let place = family.answers.get_mut(index as usize).ok_or_else(|| wrong("but there is no such child"))?;
        if place.replace(answer).is_some() {
            return Err(wrong("for the second time"));
        }
        family.chain = family.chain.max(chain);
        family.missing -= 1;
        if family.missing > 0 {
            return Ok(None);
        }
        Ok(self.waiting.remove(&number).map(|family| {
            let Family { parent, card, then, answers, chain, .. } = family;
            Resumed { parent, card: Card { chain, ..card }, then, answers: answers.into_iter().flatten().collect() }
        }))
    }

    /// A parent that waits, if there is one.
    pub fn first(&self) -> Option<Name> {
        self.waiting.values().next().map(|family| family.card.name)
    }
}

/// A parent whose children are all answered. Its card's chain is the longest of theirs.
pub(super) struct Resumed<C: Computation> {
    pub parent: ItemId,
    pub card: Card,
    pub then: Then<C>,
    pub answers: Vec<C::Answer>,
}
