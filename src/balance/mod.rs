//! Collective balancers: all nodes redistribute their tasks together, in one phase.
//!
//! A balancer decides, the [mover](crate::node::migrate) moves. Each balancer has its own file. The command line, `list`, the
//! documentation's table and the tests use the [registry](ALL). To add a balancer, write its file and enter it in the two lists here.

mod by_task;
mod central;
mod chains;
mod cwa;
mod dem;
mod diffusion;
mod direct;
mod entry;
mod gathering;
mod greedy;
mod greedy_refine;
mod ground;
mod hierarchical;
mod items;
mod kk;
mod kwa;
mod mwa;
#[doc(hidden)]
pub mod no_harm;
mod none;
mod optimal;
mod parts;
mod pslb;
mod psts;
mod rcb;
mod refine;
mod registry;
mod repair;
mod sfc;
mod tempered;
#[cfg(test)]
mod testing;
mod twa;
mod within;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use log::debug;

pub use self::entry::{Chosen, Entry, Facts, Knowledge};
pub use self::ground::{Given, Rule};
pub use self::parts::{from_parts, partition_file, read_partition};
pub use self::registry::{find, listed, without_places};
use crate::error::Result;
use crate::load::{Aim, Powers, Quota, RankTime, Shares, TaskBatch, Transfer, WorkQueue};
use crate::node::migrate::Mover;
use crate::node::{Gathered, Node};
use crate::spec::{InvalidSpec, Options};
use crate::topology::{NodeId, Overlay, Placement, Topology};

/// All balancers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &twa::ENTRY,
    &cwa::ENTRY,
    &mwa::ENTRY,
    &kwa::ENTRY,
    &dem::ENTRY,
    &diffusion::fos::ENTRY,
    &diffusion::sos::ENTRY,
    &diffusion::ops::ENTRY,
    &pslb::ENTRY,
    &psts::ENTRY,
    &direct::ENTRY,
    &optimal::ENTRY,
    &greedy::ENTRY,
    &refine::ENTRY,
    &greedy_refine::ENTRY,
    &hierarchical::ENTRY,
    &kk::ENTRY,
    &chains::ENTRY,
    &rcb::ENTRY,
    &sfc::ENTRY,
    &tempered::ENTRY,
    &none::ENTRY,
];

/// Names of all balancers, the simplest first: among equally good balancers the simplest is recommended. First one exchange of loads and
/// direct transfers, then walks along links, then scans level by level and flow problems.
pub const SIMPLEST_FIRST: &[&str] = &[
    "none",
    "direct",
    "refine",
    "greedy",
    "cwa",
    "dem",
    "pslb",
    "twa",
    "mwa",
    "kwa",
    "fos",
    "sos",
    "ops",
    "chains",
    "sfc",
    "rcb",
    "kk",
    "greedy-refine",
    "hierarchical",
    "optimal",
    "psts",
    "tempered",
];

/// Rule by which a balancer computes the quota of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRule {
    /// In proportion to the powers, remainders by largest remainder ([`Quota::proportional`]).
    Proportional,
    /// Quotas by the position of the units in the node order (PSLB, and PSTS level by level).
    Positional,
    /// It has none of its own; its result is judged by the proportional quotas.
    None,
}

/// Guarantees of a balancer, for unit tasks. Every promise is a property test.
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

/// Upper bounds on the cost of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Longest chain of dependent messages.
    pub steps: u64,
    /// Messages of all nodes together.
    pub messages: u64,
    /// Bytes of these, without the tasks' payloads.
    pub bytes: u64,
}

/// A balancer: the program of the nodes in a phase. Stateless: the same value serves all nodes.
pub trait Balancer: Send + Sync {
    /// Quota of each node for a total load, regardless of pinned tasks. Proportional to the powers unless the balancer has its own rule.
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        let _ = topology;
        Quota::proportional(total, shares.powers())
    }

    /// The nearest to these quotas that can be reached with what is pinned: what the nodes aim at.
    fn reachable(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        shares.reachable(total, || self.quota(topology, total, shares))
    }

    /// Target load of each node, given the loads by node: reachable quotas with which the slowest rank becomes no slower.
    fn aims(&self, overlay: &Overlay, loads: &[u64], shares: &Shares) -> Quota {
        let Overlay { topology, placement } = overlay;
        let total = loads.iter().sum();
        if !phase_lowers_quotas(shares, placement) {
            return self.reachable(topology, total, shares);
        }
        let slowest = slowest_of(loads, shares, placement);
        shares.harmless(total, slowest, placement, || self.quota(topology, total, shares)).0
    }

    /// Returns true if the slowest rank may be slower after a phase, so that the result has to be checked at the end. A balancer may return
    /// false only if its quotas stay below the cap, see [`Phase::quota`].
    fn is_checked(&self, shares: &Shares, placement: &Placement) -> bool {
        let _ = (shares, placement);
        true
    }

    /// Returns true if it uses the tasks' places; see [`WorkQueue::with_places`].
    fn needs_places(&self) -> bool {
        false
    }

    /// Returns true if it respects the ranks' capacities; see [`Shares::with_capacity`].
    fn keeps_capacity(&self) -> bool {
        false
    }

    /// Returns true if it uses all weights of tasks that have several; see [`Shares::with_columns`].
    fn keeps_columns(&self) -> bool {
        false
    }

    /// Checks that the balancer can be used for this number of tasks.
    ///
    /// # Errors
    /// Wrong usage if the balancer is made for another number of tasks; a phase ends with the same error.
    fn check_tasks(&self, tasks: u64) -> Result<()> {
        let _ = tasks;
        Ok(())
    }

    /// The assignment that it carries out, if it is one that knows every task.
    fn rule(&self) -> Option<&dyn Rule> {
        None
    }

    /// One node's part in the phase. The phase's work queue holds the node's tasks, before and after. [`Phase::carry_out`] runs it.
    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a>;
}

/// Returns true if quotas are lowered where they would make the slowest rank slower. For unit tasks, final loads equal the quotas.
fn phase_lowers_quotas(shares: &Shares, placement: &Placement) -> bool {
    !shares.are_plain() && !shares.are_weighted() && shares.may_round_badly(placement.ranks())
}

/// The time of the slowest rank, from the loads of all nodes. Without what is pinned on ranks without power: that never ends, whatever the others
/// do, and would excuse everything.
fn slowest_of(loads: &[u64], shares: &Shares, placement: &Placement) -> RankTime {
    let mut times = vec![RankTime { work: 0, power: 0 }; placement.ranks() as usize];
    let mut pinned = vec![0; times.len()];
    for (node, load) in (0..).zip(loads) {
        let rank = placement.rank_of(node).index();
        times[rank].work += load;
        times[rank].power += shares.powers().of(node);
        pinned[rank] += shares.pinned_on(node);
    }
    let free = times.into_iter().zip(pinned).map(|(time, pinned)| time.without_what_is_stuck(pinned));
    free.max().unwrap_or(RankTime { work: 0, power: 1 })
}

/// A node's part in a phase, being carried out.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// One node's side of a balancing phase.
pub struct Phase<'a> {
    /// The node whose side this is.
    pub node: &'a Node,
    /// Data known to all nodes before the phase: powers, pinned work, kinds of tasks.
    pub shares: &'a Shares,
    /// Moves tasks from and to this node's work queue.
    pub mover: Mover<'a>,
    times: Times,
    stage: Stage,
    since: u64,
    spans: Option<Rc<RefCell<Vec<Span>>>>,
    /// Work units that this node had at the beginning.
    began_with: u64,
    /// The time of the slowest rank at the beginning, where quotas have to stay below it.
    slowest: Option<RankTime>,
    declined: bool,
}

/// The stages of a phase, over which its time is accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Stage {
    /// Nodes learn each other's loads.
    Information,
    /// Nodes compute the flows between them.
    Decision,
    /// Tasks move.
    Exchange,
}

impl Stage {
    /// The stage in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Information => "information",
            Stage::Decision => "decision",
            Stage::Exchange => "exchange",
        }
    }
}

/// A stretch of a node's time that belongs to one stage, in ticks of its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Span {
    /// The stage.
    pub stage: Stage,
    /// Start time of the stretch.
    pub from: u64,
    /// End time of the stretch.
    pub until: u64,
}

/// Ticks that a node spent in each stage of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// In [`Stage::Information`].
    pub information: u64,
    /// In [`Stage::Decision`].
    pub decision: u64,
    /// In [`Stage::Exchange`].
    pub exchange: u64,
}

impl<'a> Phase<'a> {
    /// A phase that begins now, with the gathering of information.
    pub fn begin(node: &'a Node, shares: &'a Shares, queue: &'a mut WorkQueue) -> Phase<'a> {
        let began_with = queue.work();
        debug!("{node} begins a phase with {began_with} units of work in {} tasks", queue.len());
        let mover = Mover::new(node, queue);
        let since = node.now();
        let times = Times::default();
        Phase { node, shares, mover, times, stage: Stage::Information, since, spans: None, began_with, slowest: None, declined: false }
    }

    /// Carries out this node's part, so that the slowest rank becomes no slower (unless the shares are [plain](Shares::plainly)).
    ///
    /// # Errors
    /// The balancer's own; if a rank is lost or a message is garbled.
    pub async fn carry_out(&mut self, balancer: &dyn Balancer) -> Result<()> {
        let placement = &self.node.overlay().placement;
        let checked = !self.shares.are_plain() && placement.ranks() > 1 && balancer.is_checked(self.shares, placement);
        if checked {
            self.mover.remember();
        }
        balancer.run(self).await?;
        if checked {
            Box::pin(no_harm::check(self)).await?;
        }
        Ok(())
    }

    /// Learns how slow the slowest rank is, where [quotas](Phase::quota) have to be kept below that. One reduction over the ranks.
    ///
    /// # Errors
    /// If a rank is lost or a message is garbled.
    pub async fn survey(&mut self) -> Result<()> {
        if phase_lowers_quotas(self.shares, &self.node.overlay().placement) {
            self.slowest = Some(Box::pin(no_harm::slowest(self)).await?.before);
        }
        Ok(())
    }

    /// The same from the loads of all nodes, without a message.
    pub fn survey_of(&mut self, loads: &Gathered<u64>) {
        let placement = &self.node.overlay().placement;
        if phase_lowers_quotas(self.shares, placement) {
            self.slowest = Some(*loads.derive(|loads| slowest_of(loads, self.shares, placement)));
        }
    }

    /// The proportional quotas for this total: what can be reached with what is pinned, and, after a survey, with which no rank takes longer
    /// than the slowest one does now.
    pub fn quota(&mut self, total: u64) -> Quota {
        self.aim(total, || Quota::proportional(total, self.shares.powers()))
    }

    /// The same for any quotas.
    fn aim(&mut self, total: u64, ideal: impl FnOnce() -> Quota) -> Quota {
        let Some(slowest) = self.slowest else { return self.shares.reachable(total, ideal) };
        let (quota, lowered) = self.shares.harmless(total, slowest, &self.node.overlay().placement, ideal);
        self.declined |= lowered;
        quota
    }

    /// Notes that the rule was not followed where it would have made the slowest rank slower.
    pub fn decline(&mut self) {
        self.declined = true;
    }

    /// Returns true if this node knows of declined moves.
    pub fn has_declined(&self) -> bool {
        self.declined
    }

    /// Records from now on when each stage began and ended.
    pub fn note_spans(&mut self, spans: Rc<RefCell<Vec<Span>>>) {
        self.spans = Some(spans);
    }

    /// Ends the present stage and begins this one: time from now on belongs to it.
    pub fn enter(&mut self, stage: Stage) {
        let now = self.node.now();
        let spent = match self.stage {
            Stage::Information => &mut self.times.information,
            Stage::Decision => &mut self.times.decision,
            Stage::Exchange => &mut self.times.exchange,
        };
        *spent += now - self.since;
        if let (Some(spans), true) = (&self.spans, now > self.since) {
            spans.borrow_mut().push(Span { stage: self.stage, from: self.since, until: now });
        }
        self.since = now;
        self.stage = stage;
    }

    /// The phase is over: what this node sent, and how long the parts took.
    pub fn end(mut self) -> (Vec<Transfer>, Times) {
        self.enter(Stage::Exchange);
        let declined = if self.declined { "; moves were declined that would make the slowest rank slower" } else { "" };
        debug!("{} ends its phase with {} units of work, {:?}{declined}", self.node, self.load(), self.times);
        (self.mover.into_sent(), self.times)
    }

    /// Work units that this node holds, pinned ones included: the number of tasks if these are unit tasks.
    pub fn load(&self) -> u64 {
        self.mover.queue.work()
    }

    /// Gives a neighbour the amount of work that a walk has planned, after which this node has `after` left by plan.
    ///
    /// Unit tasks move as planned. Tasks of several units cannot be split, so a node holds more or less than planned. Each node continues from what
    /// it really holds, and corrects what it gives by this error, by at most half a task, so that errors do not add up where flows meet. A shortage
    /// that would leave the node a whole task below both its quota and its planned remainder is passed on in full. A node that should end with
    /// nothing keeps nothing.
    pub fn give<T: serde::Serialize>(&mut self, dst: NodeId, said: &T, amount: u64, after: u64, quota: u64) {
        let load = self.load();
        let error = i128::from(load) - i128::from(amount) - i128::from(after);
        let amount = match error {
            _ if after == 0 && quota == 0 => load,
            0 => amount,
            _ => {
                let largest = i128::from(self.mover.queue.largest_movable());
                let free = i128::from(load) - i128::from(after.min(quota));
                let corrected = i128::from(amount) + error.clamp(-largest / 2, largest / 2);
                corrected.min(free.max(0) + (largest - 1).max(0)).clamp(0, i128::from(load)) as u64
            }
        };
        self.mover.give(dst, said, amount);
    }

    /// Deals a row of tasks, the first of which begins at unit `at`, to the owners of its parts: the first part begins at unit `start`, each has its
    /// number of units, and an owner receives the tasks that aim into its part. An owner receives the number of units even if there are no tasks for
    /// it.
    pub async fn deal(&mut self, mut row: TaskBatch, mut at: u64, start: u64, parts: &[(NodeId, u64)], aim: Aim) {
        let mut cut = start;
        for (place, (dst, units)) in (1..).zip(parts) {
            // Tasks without work at the very end belong to the last part.
            cut = if place == parts.len() { u64::MAX } else { cut + units };
            let batch = row.take_front_before(at, cut, aim);
            at += batch.work();
            self.node.ready_to_send().await;
            self.mover.send(*dst, units, batch);
        }
    }

    /// Weights by which the nodes share the `total` units of movable tasks. These are the powers. Where tasks are pinned, or a quota would
    /// make the slowest rank slower, they are the amounts that each node can still receive.
    pub fn powers_of_movable(&mut self, balancer: &dyn Balancer, total: u64) -> Powers {
        let (powers, pinned) = (self.shares.powers(), self.shares.pinned());
        if total == 0 || pinned.is_empty() && self.slowest.is_none() {
            return powers.clone();
        }
        let (topology, shares) = (self.topology(), self.shares);
        let all = total + pinned.iter().sum::<u64>();
        let quota = self.aim(all, || balancer.quota(topology, all, shares));
        if pinned.is_empty() && !self.declined {
            return powers.clone();
        }
        shares.open(all, self.slowest, || {
            let open = (0..powers.nodes()).map(|node| quota.of(node) - pinned.get(node as usize).unwrap_or(&0)).collect();
            Powers::listed(open).unwrap_or_else(|_| powers.clone())
        })
    }

    /// The powers of all nodes.
    pub fn powers(&self) -> &'a Powers {
        self.shares.powers()
    }

    /// The topology that the phase runs on.
    pub fn topology(&self) -> &'a Topology {
        self.node.topology()
    }
}

/// Unit of a task that decides its destination: the option `unit` of balancers by position.
fn aim(options: &mut Options<'_>) -> Result<Aim, InvalidSpec> {
    Ok(options.choice("unit", &[("middle", Aim::Middle), ("first", Aim::First)])?.unwrap_or(Aim::Middle))
}
