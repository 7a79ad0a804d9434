//! What one node does: it asks for phases, takes part in rounds, and at the host decides.

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Trigger;
use super::cost_model::CostModel;
use super::trigger::{Decision, Known, LoadSummary, NodeLoad, judge};
use crate::node::Ticks;
use crate::schedule::policy::{Actions, ItemId, New, Origin, PhaseEnd, Place, Policy, QueueOrder, View};
use crate::schedule::tree::Tree;
use crate::topology::NodeId;

/// What nodes tell each other along the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// Upwards: somebody below wishes for a phase.
    Wish,
    /// Downwards: a round begins.
    Ask,
    /// Upwards: the loads of a sub-tree.
    Loads(LoadSummary),
    /// Downwards: no phase follows from the round. Whether somebody idles.
    Over { idle: bool },
}

/// Shortest and longest pause after something that led to nothing.
const PAUSE: (Ticks, Ticks) = (20_000, 10_000_000);

pub(super) struct Incremental {
    place: Place,
    rng: ChaCha8Rng,
    trigger: Trigger,
    period: Ticks,
    /// How many times its cost a phase must gain (`predicted`).
    margin: f64,
    /// Whether new tasks wait for the next phase (`all`), and those that do.
    waits: bool,
    held: Vec<ItemId>,
    tree: Tree,

    /// The loads summed up in this round so far and the number of children that are missing, from the question until this node has answered.
    round: Option<(LoadSummary, usize)>,
    in_phase: bool,
    /// A wish went up from here in this round, or the last summary shows what it would have said.
    wished: bool,
    /// Somebody idled in the last round.
    somebody_idles: bool,
    /// Children below which all idle (`all`).
    idle_below: usize,

    /// For the summary: the last phase, tasks ended and spawned, time worked; up to when, and by how many workers since then.
    last: Option<PhaseEnd>,
    ended: u64,
    spawned: u64,
    worked: Ticks,
    accounted: Ticks,
    at_work: u32,

    host: Option<RoundControl>,
}

/// The host's control of rounds and phases.
#[derive(Default)]
struct RoundControl {
    /// Somebody wishes for a phase.
    wish: bool,
    /// From the asking to the decision.
    asked: Option<Ticks>,
    not_before: Ticks,
    /// When the next round is due (`periodic`).
    tick: Ticks,
    /// When a timer runs out that was set for `not_before`.
    alarm: Option<Ticks>,
    /// Whether a phase began since the last summary, and how long the round before it took.
    phase: Option<Ticks>,
    cost_model: CostModel,
    /// Rounds and phases that led to nothing, one after the other.
    futile: u32,
}

impl Incremental {
    pub fn new(place: Place, rng: ChaCha8Rng, trigger: Trigger, period: Ticks, margin: f64) -> Incremental {
        let tree = Tree::new(place.me, place.host(), place.overlay.placement.nodes());
        // A single real node balances with nobody, but what waits for a phase must get one.
        let waits = trigger == Trigger::All;
        let host = (place.me == place.host() && (place.real_nodes() > 1 || waits)).then(RoundControl::default);
        Incremental {
            place,
            rng,
            trigger,
            period,
            margin,
            waits,
            held: Vec::new(),
            tree,
            round: None,
            in_phase: false,
            wished: false,
            somebody_idles: false,
            idle_below: 0,
            last: None,
            ended: 0,
            spawned: 0,
            worked: 0,
            accounted: 0,
            at_work: 0,
            host,
        }
    }

    /// Time has passed, in which as many workers worked as had something to do.
    fn account(&mut self, view: &View) {
        self.worked += view.now.saturating_sub(self.accounted) * Ticks::from(self.at_work);
        self.accounted = view.now;
        self.at_work = view.load().min(view.workers);
    }

    /// Whether this node wishes for a phase.
    fn wishes(&self, view: &View) -> bool {
        match (self.trigger, self.somebody_idles) {
            (Trigger::Periodic, _) => false,
            (Trigger::All, false) => view.load() == 0 && self.idle_below >= self.tree.children.len(),
            (Trigger::All, true) => view.load() == 0 && !self.held.is_empty(),
            (Trigger::Any | Trigger::Predicted, false) => view.is_idle(),
            (Trigger::Any | Trigger::Predicted, true) => view.ready > view.workers.saturating_sub(view.running),
        }
    }

    /// Acts on this node's present state.
    fn consider(&mut self, view: &View, act: &mut Actions<Message>) {
        if self.in_phase {
            return;
        }
        self.answer(view, act);
        if !self.wished && self.round.is_none() && self.wishes(view) {
            self.wish(act);
        }
        self.begin_round(view, act);
    }

    /// Passes a wish on, one a round.
    fn wish(&mut self, act: &mut Actions<Message>) {
        if let Some(host) = &mut self.host {
            host.wish = true;
        }
        if !std::mem::replace(&mut self.wished, true)
            && let Some(parent) = self.tree.parent
        {
            act.tell(parent, Message::Wish);
        }
    }

    /// At the host: asks all, if it is time.
    fn begin_round(&mut self, view: &View, act: &mut Actions<Message>) {
        let Some(host) = &mut self.host else { return };
        if !host.wish || host.asked.is_some() || self.round.is_some() {
            return;
        }
        if view.now < host.not_before {
            if host.alarm.is_none_or(|alarm| alarm > host.not_before) {
                host.alarm = Some(host.not_before);
                act.timer(host.not_before);
            }
            return;
        }
        host.wish = false;
        host.asked = Some(view.now);
        self.asked(act);
        self.answer(view, act);
    }

    fn asked(&mut self, act: &mut Actions<Message>) {
        self.round = Some((LoadSummary::default(), self.tree.children.len()));
        self.tree.children.iter().for_each(|child| act.tell(*child, Message::Ask));
    }

    /// Answers the parent once all children have answered; at the host, decides.
    fn answer(&mut self, view: &View, act: &mut Actions<Message>) {
        let Some((mut summary, 0)) = self.round.take_if(|(_, missing)| *missing == 0) else { return };
        let last = self.last.take();
        summary.add(LoadSummary {
            loads: vec![NodeLoad { node: self.place.me, running: view.running, ready: view.ready + self.held.len() as u32 }],
            moved: last.map_or(0, |last| last.moved.into()),
            took: last.map_or(0, |last| last.took),
            ended: self.ended,
            spawned: self.spawned,
            worked: self.worked,
        });
        // What a wish would say is in the summary.
        self.wished = self.trigger == Trigger::All || view.is_idle();
        match self.tree.parent {
            Some(parent) => act.tell(parent, Message::Loads(summary)),
            None => self.decide(&summary, view, act),
        }
    }

    fn decide(&mut self, summary: &LoadSummary, view: &View, act: &mut Actions<Message>) {
        let Some(host) = &mut self.host else { return };
        let round = host.asked.take().map_or(0, |asked| view.now.saturating_sub(asked));
        let before = host.phase.take();
        if before.is_some() {
            host.futile = if summary.moved > 0 { 0 } else { host.futile + 1 };
        }
        host.cost_model.learn(view.now, summary, before);
        let known = Known {
            nodes: self.place.overlay.placement.nodes(),
            real: self.place.real_nodes(),
            workers: self.place.workers.max(1),
            cost: host.cost_model.cost(round),
            margin: self.margin,
            frozen: host.cost_model.frozen(round),
            weight: host.cost_model.weight(),
            persisted: host.cost_model.persisted(view.now),
        };
        let decision = judge(self.trigger, summary, &known);
        host.cost_model.uneven(view.now, !matches!(decision, Decision::Nothing { .. }));
        // The host asks again, by itself.
        host.wish |= decision == Decision::NotWorthIt;
        host.futile += u32::from(decision == Decision::NotWorthIt && self.trigger == Trigger::All);
        let pause = (round.max(PAUSE.0) << host.futile.min(16)).min(PAUSE.1.max(round));
        host.not_before = view.now
            + match decision {
                _ if host.futile > 0 => pause,
                // Until it has lasted for long enough.
                Decision::NotWorthIt => (known.cost as f64 * self.margin) as Ticks / 2 + PAUSE.0,
                _ => 0,
            };
        match decision {
            Decision::Phase(kept) => {
                host.phase = Some(round);
                act.phase(kept);
            }
            decision => {
                let idle = decision != Decision::Nothing { idle: false };
                self.over(idle, view, act);
            }
        }
    }

    /// The round is over, and no phase follows.
    fn over(&mut self, idle: bool, view: &View, act: &mut Actions<Message>) {
        self.tree.children.iter().for_each(|child| act.tell(*child, Message::Over { idle }));
        self.somebody_idles = idle;
        // From now on those wish who have something to spare; otherwise a wish that came too late for the summary is still valid.
        self.wished &= !idle;
        self.consider(view, act);
    }
}

impl Policy for Incremental {
    type Message = Message;

    fn order(&self) -> QueueOrder {
        QueueOrder::Lifo
    }

    fn start(&mut self, view: &View, act: &mut Actions<Message>) {
        self.accounted = view.now;
        if self.trigger == Trigger::Periodic
            && let Some(host) = &mut self.host
        {
            host.tick = view.now.saturating_add(self.period);
            act.timer(host.tick);
        }
        self.consider(view, act);
    }

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        if matches!(origin, Origin::Spawned | Origin::Joined { .. } | Origin::Split) {
            self.spawned += items.len() as u64;
        }
        let placement = &self.place.overlay.placement;
        for new in items {
            match origin {
                // Some balancers leave tasks where no power is; the real node of the same rank has it near.
                _ if view.workers == 0 => act.migrate(new.item, placement.real_node_of(placement.rank_of(self.place.me))),
                Origin::Root { stream: true } => act.submit(new.item, self.place.any_real(&mut self.rng)),
                // What has migrated came in a phase; a stream's root has not.
                Origin::Migrated { .. } if new.hops > 0 => act.queue(new.item),
                _ if self.waits => self.held.push(new.item),
                _ => act.queue(new.item),
            }
        }
        self.consider(view, act);
    }

    fn on_end(&mut self, _: ItemId, spawned: &[New], view: &View, act: &mut Actions<Message>) {
        self.account(view);
        self.ended += 1;
        if !spawned.is_empty() {
            self.on_new(spawned, Origin::Spawned, view, act);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        match message {
            Message::Wish if self.trigger == Trigger::All && !self.somebody_idles => self.idle_below += 1,
            Message::Wish => self.wish(act),
            Message::Ask => self.asked(act),
            Message::Loads(summary) => {
                if let Some((sum, missing)) = &mut self.round {
                    sum.add(summary);
                    *missing = missing.saturating_sub(1);
                }
            }
            Message::Over { idle } => {
                debug_assert_eq!(self.tree.parent, Some(from));
                return self.over(idle, view, act);
            }
        }
        self.consider(view, act);
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        self.consider(view, act);
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        self.consider(view, act);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        if let Some(host) = &mut self.host {
            host.alarm = host.alarm.filter(|alarm| *alarm > view.now);
            if self.trigger == Trigger::Periodic && view.now >= host.tick {
                host.wish = true;
                host.tick = view.now.saturating_add(self.period);
                act.timer(host.tick);
            }
        }
        self.consider(view, act);
    }

    fn on_freeze(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        self.in_phase = true;
        self.held.drain(..).for_each(|item| act.queue(item));
        // A new user phase begins, of which nobody knows anything.
        (self.wished, self.somebody_idles, self.idle_below) = (false, false, 0);
        if let Some(host) = &mut self.host {
            host.wish = false;
        }
    }

    fn on_phase(&mut self, phase: PhaseEnd, view: &View, act: &mut Actions<Message>) {
        self.account(view);
        self.in_phase = false;
        self.last = Some(phase);
        if let Some(host) = &mut self.host {
            // Phases take no more than about half of the time.
            host.not_before = host.not_before.max(view.now.saturating_add(phase.took));
        }
        self.consider(view, act);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;
    use crate::schedule::policy::Action;
    use rand::SeedableRng;

    /// A node of four; in the tree 2 and 1 are below 0, and 3 below 2.
    fn node(me: NodeId, trigger: Trigger) -> Incremental {
        Incremental::new(place("hypercube:2", 4, me), ChaCha8Rng::seed_from_u64(1), trigger, 500, 1.0)
    }

    fn view(now: Ticks, ready: u32, running: u32) -> View {
        View { now, ready, running, workers: 1 }
    }

    fn tell(to: NodeId, message: Message) -> Action<Message> {
        Action::Tell { to, message }
    }

    fn load(node: NodeId, running: u32, ready: u32) -> NodeLoad {
        NodeLoad { node, running, ready }
    }

    fn summary(loads: &[NodeLoad]) -> Message {
        Message::Loads(LoadSummary { loads: loads.to_vec(), ..LoadSummary::default() })
    }

    #[test]
    fn who_idles_wishes_once_a_round_and_then_those_who_have_something_to_spare() {
        let mut act = Actions::default();
        let mut policy = node(2, Trigger::Any);
        policy.start(&view(0, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(0, Message::Wish)]);
        policy.on_idle(&view(1, 0, 0), &mut act);
        policy.on_message(3, Message::Wish, &view(2, 0, 0), &mut act);
        assert_eq!(act.take(), [], "one wish goes up");
        policy.on_message(0, Message::Ask, &view(3, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(3, Message::Ask)]);
        policy.on_message(3, summary(&[load(3, 0, 0)]), &view(4, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(0, summary(&[load(3, 0, 0), load(2, 0, 0)]))]);
        policy.on_message(0, Message::Over { idle: true }, &view(5, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(3, Message::Over { idle: true })]);
        policy.on_change(&view(6, 0, 1), &mut act);
        policy.on_change(&view(7, 0, 0), &mut act);
        assert_eq!(act.take(), [], "that somebody idles is known");
        policy.on_change(&view(8, 1, 1), &mut act);
        assert_eq!(act.take(), [tell(0, Message::Wish)], "one task more than workers");
    }

    #[test]
    fn the_host_asks_decides_and_waits_longer_each_time_that_nothing_moved() {
        let mut act = Actions::default();
        let mut policy = node(0, Trigger::Any);
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..5 {
            policy.on_message(2, Message::Wish, &view(now, 5, 1), &mut act);
            while let [Action::Timer { at }] = act.take()[..] {
                pauses.push(at - now);
                now = at;
                policy.on_timer(&view(now, 5, 1), &mut act);
            }
            policy.on_message(2, summary(&[load(2, 0, 0), load(3, 0, 0)]), &view(now, 5, 1), &mut act);
            assert_eq!(act.take(), [], "one is missing");
            policy.on_message(1, summary(&[load(1, 1, 0)]), &view(now, 5, 1), &mut act);
            assert_eq!(act.take(), [Action::Phase { kept: vec![1, 1, 0, 0] }]);
            policy.on_freeze(&view(now, 5, 1), &mut act);
            policy.on_change(&view(now, 0, 1), &mut act);
            policy.on_phase(PhaseEnd { moved: 0, took: 100 }, &view(now, 5, 1), &mut act);
            assert_eq!(act.take(), []);
        }
        assert_eq!(pauses, [100, 40_000, 80_000, 160_000]);
    }

    #[test]
    fn a_node_in_a_phase_answers_when_it_has_ended() {
        let mut act = Actions::default();
        let mut policy = node(1, Trigger::Any);
        policy.on_freeze(&view(0, 3, 1), &mut act);
        policy.on_message(0, Message::Ask, &view(1, 0, 1), &mut act);
        assert_eq!(act.take(), []);
        policy.on_phase(PhaseEnd { moved: 3, took: 7 }, &view(2, 0, 1), &mut act);
        let answer = LoadSummary { loads: vec![load(1, 1, 0)], moved: 3, took: 7, worked: 2, ..LoadSummary::default() };
        assert_eq!(act.take(), [tell(0, Message::Loads(answer))]);
    }

    #[test]
    fn where_all_must_idle_wishes_gather_and_what_is_spawned_waits() {
        let mut act = Actions::default();
        let mut policy = node(2, Trigger::All);
        policy.on_new(&[New { item: ItemId(7), hops: 0 }], Origin::Spawned, &view(0, 0, 0), &mut act);
        assert_eq!(act.take(), [], "3, below, may have something to do");
        policy.on_message(3, Message::Wish, &view(1, 0, 0), &mut act);
        assert_eq!(act.take(), [tell(0, Message::Wish)]);
        policy.on_freeze(&view(2, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(7))]);
        policy.on_new(&[New { item: ItemId(8), hops: 1 }], Origin::Migrated { from: 0 }, &view(3, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Queue(ItemId(8))], "what a phase brought is scheduled");
    }

    #[test]
    fn periodic_asks_every_period_and_nobody_wishes() {
        let mut act = Actions::default();
        let mut policy = node(0, Trigger::Periodic);
        policy.start(&view(0, 0, 0), &mut act);
        assert_eq!(act.take(), [Action::Timer { at: 500 }]);
        policy.on_idle(&view(5, 0, 0), &mut act);
        assert_eq!(act.take(), []);
        policy.on_timer(&view(500, 4, 1), &mut act);
        assert_eq!(act.take(), [Action::Timer { at: 1000 }, tell(2, Message::Ask), tell(1, Message::Ask)]);
    }
}
