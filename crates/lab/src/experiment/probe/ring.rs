//! A ring exchange of the hosts of a measured network, in simulation: what another simulator's time for it is compared with.

use bytes::Bytes;
use equipoise::agreement::one_node_per_rank;
use equipoise::node::{self, Node, Tag};
use equipoise::topology::{HostId, NodeId};
use equipoise::transport::sim::{Measured, Model};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

use super::links::{Timed, us};

const RING: Tag = crate::tags::probe::RING;

/// Microseconds of an exchange in which the first rank of each host sends a message to that of the next host and receives one from that of the one
/// before, all at once, for bodies of some sizes. Nothing for one host.
///
/// # Errors
/// As [`node::run`].
pub fn ring(network: &Measured, sizes: &[u64]) -> Result<Vec<Timed>> {
    let first = |host| network.hosts.ranks_on(host).first().map(|rank| rank.get());
    let ring: Vec<NodeId> = HostId::all(network.hosts.count()).filter_map(first).collect();
    if ring.len() < 2 {
        return Ok(Vec::new());
    }
    let time = |bytes: &u64| {
        let body = usize::try_from(*bytes).map_err(|_| Error::usage(format!("a message of {bytes} bytes is longer than a memory")))?;
        let body = Bytes::from(vec![0; body]);
        let mut world = World::simulated(network.hosts.ranks(), Model { network: network.clone().network(), ..Model::default() });
        let overlay = one_node_per_rank(&world)?;
        let took = node::run(&mut world, &overlay, |node| exchange(node, ring.clone(), body.clone()))?;
        Ok(Timed { bytes: *bytes, us: us(took.into_iter().map(|(_, ticks)| ticks).max().unwrap_or(0) as f64) })
    };
    sizes.iter().map(time).collect()
}

/// Ticks of one node's part.
async fn exchange(node: Node, ring: Vec<NodeId>, body: Bytes) -> Result<u64> {
    let Some(place) = ring.iter().position(|member| *member == node.me()) else { return Ok(0) };
    let neighbour = |steps: usize| ring[(place + steps) % ring.len()];
    let began = node.now();
    node.send_bytes(neighbour(1), RING, body);
    node.receive_message(Some(neighbour(ring.len() - 1)), RING).await?;
    Ok(node.now() - began)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use equipoise::node::HEADER_BYTES;
    use equipoise::topology::Hosts;
    use equipoise::transport::sim::MeasuredLink;

    use super::*;

    fn network(hosts: u32) -> Measured {
        let link = |latency, per_byte| MeasuredLink { latency, per_byte, shared: true, ..MeasuredLink::default() };
        Measured {
            name: "x.toml".into(),
            hosts: Hosts::from_names(&(0..2 * hosts).map(|rank| format!("h{}", rank / 2)).collect::<Vec<_>>()),
            speeds: Vec::new(),
            within: link(1_000, 100),
            between: Some(link(20_000, 1_000)),
            pairs: BTreeMap::new(),
        }
    }

    #[test]
    fn it_takes_as_long_as_its_slowest_message() {
        let message = |latency: f64, per_byte: f64, bytes: u64| latency + per_byte * (HEADER_BYTES + bytes) as f64 / 1e3;
        for hosts in [2, 3, 8] {
            let mut network = network(hosts);
            let found = ring(&network, &[0, 65_536]).unwrap();
            for timed in &found {
                assert!((timed.us - message(20.0, 1.0, timed.bytes)).abs() < 0.01, "{hosts} hosts: {timed:?}");
            }
            let slow = MeasuredLink { latency: 80_000, per_byte: 4_000, shared: true, ..MeasuredLink::default() };
            network.pairs.insert((HostId::FIRST, HostId::new(1)), slow);
            let found = ring(&network, &[65_536]).unwrap();
            assert!((found[0].us - message(80.0, 4.0, 65_536)).abs() < 0.01, "{hosts} hosts: {found:?}");
        }
        assert_eq!(ring(&network(1), &[0]).unwrap(), []);
    }
}
