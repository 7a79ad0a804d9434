//! Policy of one node: it requests phases, takes part in rounds, and at the host decides.

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Trigger;
use super::cost_model::CostModel;
use super::steps::{Rounds, Worked};
use super::trigger::{Decision, Known, LoadSummary, NodeLoad, judge};
use crate::node::Ticks;
use crate::schedule::policy::{Actions, ItemId, New, Origin, PhaseEnd, Place, Policy, QueueOrder, View};
use crate::schedule::tree::Tree;
use crate::topology::NodeId;

/// Messages between nodes along the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// Upwards: a node of the sub-tree requests a phase.
    Wish,
    /// Downwards: a round begins.
    Ask,
    /// Upwards: the loads of a sub-tree.
    Loads(LoadSummary),
    /// Downwards: no phase follows from the round. Says whether a node idles.
    Over { idle: bool },
    /// Upwards: the loads of a sub-tree, and how long its nodes worked since the last round (published criteria).
    Steps(LoadSummary, Option<Worked>),
}

/// Shortest and longest pause after something that led to nothing.
const PAUSE: (Ticks, Ticks) = (20_000, 10_000_000);

pub(super) struct Incremental {
    place: Place,
    rng: ChaCha8Rng,
    trigger: Trigger,
    period: Ticks,
    /// Minimum gain of a phase, as a multiple of its cost (`predicted`).
    margin: f64,
    /// Whether new tasks wait for the next phase (`all`), and the tasks that wait.
    waits: bool,
    held: Vec<ItemId>,
    tree: Tree,

    /// The loads summed up in this round so far and the number of children that are missing, from the question until this node has answered.
    round: Option<(LoadSummary, usize)>,
    /// Work time of the nodes below since the last round, and of this one until then (published criteria).
    worked_below: Option<Worked>,
    reported: Ticks,
    in_phase: bool,
    requests: Requests,
    account: Account,

    host: Option<RoundControl>,
}

/// Knowledge about requests for a phase, from one phase to the next.
#[derive(Default)]
struct Requests {
    /// Whether a request went up from here in this round, or would add nothing to the last summary.
    wished: bool,
    /// Whether a node idled in the last round.
    somebody_idles: bool,
    /// Children below which all idle (`all`).
    idle_below: usize,
}

/// Summary of a round that a node sends.
#[derive(Default)]
struct Account {
    /// The last phase, if it has not been told of.
    phase: Option<PhaseEnd>,
    ended: u64,
    spawned: u64,
    /// Time worked; up to when, and by how many workers since then.
    worked: Ticks,
    accounted: Ticks,
    at_work: u32,
}

impl Account {
    /// Accounts for the time that has passed, in which every worker with tasks worked.
    fn pass(&mut self, view: &View) {
        self.worked += view.now.saturating_sub(self.accounted) * Ticks::from(self.at_work);
        self.accounted = view.now;
        self.at_work = view.load().min(view.workers);
    }
}

/// The host's control of rounds and phases.
#[derive(Default)]
struct RoundControl {
    /// Whether a node has requested a phase.
    wish: bool,
    /// Start time of the current round, until its decision; `None` otherwise.
    asked: Option<Ticks>,
    not_before: Ticks,
    /// The published criterion, if one is asked.
    rounds: Option<Rounds>,
    /// Time at which the next round is due (`periodic`, published criteria).
    tick: Ticks,
    /// Time at which a timer that was set for `not_before` runs out.
    alarm: Option<Ticks>,
    /// Duration of the round before the phase, if a phase began since the last summary.
    phase: Option<Ticks>,
    cost_model: CostModel,
    /// Number of consecutive rounds and phases without effect.
    futile: u32,
}

impl Incremental {
    pub fn new(place: Place, rng: ChaCha8Rng, trigger: Trigger, period: Ticks, margin: f64) -> Incremental {
        let tree = Tree::new(place.me, place.host, place.overlay.placement.nodes());
        // A single real node has no partner to balance with, but tasks that wait for a phase must get one.
        let waits = trigger == Trigger::All;
        let rounds = trigger.criterion().map(|criterion| Rounds::new(criterion, place.workers));
        let host =
            (place.me == place.host && (place.real_nodes() > 1 || waits)).then(|| RoundControl { rounds, ..RoundControl::default() });
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
            worked_below: None,
            reported: 0,
            in_phase: false,
            requests: Requests::default(),
            account: Account::default(),
            host,
        }
    }

    /// Returns true if this node requests a phase.
    fn wishes(&self, view: &View) -> bool {
        match (self.trigger, self.requests.somebody_idles) {
            (Trigger::Periodic | Trigger::Published(_), _) => false,
            (Trigger::All, false) => view.load() == 0 && self.requests.idle_below >= self.tree.children.len(),
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
        if !self.requests.wished && self.round.is_none() && self.wishes(view) {
            self.wish(act);
        }
        self.begin_round(view, act);
    }

    /// Passes a wish on, one a round.
    fn wish(&mut self, act: &mut Actions<Message>) {
        if let Some(host) = &mut self.host {
            host.wish = true;
        }
        if !std::mem::replace(&mut self.requests.wished, true)
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
        let last = self.account.phase.take();
        summary.add(LoadSummary {
            loads: vec![NodeLoad { node: self.place.me, running: view.running, ready: view.ready + self.held.len() as u32 }],
            moved: last.map_or(0, |last| last.moved.into()),
            took: last.map_or(0, |last| last.took),
            ended: self.account.ended,
            spawned: self.account.spawned,
            worked: self.account.worked,
        });
        // The summary already has the content of a request.
        self.requests.wished = self.trigger == Trigger::All || view.is_idle();
        let worked = self.worked_since();
        match self.tree.parent {
            Some(parent) if self.trigger.criterion().is_some() => act.tell(parent, Message::Steps(summary, worked)),
            Some(parent) => act.tell(parent, Message::Loads(summary)),
            None => self.decide(&summary, worked, view, act),
        }
    }

    /// A child has answered.
    fn add(&mut self, summary: LoadSummary, worked: Option<Worked>) {
        self.worked_below = [self.worked_below, worked].into_iter().flatten().reduce(Worked::and);
        if let Some((sum, missing)) = &mut self.round {
            sum.add(summary);
            *missing = missing.saturating_sub(1);
        }
    }

    /// Work time of this node and those below since the last round.
    fn worked_since(&mut self) -> Option<Worked> {
        let mine = Worked::of(self.account.worked - std::mem::replace(&mut self.reported, self.account.worked));
        let mine = Some(mine).filter(|_| self.place.me < self.place.real_nodes());
        [self.worked_below.take(), mine].into_iter().flatten().reduce(Worked::and)
    }

    fn decide(&mut self, summary: &LoadSummary, worked: Option<Worked>, view: &View, act: &mut Actions<Message>) {
        let Some(host) = &mut self.host else { return };
        let round = host.asked.take().map_or(0, |asked| view.now.saturating_sub(asked));
        let before = host.phase.take();
        if before.is_some() {
            host.futile = if summary.moved > 0 { 0 } else { host.futile + 1 };
        }
        host.cost_model.learn(view.now, summary, before);
        let cost = host.cost_model.cost(round);
        let known = Known {
            is_due: host.rounds.as_mut().is_none_or(|rounds| rounds.ended(worked, cost)),
            nodes: self.place.overlay.placement.nodes(),
            real: self.place.real_nodes(),
            workers: self.place.workers.max(1),
            cost,
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
                host.rounds.iter_mut().for_each(Rounds::balanced);
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
        self.requests.somebody_idles = idle;
        // From now on nodes with tasks to spare request a phase; otherwise a wish that came too late for the summary is still valid.
        self.requests.wished &= !idle;
        self.consider(view, act);
    }
}

impl Policy for Incremental {
    type Message = Message;

    fn order(&self) -> QueueOrder {
        QueueOrder::Lifo
    }

    fn start(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account.accounted = view.now;
        if self.trigger.goes_by_the_clock()
            && let Some(host) = &mut self.host
        {
            host.tick = view.now.saturating_add(self.period);
            act.timer(host.tick);
        }
        self.consider(view, act);
    }

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        if matches!(origin, Origin::Spawned | Origin::Joined { .. } | Origin::Split) {
            self.account.spawned += items.len() as u64;
        }
        let placement = &self.place.overlay.placement;
        for new in items {
            match origin {
                // Some balancers leave tasks where no power is; the real node of the same rank has it near.
                _ if view.workers == 0 => act.migrate(new.item, placement.real_node_of(placement.rank_of(self.place.me))),
                Origin::Root { stream: true } => act.submit(new.item, self.place.any_real(&mut self.rng)),
                // A migrated task came in a phase; a stream's root has not.
                Origin::Migrated { .. } if new.hops > 0 => act.queue(new.item),
                _ if self.waits => self.held.push(new.item),
                _ => act.queue(new.item),
            }
        }
        self.consider(view, act);
    }

    fn on_end(&mut self, _: ItemId, spawned: &[New], view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        self.account.ended += 1;
        if !spawned.is_empty() {
            self.on_new(spawned, Origin::Spawned, view, act);
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        match message {
            Message::Wish if self.trigger == Trigger::All && !self.requests.somebody_idles => self.requests.idle_below += 1,
            Message::Wish => self.wish(act),
            Message::Ask => self.asked(act),
            Message::Loads(summary) => self.add(summary, None),
            Message::Steps(summary, worked) => self.add(summary, worked),
            Message::Over { idle } => {
                debug_assert_eq!(self.tree.parent, Some(from));
                return self.over(idle, view, act);
            }
        }
        self.consider(view, act);
    }

    fn on_idle(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        self.consider(view, act);
    }

    fn on_change(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        self.consider(view, act);
    }

    fn on_timer(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        if let Some(host) = &mut self.host {
            host.alarm = host.alarm.filter(|alarm| *alarm > view.now);
            if self.trigger.goes_by_the_clock() && view.now >= host.tick {
                host.wish = true;
                host.tick = view.now.saturating_add(self.period);
                act.timer(host.tick);
            }
        }
        self.consider(view, act);
    }

    fn on_freeze(&mut self, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        self.in_phase = true;
        self.held.drain(..).for_each(|item| act.queue(item));
        // A new user phase begins, of which nothing is known yet.
        self.requests = Requests::default();
        if let Some(host) = &mut self.host {
            host.wish = false;
        }
    }

    fn on_phase(&mut self, phase: PhaseEnd, view: &View, act: &mut Actions<Message>) {
        self.account.pass(view);
        self.in_phase = false;
        self.account.phase = Some(phase);
        if let Some(host) = &mut self.host {
            // Phases take no more than about half of the time.
            host.not_before = host.not_before.max(view.now.saturating_add(phase.took));
        }
        self.consider(view, act);
    }
}

#[cfg(test)]
mod tests;
