//! The least-moving result within a tolerance, after Charm++'s GreedyRefineLB: of [longest task first](super::greedy), [differencing](super::kk),
//! [refinement](super::refine) and refinement of the first two, those are considered whose slowest rank takes at most `tolerance` times as long as
//! the best one's. The rule is in [`assign::greedy_refine`], how tasks travel in [`central`](super::central).
//!
//! ```text
//!   longest first 1.001  moves 900      refinement 1.004  moves 60      tolerance 1.00: the first;  1.01: the second
//! ```
//!
//! Without `tolerance` that is 1.009, and unit tasks end at their quotas.
//!
//! Guarantee: never slower than any of them, times the tolerance.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::refine::Tolerance;
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment, vectors};

pub(super) static ENTRY: Entry = Entry {
    name: "greedy-refine",
    title: "of longest first, differencing and refinement the one that moves least",
    source: "after Charm++'s GreedyRefineLB",
    options: "tolerance=1.009",
    examples: &["greedy-refine", "greedy-refine:tolerance=1", "greedy-refine:tolerance=1.1"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: central::too_many,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Tasks,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost: central::cost,
    },
};

struct GreedyRefine {
    tolerance: Tolerance,
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(GreedyRefine { tolerance: Tolerance::of(options)? })))
}

impl Rule for GreedyRefine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn by_columns(&self) -> bool {
        true
    }

    fn leaves_units_to_quotas(&self) -> bool {
        !self.tolerance.leaves_something()
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        match &given.vectors {
            Some(vectors) => vectors::greedy_refine(vectors, self.tolerance.or(given)),
            None => assign::greedy_refine(&given.problem, self.tolerance.or(given)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("greedy-refine", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn whole_tasks() {
        let trial = Trial::weighing("greedy-refine", &[2, 2], &[5, 5, 4, 2], &[1, 1]);
        assert_eq!(trial.after, [7, 9]);
    }
}
