//! The gradient model: Lin and Keller, "Gradient model: a demand driven load balancing scheme", ICDCS 1986; "The gradient model load balancing
//! method", IEEE Trans. Software Eng. 13, 1987. Idle nodes shape a surface of distances over the network, and surplus tasks run down it.
//!
//! 1. A node is *idle* if its load (ready and running tasks) is below the low-water mark, *abundant* if it is above the high-water mark, and
//!    *neutral* in between.
//! 2. Its *proximity* is 0 if it is idle, otherwise 1 + the least proximity of its neighbours, at most diameter + 1, which means that no node idles.
//!    A node informs its neighbours when its proximity changes.
//! 3. An abundant node sends its oldest ready task to the neighbour with the least proximity, ties random, if that means that a node idles; the next
//!    one when it hears of a nearer idle node, or after `age`.
//! 4. A task that arrives at an idle node stays. Elsewhere it goes on in the same way, but not back, and at most diameter + 1 hops.
//!
//! ```text
//!   load       7     2     2     0     2        high = 2, low = 1
//!   proximity  3     2     1     0     1
//!              *---->----->----->*              a task runs down to the node that idles
//! ```
//!
//! Cost: a change of one node's proximity may run through the whole network, one message a link; nothing is said while nothing changes. Guarantee:
//! none; several abundant nodes may see the same idle node.
//!
//! Gaps of the sources, and our choices. That neutral nodes pass tasks on is how we read "migrates until it reaches an idle node";
//! others let the task wait there until the node is abundant. The marks: `low=1` (a node without tasks is idle), `high=1`, a worker each.
//! Announcements are at least `age` apart. Lin and Keller send one task with each update of the surface, which the pause of rule 3 stands for;
//! without it every node would send all its tasks to the same idle node. A neighbour that was sent a task is passed over for the same time. The
//! roots of a stream arrive at uniformly random ranks.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::Bulletin;
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::node::Ticks;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "gradient",
    title: "the gradient model",
    source: "Lin and Keller 1987",
    options: "low=1, high=1 (tasks a worker: idle is who has less than low, abundant who has more than high), \
              age=0.5 (units of the workload's time between announcements at least)",
    examples: &["gradient", "gradient:age=0,low=2,high=2"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let (low, high) = (options.whole("low", 1)?.unwrap_or(1), options.whole("high", 0)?.unwrap_or(1));
    // Otherwise a node could be both.
    if u64::from(high) + 1 < u64::from(low) {
        return Err(options.wrong("high", &high.to_string(), &format!("no less than low={low} without 1")));
    }
    Ok(Arc::new(Gradient { low, high, age: Units::read(options, "age")?.unwrap_or(Units(0.5)) }))
}

struct Gradient {
    low: u32,
    high: u32,
    age: Units,
}

impl Scheduler for Gradient {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Slope::new(place, rng, self)))
    }
}

/// A node's proximity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Proximity(u32);

/// A node's knowledge of a neighbour.
struct Around {
    proximity: u32,
    /// A task was sent to it: it gets no other before this time or a message from it.
    rests_until: Ticks,
}

struct Slope {
    place: Place,
    rng: ChaCha8Rng,
    low: u32,
    high: u32,
    /// The proximity which means that no node idles.
    nobody: u32,
    around: BTreeMap<NodeId, Around>,
    /// The proximity that the neighbours know. At first all idle.
    announced: u32,
    bulletin: Bulletin,
    /// Ticks between two tasks.
    rest: Ticks,
    /// Time at which a timer runs out, before which no task is sent.
    resumes: Option<Ticks>,
}

impl Slope {
    fn new(place: Place, rng: ChaCha8Rng, Gradient { low, high, age }: &Gradient) -> Slope {
        let neighbours = if place.is_virtual() { Vec::new() } else { place.neighbours() };
        let around = neighbours.into_iter().map(|node| (node, Around { proximity: 0, rests_until: 0 })).collect();
        let (workers, age) = (place.workers.max(1), age.ticks(place.unit));
        Slope {
            rng,
            low: low.saturating_mul(workers),
            high: high.saturating_mul(workers),
            nobody: place.overlay.topology.diameter() + 1,
            around,
            announced: 0,
            bulletin: Bulletin::every(age),
            rest: age.max(1),
            resumes: None,
            place,
        }
    }

    /// The least proximity next to the node.
    fn nearest(&self) -> u32 {
        self.around.values().map(|around| around.proximity).min().unwrap_or(self.nobody)
    }

    fn proximity(&self, load: u32) -> u32 {
        if load < self.low { 0 } else { (self.nearest() + 1).min(self.nobody) }
    }

    fn announce(&mut self, view: &View, act: &mut Actions<Proximity>) {
        let proximity = self.proximity(view.load());
        if proximity != self.announced && self.bulletin.news(view.now, act) {
            self.tell(proximity, act);
        }
    }

    fn tell(&mut self, proximity: u32, act: &mut Actions<Proximity>) {
        self.announced = proximity;
        self.around.keys().for_each(|node| act.tell(*node, Proximity(proximity)));
    }

    /// Neighbours on the way to the nearest idle node, in ascending order.
    fn downhill(&self, but: Option<NodeId>) -> Vec<NodeId> {
        let others = || self.around.iter().filter(|(node, _)| Some(**node) != but);
        let nearest = others().map(|(_, around)| around.proximity).min().filter(|nearest| *nearest < self.nobody);
        others().filter(|(_, around)| Some(around.proximity) == nearest).map(|(node, _)| *node).collect()
    }

    fn sent(&mut self, to: NodeId, now: Ticks) {
        if let Some(around) = self.around.get_mut(&to) {
            around.rests_until = now.saturating_add(self.rest);
        }
    }

    /// Sends a surplus task downhill.
    fn relieve(&mut self, view: &View, act: &mut Actions<Proximity>) {
        let mut ways = self.downhill(None);
        if self.resumes.is_some() || view.load() <= self.high || view.ready == 0 || ways.is_empty() {
            return;
        }
        ways.retain(|to| self.around[to].rests_until <= view.now);
        if !ways.is_empty() {
            let to = ways[self.rng.random_range(0..ways.len())];
            act.share(to, 1);
            self.sent(to, view.now);
        }
        let at = view.now.saturating_add(self.rest);
        self.resumes = Some(at);
        act.timer(at);
    }
}

impl Policy for Slope {
    type Message = Proximity;

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Proximity>) {
        let mut load = view.load();
        for new in items {
            let onwards = match origin {
                Origin::Root { stream: true } => {
                    let to = self.place.any_real(&mut self.rng);
                    if to != self.place.me {
                        act.submit(new.item, to);
                        continue;
                    }
                    None
                }
                Origin::Migrated { from } if load >= self.low && new.hops < self.nobody => {
                    let ways = self.downhill(Some(from));
                    (!ways.is_empty()).then(|| ways[self.rng.random_range(0..ways.len())])
                }
                _ => None,
            };
            match onwards {
                Some(to) => {
                    act.migrate(new.item, to);
                    self.sent(to, view.now);
                }
                None => {
                    act.queue(new.item);
                    load += 1;
                }
            }
        }
    }

    fn on_message(&mut self, from: NodeId, Proximity(proximity): Proximity, view: &View, act: &mut Actions<Proximity>) {
        if let Some(around) = self.around.get_mut(&from) {
            if proximity < around.proximity {
                self.resumes = None;
            }
            *around = Around { proximity, rests_until: 0 };
        }
        self.announce(view, act);
        self.relieve(view, act);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Proximity>) {
        if self.bulletin.due(view.now) {
            let proximity = self.proximity(view.load());
            if proximity != self.announced {
                self.tell(proximity, act);
            }
        }
        if self.resumes.is_some_and(|at| at <= view.now) {
            self.resumes = None;
            self.relieve(view, act);
        }
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Proximity>) {
        self.announce(view, act);
        self.relieve(view, act);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::{Action, ItemId};
    use rand::SeedableRng;

    fn node(topology: &str, ranks: u32, me: NodeId, proximities: &[(NodeId, u32)]) -> Slope {
        let options = Gradient { low: 1, high: 2, age: Units(0.5) };
        let mut slope = Slope::new(place(topology, ranks, me), ChaCha8Rng::seed_from_u64(1), &options);
        for (node, proximity) in proximities {
            slope.around.get_mut(node).unwrap().proximity = *proximity;
        }
        slope
    }

    fn view(now: Ticks, ready: u32, running: u32) -> View {
        View { now, ready, running, workers: 1 }
    }

    #[test]
    fn proximities_are_those_of_the_drawing() {
        let loads = [7, 2, 2, 0, 2];
        let mut known = [5; 5];
        for _ in 0..4 {
            let before = known;
            for me in 0..5u32 {
                let beside = [me.checked_sub(1), (me < 4).then_some(me + 1)].into_iter().flatten();
                let beside: Vec<_> = beside.map(|node| (node, before[node as usize])).collect();
                known[me as usize] = node("line", 5, me, &beside).proximity(loads[me as usize]);
            }
        }
        assert_eq!(known, [3, 2, 1, 0, 1]);
        // No node idles: diameter + 1 and no more.
        assert_eq!(node("line", 5, 1, &[(0, 5), (2, 4)]).proximity(3), 5);
        assert_eq!(node("line", 5, 1, &[(0, 5), (2, 5)]).proximity(3), 5);
        assert_eq!(node("line", 1, 0, &[]).proximity(3), 1);
    }

    #[test]
    fn an_abundant_node_sends_a_task_to_one_of_the_nearest_and_then_waits() {
        let mut act = Actions::default();
        let mut slope = node("hypercube:3", 8, 0, &[(1, 0), (2, 2), (4, 0)]);
        slope.announced = 1;
        slope.relieve(&view(1000, 5, 1), &mut act);
        let [Action::Share { to: first, most: 1 }, Action::Timer { at: 1500 }] = act.take()[..] else { panic!("nothing is sent") };
        let other = 5 - first;
        assert!([1, 4].contains(&first));
        slope.on_change(&view(1100, 4, 1), &mut act);
        // No news.
        slope.on_message(other, Proximity(0), &view(1200, 4, 1), &mut act);
        assert_eq!(act.take(), []);
        // Node 2 idles now too, and the first still rests.
        slope.around.get_mut(&other).unwrap().proximity = 1;
        slope.on_message(2, Proximity(0), &view(1300, 4, 1), &mut act);
        assert_eq!(act.take(), [Action::Share { to: 2, most: 1 }, Action::Timer { at: 1800 }]);
        slope.on_timer(&view(1500, 3, 1), &mut act);
        assert_eq!(act.take(), []);
        slope.on_timer(&view(1800, 3, 1), &mut act);
        assert!(matches!(act.take()[..], [Action::Share { to: 1 | 2 | 4, most: 1 }, Action::Timer { at: 2300 }]));
        // Neutral: nothing.
        slope.on_timer(&view(2500, 1, 1), &mut act);
        assert_eq!(act.take(), []);
        // No node idles.
        let mut trapped = node("hypercube:3", 8, 0, &[(1, 4), (2, 4), (4, 4)]);
        trapped.relieve(&view(1000, 9, 1), &mut act);
        assert_eq!(act.take(), []);
    }

    #[test]
    fn a_task_runs_on_until_somebody_idles_but_not_back() {
        let mut act = Actions::default();
        let mut middle = node("line", 5, 2, &[(1, 2), (3, 0)]);
        let mut place = |middle: &mut Slope, from, hops, load| {
            middle.on_new(&[New { item: ItemId(1), hops }], Origin::Migrated { from }, &view(10, 0, load), &mut act);
            act.take()
        };
        let onwards = Action::Send { item: ItemId(1), to: 3, migration: true };
        assert_eq!(place(&mut middle, 1, 1, 1), [onwards]);
        assert_eq!(place(&mut middle, 1, 1, 0), [Action::Queue(ItemId(1))]);
        assert_eq!(place(&mut middle, 1, 5, 1), [Action::Queue(ItemId(1))]);
        // Not back to 3, and so to 1, which knows of an idle node.
        assert_eq!(place(&mut middle, 3, 1, 1), [Action::Send { item: ItemId(1), to: 1, migration: true }]);
        assert_eq!(place(&mut node("line", 5, 2, &[(1, 5), (3, 0)]), 3, 1, 1), [Action::Queue(ItemId(1))]);
    }

    #[test]
    fn proximity_is_announced_when_it_changes() {
        let mut act = Actions::default();
        let mut end = node("line", 5, 0, &[(1, 1)]);
        end.on_change(&view(1000, 0, 1), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Proximity(2) }]);
        end.on_change(&view(1100, 1, 1), &mut act);
        assert_eq!(act.take(), []);
        end.on_change(&view(1200, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Timer { at: 1500 }]);
        end.on_timer(&view(1500, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Proximity(0) }]);
        let why = crate::schedule::find("gradient:low=3,high=1").err().unwrap().to_string();
        assert_eq!(why, "scheduler gradient: high is no less than low=3 without 1, not '1'");
    }
}
