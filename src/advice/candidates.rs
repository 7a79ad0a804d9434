//! The topologies on which a balancer is tried.

use std::sync::Arc;

use crate::balance::Entry;
use crate::topology::{Hosts, Kind, KnownNetwork, Topology, Tree};

/// The tree of the hosts, as `--topology` takes it.
const TREE_OF_HOSTS: &str = "tree:hosts";

/// Maximum number of ranks that are put on a line for want of another topology without virtual nodes: a line takes as many steps as there are ranks.
const MOST: u32 = 64;

/// A topology and its name.
pub(super) struct Candidate {
    pub name: String,
    pub topology: Topology,
}

impl Candidate {
    fn new(topology: Topology, hosts: &Hosts) -> Candidate {
        let name = if is_tree_of(hosts, &topology) { TREE_OF_HOSTS.into() } else { topology.name() };
        Candidate { name, topology }
    }
}

/// The topologies to try a balancer on: the given one, or its own and those that can be better on this network.
pub(super) fn of(entry: &Entry, given: Option<&Topology>, network: &KnownNetwork<'_>) -> Vec<Candidate> {
    let (hosts, ranks) = (network.hosts(), network.hosts().ranks());
    let own = entry.topology_on(network);
    let others = match (given, entry.facts.kinds.first()) {
        (Some(given), _) => return vec![Candidate::new(given.clone(), hosts)],
        (None, Some(Kind::Tree)) if hosts.count() > 1 => {
            Some(Topology::Tree(Arc::new(Tree::of_hosts(hosts)))).filter(|tree| !is_same_tree(tree, &own))
        }
        // The rank of a virtual node does the work of two.
        _ if own.nodes() > ranks && ranks <= MOST => {
            let fitted = entry.facts.kinds.iter().filter(|kind| **kind != Kind::Graph).map(|kind| Topology::fitted(*kind, ranks));
            fitted.filter(|topology| entry.objection(topology).is_none()).find(|topology| topology.nodes() == ranks)
        }
        _ => None,
    };
    [own].into_iter().chain(others).map(|topology| Candidate::new(topology, hosts)).collect()
}

/// Returns true if a topology is the tree of the hosts, and not the binary tree of all ranks.
fn is_tree_of(hosts: &Hosts, topology: &Topology) -> bool {
    matches!(topology, Topology::Tree(tree) if tree.arity().is_none())
        && is_same_tree(topology, &Topology::Tree(Arc::new(Tree::of_hosts(hosts))))
}

/// Returns true if two trees have the same links.
fn is_same_tree(one: &Topology, other: &Topology) -> bool {
    match (one, other) {
        (Topology::Tree(one), Topology::Tree(other)) => one.nodes() == other.nodes() && one.parents().eq(other.parents()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance;

    /// Names of the topologies for a balancer on hosts with these numbers of ranks.
    fn names(balancer: &str, on_hosts: &[u32]) -> Vec<String> {
        let hosts = on_hosts.iter().zip('a'..).flat_map(|(ranks, host)| vec![host.to_string(); *ranks as usize]).collect::<Vec<_>>();
        let network = KnownNetwork::of_hosts(Hosts::from_names(&hosts));
        of(balance::find(balancer).unwrap().entry, None, &network).into_iter().map(|candidate| candidate.name).collect()
    }

    #[test]
    fn a_tree_walk_is_tried_on_the_tree_of_the_hosts() {
        assert_eq!(names("twa", &[4, 4]), ["tree:binary,nodes=8", "tree:hosts"]);
        assert_eq!(names("twa", &[8]), ["tree:binary,nodes=8"]);
        // One rank on each host: the tree of hosts is the binary tree.
        assert_eq!(names("twa", &[1; 8]), ["tree:binary,nodes=8"]);
    }

    #[test]
    fn what_has_virtual_nodes_is_tried_without() {
        assert_eq!(names("dem", &[5]), ["hypercube:3", "line:5"]);
        assert_eq!(names("dem", &[8]), ["hypercube:3"]);
        assert_eq!(names("kwa", &[3]), ["torus:2x2", "line:3"]);
        // It runs on hypercubes only.
        assert_eq!(names("cwa", &[5]), ["hypercube:3"]);
    }

    #[test]
    fn a_given_topology_is_the_only_one() {
        let hosts = Hosts::from_names(&["a", "a", "b", "b"].map(String::from));
        let tree = Topology::Tree(Arc::new(Tree::of_hosts(&hosts)));
        let network = KnownNetwork::of_hosts(hosts);
        for (given, name) in [(&tree, "tree:hosts"), (&Topology::fitted(Kind::Line, 4), "line:4")] {
            let found = of(balance::find("twa").unwrap().entry, Some(given), &network);
            assert!(found.len() == 1 && found[0].name == name && found[0].topology == *given, "{name}");
            assert!(name == TREE_OF_HOSTS || Topology::parse(name, 4).as_ref() == Ok(given));
        }
    }
}
