//! Collective balancers: all nodes redistribute what they hold, together, in one phase.
//!
//! A balancer decides, the [mover](crate::node::migrate) moves. One file each; the [registry](ALL) is data that the command line, `list`, the
//! documentation's table and the tests go through. To add a balancer, write its file and enter it there.

mod cwa;
mod dem;
mod direct;
mod kwa;
mod mwa;
mod none;
mod optimal;
mod pslb;
mod psts;
#[cfg(test)]
mod testing;
mod twa;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::error::{Error, Result};
use crate::load::{Aim, Parcel, Pile, Powers, Quota, Shares, Transfer};
use crate::node::Node;
use crate::node::migrate::Mover;
use crate::options::{self, Options};
use crate::topology::{Kind, NodeId, Topology};

/// All balancers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &twa::ENTRY,
    &cwa::ENTRY,
    &mwa::ENTRY,
    &kwa::ENTRY,
    &dem::ENTRY,
    &pslb::ENTRY,
    &psts::ENTRY,
    &direct::ENTRY,
    &optimal::ENTRY,
    &none::ENTRY,
];

/// A balancer's place in the registry: what is known of it before it runs.
pub struct Entry {
    /// As the command line names it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Author, year, section.
    pub source: &'static str,
    /// The kinds of topology that it runs on; the first is the one it gets when none is asked for.
    pub kinds: &'static [Kind],
    /// What it asks of a topology beyond its kind (`None`: nothing), as a reason to refuse one.
    pub refuses: fn(&Topology) -> Option<String>,
    pub quota: QuotaRule,
    pub promises: Promises,
    /// Steps, messages and bytes at the most, predicted from the paper's formulas and our message sizes.
    pub cost: fn(&Topology) -> Cost,
    /// Its options as `key=value, ..` with the default first; empty if it has none.
    pub options: &'static str,
    /// Makes the balancer with the given options.
    pub build: fn(&mut Options<'_>) -> Result<Box<dyn Balancer>>,
}

/// How a balancer decides what each node should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRule {
    /// In proportion to the powers, remainders by largest remainder ([`Quota::proportional`]).
    Proportional,
    /// By the position of the units in the node order (PSLB, and PSTS level by level).
    Positional,
    /// It has none of its own; its result is judged by the proportional quotas.
    None,
}

/// What a balancer guarantees, for unit tasks. Every promise is a property test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Every node ends at its quota.
    pub exact: bool,
    /// No node ever holds less than the smaller of its load and its quota.
    pub local: bool,
    /// The tasks' order over the nodes stays as it was.
    pub ordered: bool,
    /// The task-hops are the least possible on its topology.
    pub optimal: bool,
}

/// What a phase costs at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Longest chain of dependent messages.
    pub steps: u64,
    /// Messages of all nodes together.
    pub messages: u64,
    /// Bytes of these, without the tasks' payloads.
    pub bytes: u64,
}

/// What the nodes do in a phase. Stateless: the same value serves all nodes.
pub trait Balancer: Send + Sync {
    /// What each node should end with, for a total, whatever is pinned; the proportional quotas unless the balancer has a rule of its own.
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        let _ = topology;
        Quota::proportional(total, shares.powers())
    }

    /// The nearest to these quotas that can be reached with what is pinned: what the nodes aim at.
    fn reachable(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        shares.reachable(total, || self.quota(topology, total, shares))
    }

    /// One node's part in the phase. The phase's pile holds the node's tasks, before and after.
    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a>;
}

/// A node's part in a phase, being carried out.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// One node's side of a balancing phase.
pub struct Phase<'a> {
    pub node: &'a Node,
    pub shares: &'a Shares,
    pub mover: Mover<'a>,
    times: Times,
    part: Part,
    since: u64,
    spans: Option<Rc<RefCell<Vec<Span>>>>,
}

/// The parts that a phase's time is split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Part {
    Information,
    Decision,
    Exchange,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Part::Information => "information",
            Part::Decision => "decision",
            Part::Exchange => "exchange",
        }
    }
}

/// A stretch of a node's time that belongs to one part, in ticks of its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Span {
    pub part: Part,
    pub from: u64,
    pub until: u64,
}

/// Ticks that a node spent in each part of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    pub information: u64,
    pub decision: u64,
    pub exchange: u64,
}

impl<'a> Phase<'a> {
    /// A phase that begins now, with the gathering of information.
    pub fn begin(node: &'a Node, shares: &'a Shares, pile: &'a mut Pile) -> Phase<'a> {
        let mover = Mover::new(node, pile);
        Phase { node, shares, mover, times: Times::default(), part: Part::Information, since: node.now(), spans: None }
    }

    /// Notes from now on when which part began and ended.
    pub fn note_spans(&mut self, spans: Rc<RefCell<Vec<Span>>>) {
        self.spans = Some(spans);
    }

    /// The time from now on belongs to this part.
    pub fn enter(&mut self, part: Part) {
        let now = self.node.now();
        let spent = match self.part {
            Part::Information => &mut self.times.information,
            Part::Decision => &mut self.times.decision,
            Part::Exchange => &mut self.times.exchange,
        };
        *spent += now - self.since;
        if let (Some(spans), true) = (&self.spans, now > self.since) {
            spans.borrow_mut().push(Span { part: self.part, from: self.since, until: now });
        }
        self.since = now;
        self.part = part;
    }

    /// The phase is over: what this node sent, and how long the parts took.
    pub fn end(mut self) -> (Vec<Transfer>, Times) {
        self.enter(Part::Exchange);
        (self.mover.into_sent(), self.times)
    }

    /// Work units that this node holds, pinned ones included: as many as tasks if these are unit tasks.
    pub fn load(&self) -> u64 {
        self.mover.pile.work()
    }

    /// Gives a neighbour what a walk has planned: so much work, after which this node has `after` left by plan.
    ///
    /// Unit tasks are as planned. Tasks of several units can't be parted, so that a node has more or less than by plan. Each walks on from what
    /// it really has, and corrects what it gives by this error, by half a task at the most, lest errors add up where flows meet. Of a shortage
    /// that would take it a whole task below both its quota and what it should have left, all is passed on. A node that should end with
    /// nothing keeps nothing.
    pub fn give<T: serde::Serialize>(&mut self, dst: NodeId, said: &T, amount: u64, after: u64, quota: u64) {
        let load = self.load();
        let error = i128::from(load) - i128::from(amount) - i128::from(after);
        let amount = match error {
            _ if after == 0 && quota == 0 => load,
            0 => amount,
            _ => {
                let largest = i128::from(self.mover.pile.largest_movable());
                let free = i128::from(load) - i128::from(after.min(quota));
                let corrected = i128::from(amount) + error.clamp(-largest / 2, largest / 2);
                corrected.min(free.max(0) + (largest - 1).max(0)).clamp(0, i128::from(load)) as u64
            }
        };
        self.mover.give(dst, said, amount);
    }

    /// Deals a row of tasks, the first of which begins at unit `at`, to the owners of its parts: the first part begins at unit `start`, each
    /// has so many units, and an owner gets the tasks that aim into its part. It is told the number of units, even if there are no tasks.
    pub async fn deal(&mut self, mut row: Parcel, mut at: u64, start: u64, parts: &[(NodeId, u64)], aim: Aim) {
        let mut cut = start;
        for (place, (dst, units)) in (1..).zip(parts) {
            // Tasks without work at the very end belong to the last part.
            cut = if place == parts.len() { u64::MAX } else { cut + units };
            let parcel = row.take_front_before(at, cut, aim);
            at += parcel.work();
            self.node.ready_to_send().await;
            self.mover.send(*dst, units, parcel);
        }
    }

    /// What the nodes share the movable tasks by, of which there are `total` units: the powers, or, where tasks are pinned, what each node can
    /// still get.
    pub fn powers_of_movable(&self, balancer: &dyn Balancer, total: u64) -> Powers {
        let (powers, pinned) = (self.shares.powers(), self.shares.pinned());
        if pinned.is_empty() || total == 0 {
            return powers.clone();
        }
        self.shares.open(total, |all| balancer.reachable(self.topology(), all, self.shares))
    }

    pub fn powers(&self) -> &Powers {
        self.shares.powers()
    }

    pub fn topology(&self) -> &'a Topology {
        self.node.topology()
    }
}

/// Which unit of a task decides where it goes: the option `unit` of balancers by position.
fn aim(options: &mut Options<'_>) -> Result<Aim> {
    Ok(options.choice("unit", &[("middle", Aim::Middle), ("first", Aim::First)])?.unwrap_or(Aim::Middle))
}

/// A balancer that was asked for, ready to run.
pub struct Chosen {
    /// As it was asked for, options included.
    pub name: String,
    pub entry: &'static Entry,
    pub balancer: Box<dyn Balancer>,
}

/// The balancer named `name[:key=value,..]`.
///
/// # Errors
/// If there is none of this name (the sentence lists all), or its options are wrong.
pub fn find(spec: &str) -> Result<Chosen> {
    let (name, given) = options::split(spec);
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        Error::usage(format!("--balancer '{name}' is unknown; known are {}", known.join(", ")))
    })?;
    let balancer = Options::make(format!("--balancer {name}"), given, entry.build)?;
    Ok(Chosen { name: spec.to_string(), entry, balancer })
}

impl Entry {
    /// Why this balancer can't run on a topology, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<String> {
        if !self.kinds.contains(&topology.kind()) {
            let kinds: Vec<_> = self.kinds.iter().map(Kind::to_string).collect();
            return Some(format!("--balancer {} runs on {}, not on --topology {}", self.name, kinds.join(", "), topology.name()));
        }
        (self.refuses)(topology)
    }

    /// The topology that it gets when none is asked for, fitted to the ranks.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        Topology::fitted(self.kinds[0], ranks)
    }
}
