//! Common part of the balancers that know every task: each node sends the list of its tasks to all others, all compute the same assignment,
//! and tasks go straight to their destinations.
//!
//! 1. All-gather of the rows of alike tasks (weight and number) of each node, and of their places where these count.
//! 2. All nodes assign the tasks to ranks, alike; in simulation, where the nodes share what they gathered, once for all.
//! 3. Each node sends the tasks that leave, one message for each destination, and receives from those that it knows to send.
//!
//! ```text
//!   node 0   5x1 3x2   \                      /  node 0 keeps 5x1
//!   node 1   1x9        >  the same everywhere  ->  sends 2x2 to 1, 1x2 to 2
//!   node 2   -         /                      \  nodes 1, 2 receive from 0
//! ```
//!
//! Cost: the all-gather of [`direct`](super::direct), with a row of tasks where that has a load; one step; at most a message for each pair of nodes.
//!
//! Guarantee: the times of all ranks are known before anything moves, so a plan that makes the slowest rank slower is not carried out. Unit
//! tasks go as `direct` sends them, which ends at the quotas with the fewest tasks moved: no rule is better for those.
//!
//! Tasks are assigned to ranks, not to nodes: work on virtual nodes goes to the real node of some rank. Tasks without work stay where they are.

use super::by_task::{self, looks_at_columns};
use super::ground::Rule;
use super::{Balancer, Cost, Phase, Running, direct, gathering};
use crate::load::Shares;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, Placement, Topology};

/// Tasks go straight to where they belong, on whatever topology.
pub(super) const ANY: &[Kind] =
    &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph];

/// Number of nodes up to which a rule that looks at each task more than a few times decides within seconds.
const DECIDED_UP_TO: u32 = 16_384;

/// Returns the reason why a rule that looks at tasks many times does not suit a topology of this size; `None` if it does.
pub(super) fn too_many(topology: &Topology) -> Option<String> {
    let nodes = topology.nodes();
    let why = || {
        format!("is the wrong tool on {nodes} nodes: beyond {DECIDED_UP_TO} deciding takes minutes; greedy, tempered and the walks go on")
    };
    (nodes > DECIDED_UP_TO).then(why)
}

/// The balancer that a rule is.
pub(super) struct Central<R>(pub R);

impl<R: Rule + Send + Sync> Balancer for Central<R> {
    /// A result that is slower is declined before anything moves.
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn needs_places(&self) -> bool {
        self.0.by_place()
    }

    fn keeps_capacity(&self) -> bool {
        !self.0.by_place() && !self.0.by_links()
    }

    fn keeps_columns(&self) -> bool {
        self.0.by_columns()
    }

    fn rule(&self) -> Option<&dyn Rule> {
        Some(&self.0)
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        let has_more = phase.shares.capacity().is_some() || looks_at_columns(&self.0, phase.shares);
        let by_task = phase.shares.are_weighted() || has_more || !self.0.leaves_units_to_quotas();
        Box::pin(async move { if by_task { by_task::exchange(phase, &self.0).await } else { direct::exchange(phase).await } })
    }
}

/// Upper bound of what a phase of unit tasks costs.
pub(super) fn cost(topology: &Topology) -> Cost {
    direct::cost(topology)
}

/// Bytes of what a node with one task reports: the row of its weight and number, its place, and the numbers of both.
const ONE_TASK: u64 = 8 + 16 + 8 + 24;

/// Upper bound for rules by place, where each node may send to each other one. It is of one task on each node: a further one adds a place, and a row
/// if it is not like the one before it.
pub(super) fn cost_by_place(topology: &Topology) -> Cost {
    cost_of_all(topology, ONE_TASK)
}

/// Upper bound where each node reports this many bytes, and may send to each other one.
pub(super) fn cost_of_all(topology: &Topology, each: u64) -> Cost {
    let (gather, n) = (gathering::cost_of(topology.nodes(), each), u64::from(topology.nodes()));
    let pairs = n * (n - 1);
    Cost { steps: gather.steps + pairs.min(1), messages: gather.messages + pairs, bytes: gather.bytes + pairs * TRANSFER_BYTES }
}
