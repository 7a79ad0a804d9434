//! The links of a simulated network, and until when each is busy.

use std::collections::HashMap;

use super::measured::Measured;
use super::network::Network;
use crate::topology::{NodeId, RankId};
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
    /// Hops, by directed link. Looked up and thinned out, never walked in an order that shows.
    between: HashMap<(NodeId, NodeId), Ticks>,
    thin_out_at: usize,
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
        Links { network, out, into, host_out, host_into, between: HashMap::new(), thin_out_at: 1024 }
    }

    /// When the beginning of a message that leaves at `now` is at its destination, on a measured network.
    pub fn leave_measured(&mut self, measured: &Measured, from: RankId, to: RankId, now: Ticks, bytes: u64) -> Ticks {
        let link = measured.link(from, to);
        let busy = link.transmission(bytes);
        let mut start = reserve(&mut self.out[from.index()], now, link.occupancy(bytes));
        let (source, target) = (measured.hosts.host_of(from), measured.hosts.host_of(to));
        if link.shared && source != target {
            start = reserve(&mut self.host_out[source.index()], start, busy);
        }
        let ahead = link.start_up(bytes);
        // On a link that costs nothing the message takes its one tick here.
        start.saturating_add(if ahead == 0 && busy == 0 { 1 } else { ahead })
    }

    /// When the last byte of a message whose beginning is at its destination at `now` arrives, on a measured network.
    pub fn arrive_measured(&mut self, measured: &Measured, from: RankId, to: RankId, now: Ticks, bytes: u64) -> Ticks {
        let link = measured.link(from, to);
        let busy = link.transmission(bytes);
        let (source, target) = (measured.hosts.host_of(from), measured.hosts.host_of(to));
        let mut start = now;
        if link.shared && source != target {
            start = reserve(&mut self.host_into[target.index()], start, busy);
        }
        reserve(&mut self.into[to.index()], start, link.occupancy(bytes)).saturating_add(busy)
    }

    /// When a message that is ready at `now` gets the link, which then is busy for `busy` ticks.
    pub fn between(&mut self, from: NodeId, to: NodeId, now: Ticks, busy: Ticks) -> Ticks {
        if self.between.len() >= self.thin_out_at {
            self.between.retain(|_, free| *free > now);
            self.thin_out_at = (2 * self.between.len()).max(1024);
        }
        reserve(self.between.entry((from, to)).or_insert(0), now, busy)
    }
}

/// When something that is ready at `now` gets what is free from `free` on, and keeps it for `busy` ticks.
pub(super) fn reserve(free: &mut Ticks, now: Ticks, busy: Ticks) -> Ticks {
    let start = now.max(*free);
    *free = start.saturating_add(busy);
    start
}
