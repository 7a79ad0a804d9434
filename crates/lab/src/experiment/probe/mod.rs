//! `probe`: what the network and the ranks are like, measured with the messages and the computing that programs use.
//!
//! Everything is measured once in each of a number of rounds, so that drift of the machine affects all alike: a fixed kernel on all ranks at once;
//! an empty message between all pairs of ranks, and of hosts, in [rounds] of disjoint pairs; messages of many sizes within a host and between two,
//! from which the [model of the link](fit) follows; all pairs of hosts at once; reductions over all ranks. Of several tries the shortest counts, of
//! rounds the median. What stands out in nearly all rounds is [named](verdict).

pub mod fit;
mod program;
pub mod rounds;
pub mod verdict;

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use equipoise::agreement::one_node_per_rank;
use equipoise::node;
use equipoise::topology::{HostId, Hosts, RankId};
use equipoise::transport::sim::{Measured, MeasuredLink, Speed};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use serde::Serialize;

use super::cores;
use super::site::Site;
use fit::median;
pub use program::ProbeSpec;
use program::{HostTimes, LARGE, LinkTimes, RankTimes, RanksByHost, on_the_wire};
use verdict::{Slow, SlowLink};

/// More ranks are refused: every rank is measured against up to 64 others.
pub const MOST_RANKS: u32 = 4_096;
/// Latencies between ranks are kept for the picture up to this number.
const MOST_DRAWN: usize = 64;
/// Factor between measured and modelled times of messages, either way, from which on a pair of hosts is described by itself.
const APART: f64 = 1.5;

/// Result of a probe. Serialised, it is the output of `probe --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeRecord {
    pub ranks: u32,
    /// The ranks of each host.
    pub hosts: Vec<Vec<RankId>>,
    pub host_names: Vec<String>,
    /// The model of the simulated network; `None` on real ranks.
    pub network: Option<String>,
    pub rounds: u32,
    /// Number of rounds that a verdict takes.
    pub rounds_needed: u32,
    pub links: Vec<LinkRecord>,
    /// Speed by rank, 1 on average.
    pub speeds: Vec<f64>,
    /// Slow parts: a host, a rank (if there is only one host) or a link.
    pub slow: Vec<Slow>,
    /// Bound of the probability that something is named that is not slow.
    pub false_alarms: f64,
    /// The least number of cores that a rank has for itself; `None` if unknown.
    pub cores_per_rank: Option<f64>,
    /// Reductions over all ranks.
    pub all_reduce: Vec<Timed>,
    /// Factor by which a message of 64 KiB takes longer when all ranks send to other hosts at once; `None` on one rank.
    pub contention: Option<f64>,
    /// Rank 0's clock minus each rank's.
    pub clock_offset_us: Vec<f64>,
    /// Rank, rank, microseconds of an empty message.
    #[serde(skip)]
    pub latencies: Vec<(u32, u32, f64)>,
    /// Host, host, microseconds of an empty message, bytes per second of a message of 64 KiB.
    #[serde(skip)]
    pub host_links: Vec<(u32, u32, f64, f64)>,
    /// The same as a network of the simulator.
    #[serde(skip)]
    pub measured: Measured,
    #[serde(skip)]
    pub site: Site,
}

/// The model of one kind of link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRecord {
    /// `within` hosts, or between `hosts`.
    pub between: &'static str,
    /// Start-up of a message.
    pub latency_us: f64,
    /// Least time between two messages of one sender.
    pub gap_us: f64,
    /// `None` if bytes take no time.
    pub bytes_per_second: Option<f64>,
    /// Mean relative deviation of the model from the measurements, over the sizes.
    pub error: f64,
    /// From this size in bytes on, header included, a message waits for its receiver's consent; `None` if that was not seen.
    pub rendezvous_bytes: Option<u64>,
    pub rendezvous_us: Option<f64>,
    /// Whether the ranks of a host share a port to other hosts.
    pub shared: bool,
    /// Measured medians by size of the body.
    pub sizes: Vec<Timed>,
}

/// The time of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timed {
    pub bytes: u64,
    pub us: f64,
}

/// Measures the world. The record comes where node 0 is.
///
/// # Errors
/// Wrong usage for too many ranks; otherwise as [`node::run`].
pub fn probe(world: &mut World, spec: &ProbeSpec, name: &str, seed: u64) -> Result<Option<ProbeRecord>> {
    if world.ranks() > MOST_RANKS {
        return Err(Error::usage(format!("probe measures up to {MOST_RANKS} ranks, not {}", world.ranks())));
    }
    let site = Site::of(world, seed)?;
    let cores_per_rank = match world.is_simulated() {
        true => Some(1.0),
        false => {
            let groups = cores::groups(world)?;
            groups.iter().map(|group| f64::from(group.cores) / group.ranks.len().max(1) as f64).reduce(f64::min)
        }
    };
    let (overlay, hosts, spec) = (one_node_per_rank(world)?, world.hosts(), Rc::new(spec.clone()));
    let zeros = Bytes::from(vec![0; spec.sizes.iter().copied().max().unwrap_or(0).max(LARGE)]);
    let by_host = Rc::new(RanksByHost::of(&hosts));
    let times = node::run(world, &overlay, |node| program::program(node, spec.clone(), by_host.clone(), zeros.clone()))?;
    let Some((_, times)) = times.into_iter().find(|(node, _)| *node == 0) else { return Ok(None) };
    Ok(Some(record(&spec, &hosts, &times, name, site, cores_per_rank)))
}

fn us(ticks: f64) -> f64 {
    ticks / 1e3
}

fn record(spec: &ProbeSpec, hosts: &Hosts, times: &[RankTimes], name: &str, site: Site, cores_per_rank: Option<f64>) -> ProbeRecord {
    let speeds = speeds(times);
    let contention = contention(times);
    let ranks_on: Vec<Vec<RankId>> = HostId::all(hosts.count()).map(|host| hosts.ranks_on(host)).collect();
    let within = link(spec, times.iter().map(|rank| &rank.within));
    let most = ranks_on.iter().map(Vec::len).max().unwrap_or(1);
    let between = link(spec, times.iter().map(|rank| &rank.between))
        .map(|(link, sizes)| (MeasuredLink { shared: is_shared(&link, most, contention), ..link }, sizes));
    let (slow, false_alarms) = slow(hosts, times);
    let plain = |found: &Option<(MeasuredLink, Vec<Timed>)>| found.as_ref().map(|(link, _)| *link);
    let (within_link, between_link) = (plain(&within), plain(&between));
    let measured = Measured {
        name: name.to_string(),
        hosts: hosts.clone(),
        speeds: speeds.iter().map(|speed| Speed::new(*speed).unwrap_or_default()).collect(),
        within: MeasuredLink { shared: false, ..within_link.or(between_link).unwrap_or_default() },
        between: between_link,
        pairs: pairs(times, hosts, between_link.unwrap_or_default()),
    };
    let links = [("within", within), ("hosts", between)].into_iter().filter_map(|(between, found)| Some((between, found?)));
    let latencies = times.iter().zip(0..).flat_map(|(rank, me)| rank.ranks.iter().map(move |(other, ticks)| (me, *other, us(*ticks))));
    ProbeRecord {
        ranks: times.len() as u32,
        hosts: ranks_on,
        host_names: hosts.names().to_vec(),
        network: site.network.clone(),
        rounds: spec.rounds,
        rounds_needed: verdict::rounds_needed(verdict::candidates(hosts.count(), times.len() as u32)) as u32,
        links: links.map(|(between, (link, sizes))| LinkRecord::new(between, &link, sizes)).collect(),
        speeds,
        slow,
        false_alarms,
        cores_per_rank,
        all_reduce: reductions(spec, times),
        contention,
        clock_offset_us: times.iter().map(|rank| us(rank.clock_offset as f64)).collect(),
        latencies: if times.len() <= MOST_DRAWN { latencies.collect() } else { Vec::new() },
        host_links: host_links(times, hosts),
        measured,
        site,
    }
}

impl LinkRecord {
    fn new(between: &'static str, link: &MeasuredLink, sizes: Vec<Timed>) -> LinkRecord {
        LinkRecord {
            between,
            latency_us: us(link.latency as f64),
            gap_us: us(link.gap as f64),
            bytes_per_second: (link.per_byte > 0).then(|| 1e12 / link.per_byte as f64),
            error: link.error,
            rendezvous_bytes: link.rendezvous.map(|rendezvous| rendezvous.bytes),
            rendezvous_us: link.rendezvous.map(|rendezvous| us(rendezvous.latency as f64)),
            shared: link.shared,
            sizes,
        }
    }
}

/// Relative speed by rank, 1 on average, from the median time of the kernel.
fn speeds(times: &[RankTimes]) -> Vec<f64> {
    let speeds: Vec<f64> = times.iter().map(|rank| 1.0 / median(&rank.kernel).unwrap_or(1.0).max(1.0)).collect();
    let mean = speeds.iter().sum::<f64>() / speeds.len().max(1) as f64;
    speeds.iter().map(|speed| speed / mean).collect()
}

fn link<'a>(spec: &ProbeSpec, times: impl Iterator<Item = &'a LinkTimes>) -> Option<(MeasuredLink, Vec<Timed>)> {
    let mut by_size = vec![Vec::new(); spec.sizes.len()];
    let mut gaps = Vec::new();
    for times in times {
        by_size.iter_mut().zip(&times.by_size).for_each(|(all, some)| all.extend(some));
        gaps.extend(&times.gaps);
    }
    let medians: Vec<(usize, f64)> = spec.sizes.iter().zip(&by_size).filter_map(|(bytes, times)| Some((*bytes, median(times)?))).collect();
    let points: Vec<fit::Point> = medians.iter().map(|(bytes, ticks)| (on_the_wire(*bytes), *ticks)).collect();
    let fitted = fit::link(&points)?;
    let gap = median(&gaps).unwrap_or(0.0).round() as u64;
    let sizes = medians.iter().map(|(bytes, ticks)| Timed { bytes: *bytes as u64, us: us(*ticks) });
    Some((MeasuredLink { gap, ..fitted }, sizes.collect()))
}

fn contention(times: &[RankTimes]) -> Option<f64> {
    let all = |which: fn(&RankTimes) -> &Vec<f64>| times.iter().flat_map(which).copied().collect::<Vec<f64>>();
    Some(median(&all(|rank| &rank.together))? / median(&all(|rank| &rank.alone))?.max(1.0))
}

/// Returns true if the ranks of a host send through one port: then a message waits for those of the others. The line is drawn half way between that and each
/// for itself.
fn is_shared(link: &MeasuredLink, ranks: usize, contention: Option<f64>) -> bool {
    let (busy, alone) = (link.transmission(on_the_wire(LARGE)) as f64, link.passage(on_the_wire(LARGE)) as f64);
    let others = ranks.saturating_sub(1) as f64;
    others > 0.0 && contention.is_some_and(|factor| factor > 1.0 + others * busy / alone / 2.0)
}

/// The median over the rounds of what ranks took on average.
fn reductions(spec: &ProbeSpec, times: &[RankTimes]) -> Vec<Timed> {
    let of_size = |(size, bytes): (usize, &usize)| {
        let round =
            |round: usize| times.iter().filter_map(|rank| rank.reductions.get(size)?.get(round)).sum::<f64>() / times.len().max(1) as f64;
        let rounds: Vec<f64> = (0..spec.rounds as usize).map(round).collect();
        Some(Timed { bytes: *bytes as u64, us: us(median(&rounds)?) })
    };
    spec.reductions.iter().enumerate().filter_map(of_size).collect()
}

/// The times of all pairs of hosts, the lower number first.
fn by_pair<'a>(times: &'a [RankTimes], hosts: &Hosts) -> BTreeMap<(HostId, HostId), &'a HostTimes> {
    let of_rank = |(rank, times): (RankId, &'a RankTimes)| {
        let mine = hosts.host_of(rank);
        times.hosts.iter().map(move |times| ((mine.min(times.host), mine.max(times.host)), times)).collect::<Vec<_>>()
    };
    (0..).map(RankId::new).zip(times).flat_map(of_rank).collect()
}

fn host_links(times: &[RankTimes], hosts: &Hosts) -> Vec<(u32, u32, f64, f64)> {
    let entry = |((low, high), times): (&(HostId, HostId), &&HostTimes)| {
        let (small, large) = (median(&times.small)?, median(&times.large)?);
        Some((low.get(), high.get(), us(small), LARGE as f64 / (large.max(1.0) / 1e9)))
    };
    by_pair(times, hosts).iter().filter_map(entry).collect()
}

/// Everything that is slow, and how likely a false alarm is.
fn slow(hosts: &Hosts, times: &[RankTimes]) -> (Vec<Slow>, f64) {
    let rounds = times.iter().map(|rank| rank.kernel.len()).min().unwrap_or(0);
    let several = hosts.count() > 1;
    let judged = verdict::candidates(hosts.count(), times.len() as u32);
    let false_alarms = verdict::false_alarms(judged, rounds);
    if rounds < verdict::rounds_needed(judged) {
        return (Vec::new(), false_alarms);
    }
    let candidates: Vec<Vec<RankId>> = match several {
        true => HostId::all(hosts.count()).map(|host| hosts.ranks_on(host)).collect(),
        false => RankId::all(times.len() as u32).map(|rank| vec![rank]).collect(),
    };
    let took = |ranks: &Vec<RankId>, round: usize| {
        median(&ranks.iter().map(|rank| times[rank.index()].kernel[round]).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let kernels: Vec<Vec<f64>> = (0..rounds).map(|round| candidates.iter().map(|ranks| took(ranks, round)).collect()).collect();
    let named = |(candidate, factor): (usize, f64)| {
        let (host, rank) = match several {
            true => (Some(hosts.name(HostId::new(candidate as u32)).to_string()), None),
            false => (None, Some(RankId::new(candidate as u32))),
        };
        Slow { host, rank, link: None, factor }
    };
    let mut slow: Vec<Slow> = verdict::computing(&kernels).into_iter().map(named).collect();

    let by_pair = by_pair(times, hosts);
    let pairs: Vec<(HostId, HostId)> = by_pair.keys().copied().collect();
    let by_round = |which: fn(&HostTimes) -> &Vec<f64>| -> Vec<Vec<f64>> {
        let rounds = by_pair.values().map(|times| which(times).len()).min().unwrap_or(0);
        (0..rounds).map(|round| by_pair.values().map(|times| which(times)[round]).collect()).collect()
    };
    let mut links = verdict::links(&pairs, &by_round(|times| &times.small));
    for found in verdict::links(&pairs, &by_round(|times| &times.large)) {
        merge(&mut links, found);
    }
    slow.extend(links.iter().map(|link| {
        let (link, factor) = match *link {
            SlowLink::Of(host, factor) => (hosts.name(host).to_string(), factor),
            SlowLink::Between(low, high, factor) => (format!("{}-{}", hosts.name(low), hosts.name(high)), factor),
        };
        Slow { host: None, rank: None, link: Some(link), factor }
    }));
    (slow, false_alarms)
}

/// A link is named once, with the larger factor; a pair is not named besides its host.
fn merge(links: &mut Vec<SlowLink>, found: SlowLink) {
    let touches = |host: HostId, link: &SlowLink| matches!(link, SlowLink::Between(low, high, _) if *low == host || *high == host);
    let same = |known: &SlowLink| match (known, &found) {
        (SlowLink::Of(a, _), SlowLink::Of(b, _)) => a == b,
        (SlowLink::Between(a, b, _), SlowLink::Between(c, d, _)) => (a, b) == (c, d),
        _ => false,
    };
    let factor = |link: &SlowLink| match link {
        SlowLink::Of(_, factor) | SlowLink::Between(_, _, factor) => *factor,
    };
    if let Some(known) = links.iter_mut().find(|known| same(known)) {
        if factor(&found) > factor(known) {
            *known = found;
        }
        return;
    }
    if let SlowLink::Of(host, _) = found {
        links.retain(|known| !touches(host, known));
    } else if links.iter().any(|known| matches!(known, SlowLink::Of(host, _) if touches(*host, &found))) {
        return;
    }
    links.push(found);
}

/// The pairs of hosts that the model of all others would be wrong about: those in other racks, and slow links.
fn pairs(times: &[RankTimes], hosts: &Hosts, usual: MeasuredLink) -> BTreeMap<(HostId, HostId), MeasuredLink> {
    let (header, whole) = (on_the_wire(0), on_the_wire(LARGE));
    let described = |(pair, times): (&(HostId, HostId), &&HostTimes)| {
        let (small, large) = (median(&times.small)?, median(&times.large)?);
        let is_apart = |took: f64, bytes: u64| {
            let ratio = took / usual.passage(bytes) as f64;
            !(1.0 / APART..=APART).contains(&ratio)
        };
        if !is_apart(small, header) && !is_apart(large, whole) {
            return None;
        }
        let consent = usual.start_up(whole) - usual.start_up(header);
        let per_byte = ((large - small - consent as f64).max(0.0) / (whole - header) as f64 * 1e3).round();
        let latency = (small - header as f64 * per_byte / 1e3 + 1e-6).floor().max(0.0) as u64;
        Some((*pair, MeasuredLink { latency, per_byte: per_byte as u64, ..usual }))
    };
    by_pair(times, hosts).iter().filter_map(described).collect()
}

#[cfg(test)]
mod tests;
