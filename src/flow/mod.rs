//! Min-cost flow: the cheapest way to carry supplies to demands over a network, exact for any amounts.
//!
//! **Idea.** Every round a multi-source Dijkstra over the residual network gives each node its distance from the
//! nodes that still have something to send, and node potentials turn the arcs on shortest paths into *tight* arcs of
//! reduced cost zero. A maximum flow over the tight arcs alone (Dinic's blocking flows) then serves all
//! demands that these shortest paths can serve. No later round can improve on what was sent, because reduced costs
//! stay non-negative; the rounds end when nothing is left or no demand can be reached.
//!
//! **Source.** The primal-dual method of Ford and Fulkerson (*Flows in Networks*, 1962, chapter III), in the form with
//! potentials of Ahuja, Magnanti and Orlin (*Network Flows*, 1993, sections 9.7 and 9.8); blocking flows after Dinic
//! (1970).
//!
//! **Complexity.** A node that still has supply keeps potential 0 and an unserved demand's potential grows every
//! round, so the rounds are at most the longest residual distance plus one: on a network whose arcs are unbounded and
//! cost 1, its diameter plus one. A round costs O(m log n) and a maximum flow (at most n blocking flows of O(nm); a few
//! of O(m) in practice). The bound does not depend on the amounts.
//!
//! **Why not network simplex.** Measured against a plain network simplex with block search on 4,096 nodes (release build,
//! one core of a small shared machine, nine patterns of loads, means from 10 to 10^12): Q12 takes 3 to 40 ms here and
//! 12 to 810 ms there; 64x64 meshes and tori up to 150 ms either way; long thin meshes, lines and rings, where the
//! rounds are many, mostly favour the simplex (at worst 0.7 s here, 0.25 s there). The costs agreed in every case. Growth
//! on square meshes is steep: 256x256 took half a minute, while Q16, with the same number of nodes, took under a second.
//!
//! This room knows nothing of ranks, tasks and topologies. Start at [`Network`], or at [`least_hops`] for balancing.

mod blocking;
mod hops;
mod residual;
#[cfg(test)]
mod tests;

pub use hops::{Carry, LeastHops, least_cost, least_hops};

use residual::Residual;

/// The capacity of an arc that carries any amount.
pub const UNBOUNDED: u64 = u64::MAX;

/// A directed network: nodes `0..nodes` and arcs with a capacity and a cost for each unit carried.
///
/// Parallel arcs and self-loops are allowed; a self-loop never carries anything. Costs are not negative, so there is
/// no flow of unbounded profit.
///
/// ```
/// use equipoise::flow::{Network, UNBOUNDED};
///
/// let mut network = Network::new(3);
/// let cheap = network.arc(0, 2, 4, 1);
/// let detour = network.arc(0, 1, UNBOUNDED, 1);
/// network.arc(1, 2, UNBOUNDED, 1);
/// let flow = network.solve(&[10, 0, -10])?;
/// assert_eq!((flow.on[cheap], flow.on[detour], flow.cost), (4, 6, 16));
/// # Ok::<(), equipoise::flow::FlowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    nodes: u32,
    arcs: Vec<Arc>,
}

#[derive(Clone, Copy, Debug)]
struct Arc {
    from: u32,
    to: u32,
    capacity: u64,
    cost: u32,
}

/// A cheapest flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sum over the arcs of units carried times cost per unit.
    pub cost: u128,
    /// Units carried by each arc, in the order in which the arcs were added.
    pub on: Vec<u64>,
}

/// Why there is no flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// An arc starts or ends at a node outside the network.
    #[error("arc {arc} touches node {node}, but the network has {nodes} nodes")]
    NoSuchNode { arc: usize, node: u32, nodes: u32 },
    /// The solver counts nodes and arcs in 31 bits.
    #[error("a network of more than 2^31 - 1 nodes or arcs")]
    TooLarge,
    /// A list has the wrong length: it needs one number for every node.
    #[error("{found} numbers for the {nodes} nodes of the network")]
    WrongLength { nodes: u32, found: usize },
    /// Supplies and demands do not add up to the same amount.
    #[error("the supplies add up to {supply}, the demands to {demand}")]
    Unbalanced { supply: u128, demand: u128 },
    /// The supplies or the demands add up to more than `u64::MAX`.
    #[error("more than 2^64 - 1 units to carry")]
    TooMuch,
    /// Capacities, or missing arcs, keep this many units from any demand (the least number possible).
    #[error("{unserved} units cannot reach any demand")]
    Infeasible { unserved: u64 },
}

impl Network {
    /// A network of `nodes` nodes and no arcs.
    pub fn new(nodes: u32) -> Self {
        Network { nodes, arcs: Vec::new() }
    }

    /// Adds an arc that carries at most `capacity` units ([`UNBOUNDED`]: any amount) at `cost` a unit, and returns its
    /// index in [`Flow::on`]. A node outside the network is reported by [`Network::solve`].
    pub fn arc(&mut self, from: u32, to: u32, capacity: u64, cost: u32) -> usize {
        self.arcs.push(Arc { from, to, capacity, cost });
        self.arcs.len() - 1
    }

    /// The cheapest flow that takes `supplies[v]` units out of every node `v` where that is positive, and delivers
    /// `-supplies[v]` units where it is negative. They must add up to zero.
    ///
    /// The same network and supplies always give the same flow: nodes and, at a node, arcs are taken in the order of
    /// their numbers.
    pub fn solve(&self, supplies: &[i128]) -> Result<Flow, FlowError> {
        self.check()?;
        if supplies.len() != self.nodes as usize {
            return Err(FlowError::WrongLength { nodes: self.nodes, found: supplies.len() });
        }
        let side = |sign: i128| {
            supplies
                .iter()
                .filter(|&&s| s.signum() == sign)
                .try_fold(0u128, |sum, s| sum.checked_add(s.unsigned_abs()))
                .ok_or(FlowError::TooMuch)
        };
        let (supply, demand) = (side(1)?, side(-1)?);
        if supply != demand {
            return Err(FlowError::Unbalanced { supply, demand });
        }
        // With this bound no arc ever carries more than a u64 holds: each unit that is sent crosses an arc at most once.
        if supply > u128::from(u64::MAX) {
            return Err(FlowError::TooMuch);
        }

        let mut residual = Residual::new(self.nodes, &self.arcs, supplies);
        while residual.shorten() {
            while residual.layer() {
                residual.block();
            }
        }
        match residual.unserved() {
            0 => Ok(self.flow(residual.carried())),
            unserved => Err(FlowError::Infeasible { unserved }),
        }
    }

    fn check(&self) -> Result<(), FlowError> {
        if self.nodes > i32::MAX as u32 || self.arcs.len() > i32::MAX as usize {
            return Err(FlowError::TooLarge);
        }
        for (arc, &Arc { from, to, .. }) in self.arcs.iter().enumerate() {
            let node = from.max(to);
            if node >= self.nodes {
                return Err(FlowError::NoSuchNode { arc, node, nodes: self.nodes });
            }
        }
        Ok(())
    }

    fn flow(&self, on: Vec<u64>) -> Flow {
        let cost = (self.arcs.iter().zip(&on)).map(|(arc, &units)| u128::from(arc.cost) * u128::from(units)).sum();
        Flow { cost, on }
    }
}
