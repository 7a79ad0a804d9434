//! Quotas: the load that each node should have.
//!
//! The rule of Wu 1997 (figure 4): everybody gets the average, the first R nodes one more. For unequal powers: in proportion to the power,
//! exactly; what rounding leaves goes to the largest remainders, among equals to the lowest node. For equal powers the two are one rule.

use std::sync::{Arc, Mutex};

use super::Powers;

/// The quotas of all nodes for one total. Sums over consecutive nodes take constant time.
#[derive(Clone, Debug)]
pub struct Quota(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The first `extra` of the first `real` nodes have `average + 1`, the other real ones `average`, virtual ones nothing.
    Equal { average: u64, extra: u64, real: u32, nodes: u32 },
    /// Prefix sums: node i's quota is `prefix[i + 1] - prefix[i]`.
    Listed(Arc<[u64]>),
}

impl Quota {
    /// Shares a total in proportion to the powers.
    pub fn proportional(total: u64, powers: &Powers) -> Quota {
        match powers {
            Powers::Equal { real, nodes } => {
                let n = u64::from(*real);
                Quota(Kind::Equal { average: total / n, extra: total % n, real: *real, nodes: *nodes })
            }
            Powers::Listed(_) => Quota::from_shares(&largest_remainder(total, powers)),
        }
    }

    /// Quotas from a list by node.
    pub fn from_shares(shares: &[u64]) -> Quota {
        let mut sum = 0;
        let prefix = std::iter::once(0).chain(shares.iter().map(|share| {
            sum += share;
            sum
        }));
        Quota(Kind::Listed(prefix.collect()))
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        match &self.0 {
            Kind::Equal { nodes, .. } => *nodes,
            Kind::Listed(prefix) => (prefix.len() - 1) as u32,
        }
    }

    /// The sum of the quotas of the nodes before this one (`node` up to the number of nodes).
    pub fn before(&self, node: u32) -> u64 {
        match &self.0 {
            Kind::Equal { average, extra, real, .. } => {
                let n = u64::from(node.min(*real));
                average * n + n.min(*extra)
            }
            Kind::Listed(prefix) => prefix[node as usize],
        }
    }

    /// The quota of a node.
    pub fn of(&self, node: u32) -> u64 {
        self.before(node + 1) - self.before(node)
    }

    /// The sum of the quotas of nodes `first .. end`.
    pub fn between(&self, first: u32, end: u32) -> u64 {
        self.before(end) - self.before(first)
    }

    /// All quotas, by node.
    pub fn to_vec(&self) -> Vec<u64> {
        (0..self.nodes()).map(|node| self.of(node)).collect()
    }
}

/// Floors of the exact proportional shares, then one more each for the largest remainders, among equals for the lowest nodes.
fn largest_remainder(total: u64, powers: &Powers) -> Vec<u64> {
    let sum = u128::from(powers.total());
    let exact = |node: u32| u128::from(total) * u128::from(powers.of(node));
    let mut shares: Vec<u64> = (0..powers.nodes()).map(|node| (exact(node) / sum) as u64).collect();
    let left = total - shares.iter().sum::<u64>();
    let mut order: Vec<u32> = (0..powers.nodes()).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(exact(node) % sum), node));
    for &node in order.iter().take(left as usize) {
        shares[node as usize] += 1;
    }
    shares
}

/// The powers that a phase balances for, shared by all nodes of a process: quotas that take a pass over all nodes are computed once per total,
/// not once per node.
#[derive(Clone, Debug)]
pub struct Shares {
    powers: Powers,
    last: Arc<Mutex<Option<(u64, Quota)>>>,
}

impl Shares {
    pub fn new(powers: Powers) -> Shares {
        Shares { powers, last: Arc::default() }
    }

    pub fn powers(&self) -> &Powers {
        &self.powers
    }

    /// The proportional quotas for this total; see [`Quota::proportional`].
    pub fn quota(&self, total: u64) -> Quota {
        if let Powers::Equal { .. } = self.powers {
            return Quota::proportional(total, &self.powers);
        }
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*last {
            Some((of, quota)) if *of == total => quota.clone(),
            _ => {
                let quota = Quota::proportional(total, &self.powers);
                *last = Some((total, quota.clone()));
                quota
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_r_nodes_get_one_more() {
        assert_eq!(Quota::proportional(41, &Powers::equal(9, 9)).to_vec(), [5, 5, 5, 5, 5, 4, 4, 4, 4]);
        assert_eq!(Quota::proportional(7, &Powers::equal(5, 8)).to_vec(), [2, 2, 1, 1, 1, 0, 0, 0]);
        assert_eq!(Quota::proportional(0, &Powers::equal(1, 1)).to_vec(), [0]);
    }

    #[test]
    fn remainders_go_to_the_largest_then_to_the_lowest() {
        let powers = Powers::listed(vec![3, 4, 5, 0]).unwrap();
        // 10 tasks: 2.5, 3.33, 4.17 -> the first has the largest remainder.
        assert_eq!(Quota::proportional(10, &powers).to_vec(), [3, 3, 4, 0]);
        let powers = Powers::listed(vec![1, 2, 1]).unwrap();
        // 2 tasks: .5, 1, .5 -> a tie, the lowest node.
        assert_eq!(Quota::proportional(2, &powers).to_vec(), [1, 1, 0]);
    }

    proptest! {
        #[test]
        fn equal_and_listed_powers_share_alike(total in any::<u64>(), real in 1u32..30, virtual_nodes in 0u32..5) {
            let equal = Powers::equal(real, real + virtual_nodes);
            let listed = Powers::listed(equal.to_vec()).unwrap();
            let quota = Quota::proportional(total, &equal);
            prop_assert_eq!(quota.to_vec(), Quota::proportional(total, &listed).to_vec());
            prop_assert_eq!(quota.before(real), total);
        }

        #[test]
        fn shares_are_within_one_of_exact(total in any::<u64>(), powers in prop::collection::vec(0u64..=u64::MAX / 40, 1..40)) {
            prop_assume!(powers.iter().any(|&p| p > 0));
            let powers = Powers::listed(powers).unwrap();
            let quota = Quota::proportional(total, &powers);
            prop_assert_eq!(quota.before(quota.nodes()), total);
            for node in 0..quota.nodes() {
                let exact = u128::from(total) * u128::from(powers.of(node));
                let floor = exact / u128::from(powers.total());
                let share = u128::from(quota.of(node));
                prop_assert!(share == floor || (share == floor + 1 && !exact.is_multiple_of(u128::from(powers.total()))));
            }
        }
    }
}
