//! The events to come, by time, and in the order in which they were entered at each time.
//!
//! Programs in lock-step have a million events at one instant and few instants, so the calendar is a tree of instants, each with a
//! linked list of events; the events lie in one slab whose slots are used again. Measured against a binary heap of (time, entry, slot):
//! 2.6 times as fast with a million events in lock-step, alike with 10,000 at random times, half as fast with 64.

use std::collections::BTreeMap;

use crate::transport::Ticks;

pub(super) struct Calendar<E> {
    instants: BTreeMap<Ticks, Chain>,
    slots: Vec<Slot<E>>,
    /// First of the free slots.
    free: u32,
}

struct Slot<E> {
    event: Option<E>,
    next: u32,
}

/// The events of one instant, taken out of the calendar's order but not yet out of its slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl<E> Default for Calendar<E> {
    fn default() -> Calendar<E> {
        Calendar { instants: BTreeMap::new(), slots: Vec::new(), free: NONE }
    }
}

impl<E> Calendar<E> {
    /// Enters an event.
    pub fn enter(&mut self, at: Ticks, event: E) {
        let slot = Slot { event: Some(event), next: NONE };
        let number = match self.free {
            NONE => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
            free => {
                self.free = self.slots[free as usize].next;
                self.slots[free as usize] = slot;
                free
            }
        };
        let chain = self.instants.entry(at).or_insert(Chain { first: number, last: NONE });
        if chain.last != NONE {
            self.slots[chain.last as usize].next = number;
        }
        chain.last = number;
    }

    /// Takes the next instant. Its events must be [drawn](Calendar::draw) before the chain is let go.
    pub fn turn(&mut self) -> Option<(Ticks, Chain)> {
        self.instants.pop_first()
    }

    /// Draws the first event of a chain.
    pub fn draw(&mut self, chain: &mut Chain) -> Option<E> {
        if chain.first == NONE {
            return None;
        }
        let slot = &mut self.slots[chain.first as usize];
        let event = slot.event.take();
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = std::mem::replace(&mut chain.first, next);
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn events_come_by_time_and_then_by_entry_and_slots_are_used_again() {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(3);
        let mut calendar = Calendar::default();
        let mut expected: Vec<(Ticks, u64)> = Vec::new();
        let (mut number, mut most) = (0, 0);
        for _ in 0..500 {
            for _ in 0..rng.random_range(0..8) {
                let at = rng.random_range(0..30);
                calendar.enter(at, number);
                expected.push((at, number));
                number += 1;
            }
            expected.sort();
            most = most.max(expected.len());
            let Some((at, mut chain)) = calendar.turn() else { continue };
            while let Some(event) = calendar.draw(&mut chain) {
                assert_eq!(expected.remove(0), (at, event));
            }
            assert!(expected.first().is_none_or(|(next, _)| *next > at));
        }
        assert_eq!(calendar.slots.len(), most);
        assert!((most as u64) < number);
    }
}
