//! Options of a run.

use super::computation::Style;
use super::policy::QueueOrder;
use crate::node::Ticks;

/// Options of a run, the same on all nodes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Number of tasks that a rank executes at a time. The world must have this number of workers for each rank.
    pub workers: u32,
    /// Execution style of tasks, instead of the computation's [own style](crate::schedule::Computation::STYLE).
    pub style: Option<Style>,
    /// Order of ready tasks, instead of the policy's own order.
    pub order: Option<QueueOrder>,
    /// Time for which tasks are executed on the communication thread between two polls of the network.
    pub slice: Ticks,
    /// Ticks in one unit of the workload's time.
    pub unit: Ticks,
    /// Mean of the exponential time that each migration takes on top of the network's, charged at the receiver (Ahmad, Ghafoor and Fox 1994,
    /// section 5); `None` for none.
    pub migration: Option<Ticks>,
    /// Whether migrations queue for a link of their sender. Links are those of a hypercube over the nodes' numbers: a migration uses the
    /// link of the highest bit in which sender's and receiver's numbers differ. Each migration is served once, in order of departure.
    pub contention: bool,
    /// Threshold for prefetching, in ticks. Where tasks take less than this on average, each worker is handed its next task before it has
    /// ended the last one, so that it does not wait for the communication thread in between. A prefetched task can no longer be given away.
    /// 0 turns this off, which is best in simulation, where handing over takes no time.
    pub ahead_below: Ticks,
    /// Threshold for gathering answers, in ticks; about the cost of a message to its sender. Where many consecutive tasks on the
    /// communication thread take less than this each, answers to other nodes wait until the node polls the network, and those to one node
    /// leave in one message. 0 turns this off, which is best in simulation, where sending takes no time.
    pub gather_below: Ticks,
    /// Whether a node's load travels with the tasks and answers that it sends.
    pub loads_travel: bool,
    /// Part of its time by which every task is prolonged on real ranks, for tests of the measurement.
    pub drag: f64,
    /// Whether to record a trace of the run.
    pub trace: bool,
    /// The largest answer that may be sent, in bytes.
    pub largest_answer: usize,
}

impl Options {
    /// The same with another number of tasks that a rank executes at a time.
    #[must_use]
    pub fn with_workers(self, workers: u32) -> Options {
        Options { workers, ..self }
    }

    /// The rules of the paper's simulation: tasks are handed over when a worker is free, answers leave at once, and loads are known by
    /// announcement only.
    pub fn exact() -> Options {
        Options { ahead_below: 0, gather_below: 0, loads_travel: false, ..Options::default() }
    }
}

/// The best settings on real ranks.
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
