//! Hosts of ranks: the ranks that share a machine. Racks of hosts, where they are known: the hosts that are near each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{HostId, RackId, RankId};

/// The map from ranks to hosts, and from hosts to racks; clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    names: Arc<[String]>,
    of_rank: OfRank,
    /// The rack of each host; `None` if all are in one, or racks are unknown.
    racks: Option<Arc<[RackId]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OfRank {
    /// This many ranks, all on host 0: no memory per rank, so that a simulation of a million is free.
    Single(u32),
    Listed(Arc<[HostId]>),
}

impl Hosts {
    /// All ranks on one host, `localhost`.
    pub fn single(ranks: u32) -> Self {
        Hosts { names: Arc::new(["localhost".to_string()]), of_rank: OfRank::Single(ranks), racks: None }
    }

    /// One host name per rank. Hosts are numbered in the order in which ranks first name them.
    pub fn from_names(name_of_rank: &[String]) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut numbers: BTreeMap<&str, HostId> = BTreeMap::new();
        let mut of_rank = Vec::with_capacity(name_of_rank.len());
        for name in name_of_rank {
            let host = *numbers.entry(name).or_insert_with(|| {
                names.push(name.clone());
                HostId::new(names.len() as u32 - 1)
            });
            of_rank.push(host);
        }
        let of_rank = match names.len() {
            1 => OfRank::Single(of_rank.len() as u32),
            _ => OfRank::Listed(of_rank.into()),
        };
        Hosts { names: names.into(), of_rank, racks: None }
    }

    /// The same hosts in racks. Hosts with the same number, one for each host, are in one rack; racks are numbered in the order of their first hosts. A
    /// number that is missing is 0.
    pub fn with_racks(self, of_host: &[u32]) -> Self {
        let mut numbers: BTreeMap<u32, RackId> = BTreeMap::new();
        let given = (0..self.names.len()).map(|host| of_host.get(host).copied().unwrap_or(0));
        let racks: Vec<RackId> = given
            .map(|number| {
                let next = RackId::new(numbers.len() as u32);
                *numbers.entry(number).or_insert(next)
            })
            .collect();
        Hosts { racks: (numbers.len() > 1).then(|| racks.into()), ..self }
    }

    /// The number of hosts.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// The number of ranks on all hosts together.
    pub fn ranks(&self) -> u32 {
        match &self.of_rank {
            OfRank::Single(ranks) => *ranks,
            OfRank::Listed(of_rank) => of_rank.len() as u32,
        }
    }

    /// The host of a rank.
    pub fn host_of(&self, rank: RankId) -> HostId {
        match &self.of_rank {
            OfRank::Single(_) => HostId::FIRST,
            OfRank::Listed(of_rank) => of_rank[rank.index()],
        }
    }

    /// The name of a host.
    pub fn name(&self, host: HostId) -> &str {
        &self.names[host.index()]
    }

    /// The names of all hosts, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of racks; 1 if none are known.
    pub fn racks(&self) -> u32 {
        self.racks.iter().flat_map(|racks| racks.iter()).max().map_or(1, |last| last.get() + 1)
    }

    /// The rack of a host.
    pub fn rack_of(&self, host: HostId) -> RackId {
        self.racks.as_ref().map_or(RackId::FIRST, |racks| racks[host.index()])
    }

    /// The hosts of a rack, in ascending order.
    pub fn hosts_in(&self, rack: RackId) -> Vec<HostId> {
        HostId::all(self.count()).filter(|host| self.rack_of(*host) == rack).collect()
    }

    /// The ranks of a host, in ascending order.
    pub fn ranks_on(&self, host: HostId) -> Vec<RankId> {
        RankId::all(self.ranks()).filter(|rank| self.host_of(*rank) == host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbered_as_ranks_name_them() {
        let names: Vec<String> = ["b", "a", "b", "c", "a"].map(String::from).into();
        let hosts = Hosts::from_names(&names);
        assert_eq!((hosts.count(), hosts.ranks()), (3, 5));
        assert!(RankId::all(5).map(|rank| hosts.host_of(rank).get()).eq([0, 1, 0, 2, 1]));
        assert_eq!(hosts.names(), ["b", "a", "c"]);
        assert_eq!(hosts.ranks_on(HostId::new(1)), [1, 4].map(RankId::new));
    }

    #[test]
    fn racks_are_numbered_by_their_first_hosts() {
        let hosts = Hosts::from_names(&["a", "b", "c", "d", "b"].map(String::from));
        assert_eq!((hosts.racks(), hosts.rack_of(HostId::new(3)), hosts.hosts_in(RackId::FIRST).len()), (1, RackId::FIRST, 4));
        let racked = hosts.clone().with_racks(&[7, 2, 7, 5]);
        assert!(HostId::all(4).map(|host| racked.rack_of(host).get()).eq([0, 1, 0, 2]));
        assert_eq!((racked.racks(), racked.hosts_in(RackId::FIRST)), (3, [0, 2].map(HostId::new).to_vec()));
        assert_eq!(racked, hosts.clone().with_racks(&[0, 1, 0, 2]));
        // One rack is none.
        assert_eq!((hosts.clone().with_racks(&[3, 3, 3, 3]), hosts.clone().with_racks(&[])), (hosts.clone(), hosts));
    }

    #[test]
    fn one_name_is_one_host() {
        let hosts = Hosts::from_names(&vec!["n1".to_string(); 3]);
        assert_eq!((hosts.count(), hosts.ranks(), hosts.host_of(RankId::new(2)), hosts.name(HostId::FIRST)), (1, 3, HostId::FIRST, "n1"));
        assert_eq!(Hosts::single(1 << 20).ranks_on(HostId::FIRST).len(), 1 << 20);
    }
}
