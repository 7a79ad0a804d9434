//! Every workload under every scheduler in simulation, and what is said to wrong options.

use super::*;
use equipoise::node::{self, Ticks};
use equipoise::schedule::{Options, Style, Summary};
use equipoise::topology::Overlay;
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;

/// Runs a workload in simulation; returns what the host knows, and the workload.
pub(super) fn simulate(workload: &str, scheduler: &str, ranks: u32, workers: u32) -> Result<(RunResult<Number>, Prepared)> {
    simulate_seeded(1, workload, scheduler, ranks, Options::default().with_workers(workers))
}

fn simulate_seeded(seed: u64, workload: &str, scheduler: &str, ranks: u32, mut options: Options) -> Result<(RunResult<Number>, Prepared)> {
    let (chosen, scheduler) = (find(workload)?, schedule::find(scheduler)?);
    let network = if chosen.entry.facts.has_own_network { Network::Zero } else { Network::default() };
    let workers = options.workers;
    let mut world = World::simulated(ranks, Model { workers, network, seed, ..Model::default() });
    let overlay = Overlay::one_host(scheduler.default_topology(ranks), ranks)?;
    let prepared = chosen.prepare(&Setting { seed, processors: ranks * workers, is_simulated: true })?;
    prepared.adjust(&mut options);
    let outcomes = node::run(&mut world, &overlay, |node| prepared.execute(node, scheduler.clone(), options.clone()))?;
    let host = outcomes.into_iter().map(|(_, outcome)| outcome).find(|outcome| !outcome.nodes.is_empty());
    host.map(|outcome| (outcome, prepared)).ok_or_else(|| Error::Failed("nobody was the host".into()))
}

fn all_examples() -> impl Iterator<Item = (&'static Entry, &'static str)> {
    ALL.iter().flat_map(|entry| entry.examples.iter().map(|example| (*entry, *example)))
}

#[test]
fn every_workload_has_its_answer_under_every_scheduler() {
    for (entry, example) in all_examples() {
        for scheduler in schedule::ALL {
            for (ranks, workers) in [(1, 1), (3, 1), (3, 3), (8, 1), (64, 1)] {
                let what = format!("{example} under {} on {ranks} ranks with {workers} workers", scheduler.name);
                let (outcome, prepared) = simulate(example, scheduler.name, ranks, workers).unwrap_or_else(|why| panic!("{what}: {why}"));
                let expected = prepared.known().or_else(|| prepared.sequential());
                let summary = Summary::of(&outcome.nodes, outcome.makespan);
                match expected {
                    Some(known) => assert!(is_near(outcome.answer, known, &prepared), "{what}: {:?}, not {known}", outcome.answer),
                    // Of what is not known beforehand every task was executed and answered once.
                    None => assert_eq!(outcome.answer.unwrap_or(Number::Whole(0)), Number::Whole(summary.tasks), "{what}"),
                }
                assert!(entry.name == "uts" || summary.makespan >= summary.bound || prepared.measured().is_some(), "{what}: {summary:?}");
            }
        }
    }
}

#[test]
fn plain_programs_agree_with_what_is_known() {
    let mut both = 0;
    for (_, example) in all_examples() {
        let prepared = find(example).unwrap().prepare(&Setting { seed: 2, processors: 1, is_simulated: true }).unwrap();
        if let (Some(known), Some(plain)) = (prepared.known(), prepared.sequential()) {
            assert!(is_near(Some(plain), known, &prepared), "{example}: {plain}, not {known}");
            both += 1;
        }
    }
    // All but the synthetic trees, which only the tasks compute.
    assert_eq!(both, all_examples().filter(|(entry, _)| !["tree", "stream"].contains(&entry.name)).count());
}

/// Returns true if an answer is the known one, or as near to it as an approximation is to be.
fn is_near(answer: Option<Number>, known: Number, workload: &Prepared) -> bool {
    match (answer, known) {
        (Some(Number::Real(answer)), Number::Real(known)) => (answer - known).abs() <= workload.tolerance(),
        _ => answer == Some(known),
    }
}

#[test]
fn a_divided_tree_keeps_all_ranks_busy() {
    let tree = "uts:kind=geometric,shape=fixed,b0=4,depth=9,seed=19,grain=1000000";
    let (outcome, prepared) = simulate(tree, "steal", 8, 1).unwrap();
    assert_eq!(outcome.answer, prepared.sequential());
    let summary = Summary::of(&outcome.nodes, outcome.makespan);
    assert!(summary.migrated > 7, "{summary:?}");
    let mean = summary.sequential / 8;
    assert!(outcome.nodes.iter().all(|node| node.busy * 2 > mean), "{:?}", outcome.nodes.iter().map(|node| node.busy).collect::<Vec<_>>());
    assert!(summary.efficiency > 0.5, "{summary:?}");
}

#[test]
fn whole_tasks_are_spawned_soon_enough_for_all_regions() {
    let tree = "uts:kind=geometric,shape=fixed,b0=4,depth=9,seed=19,grain=500";
    for scheduler in ["hierarchical", "random", "neighbour:age=0"] {
        let (outcome, prepared) = simulate(tree, scheduler, 16, 1).unwrap();
        assert_eq!(outcome.answer, prepared.sequential());
        let mean = outcome.nodes.iter().map(|node| node.busy).sum::<Ticks>() / 16;
        assert!(
            outcome.nodes.iter().all(|node| node.busy > mean / 3),
            "{scheduler}: {:?}",
            outcome.nodes.iter().map(|node| node.busy).collect::<Vec<_>>()
        );
    }
}

/// Every rank is busy for at least half of the mean, of single-root workloads with at least 20 tasks a rank; how many were tried.
fn hierarchical_uses_every_rank(shapes: &[&str], ranks: u32, seeds: std::ops::RangeInclusive<u64>) -> usize {
    let mut tried = 0;
    for shape in shapes {
        for seed in seeds.clone() {
            let (outcome, _) = simulate_seeded(seed, shape, "hierarchical", ranks, Options::default()).unwrap();
            let busy: Vec<Ticks> = outcome.nodes.iter().filter(|node| !node.is_virtual).map(|node| node.busy).collect();
            let mean = busy.iter().sum::<Ticks>() / Ticks::from(ranks);
            if outcome.nodes.iter().map(|node| node.tasks).sum::<u64>() >= 20 * u64::from(ranks) {
                tried += 1;
                assert!(busy.iter().all(|busy| busy * 2 >= mean), "{shape}, seed {seed}, on {ranks} ranks: {busy:?}");
            }
        }
    }
    tried
}

#[test]
fn hierarchical_uses_every_rank_for_a_single_root_whatever_its_tree() {
    let random = [
        "tree:levels=6,children=4,task=2ms",
        "tree:levels=8,children=3,task=2ms",
        "tree:levels=8,children=4,task=2ms",
        "tree:levels=14,children=2,task=2ms",
        "tree:levels=4,children=12,task=2ms",
        "tree:levels=3,children=20,task=2ms",
    ];
    let tried: usize = [8, 16].into_iter().map(|ranks| hierarchical_uses_every_rank(&random, ranks, 1..=10)).sum();
    assert!(tried >= 40, "only {tried} trees are large enough");
    let others = ["fibonacci:n=34,cutoff=20", "queens:n=12,cutoff=4", "uts:tree=T1,grain=2000", "uts:tree=T3,grain=2000"];
    for ranks in [8, 16] {
        assert_eq!(hierarchical_uses_every_rank(&others, ranks, 1..=1), others.len());
    }
}

#[test]
fn times_are_what_was_asked_for() {
    for (spec, sequential) in [
        ("tree:levels=2,children=3,least=3,time=13ms", 13_000_000),
        ("tree:levels=2,children=3,least=3,roots=2,task=70us,cost=spin", 26 * 70_000),
        ("tree:levels=1,children=1,least=1,task=10us,cost=virtual", 20_000),
    ] {
        let (outcome, _) = simulate(spec, "steal", 4, 1).unwrap();
        assert_eq!(Summary::of(&outcome.nodes, outcome.makespan).sequential, sequential, "{spec}");
    }
}

#[test]
fn options_follow_the_workload_unless_they_are_set() {
    let adjusted = |spec: &str, mut options: Options, is_simulated| {
        find(spec).unwrap().prepare(&Setting { seed: 1, processors: 4, is_simulated }).unwrap().adjust(&mut options);
        options
    };
    let simulated = adjusted("stream:rate=40,unit=10ms", Options::default(), true);
    assert_eq!((simulated.unit, simulated.migration, simulated.loads_travel), (10_000_000, Some(250_000), false));
    let real = adjusted("stream:rate=none", Options::default(), false);
    assert_eq!((real.unit, real.migration, real.loads_travel), (200_000_000, None, true));
    assert!(adjusted("stream:piggyback=yes", Options::default(), true).loads_travel);
    assert!(!adjusted("stream:piggyback=no", Options::default(), false).loads_travel);
    let mut slow = Options::default();
    slow.migration = Some(7);
    assert_eq!(adjusted("stream", slow, true).migration, Some(7));
    assert_eq!(adjusted("fibonacci:cutoff=3", Options::default(), true).style, Some(Style::Inline));
    assert_eq!(adjusted("fibonacci", Options::default(), true).style, None);
    let mut worker = Options::default();
    worker.style = Some(Style::Worker);
    assert_eq!(adjusted("fibonacci:cutoff=3", worker, true).style, Some(Style::Worker));
    assert_eq!(adjusted("tree:time=1s,cost=virtual", Options::default(), false).style, Some(Style::Inline));
}

#[test]
fn wrong_options_get_one_clear_sentence() {
    for (spec, sentence) in [
        (
            "queen:n=8",
            "workload 'queen' is unknown; known are queens, fibonacci, uts, puzzle, primes, romberg, matmul, gauss, tree, stream, costs, commands, loop, \
             mandelbrot, spmm",
        ),
        ("queens,n=8", "workload queens: options follow a colon, as in queens:n=8"),
        ("queens:m=8", "workload queens has no option 'm'; it has n, cutoff"),
        ("queens:n=0", "workload queens: n is a whole number from 1 to 27, not '0'"),
        ("queens:n=eight", "workload queens: n is a whole number from 1 to 27, not 'eight'"),
        ("queens:8", "workload queens has no option '8'; it has n, cutoff"),
        ("fibonacci:n=91", "workload fibonacci: n is a whole number from 0 to 90, not '91'"),
        ("uts:tree=T9", "workload uts: tree is T1, T2, T3, T4, T5, T1L, T2L or T3L, not 'T9'"),
        ("uts:kind=binomial,tree=T1", "workload uts has no option 'tree'; it has kind, b0, seed, q, m, grain"),
        ("uts:b0=4", "workload uts has no option 'b0'; it has kind, tree, grain"),
        ("uts:kind=binomial,q=0.5,m=2", "workload uts: q times m must be below 1, or the tree need not end"),
        ("uts:kind=geometric,shape=exponential,b0=1", "workload uts: b0 must be above 1 with shape=exponential, or the tree need not end"),
        ("uts:kind=geometric,b0=1e7", "workload uts: b0 is a number from 0 to below 1000000, not '1e7'"),
        ("puzzle:start=1-2-3", "workload puzzle: start: must be each of the numbers 0 to 15 once, as in 1-2-0-3-..-15"),
        (
            "puzzle:start=0-2-1-3-4-5-6-7-8-9-10-11-12-13-14-15",
            "workload puzzle: start: no moves bring these tiles into order: two of them would have to be swapped",
        ),
        ("primes:n=1000000000000,segment=9", "workload primes: segment=9 numbers a task make more than 4194304 tasks"),
        ("romberg:tolerance=0", "workload romberg: tolerance is a number from 0.000000000001 to 1, not '0'"),
        ("gauss:n=0", "workload gauss: n is a whole number from 1 to 8192, not '0'"),
        ("tree:time=1s,task=1us", "workload tree: time and task exclude each other"),
        ("tree:time=5", "workload tree: time is a time such as 200ms, 1.5us or 0s, not '5'"),
        ("tree:cost=work", "workload tree: cost is sleep, spin or virtual, not 'work'"),
        ("tree:children=2,least=3", "workload tree: least=3 children are more than children=2"),
        ("stream:utilisation=1", "workload stream: utilisation is a number between 0 and 1, not '1'"),
        ("stream:rate=0", "workload stream: rate is a number above 0, or none (migrations then take no time), not '0'"),
        ("stream:rate=fast", "workload stream: rate is a number above 0, or none (migrations then take no time), not 'fast'"),
        ("stream:unit=5us", "workload stream: unit is 1ms or more, so that ticks are fine enough"),
        ("stream:levels=30", "workload stream: a graph might have more than 10000000 tasks; ask for fewer levels or children"),
    ] {
        let said = find(spec).err().map(|why| why.to_string());
        assert_eq!(said.as_deref(), Some(sentence), "{spec}");
    }
}

#[test]
fn the_registry_tells_of_all_options() {
    for entry in ALL {
        let why = find(&format!("{}:nonsense=1", entry.name)).err().unwrap().to_string();
        let known = why.rsplit_once("; it has ").unwrap().1;
        for key in known.split(", ") {
            assert!(entry.options.contains(&format!("{key}=")), "{}: {key} is not in its options", entry.name);
        }
        assert!(find(entry.name).is_ok() && !entry.examples.is_empty() && !entry.title.is_empty() && !entry.facts.answer.is_empty());
    }
}
