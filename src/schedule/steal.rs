//! Work stealing: a rank with nothing to do asks another for half of its ready tasks.
//!
//! Blumofe and Leiserson, "Scheduling multithreaded computations by work stealing", J. ACM 46, 1999: a rank executes its newest task first and
//! gives away the oldest, which stands nearest to the root; victims are uniformly random. Half at once: Hendler and Shavit, "Non-blocking
//! steal-half work queues", PODC 2002. With `victim=topology` a thief asks its neighbours in turn.
//!
//! A victim that has nothing to spare keeps the request and gives as soon as it has, as over the lifelines of Saraswat et al., "Lifeline-based
//! global load balancing", PPoPP 2011. Meanwhile the thief asks others, each once, and waits twice as long each time. So a thief that waits
//! long is known to many and hears at once of work anywhere, yet has sent few messages: about log2 of the time it waited.
//!
//! ```text
//!   idle --ask--> victim --now or later: half of what it can spare (or part of the running task, if that can be split)--> busy
//!     ^  \                                                                                              --enough--> the other victims
//!     +---+ wait, twice as long each time, and ask the next
//! ```
//!
//! Cost: two messages for each victim asked, none while all are busy or all have been asked. Guarantee (random victims, a computation whose parents
//! wait): expected time within a constant of sequential time / p + longest chain.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::{FIRST_PAUSE, pause};
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, QueueOrder, View, erase};
use super::registry::{ANY, Entry, Facts, Scheduler};
use crate::error::Result;
use crate::node::Ticks;
use crate::spec::{InvalidSpec, Options};
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "steal",
    title: "work stealing, half at once",
    source: "Blumofe and Leiserson 1999; Hendler and Shavit 2002; Saraswat et al. 2011",
    options: "victim=random|topology",
    examples: &["steal", "steal:victim=topology"],
    build,
    facts: Facts { kinds: ANY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let neighbours = options.choice("victim", &[("random", false), ("topology", true)])?.unwrap_or(false);
    Ok(Arc::new(Steal { neighbours }))
}

struct Steal {
    neighbours: bool,
}

impl Scheduler for Steal {
    fn policy(&self, place: Place, mut rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let victims = match self.neighbours {
            false => Victims::Random,
            true => {
                let all = place.neighbours();
                let next = if all.is_empty() { 0 } else { rng.random_range(0..all.len()) };
                Victims::InTurn { all, next }
            }
        };
        Ok(erase(Thief { place, rng, victims, asked: Vec::new(), next: 0 }))
    }
}

/// The longest time between two requests.
const LONGEST_PAUSE: Ticks = FIRST_PAUSE << 16;

struct Thief {
    place: Place,
    rng: ChaCha8Rng,
    victims: Victims,
    /// Victims that keep a request of this node, as far as it knows.
    asked: Vec<NodeId>,
    /// Earliest time at which the next may be asked.
    next: Ticks,
}

enum Victims {
    Random,
    InTurn { all: Vec<NodeId>, next: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// Give me tasks, now or when there are some.
    Ask,
    /// I have some.
    Enough,
}

impl Thief {
    /// Next victim: a node that has not been asked yet, if there is one.
    fn victim(&mut self) -> Option<NodeId> {
        let (me, asked) = (self.place.me, &self.asked);
        match &mut self.victims {
            Victims::Random if asked.len() as u32 + 1 >= self.place.real_nodes() => None,
            Victims::Random => loop {
                let node = self.place.any_real(&mut self.rng);
                if node != me && !asked.contains(&node) {
                    return Some(node);
                }
            },
            Victims::InTurn { all, next } => {
                let ahead = (0..all.len()).map(|step| (*next + step) % all.len());
                let at = ahead.into_iter().find(|at| !asked.contains(&all[*at]))?;
                *next = at + 1;
                Some(all[at])
            }
        }
    }

    fn ask(&mut self, view: &View, act: &mut Actions<Message>) {
        if view.is_idle()
            && let Some(victim) = self.victim()
        {
            self.next = view.now.saturating_add(pause(self.asked.len() as u32, LONGEST_PAUSE, &mut self.rng));
            self.asked.push(victim);
            act.tell(victim, Message::Ask);
            act.timer(self.next);
        }
    }
}

impl Policy for Thief {
    type Message = Message;

    fn order(&self) -> QueueOrder {
        QueueOrder::Lifo
    }

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<Message>) {
        for victim in self.asked.drain(..) {
            if origin != (Origin::Migrated { from: victim }) {
                act.tell(victim, Message::Enough);
            }
        }
        items.iter().for_each(|new| act.queue(new.item));
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.asked.is_empty() {
            self.ask(view, act);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, _: &View, act: &mut Actions<Message>) {
        match message {
            Message::Ask => act.give(from),
            Message::Enough => act.forget(from),
        }
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Message>) {
        if view.now >= self.next {
            self.ask(view, act);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::policy::{Action, ItemId};
    use crate::topology::{Overlay, Topology};
    use rand::SeedableRng;

    fn thief(topology: &str, ranks: u32, me: NodeId, neighbours: bool) -> Thief {
        let overlay = Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap();
        let place = Place { me, host: 0, overlay, workers: 1, unit: 1 };
        let victims = if neighbours { Victims::InTurn { all: place.neighbours(), next: 0 } } else { Victims::Random };
        Thief { place, rng: ChaCha8Rng::seed_from_u64(1), victims, asked: Vec::new(), next: 0 }
    }

    const IDLE: View = View { now: 7, ready: 0, running: 0, workers: 1 };
    const BUSY: View = View { running: 1, ..IDLE };

    #[test]
    fn an_idle_rank_asks_each_other_once_and_waits_longer_each_time() {
        let mut policy = thief("complete", 9, 1, false);
        let (mut act, mut view) = (Actions::default(), IDLE);
        let (mut asked, mut pauses) = (Vec::new(), Vec::new());
        policy.on_idle(&view, &mut act);
        for _ in 0..8 {
            let [Action::Tell { to, message: Message::Ask }, Action::Timer { at }] = act.take()[..] else { panic!("nobody was asked") };
            asked.push(to);
            pauses.push(at - view.now);
            // A timer set earlier has no effect.
            policy.on_timer(&View { now: at - 1, ..view }, &mut act);
            assert_eq!(act.take(), []);
            view.now = at;
            policy.on_timer(&view, &mut act);
        }
        // All were asked: a node that gets tasks to spare will say so.
        assert_eq!(act.take(), []);
        asked.sort_unstable();
        assert_eq!(asked, [0, 2, 3, 4, 5, 6, 7, 8]);
        assert!(pauses.is_sorted() && pauses[0] <= FIRST_PAUSE && pauses[7] > 64 * FIRST_PAUSE, "{pauses:?}");
    }

    #[test]
    fn who_has_work_again_says_so_to_those_who_still_keep_the_request() {
        let mut policy = thief("complete", 9, 1, false);
        let mut act = Actions::default();
        policy.asked = vec![3, 0, 7];
        policy.on_new(&[New { item: ItemId(5), hops: 1 }], Origin::Migrated { from: 0 }, &IDLE, &mut act);
        let enough = |to| Action::Tell { to, message: Message::Enough };
        assert_eq!(act.take(), [enough(3), enough(7), Action::Queue(ItemId(5))]);
        policy.on_new(&[New { item: ItemId(6), hops: 0 }], Origin::Spawned, &BUSY, &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(6))]);
        // Idle again, it asks at once.
        policy.on_idle(&IDLE, &mut act);
        assert!(matches!(act.take()[..], [Action::Tell { message: Message::Ask, .. }, Action::Timer { .. }]));
    }

    #[test]
    fn requests_are_kept_until_they_are_taken_back_and_a_busy_rank_does_not_ask() {
        let mut policy = thief("complete", 4, 1, false);
        let mut act = Actions::default();
        policy.on_message(3, Message::Ask, &BUSY, &mut act);
        policy.on_message(3, Message::Enough, &BUSY, &mut act);
        assert_eq!(act.take(), [Action::Give { to: 3 }, Action::Forget { to: 3 }]);
        policy.on_timer(&BUSY, &mut act);
        assert_eq!(act.take(), []);
    }

    #[test]
    fn by_topology_the_neighbours_are_asked_in_turn_and_a_lone_rank_asks_nobody() {
        let mut policy = thief("ring", 5, 0, true);
        let mut act = Actions::default();
        let mut asked = Vec::new();
        for _ in 0..4 {
            policy.asked.clear();
            policy.on_idle(&IDLE, &mut act);
            asked.extend(act.take().into_iter().filter(|action| matches!(action, Action::Tell { .. })));
        }
        let ask = |to| Action::Tell { to, message: Message::Ask };
        assert_eq!(asked, [ask(1), ask(4), ask(1), ask(4)]);
        for neighbours in [false, true] {
            thief("complete", 1, 0, neighbours).on_idle(&IDLE, &mut act);
            assert_eq!(act.take(), []);
        }
    }
}
