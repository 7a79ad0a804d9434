//! Orders of events, explored by seed: messages are delayed by up to many times the length of a task, and nothing is lost, nothing stops early,
//! nothing hangs.

use super::incremental::{TRIGGERS, spec};
use super::*;
use crate::balance;
use crate::schedule::accounting::{Entry, Happening};

/// Seeds for each scheduler: what `EXPLORED_SEEDS` says, otherwise 10,000 where the code is optimised.
fn seeds() -> u64 {
    let usual = if cfg!(debug_assertions) { 500 } else { 10_000 };
    std::env::var("EXPLORED_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(usual)
}

/// A network that delays messages, more or less and in one way or the other.
fn disturbed(seed: u64, task: Ticks) -> Model {
    let rules = Rules::seeded(seed);
    let rules = match seed % 4 {
        0 => rules.delay_up_to(task / 2),
        1 => rules.delay_up_to(task * 5).shuffle(),
        2 => rules.delay_up_to(task * 60),
        _ => rules.delay_heavily(task / 2).shuffle(),
    };
    let network = if (seed / 3).is_multiple_of(3) { Network::Zero } else { Network::default() };
    Model { network, seed, rules, ..Model::default() }
}

/// Ranks and a topology that they may not fill.
fn shape(scheduler: &str, seed: u64) -> Overlay {
    let ranks = [2, 3, 5, 8, 6][(seed / 5 % 5) as usize];
    let cube = overlay("hypercube:3", ranks);
    match seed / 25 % 2 {
        1 if find(scheduler).unwrap().objection(&cube.topology).is_none() => cube,
        _ => fitted(scheduler, ranks),
    }
}

fn explore(scheduler: &str) {
    explore_seeds(scheduler, seeds());
}

fn explore_seeds(scheduler: &str, seeds: u64) {
    const TASK: Ticks = 50_000;
    for seed in 0..seeds {
        let (overlay, model) = (shape(scheduler, seed), disturbed(seed, TASK));
        let ranks = overlay.placement.ranks();
        let options = Options {
            workers: if seed % 7 == 0 { 3 } else { 1 },
            style: [None, Some(Style::Inline), Some(Style::Worker), None][(seed / 2 % 4) as usize],
            migration: (seed % 11 == 0).then_some(TASK),
            ..Options::default()
        };
        let context = |why: &dyn std::fmt::Debug| format!("{scheduler}, seed {seed}, {ranks} ranks: {why:?}");
        let (answer, expected, nodes, tasks) = match seed % 3 {
            0 => {
                let tree = Detached { seed, cost: TASK / 3 };
                let root = Knot { number: seed, levels: 4 };
                let size = tree.size(root);
                let outcome = run(scheduler, &overlay, model, &options, tree, &move || Roots::One(root));
                let outcome = outcome.unwrap_or_else(|why| panic!("{}", context(&why)));
                (outcome.answer, Some(size), outcome.nodes, Some(size))
            }
            1 => {
                let (n, roots) = (5 + seed / 3 % 2, 1 + seed / 6 % 3);
                let make = move || Roots::Many(vec![n as u32; roots as usize]);
                let outcome = run(scheduler, &overlay, model, &options, Fibonacci { cost: TASK }, &make);
                let outcome = outcome.unwrap_or_else(|why| panic!("{}", context(&why)));
                (outcome.answer, Some(roots * fibonacci(n as u32)), outcome.nodes, Some(roots * fibonacci_tasks(n as u32)))
            }
            _ => {
                let make = move || Roots::Many(vec![Range::below(400); 1 + (seed / 3 % 2) as usize]);
                let outcome = run(scheduler, &overlay, model, &options, Range { cost: TASK / 20 }, &make);
                let outcome = outcome.unwrap_or_else(|why| panic!("{}", context(&why)));
                (outcome.answer, Some((1 + seed / 3 % 2) * 400 * 399 / 2), outcome.nodes, None)
            }
        };
        assert_eq!(answer, expected, "{}", context(&"answer"));
        let sum = |part: fn(&NodeReport) -> u64| nodes.iter().map(part).sum::<u64>();
        let (executed, born) = (sum(|node| node.tasks), sum(|node| node.born));
        assert_eq!(executed, born, "{}", context(&"tasks"));
        assert_eq!(executed, tasks.unwrap_or(executed), "{}", context(&"tasks"));
        assert_eq!(sum(|node| node.migrated_out), sum(|node| node.migrated_in), "{}", context(&"migrations"));
    }
}

/// Tasks so short that answers wait for each other, while a message takes as long as a number of tasks.
#[test]
fn answers_that_travel_together_are_not_lost() {
    const TASK: Ticks = 500;
    let (n, seeds) = (12, seeds().div_ceil(25));
    for scheduler in schedulers() {
        let mut together = 0;
        for seed in 0..seeds {
            let (overlay, model) = (shape(scheduler, seed), disturbed(seed, TASK * 4));
            let style = if seed % 2 == 0 { Style::Inline } else { Style::Sliced };
            let options = Options { style: Some(style), trace: true, ..Options::default() };
            let outcome = run(scheduler, &overlay, model, &options, Fibonacci { cost: TASK }, &move || Roots::Many(vec![n; 2]));
            let outcome = outcome.unwrap_or_else(|why| panic!("{scheduler}, seed {seed}: {why}"));
            assert_eq!(outcome.answer, Some(2 * fibonacci(n)), "{scheduler}, seed {seed}");
            assert_eq!(outcome.nodes.iter().map(|node| node.tasks).sum::<u64>(), 2 * fibonacci_tasks(n), "{scheduler}, seed {seed}");
            together += outcome.nodes.iter().map(|node| left_together(&node.trace)).sum::<usize>();
        }
        assert!(together > 0 || scheduler != "random", "every answer left by itself");
    }
}

/// Answers that left at the same tick as the one before, for the same node.
fn left_together(trace: &[Entry]) -> usize {
    let left: Vec<_> = trace.iter().filter(|entry| matches!(entry.what, Happening::AnswerLeft { .. })).collect();
    left.windows(2).filter(|pair| (pair[0].at, pair[0].what) == (pair[1].at, pair[1].what)).count()
}

/// The registry's examples are shared out among this number of tests, which run side by side.
const TESTS: usize = 6;

/// All schedulers, those whose place in the list has this remainder.
fn explore_every(remainder: usize) {
    schedulers().skip(remainder).step_by(TESTS).for_each(explore);
}

macro_rules! explored {
    ($($test:ident: $explore:expr,)*) => {
        $(#[test]
        fn $test() {
            $explore;
        })*
    };
}

explored! {
    schedulers_0_lose_nothing: explore_every(0),
    schedulers_1_lose_nothing: explore_every(1),
    schedulers_2_lose_nothing: explore_every(2),
    schedulers_3_lose_nothing: explore_every(3),
    schedulers_4_lose_nothing: explore_every(4),
    schedulers_5_lose_nothing: explore_every(5),
    hierarchical_with_dedicated_ranks_loses_nothing: explore("hierarchical:medians=hadamard,medians=dedicated,host=dedicated"),
    incremental_when_all_idle_loses_nothing: explore("incremental:balancer=direct,trigger=all"),
    incremental_every_now_and_then_loses_nothing: explore("incremental:balancer=dem,trigger=periodic,period=0.05"),
    incremental_by_prediction_loses_nothing: explore("incremental:balancer=optimal,trigger=predicted"),
}

/// The seeds of a scheduler are shared out among the balancers, so that each trigger gets the same number over all of them.
#[test]
fn incremental_with_every_balancer_loses_nothing() {
    let seeds = seeds().div_ceil(if cfg!(debug_assertions) { 100 } else { balance::ALL.len() as u64 });
    for entry in balance::without_places() {
        for trigger in TRIGGERS {
            explore_seeds(&spec(entry.name, trigger), seeds);
        }
    }
}
