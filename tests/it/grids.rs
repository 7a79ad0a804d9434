//! The grid that PSTS gets when none is asked for, against all others of as many nodes.

use std::rc::Rc;

use equipoise::balance::find;
use equipoise::load::Powers;
use equipoise::topology::{Hosts, Overlay, Topology};
use equipoise::transport::sim::{Measured, MeasuredLink, Model, Network};
use equipoise::transport::world::World;
use equipoise_lab::experiment::compare::{BalancerContender, Case};
use equipoise_lab::experiment::{CompareSpec, LoadSource, Tasks, compare};
use equipoise_lab::workload::LoadPattern;

/// All sides, in every order, whose product is this number.
fn sides(number: u32) -> Vec<String> {
    let beyond = |factor: u32| sides(number / factor).into_iter().map(move |rest| format!("{factor}x{rest}"));
    let parts = (2..number).filter(|factor| number.is_multiple_of(*factor)).flat_map(beyond);
    std::iter::once(number.to_string()).chain(parts).collect()
}

/// The default grid's name and median time over five seeds of a pattern, and the fastest grid's.
fn default_and_fastest(network: Network, ranks: u32, pattern: &str) -> [(String, f64); 2] {
    let mut world = World::simulated(ranks, Model { network, ..Model::default() });
    let balancer = Rc::new(find("psts").unwrap());
    let default = balancer.entry.topology_on(&world.network());
    assert_eq!(default.nodes(), ranks, "{default}");
    let grids: Vec<Topology> = sides(ranks).iter().map(|sides| Topology::parse(&format!("grid:{sides}"), ranks).unwrap()).collect();
    assert!(grids.contains(&default), "{default}");
    let contender = |topology: &Topology| BalancerContender {
        balancer: balancer.clone(),
        placement: None,
        overlay: Overlay::new(topology.clone(), world.hosts()).unwrap(),
        powers: Powers::equal(ranks, ranks),
    };
    let contenders = grids.iter().map(contender).collect();
    let pattern: LoadPattern = pattern.parse().unwrap();
    let case = |seed| Case {
        loads: LoadSource::Pattern(pattern.clone()),
        tasks: Tasks::numbered(&mut World::simulated(ranks, Model::default()), pattern.draw(ranks, ranks, seed).unwrap(), 64).unwrap(),
    };
    let cases = (1..=5).map(case).collect();
    let spec = CompareSpec::new(contenders, cases);
    let results = compare(&mut world, &spec, |_, _, _| {}).unwrap();
    let median = |grid: usize| {
        let mut times: Vec<f64> = results.iter().map(|result| result.records[grid].ms_median).collect();
        times.sort_by(f64::total_cmp);
        (grids[grid].name(), times[times.len() / 2])
    };
    let mut medians: Vec<(String, f64)> = (0..grids.len()).map(median).collect();
    medians.sort_by(|a, b| a.1.total_cmp(&b.1));
    let own = medians.iter().find(|(name, _)| *name == default.name()).unwrap().clone();
    [own, medians[0].clone()]
}

#[test]
fn no_grid_is_faster_than_the_default() {
    let usual = ["uniform:mean=10"];
    let others = ["hot:total=6400,node=0", "scattered:total=4000", "poisson:mean=10"];
    for (network, ranks, patterns, within) in [
        ("switched", 16, &usual[..], 1.05),
        ("switched", 60, &usual, 1.05),
        ("switched", 64, &usual, 1.05),
        ("hops", 12, &usual, 1.1),
        ("hops", 12, &others, 1.12),
        ("hops", 16, &usual, 1.05),
        ("hops", 16, &others, 1.05),
        ("hops", 64, &usual, 1.05),
        ("hops", 64, &others, 1.05),
    ] {
        for pattern in patterns {
            let [(name, default), (other, fastest)] = default_and_fastest(Network::parse(network).unwrap(), ranks, pattern);
            assert!(default <= within * fastest, "{network}, {ranks} ranks, {pattern}: {name} takes {default} ms, {other} {fastest} ms");
        }
    }
}

#[test]
fn on_several_hosts_the_default_follows_them() {
    let hosts =
        |hosts: u32, ranks: u32| Hosts::from_names(&(0..hosts * ranks).map(|rank| format!("host{}", rank / ranks)).collect::<Vec<_>>());
    let link = |latency, per_byte| MeasuredLink { latency, per_byte, ..MeasuredLink::default() };
    let measured = Measured {
        name: "four hosts".into(),
        hosts: hosts(4, 4),
        speeds: Vec::new(),
        within: link(500, 100),
        between: Some(link(50_000, 8_000)),
        pairs: [].into(),
    };
    let [(name, default), (other, fastest)] = default_and_fastest(measured.network(), 16, "uniform:mean=10");
    assert!(default <= 1.05 * fastest, "{name} takes {default} ms, {other} {fastest} ms");
    // The first dimension is that of the hosts.
    assert!(name.starts_with("grid:4x"), "{name}");
}
