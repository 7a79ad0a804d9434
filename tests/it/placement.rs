//! Benefit of placement by hosts: bytes between hosts, in the simulator, against ranks as launchers number them.

use std::rc::Rc;

use equipoise::balance::find;
use equipoise::load::Powers;
use equipoise::topology::{Hosts, Overlay, PlacementRule, Topology, Tree};
use equipoise::transport::sim::Model;
use equipoise::transport::world::World;
use equipoise_lab::experiment::{BalanceRecord, BalanceSpec, Tasks, balance};
use equipoise_lab::workload::{LoadPattern, TaskSource};

/// Ranks host by host (`mpirun --map-by slot`).
fn in_blocks(ranks: u32, hosts: u32) -> Hosts {
    Hosts::from_names(&(0..ranks).map(|rank| format!("host{}", rank * hosts / ranks)).collect::<Vec<_>>())
}

/// Ranks dealt out to hosts in turn (`mpirun --map-by node`).
fn in_turn(ranks: u32, hosts: u32) -> Hosts {
    Hosts::from_names(&(0..ranks).map(|rank| format!("host{}", rank % hosts)).collect::<Vec<_>>())
}

/// A phase on uniform loads, which declines what would make the slowest rank slower.
fn phase(balancer: &str, hosts: &Hosts, rule: PlacementRule, mean: u64, payload: u64, seed: u64) -> BalanceRecord {
    phase_by(balancer, hosts, rule, mean, payload, seed, false)
}

/// A phase on uniform loads; `plain`: by the balancer's own rule.
fn phase_by(balancer: &str, hosts: &Hosts, rule: PlacementRule, mean: u64, payload: u64, seed: u64, plain: bool) -> BalanceRecord {
    let ranks = hosts.ranks();
    let mut world = World::simulated(ranks, Model { hosts: Some(hosts.clone()), ..Model::default() });
    let balancer = Rc::new(find(balancer).unwrap());
    let topology = balancer.entry.default_topology(ranks);
    let nodes = topology.nodes();
    let overlay = Overlay::placed(topology, hosts.clone(), rule, seed).unwrap();
    let loads = LoadPattern::Uniform { mean }.draw(nodes, ranks, seed).unwrap();
    let tasks = Tasks::numbered(&mut world, loads, payload).unwrap();
    let powers = Powers::equal(ranks, nodes);
    let spec = BalanceSpec { seed, plain, ..BalanceSpec::new(balancer, overlay, tasks, powers) };
    balance(&mut world, &spec).unwrap().unwrap()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn placed_by_hosts_cwa_sends_no_more_between_hosts_than_ranks_by_slot_and_a_quarter_less_than_ranks_in_turn() {
    // Where tasks carry nothing, it is the messages with loads that are fewer: one node of a host speaks for all. Thirteen ranks do not fill
    // whole sub-cubes of their hosts, so there it takes tasks with a payload.
    let of_16 = [(10, 0), (10, 64), (10, 4096), (100, 0), (100, 64)].map(|(mean, payload)| (16, 4, mean, payload));
    let others = [(16, 2, 100, 0), (16, 2, 100, 64), (13, 4, 100, 64), (12, 3, 100, 0), (12, 3, 100, 64)];
    no_more_than_by_slot(of_16.into_iter().chain(others));
}

#[test]
#[ignore = "takes half a minute (scripts/test --all)"]
fn placed_by_hosts_cwa_sends_less_between_hosts_on_many_ranks_and_of_a_thousand_tasks_each() {
    no_more_than_by_slot([(16, 4, 1000, 0), (64, 4, 100, 0)]);
}

/// Ranks, hosts, tasks of each rank at the mean, and bytes of each task.
fn no_more_than_by_slot(cases: impl IntoIterator<Item = (u32, u32, u64, u64)>) {
    for (ranks, hosts, mean, payload) in cases {
        let mut of_cyclic = Vec::new();
        for seed in 1..=25 {
            let bytes = |hosts: &Hosts, rule| phase("cwa", hosts, rule, mean, payload, seed).host_bytes;
            let (blocks, cyclic) = (in_blocks(ranks, hosts), in_turn(ranks, hosts));
            let by_slot = bytes(&blocks, PlacementRule::Identity);
            let by_hosts = bytes(&blocks, PlacementRule::Hosts);
            assert!(by_hosts <= by_slot, "{ranks} ranks on {hosts} hosts, seed {seed}: {by_hosts} by hosts, {by_slot} by slot");
            if ranks % hosts == 0 {
                // Then it does not matter how the ranks are numbered.
                assert_eq!(bytes(&cyclic, PlacementRule::Hosts), by_hosts);
            }
            of_cyclic.push(by_hosts as f64 / bytes(&cyclic, PlacementRule::Identity) as f64);
        }
        let ratio = median(of_cyclic);
        println!("{ranks} ranks on {hosts} hosts, mean {mean}, payload {payload}: {ratio:.2}");
        assert!(ratio <= 0.75, "{ranks} ranks on {hosts} hosts, mean {mean}, payload {payload}: {ratio} of ranks dealt in turn");
    }
}

/// Tasks that cross from rack to rack in a phase on 16 ranks of eight hosts, of which every other one is in the same rack; the placement and the tree know of
/// racks or not.
fn between_racks(balancer: &str, knows: bool, seed: u64) -> f64 {
    let racked = in_blocks(16, 8).with_racks(&[0, 1, 0, 1, 0, 1, 0, 1]);
    let hosts = if knows { racked.clone() } else { in_blocks(16, 8) };
    let mut world = World::simulated(16, Model { hosts: Some(hosts.clone()), ..Model::default() });
    let balancer = Rc::new(find(balancer).unwrap());
    let topology = match balancer.name.as_str() {
        "twa" => Topology::Tree(Tree::of_hosts(&hosts).into()),
        _ => balancer.entry.default_topology(16),
    };
    let overlay = Overlay::placed(topology, hosts, PlacementRule::Hosts, seed).unwrap();
    let placement = overlay.placement.clone();
    // By rank, so that all placements balance the same.
    let by_rank = LoadPattern::Uniform { mean: 100 }.draw(16, 16, seed).unwrap();
    let loads = (0..16).map(|node| by_rank[placement.rank_of(node).index()]).collect();
    let tasks = Tasks::numbered(&mut world, loads, 64).unwrap();
    let spec = BalanceSpec { seed, moves: true, ..BalanceSpec::new(balancer, overlay, tasks, Powers::equal(16, 16)) };
    let record = balance(&mut world, &spec).unwrap().unwrap();
    let rack = |node| racked.rack_of(placement.host_of(placement.rank_of(node)));
    record.moves.iter().filter(|moved| rack(moved.src) != rack(moved.dst)).map(|moved| moved.tasks as f64).sum()
}

#[test]
fn placed_by_racks_fewer_tasks_cross_between_them() {
    for (balancer, most) in [("cwa", 0.8), ("twa", 0.4)] {
        let crossed: Vec<[f64; 2]> = (1..=25).map(|seed| [true, false].map(|knows| between_racks(balancer, knows, seed))).collect();
        let of_all = |which: usize| crossed.iter().map(|both| both[which]).sum::<f64>();
        let ratio = of_all(0) / of_all(1);
        println!("{balancer}: {ratio:.2} of the tasks");
        // What a rack has above its quota has to leave it, so on some loads there is nothing to gain.
        assert!(crossed.iter().all(|[knows, not]| knows <= not), "{balancer}: {crossed:?}");
        assert!(of_all(0) > 0.0 && ratio <= most, "{balancer}: {ratio} of {crossed:?}");
    }
}

#[test]
fn placement_changes_where_nodes_are_and_nothing_that_they_decide() {
    for balancer in ["cwa", "dem", "fos", "sos", "ops", "mwa", "kwa", "twa", "pslb", "psts", "direct"] {
        for ranks in [6, 13, 16] {
            let hosts = in_turn(ranks, 3);
            // What virtual nodes hold counts for the rank that they lie on, so which moves would make the slowest rank slower is a matter of
            // the placement: `dem` and diffusion, which leave them something, decline others with another.
            let plain = ["dem", "fos", "sos", "ops"].contains(&balancer) && ranks != 16;
            let [hosts, identity, random] = PlacementRule::ALL.map(|rule| phase_by(balancer, &hosts, rule, 20, 8, 3, plain));
            for other in [&identity, &random] {
                assert_eq!(hosts.finals, other.finals, "{balancer}");
                assert_eq!((&hosts.quota, &hosts.moves, hosts.task_hops), (&other.quota, &other.moves, other.task_hops), "{balancer}");
                assert_eq!(hosts.final_by_rank.iter().sum::<u64>(), other.final_by_rank.iter().sum::<u64>());
            }
            assert!(hosts.host_bytes <= hosts.bytes && random.host_bytes <= random.bytes);
        }
    }
}

enum Load {
    Pattern(&'static str),
    Run(&'static str),
}

/// Bytes between four hosts of four ranks, which the launcher has dealt out in turn, in a phase of `cwa`.
fn between_hosts(rule: PlacementRule, load: &Load, payload: u64, seed: u64) -> u64 {
    let hosts = in_turn(16, 4);
    let mut world = World::simulated(16, Model { hosts: Some(hosts.clone()), ..Model::default() });
    let balancer = Rc::new(find("cwa").unwrap());
    let overlay = Overlay::placed(balancer.entry.default_topology(16), hosts, rule, seed).unwrap();
    let tasks = match load {
        Load::Pattern(text) => Tasks::numbered(&mut world, LoadPattern::parse(text).unwrap().draw(16, 16, seed).unwrap(), payload),
        Load::Run(run) => {
            let source = TaskSource::parse(&format!("lbaf:{}/tests/data/loads/{run}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            Tasks::of_source(&mut world, &source)
        }
    };
    let spec = BalanceSpec { seed, ..BalanceSpec::new(balancer, overlay, tasks.unwrap(), Powers::equal(16, 16)) };
    balance(&mut world, &spec).unwrap().unwrap().host_bytes
}

/// The median over seeds of bytes by hosts over bytes of ranks dealt in turn.
fn ratio(load: &Load, payload: u64, seeds: u64) -> f64 {
    let by = |rule, seed| between_hosts(rule, load, payload, seed) as f64;
    median((1..=seeds).map(|seed| by(PlacementRule::Hosts, seed) / by(PlacementRule::Identity, seed)).collect())
}

fn two_thirds_of(uniform: &[&'static str]) {
    for &uniform in uniform {
        for payload in [64, 4096] {
            let of_uniform = ratio(&Load::Pattern(uniform), payload, 25);
            println!("{uniform}, payload {payload}: {of_uniform:.3}");
            assert!(of_uniform <= 0.67, "{uniform}, payload {payload}: {of_uniform}");
        }
    }
}

#[test]
#[ignore = "takes a minute (scripts/test --all)"]
fn placed_by_hosts_cwa_sends_two_thirds_between_hosts_of_a_thousand_tasks_each() {
    two_thirds_of(&["uniform:mean=1000"]);
}

#[test]
fn placed_by_hosts_cwa_sends_two_thirds_of_uniform_loads_between_hosts_and_no_more_of_hot_spots_and_real_runs() {
    two_thirds_of(&["uniform:mean=10", "uniform:mean=100"]);
    for hot in ["hot:total=1600,node=0", "hot:total=1600,node=5", "hot:total=1600,node=15"] {
        for payload in [0, 64, 4096] {
            let of_hot = ratio(&Load::Pattern(hot), payload, 1);
            assert!(of_hot <= 1.0, "{hot}, payload {payload}: {of_hot}");
        }
    }
    // Few tasks without much payload: most bytes are those of the phase's own messages.
    for run in [
        "lbaf-nolb-8color-32ranks,phase=101",
        "lbaf-nolb-8color-32ranks,phase=301",
        "lbaf-nolb-8color-32ranks,phase=901",
        "lbaf-toy-fewer-16ranks",
    ] {
        let of_run = ratio(&Load::Run(run), 0, 1);
        assert!(of_run <= 0.9, "{run}: {of_run}");
    }
}
