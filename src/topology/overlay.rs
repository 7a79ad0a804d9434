//! Placing a topology's nodes on ranks: native when there is one rank per node, an overlay with virtual nodes otherwise.
//!
//! Any topology so runs on any number of ranks up to its nodes. A virtual node takes part in every exchange, has power 0 (Savvas and
//! Kechadi 2004, section 3), and is served by the rank that hosts it.

use std::fmt;
use std::sync::Arc;

use super::{HostId, Hosts, InvalidTopology, MAX_VIRTUAL_PER_RANK, NodeId, RankId, Topology};

/// Placement of nodes on ranks: rank of each node. Clones share it.
///
/// Every node is real or virtual. The real nodes are those below the number of ranks, one on each rank; all others are virtual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    nodes: u32,
    ranks: u32,
    hosts: Hosts,
    /// See [`Placement::inner_dimensions`].
    inner: u32,
    map: Map,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Map {
    /// Node i on rank i mod ranks.
    Identity,
    Custom {
        node_rank: Arc<[RankId]>,
        /// Nodes of rank r: `by_rank[first[r]..first[r + 1]]`, in ascending order.
        first: Arc<[u32]>,
        by_rank: Arc<[NodeId]>,
    },
}

impl Placement {
    /// The identity placement of `nodes` nodes on `ranks` ranks: node i on rank i, virtual node v on rank v mod ranks.
    ///
    /// # Errors
    /// [`InvalidTopology::NoRanks`]; [`InvalidTopology::TooFewNodes`] for the ranks; [`InvalidTopology::TooManyVirtual`] with more than
    /// [`MAX_VIRTUAL_PER_RANK`] virtual nodes on a rank; [`InvalidTopology::Placement`] if the hosts have another number of ranks.
    pub fn new(nodes: u32, ranks: u32, hosts: Hosts) -> Result<Placement, InvalidTopology> {
        check_counts(nodes, ranks, &hosts)?;
        check_virtual(nodes, ranks, (nodes - ranks).div_ceil(ranks))?;
        Ok(Placement { nodes, ranks, hosts, inner: 0, map: Map::Identity }.with_inner_dimensions())
    }

    /// The identity placement on ranks that all share one host.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn one_host(nodes: u32, ranks: u32) -> Result<Placement, InvalidTopology> {
        Placement::new(nodes, ranks, Hosts::single(ranks))
    }

    /// Any placement: `node_rank[i]` is the rank of node i. The real nodes come first, one per rank, and each must be on a rank of its own: loads
    /// and powers are given by node, and identify the real nodes by their numbers.
    ///
    /// # Errors
    /// As [`Placement::new`]; [`InvalidTopology::Placement`] also for two real nodes on one rank, and for a rank that is not there.
    pub fn custom(node_rank: Vec<RankId>, ranks: u32, hosts: Hosts) -> Result<Placement, InvalidTopology> {
        let nodes = u32::try_from(node_rank.len()).map_err(|_| InvalidTopology::TooManyNodes { spec: "(placement)".into() })?;
        check_counts(nodes, ranks, &hosts)?;
        let mut first = vec![0u32; ranks as usize + 1];
        for (node, rank) in node_rank.iter().enumerate() {
            let Some(count) = first[1..].get_mut(rank.index()) else {
                let reason = format!("node {node} is placed on rank {rank}, but there are {ranks} ranks");
                return Err(InvalidTopology::Placement { reason });
            };
            *count += 1;
        }
        let mut has_real = vec![false; ranks as usize];
        for (node, rank) in node_rank.iter().enumerate().take(ranks as usize) {
            if std::mem::replace(&mut has_real[rank.index()], true) {
                let reason =
                    format!("node {node} is placed on rank {rank}, which has a real node already, and every rank needs one of its own");
                return Err(InvalidTopology::Placement { reason });
            }
        }
        let most = first[1..].iter().copied().max().unwrap_or(1);
        check_virtual(nodes, ranks, most - 1)?;
        for rank in 0..ranks as usize {
            first[rank + 1] += first[rank];
        }
        let mut free = first.clone();
        let mut by_rank = vec![0; nodes as usize];
        for (node, rank) in node_rank.iter().enumerate() {
            let slot = &mut free[rank.index()];
            by_rank[*slot as usize] = node as NodeId;
            *slot += 1;
        }
        let map = Map::Custom { node_rank: node_rank.into(), first: first.into(), by_rank: by_rank.into() };
        Ok(Placement { nodes, ranks, hosts, inner: 0, map }.with_inner_dimensions())
    }

    /// The number of nodes, virtual ones included.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The number of ranks, which is also the number of real nodes.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns true if there are virtual nodes.
    pub fn is_overlay(&self) -> bool {
        self.nodes != self.ranks
    }

    /// Returns true if every node has a rank of its own.
    pub fn native(&self) -> bool {
        !self.is_overlay()
    }

    /// The rank that hosts a node.
    pub fn rank_of(&self, node: NodeId) -> RankId {
        debug_assert!(node < self.nodes);
        match &self.map {
            Map::Identity => RankId::new(node % self.ranks),
            Map::Custom { node_rank, .. } => node_rank[node as usize],
        }
    }

    /// Returns the real node of a rank; each rank has one.
    pub fn real_node_of(&self, rank: RankId) -> NodeId {
        match &self.map {
            Map::Identity => rank.get(),
            Map::Custom { first, by_rank, .. } => by_rank[first[rank.index()] as usize],
        }
    }

    /// Returns true if a node is virtual: it is not the real node of the rank that hosts it.
    pub fn is_virtual(&self, node: NodeId) -> bool {
        self.real_node_of(self.rank_of(node)) != node
    }

    /// Values by node, of values by rank that may go on with those of the virtual nodes: users know ranks, and balancers count nodes.
    pub fn by_node<T: Clone>(&self, by_rank: &[T]) -> Vec<T> {
        let at = |node: usize| if node < self.ranks as usize { self.rank_of(node as NodeId).index() } else { node };
        (0..by_rank.len()).filter_map(|node| by_rank.get(at(node)).cloned()).collect()
    }

    /// The nodes that a rank hosts, in ascending order, so its real node first.
    pub fn nodes_on(&self, rank: RankId) -> Vec<NodeId> {
        match &self.map {
            Map::Identity => (rank.get()..self.nodes).step_by(self.ranks as usize).collect(),
            Map::Custom { first, by_rank, .. } => by_rank[first[rank.index()] as usize..first[rank.index() + 1] as usize].to_vec(),
        }
    }

    /// The host of a rank.
    pub fn host_of(&self, rank: RankId) -> HostId {
        self.hosts.host_of(rank)
    }

    /// Largest m such that each 2^m consecutive nodes, from a multiple of 2^m on, share a host: in a hypercube, communication along the
    /// dimensions below m stays within hosts. On one host it is the number of bits of a node's number.
    pub fn inner_dimensions(&self) -> u32 {
        self.inner
    }

    fn with_inner_dimensions(self) -> Placement {
        let whole = u32::BITS - (self.nodes - 1).leading_zeros();
        let host = |node: NodeId| self.host_of(self.rank_of(node));
        let inner = match self.hosts.count() {
            1 => whole,
            _ => (1..self.nodes).filter(|&node| host(node) != host(node - 1)).map(u32::trailing_zeros).min().unwrap_or(whole),
        };
        Placement { inner, ..self }
    }

    /// The map from ranks to hosts.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }
}

/// A topology and the placement of its nodes: the overlay on which a world runs programs. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// Topology of the nodes.
    pub topology: Topology,
    /// Rank and host of each node.
    pub placement: Placement,
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlay { topology, placement } = self;
        let counted = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (nodes, ranks) = (counted(placement.nodes(), "node"), counted(placement.ranks(), "rank"));
        write!(f, "{topology} ({nodes}) on {ranks} of {}", counted(placement.hosts().count(), "host"))
    }
}

impl Overlay {
    /// The topology in identity placement on the ranks of these hosts.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn new(topology: Topology, hosts: Hosts) -> Result<Overlay, InvalidTopology> {
        let placement = Placement::new(topology.nodes(), hosts.ranks(), hosts)?;
        Ok(Overlay { topology, placement })
    }

    /// The topology in identity placement on ranks that all share one host.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn one_host(topology: Topology, ranks: u32) -> Result<Overlay, InvalidTopology> {
        Overlay::new(topology, Hosts::single(ranks))
    }
}

fn check_counts(nodes: u32, ranks: u32, hosts: &Hosts) -> Result<(), InvalidTopology> {
    if ranks == 0 {
        return Err(InvalidTopology::NoRanks);
    }
    if nodes < ranks {
        return Err(InvalidTopology::TooFewNodes { nodes, ranks });
    }
    if hosts.ranks() != ranks {
        let reason = format!("the map of hosts has {} ranks, but the run has {ranks}", hosts.ranks());
        return Err(InvalidTopology::Placement { reason });
    }
    Ok(())
}

fn check_virtual(nodes: u32, ranks: u32, virtual_nodes: u32) -> Result<(), InvalidTopology> {
    if virtual_nodes > MAX_VIRTUAL_PER_RANK {
        return Err(InvalidTopology::TooManyVirtual { nodes, ranks, virtual_nodes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_by_rank_are_put_by_node() {
        let hosts = Hosts::from_names(&["a", "b", "a", "b"].map(String::from));
        let placement = Placement::custom([0, 2, 1, 3, 1].map(RankId::new).to_vec(), 4, hosts).unwrap();
        assert_eq!(placement.by_node(&[10, 20, 30, 40]), [10, 30, 20, 40]);
        assert_eq!(placement.by_node(&[10, 20, 30, 40, 5]), [10, 30, 20, 40, 5], "virtual nodes come behind");
        assert!(placement.by_node::<u64>(&[]).is_empty());
    }

    /// Every node on exactly one rank, every rank with exactly one real node, the lowest.
    fn assert_covers(placement: &Placement) {
        let mut seen = vec![false; placement.nodes() as usize];
        for rank in RankId::all(placement.ranks()) {
            let nodes = placement.nodes_on(rank);
            assert!(nodes.is_sorted_by(|a, b| a < b));
            assert_eq!(nodes.first(), Some(&placement.real_node_of(rank)));
            for (index, node) in nodes.iter().enumerate() {
                assert_eq!(placement.rank_of(*node), rank);
                assert_eq!(placement.is_virtual(*node), index > 0);
                assert!(!std::mem::replace(&mut seen[*node as usize], true));
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }

    proptest! {
        #[test]
        fn identity_covers_every_node_once(ranks in 1u32..50, more in 0u32..300) {
            let placement = Placement::one_host(ranks + more, ranks).unwrap();
            assert_covers(&placement);
            prop_assert_eq!(placement.is_overlay(), more > 0);
            for node in 0..placement.nodes() {
                prop_assert_eq!(placement.rank_of(node).get(), node % ranks);
                prop_assert_eq!(placement.is_virtual(node), node >= ranks);
            }
        }

        #[test]
        fn custom_covers_every_node_once(extra in prop::collection::vec(0u32..10, 0..60), real in Just((0..10).collect::<Vec<u32>>()).prop_shuffle()) {
            let node_rank: Vec<RankId> = real.into_iter().chain(extra).map(RankId::new).collect();
            let placement = Placement::custom(node_rank.clone(), 10, Hosts::single(10)).unwrap();
            assert_covers(&placement);
            for (node, rank) in node_rank.into_iter().enumerate() {
                prop_assert_eq!(placement.rank_of(node as u32), rank);
                prop_assert_eq!(placement.is_virtual(node as u32), node >= 10);
            }
        }
    }

    #[test]
    fn dimensions_within_hosts_are_those_that_all_nodes_have_there() {
        let inner = |of_rank: &[u32], nodes| {
            let hosts = Hosts::from_names(&of_rank.iter().map(|host| format!("host{host}")).collect::<Vec<_>>());
            Placement::new(nodes, of_rank.len() as u32, hosts).unwrap().inner_dimensions()
        };
        assert_eq!((inner(&[0], 1), inner(&[0; 6], 6), inner(&[0; 6], 8)), (0, 3, 3));
        assert_eq!(inner(&[0, 0, 0, 0, 1, 1, 1, 1], 8), 2);
        assert_eq!(inner(&[0, 0, 1, 1, 1, 1, 2, 2], 8), 1);
        assert_eq!(inner(&[0, 1, 0, 1, 0, 1, 0, 1], 8), 0);
        // Virtual nodes 6 and 7 are on ranks 0 and 1.
        assert_eq!(inner(&[0, 0, 1, 1, 1, 1], 8), 1);
        assert_eq!(inner(&[0, 0, 0, 0, 1, 1], 8), 1);
    }

    #[test]
    fn custom_in_identity_order_is_the_identity() {
        let identity = Placement::one_host(16, 5).unwrap();
        let custom = Placement::custom((0..16).map(|node| RankId::new(node % 5)).collect(), 5, Hosts::single(5)).unwrap();
        for rank in RankId::all(5) {
            assert_eq!(custom.nodes_on(rank), identity.nodes_on(rank));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        let few = Placement::one_host(8, 13).unwrap_err().to_string();
        assert_eq!(few, "topology: it has 8 nodes for 13 ranks, and every rank needs a node of its own");
        let largest = 2 * (MAX_VIRTUAL_PER_RANK + 1);
        assert!(Placement::one_host(largest, 2).is_ok());
        let many = Placement::one_host(largest + 1, 2).unwrap_err().to_string();
        assert_eq!(many, "topology: its 2051 nodes on 2 ranks give a rank 1025 virtual nodes; at most 1024 are allowed");
        assert_eq!(Placement::one_host(8, 0), Err(InvalidTopology::NoRanks));
        assert!(Placement::new(8, 4, Hosts::single(3)).is_err());
        let custom = |ranks: &[u32]| Placement::custom(ranks.iter().copied().map(RankId::new).collect(), 3, Hosts::single(3));
        assert!(custom(&[0, 1, 3]).is_err());
        assert!(custom(&[0, 1, 1]).is_err());
        let twice = custom(&[0, 2, 2, 1]).unwrap_err().to_string();
        assert!(twice.contains("node 2 is placed on rank 2, which has a real node already"), "{twice}");
        assert!(Placement::custom(vec![RankId::FIRST; 1026], 1, Hosts::single(1)).is_err());
    }

    #[test]
    fn hosts_are_those_of_the_ranks() {
        let hosts = Hosts::from_names(&["a", "a", "b"].map(String::from));
        let placement = Placement::new(4, 3, hosts).unwrap();
        assert!(RankId::all(3).map(|rank| placement.host_of(rank).get()).eq([0, 0, 1]));
        assert_eq!(placement.hosts().count(), 2);
    }
}
