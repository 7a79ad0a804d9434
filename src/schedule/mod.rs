//! Spawning: a computation whose tasks create tasks is spread over the nodes while it runs, and its answers flow back.
//!
//! A user writes a [`Computation`]; a [policy](policy::Policy) decides on each node where new tasks go; [`execute`] is what a node does: it
//! executes tasks beside messages, carries out what the policy wants, keeps the parents that wait, and finds out when all is done
//! (`termination`).
//!
//! ```text
//!   roots -> host's policy -> queue here ----------> ready -> worker -> answer -> parent's node -> join -> ..
//!                          -> send -> node's policy -> ..            -> children -> policy -> ..
//! ```
//!
//! To add a scheduler, write its file with a policy and enter it in [`ALL`].

pub mod accounting;
mod acwn;
mod answers;
pub mod computation;
mod cwn;
pub mod dss;
mod execution;
mod gde;
mod gradient;
mod hierarchical;
mod host;
mod incremental;
pub mod independent;
mod item;
mod moving;
mod neighbour;
mod neighbourhood;
pub mod policy;
mod random;
mod registry;
mod rid;
mod runtime;
pub mod sash;
pub mod selfsched;
mod static_;
mod steal;
mod system_phase;
mod termination;
mod unplaced;

pub use accounting::{Graph, NodeReport, Outcome, Summary};
pub use computation::{Computation, Roots, Slice, Source, Style, Yield};
pub use policy::Order;
pub use registry::{Chosen, Entry, Facts, Region, Scheduler, Units, find, listed, make};
pub use runtime::execute;

use crate::node::Ticks;

/// All schedulers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &hierarchical::ENTRY,
    &neighbour::ENTRY,
    &gradient::ENTRY,
    &cwn::ENTRY,
    &acwn::ENTRY,
    &rid::ENTRY,
    &gde::ENTRY,
    &incremental::ENTRY,
    &steal::ENTRY,
    &random::ENTRY,
    &static_::ENTRY,
];

/// The names of all, the simplest first: among schedulers that do equally well the simplest is recommended.
pub const SIMPLEST_FIRST: [&str; 11] =
    ["static", "random", "steal", "rid", "neighbour", "cwn", "acwn", "gradient", "gde", "hierarchical", "incremental"];

/// All schedulers of independent tasks, in the order in which they are shown.
pub const INDEPENDENT: &[&independent::Entry] = &[&sash::ENTRY, &sash::SADS, &dss::ENTRY, &selfsched::ENTRY];

/// Their names, the simplest first.
pub const INDEPENDENT_SIMPLEST_FIRST: [&str; 4] = ["selfsched", "dss", "sads", "sash"];

/// How a run is done, the same on all nodes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tasks that a rank executes at a time. The world must have as many workers a rank.
    pub workers: u32,
    /// Instead of the computation's [own](Computation::STYLE).
    pub style: Option<Style>,
    /// Instead of the policy's own.
    pub order: Option<Order>,
    /// How long tasks are executed on the communication thread between two polls of the network.
    pub slice: Ticks,
    /// Ticks in one unit of the workload's time.
    pub unit: Ticks,
    /// Mean of the exponential time that each migration takes on top of the network's, charged at the receiver (Ahmad, Ghafoor and Fox 1994,
    /// section 5); `None` for none.
    pub migration: Option<Ticks>,
    /// Whether migrations queue for a link of their sender, as if the nodes, by their numbers, were a hypercube: each is served once, in the
    /// order in which they leave, on the link of the highest bit in which sender's and receiver's numbers differ.
    pub contention: bool,
    /// Where tasks take less than this on average, each worker is handed its next one before it has ended the last, so that it need not wait for
    /// the communication thread in between; that one can't be given away any more. 0: never, which is best in simulation, where handing over
    /// takes no time.
    pub ahead_below: Ticks,
    /// Where many tasks in a row that are executed on the communication thread take less than this each, answers to other nodes wait until
    /// the node polls the network, and those to one node leave in one message: about what a message costs its sender. 0: never, which is
    /// best in simulation, where sending takes no time.
    pub gather_below: Ticks,
    /// Whether a node's load travels with the tasks and answers that it sends.
    pub loads_travel: bool,
    /// By which part of its time every task takes longer than it needs, on real ranks: for tests of the measurement.
    pub drag: f64,
    /// Whether to record what happened when.
    pub trace: bool,
    /// The largest answer that may be sent, in bytes.
    pub largest_answer: usize,
}

impl Options {
    /// What the paper's simulation does: tasks are handed over when a worker is free, answers leave at once, and loads are known by
    /// announcement only.
    pub fn exact() -> Options {
        Options { ahead_below: 0, gather_below: 0, loads_travel: false, ..Options::default() }
    }
}

/// What is best on real ranks.
impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 1,
            style: None,
            order: None,
            slice: 100_000,
            unit: 1_000_000,
            migration: None,
            contention: false,
            ahead_below: 300_000,
            gather_below: 2_000,
            loads_travel: true,
            drag: 0.0,
            trace: false,
            largest_answer: crate::node::LARGEST_MESSAGE,
        }
    }
}

#[cfg(test)]
mod tests;
