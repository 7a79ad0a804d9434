//! The assignment that moves least, of several that are good enough (after Charm++'s GreedyRefineLB).

use super::refine::{State, evened, frugal, scaled};
use super::{Assignment, Problem, differencing, fewest, greedy, refine};
use crate::load::RankTime;

/// Chooses among the results of [`greedy`], [`differencing`] and [`refine`](fn@refine) the one with the fewest moves whose slowest rank
/// takes at most `tolerance` (at least 1) times as long as in the best result. Needless moves are undone before the comparison.
pub fn greedy_refine(problem: &Problem<'_>, tolerance: f64) -> Assignment {
    let refined = refine(problem);
    let mut found = vec![refined];
    for anew in [greedy(problem), differencing(problem)] {
        let better = evened(&Problem { owners: &anew, ..*problem });
        for assignment in [anew, better] {
            let mut state = State::with(problem, assignment);
            state.settle();
            found.push(state.assignment);
        }
    }
    let seconds = |assignment: &Assignment| {
        let time = problem.slowest(&problem.loads(assignment));
        if time.work == 0 { 0.0 } else { time.work as f64 / time.power as f64 }
    };
    let best = found.iter().map(seconds).fold(f64::INFINITY, f64::min);
    // As far as the tolerance goes, and as far as refinement came.
    let slowest = |assignment: &Assignment| problem.slowest(&problem.loads(assignment));
    let fastest = found.iter().map(slowest).min().unwrap_or(RankTime { work: 0, power: 1 });
    found.extend(frugal(problem, scaled(fastest, tolerance), fewest::LOOKS));
    let good = found.into_iter().filter(|assignment| seconds(assignment) <= best * tolerance.max(1.0));
    // The first of those that move the same: refinement where it is as good.
    good.min_by_key(|assignment| problem.moved(assignment)).unwrap_or_else(|| problem.owners.to_vec())
}
