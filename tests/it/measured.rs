//! Task times of real runs (tests/data/loads), read, dealt out and balanced.

use std::path::PathBuf;
use std::rc::Rc;

use equipoise::balance::find;
use equipoise::load::Powers;
use equipoise::topology::{Hosts, Overlay, PlacementRule, RankId};
use equipoise::transport::sim::Model;
use equipoise::transport::world::World;
use equipoise_lab::experiment::{BalanceRecord, BalanceSpec, Tasks, balance};
use equipoise_lab::workload::{MeasuredTasks, TaskSource};

fn source(run: &str) -> TaskSource {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "loads"].iter().collect();
    TaskSource::parse(&format!("lbaf:{}/{run}", folder.display())).unwrap()
}

fn read(run: &str) -> MeasuredTasks {
    source(run).measured().unwrap().unwrap()
}

/// The sum of the times in seconds, and the imbalance over the run's own ranks, max/mean - 1.
fn facts(run: &MeasuredTasks) -> (f64, f64) {
    let work = run.amounts(run.ranks).unwrap().work;
    let (sum, most) = (work.iter().sum::<u64>() as f64, work.iter().copied().max().unwrap_or(0) as f64);
    (sum / 1e9, most / (sum / work.len() as f64) - 1.0)
}

fn agrees(found: f64, expected: f64) -> bool {
    // As many digits as are known, the last of them rounded.
    (found - expected).abs() <= 0.51e-5 * expected.abs()
}

#[test]
fn runs_have_the_sums_and_imbalances_that_their_authors_tool_gives() {
    for (name, ranks, tasks, pinned, sum, imbalance) in [
        ("lbaf-nolb-8color-32ranks,phase=1", 32, 480, 224, 0.638841, 4.94672),
        ("lbaf-nolb-8color-32ranks,phase=301", 32, 480, 224, 1.99674, 1.63895),
        ("lbaf-toy-fewer-16ranks", 16, 274, 0, 16033.0, 1.91698),
    ] {
        let run = read(name);
        let (found_sum, found_imbalance) = facts(&run);
        let amounts = run.amounts(ranks).unwrap();
        assert_eq!((run.ranks, run.len(), amounts.pinned_tasks), (ranks, tasks, pinned), "{name}");
        assert!(agrees(found_sum, sum) && agrees(found_imbalance, imbalance), "{name}: {found_sum} s, {found_imbalance}");
    }
    // Without a phase it is the first.
    assert_eq!(read("lbaf-nolb-8color-32ranks"), read("lbaf-nolb-8color-32ranks,phase=1"));
}

#[test]
fn the_toys_details_are_there() {
    let toy = read("lbaf-toy-fewer-16ranks");
    assert_eq!(toy.amounts(16).unwrap().largest, 865 * 1_000_000_000);
    assert!(toy.tasks.iter().all(|task| task.bytes == 1024));
    // Nine tasks of two ranks and a third, none on the fourth; what they say to each other is known.
    let blocks = read("lbaf-synthetic-blocks-4ranks");
    let tasks_of = |rank| blocks.tasks.iter().filter(|task| task.rank == rank).count();
    assert_eq!((blocks.ranks, blocks.len(), [0, 1, 2, 3].map(RankId::new).map(tasks_of)), (4, 9, [4, 4, 1, 0]));
    assert_eq!((blocks.communications.len() as u64 + blocks.left_out, blocks.left_out), (8, 0));
    // Names beyond 2^32, and none of them twice.
    let mut names: Vec<u64> = read("lbaf-nolb-8color-32ranks").tasks.iter().filter_map(|task| task.name).collect();
    assert!(names.iter().any(|name| *name > u64::from(u32::MAX)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 480);
}

fn balanced(balancer: &str, run: &str, hosts: Hosts, rule: PlacementRule) -> BalanceRecord {
    let ranks = hosts.ranks();
    let mut world = World::simulated(ranks, Model { hosts: Some(hosts.clone()), ..Model::default() });
    let balancer = Rc::new(find(balancer).unwrap());
    let overlay = Overlay::placed(balancer.entry.default_topology(ranks), hosts, rule, 1).unwrap();
    let tasks = Tasks::of_source(&mut world, &source(run)).unwrap();
    let powers = Powers::equal(ranks, overlay.topology.nodes());
    balance(&mut world, &BalanceSpec::new(balancer, overlay, tasks, powers)).unwrap().unwrap()
}

#[test]
fn balancers_make_a_real_run_more_even_on_any_number_of_ranks() {
    for balancer in ["cwa", "dem", "mwa", "twa", "pslb", "direct"] {
        for ranks in [4, 13, 16, 32] {
            let names: Vec<String> = (0..ranks).map(|rank| format!("host{}", rank % 3)).collect();
            let record = balanced(balancer, "lbaf-toy-fewer-16ranks", Hosts::from_names(&names), PlacementRule::Random);
            assert_eq!((record.tasks, record.finals.iter().sum::<u64>()), (274, 16033 * 1_000_000_000), "{balancer}");
            let (before, after) = (record.imbalance.before.max_over_mean, record.imbalance.after.max_over_mean);
            assert!(after < before, "{balancer} on {ranks} ranks: {before} before, {after} after");
        }
    }
}

#[test]
fn tasks_that_are_not_migratable_stay() {
    let run = read("lbaf-nolb-8color-32ranks,phase=1");
    let pinned = run.amounts(8).unwrap().pinned;
    let record = balanced("cwa", "lbaf-nolb-8color-32ranks,phase=1", Hosts::single(8), PlacementRule::Hosts);
    assert_eq!(record.loads.iter().sum::<u64>(), record.finals.iter().sum::<u64>());
    for (node, (load, pinned)) in record.finals.iter().zip(&pinned).enumerate() {
        assert!(load >= pinned, "node {node} has {load} ns, of which {pinned} cannot move");
    }
    assert!(record.imbalance.after.max_over_mean < record.imbalance.before.max_over_mean);
}
