//! Reports of probes for people: tables, sentences, and a page with pictures.

use std::io::{self, Write};

use equipoise::topology::HostId;

use super::chart::{self, Bar, Bars};
use super::columns::link_kind;
use super::figures::{bytes, duration_us, ratio, several, three};
use super::heat::{self, Heat};
use super::html::{CaptionedChart, Page, Section, Table, Timed as Picture, circumstances, page};
use super::table::{lines, of, place};
use crate::experiment::probe::Timed;
use crate::experiment::{Environment, ProbeRecord};

/// Report of a probe as text, for a width in characters.
pub fn text(record: &ProbeRecord, width: u16) -> String {
    let mut out = format!("{}; {}\n\n", place(&record.site), several(record.rounds.into(), "round"));
    if !record.links.is_empty() {
        out.push_str(&lines(&of(&record.links, width)));
        out.push('\n');
    }
    for sentence in sentences(record) {
        out.push_str(&format!("{sentence}\n"));
    }
    if let Some(interruption) = &record.interrupted {
        out.push_str(&format!("{}\n", interruption.sentence("rounds")));
    }
    out.push_str(&format!("{}\n", verdict(record)));
    out
}

fn sentences(record: &ProbeRecord) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(racks) = &record.racks {
        let names = |rack: &Vec<HostId>| rack.iter().map(|host| record.host_names[host.index()].as_str()).collect::<Vec<_>>().join(" ");
        all.push(format!("Racks by distance: {}.", racks.iter().map(names).collect::<Vec<_>>().join("; ")));
    }
    let (low, high) = range(&record.speeds);
    all.push(match record.speeds.len() {
        1 => "One rank: there is nothing to compare its speed with.".to_string(),
        _ if low == high => "All ranks compute at the same speed.".to_string(),
        _ => format!("Ranks compute at {} to {} times the mean speed.", three(low), three(high)),
    });
    if let Some(cores) = record.cores_per_rank.filter(|cores| *cores < 1.0) {
        all.push(format!("Ranks share cores: {} for each, so that what is measured includes waiting for a core.", three(cores)));
    }
    if !record.all_reduce.is_empty() && record.ranks > 1 {
        let one = |timed: &Timed| format!("{} for {}", duration_us(timed.us), bytes(timed.bytes));
        all.push(format!("An all-reduce takes {}.", record.all_reduce.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    if let Some(contention) = record.contention {
        let who = if record.hosts.len() > 1 { "all ranks exchange with other hosts" } else { "all ranks exchange in pairs" };
        all.push(format!("When {who} at once, 64 KiB each way take {} times as long as alone.", ratio(contention)));
    }
    let (low, high) = range(&record.clock_offset_us);
    if high > low {
        all.push(format!("Clocks differ by up to {}.", duration_us(high - low)));
    }
    all
}

/// Slow parts, in one sentence.
pub fn verdict(record: &ProbeRecord) -> String {
    let slow = |slow: &crate::experiment::probe::verdict::Slow| {
        let factor = three(slow.factor);
        let percent = three(100.0 * (1.0 - 1.0 / slow.factor));
        match (&slow.host, slow.rank, &slow.link) {
            (Some(host), ..) => format!("host {host} computes {percent} % slower than the others ({factor} times as long)"),
            (_, Some(rank), _) => {
                let on = record.hosts.iter().zip(&record.host_names).find(|(ranks, _)| ranks.contains(&rank) && record.hosts.len() > 1);
                let on = on.map_or(String::new(), |(_, host)| format!(" on host {host}"));
                format!("rank {rank}{on} computes {percent} % slower than the others ({factor} times as long)")
            }
            (_, _, Some(link)) if link.contains('-') && !record.host_names.contains(link) => {
                format!("the link {link} takes {factor} times as long as the others")
            }
            (_, _, link) => format!("the link to {} takes {factor} times as long as the others", link.as_deref().unwrap_or("a host")),
        }
    };
    let one_link = match record.hosts.len() {
        2 => "; the link between the two hosts has nothing to be compared with",
        _ => "",
    };
    let alarm = format!("a false alarm has a probability of at most {} %", three(100.0 * record.false_alarms));
    match &record.slow[..] {
        _ if record.ranks < 2 => "Verdict: none, since one rank has nothing to be compared with.".into(),
        _ if record.rounds < record.rounds_needed => format!("Verdict: none, since it takes {} rounds.", record.rounds_needed),
        [] => format!("Verdict: nothing is slow ({alarm}){one_link}."),
        found => format!("Verdict: {} ({alarm}){one_link}.", found.iter().map(slow).collect::<Vec<_>>().join("; ")),
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// The times of messages by size, in the form of the OSU micro-benchmarks' tables.
pub fn osu(record: &ProbeRecord) -> String {
    let mut out = String::new();
    for link in &record.links {
        let between = link_kind(link);
        out.push_str(&format!("# Equipoise latency test, {between} (as osu_latency)\n# Size          Latency (us)\n"));
        link.sizes.iter().for_each(|timed| out.push_str(&format!("{:<10}{:>18.2}\n", timed.bytes, timed.us)));
        out.push_str(&format!("\n# Equipoise bandwidth, {between} (as osu_bw, one message at a time)\n# Size      Bandwidth (MB/s)\n"));
        let rated = link.sizes.iter().filter(|timed| timed.bytes > 0);
        rated.for_each(|timed| out.push_str(&format!("{:<10}{:>18.2}\n", timed.bytes, timed.bytes as f64 / timed.us.max(1e-3))));
        out.push('\n');
    }
    if record.ranks > 1 && !record.all_reduce.is_empty() {
        out.push_str("# Equipoise all-reduce latency test (as osu_allreduce)\n# Size       Avg Latency(us)\n");
        record.all_reduce.iter().for_each(|timed| out.push_str(&format!("{:<10}{:>18.2}\n", timed.bytes, timed.us)));
    }
    out
}

/// Writes the page.
///
/// # Errors
/// If the writer fails.
pub fn html(out: &mut dyn Write, environment: &Environment, record: &ProbeRecord) -> io::Result<()> {
    let environment = circumstances(environment, &record.site, Some(several(record.rounds.into(), "round")));
    let says = sentences(record).join(" ");
    let section = Section {
        title: "Links and ranks".into(),
        says,
        charts: if record.speeds.len() <= heat::MOST { vec![speeds(record)] } else { Vec::new() },
        wide: pictures(record),
        table: Table::of(&record.links),
        table_says: "The model of each kind of link: a message takes the start-up and its bytes over the bandwidth.".into(),
        ..Section::default()
    };
    let title = format!("Probe of {}", place(&record.site));
    let interrupted = record.interrupted.as_ref().map(|interruption| format!("{} ", interruption.sentence("rounds")));
    let summary = format!("{}{}", interrupted.unwrap_or_default(), verdict(record));
    page(out, &Page { title, summary, environment, sections: vec![section], nodes: Table::default() })
}

fn speeds(record: &ProbeRecord) -> CaptionedChart {
    let bar = |(rank, speed): (usize, &f64)| Bar {
        name: format!("rank {rank}"),
        parts: vec![(*speed, "plain")],
        label: three(*speed),
        ..Bar::default()
    };
    let chart = Bars {
        title: "speed by rank",
        axis: "speed (1 is the mean)",
        rows: record.speeds.iter().enumerate().map(bar).collect(),
        reference: Some((1.0, "mean")),
    };
    CaptionedChart {
        heading: "Speed",
        says: "From the time of a fixed kernel on all ranks at once.".into(),
        legend: Vec::new(),
        svg: chart::bars(&chart),
    }
}

/// Heat maps: latency between ranks, latency and bandwidth between hosts.
fn pictures(record: &ProbeRecord) -> Vec<Picture> {
    let mut pictures = Vec::new();
    let ranks: Vec<String> = (0..record.ranks).map(|rank| rank.to_string()).collect();
    let mut add = |title: &str, names: &[String], cells: Vec<(u32, u32, f64)>, cell: fn(f64) -> String| {
        if names.len() <= heat::MOST
            && let Some((svg, says)) = heat::map(&Heat { title, names, cells: &cells, cell })
        {
            pictures.push(Picture { title: title.into(), says, svg });
        }
    };
    add("Latency between ranks", &ranks, record.latencies.clone(), duration_us);
    let hosts = |which: fn(&(u32, u32, f64, f64)) -> f64| record.host_links.iter().map(|link| (link.0, link.1, which(link))).collect();
    add("Latency between hosts", &record.host_names, hosts(|link| link.2), duration_us);
    add("Bandwidth between hosts, messages of 64 KiB", &record.host_names, hosts(|link| link.3), |rate| {
        format!("{}/s", bytes(rate as u64))
    });
    pictures
}
