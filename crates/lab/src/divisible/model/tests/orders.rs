//! The result does not depend on the numbering of processors, and no order of service is better.

use proptest::prelude::*;

use super::super::network::{ModelLink, ModelNetwork};
use super::*;

/// Processors behind the hub: speed, link and start-up, from a few values so that some are alike.
fn leaves(most: usize) -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    let one = (
        prop::sample::select(vec![0.5, 1.0, 3.0, 4.0]),
        prop::sample::select(vec![0.2, 1.0, 2.5]),
        prop::sample::select(vec![0.0, 0.01, 0.05, 0.2]),
    );
    prop::collection::vec(one, 1..=most)
}

fn star(leaves: &[(f64, f64, f64)], change: impl Fn(&mut Question)) -> Question {
    let mut question = Question {
        z: 0.3,
        speeds: std::iter::once(3.0).chain(leaves.iter().map(|leaf| leaf.0)).collect(),
        links: leaves.iter().map(|leaf| leaf.1).collect(),
        startups: leaves.iter().map(|leaf| leaf.2).collect(),
        ..question(&format!("star:{}", leaves.len() + 1), Ports::One)
    };
    change(&mut question);
    question
}

/// Total time if these are served in this order, found by halving an interval; infinity if a processor would get nothing.
fn time_in_order(question: &Question, order: &[usize]) -> f64 {
    let within = |time: f64| {
        let (mut load, mut left) = (time * question.speeds[0], time);
        for &leaf in order {
            let (seconds, link, startup) = (1.0 / question.speeds[leaf + 1], 0.3 * question.links[leaf], question.startups[leaf]);
            let part = (left - startup) / (link + seconds);
            load += part.max(0.0);
            left = part.max(0.0) * seconds;
        }
        load
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle) < 1.0 { low = middle } else { high = middle }
    }
    high
}

/// Calls for all orders of all subsets.
fn each_order(leaves: usize, begun: &mut Vec<usize>, look: &mut impl FnMut(&[usize])) {
    look(begun);
    for leaf in 0..leaves {
        if !begun.contains(&leaf) {
            begun.push(leaf);
            each_order(leaves, begun, look);
            begun.pop();
        }
    }
}

/// The example that was wrong: the third of the processors behind the hub had the fourth's speed.
#[test]
fn two_numberings_of_a_star_are_one_star() {
    for change in [
        |question: &mut Question| question.startup = 0.02,
        |question: &mut Question| question.installments = 2,
        |question: &mut Question| (question.installments, question.startup) = (2, 0.01),
        |question: &mut Question| question.results = 0.3,
        |question: &mut Question| (question.results, question.startup) = (0.1, 0.05),
    ] {
        let of = |speeds: [f64; 4]| {
            let mut question = Question { speeds: speeds.to_vec(), z: 0.3, ..question("star:4", Ports::One) };
            change(&mut question);
            solve(&question).unwrap()
        };
        let solutions = [[3.0, 1.0, 4.0, 3.0], [3.0, 1.0, 3.0, 4.0], [3.0, 4.0, 3.0, 1.0], [3.0, 3.0, 1.0, 4.0]].map(of);
        for other in &solutions[1..] {
            assert!(near(other.makespan, solutions[0].makespan, 1e-12), "{} {}", other.makespan, solutions[0].makespan);
            assert_eq!(other.method, solutions[0].method);
        }
    }
}

#[test]
fn what_is_not_proven_is_not_called_so() {
    // Twelve that all differ are too many for all orders.
    let leaves: Vec<(f64, f64, f64)> =
        (1..=12).map(|leaf| (1.0 / f64::from(leaf), 0.1 + 0.01 * f64::from(leaf % 5), 0.001 * f64::from(leaf * 7 % 11))).collect();
    let solution = solve(&star(&leaves, |_| ())).unwrap();
    assert_eq!(solution.method, Method::Search);
    assert_finish_together(&solution);
    let turned: Vec<(f64, f64, f64)> = (0..12).map(|place| leaves[place * 5 % 12]).collect();
    assert_eq!(solve(&star(&turned, |_| ())).unwrap().makespan, solution.makespan);
    assert_eq!(solve(&star(&leaves[..7], |_| ())).unwrap().method, Method::Recursion);
}

proptest! {
    // Few: these cases take long, and each run draws others.
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_a_star_with_start_up_costs_is_better(leaves in leaves(5)) {
        let question = star(&leaves, |_| ());
        let solution = solve(&question).unwrap();
        prop_assert_eq!(solution.method, Method::Recursion);
        assert_finish_together(&solution);
        let mut best = f64::INFINITY;
        each_order(leaves.len(), &mut Vec::new(), &mut |order| best = best.min(time_in_order(&question, order)));
        prop_assert!(near(solution.makespan, best, 1e-9), "{} is not {best}", solution.makespan);
    }

    #[test]
    fn stars_do_not_depend_on_the_numbering(leaves in leaves(7), turn in 0usize..7, results in prop_oneof![Just(0.0), Just(0.2)]) {
        let turned: Vec<(f64, f64, f64)> = (0..leaves.len()).rev().map(|leaf| leaves[(leaf + turn) % leaves.len()]).collect();
        if results > 0.0 && leaves.len() > 3 {
            return Ok(());
        }
        let of = |leaves: &[(f64, f64, f64)]| solve(&star(leaves, |question| question.results = results)).unwrap();
        let (one, other) = (of(&leaves), of(&turned));
        prop_assert_eq!(one.method, other.method);
        // Processors behind links that are alike are served in the order of their numbers, in which the same sums are rounded.
        prop_assert!(near(one.makespan, other.makespan, 1e-12), "{} {}", one.makespan, other.makespan);
    }

    /// Through one port, with installments, results or start-up costs: trees whose processors are numbered otherwise, given as graphs.
    #[test]
    fn trees_do_not_depend_on_the_numbering(
        seeds in prop::collection::vec((0usize..100, prop::sample::select(vec![0.5, 1.0, 2.0]), prop::sample::select(vec![0.5, 1.0])), 3..6),
        startup in prop_oneof![Just(0.0), Just(0.03)],
        installments in 1usize..3,
        results in prop_oneof![Just(0.0), Just(0.25)],
        keys in prop::collection::vec(0u32..1000, 6),
    ) {
        let parents: Vec<usize> = seeds.iter().enumerate().map(|(place, seed)| seed.0 % (place + 1)).collect();
        let given: Vec<usize> = (0..=seeds.len()).collect();
        let mut turned = given.clone();
        turned[1..].sort_by_key(|node| keys[*node]);
        let of = |order: &[usize]| {
            let new = |node: usize| order.iter().position(|other| *other == node).unwrap();
            let edges: Vec<String> = (1..order.len()).map(|node| format!("{}-{}", new(parents[node - 1]), new(node))).collect();
            let of_seed = |node: &usize, what: fn(&(usize, f64, f64)) -> f64| if *node == 0 { 1.0 } else { what(&seeds[*node - 1]) };
            let question = Question {
                startup,
                installments,
                results,
                z: 0.4,
                speeds: order.iter().map(|node| of_seed(node, |seed| seed.1)).collect(),
                links: order[1..].iter().map(|node| of_seed(node, |seed| seed.2)).collect(),
                ..question(&format!("graph:edges={}", edges.join(",")), Ports::One)
            };
            solve(&question).unwrap()
        };
        let (one, other) = (of(&given), of(&turned));
        prop_assert_eq!(one.method, other.method);
        prop_assert!(near(one.makespan, other.makespan, 1e-12), "{} {}", one.makespan, other.makespan);
    }
}

/// All orders of a small star that returns results or gets installments, each solved by itself.
#[test]
fn no_order_of_a_star_is_better_by_linear_program() {
    for (installments, results) in [(2, 0.0), (1, 0.4), (2, 0.2)] {
        let leaves = [(1.0, 1.0, 0.01), (4.0, 1.5, 0.0), (3.0, 0.7, 0.03)];
        let question = star(&leaves, |question| (question.installments, question.results) = (installments, results));
        let ours = solve(&question).unwrap();
        assert_eq!(ours.method, Method::LinearProgram);
        let links = |order: &[usize]| -> Vec<ModelLink> {
            order
                .iter()
                .enumerate()
                .map(|(place, leaf)| ModelLink { from: 0, to: place + 1, startup: leaves[*leaf].2, seconds: 0.3 * leaves[*leaf].1 })
                .collect()
        };
        each_order(3, &mut Vec::new(), &mut |order| {
            let seconds = std::iter::once(1.0 / 3.0).chain(order.iter().map(|leaf| 1.0 / leaves[*leaf].0)).collect();
            let layer = std::iter::once(0).chain(order.iter().map(|_| 1)).collect();
            let mut network = ModelNetwork::new(0, layer, seconds, links(order));
            network.out[0] = (0..order.len()).collect();
            for last_first in [false, true] {
                let task = super::super::program::ProgramTask { ports: Ports::One, installments, results, last_first };
                let other = super::super::selection::divide(&network, task, 1.0).unwrap().division.timeline(&network).makespan;
                assert!(ours.makespan <= other * (1.0 + 1e-7), "{order:?}: {other} is less than {}", ours.makespan);
            }
        });
    }
}
