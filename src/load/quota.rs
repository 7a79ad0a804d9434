//! Quotas: the load that each node should have.
//!
//! The rule of Wu 1997 (figure 4): every node gets the average, the first R nodes one more. For unequal powers: in proportion to the power,
//! exactly; what rounding leaves goes to the largest remainders, among equals to the lowest node. For equal powers the two are one rule.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Column, Link, Powers, RankTime};
use crate::topology::Placement;

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

impl Quota {
    /// The nearest quotas that can be reached when each node keeps at least its pinned work. Nodes with more pinned work than their quota
    /// keep it. All others get less by the same amount, but at least their pinned work. So the largest deviation from these quotas is the
    /// minimum.
    ///
    /// Both are by node; the sum of the pinned work is at most the sum of the quotas.
    pub fn above(&self, pinned: &[u64]) -> Quota {
        let ideal = self.to_vec();
        let total: u64 = ideal.iter().sum();
        let lowered = |by: u64| ideal.iter().zip(pinned).map(move |(quota, pinned)| quota.saturating_sub(by).max(*pinned));
        let fits = |by: u64| lowered(by).map(u128::from).sum::<u128>() <= u128::from(total);
        let (mut low, mut high) = (0, ideal.iter().copied().max().unwrap_or(0));
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle + 1 }
        }
        let mut shares: Vec<u64> = lowered(low).collect();
        let mut left = total.saturating_sub(shares.iter().sum());
        for (share, quota) in shares.iter_mut().zip(&ideal) {
            if left > 0 && *share < *quota {
                *share += 1;
                left -= 1;
            }
        }
        Quota::from_shares(&shares)
    }
}

impl Quota {
    /// The quotas nearest to these that stay within caps: nodes above their cap get that, and all others more by the same amount, up to
    /// their own caps. The mirror image of [`above`](Quota::above). `None` if these stay within them, or if the caps leave no room for all.
    ///
    /// Both are by node.
    pub fn below(&self, caps: &[u64]) -> Option<Quota> {
        let ideal = self.to_vec();
        let total: u64 = ideal.iter().sum();
        let room: u128 = caps.iter().copied().map(u128::from).sum();
        if room < u128::from(total) || ideal.iter().zip(caps).all(|(quota, cap)| quota <= cap) {
            return None;
        }
        let raised = |by: u64| ideal.iter().zip(caps).map(move |(quota, cap)| quota.saturating_add(by).min(*cap));
        let fits = |by: u64| raised(by).map(u128::from).sum::<u128>() <= u128::from(total);
        let (mut low, mut high) = (0, total);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        let mut shares: Vec<u64> = raised(low).collect();
        let mut left = total.saturating_sub(shares.iter().sum());
        for (share, cap) in shares.iter_mut().zip(caps) {
            if left > 0 && *share < *cap {
                *share += 1;
                left -= 1;
            }
        }
        Some(Quota::from_shares(&shares))
    }
}

/// Weights that a phase balances by: the powers and the pinned work. Shared by all nodes of a process: quotas that take a pass over all
/// nodes are computed once per total, not once per node.
#[derive(Clone, Debug)]
pub struct Shares {
    powers: Powers,
    weighted: bool,
    plain: bool,
    /// Bytes by rank.
    capacity: Option<Arc<[u64]>>,
    links: Option<Arc<[Link]>>,
    columns: Option<Arc<[Column]>>,
    common: Arc<Common>,
}

#[derive(Debug, Default)]
struct Common {
    /// Pinned work of each node; empty if nothing is pinned.
    pinned: Vec<u64>,
    /// The last quotas that took a pass over all nodes.
    last: Mutex<Option<Kept>>,
    /// Amount that each node can still receive up to the last quotas, and the key for which it was computed.
    open: Mutex<Option<(Basis, Powers)>>,
    /// See [`Shares::may_round_badly`].
    uneven: OnceLock<bool>,
}

/// Key of computed quotas: the total load, and the time of the slowest rank where that caps them.
type Basis = (u64, Option<RankTime>);

/// Quotas, and what they were computed for.
#[derive(Debug)]
struct Kept {
    basis: Basis,
    quota: Quota,
    /// Whether a cap lowered some of the quotas.
    lowered: bool,
}

impl Shares {
    /// Shares in proportion to the powers, of unit tasks none of which is pinned.
    pub fn new(powers: Powers) -> Shares {
        Shares { powers, weighted: false, plain: false, capacity: None, links: None, columns: None, common: Arc::default() }
    }

    /// The same shares with this amount of pinned work on each node. Like the powers it is known on all nodes beforehand.
    pub fn with_pinned(self, pinned: Vec<u64>) -> Shares {
        let pinned = if pinned.iter().all(|work| *work == 0) { Vec::new() } else { pinned };
        Shares { common: Arc::new(Common { pinned, ..Common::default() }), ..self }
    }

    /// The same for tasks of which some have several work units. Like the powers it is known on all nodes beforehand: balancers that need
    /// to agree on how such tasks are rounded do so only then.
    pub fn weighted(self) -> Shares {
        Shares { weighted: true, ..self }
    }

    /// Adds a capacity per rank: the bytes of task payloads that it can hold, known on all nodes beforehand. Only balancers that [keep
    /// capacities](crate::balance::Balancer::keeps_capacity) use it.
    pub fn with_capacity(self, capacity: Vec<u64>) -> Shares {
        Shares { capacity: Some(capacity.into()), ..self }
    }

    /// Bytes of payload that each rank has room for, if that is limited.
    pub fn capacity(&self) -> Option<&[u64]> {
        self.capacity.as_deref()
    }

    /// Adds communication between tasks; all nodes know all links beforehand. A phase then reports the communication between ranks and
    /// hosts.
    pub fn with_links(self, links: Arc<[Link]>) -> Shares {
        Shares { links: Some(links), ..self }
    }

    /// Communication between tasks, if it is known.
    pub fn links(&self) -> Option<&[Link]> {
        self.links.as_deref()
    }

    /// Adds weights for tasks with several, each to be balanced; all nodes know all of them beforehand. Only balancers that [keep
    /// columns](crate::balance::Balancer::keeps_columns) use them. A phase then reports the ratio of each.
    pub fn with_columns(self, columns: Arc<[Column]>) -> Shares {
        Shares { columns: Some(columns), ..self }
    }

    /// The weights of tasks that have several.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// Returns true if some tasks may have several work units.
    pub fn are_weighted(&self) -> bool {
        self.weighted
    }

    /// The powers of all nodes.
    pub fn powers(&self) -> &Powers {
        &self.powers
    }

    /// Pinned work by node; empty if there is none.
    pub fn pinned(&self) -> &[u64] {
        &self.common.pinned
    }

    /// Pinned work on a node.
    pub fn pinned_on(&self, node: u32) -> u64 {
        self.common.pinned.get(node as usize).copied().unwrap_or(0)
    }

    /// Selects a balancer's rule as published, even where it makes the slowest rank slower.
    pub fn plainly(self) -> Shares {
        Shares { plain: true, ..self }
    }

    /// Returns true if rules are followed as published.
    pub fn are_plain(&self) -> bool {
        self.plain
    }

    /// Returns true if quotas in whole units may make the slowest rank slower. They cannot if all ranks, which have the first nodes, are
    /// equally fast and nothing is pinned on the virtual nodes behind these: then the slowest rank has the mean, rounded up, or its pinned
    /// work.
    pub fn may_round_badly(&self, ranks: u32) -> bool {
        let pinned = &self.common.pinned;
        let uneven = || {
            let first = self.powers.of(0);
            (1..ranks).any(|node| self.powers.of(node) != first) || pinned.iter().skip(ranks as usize).any(|pinned| *pinned > 0)
        };
        if pinned.is_empty() && matches!(self.powers, Powers::Equal { .. }) {
            return false;
        }
        *self.common.uneven.get_or_init(uneven)
    }

    /// The proportional quotas for this total, see [`Quota::proportional`]; with pinned tasks the nearest that can be reached, see
    /// [`Quota::above`].
    pub fn quota(&self, total: u64) -> Quota {
        self.reachable(total, || Quota::proportional(total, &self.powers))
    }

    /// Weights by which nodes share the movable work: the amount that each can still receive up to its quota. Computed once for each total
    /// and time of the slowest rank. A phase has quotas of one kind only.
    pub fn open(&self, total: u64, slowest: Option<RankTime>, make: impl FnOnce() -> Powers) -> Powers {
        let mut last = self.common.open.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((basis, powers)) if *basis == (total, slowest) => powers.clone(),
            _ => {
                let powers = make();
                *last = Some(((total, slowest), powers.clone()));
                powers
            }
        }
    }

    /// Reachable quotas for this total that are nearest to `ideal`. A phase has quotas of one kind only.
    pub fn reachable(&self, total: u64, ideal: impl FnOnce() -> Quota) -> Quota {
        self.kept(total, None, ideal, |_| None).0
    }

    /// Reachable quotas nearest to `ideal` with which no rank takes longer than the slowest one does now, and true if they differ from the
    /// reachable ones without this limit. Virtual nodes, which have no power, get at most their pinned work, so that a rank's real node has
    /// the rest.
    pub fn harmless(&self, total: u64, slowest: RankTime, placement: &Placement, ideal: impl FnOnce() -> Quota) -> (Quota, bool) {
        self.kept(total, Some(slowest), ideal, |quota| {
            let ranks = placement.ranks();
            // What is pinned where there is no power stays, and takes for ever.
            let cap = |node| match self.powers.of(node) {
                0 => slowest.most_work(0).max(self.pinned_on(node)),
                power => slowest.most_work(power),
            };
            let mut caps: Vec<u64> = (0..ranks).map(cap).collect();
            for node in ranks..placement.nodes() {
                let (held, real) = (quota.of(node), placement.real_node_of(placement.rank_of(node)));
                if self.powers.of(real) > 0 {
                    caps[real as usize] = caps[real as usize].saturating_sub(held);
                }
                caps.push(held);
            }
            quota.below(&caps)
        })
    }

    fn kept(
        &self,
        total: u64,
        slowest: Option<RankTime>,
        ideal: impl FnOnce() -> Quota,
        capped: impl FnOnce(&Quota) -> Option<Quota>,
    ) -> (Quota, bool) {
        if slowest.is_none() && self.common.pinned.is_empty() && matches!(self.powers, Powers::Equal { .. }) {
            return (ideal(), false);
        }
        let mut last = self.common.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(kept) if kept.basis == (total, slowest) => (kept.quota.clone(), kept.lowered),
            _ => {
                let ideal = ideal();
                let reachable = if self.common.pinned.is_empty() { ideal } else { ideal.above(&self.common.pinned) };
                let capped = capped(&reachable);
                let lowered = capped.is_some();
                let quota = capped.unwrap_or(reachable);
                *last = Some(Kept { basis: (total, slowest), quota: quota.clone(), lowered });
                (quota, lowered)
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

    #[test]
    fn pinned_work_lowers_what_others_get() {
        let quota = Quota::proportional(40, &Powers::equal(4, 4));
        // 9 too much on the first: 3 less for each of the others.
        assert_eq!(quota.above(&[19, 0, 0, 0]).to_vec(), [19, 7, 7, 7]);
        assert_eq!(quota.above(&[18, 0, 9, 0]).to_vec(), [18, 7, 9, 6]);
        assert_eq!(quota.above(&[3, 10, 0, 7]).to_vec(), [10, 10, 10, 10]);
        assert_eq!(quota.above(&[40, 0, 0, 0]).to_vec(), [40, 0, 0, 0]);
        let shares = Shares::new(Powers::equal(4, 4)).with_pinned(vec![19, 0, 0, 0]);
        assert_eq!((shares.quota(40).to_vec(), shares.quota(80).to_vec()), (vec![19, 7, 7, 7], vec![20; 4]));
    }

    #[test]
    fn caps_raise_what_others_get() {
        let quota = Quota::from_shares(&[1, 1, 4, 4]);
        assert!(quota.below(&[1, 1, 4, 4]).is_none());
        assert_eq!(quota.below(&[0, 9, 9, 9]).unwrap().to_vec(), [0, 2, 4, 4]);
        assert_eq!(quota.below(&[0, 9, 5, 0]).unwrap().to_vec(), [0, 5, 5, 0]);
        assert_eq!(quota.below(&[10, 0, 0, 0]).unwrap().to_vec(), [10, 0, 0, 0]);
    }

    #[test]
    fn no_rank_is_given_more_than_the_slowest_has_time_for() {
        // By position each would get one; the second is ten times as fast.
        let shares = Shares::new(Powers::listed(vec![1, 10]).unwrap());
        let native = Placement::one_host(2, 2).unwrap();
        let positional = || Quota::from_shares(&[1, 1]);
        let (quota, lowered) = shares.harmless(2, RankTime { work: 2, power: 10 }, &native, positional);
        assert_eq!((quota.to_vec(), lowered), (vec![0, 2], true));
        let (quota, lowered) = shares.harmless(2, RankTime { work: 2, power: 1 }, &native, positional);
        assert_eq!((quota.to_vec(), lowered), (vec![1, 1], false));
        // What is pinned on the first never ends, and takes nothing from the others.
        let stuck = Shares::new(Powers::listed(vec![0, 1, 10]).unwrap()).with_pinned(vec![5, 0, 0]);
        let three = Placement::one_host(3, 3).unwrap();
        let (quota, lowered) = stuck.harmless(7, RankTime { work: 2, power: 10 }, &three, || Quota::from_shares(&[5, 1, 1]));
        assert_eq!((quota.to_vec(), lowered), (vec![5, 0, 2], true));
        // The third node is virtual and lives on the first rank, with 10 that it can't give away.
        let shares = Shares::new(Powers::equal(2, 3)).with_pinned(vec![0, 0, 10]);
        let overlay = Placement::one_host(3, 2).unwrap();
        assert!(shares.may_round_badly(2) && !Shares::new(Powers::equal(2, 3)).with_pinned(vec![9, 0, 0]).may_round_badly(2));
        let even = || Quota::proportional(20, shares.powers());
        assert_eq!(shares.reachable(20, even).to_vec(), [5, 5, 10]);
        let (quota, lowered) = shares.harmless(20, RankTime { work: 10, power: 1 }, &overlay, even);
        assert_eq!((quota.to_vec(), lowered), (vec![0, 10, 10], true));
    }

    proptest! {
        #[test]
        fn what_is_capped_stays_below_and_keeps_the_total(nodes in prop::collection::vec((0u64..9, 0u64..9), 1..7)) {
            let (quota, caps): (Vec<u64>, Vec<u64>) = nodes.into_iter().unzip();
            prop_assume!(caps.iter().sum::<u64>() >= quota.iter().sum());
            let capped = Quota::from_shares(&quota).below(&caps).map_or(quota.clone(), |capped| capped.to_vec());
            prop_assert_eq!(capped.iter().sum::<u64>(), quota.iter().sum::<u64>());
            prop_assert!(capped.iter().zip(&caps).all(|(share, cap)| share <= cap));
            // A node below its cap gets no less than its quota.
            prop_assert!(capped.iter().zip(quota.iter().zip(&caps)).all(|(share, (quota, cap))| share >= quota.min(cap)));
        }

        #[test]
        fn what_can_be_reached_is_as_near_as_possible(nodes in prop::collection::vec((0u64..6, 0u64..9, 0u64..9), 1..7)) {
            let powers: Vec<u64> = nodes.iter().map(|node| node.0).collect();
            let pinned: Vec<u64> = nodes.iter().map(|node| node.1).collect();
            prop_assume!(powers.iter().any(|power| *power > 0));
            let total: u64 = nodes.iter().map(|node| node.1 + node.2).sum();
            let ideal = Quota::proportional(total, &Powers::listed(powers).unwrap());
            let reachable = ideal.above(&pinned).to_vec();
            prop_assert_eq!(reachable.iter().sum::<u64>(), total);
            prop_assert!(reachable.iter().zip(&pinned).all(|(share, pinned)| share >= pinned));
            // No smaller deviation leaves room for everything and for what is pinned.
            let deviation = ideal.to_vec().iter().zip(&reachable).map(|(ideal, share)| ideal.abs_diff(*share)).max().unwrap();
            if deviation > 0 {
                let lowest = ideal.to_vec().iter().zip(&pinned).map(|(ideal, pinned)| ideal.saturating_sub(deviation - 1).max(*pinned)).sum::<u64>();
                let too_much = ideal.to_vec().iter().zip(&pinned).any(|(ideal, pinned)| *pinned > ideal + (deviation - 1));
                prop_assert!(too_much || lowest > total);
            }
        }

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
