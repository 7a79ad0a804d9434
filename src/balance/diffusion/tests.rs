//! The schemes on loads of real numbers, against what eigenvalues say; and the balancers on whole tasks.

use std::f64::consts::PI;

use super::spectrum::extremes;
use super::*;
use crate::balance::testing::Trial;
use crate::load::Powers;
use proptest::prelude::*;

fn topology(spec: &str) -> Topology {
    Topology::parse(spec, 1).unwrap()
}

/// The loads after these steps, and what has crossed each end of a link.
fn spread(topology: &Topology, loads: &[f64], steps: &[Factors]) -> (Vec<f64>, Vec<Vec<Link>>) {
    let mut loads = loads.to_vec();
    let mut links: Vec<Vec<Link>> = (0..topology.nodes()).map(|node| links_of(topology, node)).collect();
    for factors in steps {
        let before = loads.clone();
        for (load, links) in loads.iter_mut().zip(&mut links) {
            let theirs: Vec<f64> = links.iter().map(|link| before[link.to as usize]).collect();
            step(load, links, &theirs, *factors);
        }
    }
    (loads, links)
}

fn size(loads: &[f64]) -> f64 {
    loads.iter().map(|load| load * load).sum::<f64>().sqrt()
}

/// Topologies with an eigenvector of their second eigenvalue, in closed form, and that eigenvalue.
fn slowest() -> Vec<(Topology, Vec<f64>, f64)> {
    let mut cases = Vec::new();
    for d in [1u32, 2, 3, 5, 8] {
        let vector = (0..1u32 << d).map(|node| if node & 1 == 0 { 1.0 } else { -1.0 }).collect();
        cases.push((topology(&format!("hypercube:{d}")), vector, 2.0));
    }
    for n in [2u32, 3, 8, 17] {
        let vector = (0..n).map(|node| (PI * (f64::from(node) + 0.5) / f64::from(n)).cos()).collect();
        cases.push((topology(&format!("line:{n}")), vector, 2.0 - 2.0 * (PI / f64::from(n)).cos()));
    }
    for (rows, columns) in [(3u32, 3u32), (4, 6), (5, 8), (8, 8)] {
        let turn = |node: u32| 2.0 * PI * f64::from(node % columns) / f64::from(columns);
        let vector = (0..rows * columns).map(|node| turn(node).cos()).collect();
        cases.push((topology(&format!("torus:{rows}x{columns}")), vector, 2.0 - 2.0 * (2.0 * PI / f64::from(columns)).cos()));
    }
    cases
}

#[test]
fn the_vectors_are_eigenvectors_of_the_second_eigenvalue() {
    for (topology, vector, eigenvalue) in slowest() {
        assert!((extremes(&topology).unwrap().second - eigenvalue).abs() < 1e-12, "{topology}");
        for node in 0..topology.nodes() {
            let mine = vector[node as usize];
            let times: f64 = topology.neighbours(node).iter().map(|other| mine - vector[*other as usize]).sum();
            assert!((times - eigenvalue * mine).abs() < 1e-12, "{topology}");
        }
    }
}

#[test]
fn first_order_takes_as_many_steps_as_the_second_eigenvalue_says() {
    for (topology, vector, _) in slowest() {
        let gamma = extremes(&topology).unwrap().gamma();
        let steps = fos::factors(&topology, 0.01);
        let part = |count: usize| size(&spread(&topology, &vector, &steps[..count]).0) / size(&vector);
        for count in 0..steps.len().min(40) {
            assert!((part(count) - gamma.powi(count as i32)).abs() < 1e-9, "{topology}, {count} steps");
        }
        // ln 0.01 / ln g, or one where nothing is left.
        let expected = if gamma > 1e-12 { (0.01f64.ln() / gamma.ln()).ceil() as usize } else { 1 };
        assert_eq!(steps.len(), expected, "{topology}");
        assert!(part(steps.len()) <= 0.01 + 1e-12 && part(steps.len() - 1) > 0.01, "{topology}");
    }
}

#[test]
fn second_order_takes_as_many_steps_as_the_second_eigenvalue_says() {
    for (topology, vector, _) in slowest() {
        let gamma = extremes(&topology).unwrap().gamma();
        let steps = sos::factors(&topology, 0.01);
        let part = |count: usize| size(&spread(&topology, &vector, &steps[..count]).0) / size(&vector);
        for count in 0..=steps.len() {
            assert!((part(count) - sos::left(gamma, count as u32)).abs() < 1e-9, "{topology}, {count} steps");
        }
        assert!(part(steps.len()) <= 0.01 + 1e-9 && part(steps.len() - 1) > 0.01, "{topology}");
        assert!(steps.len() <= fos::factors(&topology, 0.01).len().max(2), "{topology}");
    }
}

#[test]
fn the_optimal_polynomial_takes_a_step_for_each_eigenvalue_and_leaves_nothing() {
    for d in 1..=9 {
        assert_eq!(ops::factors(&topology(&format!("hypercube:{d}"))).len(), d);
    }
    for spec in
        ["hypercube:7", "line:40", "ring:41", "torus:6x7", "mesh:5x8", "mesh:3x4x5", "grid:4x4", "torus:2x3x4", "complete:13", "mesh:7x1"]
    {
        let topology = topology(spec);
        let loads: Vec<f64> = (0..topology.nodes()).map(|node| f64::from(node * node % 97)).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let steps = ops::factors(&topology);
        let worst = |steps: &[Factors]| spread(&topology, &loads, steps).0.iter().map(|load| (load - mean).abs()).fold(0.0, f64::max);
        assert!(worst(&steps) < 1e-6, "{spec}: {}", worst(&steps));
        assert!(worst(&steps[1..]) > 1e-3, "{spec}: no step is too many");
    }
}

/// The flow with the least sum of squares is one that comes of a potential: around any square it adds up to nothing.
#[test]
fn what_flows_comes_of_a_potential() {
    let topology = topology("torus:4x5");
    let loads: Vec<f64> = (0..20u32).map(|node| f64::from(node * 7 % 13)).collect();
    for steps in [fos::factors(&topology, 0.01), sos::factors(&topology, 0.01), ops::factors(&topology)] {
        let (after, links) = spread(&topology, &loads, &steps);
        let flow = |from: u32, to: u32| links[from as usize].iter().find(|link| link.to == to).unwrap().all;
        for node in 0..20 {
            let out: f64 = links[node as usize].iter().map(|link| link.all).sum();
            assert!((loads[node as usize] - out - after[node as usize]).abs() < 1e-9);
        }
        assert!((flow(0, 1) + flow(1, 6) + flow(6, 5) + flow(5, 0)).abs() < 1e-9);
        assert_eq!(flow(0, 1), -flow(1, 0), "both ends find the same");
    }
}

#[test]
fn whole_tasks_follow_the_flow() {
    let trial = Trial::of("ops", "line:3", &[6, 0, 0]);
    assert_eq!((trial.after.clone(), trial.moves()), (vec![2, 2, 2], vec![(0, 1, 4), (1, 2, 2)]));
    assert_eq!(Trial::of("ops", "hypercube:3", &[800, 0, 0, 0, 0, 0, 0, 0]).after, [100; 8]);
    assert_eq!(Trial::of("fos", "hypercube:3", &[7; 8]).moves(), []);
    assert_eq!(Trial::of("sos", "line:1", &[9]).after, [9]);
    // Each on its own quota.
    let powers = Powers::listed(vec![1, 2, 3, 6]).unwrap();
    assert_eq!(Trial::with("ops", "hypercube:2", &[0, 0, 0, 120], powers, 0).after, [10, 20, 30, 60]);
}

#[test]
fn the_predicted_cost_has_both_reductions() {
    // All links carry tasks.
    for (spec, loads) in
        [("line:2", vec![80, 0]), ("line:3", vec![90, 0, 0]), ("line:5", vec![500, 0, 0, 0, 0]), ("hypercube:1", vec![9, 1])]
    {
        for name in ["fos", "sos", "ops"] {
            let trial = Trial::of(name, spec, &loads);
            assert_eq!(trial.moves().len() as u64, links(&topology(spec)), "{name} on {spec}");
            let cost = (crate::balance::find(name).unwrap().entry.facts.cost)(&topology(spec));
            assert_eq!(trial.counts.messages, cost.messages, "{name} on {spec}");
            assert!(u64::from(trial.counts.chain) <= cost.steps && trial.counts.bytes <= cost.bytes, "{name} on {spec}: {cost:?}");
        }
    }
}

#[test]
fn links_are_counted_without_looking_at_each() {
    for spec in ["hypercube:5", "torus:4x2x3", "mesh:3x1x4", "line:7", "line:1", "ring:6", "ring:2", "grid:2x5", "complete:9", "torus:5x5"]
    {
        let topology = topology(spec);
        let ends: usize = (0..topology.nodes()).map(|node| topology.neighbours(node).len()).sum();
        assert_eq!(2 * links(&topology), ends as u64, "{spec}");
    }
}

#[test]
fn a_total_is_divided_by_the_flows() {
    assert_eq!(divided(10, &[1.0, 1.0, 1.0]), [3, 4, 3]);
    assert_eq!(divided(0, &[2.0, 1.0]), [0, 0]);
    assert_eq!(divided(7, &[0.5]), [7]);
    assert_eq!(divided(7, &[]), [0; 0]);
    let huge = divided(u64::MAX, &[1.0, 3.0, 0.1, 7.0]);
    assert_eq!(huge.iter().map(|part| u128::from(*part)).sum::<u128>(), u128::from(u64::MAX));
}

#[test]
fn long_ways_are_refused() {
    let why = |balancer: &str, spec: &str| {
        let chosen = crate::balance::find(balancer).unwrap();
        chosen.entry.objection(&topology(spec)).map(|why| why.to_string()).unwrap_or_default()
    };
    assert_eq!(why("fos", "line:64"), "balancer fos takes 3821 steps there, which sos and ops need fewer of; 1024 at most are allowed");
    assert_eq!((why("sos", "line:64"), why("ops", "line:64")), (String::new(), String::new()));
    assert_eq!(
        why("ops", "line:300"),
        "balancer ops takes a step for each distinct eigenvalue of the topology, and there are more than 256 there"
    );
    assert!(why("sos", "line:4096").contains(" steps there, "), "{}", why("sos", "line:4096"));
    let wrong = |spec: &str| crate::balance::find(spec).unwrap_err().to_string();
    assert_eq!(wrong("fos:part=0"), "balancer fos: part is a number from 0.000001 to 0.5, not '0'");
    assert_eq!(wrong("sos:part=NaN"), "balancer sos: part is a number from 0.000001 to 0.5, not 'NaN'");
    assert_eq!(wrong("ops:part=0.1"), "balancer ops takes no options, 'part' was given");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A node that gives ends at most at its quota; all together are near theirs, except for what diffusion leaves.
    #[test]
    fn nodes_end_near_their_quotas(
        spec in prop::sample::select(vec!["hypercube:4", "mesh:3x5", "torus:4x4", "line:9", "ring:10", "grid:2x5", "complete:6", "torus:2x2x3"]),
        loads in prop::collection::vec(0u64..2000, 16),
        scheme in prop::sample::select(vec!["fos", "sos", "ops"]),
        seed in any::<u64>(),
    ) {
        let topology = topology(spec);
        let nodes = topology.nodes();
        let loads = &loads[..nodes as usize];
        let trial = Trial::with(scheme, spec, loads, Powers::equal(nodes, nodes), seed);
        let above: Vec<f64> = loads.iter().zip(&trial.quota).map(|(load, quota)| *load as f64 - *quota as f64).collect();
        let part = if scheme == "ops" { 1e-9 } else { PART };
        // The sum of absolute values is at most the root of the number of nodes times that of squares.
        let most = part * size(&above) * f64::from(nodes).sqrt() * 2.0 + 2.0 * links(&topology) as f64 + 1e-6;
        if !trial.declined {
            let off: u64 = trial.after.iter().zip(&trial.quota).map(|(after, quota)| after.abs_diff(*quota)).sum();
            prop_assert!(off as f64 <= most, "{:?} and {:?}", trial.after, trial.quota);
            for (src, ..) in trial.moves() {
                let (after, quota) = (trial.after[src as usize], trial.quota[src as usize]);
                prop_assert!(after <= quota, "node {src}: {:?} and {:?}", trial.after, trial.quota);
            }
        }
    }
}
