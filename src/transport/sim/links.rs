//! The links of a simulated network, and until when each is busy.

use std::collections::HashMap;

use super::measured::{Measured, MeasuredLink};
use super::network::Network;
use super::order::Order;
use crate::topology::{HostId, NodeId, RankId};
use crate::transport::Ticks;

/// The network's links, and until when each is busy.
pub(super) struct Links {
    pub network: Network,
    /// Switched and measured, by rank.
    pub out: Vec<Ticks>,
    pub into: Vec<Ticks>,
    /// Measured, by host.
    host_out: Vec<Ticks>,
    host_into: Vec<Ticks>,
    /// Measured, by rank: when the beginning of its last message to each other rank is there.
    heads: Vec<Order>,
    /// Hops, by directed link. Looked up and thinned out, never walked in an order that shows.
    between: HashMap<(NodeId, NodeId), Ticks>,
    thin_out_at: usize,
}

/// A message's way through a measured network.
pub(super) struct Way<'a> {
    pub measured: &'a Measured,
    pub from: RankId,
    pub to: RankId,
    /// Header included.
    pub bytes: u64,
}

impl Way<'_> {
    fn link(&self) -> &MeasuredLink {
        self.measured.link(self.from, self.to)
    }

    fn source(&self) -> HostId {
        self.measured.hosts.host_of(self.from)
    }

    fn target(&self) -> HostId {
        self.measured.hosts.host_of(self.to)
    }

    /// Returns true if it goes through ports that all ranks of a host share.
    pub fn shares_ports(&self) -> bool {
        self.link().shared && self.source() != self.target()
    }
}

impl Links {
    pub fn new(network: Network, ranks: u32) -> Links {
        let (ports, hosts) = match &network {
            Network::Switched(link) if link.contention => (ranks, 0),
            Network::Measured(measured) => (ranks, measured.hosts.count()),
            _ => (0, 0),
        };
        let free = |ports: u32| vec![0; ports as usize];
        let (out, into, host_out, host_into) = (free(ports), free(ports), free(hosts), free(hosts));
        let heads = if hosts > 0 { (0..ranks).map(|_| Order::default()).collect() } else { Vec::new() };
        Links { heads, network, out, into, host_out, host_into, between: HashMap::new(), thin_out_at: 1024 }
    }

    /// Returns the time at which a message that is to leave at `now` gets its rank's port, on a measured network.
    pub fn leave_rank(&mut self, way: &Way<'_>, now: Ticks) -> Ticks {
        reserve(&mut self.out[way.from.index()], now, way.link().occupancy(way.bytes))
    }

    /// Returns the time at which the beginning of a message that has got its rank's port at `now` is at its destination. Where ranks share their
    /// host's port, this must be asked at that time, when all that came to the port earlier has been entered: a port that is reserved for later
    /// would be closed to others meanwhile. Not before the beginning of an earlier message of these ranks, which may have had to wait for consent.
    pub fn leave_host(&mut self, way: &Way<'_>, now: Ticks) -> Ticks {
        let link = way.link();
        let busy = link.transmission(way.bytes);
        let start = if way.shares_ports() { reserve(&mut self.host_out[way.source().index()], now, busy) } else { now };
        let ahead = link.start_up(way.bytes);
        // On a link that costs nothing the message takes its one tick here.
        let head = start.saturating_add(if ahead == 0 && busy == 0 { 1 } else { ahead });
        self.heads[way.from.index()].after_earlier(way.to.get(), head, now)
    }

    /// Returns the time at which a message whose beginning is at its destination at `now` gets the host's port there, if ranks share it.
    pub fn reach_host(&mut self, way: &Way<'_>, now: Ticks) -> Ticks {
        if !way.shares_ports() {
            return now;
        }
        reserve(&mut self.host_into[way.target().index()], now, way.link().transmission(way.bytes))
    }

    /// Returns the time at which the last byte of a message arrives that comes to its destination's port at `now`; to be asked at that time.
    pub fn reach_rank(&mut self, way: &Way<'_>, now: Ticks) -> Ticks {
        let link = way.link();
        reserve(&mut self.into[way.to.index()], now, link.occupancy(way.bytes)).saturating_add(link.transmission(way.bytes))
    }

    /// Returns the time at which a message that is ready at `now` gets the link, which then is busy for `busy` ticks.
    pub fn between(&mut self, from: NodeId, to: NodeId, now: Ticks, busy: Ticks) -> Ticks {
        if self.between.len() >= self.thin_out_at {
            self.between.retain(|_, free| *free > now);
            self.thin_out_at = (2 * self.between.len()).max(1024);
        }
        reserve(self.between.entry((from, to)).or_insert(0), now, busy)
    }
}

/// Returns the time at which something that is ready at `now` gets what is free from `free` on, and reserves it for `busy` ticks.
pub(super) fn reserve(free: &mut Ticks, now: Ticks, busy: Ticks) -> Ticks {
    let start = now.max(*free);
    *free = start.saturating_add(busy);
    start
}
