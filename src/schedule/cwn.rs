//! Contracting within a neighbourhood: Kalé, "Comparing the performance of two dynamic load distribution methods", ICPP 1988; Shu and Kalé, "Dynamic
//! scheduling of medium-grained processes on multicomputers", 1989. A new task goes downhill, from neighbour to neighbour, until no neighbour has
//! less to do; there it stays for good.
//!
//! 1. A new task goes to the least loaded neighbour, ties random.
//! 2. A node to which one comes keeps it if it has made `horizon` hops and no neighbour has strictly less load than the node, or if it has
//!    made `radius` hops. Otherwise it goes on to the least loaded neighbour.
//! 3. Loads are known from announcements, at least `age` apart and only after a change; on real ranks also from each task and answer. A node that
//!    sends a task adds it to the load that it knows of the receiver.
//!
//! ```text
//!   5 --- 3 --- 1 --- 2        a task spawned at 5 goes to 3, then to 1, and stays:
//!         |     |              no neighbour has less than 1
//!         4     2
//! ```
//!
//! Cost: `horizon` to `radius` migrations a task; an announcement to each neighbour every `age` while the load changes. Guarantee: none.
//!
//! Gaps of the sources, and our choices: the load is the number of tasks that are ready or running, without the task itself. The
//! default radius 5 and horizon 1 are those that Kalé used on his double lattice meshes. That a sender counts what it sent is ours; otherwise all
//! children of a task go to the same neighbour. The roots of a stream arrive at uniformly random ranks.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::{Bulletin, Neighbourhood};
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "cwn",
    title: "contracting within a neighbourhood",
    source: "Kalé 1988; Shu and Kalé 1989",
    options: "horizon=1 (hops at least), radius=5 (hops at most), age=0.5 (units of the workload's time between announcements at least)",
    examples: &["cwn", "cwn:horizon=0,radius=2,age=0"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Cwn {
        distance: Distance::read(options, Distance { horizon: 1, radius: 5 })?,
        age: Units::read(options, "age")?.unwrap_or(Units(0.5)),
    }))
}

struct Cwn {
    distance: Distance,
    age: Units,
}

impl Scheduler for Cwn {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Contractor(Contracting::new(place, rng, self.distance, self.age))))
    }
}

/// Limits of a new task's travel, in hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distance {
    /// Minimum number of hops.
    pub horizon: u32,
    /// Maximum number of hops.
    pub radius: u32,
}

impl Distance {
    /// The options `horizon` and `radius`.
    pub fn read(options: &mut Options<'_>, default: Distance) -> Result<Distance, InvalidSpec> {
        let horizon = options.whole("horizon", 0)?.unwrap_or(default.horizon);
        let radius = options.whole("radius", 0)?.unwrap_or(default.radius);
        match horizon > radius {
            true => Err(options.wrong("horizon", &horizon.to_string(), &format!("no more than radius={radius}"))),
            false => Ok(Distance { horizon, radius }),
        }
    }
}

/// A node's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Load(pub u32);

/// State of the contracting rule on one node, and its decision on each task.
pub(super) struct Contracting {
    pub place: Place,
    pub rng: ChaCha8Rng,
    pub distance: Distance,
    pub around: Neighbourhood,
    bulletin: Bulletin,
}

impl Contracting {
    pub fn new(place: Place, rng: ChaCha8Rng, distance: Distance, age: Units) -> Contracting {
        let (around, bulletin) = (Neighbourhood::of(&place), Bulletin::every(age.ticks(place.unit)));
        Contracting { place, rng, distance, around, bulletin }
    }

    /// Next node of a task that has made `hops` hops, from a node with this load; `None` if it stays.
    pub fn decide(&mut self, load: u32, hops: u32) -> Option<NodeId> {
        let Distance { horizon, radius } = self.distance;
        if hops >= radius || (hops >= horizon && load <= self.around.least()?) {
            return None;
        }
        self.around.least_loaded(&mut self.rng)
    }

    /// Places one task, on a node with this load. Returns true if it stays.
    pub fn contract(&mut self, new: New, origin: Origin, load: u32, act: &mut Actions<Load>) -> bool {
        if origin == (Origin::Root { stream: true }) {
            let to = self.place.any_real(&mut self.rng);
            if to != self.place.me {
                act.submit(new.item, to);
                return false;
            }
        }
        match self.decide(load, new.hops) {
            Some(to) => {
                self.around.sent(to, 1);
                act.migrate(new.item, to);
                false
            }
            None => {
                act.queue(new.item);
                true
            }
        }
    }

    /// Called after a change of the load: announces it to the neighbours, if it is time.
    pub fn changed(&mut self, view: &View, act: &mut Actions<Load>) {
        if self.around.least().is_some() && self.bulletin.news(view.now, act) {
            self.around.tell(&Load(view.load()), act);
        }
    }

    /// Records that a task has arrived. If it goes on, the load stays the same, but its sender believes the task to be here.
    pub fn has_come(&mut self, origin: Origin, view: &View, act: &mut Actions<Load>) {
        if let Origin::Migrated { .. } = origin {
            self.changed(view, act);
        }
    }

    /// A timer has run out.
    pub fn timer(&mut self, view: &View, act: &mut Actions<Load>) {
        if self.bulletin.due(view.now) {
            self.around.tell(&Load(view.load()), act);
        }
    }
}

struct Contractor(Contracting);

impl Policy for Contractor {
    type Message = Load;

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Load>) {
        let mut load = view.load();
        for new in items {
            load += u32::from(self.0.contract(*new, origin, load, act));
        }
        self.0.has_come(origin, view, act);
    }

    fn on_message(&mut self, from: NodeId, Load(load): Load, _: &View, _: &mut Actions<Load>) {
        self.0.around.hear(from, load);
    }

    fn on_load(&mut self, from: NodeId, load: u32, _: &View, _: &mut Actions<Load>) {
        self.0.around.hear(from, load);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Load>) {
        self.0.timer(view, act);
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Load>) {
        self.0.changed(view, act);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::{Action, ItemId};
    use rand::SeedableRng;

    fn node(topology: &str, ranks: u32, me: NodeId, loads: &[(NodeId, u32)], distance: (u32, u32)) -> Contractor {
        let (horizon, radius) = distance;
        let mut node = Contracting::new(place(topology, ranks, me), ChaCha8Rng::seed_from_u64(1), Distance { horizon, radius }, Units(0.5));
        loads.iter().for_each(|(from, load)| node.around.hear(*from, *load));
        Contractor(node)
    }

    const VIEW: View = View { now: 1000, ready: 2, running: 1, workers: 1 };

    #[test]
    fn a_task_goes_downhill_between_horizon_and_radius() {
        // The drawing: node 1 of a line has load 3 between 5 and 1.
        let mut middle = node("line", 4, 1, &[(0, 5), (2, 1)], (1, 5)).0;
        assert_eq!([middle.decide(3, 1), middle.decide(3, 4), middle.decide(3, 5)], [Some(2), Some(2), None]);
        // The local minimum keeps it, ties included, but not before the horizon.
        assert_eq!([middle.decide(1, 1), middle.decide(0, 1), middle.decide(1, 0)], [None, None, Some(2)]);
        assert_eq!(node("line", 1, 0, &[], (1, 5)).0.decide(9, 0), None);
        assert_eq!(node("line", 2, 0, &[(1, 0)], (0, 0)).0.decide(9, 0), None);
    }

    #[test]
    fn children_spread_since_what_was_sent_counts() {
        let mut parent = node("hypercube:2", 4, 0, &[(1, 0), (2, 2)], (1, 5));
        let items: Vec<New> = (0..5).map(|item| New { item: ItemId(item), hops: 0 }).collect();
        let mut act = Actions::default();
        parent.on_new(&items, Origin::Spawned, &VIEW, &mut act);
        let mut sent = [0; 4];
        act.take().iter().for_each(|action| match action {
            Action::Send { to, migration: true, .. } => sent[*to as usize] += 1,
            other => panic!("{other:?}"),
        });
        assert!(sent[1] + sent[2] == 5 && (3..=4).contains(&sent[1]), "{sent:?}");
    }

    #[test]
    fn a_node_announces_changes_and_what_passed_through_it() {
        let mut middle = node("line", 3, 1, &[(0, 0), (2, 9)], (1, 5));
        let mut act = Actions::default();
        middle.on_change(&VIEW, &mut act);
        let tell = |to, load| Action::Tell { to, message: Load(load) };
        assert_eq!(act.take(), [tell(0, 3), tell(2, 3)]);
        let passing = New { item: ItemId(1), hops: 1 };
        middle.on_new(&[passing], Origin::Migrated { from: 2 }, &VIEW, &mut act);
        assert_eq!(act.take(), [Action::Send { item: ItemId(1), to: 0, migration: true }, Action::Timer { at: 1500 }]);
        middle.on_timer(&View { now: 1500, ..VIEW }, &mut act);
        assert_eq!(act.take(), [tell(0, 3), tell(2, 3)]);
        middle.on_timer(&View { now: 2500, ..VIEW }, &mut act);
        assert_eq!(act.take(), []);
    }

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let wrong = |spec: &str| crate::schedule::find(spec).err().map(|why| why.to_string()).unwrap_or_default();
        assert_eq!(wrong("cwn:horizon=2,radius=2,age=0"), "");
        assert_eq!(wrong("cwn:horizon=6"), "scheduler cwn: horizon is no more than radius=5, not '6'");
        assert_eq!(wrong("cwn:radius=-1"), "scheduler cwn: radius is a whole number, 0 or more, not '-1'");
        assert_eq!(wrong("cwn:age=-1"), "scheduler cwn: age is a number of time units, 0 or more, not '-1'");
        assert_eq!(wrong("cwn:hops=1"), "scheduler cwn has no option 'hops'; it has horizon, radius, age");
    }
}
