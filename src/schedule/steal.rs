//! Work stealing: a rank with nothing to do asks another for half of its ready tasks.
//!
//! Blumofe and Leiserson, "Scheduling multithreaded computations by work stealing", J. ACM 46, 1999: a rank executes its newest task first and
//! gives away the oldest, which stands nearest to the root; victims are uniformly random. Half at once: Hendler and Shavit, "Non-blocking
//! steal-half work queues", PODC 2002. With `victim=topology` a thief asks its neighbours in turn.
//!
//! ```text
//!   idle --ask--> victim --half of its ready tasks (or part of the running one, if it can be split)--> busy
//!     ^                 \--nothing--> wait, twice as long each time --+
//!     +---------------------------------------------------------------+
//! ```
//!
//! Cost: two messages an attempt, none while all are busy. Guarantee (random victims, a computation whose parents wait): expected time within a
//! constant of sequential time / p + longest chain.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::policy::{Actions, AnyPolicy, New, Order, Origin, Place, Policy, View, erase};
use super::registry::{ANY, Entry, Scheduler, Settings};
use crate::error::Result;
use crate::node::Ticks;
use crate::topology::NodeId;

pub(super) static ENTRY: Entry = Entry {
    name: "steal",
    title: "work stealing, half at once",
    source: "Blumofe and Leiserson 1999; Hendler and Shavit 2002",
    kinds: ANY,
    options: "victim=random|topology",
    build,
};

fn build(settings: &Settings) -> Result<Arc<dyn Scheduler>> {
    let mut steal = Steal { neighbours: false };
    for (key, value) in settings.pairs() {
        steal.neighbours = match (key, value) {
            ("victim", "random") => false,
            ("victim", "topology") => true,
            ("victim", _) => return Err(settings.wrong(key, value, "random or topology")),
            _ => return Err(settings.unknown(key, &["victim"])),
        };
    }
    Ok(Arc::new(steal))
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
        Ok(erase(Thief { place, rng, victims, asked: false, failures: 0, waits: false }))
    }
}

/// Shortest and longest time between a failed attempt and the next.
const PAUSE: (Ticks, Ticks) = (20_000, 1_000_000);

struct Thief {
    place: Place,
    rng: ChaCha8Rng,
    victims: Victims,
    /// A victim has been asked and has not answered.
    asked: bool,
    /// Attempts that failed one after the other.
    failures: u32,
    /// A timer for the next attempt runs.
    waits: bool,
}

enum Victims {
    Random,
    InTurn { all: Vec<NodeId>, next: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Word {
    Ask,
    Nothing,
}

impl Thief {
    fn victim(&mut self) -> Option<NodeId> {
        match &mut self.victims {
            Victims::Random if self.place.real_nodes() < 2 => None,
            Victims::Random => loop {
                let node = self.place.any_real(&mut self.rng);
                if node != self.place.me {
                    return Some(node);
                }
            },
            Victims::InTurn { all, next } => {
                let victim = all.get(*next).copied();
                *next = (*next + 1) % all.len().max(1);
                victim
            }
        }
    }

    fn ask(&mut self, view: &View, act: &mut Actions<Word>) {
        if self.asked || self.waits || !view.is_idle() {
            return;
        }
        if let Some(victim) = self.victim() {
            self.asked = true;
            act.tell(victim, Word::Ask);
        }
    }

    /// A random time, doubled on average with each failure.
    fn pause(&mut self) -> Ticks {
        let most = (PAUSE.0 << self.failures.min(16)).min(PAUSE.1);
        self.rng.random_range(most / 2..=most)
    }
}

impl Policy for Thief {
    type Message = Word;

    fn order(&self) -> Order {
        Order::Lifo
    }

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<Word>) {
        if let Origin::Migrated { .. } = origin {
            // Nobody sends but who was asked.
            self.asked = false;
            self.failures = 0;
        }
        items.iter().for_each(|new| act.queue(new.item));
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Word>) {
        self.failures = 0;
        self.ask(view, act);
    }

    fn on_message(&mut self, from: NodeId, word: Word, view: &View, act: &mut Actions<Word>) {
        match word {
            Word::Ask => act.give(from, Word::Nothing),
            Word::Nothing => {
                self.asked = false;
                if view.is_idle() && !self.waits {
                    act.timer(view.now + self.pause());
                    self.failures += 1;
                    self.waits = true;
                }
            }
        }
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Word>) {
        self.waits = false;
        self.ask(view, act);
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
        let place = Place { me, overlay, workers: 1, unit: 1 };
        let victims = if neighbours { Victims::InTurn { all: place.neighbours(), next: 0 } } else { Victims::Random };
        Thief { place, rng: ChaCha8Rng::seed_from_u64(1), victims, asked: false, failures: 0, waits: false }
    }

    const IDLE: View = View { now: 7, ready: 0, running: 0, workers: 1 };
    const BUSY: View = View { running: 1, ..IDLE };

    #[test]
    fn an_idle_rank_asks_one_at_a_time_and_waits_longer_after_each_failure() {
        let mut policy = thief("complete", 4, 1, false);
        let mut act = Actions::default();
        let mut pauses = Vec::new();
        policy.on_idle(&IDLE, &mut act);
        for _ in 0..8 {
            let asked = act.take();
            assert!(matches!(asked[..], [Action::Tell { to: 0 | 2 | 3, message: Word::Ask }]), "{asked:?}");
            policy.ask(&IDLE, &mut act);
            assert_eq!(act.take(), []);
            policy.on_message(0, Word::Nothing, &IDLE, &mut act);
            let [Action::Timer { at }] = act.take()[..] else { panic!("no timer") };
            pauses.push(at - IDLE.now);
            // Until the timer runs out nobody is asked.
            policy.ask(&IDLE, &mut act);
            assert_eq!(act.take(), []);
            policy.on_timer(&IDLE, &mut act);
        }
        assert_eq!(act.take().len(), 1);
        assert!(pauses[0] <= 20_000 && pauses.iter().all(|pause| *pause <= 1_000_000), "{pauses:?}");
        assert!(pauses[7] >= 500_000 && pauses[..6].is_sorted(), "{pauses:?}");
        let item = New { item: ItemId(5), hops: 1 };
        policy.on_new(&[item], Origin::Migrated { from: 2 }, &IDLE, &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(5))]);
        assert_eq!((policy.failures, policy.asked), (0, false));
    }

    #[test]
    fn whoever_asks_gets_half_or_the_word_and_a_busy_rank_does_not_ask() {
        let mut policy = thief("complete", 4, 1, false);
        let mut act = Actions::default();
        policy.on_message(3, Word::Ask, &BUSY, &mut act);
        assert_eq!(act.take(), [Action::Give { to: 3, otherwise: Word::Nothing }]);
        policy.on_timer(&BUSY, &mut act);
        policy.on_message(3, Word::Nothing, &BUSY, &mut act);
        assert_eq!(act.take(), []);
    }

    #[test]
    fn by_topology_the_neighbours_are_asked_in_turn_and_a_lone_rank_asks_nobody() {
        let mut policy = thief("ring", 5, 0, true);
        let mut act = Actions::default();
        let mut asked = Vec::new();
        for _ in 0..4 {
            policy.asked = false;
            policy.on_idle(&IDLE, &mut act);
            asked.extend(act.take());
        }
        let ask = |to| Action::Tell { to, message: Word::Ask };
        assert_eq!(asked, [ask(1), ask(4), ask(1), ask(4)]);
        for neighbours in [false, true] {
            thief("complete", 1, 0, neighbours).on_idle(&IDLE, &mut act);
            assert_eq!(act.take(), []);
        }
    }
}
