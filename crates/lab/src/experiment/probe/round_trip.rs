//! Networks are simulated, probed, written, and read again: they come out as they went in, where messages can tell.

use std::collections::BTreeMap;

use equipoise::topology::{HostId, Hosts, RankId};
use equipoise::transport::sim::{Measured, MeasuredLink, Rendezvous, Speed};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

use super::program::on_the_wire;
use super::tests::{found, simulated};
use super::{ProbeSpec, links};
use crate::workload::network;

/// Four hosts with ports that their ranks share, a rendezvous between two of the sizes, and a slow pair.
const SHARED: &str = r#"
[[host]]
name = "h1"
ranks = [0, 1]
[[host]]
name = "h2"
ranks = [2, 3]
[[host]]
name = "h3"
ranks = [4, 5]
[[host]]
name = "h4"
ranks = [6, 7]
[within]
latency = "600ns"
gap = "150ns"
per_byte = "0.4ns"
[between]
latency = "21us"
per_byte = "2.7ns"
rendezvous = 65536
rendezvous_latency = "40us"
shared = true
[[pair]]
hosts = ["h2", "h4"]
latency = "84us"
per_byte = "10.8ns"
"#;

fn spec() -> ProbeSpec {
    ProbeSpec { reductions: Vec::new(), ..ProbeSpec::full(6, 1_000_000) }
}

/// Network that a probe finds, after its file was written and read.
fn probed(given: &Measured) -> Measured {
    let (ranks, model) = simulated(given.clone());
    let record = found(ranks, model, &spec());
    network::parse("again.toml", &network::write(&record.measured)).unwrap()
}

/// The link as the measured sizes show it: a rendezvous from the first of them that is not below it; a gap that the shortest message notices.
fn visible(link: &MeasuredLink, shared: bool) -> MeasuredLink {
    let sizes: Vec<u64> = spec().sizes.iter().map(|body| on_the_wire(*body)).collect();
    let latency = link.passage(sizes[0]) - link.transmission(sizes[0]);
    let rendezvous = link.rendezvous.filter(|rendezvous| rendezvous.bytes > sizes[0] && rendezvous.latency > 0).and_then(|rendezvous| {
        let bytes = *sizes.iter().find(|bytes| **bytes >= rendezvous.bytes)?;
        // Nothing takes less than a tick, so on a link that costs nothing the first may be hidden.
        Some(Rendezvous { bytes, latency: link.passage(bytes) - link.transmission(bytes) - latency })
    });
    MeasuredLink { latency, gap: link.occupancy(sizes[0]), rendezvous, shared, error: 0.0, ..*link }
}

/// Returns true if the exchanges of all at once show whether ranks share a port: if messages meet there. Where the first size of the rendezvous is known only to lie
/// between two sizes, the ranks' barriers are not known to the tick, and the difference has to be more than that.
fn ports_are_told(given: &Measured) -> bool {
    let [own, shared] = [false, true].map(|shared| links::exchanges(given, &spec(), shared).unwrap());
    let is_known = given.between.is_none_or(|link| link.rendezvous == visible(&link, true).rendezvous);
    own.apart(&shared, false) > if is_known { 0.0 } else { 0.02 }
}

/// Returns true if ports were found to be shared.
fn assert_same(given: &Measured, case: &str) -> bool {
    let found = probed(given);
    let ranks = given.hosts.ranks();
    assert_eq!(found.hosts.ranks(), ranks);
    let is_told = ports_are_told(given);
    for (a, b) in RankId::all(ranks).flat_map(|a| (a.get() + 1..ranks).map(move |b| (a, RankId::new(b)))) {
        let same_host = given.hosts.host_of(a) == given.hosts.host_of(b);
        assert_eq!(found.hosts.host_of(a) == found.hosts.host_of(b), same_host, "{case}: ranks {a} and {b}");
        let link = given.link(a, b);
        let shared = if is_told { link.shared && !same_host } else { found.link(a, b).shared };
        let as_measured = |link: &MeasuredLink| MeasuredLink { gap: link.occupancy(on_the_wire(0)), ..*link };
        assert_eq!(as_measured(found.link(a, b)), visible(link, shared), "{case}: ranks {a} and {b} of {given:#?}\n{found:#?}");
    }
    for rank in RankId::all(ranks) {
        let relative = |network: &Measured| {
            let speed = |rank: RankId| network.speeds.get(rank.index()).map_or(1.0, |speed| speed.value());
            speed(rank) / speed(RankId::FIRST)
        };
        assert!((relative(&found) / relative(given) - 1.0).abs() < 1e-5, "{case}: rank {rank}");
    }
    found.between.is_some_and(|link| link.shared)
}

#[test]
fn the_files_of_the_documentation_come_out_as_they_went_in() {
    let page = include_str!("../../../../../docs/networks.md");
    let documented: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!documented.is_empty());
    for text in &documented {
        assert!(assert_same(&network::parse("doc.toml", text).unwrap(), "docs/networks.md"));
    }
    assert!(assert_same(&network::parse("shared.toml", SHARED).unwrap(), "shared"));
    for (from, to) in [
        // Without the rendezvous, with ports of their own, with a rendezvous that is little, early, or for the largest alone.
        ("rendezvous = 65536\nrendezvous_latency = \"40us\"\n", ""),
        ("shared = true\n", ""),
        ("rendezvous = 65536\nrendezvous_latency = \"40us\"", "rendezvous = 60000\nrendezvous_latency = \"1us\""),
        ("rendezvous = 65536", "rendezvous = 1000000"),
        ("rendezvous = 65536", "rendezvous = 39"),
        // Waiting for the port is little of the time, or nearly all of it.
        ("latency = \"21us\"\nper_byte = \"2.7ns\"", "latency = \"3ms\"\nper_byte = \"0.1ns\""),
        ("latency = \"21us\"\nper_byte = \"2.7ns\"", "latency = \"0ns\"\nper_byte = \"20ns\""),
        // A pair that differs little, or by its gap alone.
        ("latency = \"84us\"\nper_byte = \"10.8ns\"", "latency = \"22us\"\nper_byte = \"2.7ns\""),
        ("latency = \"84us\"\nper_byte = \"10.8ns\"", "latency = \"21us\"\ngap = \"3us\"\nper_byte = \"2.7ns\""),
    ] {
        assert!(SHARED.contains(from), "{from}");
        let shared = assert_same(&network::parse("shared.toml", &SHARED.replacen(from, to, 1)).unwrap(), to);
        assert_eq!(shared, !from.contains("shared"), "{to}");
    }
}

fn drawn(rng: &mut ChaCha8Rng) -> Measured {
    let hosts = rng.random_range(1..=5);
    let each: Vec<u32> = (0..hosts).map(|_| rng.random_range(1..=3)).collect();
    let mut names: Vec<String> = each.iter().zip(0..).flat_map(|(ranks, host)| (0..*ranks).map(move |_| format!("h{host}"))).collect();
    // Dealt out in any order, but the first ranks are where they were.
    for at in (1..names.len()).rev() {
        names.swap(at, rng.random_range(1..=at));
    }
    let shared = rng.random();
    let usual = MeasuredLink { shared, ..link(rng) };
    let hosts = Hosts::from_names(&names);
    let mut pairs = BTreeMap::new();
    for low in 0..hosts.count() {
        for high in low + 1..hosts.count() {
            if rng.random_bool(0.2) {
                let MeasuredLink { latency, gap, per_byte, .. } = link(rng);
                pairs.insert((HostId::new(low), HostId::new(high)), MeasuredLink { latency, gap, per_byte, ..usual });
            }
        }
    }
    Measured {
        name: "drawn.toml".into(),
        speeds: names.iter().map(|_| Speed::new(rng.random_range(0.5..2.0)).unwrap()).collect(),
        within: MeasuredLink { shared: false, ..link(rng) },
        between: (hosts.count() > 1).then_some(usual),
        pairs,
        hosts,
    }
}

/// Each figure is drawn evenly over its logarithm. The gap is not above the start-up: a longer one than a round trip would hide it.
fn link(rng: &mut impl Rng) -> MeasuredLink {
    let mut up_to = |most: f64| most.powf(rng.random()) as u64;
    let (latency, gap, per_byte) = (up_to(1e6), up_to(1e4), up_to(1e5));
    let rendezvous = Rendezvous { bytes: 38 + up_to(2e6), latency: up_to(2e5) };
    MeasuredLink {
        latency,
        gap: gap.min(latency),
        per_byte,
        rendezvous: rng.random_bool(0.6).then_some(rendezvous),
        ..MeasuredLink::default()
    }
}

#[test]
fn random_networks_come_out_as_they_went_in() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let shared = (0..60).filter(|case| assert_same(&drawn(&mut rng), &format!("case {case}"))).count();
    assert!((10..40).contains(&shared), "{shared} networks with shared ports are no test");
}
