//! The simulated network is the oracle: what it is made of must come out.

use std::collections::BTreeMap;

use equipoise::topology::{HostId, RankId};
use equipoise::transport::interrupt::Interrupt;
use equipoise::transport::sim::{MeasuredLink, Model, Network, Rendezvous, Rules};

use super::program::on_the_wire;
use super::*;

pub(super) fn found(ranks: u32, model: Model, spec: &ProbeSpec) -> ProbeRecord {
    probe(&mut World::simulated(ranks, model), spec, "x.toml", 1).unwrap().unwrap()
}

fn spec() -> ProbeSpec {
    ProbeSpec { reductions: vec![8, 1024], ..ProbeSpec::full(8, 1_000_000) }
}

/// `hosts` hosts of `each` ranks.
fn cluster(hosts: u32, each: u32) -> Measured {
    // One of the sizes that are measured, with its header.
    let rendezvous = Some(Rendezvous { bytes: on_the_wire(16_384), latency: 35_000 });
    Measured {
        name: "given.toml".into(),
        hosts: Hosts::from_names(&(0..hosts * each).map(|rank| format!("h{}", rank / each)).collect::<Vec<_>>()),
        speeds: vec![Speed::default(); (hosts * each) as usize],
        within: MeasuredLink { latency: 700, gap: 250, per_byte: 437, ..MeasuredLink::default() },
        between: Some(MeasuredLink { latency: 21_000, gap: 900, per_byte: 2_703, rendezvous, shared: true, ..MeasuredLink::default() }),
        pairs: BTreeMap::new(),
    }
}

pub(super) fn simulated(network: Measured) -> (u32, Model) {
    let speeds = network.speeds.clone();
    (network.hosts.ranks(), Model { speeds, network: network.network(), ..Model::default() })
}

#[test]
fn a_switched_network_is_found_exactly() {
    for ranks in [2, 3, 5, 8] {
        let network = Network::parse("switched:latency=13us,per_byte=1.25ns").unwrap();
        let record = found(ranks, Model { network, ..Model::default() }, &spec());
        let [link] = &record.links[..] else { panic!("{:?}", record.links) };
        assert_eq!((link.between, link.latency_us, link.bytes_per_second, link.gap_us), ("within", 13.0, Some(8e8), 0.0));
        assert_eq!((link.rendezvous_bytes, link.shared), (None, false));
        assert!((record.contention.unwrap() - 1.0).abs() < 0.01, "{:?}", record.contention);
        assert!(link.error < 1e-4 && record.slow.is_empty());
        assert_eq!(record.speeds, vec![1.0; ranks as usize]);
        assert_eq!(record.latencies.len() as u32, ranks * (ranks - 1) / 2);
        assert!(record.clock_offset_us.iter().all(|offset| offset.abs() < 0.01), "{:?}", record.clock_offset_us);
        assert!(record.all_reduce[0].us >= 13.0 && record.all_reduce[1].us > record.all_reduce[0].us);
    }
}

#[test]
fn a_measured_network_comes_out_as_it_went_in() {
    for (hosts, each) in [(2, 1), (2, 3), (3, 2), (4, 4)] {
        let mut given = cluster(hosts, each);
        let between = given.between.as_mut().unwrap();
        between.shared &= each > 1;
        if each == 1 {
            given.within = MeasuredLink { shared: false, ..*between };
        }
        let (ranks, model) = simulated(given.clone());
        let record = found(ranks, model, &spec());
        let plain = |link: MeasuredLink| MeasuredLink { error: 0.0, ..link };
        assert!(record.measured.error() < 1e-3, "{:?}", record.links);
        assert_eq!(plain(record.measured.within), given.within, "{hosts} hosts of {each}");
        assert_eq!(record.measured.between.map(plain), given.between, "{hosts} hosts of {each}");
        assert_eq!((record.measured.pairs.len(), record.slow.len()), (0, 0), "{:?}", record.slow);
        assert_eq!(record.host_links.len() as u32, hosts * (hosts - 1) / 2);
    }
}

#[test]
fn one_rank_has_speed_and_nothing_else() {
    let record = found(1, Model::default(), &spec());
    assert!(record.links.is_empty() && record.slow.is_empty() && record.contention.is_none());
    assert_eq!((record.speeds, record.hosts), (vec![1.0], vec![vec![RankId::FIRST]]));
}

/// A cluster whose hosts are in these racks: messages between racks take 80 us and 20 ns a byte.
fn racked(racks: &[u32], each: u32) -> Measured {
    let network = cluster(racks.len() as u32, each);
    let usual = network.between.unwrap();
    let far = MeasuredLink { latency: 80_000, per_byte: 20_000, ..usual };
    let pairs =
        HostId::all(racks.len() as u32).flat_map(|low| HostId::all(racks.len() as u32).skip(low.index() + 1).map(move |high| (low, high)));
    Measured { pairs: pairs.filter(|(low, high)| racks[low.index()] != racks[high.index()]).map(|pair| (pair, far)).collect(), ..network }
}

/// The link of a pair of hosts takes this many times as long.
fn slowed(network: &mut Measured, low: HostId, high: HostId, times: u64) {
    let usual = network.pairs.get(&(low, high)).copied().or(network.between).unwrap();
    network.pairs.insert((low, high), MeasuredLink { latency: times * usual.latency, per_byte: times * usual.per_byte, ..usual });
}

const RACKS: [&[u32]; 5] =
    [&[0, 0, 0, 0, 0, 0, 1, 1], &[0, 0, 1, 1], &[0, 1, 0, 1, 0, 1], &[0, 0, 1, 1, 2, 2, 3, 3], &[0, 0, 0, 1, 1, 1, 2]];

#[test]
fn racks_are_found_and_are_no_slow_links() {
    let spec = ProbeSpec { rounds: 12, ..ProbeSpec::quick() };
    for (racks, each) in RACKS.into_iter().flat_map(|racks| [(racks, 1), (racks, 2)]) {
        let (ranks, model) = simulated(racked(racks, each));
        let record = found(ranks, model, &spec);
        assert_eq!(record.measured.hosts, cluster(racks.len() as u32, each).hosts.with_racks(racks), "{racks:?}");
        assert_eq!(record.slow, [], "{racks:?}");
        let start_ups: Vec<_> = record.links.iter().skip(each as usize - 1).map(|link| (link.between, link.latency_us)).collect();
        assert_eq!(start_ups, [("hosts", 21.0), ("racks", 80.0)], "{racks:?}");
        let by_host: Vec<u32> = HostId::all(racks.len() as u32)
            .map(|host| record.racks.iter().flatten().position(|rack| rack.contains(&host)).unwrap() as u32)
            .collect();
        assert_eq!(by_host, *racks);
    }
    // A thin link, as far as the others.
    let mut thin = racked(RACKS[1], 1);
    thin.pairs.values_mut().for_each(|link| link.latency = 21_000);
    let (ranks, model) = simulated(thin);
    let record = found(ranks, model, &spec);
    assert_eq!((record.racks, record.slow), (Some(vec![[0, 1].map(HostId::new).to_vec(), [2, 3].map(HostId::new).to_vec()]), vec![]));
}

#[test]
fn in_racks_a_slow_link_is_named_in_3_of_3_and_nobody_else() {
    slow_links_in_racks(3);
}

#[test]
#[ignore = "takes a minute (scripts/test --all)"]
fn in_racks_a_slow_link_is_named_in_20_of_20_and_nobody_else() {
    slow_links_in_racks(20);
}

fn slow_links_in_racks(seeds: u64) {
    for (seed, racks) in (0..seeds).flat_map(|seed| [RACKS[0], RACKS[2], RACKS[3]].map(|racks| (seed, racks))) {
        assert_eq!(named(&probed(seed, racked(racks, 1))), Vec::<String>::new(), "seed {seed}: a false alarm");
        let hosts = racks.len() as u32;
        // A link between racks, and one within a rack that has more than two hosts, or else between two others.
        let low = HostId::new(seed as u32 % hosts);
        let of_kind =
            |within: bool| HostId::all(hosts).filter(move |other| (racks[other.index()] == racks[low.index()]) == within && *other != low);
        let in_rack = if of_kind(true).count() > 1 { of_kind(true).next() } else { of_kind(false).next_back() };
        for other in [of_kind(false).next(), in_rack].into_iter().flatten() {
            let (low, high) = (low.min(other), low.max(other));
            let mut network = racked(racks, 1);
            slowed(&mut network, low, high, 4);
            let record = probed(seed, network);
            assert_eq!(named(&record), [format!("h{low}-h{high}")], "seed {seed}, {racks:?}");
            assert!((2.5..5.0).contains(&record.slow[0].factor), "{:?}", record.slow);
        }
    }
}

/// Speeds that vary by rank, messages that are delayed at random; a new draw for each seed.
fn noisy(seed: u64, network: Measured) -> (u32, Model) {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let jitter = |speed: &Speed| Speed::new(speed.value() * rng.random_range(0.97..1.03)).unwrap();
    let speeds = network.speeds.iter().map(jitter).collect();
    let (ranks, model) = simulated(Measured { speeds, ..network });
    (ranks, Model { rules: Rules::seeded(seed).delay_up_to(8_000), ..model })
}

/// Record of twelve rounds on a noisy network.
fn probed(seed: u64, network: Measured) -> ProbeRecord {
    let (ranks, model) = noisy(seed, network);
    found(ranks, model, &ProbeSpec { rounds: 12, ..ProbeSpec::quick() })
}

fn named(record: &ProbeRecord) -> Vec<String> {
    let name = |slow: &Slow| slow.host.clone().or(slow.link.clone()).or(slow.rank.map(|rank| rank.to_string())).unwrap_or_default();
    record.slow.iter().map(name).collect()
}

#[test]
fn a_slow_host_is_named_in_5_of_5_and_nobody_else() {
    slow_hosts(5);
}

#[test]
#[ignore = "takes a quarter of a minute (scripts/test --all)"]
fn a_slow_host_is_named_in_20_of_20_and_nobody_else() {
    slow_hosts(20);
}

fn slow_hosts(seeds: u64) {
    for seed in 0..seeds {
        assert_eq!(named(&probed(seed, cluster(8, 1))), Vec::<String>::new(), "seed {seed}: a false alarm");
        let mut network = cluster(8, 1);
        let slow = seed as usize % 8;
        network.speeds[slow] = Speed::ratio(4, 5).unwrap();
        let record = probed(seed, network);
        assert_eq!(named(&record), [format!("h{slow}")], "seed {seed}");
        assert!((record.slow[0].factor - 1.25).abs() < 0.08, "{:?}", record.slow);
    }
}

#[test]
fn a_slow_link_is_named_in_5_of_5_and_nobody_else() {
    slow_links(5);
}

#[test]
#[ignore = "takes a quarter of a minute (scripts/test --all)"]
fn a_slow_link_is_named_in_20_of_20_and_nobody_else() {
    slow_links(20);
}

fn slow_links(seeds: u64) {
    for seed in 0..seeds {
        let mut network = cluster(8, 1);
        let usual = network.between.unwrap();
        let slow = MeasuredLink { latency: 4 * usual.latency, per_byte: 4 * usual.per_byte, ..usual };
        let (low, high) = (HostId::new(seed as u32 % 7), HostId::new(7));
        network.pairs.insert((low, high), slow);
        let record = probed(seed, network);
        assert_eq!(named(&record), [format!("h{low}-h{high}")], "seed {seed}");
        assert!((2.5..5.0).contains(&record.slow[0].factor), "{:?}", record.slow);
        assert!(record.measured.pairs.contains_key(&(low, high)) && record.measured.pairs.len() == 1);
        // All links of a host.
        let mut network = cluster(8, 1);
        let host = HostId::new(seed as u32 % 8);
        network.pairs = HostId::all(8).filter(|other| *other != host).map(|other| ((host.min(other), host.max(other)), slow)).collect();
        let record = probed(seed, network);
        assert_eq!(named(&record), [format!("h{host}")], "seed {seed}");
        assert!(record.slow[0].link.is_some() && record.measured.pairs.len() == 7);
    }
}

#[test]
fn on_one_host_a_rank_is_named() {
    let mut speeds = vec![Speed::default(); 6];
    speeds[4] = Speed::ratio(1, 2).unwrap();
    let record = found(6, Model { speeds, ..Model::default() }, &spec());
    assert_eq!(record.slow, [Slow { host: None, rank: Some(RankId::new(4)), link: None, factor: 2.0 }]);
    assert!((record.speeds[4] - 0.5 / (5.5 / 6.0)).abs() < 1e-9);
}

#[test]
fn on_several_hosts_a_slow_rank_is_named_and_not_its_host() {
    for (hosts, each, rank) in [(3, 4, 1), (2, 2, 1), (4, 3, 11)] {
        let mut network = cluster(hosts, each);
        network.speeds[rank] = Speed::ratio(1, 2).unwrap();
        let (ranks, model) = simulated(network);
        let record = found(ranks, model, &ProbeSpec { rounds: 12, ..ProbeSpec::quick() });
        let slow = Slow { host: None, rank: Some(RankId::new(rank as u32)), link: None, factor: 2.0 };
        assert_eq!(record.slow, [slow], "{hosts} hosts of {each}");
    }
}

#[test]
#[ignore = "takes a quarter of a minute (scripts/test --all)"]
fn a_slow_rank_of_a_host_is_named_in_20_of_20_and_nobody_else() {
    for seed in 0..20 {
        assert_eq!(named(&probed(seed, cluster(4, 4))), Vec::<String>::new(), "seed {seed}: a false alarm");
        let mut network = cluster(4, 4);
        network.speeds[seed as usize % 16] = Speed::ratio(4, 5).unwrap();
        assert_eq!(named(&probed(seed, network)), [(seed % 16).to_string()], "seed {seed}");
    }
}

#[test]
fn many_ranks_are_sampled_and_too_many_refused() {
    let quick = ProbeSpec { rounds: 1, ..ProbeSpec::quick() };
    let record = found(100, Model::default(), &quick);
    assert_eq!((record.speeds.len(), record.latencies.len()), (100, 0));
    assert_eq!(record.links[0].latency_us, 20.0);
    let why = probe(&mut World::simulated(MOST_RANKS + 1, Model::default()), &quick, "", 1).unwrap_err();
    assert_eq!(why.to_string(), "probe measures up to 4096 ranks, not 4097");
}

#[test]
fn a_probe_that_is_asked_to_end_before_its_first_round_has_no_record() {
    let mut world = World::simulated(3, Model::default());
    let interrupt = Interrupt::new(std::time::Duration::from_secs(60));
    world.end_on(&interrupt);
    let spec = ProbeSpec { rounds: 2, ..ProbeSpec::quick() };
    let whole = probe(&mut world, &spec, "probed", 1).unwrap().unwrap();
    assert_eq!((whole.rounds, whole.interrupted, world.interrupted()), (2, None, None));
    interrupt.ask(10);
    assert!(probe(&mut world, &spec, "probed", 1).unwrap().is_none());
    assert_eq!(Interruption::of(&world, 0, 2).map(|interruption| (interruption.done, interruption.of)), Some((0, 2)));
}
