//! Adaptive contracting within a neighbourhood: Shu and Kalé, "Dynamic scheduling of medium-grained processes on multicomputers", 1989.
//! [Contracting](super::cwn) with two remedies: it stops where all are busy anyway, and what was placed wrongly is moved once more.
//!
//! 1. *Saturation control.* Where the node and all its neighbours have at least `saturation` tasks a worker, a task spawned here stays here: moving
//!    it would keep no worker from idling.
//! 2. Otherwise it is contracted; with `horizon=0` a task stays where it was born if no neighbour has less.
//! 3. *Redistribution.* A node with ready tasks next to one with nothing to do gives it half of the difference, at least one.
//!
//! ```text
//!   9 === 8 === 7      all above saturation: new tasks stay
//!   9 --> 0     7      a node idles: (9 - 0) / 2 ready tasks move at once
//! ```
//!
//! Cost: up to `radius` migrations a new task, none under saturation; a task that is redistributed may move again. Announcements as `cwn`'s.
//! Guarantee: none; an idle node next to a node with ready tasks is given some as soon as that node hears of it.
//!
//! The source's ideas are these three as we know them from its summaries; its figures (when is a node saturated, how much is redistributed, how
//! often) are not known to us. Here: `saturation=3`; half of the difference; whenever loads change. Loads, announcements and streams: as `cwn`.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::cwn::{Contracting, Distance, Load};
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "acwn",
    title: "adaptive contracting within a neighbourhood",
    source: "Shu and Kalé 1989",
    options: "saturation=3 (tasks a worker), horizon=0, radius=5, age=0.5 (units of the workload's time between announcements at least)",
    examples: &["acwn"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Acwn {
        saturation: options.whole("saturation", 1)?.unwrap_or(3),
        distance: Distance::read(options, Distance { horizon: 0, radius: 5 })?,
        age: Units::read(options, "age")?.unwrap_or(Units(0.5)),
    }))
}

struct Acwn {
    distance: Distance,
    age: Units,
    saturation: u32,
}

impl Scheduler for Acwn {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let saturation = self.saturation.saturating_mul(place.workers.max(1));
        Ok(erase(Adaptive { contracting: Contracting::new(place, rng, self.distance, self.age), saturation }))
    }
}

struct Adaptive {
    contracting: Contracting,
    /// The load from which on a node is saturated.
    saturation: u32,
}

impl Adaptive {
    fn is_saturated(&self, load: u32) -> bool {
        load >= self.saturation && self.contracting.around.least().is_none_or(|least| least >= self.saturation)
    }

    /// Gives ready tasks to neighbours that idle.
    fn redistribute(&mut self, view: &View, act: &mut Actions<Load>) {
        let (mut load, mut ready) = (view.load(), view.ready);
        let Contracting { around, rng, .. } = &mut self.contracting;
        while ready > 0
            && load >= 2
            && around.least() == Some(0)
            && let Some(to) = around.least_loaded(rng)
        {
            let given = (load / 2).min(ready);
            act.share(to, given);
            around.sent(to, given);
            (load, ready) = (load - given, ready - given);
        }
    }
}

impl Policy for Adaptive {
    type Message = Load;

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Load>) {
        let mut load = view.load();
        let is_born_here = !matches!(origin, Origin::Migrated { .. } | Origin::Root { stream: true });
        for new in items {
            if is_born_here && self.is_saturated(load) {
                act.queue(new.item);
                load += 1;
            } else {
                load += u32::from(self.contracting.contract(*new, origin, load, act));
            }
        }
        self.contracting.has_come(origin, view, act);
    }

    fn on_message(&mut self, from: NodeId, Load(load): Load, view: &View, act: &mut Actions<Load>) {
        self.contracting.around.hear(from, load);
        self.redistribute(view, act);
    }

    fn on_load(&mut self, from: NodeId, load: u32, _: &View, _: &mut Actions<Load>) {
        self.contracting.around.hear(from, load);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Load>) {
        self.contracting.timer(view, act);
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Load>) {
        self.contracting.changed(view, act);
        self.redistribute(view, act);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::{Action, ItemId};
    use rand::SeedableRng;

    fn node(loads: [u32; 2]) -> Adaptive {
        let distance = Distance { horizon: 0, radius: 5 };
        let mut contracting = Contracting::new(place("line", 3, 1), ChaCha8Rng::seed_from_u64(1), distance, Units(0.5));
        contracting.around.hear(0, loads[0]);
        contracting.around.hear(2, loads[1]);
        Adaptive { contracting, saturation: 3 }
    }

    fn view(ready: u32) -> View {
        View { now: 1000, ready, running: 1, workers: 1 }
    }

    #[test]
    fn under_saturation_new_tasks_stay_and_others_go_downhill() {
        let new = [New { item: ItemId(1), hops: 0 }];
        let mut act = Actions::default();
        for (loads, ready, stays) in [([3, 9], 7, true), ([2, 9], 7, false), ([2, 9], 1, true), ([3, 3], 3, true)] {
            node(loads).on_new(&new, Origin::Spawned, &view(ready), &mut act);
            let expected = match stays {
                true => Action::Queue(ItemId(1)),
                false => Action::Send { item: ItemId(1), to: 0, migration: true },
            };
            assert_eq!(act.take(), [expected], "{loads:?}, {ready}");
        }
        // A task from another node is passed on all the same.
        node([3, 9]).on_new(&new, Origin::Migrated { from: 2 }, &view(7), &mut act);
        assert_eq!(act.take()[0], Action::Send { item: ItemId(1), to: 0, migration: true });
    }

    #[test]
    fn who_idles_is_given_half_of_the_difference_once() {
        let mut act = Actions::default();
        let mut busy = node([9, 9]);
        busy.on_message(0, Load(0), &view(8), &mut act);
        assert_eq!(act.take(), [Action::Share { to: 0, most: 4 }]);
        busy.redistribute(&view(4), &mut act);
        assert_eq!(act.take(), []);
        // Two that idle: half, then half of what is left. Running tasks don't move.
        let mut between = node([0, 0]);
        between.redistribute(&view(8), &mut act);
        let Action::Share { to: first, most: 4 } = act.take()[0] else { panic!("no first") };
        between.contracting.around.hear(first, 0);
        between.redistribute(&view(1), &mut act);
        assert_eq!(act.take(), [Action::Share { to: first, most: 1 }]);
        between.contracting.around.hear(first, 0);
        between.redistribute(&view(0), &mut act);
        assert_eq!(act.take(), []);
    }
}
