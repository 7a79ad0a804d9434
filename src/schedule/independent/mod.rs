//! Independent tasks on ranks of different kinds (Hamidzadeh, Lilja and Atif 1995): interfaces of workloads and schedulers, and the result
//! of a run.
//!
//! ```text
//!   scheduler (one node):  requests, completions -> decides -> grants      works, too, or searches only
//!   every worker:          grants -> executor: queue -> worker thread (short tasks: at once) -> completion, or the next requests
//! ```
//!
//! A scheduler is a file (or a folder) with its decisions as plain functions and its rank program, and an entry in [`ALL`]. The schedulers of
//! tasks that spawn tasks are another [registry](super::ALL).

pub mod chunk;
pub(super) mod entry;
pub mod executor;
mod products;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use super::kinds::find_independent as find;
pub use super::{INDEPENDENT as ALL, INDEPENDENT_SIMPLEST_FIRST as SIMPLEST_FIRST};
use crate::error::Result;
use crate::load::{CYCLE, Checksum, Cost, Costs};
use crate::node::{Node, Tag, Ticks, Worker};
use crate::spec::{InvalidSpec, Options};
use crate::topology::{NodeId, RankId};
pub use chunk::Chunk;
pub use entry::{Chosen, Entry, Facts};
pub use executor::Executor;

/// A set of independent tasks, numbered from 0.
pub trait Independent: Send + Sync {
    /// Expected cost of each task on each rank. Used only by [schedulers](Facts::knows_costs) that declare it.
    fn costs(&self) -> &Arc<Costs>;

    /// Declared speed of each rank; empty if unknown.
    fn speeds(&self) -> &[f64] {
        &[]
    }

    /// Arrival time of each task, in cycles from the beginning of the run, ascending. Empty if all tasks are there from the beginning.
    fn arrivals(&self) -> &[Cost] {
        &[]
    }

    /// Executes a task; the values of all tasks are summed up to the answer. Bytes that it appends to `product` go to node 0.
    fn execute(&self, task: usize, turn: Turn, worker: &mut dyn Worker, product: &mut Vec<u8>) -> u64;
}

/// Circumstances in which a task is executed.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The rank that executes it.
    pub rank: RankId,
    /// Delay against its beginning by the model, in which messages take no time. An emulated task takes less by this time.
    pub late: Ticks,
    /// Whether the worker executed another task immediately before.
    pub follows: bool,
}

/// Time scale of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Ticks in a cycle.
    pub cycle: Ticks,
    /// Whether the model determines time, as in papers' simulations: messages and polls of the network take no time, and search takes the
    /// time of the model. Otherwise the clock counts.
    pub by_model: bool,
    /// Time before a rank runs dry at which it fetches more tasks.
    pub ahead: Ticks,
    /// Seed of all random numbers of the scheduler.
    pub seed: u64,
}

impl Pace {
    /// Ticks that a cost takes, rounded down.
    pub fn ticks(&self, cost: Cost) -> Ticks {
        (u128::from(cost) * u128::from(self.cycle) / u128::from(CYCLE)).try_into().unwrap_or(Ticks::MAX)
    }

    /// Cost that takes these ticks, rounded down.
    pub fn cost(&self, ticks: Ticks) -> Cost {
        (u128::from(ticks) * u128::from(CYCLE) / u128::from(self.cycle.max(1))).try_into().unwrap_or(Cost::MAX)
    }
}

/// Statistics of one node. Times are ticks of its own clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Figures {
    /// The node.
    pub node: NodeId,
    /// Its rank.
    pub rank: RankId,
    /// Tasks that ended here.
    pub tasks: u64,
    /// Sum of their values, modulo 2^64.
    pub value: u64,
    /// Checksum over their numbers.
    pub checksum: Checksum,
    /// Executing tasks.
    pub busy: Ticks,
    /// Having nothing to execute while something might come.
    pub waiting: Ticks,
    /// Time from the beginning of the run to its end.
    pub elapsed: Ticks,
    /// The longest task.
    pub largest: Ticks,
    /// Sum over the tasks of when they ended, from the beginning of the run.
    pub completed: f64,
    /// Messages with products of tasks.
    pub products: u64,
    /// Number of tasks that another rank had to send, among `tasks`.
    pub migrated: u64,
    /// Messages that it sent to other ranks.
    pub messages: u64,
    /// Bytes of these messages, with headers.
    pub bytes: u64,
}

/// Cost of scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Effort {
    /// Grants and phases: how often something was decided.
    pub decisions: u64,
    /// Nodes of the search that were expanded.
    pub expansions: u64,
    /// Nodes of the search that were generated.
    pub generated: u64,
    /// Time spent searching, in cycles.
    pub search: f64,
    /// Time that workers waited for a schedule that they could have had, in cycles.
    pub waiting: f64,
    /// Rank that scheduled.
    pub scheduler: RankId,
}

/// Result of a run, at node 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndependentResult {
    /// In cycles.
    pub makespan: f64,
    /// Statistics of each node, in ascending order.
    pub nodes: Vec<Figures>,
    /// Cost of scheduling.
    pub effort: Effort,
    /// Products of tasks, besides their values, in order of the tasks.
    pub products: Vec<(usize, Bytes)>,
}

/// A node's part in a run, being carried out.
pub type Running = Pin<Box<dyn Future<Output = Result<Option<IndependentResult>>>>>;

/// A scheduler, ready to run.
pub trait Scheduler: Send + Sync {
    /// One node's part; every rank has one node.
    fn execute(self: Arc<Self>, node: Node, work: Arc<dyn Independent>, pace: Pace) -> Running;
}

/// Returns true if hosts have schedulers of their own (the option `clusters`).
pub(super) fn by_host(options: &mut Options<'_>) -> Result<bool, InvalidSpec> {
    Ok(options.choice("clusters", &[("none", false), ("hosts", true)])?.unwrap_or(false))
}

/// The node that receives a run's outcome.
const FIRST: NodeId = 0;
/// Epoch in which figures are collected.
const CLOSING: u32 = crate::node::epochs::CLOSING;
const EFFORT: Tag = crate::node::tags::independent::EFFORT;

/// Collects the statistics of all nodes at node 0; `mine` of the scheduling node has the cost of scheduling, and the makespan in cycles.
///
/// # Errors
/// If a rank is lost.
pub async fn collect(node: &Node, figures: Figures, mine: Option<(f64, Effort)>) -> Result<Option<IndependentResult>> {
    let closing = node.epoch(CLOSING);
    if let Some(mine) = mine {
        closing.send(FIRST, EFFORT, &mine);
    }
    let mut nodes = closing.everyone().gather(&closing, figures).await?;
    if node.me() != FIRST {
        return Ok(None);
    }
    let (_, (makespan, effort)) = closing.receive_any::<(f64, Effort)>(EFFORT).await?;
    nodes.sort_by_key(|figures| figures.node);
    let products = products::collect(&closing, &nodes).await?;
    Ok(Some(IndependentResult { makespan, nodes, effort, products }))
}
