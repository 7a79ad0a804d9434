//! Spawning tasks in simulation: small workloads have their answers on one rank, on few and on many, with one and with three workers each.

use equipoise::schedule;
use equipoise::topology::Overlay;
use equipoise::transport::sim;
use equipoise::transport::world::World;
use equipoise_lab::experiment::run::{self, RunSpec, SchedulerContender};
use equipoise_lab::workload::graphs::{self, Number};

/// Workloads whose answers everybody knows (0: nobody), or that take more than an example does.
const CHOSEN: [(&str, u64); 10] = [
    ("queens:n=7", 40),
    ("fibonacci:n=15,cutoff=5", 610),
    ("uts:kind=geometric,shape=fixed,b0=3,depth=4,seed=19", 0),
    ("puzzle:start=1-2-6-3-4-9-5-7-8-13-10-11-12-14-0-15,cutoff=4", 7),
    ("primes:n=10000,segment=500", 1229),
    ("romberg:f=peak,tolerance=1e-7", 0),
    ("matmul:n=12,block=4", 0),
    ("gauss:n=12,block=3", 0),
    ("tree:levels=4,children=3,least=3,task=100us", 121),
    ("stream:graphs=40,utilisation=0.1", 0),
];

/// Every workload of the registry, as chosen above, or else one of its examples; each with its answer, or 0.
fn workloads() -> impl Iterator<Item = (&'static str, u64)> {
    graphs::ALL.iter().map(|entry| {
        let is_it = |(workload, _): &&(&str, u64)| workload.split(':').next() == Some(entry.name);
        CHOSEN.iter().find(is_it).copied().unwrap_or_else(|| (entry.examples[entry.examples.len() / 2], 0))
    })
}

/// Runs everything on so many ranks; the records are as many as schedulers, and each is right.
fn check(ranks: u32, workers: u32) {
    for (workload, answer) in workloads() {
        // A phase of `incremental` is some 15 messages a node, and there is one whenever a task of the stream finds its node busy: few of them do.
        let workload = if ranks >= 1000 && workload.starts_with("stream") { "stream:graphs=6,utilisation=0.005" } else { workload };
        let model = sim::Model { workers, ..sim::Model::default() };
        let mut world = World::simulated(ranks, model);
        let contenders = schedule::ALL.iter().map(|entry| {
            let overlay = Overlay::new(entry.default_topology(ranks), world.hosts()).unwrap();
            SchedulerContender::new(schedule::find(entry.name).unwrap(), overlay).unwrap()
        });
        let contenders = contenders.collect();
        let workload = graphs::find(workload).unwrap();
        let name = workload.name.clone();
        let spec = RunSpec { contenders, workload, workers, repeat: None, seed: 2, trace: false };
        // A wrong answer, a lost task or one that was executed twice is an error.
        let records = run::run(&mut world, &spec, |_, _, _| {}).unwrap_or_else(|why| panic!("{name} on {ranks} ranks: {why}"));
        assert_eq!(records.len(), schedule::ALL.len());
        for record in records {
            let what = format!("{name} under {} on {ranks} ranks with {workers} workers", record.scheduler);
            assert!(answer == 0 || record.answer == Number::Whole(answer), "{what}: {}", record.answer);
            assert!(record.known.is_some() || record.answer == Number::Whole(record.tasks), "{what}: {}", record.answer);
            assert_eq!(record.busy.len(), ranks as usize, "{what}");
            assert!(record.overload.is_none() && record.bound <= record.makespan, "{what}: {record:?}");
        }
    }
}

#[test]
fn one_rank_or_six_have_all_answers() {
    for (ranks, workers) in [(1, 1), (1, 3), (6, 1), (6, 3)] {
        check(ranks, workers);
    }
}

#[test]
fn two_hundred_and_fifty_six_ranks_have_all_answers() {
    check(256, 1);
    check(256, 3);
}

#[test]
fn a_thousand_ranks_have_all_answers() {
    check(1000, 1);
    check(1000, 3);
}
