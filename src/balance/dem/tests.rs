//! The pairs' arithmetic, and phases against closed forms.

use super::*;
use crate::balance::find;
use crate::balance::testing::Trial;
use crate::load::Powers;
use proptest::prelude::*;

#[test]
fn example_2_of_the_paper() {
    let trial = Trial::of("dem", "hypercube:3", &[19, 11, 2, 9, 0, 9, 10, 4]);
    assert_eq!(trial.after, [8, 9, 8, 8, 7, 8, 8, 8]);
    assert_eq!(trial.task_hops(), 33);
}

/// Figure 9's case in its smallest form: in each dimension the difference can grow by one.
#[test]
fn loads_may_differ_by_the_dimension() {
    let loads: Vec<u64> = (0..16u32).map(|node| u64::from(node.count_ones())).collect();
    let trial = Trial::of("dem", "hypercube:4", &loads);
    assert_eq!(trial.after, loads);
}

#[test]
fn a_side_of_two_is_one_pair_wrapped_or_not() {
    for spec in ["mesh:2x2x2", "torus:2x2x2", "grid:2x2x2"] {
        let loads = [19, 11, 2, 9, 0, 9, 10, 4];
        assert_eq!(Trial::of("dem", spec, &loads).moves(), Trial::of("dem", "hypercube:3", &loads).moves());
    }
}

#[test]
fn a_line_goes_on_until_neighbours_differ_by_one() {
    let trial = Trial::of("dem:sweeps=until-stable", "line:5", &[25, 0, 0, 0, 0]);
    assert!(trial.after.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{:?}", trial.after);
    assert_eq!(Trial::of("dem", "line:5", &[25, 0, 0, 0, 0]).after, [13, 6, 6, 0, 0]);
    assert_eq!(Trial::of("dem:sweeps=2", "line:5", &[25, 0, 0, 0, 0]).after, [10, 6, 6, 2, 1]);
    assert_eq!(Trial::of("dem", "ring:5", &[25, 0, 0, 0, 0]).after, [7, 6, 6, 0, 6]);
}

#[test]
fn a_link_slower_than_a_way_around_takes_no_part() {
    let moves = |edges: &str| Trial::of("dem", &format!("graph:edges={edges}"), &[300, 0, 0]).moves();
    assert_eq!(moves("0-1,1-2,0-2"), [(0, 1, 150), (0, 2, 75), (1, 2, 37)]);
    assert_eq!(moves("0-1,1-2,0-2-0.001"), [(0, 1, 150), (1, 2, 75)]);
}

#[test]
fn a_pair_shares_by_time() {
    let powers = |list: &[u64]| Powers::listed(list.to_vec()).unwrap();
    // Half of it would take one rank of power 1 longer than both take the one of power 3.
    let trial = Trial::with("dem", "hypercube:1", &[2, 0], powers(&[3, 1]), 0);
    assert_eq!((trial.after, trial.declined), (vec![2, 0], true));
    let plain = Trial::plain("dem", "hypercube:1", &[2, 0], powers(&[3, 1]));
    assert_eq!((plain.after, plain.declined), (vec![1, 1], false));
    assert_eq!(Trial::with("dem", "hypercube:1", &[2, 9], powers(&[3, 1]), 0).after, [8, 3]);
    assert_eq!(Trial::with("dem", "hypercube:2", &[0, 0, 0, 120], powers(&[1, 2, 3, 6]), 0).after, [10, 20, 30, 60]);
    assert_eq!(due((7, 0), (5, 0)), (1, 1, false));
    assert_eq!(due((7, 0), (5, 2)), (7, 7, false));
    assert_eq!(due((7, 2), (0, 0)), (0, 0, true));
}

#[test]
fn sweeps_go_as_fast_as_their_eigenvalues_say() {
    // What is left of the imbalance (the root of the sum of squares), a sweep, over ten sweeps after these.
    let rate = |options: &str, topology: &str, after: u32| {
        let nodes = Topology::parse(topology, 1).unwrap().nodes();
        let loads: Vec<u64> = (0..nodes).map(|node| if node == 0 { 1 << 60 } else { 0 }).collect();
        let left = |sweeps: u32| {
            let trial = Trial::of(&format!("dem:{options}sweeps={sweeps}"), topology, &loads);
            let mean = (1u64 << 60) as f64 / f64::from(nodes);
            trial.after.iter().map(|load| (*load as f64 - mean).powi(2)).sum::<f64>().sqrt()
        };
        (left(after + 10) / left(after)).powf(0.1)
    };
    for (topology, turn) in
        [("line:16", PI / 16.0), ("ring:16", 2.0 * PI / 16.0), ("torus:4x12", 2.0 * PI / 12.0), ("mesh:3x10", PI / 10.0)]
    {
        let halves = rate("", topology, 60);
        assert!((halves - turn.cos().powi(2)).abs() < 1e-6, "{topology}: {halves}");
        let (optimal, expected) = (rate("lambda=optimal,", topology, 20), (1.0 - turn.sin()) / (1.0 + turn.sin()));
        // A double eigenvalue: k times the power of k is left.
        assert!(optimal > 0.95 * expected && optimal < 1.2 * expected && optimal < halves, "{topology}: {optimal}, {expected}");
    }
    assert_eq!(optimal_lambda(&Topology::parse("hypercube:5", 32).unwrap()), 0.5);
    assert_eq!(optimal_lambda(&Topology::parse("torus:4x2", 8).unwrap()), 0.5);
}

#[test]
fn a_large_task_does_not_go_to_and_fro() {
    for lambda in ["half", "optimal"] {
        let balancer = format!("dem:lambda={lambda},sweeps=until-stable");
        for (topology, tasks, weights) in [
            ("line:3", vec![1, 0, 0], vec![100]),
            ("line:3", vec![1, 0, 1], vec![100, 1]),
            ("ring:5", vec![2, 0, 0, 0, 0], vec![60, 60]),
            ("mesh:3x4", vec![1, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0], vec![100, 7, 90, 90, 3]),
        ] {
            let powers = vec![1; tasks.len()];
            let trial = Trial::weighing_on(&balancer, topology, &tasks, &weights, &powers);
            assert!(trial.moves().len() <= 20, "{balancer} on {topology}: {} moves", trial.moves().len());
        }
    }
    // Who has no power gives away what it has.
    let trial = Trial::weighing_on("dem:lambda=optimal,sweeps=until-stable", "line:3", &[1, 1, 0], &[1, 1], &[0, 1, 1]);
    assert_eq!(trial.after[0], 0, "{:?}", trial.after);
}

#[test]
fn a_pair_shares_what_makes_the_slower_one_faster() {
    // Amount, most: the other has 11 to do in the time of 110 on this one.
    assert_eq!(due((110, 10), (0, 1)), (10, 10, false));
    assert_eq!(due((111, 10), (0, 1)), (10, 11, false));
    assert_eq!((due((100, 1), (0, 1)), due((5, 0), (3, 1))), ((50, 99, false), (5, 5, false)));
}

#[test]
fn an_overshot_share_makes_nobody_as_slow_as_the_giver_was() {
    assert_eq!([overshot(0.5, 7, 14), overshot(0.8, 10, 20), overshot(0.99, 10, 11), overshot(0.8, 1, 1)], [7, 16, 11, 1]);
    let after = Trial::of("dem:lambda=optimal,sweeps=until-stable", "mesh:4x5", &[20; 20]).after;
    assert_eq!(after, [20; 20]);
    let after = Trial::of("dem:lambda=optimal,sweeps=until-stable", "line:8", &[80, 0, 0, 0, 0, 0, 0, 0]).after;
    assert!(after.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1), "{after:?}");
}

#[test]
fn huge_loads_are_halved() {
    assert_eq!(Trial::of("dem", "hypercube:1", &[u64::MAX, 0]).after, [u64::MAX / 2 + 1, u64::MAX / 2]);
}

#[test]
fn wrong_sweeps_are_refused() {
    for (options, said) in [("", "'' is not of the form key=value"), ("sweeps=1,sweeps=2", "sweeps is given twice")] {
        let sentence = find(&format!("dem:{options}")).unwrap_err().to_string();
        assert_eq!(sentence, format!("balancer dem: {said}"));
    }
    for text in ["0", "-1", "1.5", "many", "", "65537"] {
        let sentence = find(&format!("dem:sweeps={text}")).unwrap_err().to_string();
        assert_eq!(sentence, format!("balancer dem: sweeps is a number from 1 to 65536 or until-stable, not '{text}'"));
    }
}

#[test]
fn the_rounds_cover_each_link_once() {
    for wraps in [false, true] {
        for length in 1..12 {
            let mut links = Vec::new();
            for &round in rounds_along(Side { length, stride: 1, wraps }) {
                let before = links.len();
                for place in 0..length {
                    if let Some(other) = partner(round, place, length) {
                        assert_eq!(partner(round, other, length), Some(place));
                        links.extend((place < other).then_some((place, other)));
                    }
                }
                assert_eq!(links.len() - before, pairs_in(round, length) as usize);
            }
            links.sort_unstable();
            let mut all: Vec<_> = (1..length).map(|place| (place - 1, place)).collect();
            all.extend((wraps && length > 2).then_some((0, length - 1)));
            all.sort_unstable();
            assert_eq!(links, all, "{length} {wraps}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cubes_end_with_a_difference_of_their_dimension(
        d in 0u32..6,
        seed in any::<u64>(),
        loads in prop::collection::vec(0u64..100, 32),
    ) {
        let nodes = 1usize << d;
        let powers = Powers::equal(nodes as u32, nodes as u32);
        let trial = Trial::with("dem", &format!("hypercube:{d}"), &loads[..nodes], powers, seed);
        let (least, most) = (trial.after.iter().min().unwrap(), trial.after.iter().max().unwrap());
        prop_assert!(most - least <= u64::from(d));
    }

    #[test]
    fn sweeps_until_stable_leave_no_pair_uneven(
        a in 1usize..5,
        b in 1usize..5,
        torus in any::<bool>(),
        seed in any::<u64>(),
        loads in prop::collection::vec(0u64..100, 16),
    ) {
        let nodes = a * b;
        let spec = format!("{}:{a}x{b}", if torus { "torus" } else { "mesh" });
        let powers = Powers::equal(nodes as u32, nodes as u32);
        let trial = Trial::with("dem:sweeps=until-stable", &spec, &loads[..nodes], powers, seed);
        let topology = Topology::parse(&spec, nodes as u32).unwrap();
        for (node, load) in (0..).zip(&trial.after) {
            for other in topology.neighbours(node) {
                prop_assert!(load.abs_diff(trial.after[other as usize]) <= 1);
            }
        }
    }
}
