//! Descriptions of measured networks: `--network FILE.toml`, as `equipoise probe --write` makes them.
//!
//! ```toml
//! [[host]]
//! name = "h1"
//! ranks = [0, 1]
//! speeds = [1.0, 0.98]      # of its ranks, relative to each other; 1 if left out
//! rack = "r1"               # hosts that are near each other name the same; all hosts have a rack, or none
//!
//! [[host]]
//! name = "h2"
//! ranks = [2, 3]
//!
//! [within]                  # between ranks of one host
//! latency = "600ns"         # start-up of a message
//! gap = "150ns"             # minimum time between two messages of one sender
//! per_byte = "0.4ns"
//! error = 0.03              # relative error of this model
//!
//! [between]                 # between ranks of different hosts
//! latency = "21us"
//! per_byte = "2.7ns"
//! rendezvous = 65536        # from this size in bytes on, a message asks its receiver first,
//! rendezvous_latency = "40us" # which takes so long
//! shared = true             # all ranks of a host share one port to the others
//!
//! [[pair]]                  # a pair of hosts that differs
//! hosts = ["h1", "h2"]
//! latency = "84us"
//! per_byte = "10.8ns"
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use equipoise::names;
use equipoise::spec::{InvalidSpec, Mistake};
use equipoise::topology::{HostId, Hosts, RankId};
use equipoise::transport::sim::{self, Measured, MeasuredLink, Rendezvous, Speed};
use equipoise::{Error, Result};
use serde::Deserialize;
use toml::Spanned;

use super::text;

/// Suffix of such files' names.
const SUFFIX: &str = ".toml";
const PER_TICK: u64 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    host: Vec<Spanned<HostEntry>>,
    within: Option<Spanned<LinkEntry>>,
    between: Option<Spanned<LinkEntry>>,
    #[serde(default)]
    pair: Vec<Spanned<PairEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    name: Spanned<String>,
    ranks: Spanned<Vec<RankId>>,
    speeds: Option<Spanned<Vec<f64>>>,
    rack: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    latency: Spanned<String>,
    gap: Option<Spanned<String>>,
    per_byte: Spanned<String>,
    rendezvous: Option<u64>,
    rendezvous_latency: Option<Spanned<String>>,
    shared: Option<bool>,
    error: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairEntry {
    hosts: Spanned<Vec<String>>,
    latency: Spanned<String>,
    gap: Option<Spanned<String>>,
    per_byte: Spanned<String>,
}

/// Returns true if `--network` names a file (`-` for standard input) and not a model.
pub fn is_file(option: &str) -> bool {
    text::is_standard_input(Path::new(option)) || option.ends_with(SUFFIX) && !option.contains(':')
}

/// The model that `--network` names.
///
/// # Errors
/// Wrong usage if the name is unknown (the sentence lists what there is, files included), or its options are wrong.
pub fn model(option: &str) -> Result<sim::Network> {
    let with_files = |mut why: InvalidSpec| {
        if let Mistake::UnknownName { known } = &mut why.mistake {
            known.push("FILE.toml (- for standard input)".into());
        }
        why.into()
    };
    sim::Network::parse(option).map_err(with_files)
}

/// The network that a file describes.
///
/// # Errors
/// Wrong usage, in one sentence with the line, if the file can't be read or is not such a description.
pub fn read(name: &str) -> Result<Measured> {
    let path = names::path(name);
    let shown = names::shown(&path);
    let text =
        text::read(Path::new(&path)).map_err(|why| Error::unreadable("network", format!(" {shown}: the file cannot be read"), why))?;
    parse(&shown, &text)
}

/// The network that a text describes; `name` is that of its file.
///
/// # Errors
/// As [`read`].
pub fn parse(name: &str, text: &str) -> Result<Measured> {
    let reader = Reader { name, text };
    let description: Description = toml::from_str(text).map_err(|why| match why.span() {
        Some(span) => reader.mistake(span.start, why.message()),
        None => Error::input("network", format!(" {name}: {}", why.message())),
    })?;
    reader.measured(&description)
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn mistake(&self, at: usize, why: &str) -> Error {
        let before = self.text.get(..at.min(self.text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Error::input("network", format!(" {}, line {line}: {why}", self.name))
    }

    fn at<T>(&self, place: &Spanned<T>, why: &str) -> Error {
        self.mistake(place.span().start, why)
    }

    fn measured(&self, description: &Description) -> Result<Measured> {
        let (host_of, speeds) = self.ranks(&description.host)?;
        let hosts = Hosts::from_names(&host_of);
        let racks = self.racks(&description.host, &hosts)?;
        let hosts = hosts.with_racks(&racks);
        let within = description.within.as_ref().map(|link| self.link(link.get_ref())).transpose()?;
        let between = description.between.as_ref().map(|link| self.link(link.get_ref())).transpose()?;
        let number = |name: &String| hosts.names().iter().position(|known| known == name).map(|host| HostId::new(host as u32));
        let mut pairs = BTreeMap::new();
        for pair in &description.pair {
            let pair = pair.get_ref();
            let names = pair.hosts.get_ref();
            let known: Vec<HostId> = names.iter().filter_map(number).collect();
            let (low, high) = match (&names[..], &known[..]) {
                ([_, _], [a, b]) if a != b => (*a.min(b), *a.max(b)),
                _ => return Err(self.at(&pair.hosts, "hosts are the names of two different hosts of this file")),
            };
            let usual = between.unwrap_or_default();
            let gap = pair.gap.as_ref().map(|gap| self.ticks("gap", gap)).transpose()?.unwrap_or(usual.gap);
            let (latency, per_byte) = (self.ticks("latency", &pair.latency)?, self.per_byte(&pair.per_byte)?);
            if pairs.insert((low, high), MeasuredLink { latency, gap, per_byte, ..usual }).is_some() {
                return Err(self.at(&pair.hosts, "this pair of hosts is given twice"));
            }
        }
        if hosts.count() > 1 && between.is_none() {
            return Err(Error::input("network", format!(" {}: there are several hosts, but no [between]", self.name)));
        }
        // With one rank on each host nothing is known of links within, and nothing needs to be.
        let crowded = HostId::all(hosts.count()).find(|host| hosts.ranks_on(*host).len() > 1);
        let within = match (within, between, crowded) {
            (Some(within), ..) => within,
            (None, Some(between), None) => between,
            (None, _, crowded) => {
                let on = crowded.map_or_else(|| "a host".to_string(), |host| format!("host {}", hosts.name(host)));
                return Err(Error::input("network", format!(" {}: [within] is missing: what messages cost on {on}", self.name)));
            }
        };
        Ok(Measured { name: self.name.to_string(), hosts, speeds, within: MeasuredLink { shared: false, ..within }, between, pairs })
    }

    /// The host's name and the speed of each rank.
    fn ranks(&self, entries: &[Spanned<HostEntry>]) -> Result<(Vec<String>, Vec<Speed>)> {
        let mut of_rank: BTreeMap<RankId, (String, Speed)> = BTreeMap::new();
        let mut known: Vec<&String> = Vec::new();
        for entry in entries {
            let HostEntry { name, ranks, speeds, .. } = entry.get_ref();
            if name.get_ref().is_empty() || known.contains(&name.get_ref()) {
                return Err(self.at(name, "every host needs a name of its own"));
            }
            known.push(name.get_ref());
            if let Some(speeds) = speeds
                && speeds.get_ref().len() != ranks.get_ref().len()
            {
                let (found, needed) = (speeds.get_ref().len(), ranks.get_ref().len());
                return Err(self.at(speeds, &format!("there are {found} speeds for the {needed} ranks of the host")));
            }
            for (place, rank) in ranks.get_ref().iter().enumerate() {
                let speed = match speeds {
                    Some(speeds) => {
                        let speed = speeds.get_ref()[place];
                        Speed::new(speed).map_err(|_| self.at(speeds, &format!("a speed is from 0.000001 to 10^12, not {speed}")))?
                    }
                    None => Speed::default(),
                };
                if of_rank.insert(*rank, (name.get_ref().clone(), speed)).is_some() {
                    return Err(self.at(ranks, &format!("rank {rank} is on two hosts, or twice on one")));
                }
            }
        }
        if of_rank.is_empty() {
            return Err(Error::input("network", format!(" {}: no [[host]] has ranks", self.name)));
        }
        if let Some(missing) = (0..).map(RankId::new).zip(of_rank.keys()).find_map(|(rank, known)| (rank != *known).then_some(rank)) {
            return Err(Error::input("network", format!(" {}: rank {missing} is on no host", self.name)));
        }
        Ok(of_rank.into_values().unzip())
    }

    /// A number for each host; hosts of the same rack have the same.
    fn racks(&self, entries: &[Spanned<HostEntry>], hosts: &Hosts) -> Result<Vec<u32>> {
        let entries = entries.iter().map(Spanned::get_ref);
        let named: BTreeMap<&str, &Spanned<String>> =
            entries.clone().filter_map(|entry| Some((entry.name.get_ref().as_str(), entry.rack.as_ref()?))).collect();
        let without = entries.filter(|entry| entry.rack.is_none()).count();
        if let (Some((_, place)), 1..) = (named.first_key_value(), without) {
            return Err(self.at(place, "either all hosts have a rack, or none"));
        }
        let mut known: Vec<&str> = Vec::new();
        let mut number = |host: &String| {
            let rack = named.get(host.as_str()).map_or("", |rack| rack.get_ref().as_str());
            known.iter().position(|known| *known == rack).unwrap_or_else(|| {
                known.push(rack);
                known.len() - 1
            }) as u32
        };
        Ok(hosts.names().iter().map(&mut number).collect())
    }

    fn link(&self, entry: &LinkEntry) -> Result<MeasuredLink> {
        let error = entry.error.as_ref().map_or(0.0, |error| *error.get_ref());
        if !(0.0..=1e6).contains(&error)
            && let Some(place) = &entry.error
        {
            return Err(self.at(place, &format!("error is a number, 0 or more, not {error}")));
        }
        let rendezvous = match (entry.rendezvous, &entry.rendezvous_latency) {
            (None, None) => None,
            (Some(bytes), Some(latency)) => Some(Rendezvous { bytes, latency: self.ticks("rendezvous_latency", latency)? }),
            (_, _) => return Err(self.at(&entry.latency, "rendezvous and rendezvous_latency belong together")),
        };
        Ok(MeasuredLink {
            latency: self.ticks("latency", &entry.latency)?,
            gap: entry.gap.as_ref().map(|gap| self.ticks("gap", gap)).transpose()?.unwrap_or(0),
            per_byte: self.per_byte(&entry.per_byte)?,
            rendezvous,
            shared: entry.shared.unwrap_or(false),
            error,
        })
    }

    fn ticks(&self, key: &str, given: &Spanned<String>) -> Result<u64> {
        let whole = sim::parse_duration(given.get_ref()).filter(|picoseconds| picoseconds % PER_TICK == 0);
        let mistake =
            || format!("{key} is a whole number of nanoseconds, such as \"20us\" (units ns, us, ms, s), not \"{}\"", given.get_ref());
        whole.map(|picoseconds| picoseconds / PER_TICK).ok_or_else(|| self.at(given, &mistake()))
    }

    fn per_byte(&self, given: &Spanned<String>) -> Result<u64> {
        let mistake =
            || format!("per_byte is a time such as \"2.7ns\" (units ps, ns, us, ms, s; at least 1ps), not \"{}\"", given.get_ref());
        sim::parse_duration(given.get_ref()).ok_or_else(|| self.at(given, &mistake()))
    }
}

/// The description of a network, as [`parse`] reads it.
pub fn write(network: &Measured) -> String {
    let mut out = String::from("# A measured network: read by `equipoise .. --sim RANKS --network FILE.toml` and `equipoise advise`.\n");
    // Basic strings of TOML are written as JSON writes its own.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    for (host, name) in HostId::all(network.hosts.count()).zip(network.hosts.names()) {
        let ranks = network.hosts.ranks_on(host);
        let _ = writeln!(out, "\n[[host]]\nname = {}\nranks = {ranks:?}", quoted(name));
        if !network.speeds.is_empty() {
            let speeds: Vec<f64> = ranks.iter().map(|rank| network.speeds[rank.index()].value()).collect();
            let _ = writeln!(out, "speeds = {speeds:?}");
        }
        if network.hosts.racks() > 1 {
            let _ = writeln!(out, "rack = \"r{}\"", network.hosts.rack_of(host).get() + 1);
        }
    }
    for (title, link) in [("within", Some(network.within)), ("between", network.between)] {
        let Some(link) = link else { continue };
        let _ = writeln!(out, "\n[{title}]\n{}", costs(&link));
        if let Some(Rendezvous { bytes, latency }) = link.rendezvous {
            let _ = writeln!(out, "rendezvous = {bytes}\nrendezvous_latency = \"{}\"", sim::format_ticks(latency));
        }
        if link.shared {
            out.push_str("shared = true\n");
        }
        let _ = writeln!(out, "error = {:.4}", link.error);
    }
    for ((low, high), link) in &network.pairs {
        let (low, high) = (quoted(network.hosts.name(*low)), quoted(network.hosts.name(*high)));
        let _ = writeln!(out, "\n[[pair]]\nhosts = [{low}, {high}]\n{}", costs(link));
    }
    out
}

fn costs(link: &MeasuredLink) -> String {
    let (latency, gap) = (sim::format_ticks(link.latency), sim::format_ticks(link.gap));
    format!("latency = \"{latency}\"\ngap = \"{gap}\"\nper_byte = \"{}\"", sim::format_duration(link.per_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = r#"
[[host]]
name = "h1"
ranks = [0, 2]
speeds = [1.0, 0.5]

[[host]]
name = "h 2"
ranks = [1, 3]

[within]
latency = "600ns"
per_byte = "0.4ns"

[between]
latency = "21us"
gap = "1us"
per_byte = "2.7ns"
rendezvous = 65536
rendezvous_latency = "40us"
shared = true
error = 0.125

[[pair]]
hosts = ["h 2", "h1"]
latency = "84us"
per_byte = "10.8ns"
"#;

    #[test]
    fn a_description_is_read_and_written() {
        let network = parse("x.toml", CLUSTER).unwrap();
        assert_eq!(network.hosts.names(), ["h1", "h 2"]);
        assert!(RankId::all(4).map(|rank| network.hosts.host_of(rank).get()).eq([0, 1, 0, 1]));
        assert_eq!(network.speeds[2], Speed::new(0.5).unwrap());
        assert_eq!((network.within.latency, network.within.per_byte, network.within.shared), (600, 400, false));
        let between = network.between.unwrap();
        assert_eq!((between.latency, between.gap, between.per_byte, between.shared, between.error), (21_000, 1_000, 2_700, true, 0.125));
        assert_eq!(between.rendezvous, Some(Rendezvous { bytes: 65536, latency: 40_000 }));
        let pair = network.pairs[&(HostId::FIRST, HostId::new(1))];
        assert_eq!((pair.latency, pair.gap, pair.per_byte), (84_000, 1_000, 10_800));
        assert_eq!(parse("x.toml", &write(&network)).unwrap(), network);
    }

    #[test]
    fn racks_are_read_and_written() {
        let racked = CLUSTER.replacen("ranks = [0, 2]", "ranks = [0, 2]\nrack = \"b 1\"", 1);
        let said = |text: &str| parse("x.toml", text).unwrap_err().to_string();
        assert_eq!(said(&racked), "network x.toml, line 5: either all hosts have a rack, or none");
        let racked = racked.replacen("ranks = [1, 3]", "ranks = [1, 3]\nrack = \"a\"", 1);
        let network = parse("x.toml", &racked).unwrap();
        assert!(HostId::all(2).map(|host| network.hosts.rack_of(host).get()).eq([0, 1]));
        assert_eq!(parse("x.toml", &write(&network)).unwrap(), network);
        // A file of one rack is that of none.
        let one = parse("x.toml", &racked.replacen("\"a\"", "\"b 1\"", 1)).unwrap();
        assert_eq!(one, parse("x.toml", CLUSTER).unwrap());
        assert!(!write(&one).contains("rack"));
    }

    #[test]
    fn one_host_needs_no_link_between() {
        let text = "[[host]]\nname=\"a\"\nranks=[0,1]\n[within]\nlatency=\"1us\"\nper_byte=\"1ns\"\n";
        let network = parse("x.toml", text).unwrap();
        assert_eq!((network.between, network.hosts.count(), network.within.gap), (None, 1, 0));
        assert_eq!(parse("x.toml", &write(&network)).unwrap(), network);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |from: &str, to: &str| {
            assert!(CLUSTER.contains(from), "{from}");
            parse("x.toml", &CLUSTER.replacen(from, to, 1)).map_or_else(|why| why.to_string(), |_| String::new())
        };
        for (from, to, sentence) in [
            (
                "\"21us\"",
                "\"21\"",
                ", line 16: latency is a whole number of nanoseconds, such as \"20us\" (units ns, us, ms, s), not \"21\"",
            ),
            (
                "\"2.7ns\"",
                "\"-1ns\"",
                ", line 18: per_byte is a time such as \"2.7ns\" (units ps, ns, us, ms, s; at least 1ps), not \"-1ns\"",
            ),
            ("name = \"h 2\"", "name = \"h1\"", ", line 8: every host needs a name of its own"),
            ("ranks = [1, 3]", "ranks = [1, 2]", ", line 9: rank 2 is on two hosts, or twice on one"),
            ("ranks = [1, 3]", "ranks = [1, 4]", ": rank 3 is on no host"),
            ("[1.0, 0.5]", "[1.0]", ", line 5: there are 1 speeds for the 2 ranks of the host"),
            ("[1.0, 0.5]", "[1.0, -0.5]", ", line 5: a speed is from 0.000001 to 10^12, not -0.5"),
            ("[1.0, 0.5]", "[1.0, nan]", ", line 5: a speed is from 0.000001 to 10^12, not NaN"),
            ("0.125", "-0.1", ", line 22: error is a number, 0 or more, not -0.1"),
            ("[\"h 2\", \"h1\"]", "[\"h1\", \"h9\"]", ", line 25: hosts are the names of two different hosts of this file"),
            ("rendezvous = 65536\n", "", ", line 16: rendezvous and rendezvous_latency belong together"),
        ] {
            assert_eq!(said(from, to), format!("network x.toml{sentence}"));
        }
        let unknown = said("gap = \"1us\"", "gab = \"1us\"");
        assert!(unknown.starts_with("network x.toml, line 17: unknown field `gab`") && !unknown.contains('\n'), "{unknown}");
        assert!(said("ranks = [0, 2]", "ranks = [0, -2]").starts_with("network x.toml, line 4: "));
        let said = |text: &str| parse("x.toml", text).unwrap_err().to_string();
        assert_eq!(said(""), "network x.toml: no [[host]] has ranks");
        assert!(said("[[host]\nname").starts_with("network x.toml, line 1: "), "{}", said("[[host]\nname"));
        let hosts = "[[host]]\nname=\"a\"\nranks=[0]\n";
        assert_eq!(said(hosts), "network x.toml: [within] is missing: what messages cost on a host");
        let crowded = format!("{hosts}[[host]]\nname=\"b\"\nranks=[1,2]\n[between]\nlatency=\"1us\"\nper_byte=\"1ns\"\n");
        assert_eq!(said(&crowded), "network x.toml: [within] is missing: what messages cost on host b");
        assert_eq!(parse("x.toml", &crowded.replace("[1,2]", "[1]")).unwrap().within.latency, 1_000);
        let two = format!("{hosts}[[host]]\nname=\"b\"\nranks=[1]\n[within]\nlatency=\"1us\"\nper_byte=\"1ns\"\n");
        assert_eq!(said(&two), "network x.toml: there are several hosts, but no [between]");
    }

    #[test]
    fn models_are_no_files() {
        assert!(is_file("cluster.toml") && is_file("/a/b.toml"));
        assert!(is_file("-") && !is_file("-x") && !is_file("hops:-"));
        assert_eq!(
            model("mesh").unwrap_err().to_string(),
            "network 'mesh' is unknown; known are zero, switched, hops, FILE.toml (- for standard input)"
        );
        assert_eq!(model("zero"), Ok(sim::Network::Zero));
        assert!(!is_file("switched") && !is_file("zero") && !is_file("hops:latency=1us"));
    }
}
