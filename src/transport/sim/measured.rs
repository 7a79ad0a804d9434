//! A measured network: hosts with ranks of known speeds, and costs of messages within a host and between hosts.
//!
//! The model of a link is LogGP (Alexandrov, Ionescu, Schauser and Scheiman 1995) as one end sees it: a start-up (LogGP's L and both overheads),
//! a gap g between messages of one sender, a time G for each byte, and the size from which a message waits for its receiver's consent
//! (the rendezvous protocol), with what that takes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::speed::Speed;
use super::units;
use crate::error::{Error, Result};
use crate::topology::{HostId, Hosts, RankId};
use crate::transport::Ticks;

/// Costs of messages between two ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredLink {
    /// Start-up in ticks: the time of an empty message.
    pub latency: Ticks,
    /// Minimum time between two messages of one sender, in ticks.
    pub gap: Ticks,
    /// Picoseconds for each byte, header included.
    pub per_byte: u64,
    /// Messages that have to ask their receiver first.
    pub rendezvous: Option<Rendezvous>,
    /// Whether all ranks of a host send and receive through one port. Within a host each rank has its own.
    pub shared: bool,
    /// Relative error of the model over the sizes measured; 0 if unknown.
    pub error: f64,
}

/// Rendezvous protocol: size from which a message waits for its receiver, and the added time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// Smallest size in bytes, header included.
    pub bytes: u64,
    /// Ticks that it adds to the start-up.
    pub latency: Ticks,
}

impl MeasuredLink {
    /// Ticks before the first byte of a message of this size is on its way.
    pub fn start_up(&self, bytes: u64) -> Ticks {
        let consent = self.rendezvous.filter(|rendezvous| bytes >= rendezvous.bytes).map_or(0, |rendezvous| rendezvous.latency);
        self.latency.saturating_add(consent)
    }

    /// Ticks that the bytes of a message take, rounded up.
    pub fn transmission(&self, bytes: u64) -> Ticks {
        let picoseconds = u128::from(bytes) * u128::from(self.per_byte);
        Ticks::try_from(picoseconds.div_ceil(u128::from(units::PER_TICK))).unwrap_or(Ticks::MAX)
    }

    /// Ticks for which a message keeps its sender's port: its bytes, and never less than the gap.
    pub fn occupancy(&self, bytes: u64) -> Ticks {
        self.transmission(bytes).max(self.gap)
    }

    /// Ticks from sending to arrival of a message that waits for no other.
    pub fn passage(&self, bytes: u64) -> Ticks {
        self.start_up(bytes).saturating_add(self.transmission(bytes)).max(1)
    }
}

/// Hosts, links and speeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name for people: the name of its file.
    pub name: String,
    /// The host of each rank, and the rack of each host.
    pub hosts: Hosts,
    /// Speed by rank; empty if all are 1.
    pub speeds: Vec<Speed>,
    /// Between ranks of one host.
    pub within: MeasuredLink,
    /// Between ranks of different hosts; `None` if there is one host.
    pub between: Option<MeasuredLink>,
    /// Pairs of hosts that differ from the others, the lower number first.
    pub pairs: BTreeMap<(HostId, HostId), MeasuredLink>,
}

impl Measured {
    /// The link between two ranks.
    pub fn link(&self, a: RankId, b: RankId) -> &MeasuredLink {
        let (a, b) = (self.hosts.host_of(a), self.hosts.host_of(b));
        if a == b {
            return &self.within;
        }
        let pair = self.pairs.get(&(a.min(b), a.max(b)));
        pair.or(self.between.as_ref()).unwrap_or(&self.within)
    }

    /// The usual link between ranks that are as far from each other as these ranks are: on one host the one within; else the one between
    /// hosts, and where each pair of hosts has its own, the middle one of these by its start-up.
    pub fn farthest(&self) -> &MeasuredLink {
        let hosts = self.hosts.count() as usize;
        let Some(between) = self.between.as_ref().filter(|_| hosts > 1) else { return &self.within };
        if self.pairs.len() < hosts * (hosts - 1) / 2 {
            return between;
        }
        let mut links: Vec<&MeasuredLink> = self.pairs.values().collect();
        links.sort_by_key(|link| (link.latency, link.per_byte));
        links.get(links.len() / 2).copied().unwrap_or(between)
    }

    /// The racks of hosts of these names by their numbers; `None` if the network has no racks, or not all of the hosts.
    pub fn racks_of(&self, names: &[String]) -> Option<Vec<u32>> {
        let rack = |name: &String| {
            let host = self.hosts.names().iter().position(|known| known == name)?;
            Some(self.hosts.rack_of(HostId::new(host as u32)).get())
        };
        (self.hosts.racks() > 1).then(|| names.iter().map(rack).collect())?
    }

    /// The relative error of the model: that of its worst link, of those that join ranks.
    pub fn error(&self) -> f64 {
        let hosts = self.hosts.count();
        let within = (hosts < self.hosts.ranks()).then_some(self.within.error);
        let between = self.between.filter(|_| hosts > 1).map(|link| link.error);
        within.into_iter().chain(between).fold(0.0, f64::max)
    }

    /// The same cluster for another number of ranks. Fewer are the first ones; more are dealt out to copies of the hosts, in the same order and
    /// with the same speeds, as if the cluster had been bought again. Copies are linked as hosts of the cluster are among each other.
    ///
    /// # Errors
    /// Wrong usage if there are more ranks, but no link between hosts was measured.
    pub fn on(&self, ranks: u32) -> Result<Measured> {
        let own = self.hosts.ranks();
        if ranks == own {
            return Ok(self.clone());
        }
        if ranks > own && self.between.is_none() {
            return Err(Error::input(
                "network",
                format!(
                    " {}: it has {own} ranks on one host and no link between hosts, so it can't be extended to {ranks} ranks",
                    self.name
                ),
            ));
        }
        let mut names: Vec<String> = Vec::new();
        let mut taken: HashSet<String> = self.hosts.names().iter().cloned().collect();
        let mut copies: HashMap<(HostId, u32), String> = HashMap::new();
        // A rack's copies are racks of their own. Hosts are numbered as ranks name them.
        let (mut racks, mut seen) = (Vec::new(), HashSet::new());
        for rank in 0..ranks {
            let (host, copy) = (self.hosts.host_of(RankId::new(rank % own)), rank / own);
            let name = self.hosts.name(host);
            names.push(match copy {
                0 => name.to_string(),
                _ => copies.entry((host, copy)).or_insert_with(|| unlike(format!("{name}+{copy}"), &mut taken)).clone(),
            });
            if self.hosts.racks() > 1 && seen.insert((host, copy)) {
                racks.push(self.hosts.rack_of(host).get() + copy * self.hosts.racks());
            }
        }
        let hosts = Hosts::from_names(&names).with_racks(&racks);
        let speeds = match self.speeds.len() {
            0 => Vec::new(),
            known => (0..ranks as usize).map(|rank| self.speeds[rank % known]).collect(),
        };
        // Hosts are numbered as ranks name them, so those that are left keep their numbers.
        let pairs = self.pairs.iter().filter(|((_, high), _)| high.get() < hosts.count()).map(|(pair, link)| (*pair, *link)).collect();
        Ok(Measured { hosts, speeds, pairs, ..self.clone() })
    }
}

/// The name, with as many signs behind it as make it unlike all that are taken; then it is one of them.
fn unlike(mut name: String, taken: &mut HashSet<String>) -> String {
    while taken.contains(&name) {
        name.push('+');
    }
    taken.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Measured {
        let link = |latency| MeasuredLink { latency, per_byte: 1_000, ..MeasuredLink::default() };
        Measured {
            name: "x.toml".into(),
            hosts: Hosts::from_names(&["a", "a", "b", "c"].map(String::from)),
            speeds: vec![Speed::default(), Speed::ratio(1, 2).unwrap(), Speed::default(), Speed::default()],
            within: link(10),
            between: Some(link(100)),
            pairs: BTreeMap::from([((HostId::new(1), HostId::new(2)), link(400))]),
        }
    }

    #[test]
    fn a_link_is_that_of_the_two_hosts() {
        let cluster = cluster();
        let latency = |a, b| cluster.link(RankId::new(a), RankId::new(b)).latency;
        assert_eq!([latency(0, 1), latency(0, 2), latency(3, 0), latency(2, 3), latency(3, 2)], [10, 100, 100, 400, 400]);
    }

    /// The network file has links that no two ranks use.
    #[test]
    fn links_without_ranks_count_for_nothing() {
        let mut one = Measured { hosts: Hosts::single(2), speeds: Vec::new(), pairs: BTreeMap::new(), ..cluster() };
        (one.within.error, one.between.as_mut().unwrap().error) = (0.1, 0.5);
        assert_eq!((one.farthest().latency, one.error()), (10, 0.1));
        let alone_on_hosts = Measured { hosts: Hosts::from_names(&["a", "b"].map(String::from)), ..one.clone() };
        (one.within.error, one.between.as_mut().unwrap().error) = (0.5, 0.1);
        let lonely = Measured { hosts: alone_on_hosts.hosts.clone(), ..one };
        assert_eq!((alone_on_hosts.farthest().latency, alone_on_hosts.error(), lonely.error()), (100, 0.5, 0.1));
        // The only pair of hosts has a link of its own.
        let pairs = BTreeMap::from([((HostId::FIRST, HostId::new(1)), MeasuredLink { latency: 400, ..MeasuredLink::default() })]);
        assert_eq!(Measured { pairs, ..lonely }.farthest().latency, 400);
        assert_eq!(cluster().farthest().latency, 100);
    }

    #[test]
    fn more_ranks_are_on_copies_of_the_hosts() {
        let six = cluster().on(6).unwrap();
        assert_eq!(six.hosts.names(), ["a", "b", "c", "a+1"]);
        assert!(RankId::all(6).map(|rank| six.hosts.host_of(rank).get()).eq([0, 0, 1, 2, 3, 3]));
        assert_eq!(six.speeds[5], Speed::ratio(1, 2).unwrap());
        let latency = |(a, b)| six.link(RankId::new(a), RankId::new(b)).latency;
        assert_eq!([(4, 5), (0, 4), (2, 3)].map(latency), [10, 100, 400]);
        let three = cluster().on(3).unwrap();
        assert_eq!((three.hosts.count(), three.speeds.len(), three.pairs.len()), (2, 3, 0));
        assert_eq!(cluster().on(4).unwrap(), cluster());
        // Copies of racks are racks.
        let racked = Measured { hosts: cluster().hosts.with_racks(&[0, 1, 0]), ..cluster() };
        let rack = |ranks: u32, host| racked.on(ranks).unwrap().hosts.rack_of(HostId::new(host)).get();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|host| rack(8, host)), [0, 1, 0, 2, 3, 2]);
        assert_eq!([0, 1].map(|host| rack(3, host)), [0, 1]);
        let known = |names: &[&str]| racked.racks_of(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!([known(&["c", "b"]), known(&["c", "d"])], [Some(vec![0, 1]), None]);
        assert_eq!(cluster().racks_of(&["a".to_string()]), None);
        let lonely = Measured { hosts: Hosts::single(2), speeds: Vec::new(), between: None, ..cluster() };
        assert_eq!(lonely.on(1).unwrap().hosts.ranks(), 1);
        let why = lonely.on(3).unwrap_err().to_string();
        assert_eq!(why, "network x.toml: it has 2 ranks on one host and no link between hosts, so it can't be extended to 3 ranks");
    }

    /// A file's hosts may be called as copies would be.
    #[test]
    fn copies_are_hosts_of_their_own_whatever_hosts_are_called() {
        let hosts = Hosts::from_names(&["h1", "h1+1", "h1+1+1", "h1"].map(String::from));
        let more = Measured { hosts, pairs: BTreeMap::new(), ..cluster() }.on(12).unwrap();
        let host = |rank| more.hosts.host_of(RankId::new(rank));
        assert_eq!((more.hosts.count(), host(4) == host(7), host(8) == host(11)), (9, true, true));
        assert_eq!(more.hosts.names()[..6], ["h1", "h1+1", "h1+1+1", "h1+1+", "h1+1+1+", "h1+1+1+1"]);
    }

    #[test]
    fn a_message_costs_what_loggp_says() {
        let rendezvous = Some(Rendezvous { bytes: 100, latency: 40 });
        let link = MeasuredLink { latency: 20, gap: 8, per_byte: 1_500, rendezvous, ..MeasuredLink::default() };
        assert_eq!((link.transmission(3), link.occupancy(3), link.passage(3)), (5, 8, 25));
        assert_eq!((link.start_up(99), link.start_up(100), link.passage(100)), (20, 60, 210));
        assert_eq!(MeasuredLink::default().passage(1 << 40), 1);
    }
}
