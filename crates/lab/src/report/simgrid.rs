//! A measured network as a platform of SimGrid (version 4 of its XML).
//!
//! A host becomes a host with one core per rank, of their mean speed. Messages between hosts take a link that they don't compete for, that of all pairs of
//! hosts or the pair's own. Where the ranks of a host share one port to the others, this is a further link on the way of every message, as fast as the
//! fastest of the host's links; otherwise messages don't compete.
//!
//! Comments have the times of a ring exchange in our own simulation, which `scripts/simgrid` compares with SimGrid's.
//!
//! A platform has no gap between messages and no rendezvous, nor ranks of a host that differ: a comment in it names what of that the network has.

use std::io::{self, Write};

use equipoise::node::HEADER_BYTES;
use equipoise::topology::{HostId, RankId};
use equipoise::transport::sim::{self, Measured, MeasuredLink, Rendezvous};

use crate::experiment::probe::Timed;

/// Speed of a rank of speed 1, in SimGrid's unit. Only ratios matter here.
const FLOPS: f64 = 1e9;

/// Writes the platform; `ring` has the times of the [ring exchange](crate::experiment::probe::ring) on it.
///
/// # Errors
/// If the writer fails.
pub fn platform(out: &mut dyn Write, network: &Measured, ring: &[Timed]) -> io::Result<()> {
    writeln!(out, "<?xml version='1.0'?>")?;
    writeln!(out, "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">")?;
    for missing in missing(network) {
        writeln!(out, "<!-- Not in this platform: {missing}. -->")?;
    }
    for Timed { bytes, us } in ring {
        writeln!(out, "<!-- Ring of the hosts, messages of {bytes} bytes: {us} us -->")?;
    }
    writeln!(out, "<platform version=\"4.1\">\n  <zone id=\"equipoise\" routing=\"Full\">")?;
    let hosts = network.hosts.count();
    let between = network.between.unwrap_or(network.within);
    for host in HostId::all(hosts) {
        let ranks = network.hosts.ranks_on(host);
        let speed = mean_speed(network, host) * FLOPS;
        writeln!(out, "    <host id=\"{}\" speed=\"{speed:.0}f\" core=\"{}\"/>", id(network, host), ranks.len())?;
    }
    for host in HostId::all(hosts) {
        writeln!(out, "    <link id=\"within-{host}\" {} sharing_policy=\"FATPIPE\"/>", costs(&network.within))?;
        if hosts > 1 && between.shared {
            let port = bandwidth(fastest(network, host, &between));
            writeln!(out, "    <link id=\"port-{host}\" bandwidth=\"{port:.0}Bps\" latency=\"0us\" sharing_policy=\"SPLITDUPLEX\"/>")?;
        }
    }
    if hosts > 1 {
        writeln!(out, "    <link id=\"between\" {} sharing_policy=\"FATPIPE\"/>", costs(&between))?;
    }
    for ((low, high), other) in &network.pairs {
        writeln!(out, "    <link id=\"pair-{low}-{high}\" {} sharing_policy=\"FATPIPE\"/>", costs(other))?;
    }
    for low in HostId::all(hosts) {
        route(out, network, (low, low), &format!("<link_ctn id=\"within-{low}\"/>"))?;
        for high in HostId::all(hosts).skip(low.index() + 1) {
            let link = match network.pairs.contains_key(&(low, high)) {
                true => format!("<link_ctn id=\"pair-{low}-{high}\"/>"),
                false => "<link_ctn id=\"between\"/>".into(),
            };
            let links = match between.shared {
                true => format!("<link_ctn id=\"port-{low}\" direction=\"UP\"/>{link}<link_ctn id=\"port-{high}\" direction=\"DOWN\"/>"),
                false => link,
            };
            route(out, network, (low, high), &links)?;
        }
    }
    writeln!(out, "  </zone>\n</platform>")
}

fn route(out: &mut dyn Write, network: &Measured, (from, to): (HostId, HostId), links: &str) -> io::Result<()> {
    // A route to itself must not be declared in both directions.
    let symmetrical = if from == to { " symmetrical=\"NO\"" } else { "" };
    writeln!(out, "    <route src=\"{}\" dst=\"{}\"{symmetrical}>{links}</route>", id(network, from), id(network, to))
}

fn costs(link: &MeasuredLink) -> String {
    format!("bandwidth=\"{:.0}Bps\" latency=\"{:.3}us\"", bandwidth(link.per_byte), link.latency as f64 / 1e3)
}

/// Bytes per second.
fn bandwidth(per_byte: u64) -> f64 {
    // A link without a cost per byte is as fast as SimGrid can say.
    if per_byte == 0 { 1e15 } else { 1e12 / per_byte as f64 }
}

/// Picoseconds per byte of the fastest link from this host to others.
fn fastest(network: &Measured, host: HostId, between: &MeasuredLink) -> u64 {
    let others = HostId::all(network.hosts.count()).filter(|other| *other != host);
    let link = |other: HostId| network.pairs.get(&(host.min(other), host.max(other))).unwrap_or(between).per_byte;
    others.map(link).min().unwrap_or(between.per_byte)
}

/// Properties of the network that a platform can't express.
fn missing(network: &Measured) -> Vec<String> {
    let mut all = Vec::new();
    let links = [("within hosts", Some(&network.within)), ("between hosts", network.between.as_ref())];
    for (kind, link) in links.into_iter().filter_map(|(kind, link)| Some((kind, link?))) {
        // A gap that is over when an empty message has left makes no difference.
        if link.gap > link.transmission(HEADER_BYTES) {
            all.push(format!("the gap of {} between two messages of a rank {kind}", sim::format_ticks(link.gap)));
        }
        if let Some(Rendezvous { bytes, latency }) = link.rendezvous {
            all.push(format!("{} more for a message {kind} from {bytes} bytes on (rendezvous)", sim::format_ticks(latency)));
        }
    }
    let differs = |host: HostId| {
        network.hosts.ranks_on(host).iter().any(|rank| (speed(network, *rank) / mean_speed(network, host) - 1.0).abs() > 1e-6)
    };
    if HostId::all(network.hosts.count()).any(differs) {
        all.push("the different speeds of a host's ranks; its speed is their mean".into());
    }
    all
}

fn speed(network: &Measured, rank: RankId) -> f64 {
    network.speeds.get(rank.index()).map_or(1.0, |speed| speed.value())
}

fn mean_speed(network: &Measured, host: HostId) -> f64 {
    let ranks = network.hosts.ranks_on(host);
    ranks.iter().map(|rank| speed(network, *rank)).sum::<f64>() / ranks.len().max(1) as f64
}

/// A host's name, as an attribute of XML.
fn id(network: &Measured, host: HostId) -> String {
    let escaped = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        c => c.to_string(),
    };
    network.hosts.name(host).chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::network;

    const CLUSTER: &str = "[[host]]\nname=\"a&b\"\nranks=[0,1]\nspeeds=[1.0,0.5]\n[[host]]\nname=\"c\"\nranks=[2]\n[[host]]\nname=\"d\"\nranks=[3]\n\
        [within]\nlatency=\"1us\"\ngap=\"150ns\"\nper_byte=\"0.5ns\"\n[between]\nlatency=\"20us\"\nper_byte=\"10ns\"\nshared=true\n\
        rendezvous=65536\nrendezvous_latency=\"40us\"\n[[pair]]\nhosts=[\"c\",\"d\"]\nlatency=\"80us\"\nper_byte=\"40ns\"\n";

    fn xml(text: &str) -> String {
        let mut out = Vec::new();
        platform(&mut out, &network::parse("x.toml", text).unwrap(), &[Timed { bytes: 64, us: 20.5 }]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hosts_links_and_routes_are_there() {
        let xml = xml(CLUSTER);
        for part in [
            "<!-- Ring of the hosts, messages of 64 bytes: 20.5 us -->\n<platform ",
            "<host id=\"a&amp;b\" speed=\"750000000f\" core=\"2\"/>",
            "<link id=\"within-0\" bandwidth=\"2000000000Bps\" latency=\"1.000us\" sharing_policy=\"FATPIPE\"/>",
            "<link id=\"port-1\" bandwidth=\"100000000Bps\" latency=\"0us\" sharing_policy=\"SPLITDUPLEX\"/>",
            "<link id=\"between\" bandwidth=\"100000000Bps\" latency=\"20.000us\" sharing_policy=\"FATPIPE\"/>",
            "<link id=\"pair-1-2\" bandwidth=\"25000000Bps\" latency=\"80.000us\" sharing_policy=\"FATPIPE\"/>",
            "<route src=\"a&amp;b\" dst=\"c\"><link_ctn id=\"port-0\" direction=\"UP\"/><link_ctn id=\"between\"/><link_ctn id=\"port-1\" direction=\"DOWN\"/></route>",
            "<route src=\"c\" dst=\"d\"><link_ctn id=\"port-1\" direction=\"UP\"/><link_ctn id=\"pair-1-2\"/><link_ctn id=\"port-2\" direction=\"DOWN\"/></route>",
        ] {
            assert!(xml.contains(part), "{part}\n{xml}");
        }
        assert_eq!((xml.matches("<host ").count(), xml.matches("<route ").count()), (3, 6));
    }

    #[test]
    fn a_port_is_as_fast_as_the_fastest_link_of_its_host() {
        let xml = xml(&CLUSTER.replace("40ns", "1ns"));
        let ports = [100_000_000, 1_000_000_000, 1_000_000_000];
        for (host, bandwidth) in ports.into_iter().enumerate() {
            assert!(xml.contains(&format!("<link id=\"port-{host}\" bandwidth=\"{bandwidth}Bps\"")), "{xml}");
        }
    }

    /// As in the simulator: a rank waits for no other of its host.
    #[test]
    fn without_shared_ports_nothing_competes() {
        let xml = xml(&CLUSTER.replace("shared=true\n", ""));
        assert!(xml.matches("<link ").count() == 5 && xml.matches("FATPIPE").count() == 5 && !xml.contains("port-"), "{xml}");
        assert!(xml.contains("<route src=\"c\" dst=\"d\"><link_ctn id=\"pair-1-2\"/></route>"), "{xml}");
    }

    #[test]
    fn what_a_platform_cannot_say_is_named_in_it() {
        let missing = |text: &str| {
            xml(text).lines().filter_map(|line| line.strip_prefix("<!-- Not in this platform: ").map(String::from)).collect::<Vec<_>>()
        };
        assert_eq!(
            missing(CLUSTER),
            [
                "the gap of 150ns between two messages of a rank within hosts. -->",
                "40us more for a message between hosts from 65536 bytes on (rendezvous). -->",
                "the different speeds of a host's ranks; its speed is their mean. -->",
            ]
        );
        let plain = CLUSTER.replace("gap=\"150ns\"\n", "").replace("[1.0,0.5]", "[0.5,0.5]");
        assert_eq!(missing(&plain.replace("rendezvous=65536\nrendezvous_latency=\"40us\"\n", "")), Vec::<String>::new());
    }
}
