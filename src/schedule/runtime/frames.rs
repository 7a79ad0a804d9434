//! Join frames: the parents that wait at a node, each with the answers of its children so far.

use super::task::TaskHeader;
use crate::error::{LostTasks, Result, UnexpectedAnswer};
use crate::node::Ticks;
use crate::schedule::accounting::Name;
use crate::schedule::computation::Computation;
use crate::schedule::policy::ItemId;

/// Way in which the answers in a join frame are combined.
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

/// The join frames of a node. A frame's number is its place, which is used again, and how often the place was used before.
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
    /// Opens a frame for a parent with this number of children; returns the frame's number.
    pub fn open(&mut self, parent: ItemId, header: TaskHeader, then: Then<C>, children: u32) -> u64 {
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
    pub fn answer(&mut self, number: u64, index: u32, chain: Ticks, answer: C::Answer) -> Result<Option<Resumed<C>>> {
        let wrong = |mistake| LostTasks::AnswerOfChild { frame: number, index, mistake };
        let place = self.places.get_mut(number as u32 as usize).filter(|(used, _)| u64::from(*used) == number >> 32);
        let nobody = || wrong(UnexpectedAnswer::NobodyWaits);
        let (used, waiting) = place.ok_or_else(nobody)?;
        let frame = waiting.as_mut().ok_or_else(nobody)?;
        let child = frame.answers.get_mut(index as usize).ok_or_else(|| wrong(UnexpectedAnswer::NoSuchChild))?;
        if child.replace(answer).is_some() {
            return Err(wrong(UnexpectedAnswer::SecondTime).into());
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
    pub fn any_parent(&self) -> Option<Name> {
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
    use super::super::task::Home;
    use super::*;
    use crate::node::Worker;
    use crate::schedule::Yield;
    use crate::schedule::accounting::Name;

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
    fn a_frame_is_resumed_once_in_order_and_answers_of_others_are_refused_even_in_its_place() {
        let mut frames = JoinFrames::<Nothing>::default();
        let name = Name { born: 0, number: 7 };
        let header = TaskHeader::new(name, Home::Detached, 0);
        let first = frames.open(ItemId(1), header, Then::Combine, 2);
        let other = frames.open(ItemId(2), header, Then::Combine, 1);
        assert!(frames.answer(first, 1, 5, 11).unwrap().is_none());
        assert!(frames.answer(first, 1, 5, 11).is_err_and(|why| why.to_string().ends_with("for the second time")));
        assert!(frames.answer(first, 2, 5, 11).is_err_and(|why| why.to_string().ends_with("no such child")));
        let resumed = frames.answer(first, 0, 9, 10).unwrap().unwrap();
        assert_eq!((resumed.parent, resumed.header.chain, resumed.answers), (ItemId(1), 9, vec![10, 11]));
        // Its place is used again, under another number.
        let next = frames.open(ItemId(3), header, Then::Combine, 1);
        assert!(next != first && next as u32 == first as u32);
        for gone in [first, 99] {
            assert!(frames.answer(gone, 0, 0, 1).is_err_and(|why| why.to_string().ends_with("nobody waits for it")));
        }
        assert_eq!((frames.any_parent(), frames.peak), (Some(name), 2));
        assert!(frames.answer(next, 0, 0, 1).unwrap().is_some() && frames.answer(other, 0, 0, 1).unwrap().is_some());
        assert_eq!(frames.any_parent(), None);
    }
}
