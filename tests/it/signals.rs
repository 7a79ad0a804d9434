//! SIGUSR1 and SIGUSR2 come to every node whenever they come: whatever runs goes on as if there were none.

use equipoise::redistribute;
use equipoise::schedule::{self, independent};
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::Signal;
use equipoise::transport::sim::{self, Rules};
use equipoise::transport::world::World;
use equipoise_lab::experiment::run::{RunSpec, SchedulerContender};
use equipoise_lab::experiment::{self, IndependentSpec};
use equipoise_lab::workload::{graphs, independent as workloads};

const RANKS: u32 = 5;

/// A world with a signal every few microseconds for a while, from the beginning on.
fn world() -> World {
    let signal = |at: u64| if at.is_multiple_of(2) { Signal::User1 } else { Signal::User2 };
    let rules = (0..2000).fold(Rules::default(), |rules, at| rules.signal(signal(at), at * 7_000));
    World::simulated(RANKS, sim::Model { rules, ..sim::Model::default() })
}

#[test]
fn schedulers_of_spawning_tasks_go_on() {
    for entry in schedule::ALL {
        let mut world = world();
        let scheduler = schedule::find(entry.name).unwrap();
        let topology = scheduler.default_topology(RANKS);
        let contenders = vec![SchedulerContender::new(scheduler, Overlay::new(topology, world.hosts()).unwrap()).unwrap()];
        let workload = graphs::find("tree:levels=4,children=3,least=3,task=100us").unwrap();
        let spec = RunSpec { contenders, workload, workers: 2, repeat: None, seed: 3, trace: false };
        // A wrong answer or a lost task is an error.
        let records = experiment::run(&mut world, &spec, |_, _, _| {}).unwrap_or_else(|why| panic!("{}: {why}", entry.name));
        assert_eq!(records[0].tasks, 121, "{}", entry.name);
    }
}

#[test]
fn schedulers_of_independent_tasks_go_on() {
    let every = independent::ALL.iter().map(|entry| (entry.name, ""));
    // Not every scheduler can do with tasks that arrive.
    let arriving =
        ["sash", "sads", "dss", "dss:affinity", "selfsched", "sash:end=join", "sash:clusters=hosts"].map(|name| (name, ",arrival=20"));
    for (name, arrivals) in every.chain(arriving) {
        let mut world = world();
        let contenders = vec![independent::find(name).unwrap()];
        let workload = workloads::find(&format!("costs:tasks=60,mu_cp=100,mu_cc=100{arrivals}")).unwrap().unwrap();
        let spec = IndependentSpec { contenders, workload, repeat: None, seed: 3, speeds: Vec::new() };
        let records = experiment::run_independent(&mut world, &spec, |_, _, _| {}).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(records[0].tasks, 60, "{name}");
    }
}

#[test]
fn balancers_go_on() {
    for entry in equipoise::balance::without_places() {
        let tasks = |rank: RankId| vec![rank; if rank.get() == 2 { 50 } else { 0 }];
        let balanced = redistribute(&mut world(), entry.name, tasks).unwrap_or_else(|why| panic!("{}: {why}", entry.name));
        assert_eq!(balanced.iter().map(|(_, tasks)| tasks.len()).sum::<usize>(), 50, "{}", entry.name);
    }
}
