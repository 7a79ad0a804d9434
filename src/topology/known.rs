//! Facts about the network between ranks that are known before a run.

use super::{Hosts, NodeId, Overlay};

type Passage<'a> = dyn Fn(&Overlay, NodeId, NodeId, u64) -> u64 + 'a;

/// Hosts, and costs of messages.
pub struct KnownNetwork<'a> {
    hosts: Hosts,
    passage: Box<Passage<'a>>,
}

impl<'a> KnownNetwork<'a> {
    /// A network by its message times: `passage` returns the nanoseconds for a message of a number of bytes, header included, from one node
    /// of an overlay to another.
    pub fn new(hosts: Hosts, passage: impl Fn(&Overlay, NodeId, NodeId, u64) -> u64 + 'a) -> KnownNetwork<'a> {
        KnownNetwork { hosts, passage: Box::new(passage) }
    }

    /// A network of which only the hosts are known: a microsecond and 0.3 ns a byte within a host, 20 us and 2.7 ns a byte between hosts (the
    /// simulator's default), next to nothing within a rank.
    pub fn of_hosts(hosts: Hosts) -> KnownNetwork<'a> {
        KnownNetwork::new(hosts, |overlay, from, to, bytes| {
            let placement = &overlay.placement;
            let (from, to) = (placement.rank_of(from), placement.rank_of(to));
            match (from == to, placement.host_of(from) == placement.host_of(to)) {
                (true, _) => 1,
                (false, true) => 1_000 + bytes * 3 / 10,
                (false, false) => 20_000 + bytes * 27 / 10,
            }
        })
    }

    /// The host of each rank.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Nanoseconds from sending to arrival of a message that waits for no other; header included in `bytes`.
    pub fn passage(&self, overlay: &Overlay, from: NodeId, to: NodeId, bytes: u64) -> u64 {
        (self.passage)(overlay, from, to, bytes)
    }
}
