//! Hosts of ranks: the ranks that share a machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{HostId, RankId};

/// The map from ranks to hosts; clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    names: Arc<[String]>,
    of_rank: OfRank,
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
        Hosts { names: Arc::new(["localhost".to_string()]), of_rank: OfRank::Single(ranks) }
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
        Hosts { names: names.into(), of_rank }
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
    fn one_name_is_one_host() {
        let hosts = Hosts::from_names(&vec!["n1".to_string(); 3]);
        assert_eq!((hosts.count(), hosts.ranks(), hosts.host_of(RankId::new(2)), hosts.name(HostId::FIRST)), (1, 3, HostId::FIRST, "n1"));
        assert_eq!(Hosts::single(1 << 20).ranks_on(HostId::FIRST).len(), 1 << 20);
    }
}
