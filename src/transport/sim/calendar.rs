//! The events to come, by time, and in the order in which they were entered at each time.
//!
//! Programs in lock-step have a million events at one instant and few instants, so the calendar is a tree of instants, each with a list
//! of its events: these are written and read one behind the other, which caches like.

use std::collections::BTreeMap;

use crate::transport::Ticks;

pub(super) struct Calendar<E> {
    instants: BTreeMap<Ticks, Vec<E>>,
    /// Empty lists, to be used again.
    spare: Vec<Vec<E>>,
}

/// Lists that are kept to be used again, and the longest of them: where every event has an instant of its own, none needs new memory.
const SPARE: (usize, usize) = (256, 16);

impl<E> Default for Calendar<E> {
    fn default() -> Calendar<E> {
        Calendar { instants: BTreeMap::new(), spare: Vec::new() }
    }
}

impl<E> Calendar<E> {
    /// Enters an event.
    pub fn enter(&mut self, at: Ticks, event: E) {
        let events = self.instants.entry(at).or_insert_with(|| self.spare.pop().unwrap_or_else(|| Vec::with_capacity(1)));
        events.push(event);
    }

    /// Takes the events of the next instant.
    pub fn turn(&mut self) -> Option<(Ticks, Vec<E>)> {
        self.instants.pop_first()
    }

    /// Takes an emptied list back.
    pub fn give_back(&mut self, events: Vec<E>) {
        if events.capacity() <= SPARE.1 && self.spare.len() < SPARE.0 {
            self.spare.push(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn events_come_by_time_and_then_by_entry_and_lists_are_used_again() {
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
            expected.sort_unstable();
            most = most.max(calendar.instants.len());
            let Some((at, mut events)) = calendar.turn() else { continue };
            for event in events.drain(..) {
                assert_eq!(expected.remove(0), (at, event));
            }
            calendar.give_back(events);
            assert!(expected.first().is_none_or(|(next, _)| *next > at));
        }
        assert!(calendar.spare.len() + calendar.instants.len() <= most && (most as u64) < number);
    }
}
