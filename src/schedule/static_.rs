//! No balancing: a task stays where it was submitted or spawned. The reference for all other schedulers.
//!
//! One root so keeps one rank busy. The roots of a stream arrive at uniformly random ranks, as at independent machines: without children
//! and migration each rank is then a queue of its own (M/M/1 for exponential times and Poisson arrivals).
//!
//! Cost: one message for each root of a stream. Guarantee: none.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{ANY, Entry, Facts, Scheduler};
use crate::error::Result;
use crate::spec::{InvalidSpec, Options};

pub(super) static ENTRY: Entry = Entry {
    name: "static",
    title: "no balancing",
    source: "the reference that every scheduler must beat",
    options: "",
    examples: &["static"],
    build,
    facts: Facts { kinds: ANY },
};

fn build(_: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Static))
}

struct Static;

impl Scheduler for Static {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Stay { place, rng }))
    }
}

struct Stay {
    place: Place,
    rng: ChaCha8Rng,
}

impl Policy for Stay {
    type Message = ();

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<()>) {
        for new in items {
            match origin {
                Origin::Root { stream: true } => act.submit(new.item, self.place.any_real(&mut self.rng)),
                _ => act.queue(new.item),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::policy::{Action, ItemId};
    use crate::topology::Overlay;
    use rand::SeedableRng;

    #[test]
    fn tasks_stay_and_the_roots_of_a_stream_arrive_anywhere() {
        let overlay = Overlay::one_host(crate::topology::Topology::parse("hypercube:3", 5).unwrap(), 5).unwrap();
        let place = Place { me: 0, host: 0, overlay, workers: 1, unit: 1 };
        let mut policy = Stay { place, rng: ChaCha8Rng::seed_from_u64(1) };
        let view = View { now: 0, ready: 9, running: 1, workers: 1 };
        let items: Vec<New> = (0..500).map(|item| New { item: ItemId(item), hops: 0 }).collect();
        let mut act = Actions::default();
        for origin in [Origin::Root { stream: false }, Origin::Spawned, Origin::Migrated { from: 3 }] {
            policy.on_new(&items[..2], origin, &view, &mut act);
            assert_eq!(act.take(), [Action::Queue(ItemId(0)), Action::Queue(ItemId(1))]);
        }
        policy.on_new(&items, Origin::Root { stream: true }, &view, &mut act);
        let mut arrivals = [0; 5];
        for action in act.take() {
            let Action::Send { to, migration: false, .. } = action else { panic!("{action:?}") };
            arrivals[to as usize] += 1;
        }
        assert!(arrivals.iter().all(|count| (70..130).contains(count)), "{arrivals:?}");
    }
}
