//! Closed forms, recursions and linear programs say the same wherever more than one of them can speak.

use super::super::{binomial, hypercube, layered};
use super::*;

/// Numbers of one kind and another: links fast and slow, a small and a large load.
const NUMBERS: [(f64, f64, f64, f64); 4] = [(1.0, 1.0, 1.0, 1.0), (3.0, 0.25, 2.0, 1.5), (0.5, 0.0, 1.0, 1.0), (0.8, 2.0, 1.0, 0.7)];

fn numbered(topology: &str, ports: Ports, (w, z, tcp, tcm): (f64, f64, f64, f64)) -> Question {
    Question { w, z, tcp, tcm, ..question(topology, ports) }
}

fn assert_agree(question: &Question) {
    let (closed, program) = (solve(question).unwrap(), solve_by_program(question).unwrap());
    assert_ne!(closed.method, Method::LinearProgram, "{question:?}");
    assert!(near(closed.makespan, program.makespan, 1e-6), "{} is not {}: {question:?}", closed.makespan, program.makespan);
    if question.results == 0.0 {
        assert_finish_together(&closed);
    }
}

#[test]
fn the_linear_program_finds_the_papers_division_of_a_hypercube() {
    for dimension in 0..=4 {
        for numbers in NUMBERS {
            let question = numbered(&format!("hypercube:{dimension}"), Ports::All, numbers);
            assert_agree(&question);
            if numbers.1 > 0.0 {
                let (closed, program) = (solve(&question).unwrap(), solve_by_program(&question).unwrap());
                for (closed, program) in closed.layers.iter().zip(&program.layers) {
                    assert!((closed.alpha - program.alpha).abs() < 1e-6, "{closed:?} {program:?}");
                }
            }
        }
    }
}

#[test]
fn the_linear_program_finds_the_recursions_division_of_trees() {
    for topology in
        ["line:6", "star:6", "tree:binary,nodes=9", "complete:5", "ring:5", "hypercube:3", "mesh:2x3", "tree:parents=-,0,1,1,0,4"]
    {
        for numbers in NUMBERS {
            assert_agree(&numbered(topology, Ports::One, numbers));
            if solve(&numbered(topology, Ports::All, numbers)).unwrap().method == Method::Recursion {
                assert_agree(&numbered(topology, Ports::All, numbers));
            }
        }
    }
}

#[test]
fn unequal_speeds_and_links_agree_on_trees() {
    let speeds = vec![1.0, 0.5, 3.0, 1.5, 0.25, 2.0];
    let links = vec![2.0, 0.5, 1.0, 0.1, 4.0];
    for topology in ["line:6", "star:6", "tree:binary,nodes=6", "complete:6"] {
        for ports in [Ports::One, Ports::All] {
            assert_agree(&Question { speeds: speeds.clone(), links: links.clone(), ..question(topology, ports) });
        }
    }
}

#[test]
fn circles_agree_with_the_program_and_large_ones_are_quick() {
    for processors in [4, 6, 10] {
        for (results, source, source_computes) in [(0.0, 0, true), (0.3, 1, true), (0.0, 2, false)] {
            let topology = format!("ring:{processors}");
            let question = Question { results, source, source_computes, z: 0.4, ..question(&topology, Ports::All) };
            assert_agree(&question);
            assert_eq!(solve(&question).unwrap().method, Method::Recursion);
        }
    }
    let large = solve(&Question { z: 1e-6, ..question("ring:1000", Ports::All) }).unwrap();
    assert_finish_together(&large);
    assert!(large.speedup > 500.0 && large.processors == 1000, "{}", large.speedup);
    // No symmetry, no halves.
    let unequal = Question { links: vec![1.0, 2.0, 1.0, 1.0], ..question("ring:4", Ports::All) };
    assert_ne!(solve(&unequal).unwrap().method, Method::Recursion);
}

#[test]
fn start_up_costs_and_results_agree_on_trees() {
    for topology in ["line:4", "star:5", "tree:binary,nodes=6"] {
        for (startup, results) in [(0.05, 0.0), (0.3, 0.0), (0.0, 0.5), (0.02, 0.25)] {
            assert_agree(&Question { startup, results, z: 0.4, ..question(topology, Ports::All) });
        }
    }
}

/// The layers' rule with start-up costs and without gives the paper's shares when there are none.
#[test]
fn layers_by_capacity_are_the_papers() {
    for dimension in [0, 1, 2, 5, 12, 30] {
        for numbers in NUMBERS {
            let question = numbered(&format!("hypercube:{dimension}"), Ports::All, numbers);
            let paper = layered::divide(&question, dimension);
            for ((alpha, volume), (other_alpha, other_volume)) in paper.iter().zip(layered::by_capacity(&question, dimension)) {
                assert!(near(*alpha, other_alpha, 1e-9) && near(*volume, other_volume, 1e-9), "{question:?}");
            }
        }
    }
}

#[test]
fn start_up_costs_on_a_small_hypercube_agree_with_the_program() {
    for startup in [0.01, 0.1, 0.35, 2.0] {
        let question = Question { startup, ..question("hypercube:2", Ports::All) };
        let (closed, program) = (solve(&question).unwrap(), solve_by_program(&question).unwrap());
        assert!(near(closed.makespan, program.makespan, 1e-6), "{startup}: {} {}", closed.makespan, program.makespan);
    }
}

/// A cube of one-port processors by dimension, and the same tree by processor.
#[test]
fn the_binomial_tree_is_the_tree() {
    for dimension in 0..=10 {
        let question = Question { z: 0.3, ..question(&format!("hypercube:{dimension}"), Ports::One) };
        let by_processor = solve(&question).unwrap();
        let by_dimension = binomial::shares(dimension, &question.compute(), &question.carry());
        assert!(near(by_processor.makespan, by_dimension.makespan, 1e-12));
        for (layer, (alpha, volume)) in by_processor.layers.iter().zip(by_dimension.alpha.iter().zip(&by_dimension.volume)) {
            let processors = layer.processors as f64;
            assert!(near(layer.alpha * processors, *alpha, 1e-9) && near(layer.volume * processors, *volume, 1e-9));
        }
        assert_finish_together(&by_processor);
    }
}

/// A square is a hypercube, a ring and a mesh; a cube is a mesh of three dimensions.
#[test]
fn the_same_network_by_another_name_is_the_same() {
    let makespan = |topology: &str, ports| solve(&question(topology, ports)).unwrap().makespan;
    for ports in [Ports::One, Ports::All] {
        for (one, others) in [
            ("hypercube:2", ["ring:4", "mesh:2x2"]),
            ("hypercube:3", ["mesh:2x2x2", "torus:2x2x2"]),
            ("star:7", ["complete:7", "tree:kary=6,nodes=7"]),
        ] {
            for other in others {
                assert!(near(makespan(one, ports), makespan(other, ports), 1e-6), "{one} {other} {ports:?}");
            }
        }
    }
}

#[test]
fn dimensions_and_layers_count_all_processors() {
    for dimension in 0..=30 {
        assert_eq!((0..=dimension).map(|layer| hypercube::processors_in(dimension, layer)).sum::<u64>(), 1 << dimension);
    }
}

/// Equal processors around a hub with one port: the next processor receives and computes what fits into the remaining time. The total time is found
/// by halving an interval.
fn star_with_startup(processors: u32, startup: f64, seconds: f64) -> f64 {
    let load_within = |time: f64| {
        let (mut load, mut left) = (time, time);
        for _ in 1..processors {
            let part = ((left - startup) / (1.0 + seconds)).max(0.0);
            load += part;
            left = part;
        }
        load
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if load_within(middle) < 1.0 { low = middle } else { high = middle }
    }
    high
}

/// The processors that take part are selected: exactly if they are few, by heuristics if they are many.
#[test]
fn only_those_take_part_whose_start_up_pays() {
    for (processors, startup, z) in [(1, 0.1, 1.0), (2, 0.7, 1.0), (5, 0.1, 0.2), (9, 0.05, 0.01), (24, 0.02, 0.01), (5000, 1e-5, 0.001)] {
        let question = Question { z, startup, ..question(&format!("star:{processors}"), Ports::One) };
        let (ours, best) = (solve(&question).unwrap(), star_with_startup(processors, startup, z));
        assert!(near(ours.makespan, best, 1e-9), "star of {processors}: {} is not {best}", ours.makespan);
        assert_eq!(ours.method, Method::Recursion);
        assert_finish_together(&ours);
        if processors < 100 {
            let program = solve_by_program(&question).unwrap();
            assert!(near(ours.makespan, program.makespan, 1e-6), "star of {processors}: {} is not {}", program.makespan, ours.makespan);
        }
    }
}
