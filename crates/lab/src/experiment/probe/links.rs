//! The links of a probed network: within hosts, between hosts, the pairs of hosts that differ, and whether the ranks of a host share a port.
//!
//! The link between hosts is that of most pairs of hosts, not a mean of pairs that differ. Where its model has every time to the tick, as in
//! simulation, every difference of a pair counts; otherwise one by a factor.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use equipoise::agreement::one_node_per_rank;
use equipoise::topology::{HostId, Hosts, RankId};
use equipoise::transport::sim::{Measured, MeasuredLink, Model};
use equipoise::transport::world::World;
use equipoise::{Result, node};
use serde::Serialize;

use super::fit::{self, median};
use super::program::{self, HostTimes, LARGE, LinkTimes, ProbeSpec, RankTimes, RanksByHost, on_the_wire};

/// Factor between measured and modelled times of messages, either way, from which on a pair of hosts is described by itself.
const APART: f64 = 1.5;
/// Rounds of exchanges that are simulated to see whether ports are shared.
const SIMULATED_ROUNDS: u32 = 16;
/// Minimum difference that shared ports have to make for measurements to tell: the mean difference of the logarithms of the times.
const NOTICEABLE: f64 = 0.02;

/// The model of one kind of link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkRecord {
    /// `within` hosts, or between `hosts`: of one rack, where there are several, and between `racks`.
    pub between: &'static str,
    /// Start-up of a message.
    pub latency_us: f64,
    /// Least time between two messages of one sender.
    pub gap_us: f64,
    /// `None` if bytes take no time.
    pub bytes_per_second: Option<f64>,
    /// Mean relative deviation of the model from the measurements, over the sizes.
    pub error: f64,
    /// Size in bytes, header included, from which on a message waits for its receiver's consent; `None` if that was not seen.
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

/// A model, and what it was fitted to.
#[derive(Clone)]
pub(super) struct Fitted {
    pub link: MeasuredLink,
    pub sizes: Vec<Timed>,
}

impl Fitted {
    /// Returns true if the model has every time to the tick.
    pub fn is_exact(&self) -> bool {
        self.link.error == 0.0
    }

    pub fn record(self, between: &'static str) -> LinkRecord {
        let Fitted { link, sizes } = self;
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

pub(super) fn us(ticks: f64) -> f64 {
    ticks / 1e3
}

/// The link within hosts: medians over all of them.
pub(super) fn within(spec: &ProbeSpec, times: &[RankTimes]) -> Option<Fitted> {
    fitted(spec, times.iter().map(|rank| &rank.within))
}

/// The link between hosts, of the pairs of hosts that are asked for: medians over those that are like the one in the middle.
pub(super) fn between(spec: &ProbeSpec, times: &[RankTimes], hosts: &Hosts, asked: impl Fn(HostId, HostId) -> bool) -> Option<Fitted> {
    let pairs: Vec<(&LinkTimes, Vec<f64>)> = sized(times, hosts)
        .into_iter()
        .filter(|((low, high), _)| asked(*low, *high))
        .map(|(_, times)| times)
        .filter_map(|times| Some((times, times.by_size.iter().map(|times| median(times)).collect::<Option<Vec<f64>>>()?)))
        .collect();
    let middle: Vec<f64> =
        (0..spec.sizes.len()).map_while(|size| median(&pairs.iter().map(|(_, of_pair)| of_pair[size]).collect::<Vec<_>>())).collect();
    let off = |of_pair: &[f64]| of_pair.iter().zip(&middle).map(|(took, middle)| (took.max(1.0) / middle.max(1.0)).ln().abs()).sum::<f64>();
    let (usual, of_usual) = pairs.iter().min_by(|a, b| off(&a.1).total_cmp(&off(&b.1)))?;
    let alone = fitted(spec, std::iter::once(*usual))?;
    if alone.is_exact() {
        return Some(alone);
    }
    let is_like = |of_pair: &[f64]| of_pair.iter().zip(of_usual).all(|(took, usual)| !is_apart(*took, *usual));
    fitted(spec, pairs.iter().filter(|(_, of_pair)| is_like(of_pair)).map(|(times, _)| *times))
}

fn is_apart(took: f64, usual: f64) -> bool {
    !(1.0 / APART..=APART).contains(&(took.max(1.0) / usual.max(1.0)))
}

fn fitted<'a>(spec: &ProbeSpec, times: impl Iterator<Item = &'a LinkTimes>) -> Option<Fitted> {
    let mut by_size = vec![Vec::new(); spec.sizes.len()];
    let mut gaps = Vec::new();
    for times in times {
        by_size.iter_mut().zip(&times.by_size).for_each(|(all, some)| all.extend(some));
        gaps.extend(&times.gaps);
    }
    let medians: Vec<(usize, f64)> = spec.sizes.iter().zip(&by_size).filter_map(|(bytes, times)| Some((*bytes, median(times)?))).collect();
    let points: Vec<fit::Point> = medians.iter().map(|(bytes, ticks)| (on_the_wire(*bytes), *ticks)).collect();
    let link = MeasuredLink { gap: gap(&gaps).unwrap_or(0), ..fit::link(&points)? };
    let sizes = medians.iter().map(|(bytes, ticks)| Timed { bytes: *bytes as u64, us: us(*ticks) });
    Some(Fitted { link, sizes: sizes.collect() })
}

fn gap(gaps: &[f64]) -> Option<u64> {
    median(gaps).map(|gap| gap.round() as u64)
}

fn pair(hosts: &Hosts, rank: RankId, other: HostId) -> (HostId, HostId) {
    let mine = hosts.host_of(rank);
    (mine.min(other), mine.max(other))
}

/// The times of the pairs of hosts that were measured with all sizes, the lower number first.
fn sized<'a>(times: &'a [RankTimes], hosts: &Hosts) -> BTreeMap<(HostId, HostId), &'a LinkTimes> {
    let of_rank = |(rank, times): (RankId, &'a RankTimes)| {
        let asked = times.between.iter().filter(|(_, times)| times.by_size.iter().all(|times| !times.is_empty()));
        asked.map(move |(other, times)| (pair(hosts, rank, *other), times)).collect::<Vec<_>>()
    };
    (0..).map(RankId::new).zip(times).flat_map(of_rank).collect()
}

/// The times of all pairs of hosts, the lower number first.
pub(super) fn by_pair<'a>(times: &'a [RankTimes], hosts: &Hosts) -> BTreeMap<(HostId, HostId), &'a HostTimes> {
    let of_rank = |(rank, times): (RankId, &'a RankTimes)| {
        times.hosts.iter().map(move |times| (pair(hosts, rank, times.host), times)).collect::<Vec<_>>()
    };
    (0..).map(RankId::new).zip(times).flat_map(of_rank).collect()
}

/// Host, host, microseconds of an empty message, bytes per second of a message of 64 KiB.
pub(super) fn host_links(times: &[RankTimes], hosts: &Hosts) -> Vec<(u32, u32, f64, f64)> {
    let entry = |((low, high), times): (&(HostId, HostId), &&HostTimes)| {
        let (small, large) = (median(&times.small)?, median(&times.large)?);
        Some((low.get(), high.get(), us(small), LARGE as f64 / (large.max(1.0) / 1e9)))
    };
    by_pair(times, hosts).iter().filter_map(entry).collect()
}

/// The pairs of hosts that the model of all others would be wrong about: those in other racks, and slow links.
pub(super) fn pairs(times: &[RankTimes], hosts: &Hosts, usual: &Fitted) -> BTreeMap<(HostId, HostId), MeasuredLink> {
    let (header, whole) = (on_the_wire(0), on_the_wire(LARGE));
    let (sized, exact, usual) = (sized(times, hosts), usual.is_exact(), usual.link);
    let described = |(pair, times): (&(HostId, HostId), &&HostTimes)| {
        let (small, large) = (median(&times.small)?, median(&times.large)?);
        let own_gap = sized.get(pair).and_then(|times| gap(&times.gaps)).unwrap_or(usual.gap);
        let differs = |took: f64, bytes: u64| {
            let modelled = usual.passage(bytes) as f64;
            if exact { (took - modelled).abs() >= 0.5 } else { is_apart(took, modelled) }
        };
        let is_its_own = differs(small, header) || differs(large, whole) || (exact && own_gap != usual.gap);
        if !is_its_own {
            return None;
        }
        let consent = usual.start_up(whole) - usual.start_up(header);
        let per_byte = ((large - small - consent as f64).max(0.0) / (whole - header) as f64 * 1e3).round() as u64;
        let bytes_only = MeasuredLink { per_byte, ..MeasuredLink::default() };
        let latency = (small - bytes_only.transmission(header) as f64).round().max(0.0) as u64;
        Some((*pair, MeasuredLink { latency, gap: own_gap, per_byte, ..usual }))
    };
    by_pair(times, hosts).iter().filter_map(described).collect()
}

/// The factor by which an exchange between two ranks takes longer when all ranks exchange at once: the median over the rounds. The same two ranks, as
/// others may be nearer or farther.
pub(super) fn contention(times: &[RankTimes]) -> Option<f64> {
    // Those that were the first pair whenever they had a partner.
    let first = times.iter().filter(|rank| rank.alone.len() == rank.together.len());
    let ratios = first.flat_map(|rank| rank.together.iter().zip(&rank.alone)).map(|(together, alone)| together / alone.max(1.0));
    median(&ratios.collect::<Vec<_>>())
}

fn alone(times: &[RankTimes]) -> Option<f64> {
    median(&times.iter().flat_map(|rank| &rank.alone).copied().collect::<Vec<_>>()).map(|ticks| ticks.max(1.0))
}

fn together(times: &[RankTimes]) -> impl Iterator<Item = f64> {
    times.iter().flat_map(|rank| rank.together.iter().take(SIMULATED_ROUNDS as usize)).copied()
}

/// Returns true if the ranks of a host send through one port: then a message waits for those of the others. How long it waits depends on the whole
/// exchange, so the exchange runs in simulation on the network, once with shared ports and once without; the nearer one counts.
///
/// # Errors
/// Those of a simulation.
pub(super) fn is_shared(network: &Measured, spec: &ProbeSpec, times: &[RankTimes], exact: bool) -> Result<bool> {
    let Some(between) = network.between else { return Ok(false) };
    let several = HostId::all(network.hosts.count()).filter(|host| network.hosts.ranks_on(*host).len() > 1).count() > 1;
    if !several || between.transmission(on_the_wire(LARGE)) == 0 {
        return Ok(false);
    }
    let (own, shared) = (exchanges(network, spec, false)?, exchanges(network, spec, true)?);
    if !exact && own.apart(&shared, false) < NOTICEABLE {
        return Ok(false);
    }
    let measured = Exchanges::of(times);
    Ok(shared.apart(&measured, !exact) < own.apart(&measured, !exact))
}

/// Times of exchanges.
pub(super) struct Exchanges {
    /// Between two ranks with the network to themselves.
    alone: f64,
    /// Times of exchanges of all ranks at once, by rank and round.
    together: Vec<f64>,
}

impl Exchanges {
    fn of(times: &[RankTimes]) -> Exchanges {
        Exchanges { alone: alone(times).unwrap_or(1.0), together: together(times).collect() }
    }

    /// The mean difference of the logarithms of the times of all at once, or of these times against an exchange alone.
    pub fn apart(&self, other: &Exchanges, against_alone: bool) -> f64 {
        let usual = if against_alone { (self.alone / other.alone).ln() } else { 0.0 };
        let off = |(a, b): (&f64, &f64)| ((a.max(1.0) / b.max(1.0)).ln() - usual).abs();
        self.together.iter().zip(&other.together).map(off).sum::<f64>() / self.together.len().max(1) as f64
    }
}

/// The same network with shared ports or without.
pub(super) fn with_ports(network: &Measured, shared: bool) -> Measured {
    let with = |link: &MeasuredLink| MeasuredLink { shared, ..*link };
    Measured {
        between: network.between.as_ref().map(with),
        pairs: network.pairs.iter().map(|(pair, link)| (*pair, with(link))).collect(),
        ..network.clone()
    }
}

/// The exchanges, simulated with shared ports or without.
pub(super) fn exchanges(network: &Measured, spec: &ProbeSpec, shared: bool) -> Result<Exchanges> {
    let network = with_ports(network, shared);
    let spec = Rc::new(ProbeSpec { rounds: spec.rounds.min(SIMULATED_ROUNDS), ..spec.clone() });
    let (by_host, zeros) = (Rc::new(RanksByHost::of(&network.hosts)), Bytes::from(vec![0; LARGE]));
    let mut world = World::simulated(network.hosts.ranks(), Model { network: network.network(), ..Model::default() });
    let overlay = one_node_per_rank(&world)?;
    let times = node::run(&mut world, &overlay, |node| program::contention(node, spec.clone(), by_host.clone(), zeros.clone()))?;
    Ok(Exchanges::of(&times.into_iter().next().map(|(_, times)| times).unwrap_or_default()))
}
