//! Independent tasks in simulation: the published totals through the whole program, and every task once under every scheduler.

use equipoise::schedule::independent;
use equipoise::topology::Hosts;
use equipoise::transport::sim::{Model, Network, Speed};
use equipoise::transport::world::World;
use equipoise_lab::experiment::{IndependentSpec, RunRecord, run_independent};
use equipoise_lab::workload::graphs::Number;
use equipoise_lab::workload::independent as workloads;

use crate::files::file;

pub fn records(ranks: u32, contenders: &[&str], workload: &str, network: &str, speeds: &[f64]) -> Vec<RunRecord> {
    on_hosts(None, ranks, contenders, workload, network, speeds)
}

fn on_hosts(hosts: Option<&[u32]>, ranks: u32, contenders: &[&str], workload: &str, network: &str, speeds: &[f64]) -> Vec<RunRecord> {
    let network = Network::parse(network).expect("a network");
    let hosts = hosts.map(|hosts| Hosts::from_names(&hosts.iter().map(|host| format!("h{host}")).collect::<Vec<_>>()));
    let mut world = World::simulated(ranks, Model { network, hosts, ..Model::default() });
    run_independent(&mut world, &spec(contenders, workload, speeds), |_, _, _| {}).expect("every task is executed once")
}

fn spec(contenders: &[&str], workload: &str, speeds: &[f64]) -> IndependentSpec {
    IndependentSpec {
        contenders: contenders.iter().map(|name| independent::find(name).expect("a scheduler")).collect(),
        workload: workloads::find(workload).expect("right options").expect("a workload"),
        repeat: None,
        seed: 11,
        speeds: speeds.to_vec(),
    }
}

fn makespans(records: &[RunRecord]) -> Vec<f64> {
    records.iter().map(|record| record.makespan).collect()
}

const READINGS: [&str; 8] = [
    "dss",
    "sash",
    "sash:reading=r1b",
    "sash:reading=r2",
    "sash:reading=literal",
    "sash:reading=r2d",
    "sash:reading=r3",
    "sash:reading=r4",
];

#[test]
fn the_rank_programs_take_the_published_times() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    for (file, ranks, totals) in [
        ("sash_6x3.txt", 3, [2900, 3504, 3500, 3504, 3504, 3504, 3500, 3500]),
        ("sash_12x4.txt", 4, [3700, 3706, 3700, 4203, 4203, 4109, 3900, 4100]),
    ] {
        let records = records(ranks, &READINGS, &format!("costs:file={folder}/{file}"), "zero", &[]);
        assert_eq!(makespans(&records), totals.map(f64::from), "{file}");
        assert!(records.iter().all(|record| record.makespan >= record.bound));
    }
}

/// On ranks of unequal speeds the tasks' times depend on who gets them. A scheduler that gives more to the slow does not look better for it.
#[test]
fn schedulers_are_judged_by_the_same_times() {
    const CONTENDERS: [&str; 3] = ["selfsched:rule=static", "selfsched:rule=single", "dss"];
    let run = |contenders: &[&str]| records(4, contenders, "costs:tasks=60,mu_cp=20,mu_cc=20", "zero", &[1.0, 2.0, 3.0, 4.0]);
    let alone: Vec<RunRecord> = CONTENDERS.iter().flat_map(|name| run(&[name])).collect();
    let least = |part: fn(&RunRecord) -> f64| alone.iter().map(part).fold(f64::INFINITY, f64::min);
    let (sequential, largest) = (least(|record| record.sequential), least(|record| record.largest));
    assert!(alone.iter().any(|record| record.sequential > sequential));
    for (record, own) in run(&CONTENDERS).iter().zip(&alone) {
        assert_eq!((record.sequential, record.largest), (sequential, largest), "{}", record.scheduler);
        assert!((record.efficiency - sequential / record.makespan / 4.0).abs() < 1e-9, "{record:?}");
        assert_eq!((record.makespan, record.work), (own.makespan, own.work), "{}", record.scheduler);
    }
}

/// Schedulers with options that change what they do. Of others of the registry the examples are run.
const CHOSEN: [&str; 20] = [
    "sash",
    "sash:reading=r2d,scheduler=first",
    "sash:reading=r3,end=join",
    "sash:reading=r4",
    "sash:window=3,expansions=20,v=0.1",
    "sash:scheduler=auto,end=join,estimates=50",
    "sads",
    "dss",
    "dss:static=0.5",
    "dss:affinity",
    "dss:affinity,static=0.3",
    "selfsched:rule=static",
    "selfsched:rule=cyclic",
    "selfsched:rule=single",
    "selfsched:rule=fixed,chunk=7",
    "selfsched:rule=gss,least=3",
    "selfsched:rule=fac2,rounding=floor",
    "selfsched:rule=tss,rounding=ceil",
    "selfsched:rule=awf",
    "selfsched:rule=af",
];

fn all() -> Vec<&'static str> {
    let is_run = |name: &str| CHOSEN.iter().any(|contender| contender.split(':').next() == Some(name));
    let others = independent::ALL.iter().filter(|entry| !is_run(entry.name)).flat_map(|entry| entry.examples);
    CHOSEN.iter().chain(others).copied().collect()
}

#[test]
fn every_example_of_every_workload_has_its_answer() {
    for workload in workloads::ALL.iter().flat_map(|entry| entry.examples) {
        for ranks in [1, 5] {
            // Under a scheduler of each kind that can do with tasks that arrive; another answer than the known one is an error.
            for record in records(ranks, &["sash:end=join", "dss:affinity", "selfsched"], workload, "switched", &[]) {
                assert!(record.tasks > 0, "{record:?}");
            }
        }
    }
}

#[test]
fn every_task_is_executed_once() {
    for ranks in [1, 2, 3, 7, 16] {
        for network in ["zero", "switched"] {
            for (tasks, speeds) in [(0, false), (1, false), (5, true), (100, true)] {
                let speeds: Vec<f64> = if speeds { (0..ranks).map(|rank| 1.0 + f64::from(rank % 3)).collect() } else { Vec::new() };
                let records = records(ranks, &all(), &format!("costs:tasks={tasks},mu_cp=20,mu_cc=20"), network, &speeds);
                for record in records {
                    assert_eq!((record.tasks, record.answer), (tasks, Number::Whole(tasks)), "{record:?}");
                    assert!(record.makespan + 1.0 >= record.bound, "{record:?}");
                }
            }
        }
    }
}

#[test]
fn tasks_run_where_they_can() {
    let file = file("1, inf, 3\ninf inf 9 # only the last\n4 5 6\ninf 2 inf\n7;inf;inf\n");
    for network in ["zero", "switched"] {
        let records = records(3, &all(), &format!("costs:file={}", file.display()), network, &[]);
        assert!(records.iter().all(|record| record.tasks == 5 && record.makespan < 100.0), "{records:?}");
    }
}

/// Schedulers that have one of their own on each host.
const BY_HOST: [&str; 13] = [
    "sash:clusters=hosts",
    "sash:clusters=hosts,reading=r2d,scheduler=first",
    "sash:clusters=hosts,reading=r4,end=join",
    "sash:clusters=hosts,scheduler=auto,end=join,estimates=50",
    "sads:clusters=hosts",
    "dss:clusters=hosts",
    "dss:clusters=hosts,affinity",
    "selfsched:clusters=hosts,rule=single",
    "selfsched:clusters=hosts,rule=fixed,chunk=7",
    "selfsched:clusters=hosts,rule=gss,least=3",
    "selfsched:clusters=hosts,rule=tss",
    "selfsched:clusters=hosts,rule=wf",
    "selfsched:clusters=hosts,rule=af",
];

/// The host of each rank: of several ranks each, dealt out in turn, of one rank some, all of one.
const HOSTS: [&[u32]; 5] = [&[0, 0, 0, 1, 1, 1, 1, 2, 2], &[0, 1, 2, 0, 1, 2, 0], &[0, 1, 1], &[0, 1], &[0, 0, 0]];

#[test]
fn with_a_scheduler_on_each_host_every_task_is_executed_once() {
    for hosts in HOSTS {
        let ranks = hosts.len() as u32;
        let speeds: Vec<f64> = (0..ranks).map(|rank| 1.0 + f64::from(rank % 3)).collect();
        // Each task runs on one rank only, or everywhere.
        let row = |task: u32| {
            (0..ranks).map(|rank| if task.is_multiple_of(4) || task % ranks == rank { "30 " } else { "inf " }).collect::<String>()
        };
        let file = file((0..40).map(|task| row(task) + "\n").collect::<String>());
        let matrix = format!("costs:file={}", file.display());
        for network in ["zero", "switched"] {
            for (workload, tasks, speeds) in [
                ("costs:tasks=0", 0, &[][..]),
                ("costs:tasks=1,mu_cp=20,mu_cc=20", 1, &[]),
                ("costs:tasks=200,mu_cp=20,mu_cc=20", 200, &speeds),
                ("costs:tasks=60,mu_cp=20,mu_cc=20,arrival=50", 60, &[]),
                (&matrix, 40, &[]),
            ] {
                for record in on_hosts(Some(hosts), ranks, &BY_HOST, workload, network, speeds) {
                    assert_eq!((record.tasks, record.answer), (tasks, Number::Whole(tasks)), "{record:?}");
                    assert!(record.makespan + 1.0 >= record.bound, "{record:?}");
                }
            }
        }
    }
}

/// Cost of schedulers on each host: ranks that search, and the part of the work that the top scheduler does not see.
#[test]
fn with_a_scheduler_on_each_host_little_is_lost() {
    let hosts: Vec<u32> = (0..12).map(|rank| rank / 4).collect();
    let workload = "costs:tasks=600,sigma_cp=50,sigma_cc=50";
    let by = |names: &[&str]| makespans(&on_hosts(Some(&hosts), 12, names, workload, "switched", &[]));
    for rule in ["dss", "selfsched:rule=gss", "selfsched:rule=fac2"] {
        let apart = if rule.contains(':') { ',' } else { ':' };
        let both = by(&[rule, &format!("{rule}{apart}clusters=hosts")]);
        assert!(both[1] < 1.05 * both[0], "{rule}: {both:?}");
    }
    // 11 workers and 8.
    let both = by(&["sash", "sash:clusters=hosts"]);
    assert!(both[1] < 1.05 * 11.0 / 8.0 * both[0], "{both:?}");
}

#[test]
fn the_gap_to_an_optimum_is_told() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let gap = |workload: &str| records(3, &["dss"], workload, "zero", &[])[0].scheduling.expect("scheduling").gap;
    assert_eq!(gap(&format!("costs:file={folder}/sash_6x3.txt,optimum=1900")), Some(2900.0 / 1900.0 - 1.0));
    assert_eq!(gap(&format!("costs:file={folder}/sash_6x3.txt")), None);
}

#[test]
fn with_estimates_that_are_right_the_clock_agrees_with_the_model() {
    let workload = "costs:tasks=200,sigma_cc=100";
    for name in ["sash", "sash:reading=r3", "dss", "selfsched:rule=gss"] {
        let (model, clock) = (records(6, &[name], workload, "zero", &[]), records(6, &[name], workload, "switched", &[]));
        let (model, clock) = (model[0].makespan, clock[0].makespan);
        assert!((clock / model - 1.0).abs() < 0.05, "{name}: {model} by the model, {clock} by the clock");
    }
}

#[test]
fn wrong_estimates_cost_time() {
    let exact = records(8, &["sash"], "costs:sigma_cc=100", "switched", &[]);
    let wrong = records(8, &["sash:estimates=100"], "costs:sigma_cc=100", "switched", &[]);
    assert!(wrong[0].makespan > exact[0].makespan, "{} and {}", wrong[0].makespan, exact[0].makespan);
}

#[test]
fn joining_the_work_at_the_end_does_not_harm() {
    let both = makespans(&records(4, &["sash", "sash:end=join"], "costs:tasks=50", "zero", &[]));
    assert!(both[1] <= both[0], "{both:?}");
}

#[test]
fn a_static_first_phase_changes_little() {
    let both = makespans(&records(8, &["dss", "dss:static=0.5"], "costs:sigma_cc=10", "zero", &[]));
    assert!((both[1] / both[0] - 1.0).abs() < 0.03, "{both:?}");
}

#[test]
fn a_pause_between_arrivals_is_no_standstill() {
    // A second between two tasks, and a watchdog that waits for a hundredth of it.
    let contenders = ["sash", "sash:end=join", "sads", "dss", "selfsched:rule=ss", "selfsched:rule=awf"];
    for network in ["zero", "switched"] {
        let network = Network::parse(network).expect("a network");
        let mut world = World::simulated(4, Model { network, timeout: 10_000_000, ..Model::default() });
        let spec = spec(&contenders, "costs:tasks=12,mu_cp=2,mu_cc=2,arrival=1", &[]);
        let records = run_independent(&mut world, &spec, |_, _, _| {}).expect("tasks that are known to come are waited for");
        assert!(records.len() == contenders.len() && records.iter().all(|record| record.tasks == 12 && record.makespan > 1000.0));
    }
}

#[test]
fn a_rank_with_a_long_task_after_short_ones_fetches_no_more_than_was_foreseen() {
    // The long ones take node 0, which coordinates, a hundred times as long as the others.
    let short = "0.01 0.01 0.01\n".repeat(100);
    let long = "1000 10 10\n".repeat(300);
    let file = file(&(short + &long));
    let records = records(3, &["selfsched:rule=ss", "dss"], &format!("costs:file={}", file.display()), "switched", &[]);
    for record in records {
        // What it had fetched when all tasks seemed to be short: 100 us of tasks of 10 us, and some that were on their way.
        assert!(record.tasks == 400 && record.makespan < 20_000.0, "{}: {}", record.scheduler, record.makespan);
    }
}

#[test]
fn costs_that_cannot_be_counted_are_refused_before_the_run() {
    let dear = "1000000000 1000000000\n".repeat(10_000);
    let file = file(&dear);
    let mut world = World::simulated(2, Model { network: Network::Zero, ..Model::default() });
    let why = run_independent(&mut world, &spec(&["sash"], &format!("costs:file={}", file.display()), &[]), |_, _, _| {}).unwrap_err();
    assert!(why.exit_status() == 2 && why.to_string().contains("take 1.000e13 cycles together"), "{why}");
    // On slow ranks it takes fewer of them.
    let spec = spec(&["dss"], "costs:tasks=100,mu_cp=1000000,mu_cc=0", &[1.0, 0.000001]);
    let why = run_independent(&mut world, &spec, |_, _, _| {}).unwrap_err();
    assert!(why.exit_status() == 2 && why.to_string().contains("cycles together"), "{why}");
}

/// A rank of a network's file is as fast as one that `--speeds` makes so: neither slower in the schedulers' eyes only, nor slowed down twice.
#[test]
fn speeds_of_the_world_are_speeds_of_the_ranks() {
    let speeds = [1.0, 0.25, 0.5];
    for workload in ["costs:tasks=60,mu_cp=200,mu_cc=200", "mandelbrot:width=32,height=24,limit=100"] {
        let run = |of_world: &[f64], given: &[f64]| {
            let of_world = of_world.iter().map(|speed| Speed::new(*speed).unwrap()).collect();
            let mut world = World::simulated(3, Model { speeds: of_world, ..Model::default() });
            let found = run_independent(&mut world, &spec(&["selfsched", "dss"], workload, given), |_, _, _| {}).unwrap();
            let kept: Vec<f64> = world.as_simulation().unwrap().model().speeds.iter().map(|speed| speed.value()).collect();
            (makespans(&found), kept)
        };
        let (of_world, kept) = run(&speeds, &[]);
        assert_eq!(kept, speeds, "the world keeps its speeds");
        let (alike, _) = run(&[], &[]);
        assert_eq!(of_world, run(&[], &speeds).0, "{workload}");
        assert_eq!(alike, run(&speeds, &[1.0; 3]).0, "{workload}: the given speeds count");
        assert!(of_world.iter().zip(&alike).all(|(slow, fast)| *slow > 1.3 * fast), "{workload}: {of_world:?} and {alike:?}");
    }
}
