//! How much the simulator carries: lock-step exchanges across every dimension of a hypercube, with a named receive each.
//!
//! `cargo run --release --example million_nodes [DIMENSION [NETWORK]]`, by default 20 and the default network.

use std::time::Instant;

use equipoise::transport::world::World;
use equipoise::transport::{Tag, sim};
use equipoise::{Error, Result, node, topology};

const EXCHANGE: Tag = Tag::new(1, "exchange");

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dimension: u32 = match arguments.next() {
        Some(text) => text.parse().map_err(|_| Error::usage(format!("{text}: the dimension is a number from 0 to 24")))?,
        None => 20,
    };
    let network = arguments.next().map_or(Ok(sim::Network::default()), |text| sim::Network::parse(&text))?;
    let nodes = 1u32.checked_shl(dimension.min(24)).unwrap_or(1);
    let overlay = topology::Overlay::one_host(topology::Topology::parse(&format!("hypercube:{}", dimension.min(24)), nodes)?, nodes)?;
    let mut world = World::simulated(nodes, sim::Model { network: network.clone(), ..sim::Model::default() });

    let start = Instant::now();
    let sums = node::run(&mut world, &overlay, |node| async move {
        let mut sum = u64::from(node.me());
        let mut bit = 1;
        while bit < node.nodes() {
            let partner = node.me() ^ bit;
            node.send(partner, EXCHANGE, &sum);
            sum += node.receive::<u64>(partner, EXCHANGE).await?;
            bit <<= 1;
        }
        Ok((sum, node.now()))
    })?;
    let seconds = start.elapsed().as_secs_f64();

    let total = u64::from(nodes) * u64::from(nodes - 1) / 2;
    if let Some((node, (sum, _))) = sums.iter().find(|(_, (sum, _))| *sum != total) {
        return Err(Error::Failed(format!("node {node} has {sum} instead of {total}")));
    }
    let messages = u64::from(nodes) * u64::from(dimension);
    let ended = sums.iter().map(|(_, (_, ended))| *ended).max().unwrap_or(0);
    println!("{nodes} nodes, network {network}: {messages} messages in {seconds:.2} s, {ended} ns of virtual time{}", peak());
    Ok(())
}

/// The most memory that the process has used, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    kilobytes.map_or(String::new(), |kilobytes| format!(", {} MB at most", kilobytes / 1024))
}
