//! Deviation of loads from the quotas, and its minimum.

/// The largest difference between a node's load and its quota, both by node.
pub fn deviation(loads: &[u64], quota: &[u64]) -> u64 {
    loads.iter().zip(quota).map(|(load, quota)| load.abs_diff(*quota)).max().unwrap_or(0)
}

/// The least largest difference that any distribution of the work can have, if each node keeps at least its pinned work and work can be parted
/// at will. Both are by node, and no more is pinned than the quotas sum up to. It is 0 unless some node has more pinned than its quota.
pub fn best_deviation(quota: &[u64], pinned: &[u64]) -> u64 {
    // A node with too much pinned work deviates by its excess; the other nodes lack this excess together, and may lack no more than that either.
    let excess = quota.iter().zip(pinned).map(|(quota, pinned)| pinned.saturating_sub(*quota));
    let total: u128 = excess.clone().map(u128::from).sum();
    let missing = |by: u64| quota.iter().zip(pinned).map(|(quota, pinned)| u128::from(quota.saturating_sub(*pinned).min(by))).sum::<u128>();
    let (mut low, mut high) = (excess.max().unwrap_or(0), quota.iter().copied().max().unwrap_or(0));
    high = high.max(low);
    while low < high {
        let middle = low + (high - low) / 2;
        if missing(middle) >= total { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Powers, Quota};
    use proptest::prelude::*;

    #[test]
    fn too_much_on_one_is_missing_elsewhere() {
        assert_eq!(deviation(&[19, 11, 2], &[10, 11, 11]), 9);
        assert_eq!(best_deviation(&[10; 4], &[3, 10, 0, 7]), 0);
        assert_eq!(best_deviation(&[10; 4], &[19, 0, 0, 0]), 9);
        // Three are 3 above, so the fourth misses 9.
        assert_eq!(best_deviation(&[10; 4], &[13, 13, 13, 0]), 9);
        assert_eq!(best_deviation(&[], &[]), 0);
    }

    proptest! {
        #[test]
        fn the_reachable_quotas_are_that_near(nodes in prop::collection::vec((0u64..6, 0u64..20, 0u64..9), 1..7)) {
            let powers: Vec<u64> = nodes.iter().map(|node| node.0).collect();
            let pinned: Vec<u64> = nodes.iter().map(|node| node.1).collect();
            prop_assume!(powers.iter().any(|power| *power > 0));
            let total = nodes.iter().map(|node| node.1 + node.2).sum();
            let quota = Quota::proportional(total, &Powers::listed(powers).unwrap());
            let reachable = quota.above(&pinned).to_vec();
            prop_assert_eq!(deviation(&reachable, &quota.to_vec()), best_deviation(&quota.to_vec(), &pinned));
        }
    }
}
