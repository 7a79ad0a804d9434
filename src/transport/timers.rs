//! Timers that have not expired, of one node or of all nodes of a rank.

use std::collections::BTreeMap;

use super::{Ticks, TimerId};

/// Timers by the time at which they run out; each belongs to an owner, which is informed.
pub(super) struct Timers<Owner> {
    by_time: BTreeMap<(Ticks, TimerId), Owner>,
    times: BTreeMap<TimerId, Ticks>,
}

impl<Owner> Default for Timers<Owner> {
    fn default() -> Timers<Owner> {
        Timers { by_time: BTreeMap::new(), times: BTreeMap::new() }
    }
}

impl<Owner> Timers<Owner> {
    /// Enters a timer of a new number.
    pub fn set(&mut self, at: Ticks, timer: TimerId, owner: Owner) {
        self.by_time.insert((at, timer), owner);
        self.times.insert(timer, at);
    }

    /// Forgets a timer; false if there is none of this number any more.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.times.remove(&timer).is_some_and(|at| self.by_time.remove(&(at, timer)).is_some())
    }

    /// Returns the time at which the first runs out.
    pub fn first(&self) -> Option<Ticks> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first, if it has run out by now. Timers come in the order of the times that were asked for, those of one time in the order
    /// of their numbers.
    pub fn take_due(&mut self, now: Ticks) -> Option<(TimerId, Owner)> {
        let entry = self.by_time.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, timer), owner) = entry.remove_entry();
        self.times.remove(&timer);
        Some((timer, owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_run_out_in_order_and_cancelled_ones_never() {
        let mut timers = Timers::default();
        for (number, at) in (1..).zip([30, 10, 20, 10]) {
            timers.set(at, TimerId(number), number);
        }
        assert!(timers.cancel(TimerId(3)));
        assert!(!timers.cancel(TimerId(3)));
        assert_eq!(timers.first(), Some(10));
        assert!(timers.take_due(9).is_none());
        let order: Vec<_> = std::iter::from_fn(|| timers.take_due(100)).collect();
        assert_eq!(order, [(TimerId(2), 2), (TimerId(4), 4), (TimerId(1), 1)]);
        assert_eq!(timers.first(), None);
    }
}
