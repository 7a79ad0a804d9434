//! No phase ends with a slower slowest rank than it began with, whatever the tasks, the powers and the ranks.

use bytes::Bytes;
use equipoise::balance::{ALL, Entry, find};
use equipoise::load::{Powers, Segment, Task, TaskBatch, WorkQueue};
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise_lab::workload::TaskSource;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::properties::{Case, case, describe};
use super::runner::{Outcome, Setup};
use super::weights::{Weights, queues, weights};

/// A few ranks, or up to 40, and what their tasks are like.
fn cases() -> impl Strategy<Value = (Case, Weights, f64)> {
    let kinds = prop_oneof![1 => Just(Weights::Unit), 4 => weights()];
    (case(), any::<bool>(), kinds, prop::sample::select(vec![0.0, 0.0, 0.1, 0.5, 0.9])).prop_map(|(case, few, weights, pinned)| {
        let mut case = case;
        case.ranks = if few { 1 + case.ranks % 6 } else { case.ranks };
        (case, weights, pinned)
    })
}

/// Runs a case, and returns whether it was declined.
fn check(entry: &Entry, (case, weights, pinned): &(Case, Weights, f64)) -> Result<bool, TestCaseError> {
    let mut setup = case.setup(entry);
    setup.disturbance = case.seed.is_multiple_of(2).then_some(case.seed);
    let queues = queues(case, setup.powers.nodes(), *weights, *pinned);
    let fixed: Vec<Option<TaskBatch>> = queues.iter().map(|queue| queue.pinned().cloned()).collect();
    let outcome = setup.run(queues);
    let [before, after] = outcome.slowest;
    prop_assert!(after <= before, "{after:?} after {before:?}: {}", describe(&setup, &outcome));
    prop_assert_eq!(outcome.checksum_after(), outcome.checksum_before, "{}", describe(&setup, &outcome));
    prop_assert!(outcome.queues.iter().zip(&fixed).all(|(queue, pinned)| queue.pinned() == pinned.as_ref()));
    Ok(outcome.declined)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn nobody_is_slower_than_the_slowest_was(case in cases()) {
        for entry in case.0.drawn(ALL.iter().copied()) {
            check(entry, &case)?;
        }
    }

    /// Tasks go back the same way whatever the network does.
    #[test]
    fn what_is_declined_does_not_depend_on_the_network(case in cases()) {
        for entry in case.0.drawn(ALL.iter().copied()) {
            let mut setup = case.0.setup(entry);
            let run = |setup: &Setup| setup.run(queues(&case.0, setup.powers.nodes(), case.1, case.2));
            let calm = run(&setup);
            setup.disturbance = Some(case.0.seed);
            let disturbed = run(&setup);
            prop_assert_eq!((calm.declined, calm.moves()), (disturbed.declined, disturbed.moves()), "{}", describe(&setup, &calm));
        }
    }
}

/// Two thousand cases with weights, through every balancer: `cargo test --test it two_thousand -- --ignored --nocapture` says how many were
/// declined.
#[test]
#[ignore = "takes a minute or more"]
fn two_thousand_random_cases_with_weights_make_nobody_slower() {
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(13), ..Config::default() });
    let mut declined = vec![0; ALL.len()];
    let (mut seen, all) = (0, 2000);
    while seen < all {
        let case = cases().new_tree(&mut runner).expect("a case").current();
        if matches!(case.1, Weights::Unit) {
            continue;
        }
        seen += 1;
        for (entry, declined) in ALL.iter().zip(&mut declined) {
            *declined += u32::from(check(entry, &case).unwrap_or_else(|why| panic!("{why}")));
        }
    }
    for (entry, declined) in ALL.iter().zip(declined) {
        println!("{}: {declined} of {all} declined, none slower", entry.name);
    }
}

/// Tasks of these weights on a node each, the loads by node as numbers of tasks.
fn tasks(loads: &[u64], weights: &[u64]) -> Vec<WorkQueue> {
    let mut ids = 0..;
    let mut weights = weights.iter().copied().chain(std::iter::repeat(1));
    let mut queue = |load: &u64| {
        let task = |id| Segment::from(Task { id, weight: weights.next().unwrap_or(1), payload: Bytes::new() });
        WorkQueue::new(ids.by_ref().take(*load as usize).map(task).collect())
    };
    loads.iter().map(&mut queue).collect()
}

fn run(balancer: &str, topology: &str, powers: &[u64], loads: &[u64], weights: &[u64], plain: bool) -> Outcome {
    let nodes = loads.len() as u32;
    let topology = Topology::parse(topology, nodes).expect("a topology");
    let powers = Powers::listed(powers.to_vec()).expect("powers");
    let overlay = Overlay::one_host(topology, nodes).expect("a rank a node");
    Setup { plain, ..Setup::new(balancer, overlay, powers) }.run(tasks(loads, weights))
}

/// Cases found by a reviewer: each made the slowest rank slower, and does so if the rule is followed plainly; `direct` and `optimal` repair
/// it by now.
#[test]
fn the_examples_make_nobody_slower() {
    let heavy: Vec<u64> = (0..20).map(|task| if task == 10 { 1_000_000 } else { 1 }).collect();
    type Example<'a> = (&'a str, &'a str, &'a [u64], &'a [u64], &'a [u64]);
    let examples: &[Example<'_>] = &[
        ("cwa", "hypercube:2", &[1, 10, 2, 10], &[0, 0, 0, 2], &[100, 1]),
        ("direct", "hypercube:2", &[1, 10, 2, 10], &[0, 0, 0, 2], &[100, 1]),
        ("optimal", "complete:4", &[1, 10, 2, 10], &[0, 0, 0, 2], &[100, 1]),
        ("twa", "tree", &[3, 1, 10, 1], &[0, 0, 3, 0], &[1, 100, 100]),
        ("optimal", "complete:3", &[100, 2, 100], &[0, 0, 20], &heavy),
        ("optimal", "complete:3", &[1, 1, 1], &[0, 2, 1], &[1, 1, 10]),
        ("kwa", "torus", &[1, 1, 1, 1], &[0, 2, 1, 2], &[1, 1, 10, 2, 1]),
        ("pslb", "line:2", &[1, 10], &[0, 2], &[]),
        ("psts", "grid:2", &[1, 10], &[0, 2], &[]),
        ("dem", "hypercube:1", &[3, 1], &[2, 0], &[]),
    ];
    for (balancer, topology, powers, loads, weights) in examples {
        let plain = run(balancer, topology, powers, loads, weights, true);
        let repairs = ["direct", "optimal"].contains(balancer);
        assert!((plain.slowest[1] > plain.slowest[0] || repairs) && !plain.declined, "{balancer}: {:?}", plain.slowest);
        let outcome = run(balancer, topology, powers, loads, weights, false);
        assert!(outcome.slowest[1] <= outcome.slowest[0] && (outcome.declined || repairs), "{balancer}: {:?}", outcome.slowest);
        assert_eq!(outcome.checksum_after(), outcome.checksum_before);
    }
}

/// Task times of a real run on 32 ranks, dealt out evenly first (the largest to the least loaded): what is nearly even stays so.
#[test]
fn nearly_even_real_loads_become_no_worse() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/loads/lbaf-nolb-8color-32ranks");
    let mut worse_if_plain = 0;
    for phase in [1, 301, 601, 901] {
        let source = TaskSource::parse(&format!("lbaf:{folder},phase={phase}")).expect("a source");
        let run = source.measured().expect("a readable run").expect("a measured run");
        let mut tasks: Vec<Task> = (0..32)
            .flat_map(|node| {
                run.queue(RankId::new(node), 32).expect("a queue").into_batch().segments().flat_map(Segment::tasks).collect::<Vec<_>>()
            })
            .collect();
        tasks.sort_by_key(|task| std::cmp::Reverse(task.weight));
        let mut dealt = vec![(0u64, TaskBatch::default()); 32];
        for task in tasks {
            let least = dealt.iter_mut().min_by_key(|(load, _)| *load).expect("a rank");
            least.0 += task.weight;
            least.1.push(Segment::from(task));
        }
        let queues: Vec<WorkQueue> = dealt.into_iter().map(|(_, batch)| WorkQueue::new(batch)).collect();
        for entry in ALL {
            let topology = entry.default_topology(32);
            let overlay = Overlay::one_host(topology, 32).expect("32 ranks");
            let powers = Powers::equal(32, overlay.topology.nodes());
            let mut queues = queues.clone();
            queues.resize(overlay.topology.nodes() as usize, WorkQueue::default());
            let mut setup = Setup::new(entry.name, overlay, powers);
            let [before, after] = setup.run(queues.clone()).slowest;
            assert!(after <= before, "{} in phase {phase}: {before:?} became {after:?}", entry.name);
            setup.plain = true;
            let [before, after] = setup.run(queues).slowest;
            worse_if_plain += u32::from(after > before && ["direct", "optimal"].contains(&entry.name));
        }
    }
    assert_eq!(worse_if_plain, 0, "direct and optimal repair what they round blindly");
}

/// Task times of real runs, of which some are pinned: refinement ends near the mean, and so do those that repair.
#[test]
fn whole_tasks_of_real_runs_end_near_the_mean() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/loads");
    let (toy, colours) = (format!("lbaf:{data}/lbaf-toy-fewer-16ranks"), format!("lbaf:{data}/lbaf-nolb-8color-32ranks"));
    for (source, ranks) in [(toy, 16), (format!("{colours},phase=301"), 32), (format!("{colours},phase=901"), 32)] {
        let run = TaskSource::parse(&source).and_then(|source| source.measured()).expect("a readable run").expect("a measured run");
        let max_over_mean = |balancer: &str| {
            let topology = match balancer.strip_suffix("+refine") {
                Some(walk) => find(walk).expect("a walk").entry.default_topology(ranks),
                None => Topology::parse("complete", ranks).expect("a topology"),
            };
            let overlay = Overlay::one_host(topology, ranks).expect("a rank a node");
            let queues = (0..ranks).map(|node| run.queue(RankId::new(node), ranks).expect("a queue")).collect();
            let after = Setup::new(balancer, overlay, Powers::equal(ranks, ranks)).run(queues).after();
            *after.iter().max().expect("a rank") as f64 * f64::from(ranks) / after.iter().sum::<u64>() as f64
        };
        let [greedy, kk, refine, both] = ["greedy", "kk", "refine", "greedy-refine"].map(max_over_mean);
        let best = greedy.min(kk).min(refine);
        assert!(refine <= 1.01 * best && both <= 1.01 * best, "{source}: {refine} and {both} against {best}");
        assert!(["direct", "optimal"].map(max_over_mean).iter().all(|after| *after <= 1.06), "{source}");
        let mut far = Vec::new();
        for walk in ["twa", "cwa", "mwa", "kwa", "dem", "fos", "sos", "ops", "pslb", "psts", "tempered"] {
            let repaired = max_over_mean(&format!("{walk}+refine"));
            if repaired > 1.05 * greedy {
                far.push((walk, repaired));
            }
        }
        assert!(far.is_empty(), "{far:?} on {source}, by longest first {greedy}");
    }
}
