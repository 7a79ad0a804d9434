//! The model against exact fractions, against itself by another way, and against what must hold for any numbers.

mod agreement;
mod exact;
mod orders;
mod properties;

use super::*;

fn question(topology: &str, ports: Ports) -> Question {
    Question { ports, ..Question::of(NamedTopology::parse(topology).unwrap()) }
}

/// Returns true if two numbers are the same to this part of the larger.
fn near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * a.abs().max(b.abs())
}

/// Asserts that all the load is computed, and that all processors that compute end at the same time (none return results).
fn assert_finish_together(solution: &Solution) {
    let all: f64 = solution.layers.iter().map(|layer| layer.alpha * layer.processors as f64).sum();
    assert!(near(all, 1.0, 1e-9), "{all}: {solution:?}");
    for part in solution.parts.iter().filter(|part| part.alpha > 1e-8) {
        assert!(near(part.finish, solution.makespan, 1e-6), "{} is not {}: {solution:?}", part.finish, solution.makespan);
    }
}
