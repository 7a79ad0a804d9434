//! `probe`: what the network and the ranks are like, measured with the messages and the computing that programs use.
//!
//! Everything is measured once in each of a number of rounds, so that drift of the machine affects all alike: a fixed kernel on all ranks at once;
//! an empty message between all pairs of ranks, and of hosts, in [rounds] of disjoint pairs; messages of many sizes within a host and between two,
//! from which the [model of the link](fit) follows; all pairs of hosts at once; reductions over all ranks. Of several tries the shortest counts, of
//! rounds the median. Hosts that are near each other are found to be in racks. What stands out in nearly all rounds is [named](verdict).

pub mod fit;
mod links;
mod program;
mod racks;
mod ring;
pub mod rounds;
pub mod verdict;

use std::rc::Rc;

use bytes::Bytes;
use equipoise::agreement::{self, one_node_per_rank};
use equipoise::node;
use equipoise::topology::{HostId, Hosts, RackId, RankId};
use equipoise::transport::sim::{Measured, Speed};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use serde::Serialize;

use super::cores;
use super::interruption::{Interruption, unless_interrupted};
use super::site::Site;
use fit::median;
use links::{Fitted, by_pair, us};
pub use links::{LinkRecord, Timed};
pub use program::ProbeSpec;
use program::{HostTimes, LARGE, RankTimes, RanksByHost};
use racks::{Distance, racks};
pub use ring::ring;
use verdict::{Slow, SlowComputer, SlowLink};

/// More ranks are refused: every rank is measured against up to 64 others.
pub const MOST_RANKS: u32 = 4_096;
/// Latencies between ranks are kept for the picture up to this number.
const MOST_DRAWN: usize = 64;

/// Result of a probe. Serialised, it is the output of `probe --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeRecord {
    pub ranks: u32,
    /// The ranks of each host.
    pub hosts: Vec<Vec<RankId>>,
    pub host_names: Vec<String>,
    /// The hosts of each rack, by their numbers; `None` if no racks were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub racks: Option<Vec<Vec<HostId>>>,
    /// The model of the simulated network; `None` on real ranks.
    pub network: Option<String>,
    /// Number of finished rounds.
    pub rounds: u32,
    /// Number of rounds that a verdict takes.
    pub rounds_needed: u32,
    pub links: Vec<LinkRecord>,
    /// Speed by rank, 1 on average.
    pub speeds: Vec<f64>,
    /// Slow parts: a host, a rank (unlike the others of its host) or a link.
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
    /// If the probe was asked to end before all rounds were finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
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

/// Measures the world. The record comes where node 0 is. If the world was asked to end, it is that of the finished rounds, and there is none if
/// none was finished within the grace.
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
    let interrupt = world.interrupt().cloned();
    let measured = unless_interrupted(world, |world| {
        let program = |node| program::program(node, spec.clone(), by_host.clone(), zeros.clone(), interrupt.clone());
        let times = node::run(world, &overlay, program)?;
        // What comes after the last round ends nothing. All ranks have finished the same number.
        if times.iter().any(|(_, (rounds, _))| *rounds < spec.rounds) {
            agreement::is_interrupted(world)?;
        }
        Ok(times)
    });
    let mut measured = measured?.into_iter().flatten();
    let Some((_, (rounds, times))) = measured.find(|(node, (rounds, _))| *node == 0 && *rounds > 0) else { return Ok(None) };
    let interrupted = Interruption::of(world, rounds.into(), spec.rounds.into());
    let finished = ProbeSpec { rounds, ..(*spec).clone() };
    Ok(Some(ProbeRecord { interrupted, ..record(&finished, &hosts, &times, name, site, cores_per_rank)? }))
}

fn record(
    spec: &ProbeSpec,
    hosts: &Hosts,
    times: &[RankTimes],
    name: &str,
    site: Site,
    cores_per_rank: Option<f64>,
) -> Result<ProbeRecord> {
    let speeds = speeds(times);
    let hosts = &hosts.clone().with_racks(&found_racks(hosts, times));
    let ranks_on: Vec<Vec<RankId>> = HostId::all(hosts.count()).map(|host| hosts.ranks_on(host)).collect();
    let (within, mut between) = (links::within(spec, times), links::between(spec, times, hosts, |_, _| true));
    let (slow, false_alarms) = slow(hosts, times);
    let link = |fitted: &Option<Fitted>| fitted.as_ref().map(|fitted| fitted.link);
    let own_ports = Measured {
        name: name.to_string(),
        hosts: hosts.clone(),
        speeds: speeds.iter().map(|speed| Speed::new(*speed).unwrap_or_default()).collect(),
        within: link(&within).or(link(&between)).unwrap_or_default(),
        between: link(&between),
        pairs: between.as_ref().map(|usual| links::pairs(times, hosts, usual)).unwrap_or_default(),
    };
    let shared = links::is_shared(&own_ports, spec, times, between.as_ref().is_some_and(Fitted::is_exact))?;
    let measured = links::with_ports(&own_ports, shared);
    // For people, pairs of hosts in one rack and in two are different kinds of links.
    let mut beyond = None;
    if hosts.racks() > 1 {
        let of_kind = |same: bool| links::between(spec, times, hosts, |a, b| (hosts.rack_of(a) == hosts.rack_of(b)) == same);
        (between, beyond) = (of_kind(true), of_kind(false));
    }
    for link in [&mut between, &mut beyond].into_iter().flatten() {
        link.link.shared = shared;
    }
    let kinds = [("within", within), ("hosts", between), ("racks", beyond)];
    let links = kinds.into_iter().filter_map(|(between, found)| Some(found?.record(between)));
    let latencies = times.iter().zip(0..).flat_map(|(rank, me)| rank.ranks.iter().map(move |(other, ticks)| (me, *other, us(*ticks))));
    Ok(ProbeRecord {
        ranks: times.len() as u32,
        hosts: ranks_on,
        host_names: hosts.names().to_vec(),
        racks: (hosts.racks() > 1).then(|| RackId::all(hosts.racks()).map(|rack| hosts.hosts_in(rack)).collect()),
        network: site.network.clone(),
        rounds: spec.rounds,
        rounds_needed: verdict::rounds_needed(verdict::candidates(hosts.count(), times.len() as u32)) as u32,
        links: links.collect(),
        speeds,
        slow,
        false_alarms,
        cores_per_rank,
        all_reduce: reductions(spec, times),
        contention: links::contention(times),
        interrupted: None,
        clock_offset_us: times.iter().map(|rank| us(rank.clock_offset as f64)).collect(),
        latencies: if times.len() <= MOST_DRAWN { latencies.collect() } else { Vec::new() },
        host_links: links::host_links(times, hosts),
        measured,
        site,
    })
}

/// The rack of each host by a number: from the times of empty messages, or from those of [`LARGE`] bytes, which a thin link between racks shows.
fn found_racks(hosts: &Hosts, times: &[RankTimes]) -> Vec<u32> {
    let by_pair = by_pair(times, hosts);
    let apart = |which: fn(&HostTimes) -> &Vec<f64>| {
        let distances: Vec<Distance> = by_pair.iter().filter_map(|(pair, times)| Some((*pair, median(which(times))?))).collect();
        racks(hosts.count(), &distances)
    };
    let by_latency = apart(|times| &times.small);
    if by_latency.iter().any(|rack| *rack != by_latency[0]) { by_latency } else { apart(|times| &times.large) }
}

/// Relative speed by rank, 1 on average, from the median time of the kernel.
fn speeds(times: &[RankTimes]) -> Vec<f64> {
    let speeds: Vec<f64> = times.iter().map(|rank| 1.0 / median(&rank.kernel).unwrap_or(1.0).max(1.0)).collect();
    let mean = speeds.iter().sum::<f64>() / speeds.len().max(1) as f64;
    speeds.iter().map(|speed| speed / mean).collect()
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

/// Everything that is slow, and how likely a false alarm is.
fn slow(hosts: &Hosts, times: &[RankTimes]) -> (Vec<Slow>, f64) {
    let rounds = times.iter().map(|rank| rank.kernel.len()).min().unwrap_or(0);
    let judged = verdict::candidates(hosts.count(), times.len() as u32);
    let false_alarms = verdict::false_alarms(judged, rounds);
    if rounds < verdict::rounds_needed(judged) {
        return (Vec::new(), false_alarms);
    }
    let kernels: Vec<Vec<f64>> = (0..rounds).map(|round| times.iter().map(|rank| rank.kernel[round]).collect()).collect();
    let named = |found: SlowComputer| match found {
        SlowComputer::Host(host, factor) => Slow { host: Some(hosts.name(host).to_string()), rank: None, link: None, factor },
        SlowComputer::Rank(rank, factor) => Slow { host: None, rank: Some(rank), link: None, factor },
    };
    let mut slow: Vec<Slow> = verdict::computing(hosts, &kernels).into_iter().map(named).collect();

    let by_pair = by_pair(times, hosts);
    let pairs: Vec<(HostId, HostId)> = by_pair.keys().copied().collect();
    let by_round = |which: fn(&HostTimes) -> &Vec<f64>| -> Vec<Vec<f64>> {
        let rounds = by_pair.values().map(|times| which(times).len()).min().unwrap_or(0);
        (0..rounds).map(|round| by_pair.values().map(|times| which(times)[round]).collect()).collect()
    };
    let mut links = verdict::links(&pairs, hosts, &by_round(|times| &times.small));
    for found in verdict::links(&pairs, hosts, &by_round(|times| &times.large)) {
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

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
