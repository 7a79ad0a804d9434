//! Neighbourhood averaging, the distributed baseline of Ahmad, Ghafoor and Fox (1994, section 5):
//! a node that is busier than its neighbours on average sends a new task to the least loaded of them, hop by hop.
//!
//! 1. A task that is submitted, spawned or has come migrates if the node's load (ready and running tasks, without the task itself) is strictly
//!    greater than the average of its neighbours' loads, as they were last announced; to the least loaded, ties random.
//! 2. Otherwise, and after 10 hops, it is queued here.
//! 3. Every node announces its load to its neighbours every `age` units of time, with a random phase; with `age=0` whenever it changes. On real
//!    ranks each task and answer tells it too.
//!
//! ```text
//!        1
//!        |          load 4 > (1 + 3 + 2) / 3: the new task goes to the neighbour of load 1,
//!   3 -- 4 -- 2     where it is decided again
//! ```
//!
//! The age of what is known decides the result, and the paper does not tell it: with `age=0.5` most of its section 6 holds, with perfectly fresh
//! loads the baseline wins at low load. The roots of a stream arrive at uniformly random ranks.
//!
//! Cost: at most 10 migrations a task; an announcement to each neighbour every `age`. Guarantee: none.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::phase;
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::node::Ticks;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "neighbour",
    title: "averaging with the neighbours",
    source: "the baseline of Ahmad, Ghafoor and Fox 1994, section 5",
    options: "age=0.5 (units of the workload's time between announcements; 0: whenever the load changes), hops=10",
    examples: &["neighbour", "neighbour:age=0", "neighbour:age=0.5,hops=3"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Neighbour { age: Units::read(options, "age")?.unwrap_or(Units(0.5)), hops: options.whole("hops", 0)?.unwrap_or(10) }))
}

struct Neighbour {
    age: Units,
    hops: u32,
}

impl Scheduler for Neighbour {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let period = Some(self.age.ticks(place.unit)).filter(|period| *period > 0);
        let loads = place.neighbours().into_iter().map(|node| (node, 0)).collect();
        Ok(erase(Average { place, rng, period, most_hops: self.hops, loads }))
    }
}

struct Average {
    place: Place,
    rng: ChaCha8Rng,
    /// Ticks between two announcements; `None`: whenever the load changes.
    period: Option<Ticks>,
    most_hops: u32,
    /// The neighbours' loads as they were last heard of.
    loads: BTreeMap<NodeId, u32>,
}

/// A node's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Load(u32);

impl Average {
    /// Next node of a new task; `None` if it stays.
    fn decide(&mut self, load: u32, hops: u32) -> Option<NodeId> {
        let sum: u64 = self.loads.values().map(|load| u64::from(*load)).sum();
        if hops >= self.most_hops || u64::from(load) * self.loads.len() as u64 <= sum {
            return None;
        }
        let least = self.loads.values().copied().min()?;
        let ties = self.loads.values().filter(|load| **load == least).count();
        let chosen = if ties > 1 { self.rng.random_range(0..ties) } else { 0 };
        self.loads.iter().filter(|(_, load)| **load == least).nth(chosen).map(|(node, _)| *node)
    }

    fn announce(&self, view: &View, act: &mut Actions<Load>) {
        for node in self.loads.keys() {
            act.tell(*node, Load(view.load()));
        }
    }

    fn is_alone(&self) -> bool {
        self.loads.is_empty() || self.place.is_virtual()
    }
}

impl Policy for Average {
    type Message = Load;

    fn start(&mut self, view: &View, act: &mut Actions<Load>) {
        if let Some(period) = self.period
            && !self.is_alone()
        {
            act.timer(view.now.saturating_add(phase(period, &mut self.rng)));
        }
    }

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Load>) {
        let mut load = view.load();
        for new in items {
            if origin == (Origin::Root { stream: true }) {
                let to = self.place.any_real(&mut self.rng);
                if to != self.place.me {
                    act.submit(new.item, to);
                    continue;
                }
            }
            match self.decide(load, new.hops) {
                Some(to) => act.migrate(new.item, to),
                None => {
                    act.queue(new.item);
                    load += 1;
                }
            }
        }
    }

    fn on_message(&mut self, from: NodeId, Load(load): Load, view: &View, act: &mut Actions<Load>) {
        self.on_load(from, load, view, act);
    }

    fn on_load(&mut self, from: NodeId, load: u32, _: &View, _: &mut Actions<Load>) {
        // Only neighbours are asked.
        if let Some(known) = self.loads.get_mut(&from) {
            *known = load;
        }
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Load>) {
        if let Some(period) = self.period {
            self.announce(view, act);
            act.timer(view.now.saturating_add(period));
        }
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Load>) {
        if self.period.is_none() && !self.is_alone() {
            self.announce(view, act);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::policy::{Action, ItemId};
    use crate::topology::{Overlay, Topology};
    use rand::SeedableRng;

    fn node(topology: &str, ranks: u32, me: NodeId, loads: &[u32], period: Option<Ticks>) -> Average {
        let overlay = Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap();
        let place = Place { me, host: 0, overlay, workers: 1, unit: 1000 };
        let neighbours = place.neighbours();
        assert_eq!(neighbours.len(), loads.len());
        let loads = neighbours.into_iter().zip(loads.iter().copied()).collect();
        Average { place, rng: ChaCha8Rng::seed_from_u64(1), period, most_hops: 10, loads }
    }

    fn view(ready: u32, running: u32) -> View {
        View { now: 100, ready, running, workers: 1 }
    }

    #[test]
    fn a_task_goes_to_the_least_loaded_if_the_load_is_strictly_above_the_average() {
        // The drawing: 4 > 2. At 2 = 2 it stays.
        let mut average = node("hypercube:3", 8, 0, &[1, 3, 2], None);
        assert_eq!(average.decide(4, 0), Some(1));
        assert_eq!(average.decide(3, 9), Some(1));
        assert_eq!(average.decide(2, 0), None);
        assert_eq!(average.decide(4, 10), None);
        let mut ties = [0; 8];
        let mut average = node("hypercube:3", 8, 0, &[1, 5, 1], None);
        (0..1000).filter_map(|_| average.decide(9, 0)).for_each(|to| ties[to as usize] += 1);
        assert!((400..600).contains(&ties[1]) && ties[1] + ties[4] == 1000, "{ties:?}");
    }

    #[test]
    fn siblings_are_decided_one_after_the_other() {
        let mut average = node("hypercube:2", 4, 0, &[1, 2], None);
        let items: Vec<New> = (0..3).map(|item| New { item: ItemId(item), hops: 0 }).collect();
        let mut act = Actions::default();
        // With 1 the first stays (1 <= 1.5), with 2 the others go on.
        average.on_new(&items, Origin::Spawned, &view(0, 1), &mut act);
        let send = |item| Action::Send { item: ItemId(item), to: 1, migration: true };
        assert_eq!(act.take(), [Action::Queue(ItemId(0)), send(1), send(2)]);
    }

    #[test]
    fn loads_are_announced_every_age_or_with_every_change() {
        let mut act = Actions::default();
        let mut regular = node("hypercube:1", 2, 0, &[0], Some(500));
        regular.start(&view(0, 0), &mut act);
        let first = act.take();
        assert!(matches!(first[..], [Action::Timer { at: 100..600 }]), "{first:?}");
        regular.on_change(&view(2, 1), &mut act);
        assert_eq!(act.take(), []);
        regular.on_timer(&view(2, 1), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Load(3) }, Action::Timer { at: 600 }]);
        let mut fresh = node("hypercube:1", 2, 0, &[0], None);
        fresh.start(&view(0, 0), &mut act);
        assert_eq!(act.take(), []);
        fresh.on_change(&view(1, 1), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Load(2) }]);
        fresh.on_message(1, Load(7), &view(0, 0), &mut act);
        fresh.on_load(5, 9, &view(0, 0), &mut act);
        assert_eq!(fresh.loads, BTreeMap::from([(1, 7)]));
    }

    #[test]
    fn a_lone_rank_keeps_all_and_virtual_nodes_stand_for_their_ranks() {
        let mut act = Actions::default();
        let mut alone = node("hypercube:0", 1, 0, &[], Some(500));
        alone.start(&view(0, 0), &mut act);
        alone.on_new(&[New { item: ItemId(1), hops: 0 }], Origin::Spawned, &view(9, 1), &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(1))]);
        // Q3 on 5 ranks: node 5 is on rank 0, 6 on 1, 7 on 2. Node 4 is next to 0, 5 and 6.
        assert_eq!(node("hypercube:3", 5, 4, &[0, 0], None).place.neighbours(), [0, 1]);
        assert_eq!(node("hypercube:3", 5, 1, &[0, 0, 0, 0], None).place.neighbours(), [0, 2, 3, 4]);
    }

    #[test]
    fn the_roots_of_a_stream_arrive_anywhere() {
        let mut average = node("hypercube:1", 2, 0, &[9], None);
        let items: Vec<New> = (0..200).map(|item| New { item: ItemId(item), hops: 0 }).collect();
        let mut act = Actions::default();
        average.on_new(&items, Origin::Root { stream: true }, &view(0, 0), &mut act);
        let sent = act.take().iter().filter(|action| matches!(action, Action::Send { migration: false, .. })).count();
        assert!((70..130).contains(&sent), "{sent}");
    }
}
