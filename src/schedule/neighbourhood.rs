//! Common part of schedulers between neighbours: the known loads of the neighbours, and the times at which a node announces its own.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::policy::{Actions, Place};
use crate::node::Ticks;
use crate::topology::NodeId;

/// The neighbours' loads as they were last heard of, and what was done to them since.
pub(super) struct Neighbourhood {
    loads: BTreeMap<NodeId, u32>,
}

impl Neighbourhood {
    /// All neighbours have nothing to do. A virtual node has no neighbours, since it has no part in anything.
    pub fn of(place: &Place) -> Neighbourhood {
        let neighbours = if place.is_virtual() { Vec::new() } else { place.neighbours() };
        Neighbourhood { loads: neighbours.into_iter().map(|node| (node, 0)).collect() }
    }

    /// A node's load is known. Nodes that are not neighbours are not asked.
    pub fn hear(&mut self, from: NodeId, load: u32) {
        if let Some(known) = self.loads.get_mut(&from) {
            *known = load;
        }
    }

    /// A neighbour was sent tasks: until it is heard of, it is believed to have them.
    pub fn sent(&mut self, to: NodeId, tasks: u32) {
        if let Some(known) = self.loads.get_mut(&to) {
            *known = known.saturating_add(tasks);
        }
    }

    /// The neighbours in ascending order, with their loads.
    pub fn loads(&self) -> impl Iterator<Item = (NodeId, u32)> {
        self.loads.iter().map(|(node, load)| (*node, *load))
    }

    /// The least load next to the node, if it has neighbours.
    pub fn least(&self) -> Option<u32> {
        self.loads.values().copied().min()
    }

    /// A neighbour with the least load, ties random.
    pub fn least_loaded(&self, rng: &mut ChaCha8Rng) -> Option<NodeId> {
        let least = self.least()?;
        let ties = self.loads.values().filter(|load| **load == least).count();
        let chosen = if ties > 1 { rng.random_range(0..ties) } else { 0 };
        self.loads().filter(|(_, load)| *load == least).nth(chosen).map(|(node, _)| node)
    }

    /// Tells every neighbour.
    pub fn tell<M: Clone>(&self, message: &M, act: &mut Actions<M>) {
        self.loads.keys().for_each(|node| act.tell(*node, message.clone()));
    }
}

/// Timing of a node's announcements: it announces what is new of it at once if it has been silent for a while, otherwise when that while has passed
/// since the last time. A node of which nothing is new says nothing.
pub(super) struct Bulletin {
    /// Minimum number of ticks between two announcements.
    period: Ticks,
    /// The earliest time of the next.
    next: Ticks,
    /// A timer runs for it.
    waits: bool,
}

impl Bulletin {
    pub fn every(period: Ticks) -> Bulletin {
        Bulletin { period, next: 0, waits: false }
    }

    /// Minimum number of ticks between two announcements.
    pub fn period(&self) -> Ticks {
        self.period
    }

    /// Notes a change of the load. Returns true if it is to be announced now. Otherwise a timer runs, and [`due`](Bulletin::due) returns
    /// true when it has expired.
    pub fn news<M>(&mut self, now: Ticks, act: &mut Actions<M>) -> bool {
        let is_time = now >= self.next;
        if is_time {
            self.waits = false;
            self.next = now.saturating_add(self.period);
        } else if !self.waits {
            self.waits = true;
            act.timer(self.next);
        }
        is_time
    }

    /// A timer has run out: whether news has waited for it.
    pub fn due(&mut self, now: Ticks) -> bool {
        let is_due = self.waits && now >= self.next;
        if is_due {
            self.waits = false;
            self.next = now.saturating_add(self.period);
        }
        is_due
    }
}

/// The longest [`pause`] after a first failure.
pub(super) const FIRST_PAUSE: Ticks = 20_000;

/// Time to wait after this number of successive failures: a random time, doubled on average with each, from 20 us up to 1 ms; or up to
/// `longest`, if that is more.
pub(super) fn pause(failures: u32, longest: Ticks, rng: &mut ChaCha8Rng) -> Ticks {
    const MOST: Ticks = 1_000_000;
    let most = (FIRST_PAUSE << failures.min(32)).min(MOST.max(longest));
    rng.random_range(most / 2..=most)
}

/// Draws the time in its period at which a node begins: at random, so that not all begin at once. It takes one number from the generator,
/// however long the period is, so that what is drawn later does not depend on it.
pub(super) fn phase(period: Ticks, rng: &mut ChaCha8Rng) -> Ticks {
    ((u128::from(rng.random::<u64>()) * u128::from(period)) >> 64) as Ticks
}

#[cfg(test)]
pub(super) fn place(topology: &str, ranks: u32, me: NodeId) -> Place {
    use crate::topology::{Overlay, Topology};
    let overlay = Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap();
    Place { me, host: 0, overlay, workers: 1, unit: 1000 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::policy::Action;
    use rand::SeedableRng;

    #[test]
    fn the_least_loaded_neighbour_is_one_of_those_that_tie() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut around = Neighbourhood::of(&place("hypercube:3", 8, 0));
        around.hear(2, 4);
        around.sent(4, 1);
        assert_eq!((around.least(), around.least_loaded(&mut rng)), (Some(0), Some(1)));
        around.hear(1, 1);
        around.hear(7, 0);
        let mut chosen = [0; 8];
        (0..1000).filter_map(|_| around.least_loaded(&mut rng)).for_each(|node| chosen[node as usize] += 1);
        assert!((400..600).contains(&chosen[1]) && chosen[1] + chosen[4] == 1000, "{chosen:?}");
        // Q3 on 5 ranks: node 5 is virtual.
        assert_eq!(Neighbourhood::of(&place("hypercube:3", 5, 5)).least(), None);
    }

    #[test]
    fn pauses_double_up_to_a_millisecond_or_the_period() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (failures, period, most) in [(0, 0, 20_000), (3, 9_000_000, 160_000), (40, 0, 1_000_000), (40, 9_000_000, 9_000_000)] {
            let pauses: Vec<Ticks> = (0..100).map(|_| pause(failures, period, &mut rng)).collect();
            assert!(pauses.iter().all(|pause| (most / 2..=most).contains(pause)), "{failures}, {period}: {pauses:?}");
        }
    }

    #[test]
    fn announcements_keep_their_distance_and_silence_costs_nothing() {
        let mut act: Actions<()> = Actions::default();
        let mut bulletin = Bulletin::every(100);
        assert!(bulletin.news(1000, &mut act));
        assert!(!bulletin.due(1100));
        assert!(!bulletin.news(1050, &mut act) && !bulletin.news(1060, &mut act));
        assert_eq!(act.take(), [Action::Timer { at: 1100 }]);
        assert!(!bulletin.due(1099) && bulletin.due(1100) && !bulletin.due(1100));
        assert!(!bulletin.news(1150, &mut act) && bulletin.due(1200) && bulletin.news(1400, &mut act));
        let mut eager = Bulletin::every(0);
        assert!(eager.news(7, &mut act) && eager.news(7, &mut act));
    }
}
