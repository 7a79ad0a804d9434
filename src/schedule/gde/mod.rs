//! Generalised dimension exchange as a run-time scheduler: Xu and Lau, "Analysis of the generalized dimension exchange method for dynamic load
//! balancing", J. Parallel Distrib. Comput. 16, 1992; "The generalized dimension exchange method for load balancing in k-ary n-cubes and
//! variants", ibid. 24, 1995. Two neighbours at a time share what they have, link after link in the order of a colouring of the links.
//!
//! 1. A node turns to the neighbour of the next colour and tells its load (ready and running tasks).
//! 2. If the neighbour has more, it gives the fraction `lambda` of the difference, rounded down; to a node with nothing to do at least one, or
//!    part of a task that it executes, if that can be split. In any case it answers with its load.
//! 3. If it has less, the first node gives the fraction `lambda` of the difference likewise.
//! 4. A node with tasks exchanges once every `period`. One that runs out of tasks goes at once through all colours until it is given some; after
//!    that it waits between two attempts, twice as long each time.
//!
//! ```text
//!   colours of a ring:  a -0- b -1- c -0- d -1- (a)       8 -0- 2   lambda = 0.5:  5 - 5
//!   turn 0: a-b, c-d;   turn 1: b-c, d-a                           lambda = 0.8:  4 - 6, "overshoots"
//! ```
//!
//! Cost: two messages an exchange, and the tasks; one exchange every `period` for each busy node. Guarantee: none here. In the synchronous
//! method the loads converge for every lambda between 0 and 1; the best is 1/2 on hypercubes, 1 / (1 + sin(pi / k)) on a mesh and 1 / (1 + sin(2 pi
//! / k)) on a torus whose longest side is k.
//!
//! Departures: the sources' method is synchronous, all pairs of a colour at a time, until the loads are even, and then it ends. Here no node waits
//! for another: a node that is asked answers at once, whatever its own turn is. Loads are whole tasks and those that run can't move. Rule 4, when to
//! exchange, is ours. The colouring is by dimension on hypercubes, (a + b) mod n on complete graphs, elsewhere greedy. The roots of a stream arrive
//! at uniformly random ranks.

mod colours;

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::neighbourhood::{pause, phase};
use super::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use super::registry::{Entry, Facts, NEIGHBOURLY, Scheduler, Units};
use crate::error::Result;
use crate::node::Ticks;
use crate::spec::{InvalidSpec, Options};
use crate::topology::{NodeId, Overlay};
use colours::Colours;

pub(super) static ENTRY: Entry = Entry {
    name: "gde",
    title: "generalised dimension exchange",
    source: "Xu and Lau 1992, 1995",
    options: "lambda=0.5 (of the difference, between 0 and 1), period=0.5 (units of the workload's time between a node's exchanges; 0: only when it idles)",
    examples: &["gde", "gde:lambda=0.7,period=0"],
    build,
    facts: Facts { kinds: NEIGHBOURLY },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let lambda = options.fraction("lambda")?.unwrap_or(0.5);
    let period = Units::read(options, "period")?.unwrap_or(Units(0.5));
    Ok(Arc::new(Gde { lambda, period, colours: Mutex::new(None) }))
}

struct Gde {
    lambda: f64,
    period: Units,
    /// Colours of the last overlay, shared by all nodes of a run.
    colours: Mutex<Option<(Overlay, Arc<Colours>)>>,
}

impl Gde {
    fn colours(&self, overlay: &Overlay) -> Arc<Colours> {
        let mut last = self.colours.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, colours)) if of == overlay => colours.clone(),
            _ => {
                let colours = Arc::new(Colours::of(overlay));
                *last = Some((overlay.clone(), colours.clone()));
                colours
            }
        }
    }
}

impl Scheduler for Gde {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let partners = if place.is_virtual() { Vec::new() } else { self.colours(&place.overlay).partners(&place) };
        let period = Some(self.period.ticks(place.unit)).filter(|period| *period > 0);
        Ok(erase(Exchanger::new(place, rng, self.lambda, period, partners)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// Let us share; this is my load.
    Offer(u32),
    /// Reply after giving tasks: the sender's load is now this.
    Answer(u32),
}

struct Exchanger {
    place: Place,
    rng: ChaCha8Rng,
    lambda: f64,
    /// Ticks between the exchanges of a busy node; `None`: only idle ones exchange.
    period: Option<Ticks>,
    /// The neighbours by colour.
    partners: Vec<NodeId>,
    next: usize,
    /// Node that was sent an offer and has not answered.
    offered: Option<NodeId>,
    /// Number of consecutive exchanges after which this node still had nothing to do.
    failures: u32,
    /// Time at which the timer for the next exchange runs out.
    at: Option<Ticks>,
}

impl Exchanger {
    fn new(place: Place, rng: ChaCha8Rng, lambda: f64, period: Option<Ticks>, partners: Vec<NodeId>) -> Exchanger {
        Exchanger { place, rng, lambda, period, partners, next: 0, offered: None, failures: 0, at: None }
    }

    /// Number of tasks that the node with more gives to the node with less.
    fn fraction(&self, more: u32, less: u32) -> u32 {
        let fraction = (self.lambda * f64::from(more.saturating_sub(less))) as u32;
        if less == 0 && more > 1 { fraction.max(1) } else { fraction }
    }

    fn offer(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.offered.is_none()
            && let Some(partner) = self.partners.get(self.next).copied()
        {
            self.next = (self.next + 1) % self.partners.len();
            self.offered = Some(partner);
            self.at = None;
            act.tell(partner, Message::Offer(view.load()));
        }
    }

    /// An exchange is over.
    fn over(&mut self, view: &View, act: &mut Actions<Message>) {
        self.offered = None;
        if !view.is_idle() {
            self.failures = 0;
            return self.wait(self.period, view, act);
        }
        self.failures += 1;
        match self.failures.checked_sub(self.partners.len() as u32) {
            None => self.offer(view, act),
            Some(rounds) => {
                let time = pause(rounds, self.period.unwrap_or(0), &mut self.rng);
                self.wait(Some(time), view, act);
            }
        }
    }

    /// Exchanges again after this time, if any.
    fn wait(&mut self, time: Option<Ticks>, view: &View, act: &mut Actions<Message>) {
        let then = time.map(|time| view.now.saturating_add(time));
        if let Some(then) = then
            && self.at.is_none_or(|at| at > then)
        {
            self.at = Some(then);
            act.timer(then);
        }
    }
}

impl Policy for Exchanger {
    type Message = Message;

    fn start(&mut self, view: &View, act: &mut Actions<Message>) {
        if let Some(period) = self.period
            && !self.partners.is_empty()
        {
            let first = phase(period, &mut self.rng);
            self.wait(Some(first), view, act);
        }
    }

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<Message>) {
        for new in items {
            let to = match origin {
                Origin::Root { stream: true } => self.place.any_real(&mut self.rng),
                _ => self.place.me,
            };
            if to == self.place.me { act.queue(new.item) } else { act.submit(new.item, to) }
        }
        if let Origin::Migrated { from } = origin
            && self.offered == Some(from)
        {
            // A part of a task comes without an answer.
            self.offered = None;
            self.failures = 0;
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, view: &View, act: &mut Actions<Message>) {
        let mine = view.load();
        match message {
            Message::Offer(theirs) => {
                let given = self.fraction(mine, theirs).min(view.ready);
                if given == 0 && view.ready == 0 && theirs == 0 {
                    return act.part(from, Message::Answer(mine));
                }
                if given > 0 {
                    act.share(from, given);
                }
                act.tell(from, Message::Answer(mine - given));
            }
            Message::Answer(theirs) => {
                let given = self.fraction(mine, theirs).min(view.ready);
                if given > 0 {
                    act.share(from, given);
                }
                if self.offered.is_none_or(|offered| offered == from) {
                    self.over(view, act);
                }
            }
        }
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Message>) {
        self.failures = 0;
        self.offer(view, act);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.at.is_some_and(|at| at <= view.now) {
            self.at = None;
            self.offer(view, act);
        }
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.offered.is_none() && !view.is_idle() && !self.partners.is_empty() {
            self.wait(self.period, view, act);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::{Action, ItemId};
    use rand::SeedableRng;

    fn node(lambda: f64, period: Option<Ticks>) -> Exchanger {
        let place = place("hypercube:2", 4, 0);
        let partners = Colours::of(&place.overlay).partners(&place);
        Exchanger::new(place, ChaCha8Rng::seed_from_u64(1), lambda, period, partners)
    }

    fn view(now: Ticks, ready: u32, running: u32) -> View {
        View { now, ready, running, workers: 1 }
    }

    fn tell(to: NodeId, message: Message) -> Action<Message> {
        Action::Tell { to, message }
    }

    #[test]
    fn the_one_with_more_gives_the_fraction_of_the_difference() {
        let mut act = Actions::default();
        let mut reaction = |lambda, message, ready| {
            let mut policy = node(lambda, None);
            policy.on_message(1, message, &view(5, ready, 1), &mut act);
            act.take()
        };
        let share = |most| Action::Share { to: 1, most };
        assert_eq!(reaction(0.5, Message::Offer(2), 7), [share(3), tell(1, Message::Answer(5))]);
        assert_eq!(reaction(0.8, Message::Offer(2), 7), [share(4), tell(1, Message::Answer(4))]);
        assert_eq!(reaction(0.5, Message::Offer(9), 7), [tell(1, Message::Answer(8))]);
        assert_eq!(reaction(0.2, Message::Offer(0), 1), [share(1), tell(1, Message::Answer(1))]);
        assert_eq!(reaction(0.9, Message::Offer(0), 3), [share(3), tell(1, Message::Answer(1))], "what runs stays");
        assert_eq!(reaction(0.5, Message::Offer(0), 0), [Action::Part { to: 1, otherwise: Message::Answer(1) }]);
        assert_eq!(reaction(0.5, Message::Answer(2), 7), [share(3)]);
        assert_eq!(reaction(0.5, Message::Answer(7), 7), []);
    }

    #[test]
    fn a_busy_node_exchanges_every_period_colour_by_colour() {
        let mut act = Actions::default();
        let mut policy = node(0.5, Some(500));
        policy.start(&view(0, 0, 0), &mut act);
        let [Action::Timer { at }] = act.take()[..] else { panic!("no timer") };
        assert!(at < 500);
        policy.on_timer(&view(at, 1, 1), &mut act);
        assert_eq!(act.take(), [tell(1, Message::Offer(2))]);
        policy.on_change(&view(at, 2, 1), &mut act);
        assert_eq!(act.take(), []);
        policy.on_message(1, Message::Answer(2), &view(600, 2, 1), &mut act);
        assert_eq!(act.take(), [Action::Timer { at: 1100 }]);
        policy.on_timer(&view(1100, 2, 1), &mut act);
        assert_eq!(act.take(), [tell(2, Message::Offer(3))]);
    }

    #[test]
    fn an_idle_node_asks_all_at_once_and_then_waits_longer_and_longer() {
        let mut act = Actions::default();
        let mut policy = node(0.5, None);
        policy.on_idle(&view(7, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(1, Message::Offer(0))]);
        policy.on_message(1, Message::Answer(0), &view(8, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(2, Message::Offer(0))]);
        let mut pauses = Vec::new();
        for round in 0..8 {
            let partner = if round % 2 == 0 { 2 } else { 1 };
            policy.on_message(partner, Message::Answer(0), &view(9, 0, 0), &mut act);
            let [Action::Timer { at }] = act.take()[..] else { panic!("no timer") };
            pauses.push(at - 9);
            policy.on_timer(&view(at, 0, 0), &mut act);
            assert_eq!(act.take().len(), 1);
        }
        assert!(pauses[0] <= 20_000 && pauses[7] >= 500_000 && pauses[..6].is_sorted(), "{pauses:?}");
        policy.on_new(&[New { item: ItemId(3), hops: 1 }], Origin::Migrated { from: 2 }, &view(9, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(3))]);
        assert_eq!((policy.offered, policy.failures), (None, 0));
        // Busy, and without a period: silent.
        policy.on_change(&view(10, 1, 1), &mut act);
        assert_eq!(act.take(), []);
    }

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let wrong = |spec: &str| crate::schedule::find(spec).err().map(|why| why.to_string()).unwrap_or_default();
        assert_eq!(wrong("gde:lambda=0.8,period=0"), "");
        assert_eq!(wrong("gde:lambda=1"), "scheduler gde: lambda is a number between 0 and 1, not '1'");
        assert_eq!(wrong("gde:period=no"), "scheduler gde: period is a number of time units, 0 or more, not 'no'");
    }
}
