//! Random placement at spawn: each new task goes to a uniformly random rank, its own included, and stays there (the random policy of Eager,
//! Lazowska and Zahorjan, "Adaptive load sharing in homogeneous distributed systems", IEEE Trans. Software Eng. 12, 1986, section 4, with one
//! transfer at most). It needs no information at all.
//!
//! Cost: (p - 1) / p migrations a task, no other messages. Guarantee: none at a moment; in the long run every rank is sent as much.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{ANY, Entry, Facts, Scheduler};
use crate::error::Result;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "random",
    title: "random placement at spawn",
    source: "Eager, Lazowska and Zahorjan 1986, section 4",
    options: "",
    examples: &["random"],
    build,
    facts: Facts { kinds: ANY },
};

fn build(_: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Random))
}

struct Random;

impl Scheduler for Random {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Anywhere { place, rng }))
    }
}

struct Anywhere {
    place: Place,
    rng: ChaCha8Rng,
}

impl Policy for Anywhere {
    type Message = ();

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<()>) {
        for new in items {
            let to: NodeId = match origin {
                Origin::Migrated { .. } => self.place.me,
                _ => self.place.any_real(&mut self.rng),
            };
            match origin {
                _ if to == self.place.me => act.queue(new.item),
                Origin::Root { .. } => act.submit(new.item, to),
                _ => act.migrate(new.item, to),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::policy::{Action, ItemId};
    use crate::topology::{Overlay, Topology};
    use rand::SeedableRng;

    #[test]
    fn new_tasks_go_anywhere_real_once() {
        let overlay = Overlay::one_host(Topology::parse("hypercube:3", 5).unwrap(), 5).unwrap();
        let place = Place { me: 2, host: 0, overlay, workers: 1, unit: 1 };
        let mut policy = Anywhere { place, rng: ChaCha8Rng::seed_from_u64(1) };
        let view = View { now: 0, ready: 0, running: 0, workers: 1 };
        let items: Vec<New> = (0..500).map(|item| New { item: ItemId(item), hops: 0 }).collect();
        let mut act = Actions::default();
        policy.on_new(&items, Origin::Spawned, &view, &mut act);
        let mut placed = [0; 5];
        for action in act.take() {
            match action {
                Action::Queue(_) => placed[2] += 1,
                Action::Send { to, migration: true, .. } => placed[to as usize] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(placed.iter().all(|count| (70..130).contains(count)), "{placed:?}");
        policy.on_new(&items[..1], Origin::Migrated { from: 1 }, &view, &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(0))]);
        policy.on_new(&items[..50], Origin::Root { stream: true }, &view, &mut act);
        assert!(act.take().iter().all(|action| matches!(action, Action::Queue(_) | Action::Send { migration: false, .. })));
    }
}
