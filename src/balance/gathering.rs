//! Gathering a value of every node on every node, as balancers do it that plan everywhere alike.

use super::Cost;
use crate::error::Result;
use crate::node::collective::FEW;
use crate::node::{Gathered, HEADER_BYTES, Node};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Cost of [`gather`] with eight bytes from each node.
pub(super) fn cost(nodes: u32) -> Cost {
    cost_of(nodes, 8)
}

/// Cost of [`gather`] with this many bytes from each node.
pub(super) fn cost_of(nodes: u32, each: u64) -> Cost {
    let n = u64::from(nodes);
    if FEW.contains(&nodes) {
        let others = n - 1;
        // One value to node 0, and n values with their count back.
        return Cost { steps: 2, messages: 2 * others, bytes: others * (2 * HEADER_BYTES + each + 8 + each * n) };
    }
    let rounds = u64::from(n.next_power_of_two().ilog2());
    Cost { steps: rounds, messages: n * rounds, bytes: n * rounds * (HEADER_BYTES + 8) + n * (n - 1) * each }
}

/// A value of every node, on every node.
pub(super) async fn gather<T: Serialize + DeserializeOwned + 'static>(node: &Node, mine: T) -> Result<Gathered<T>> {
    let everyone = node.everyone();
    if FEW.contains(&everyone.size()) {
        return Ok(everyone.shared(node, everyone.all_gather_over_first(node, mine).await?));
    }
    everyone.all_gather(node, mine).await
}

/// The sum of all loads, added up once for all nodes that share the list.
pub(super) fn total_of(loads: &Gathered<u64>) -> u64 {
    struct Total(u64);
    loads.derive(|loads| Total(loads.iter().sum())).0
}
