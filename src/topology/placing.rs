//! Placement of nodes on ranks that keeps the most frequent communication within hosts.
//!
//! A collective balancer moves most where most differs, and that is between few nodes. Of random loads with deviation s, two cubes of 2^k
//! nodes differ by about s * 2^((k + 1) / 2), and 2^(d - k - 1) pairs of them lie in a d-cube: dimension k carries tasks in proportion to
//! 2^(-k / 2), dimension 0 the most. Nodes are numbered so that the most used neighbours have near numbers (a hypercube's lowest dimension,
//! a mesh's row, a subtree in preorder, the first rounds of a recursive doubling), so each host gets consecutive nodes:
//!
//! ```text
//!   ranks    0 1 2 3 4 5 6 7            nodes by hosts   0 1 2 3 | 4 5 6 7
//!   on host  A B A B A B A B            on ranks         0 2 4 6 | 1 3 5 7
//! ```
//!
//! Where hosts are in racks, each rack gets consecutive hosts for the same reason.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use super::{HostId, Hosts, InvalidTopology, NodeId, Overlay, Placement, RankId, Topology};

/// Rule by which nodes are placed on ranks. With every rule, node 0 is on rank 0, which prints for all, and each rank has one real node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementRule {
    /// Consecutive real nodes on each host, and consecutive hosts in each rack; virtual nodes on the hosts of their neighbours. On one host, and on
    /// hosts that have consecutive ranks, rack by rack, when all nodes are real, the same as the identity.
    #[default]
    Hosts,
    /// Node i on rank i, virtual node v on rank v mod ranks.
    Identity,
    /// Real nodes on ranks in random order, virtual nodes dealt in the same order: the reference for other placements.
    Random,
}

/// The stream of random numbers for placements; nodes draw from the streams of their own numbers, workloads from the next four.
const PLACEMENT_STREAM: u64 = (1 << 32) + 4;

impl PlacementRule {
    /// All rules.
    pub const ALL: [PlacementRule; 3] = [PlacementRule::Hosts, PlacementRule::Identity, PlacementRule::Random];

    /// The rule's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PlacementRule::Hosts => "hosts",
            PlacementRule::Identity => "identity",
            PlacementRule::Random => "random",
        }
    }

    /// Places a topology's nodes on the ranks of these hosts. The same on every process: it depends on its arguments only.
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn place(self, topology: &Topology, hosts: Hosts, seed: u64) -> Result<Placement, InvalidTopology> {
        let (nodes, ranks) = (topology.nodes(), hosts.ranks());
        // It also says what is wrong.
        let identity = Placement::new(nodes, ranks, hosts.clone())?;
        match self {
            PlacementRule::Identity => Ok(identity),
            PlacementRule::Hosts if hosts.count() == 1 => Ok(identity),
            PlacementRule::Hosts => {
                let real = host_by_host(&hosts);
                let node_rank = Settlers::new(&hosts, real, nodes).settle(topology);
                Placement::custom(node_rank, ranks, hosts)
            }
            PlacementRule::Random => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(PLACEMENT_STREAM);
                let mut real: Vec<RankId> = RankId::all(ranks).collect();
                real[1..].shuffle(&mut rng);
                let node_rank = (0..nodes).map(|node| real[(node % ranks) as usize]).collect();
                Placement::custom(node_rank, ranks, hosts)
            }
        }
    }
}

/// The ranks of host 0, then those of the next host of its rack, and so on, rack by rack. Hosts are numbered as ranks name them, and racks as hosts do, so
/// rank 0 is the first.
fn host_by_host(hosts: &Hosts) -> Vec<RankId> {
    let mut ranks: Vec<RankId> = RankId::all(hosts.ranks()).collect();
    ranks.sort_by_key(|rank| {
        let host = hosts.host_of(*rank);
        (hosts.rack_of(host), host)
    });
    ranks
}

/// Placement of virtual nodes. Each goes to the host of those placed neighbours with which it communicates most, and there to a rank that
/// has taken in the fewest, if possible a neighbour's. No rank takes in more than its share.
struct Settlers<'a> {
    hosts: &'a Hosts,
    /// The rank of every node that has one.
    node_rank: Vec<RankId>,
    nodes: u32,
    /// Virtual nodes by rank.
    taken_in: Vec<u32>,
    /// Ranks of each host that have room for more virtual nodes, each with the number that it has taken in.
    room: Vec<BTreeSet<(u32, RankId)>>,
    share: u32,
}

impl<'a> Settlers<'a> {
    fn new(hosts: &'a Hosts, real: Vec<RankId>, nodes: u32) -> Settlers<'a> {
        let mut room = vec![BTreeSet::new(); hosts.count() as usize];
        for rank in &real {
            room[hosts.host_of(*rank).index()].insert((0, *rank));
        }
        let count = real.len() as u32;
        Settlers { hosts, taken_in: vec![0; real.len()], room, share: (nodes - count).div_ceil(count), node_rank: real, nodes }
    }

    fn settle(mut self, topology: &Topology) -> Vec<RankId> {
        for node in self.node_rank.len() as NodeId..self.nodes {
            let rank = self.rank_for(topology, node);
            let (room, taken_in) = (&mut self.room[self.hosts.host_of(rank).index()], &mut self.taken_in[rank.index()]);
            room.remove(&(*taken_in, rank));
            *taken_in += 1;
            if *taken_in < self.share {
                room.insert((*taken_in, rank));
            }
            self.node_rank.push(rank);
        }
        self.node_rank
    }

    fn rank_for(&self, topology: &Topology, node: NodeId) -> RankId {
        // In a complete graph all places are alike.
        let neighbours = if matches!(topology, Topology::Complete(_)) { Vec::new() } else { topology.neighbours(node) };
        // By host: how much is said to each of the neighbours' ranks there.
        let mut near: BTreeMap<HostId, Vec<(u64, RankId)>> = BTreeMap::new();
        for neighbour in neighbours {
            if let Some(rank) = self.node_rank.get(neighbour as usize) {
                near.entry(self.hosts.host_of(*rank)).or_default().push((link_use(node, neighbour), *rank));
            }
        }
        let mut near: Vec<(HostId, Vec<(u64, RankId)>)> = near.into_iter().collect();
        near.sort_by_key(|(host, ranks)| (Reverse(ranks.iter().map(|(said, _)| said).sum::<u64>()), *host));
        let beside = near.iter().find_map(|(host, ranks)| {
            let (least, any) = self.room[host.index()].first()?;
            let with_room = ranks.iter().filter(|(_, rank)| self.taken_in[rank.index()] == *least);
            Some(with_room.max().map_or(any, |(_, rank)| rank))
        });
        // The shares add up to all virtual nodes at least, so that there is room somewhere.
        let anywhere = || self.room.iter().find_map(|room| room.first().map(|(_, rank)| rank));
        beside.or_else(anywhere).copied().unwrap_or(RankId::new(node % self.taken_in.len() as u32))
    }
}

/// Use of a link relative to others: in a hypercube, exactly the 2^(-k / 2) of dimension k.
fn link_use(a: NodeId, b: NodeId) -> u64 {
    const ONE: u64 = 1 << 20;
    ONE * (1 << 10) / (u64::from(a.abs_diff(b)).max(1) << 20).isqrt()
}

impl fmt::Display for PlacementRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PlacementRule {
    type Err = String;

    fn from_str(text: &str) -> Result<PlacementRule, String> {
        let found = PlacementRule::ALL.into_iter().find(|rule| rule.name() == text);
        found.ok_or_else(|| format!("known are {}", PlacementRule::ALL.map(PlacementRule::name).join(", ")))
    }
}

impl Overlay {
    /// The topology placed by a rule on the ranks of these hosts; see [`PlacementRule::place`].
    ///
    /// # Errors
    /// As [`Placement::new`].
    pub fn placed(topology: Topology, hosts: Hosts, rule: PlacementRule, seed: u64) -> Result<Overlay, InvalidTopology> {
        let placement = rule.place(&topology, hosts, seed)?;
        Ok(Overlay { topology, placement })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::Kind;

    fn hosts(of_rank: impl IntoIterator<Item = u32>) -> Hosts {
        Hosts::from_names(&of_rank.into_iter().map(|host| format!("host{host}")).collect::<Vec<_>>())
    }

    fn place(rule: PlacementRule, kind: Kind, hosts: Hosts) -> Placement {
        rule.place(&Topology::fitted(kind, hosts.ranks()), hosts, 1).unwrap()
    }

    #[test]
    fn ranks_dealt_out_in_turn_are_gathered_by_host() {
        let placement = place(PlacementRule::Hosts, Kind::Hypercube, hosts((0..8).map(|rank| rank % 2)));
        assert!((0..8).map(|node| placement.rank_of(node).get()).eq([0, 2, 4, 6, 1, 3, 5, 7]));
        // Dimensions 0 and 1 stay within hosts, dimension 2 joins them.
        let host = |node: NodeId| placement.host_of(placement.rank_of(node));
        for node in 0..8 {
            assert_eq!((host(node) == host(node ^ 1), host(node) == host(node ^ 2), host(node) == host(node ^ 4)), (true, true, false));
        }
    }

    #[test]
    fn hosts_dealt_to_racks_in_turn_are_gathered_by_rack() {
        // Two ranks on each of eight hosts, of which every other one is in the same rack.
        let racked = hosts((0..16).map(|rank| rank / 2)).with_racks(&[0, 1, 0, 1, 0, 1, 0, 1]);
        let placement = place(PlacementRule::Hosts, Kind::Hypercube, racked.clone());
        let rack = |node: NodeId| racked.rack_of(placement.host_of(placement.rank_of(node)));
        // The highest dimension alone joins the racks; without them dimension 1 does.
        let crossed =
            |rack: &dyn Fn(NodeId) -> u32| [0, 1, 2, 3].map(|k| (0..16).filter(|node| rack(*node) != rack(*node ^ (1 << k))).count());
        assert_eq!(crossed(&|node| rack(node).get()), [0, 0, 0, 16]);
        let identity = place(PlacementRule::Identity, Kind::Hypercube, racked.clone());
        assert_eq!(crossed(&|node| racked.rack_of(identity.host_of(identity.rank_of(node))).get()), [0, 16, 0, 0]);
    }

    #[test]
    fn virtual_nodes_live_beside_their_neighbours() {
        // Nodes 6 and 7 of a cube on six ranks of two hosts: 6 is next to 2, 4 (more so) and 7; 7 to 3, 5 and 6.
        let placement = place(PlacementRule::Hosts, Kind::Hypercube, hosts([0, 0, 0, 1, 1, 1]));
        assert_eq!([6, 7].map(|node| placement.rank_of(node)), [4, 5].map(RankId::new));
    }

    #[test]
    fn names_read_back() {
        for rule in PlacementRule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        assert_eq!("host".parse::<PlacementRule>(), Err("known are hosts, identity, random".into()));
    }

    proptest! {
        #[test]
        fn any_rule_places_one_real_node_on_each_rank(
            kind in prop::sample::select(Kind::ALL.to_vec()),
            of_rank in prop::collection::vec(0u32..5, 1..40),
            racks in prop::collection::vec(0u32..3, 5),
            rule in prop::sample::select(PlacementRule::ALL.to_vec()),
        ) {
            let hosts = hosts(of_rank).with_racks(&racks);
            let placement = place(rule, kind, hosts.clone());
            prop_assert_eq!((placement.rank_of(0), placement.real_node_of(RankId::FIRST)), (RankId::FIRST, 0));
            let share = (placement.nodes() - placement.ranks()).div_ceil(placement.ranks());
            for rank in RankId::all(placement.ranks()) {
                let on = placement.nodes_on(rank);
                prop_assert!(on[0] < placement.ranks() && on[1..].iter().all(|node| *node >= placement.ranks()));
                prop_assert!(on.len() as u32 <= 1 + share);
            }
            if rule == PlacementRule::Hosts {
                let host_of: Vec<HostId> = (0..placement.ranks()).map(|node| placement.host_of(placement.rank_of(node))).collect();
                prop_assert!(host_of.is_sorted_by_key(|host| (hosts.rack_of(*host), *host)), "a host's real nodes are consecutive, a rack's hosts too");
            }
            if hosts.count() == 1 && rule == PlacementRule::Hosts {
                prop_assert_eq!(&placement, &Placement::new(placement.nodes(), placement.ranks(), hosts).unwrap());
            }
        }
    }
}
