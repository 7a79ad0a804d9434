//! A task on its way through the runtime, and the parents that wait.

use serde::{Deserialize, Serialize};

use super::accounting::Name;
use super::computation::Computation;
use super::policy::ItemId;
use crate::node::{Tag, Ticks};
use crate::topology::NodeId;

/// Tasks on their way.
pub(super) const TASKS: Tag = crate::node::tags::schedule::TASKS;
/// Answers on their way to the parents that wait for them: the sender's load, if loads travel, and a row of [`Answered`] in the order in
/// which they came into being.
pub(super) const ANSWERS: Tag = crate::node::tags::schedule::ANSWERS;

/// Who waits for a task's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Home {
    /// The join frame of this number on this node, where the task is child number `index`.
    Parent { node: NodeId, frame: u64, index: u32 },
    /// The host: the task is the root of this graph.
    Root { graph: u64 },
    /// Nobody.
    Nobody,
}

/// All that is known of a task but what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskHeader {
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
    pub header: TaskHeader,
    pub task: C::Task,
}

impl<C: Computation> Item<C> {
    /// Whether it begins a graph.
    pub fn is_root(&self) -> bool {
        matches!(self.header.home, Home::Root { .. })
    }
}

/// A task in a message.
#[derive(Serialize, Deserialize)]
pub(super) struct Travelling<T> {
    pub header: TaskHeader,
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

/// What is to be done when a join frame's answers are there.
pub(super) enum Then<C: Computation> {
    Join(C::Waiting),
    /// The children are the parts of one task that was split.
    Combine,
}

/// A parent that waits for its children.
pub(super) struct JoinFrame<C: Computation> {
    /// The parent, as it was when it ended.
    pub parent: ItemId,
    pub header: TaskHeader,
    pub then: Then<C>,
    answers: Vec<Option<C::Answer>>,
    missing: u32,
    /// Longest chain up to any answer so far.
    chain: Ticks,
}

/// The join frames of a node, by number: a place, which is used again, and how often it was used before.
pub(super) struct JoinFrames<C: Computation> {
    places: Vec<(u32, Option<JoinFrame<C>>)>,
    free: Vec<u32>,
    pub peak: usize,
}

impl<C: Computation> Default for JoinFrames<C> {
    fn default() -> Self {
        JoinFrames { places: Vec::new(), free: Vec::new(), peak: 0 }
    }
}

impl<C: Computation> JoinFrames<C> {
    /// Enters a parent of so many children; returns the join frame's number.
    pub fn found(&mut self, parent: ItemId, header: TaskHeader, then: Then<C>, children: u32) -> u64 {
        let answers = (0..children).map(|_| None).collect();
        let frame = Some(JoinFrame { parent, header, then, answers, missing: children, chain: 0 });
        let (place, used) = match self.free.pop() {
            Some(place) => {
                let (used, free) = &mut self.places[place as usize];
                *free = frame;
                (place, *used)
            }
            None => {
                self.places.push((0, frame));
                (self.places.len() as u32 - 1, 0)
            }
        };
        self.peak = self.peak.max(self.places.len() - self.free.len());
        u64::from(used) << 32 | u64::from(place)
    }

    /// Takes a child's answer. Returns the join frame when it was the last one, with the answers in the order of the children.
    ///
    /// # Errors
    /// If there is no such child, or it was answered before.
    pub fn answer(&mut self, number: u64, index: u32, chain: Ticks, answer: C::Answer) -> Result<Option<Resumed<C>>, String> {
        let wrong = |what| format!("the answer of child {index} of frame {number} came, {what}");
        let place = self.places.get_mut(number as u32 as usize).filter(|(used, _)| u64::from(*used) == number >> 32);
        let nobody = || wrong("but nobody waits for it");
        let (used, waiting) = place.ok_or_else(nobody)?;
        let frame = waiting.as_mut().ok_or_else(nobody)?;
        let child = frame.answers.get_mut(index as usize).ok_or_else(|| wrong("but there is no such child"))?;
        if child.replace(answer).is_some() {
            return Err(wrong("for the second time"));
        }
        frame.chain = frame.chain.max(chain);
        frame.missing -= 1;
        if frame.missing > 0 {
            return Ok(None);
        }
        *used = used.wrapping_add(1);
        self.free.push(number as u32);
        Ok(waiting.take().map(|frame| {
            let JoinFrame { parent, header, then, answers, chain, .. } = frame;
            Resumed { parent, header: TaskHeader { chain, ..header }, then, answers: answers.into_iter().flatten().collect() }
        }))
    }

    /// A parent that waits, if there is one.
    pub fn first(&self) -> Option<Name> {
        self.places.iter().find_map(|(_, frame)| frame.as_ref()).map(|frame| frame.header.name)
    }
}

/// A parent whose children are all answered. Its task header's chain is the longest of theirs.
pub(super) struct Resumed<C: Computation> {
    pub parent: ItemId,
    pub header: TaskHeader,
    pub then: Then<C>,
    pub answers: Vec<C::Answer>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Worker;
    use crate::schedule::Yield;

    struct Nothing;

    impl Computation for Nothing {
        type Task = ();
        type Answer = u32;
        type Waiting = ();

        fn execute(&self, (): (), _: &mut dyn Worker) -> Yield<Self> {
            Yield::Answer(0)
        }

        fn join(&self, (): (), _: Vec<u32>) -> Yield<Self> {
            Yield::Answer(0)
        }

        fn combine(&self, into: u32, _: u32) -> u32 {
            into
        }
    }

    #[test]
    fn a_family_is_resumed_once_in_order_and_strangers_are_refused_even_in_its_place() {
        let mut frames = JoinFrames::<Nothing>::default();
        let name = Name { born: 0, number: 7 };
        let header = TaskHeader { name, home: Home::Nobody, label: 0, hops: 0, chain: 0, spent: 0, divided: false };
        let first = frames.found(ItemId(1), header, Then::Combine, 2);
        let other = frames.found(ItemId(2), header, Then::Combine, 1);
        assert!(frames.answer(first, 1, 5, 11).unwrap().is_none());
        assert!(frames.answer(first, 1, 5, 11).is_err_and(|why| why.ends_with("for the second time")));
        assert!(frames.answer(first, 2, 5, 11).is_err_and(|why| why.ends_with("no such child")));
        let resumed = frames.answer(first, 0, 9, 10).unwrap().unwrap();
        assert_eq!((resumed.parent, resumed.header.chain, resumed.answers), (ItemId(1), 9, vec![10, 11]));
        // Its place is used again, under another number.
        let next = frames.found(ItemId(3), header, Then::Combine, 1);
        assert!(next != first && next as u32 == first as u32);
        for gone in [first, 99] {
            assert!(frames.answer(gone, 0, 0, 1).is_err_and(|why| why.ends_with("nobody waits for it")));
        }
        assert_eq!((frames.first(), frames.peak), (Some(name), 2));
        assert!(frames.answer(next, 0, 0, 1).unwrap().is_some() && frames.answer(other, 0, 0, 1).unwrap().is_some());
        assert_eq!(frames.first(), None);
    }
}
