//! Balancing with the fewest task-hops: the min-cost flow that Wu compares his walks with.

use super::{FlowError, Network, UNBOUNDED};

/// Tasks that cross an edge, net, from one of its ends to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    pub src: u32,
    pub dst: u32,
    /// At least 1.
    pub amount: u64,
}

/// The answer of [`least_hops`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastHops {
    /// Task-hops: the sum of the amounts carried.
    pub hops: u128,
    /// The edges that carry something, in the order of the edges given. They form no directed cycle, so every node can
    /// wait for all it receives before it sends.
    pub carries: Vec<Carry>,
}

/// Minimum number of task-hops that turns `loads` into `quota`, and the amount to carry over each edge.
///
/// One task carried over one undirected edge is one task-hop; edges carry any amount (Wu 1997, section 2: every edge
/// is two arcs of unbounded capacity and cost 1, nodes above their quota are sources, nodes below it sinks). `loads`
/// and `quota` hold one number of tasks for each of the nodes `0..nodes` and must have the same sum.
///
/// ```
/// let line = [(0, 1), (1, 2)];
/// let least = equipoise::flow::least_hops(3, &line, &[9, 0, 0], &[3, 3, 3])?;
/// assert_eq!(least.hops, 6 + 3);
/// # Ok::<(), equipoise::flow::FlowError>(())
/// ```
pub fn least_hops(nodes: u32, edges: &[(u32, u32)], loads: &[u64], quota: &[u64]) -> Result<LeastHops, FlowError> {
    least_cost(nodes, edges.iter().map(|ends| (*ends, 1)), loads, quota)
}

/// As [`least_hops`], with a cost per edge: [`LeastHops::hops`] is then the sum of amounts times costs.
pub fn least_cost(
    nodes: u32,
    edges: impl IntoIterator<Item = ((u32, u32), u32)>,
    loads: &[u64],
    quota: &[u64],
) -> Result<LeastHops, FlowError> {
    let edges: Vec<((u32, u32), u32)> = edges.into_iter().collect();
    for found in [loads.len(), quota.len()] {
        if found != nodes as usize {
            return Err(FlowError::WrongLength { nodes, found });
        }
    }
    let mut network = Network::new(nodes);
    for &((a, b), cost) in &edges {
        network.arc(a, b, UNBOUNDED, cost);
        network.arc(b, a, UNBOUNDED, cost);
    }
    let surplus: Vec<i128> = (loads.iter().zip(quota)).map(|(&load, &quota)| i128::from(load) - i128::from(quota)).collect();
    let flow = network.solve(&surplus)?;
    // A cheapest flow never uses both arcs of an edge: what crosses both ways could stay.
    let carries = (edges.iter().zip(flow.on.chunks_exact(2)))
        .filter_map(|(&((a, b), _), both)| {
            let (src, dst) = if both[0] > 0 { (a, b) } else { (b, a) };
            let amount = both[0].max(both[1]);
            (amount > 0).then_some(Carry { src, dst, amount })
        })
        .collect();
    Ok(LeastHops { hops: flow.cost, carries })
}
