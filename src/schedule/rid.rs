//! Receiver-initiated diffusion: Willebeek-LeMair and Reeves, "Strategies for dynamic load balancing on highly parallel computers", IEEE Trans.
//! Parallel Distrib. Syst. 4, 1993. A node that runs short asks its neighbours, each in proportion to what it has more than their average.
//!
//! 1. A node whose load (ready and running tasks) is below `low` computes the average of its own and its neighbours' loads, as it knows them.
//! 2. It asks for its deficit to the average from the neighbours above the average, in proportion to their excesses, rounded. If all requests are
//!    rounded to 0 though it has nothing to do, it asks the most loaded neighbour for one task.
//! 3. Who is asked gives what is asked, up to half of its load; ready tasks only, the oldest; or else part of a task that it executes, if that can be
//!    split; or else a message that there is nothing, with its load.
//! 4. It asks again when all have answered; after a failure when it hears of a load, or after a pause, twice as long each time.
//! 5. A node announces its load to its neighbours when it has changed by the factor `u` (halved or doubled for 0.5) since the last announcement.
//!
//! ```text
//!        9           average (1 + 9 + 5 + 1) / 4 = 4, so 3 are lacking
//!        | 2
//!   5 -- 1 -- 1      above it: 9 by 5, 5 by 1: asked for 3 * 5/6 = 2.5 and 3 * 1/6 = 0.5,
//!      1             rounded 3 and 1; they give up to half
//! ```
//!
//! Cost: two messages a request, none while all are above `low`; announcements are few where loads are high. Guarantee: none; as diffusion it
//! reaches distant nodes only step by step.
//!
//! Departures: announcements are also at least `age` apart, since with loads of one or two every task would change them by the factor. The last
//! sentence of rule 2, the splitting and the pauses are ours: the source's machine asks once more with each update of a load. A threshold on the
//! average below which no node asks is left out. The roots of a stream arrive at uniformly random ranks.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::{Bulletin, Neighbourhood, pause};
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::node::Ticks;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "rid",
    title: "receiver-initiated diffusion",
    source: "Willebeek-LeMair and Reeves 1993",
    options: "low=2 (tasks a worker: who has less asks), u=0.5 (factor by which a load changes before it is announced), \
              age=0.5 (units of the workload's time between announcements at least)",
    examples: &["rid"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    Ok(Arc::new(Rid {
        low: options.whole("low", 1)?.unwrap_or(2),
        factor: options.fraction("u")?.unwrap_or(0.5),
        age: Units::read(options, "age")?.unwrap_or(Units(0.5)),
    }))
}

struct Rid {
    low: u32,
    factor: f64,
    age: Units,
}

impl Scheduler for Rid {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        Ok(erase(Receiver::new(place, rng, self)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// This is my load.
    Load(u32),
    /// Give me this number of tasks.
    Ask(u32),
    /// I give nothing, with this load.
    Nothing(u32),
}

struct Receiver {
    place: Place,
    rng: ChaCha8Rng,
    low: u32,
    factor: f64,
    around: Neighbourhood,
    /// The load that the neighbours know.
    announced: u32,
    bulletin: Bulletin,
    /// Neighbours that were asked and have not answered.
    asked: BTreeSet<NodeId>,
    /// Whether it has received tasks since it last asked.
    was_given: bool,
    /// Number of consecutive rounds of requests without success.
    failures: u32,
    /// Time at which a timer for the next request runs out.
    retries: Option<Ticks>,
}

impl Receiver {
    fn new(place: Place, rng: ChaCha8Rng, Rid { low, factor, age }: &Rid) -> Receiver {
        Receiver {
            rng,
            low: low.saturating_mul(place.workers.max(1)),
            factor: *factor,
            around: Neighbourhood::of(&place),
            announced: 0,
            bulletin: Bulletin::every(age.ticks(place.unit)),
            asked: BTreeSet::new(),
            was_given: false,
            failures: 0,
            retries: None,
            place,
        }
    }

    /// Neighbours to ask with this load, each with a number of tasks; empty if no neighbour has more than the average.
    fn requests(&self, load: u32) -> Vec<(NodeId, u32)> {
        // All in units of 1 / (number of neighbours + 1), so that the average is whole.
        let parties = self.around.loads().count() as u128 + 1;
        let total = self.around.loads().map(|(_, theirs)| u128::from(theirs)).sum::<u128>() + u128::from(load);
        let lacking = total.saturating_sub(parties * u128::from(load));
        let excess = |theirs: u32| (parties * u128::from(theirs)).saturating_sub(total);
        let all: u128 = self.around.loads().map(|(_, theirs)| excess(theirs)).sum();
        if lacking == 0 || all == 0 {
            return Vec::new();
        }
        // lacking / parties * excess / all, rounded; half is rounded up.
        let share = |theirs| (2 * lacking * excess(theirs) + parties * all) / (2 * parties * all);
        let shares = self.around.loads().map(|(node, theirs)| (node, share(theirs) as u32));
        let shares: Vec<_> = shares.filter(|(_, share)| *share > 0).collect();
        match self.around.loads().max_by_key(|(node, theirs)| (*theirs, u32::MAX - node)) {
            Some((node, _)) if shares.is_empty() && load == 0 => vec![(node, 1)],
            _ => shares,
        }
    }

    fn ask(&mut self, view: &View, act: &mut Actions<Message>) {
        if view.load() >= self.low || !self.asked.is_empty() || self.retries.is_some() {
            return;
        }
        self.was_given = false;
        for (node, tasks) in self.requests(view.load()) {
            self.asked.insert(node);
            act.tell(node, Message::Ask(tasks));
        }
    }

    fn give(&mut self, to: NodeId, asked: u32, view: &View, act: &mut Actions<Message>) {
        match asked.min(view.load() / 2).min(view.ready) {
            0 if view.ready == 0 => act.part(to, Message::Nothing(view.load())),
            0 => act.tell(to, Message::Nothing(view.load())),
            tasks => act.share(to, tasks),
        }
    }

    /// Records that a neighbour has answered a request.
    fn answered(&mut self, from: NodeId, view: &View, act: &mut Actions<Message>) {
        if self.asked.remove(&from) && self.asked.is_empty() && !self.was_given {
            let at = view.now.saturating_add(pause(self.failures, self.bulletin.period(), &mut self.rng));
            self.failures += 1;
            self.retries = Some(at);
            act.timer(at);
        }
    }

    fn has_changed(&self, load: u32) -> bool {
        let (now, announced) = (f64::from(load), f64::from(self.announced));
        load != self.announced && (now * self.factor >= announced || now <= announced * self.factor)
    }

    fn announce(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.has_changed(view.load()) && self.bulletin.news(view.now, act) {
            self.tell(view, act);
        }
    }

    fn tell(&mut self, view: &View, act: &mut Actions<Message>) {
        self.announced = view.load();
        self.around.tell(&Message::Load(self.announced), act);
    }
}

impl Policy for Receiver {
    type Message = Message;

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Message>) {
        if let Origin::Migrated { from } = origin {
            // Only nodes that were asked send tasks.
            self.was_given = true;
            self.failures = 0;
            self.answered(from, view, act);
        }
        for new in items {
            let to = match origin {
                Origin::Root { stream: true } => self.place.any_real(&mut self.rng),
                _ => self.place.me,
            };
            if to == self.place.me { act.queue(new.item) } else { act.submit(new.item, to) }
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, view: &View, act: &mut Actions<Message>) {
        match message {
            Message::Ask(tasks) => self.give(from, tasks, view, act),
            Message::Nothing(load) => {
                self.around.hear(from, load);
                self.answered(from, view, act);
                self.ask(view, act);
            }
            Message::Load(load) => {
                self.around.hear(from, load);
                // Better than to wait.
                self.retries = None;
                self.ask(view, act);
            }
        }
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Message>) {
        self.ask(view, act);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.bulletin.due(view.now) && self.has_changed(view.load()) {
            self.tell(view, act);
        }
        if self.retries.is_some_and(|at| at <= view.now) {
            self.retries = None;
            self.ask(view, act);
        }
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Message>) {
        self.announce(view, act);
        self.ask(view, act);
    }

    fn on_load(&mut self, from: NodeId, load: u32, _: &View, _: &mut Actions<Message>) {
        self.around.hear(from, load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::{Action, ItemId};
    use rand::SeedableRng;

    fn node(topology: &str, ranks: u32, me: NodeId, loads: &[(NodeId, u32)]) -> Receiver {
        let options = Rid { low: 2, factor: 0.5, age: Units(0.5) };
        let mut receiver = Receiver::new(place(topology, ranks, me), ChaCha8Rng::seed_from_u64(1), &options);
        loads.iter().for_each(|(from, load)| receiver.around.hear(*from, *load));
        receiver
    }

    fn view(now: Ticks, ready: u32, running: u32) -> View {
        View { now, ready, running, workers: 1 }
    }

    #[test]
    fn requests_are_in_proportion_to_what_each_has_above_the_average() {
        let star = |loads: [u32; 3]| node("hypercube:3", 8, 0, &[(1, loads[0]), (2, loads[1]), (4, loads[2])]);
        assert_eq!(star([9, 5, 1]).requests(1), [(1, 3), (2, 1)]);
        assert_eq!(star([12, 0, 0]).requests(0), [(1, 3)]);
        assert_eq!(star([1, 1, 1]).requests(1), []);
        assert_eq!(star([9, 1, 1]).requests(5), []);
        // 0.25 of a task is lacking: asked for only by a node that has no tasks at all.
        assert_eq!(star([0, 1, 0]).requests(0), [(2, 1)]);
        assert_eq!(star([0, 0, 0]).requests(0), []);
        assert_eq!(star([u32::MAX; 3]).requests(0).len(), 3);
        assert_eq!(node("line", 1, 0, &[]).requests(0), []);
    }

    #[test]
    fn a_donor_keeps_half_and_a_running_task_only_if_it_cannot_be_split() {
        let mut act = Actions::default();
        let mut donor = node("line", 2, 0, &[(1, 0)]);
        let mut asked = |tasks, ready, running| {
            donor.on_message(1, Message::Ask(tasks), &view(5, ready, running), &mut act);
            act.take()
        };
        assert_eq!(asked(3, 9, 1), [Action::Share { to: 1, most: 3 }]);
        assert_eq!(asked(8, 9, 1), [Action::Share { to: 1, most: 5 }]);
        assert_eq!(asked(1, 1, 0), [Action::Tell { to: 1, message: Message::Nothing(1) }]);
        assert_eq!(asked(1, 0, 1), [Action::Part { to: 1, otherwise: Message::Nothing(1) }]);
    }

    #[test]
    fn who_was_refused_waits_longer_each_time_or_until_it_hears_of_a_load() {
        let mut act = Actions::default();
        let mut poor = node("line", 2, 0, &[(1, 4)]);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            poor.around.hear(1, 4);
            poor.on_idle(&view(7, 0, 0), &mut act);
            assert_eq!(act.take(), [Action::Tell { to: 1, message: Message::Ask(2) }]);
            poor.on_change(&view(7, 0, 0), &mut act);
            assert_eq!(act.take(), []);
            poor.on_message(1, Message::Nothing(4), &view(7, 0, 0), &mut act);
            let [Action::Timer { at }] = act.take()[..] else { panic!("no timer") };
            pauses.push(at - 7);
            poor.on_timer(&view(at - 1, 0, 0), &mut act);
            assert_eq!(act.take(), []);
            poor.retries = None;
        }
        assert!(pauses[0] <= 20_000 && pauses[7] >= 500_000 && pauses[..6].is_sorted(), "{pauses:?}");
        poor.retries = Some(1_000_000);
        poor.on_message(1, Message::Load(6), &view(8, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Message::Ask(3) }]);
        poor.on_new(&[New { item: ItemId(4), hops: 1 }], Origin::Migrated { from: 1 }, &view(9, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(4))]);
        assert_eq!((poor.failures, poor.asked.len()), (0, 0));
        poor.on_change(&view(9, 1, 1), &mut act);
        assert_eq!(act.take(), [Action::Tell { to: 1, message: Message::Load(2) }], "above low nobody asks");
    }

    #[test]
    fn a_load_is_told_when_it_has_changed_by_the_factor() {
        let mut node = node("line", 2, 0, &[]);
        node.announced = 8;
        assert_eq!([4, 5, 8, 15, 16].map(|load| node.has_changed(load)), [true, false, false, false, true]);
        node.announced = 0;
        assert_eq!([0, 1].map(|load| node.has_changed(load)), [false, true]);
        let why = crate::schedule::find("rid:u=1").err().unwrap().to_string();
        assert_eq!(why, "scheduler rid: u is a number between 0 and 1, not '1'");
    }
}
