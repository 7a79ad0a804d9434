//! A measured network as a platform of SimGrid (version 4 of its XML).
//!
//! A host becomes a host with one core per rank. Where all ranks of a host share one port, the port is a link between the host and all
//! others, with half of the start-up; otherwise messages don't compete between hosts. A pair of hosts that differs has a link of its own.

use std::io::{self, Write};

use equipoise::topology::HostId;
use equipoise::transport::sim::{Measured, MeasuredLink};

/// Speed of a rank of speed 1, in SimGrid's unit. Only ratios matter here.
const FLOPS: f64 = 1e9;

/// Writes the platform.
///
/// # Errors
/// If the writer fails.
pub fn platform(out: &mut dyn Write, network: &Measured) -> io::Result<()> {
    writeln!(out, "<?xml version='1.0'?>")?;
    writeln!(out, "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">")?;
    writeln!(out, "<platform version=\"4.1\">\n  <zone id=\"equipoise\" routing=\"Full\">")?;
    let hosts = network.hosts.count();
    let between = network.between.unwrap_or(network.within);
    for host in HostId::all(hosts) {
        let ranks = network.hosts.ranks_on(host);
        let speed = mean_speed(network, host) * FLOPS;
        writeln!(out, "    <host id=\"{}\" speed=\"{speed:.0}f\" core=\"{}\"/>", id(network, host), ranks.len())?;
    }
    for host in HostId::all(hosts) {
        let own = link(&network.within, 1.0);
        writeln!(out, "    <link id=\"within-{host}\" {own} sharing_policy=\"FATPIPE\"/>")?;
        if hosts > 1 && between.shared {
            writeln!(out, "    <link id=\"port-{host}\" {} sharing_policy=\"SPLITDUPLEX\"/>", link(&between, 0.5))?;
        }
    }
    if hosts > 1 && !between.shared {
        writeln!(out, "    <link id=\"between\" {} sharing_policy=\"FATPIPE\"/>", link(&between, 1.0))?;
    }
    for ((low, high), other) in &network.pairs {
        writeln!(out, "    <link id=\"pair-{low}-{high}\" {} sharing_policy=\"SPLITDUPLEX\"/>", link(other, 1.0))?;
    }
    for low in HostId::all(hosts) {
        route(out, network, (low, low), &format!("<link_ctn id=\"within-{low}\"/>"))?;
        for high in HostId::all(hosts).skip(low.index() + 1) {
            let links = match network.pairs.contains_key(&(low, high)) {
                true => format!("<link_ctn id=\"pair-{low}-{high}\" direction=\"UP\"/>"),
                false if between.shared => {
                    format!("<link_ctn id=\"port-{low}\" direction=\"UP\"/><link_ctn id=\"port-{high}\" direction=\"DOWN\"/>")
                }
                false => "<link_ctn id=\"between\"/>".into(),
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

fn link(link: &MeasuredLink, part: f64) -> String {
    // A link without a cost per byte is as fast as SimGrid can say.
    let bandwidth = if link.per_byte == 0 { 1e15 } else { 1e12 / link.per_byte as f64 };
    format!("bandwidth=\"{bandwidth:.0}Bps\" latency=\"{:.3}us\"", link.latency as f64 * part / 1e3)
}

fn mean_speed(network: &Measured, host: HostId) -> f64 {
    let ranks = network.hosts.ranks_on(host);
    let speeds = ranks.iter().map(|rank| network.speeds.get(rank.index()).map_or(1.0, |speed| speed.value()));
    speeds.sum::<f64>() / ranks.len().max(1) as f64
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

    #[test]
    fn hosts_links_and_routes_are_there() {
        let text = "[[host]]\nname=\"a&b\"\nranks=[0,1]\nspeeds=[1.0,0.5]\n[[host]]\nname=\"c\"\nranks=[2]\n[[host]]\nname=\"d\"\nranks=[3]\n\
            [within]\nlatency=\"1us\"\nper_byte=\"0.5ns\"\n[between]\nlatency=\"20us\"\nper_byte=\"10ns\"\nshared=true\n\
            [[pair]]\nhosts=[\"c\",\"d\"]\nlatency=\"80us\"\nper_byte=\"40ns\"\n";
        let mut out = Vec::new();
        platform(&mut out, &network::parse("x.toml", text).unwrap()).unwrap();
        let xml = String::from_utf8(out).unwrap();
        for part in [
            "<host id=\"a&amp;b\" speed=\"750000000f\" core=\"2\"/>",
            "<link id=\"within-0\" bandwidth=\"2000000000Bps\" latency=\"1.000us\" sharing_policy=\"FATPIPE\"/>",
            "<link id=\"port-1\" bandwidth=\"100000000Bps\" latency=\"10.000us\" sharing_policy=\"SPLITDUPLEX\"/>",
            "<link id=\"pair-1-2\" bandwidth=\"25000000Bps\" latency=\"80.000us\" sharing_policy=\"SPLITDUPLEX\"/>",
            "<route src=\"a&amp;b\" dst=\"c\"><link_ctn id=\"port-0\" direction=\"UP\"/><link_ctn id=\"port-1\" direction=\"DOWN\"/></route>",
            "<route src=\"c\" dst=\"d\"><link_ctn id=\"pair-1-2\" direction=\"UP\"/></route>",
        ] {
            assert!(xml.contains(part), "{part}\n{xml}");
        }
        assert_eq!((xml.matches("<host ").count(), xml.matches("<route ").count()), (3, 6));
    }
}
