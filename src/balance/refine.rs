//! Refinement from where tasks are, after the idea of Charm++'s RefineLB: the slowest rank gives a task to a rank that ends sooner with it, or swaps
//! one for a lighter one, until neither helps. Everything else stays. What it does is in [`assign::refine`](fn@crate::assign::refine), how tasks get
//! there in [`central`](super::central).
//!
//! ```text
//!   5 5 | 4 2     5 gives nothing away: 4 + 2 + 5 = 11 > 10     but 5 for 2:     2 5 | 5 4
//! ```
//!
//! `tolerance` is the factor over the best time found up to which fewer moves win. Without it that is 1.009: the last thousandths of whole tasks
//! take several times the movement of all that comes before them. Unit tasks end at their quotas unless a tolerance is given.
//!
//! Guarantee: no rank becomes slower than the slowest was. Balanced loads stay as they are; real loads end within a per cent of longest task first
//! with a fraction of its moves.

use super::central::{self, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Options, Phase, Promises, QuotaRule, Running};
use crate::assign::{self, Assignment, Problem};
use crate::error::Result;
use crate::load::{Place, Shares};
use crate::topology::Placement;

pub(super) static ENTRY: Entry = Entry {
    name: "refine",
    title: "work leaves the slowest rank as long as that helps",
    source: "after Charm++'s RefineLB",
    options: "tolerance=1.009",
    examples: &["refine", "refine:tolerance=1", "refine:tolerance=1.1"],
    build,
    facts: Facts {
        kinds: central::ANY,
        refuses: central::too_many,
        quota: QuotaRule::Proportional,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost: central::cost,
    },
};

struct Refine {
    tolerance: Tolerance,
}

/// The option `tolerance`, if it is given.
#[derive(Clone, Copy)]
pub(super) struct Tolerance(Option<f64>);

impl Tolerance {
    pub(super) fn of(options: &mut Options<'_>) -> Result<Tolerance, InvalidSpec> {
        Ok(Tolerance(options.real("tolerance", 1.0..=1e6)?))
    }

    /// For whole tasks.
    pub(super) fn factor(self) -> f64 {
        self.0.unwrap_or(assign::TOLERANCE)
    }

    /// A phase by a rule with this tolerance: at quotas unless something may be left for it.
    pub(super) async fn balance(self, phase: &mut Phase<'_>, rule: &impl Rule) -> Result<()> {
        if self.0.is_some_and(|factor| factor > 1.0) { central::exchange(phase, rule).await } else { central::balance(phase, rule).await }
    }
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Refine { tolerance: Tolerance::of(options)? }))
}

impl Rule for Refine {
    fn assign(&self, problem: &Problem<'_>, _: &[Place]) -> Assignment {
        assign::frugal_refine(problem, self.tolerance.factor())
    }
}

impl Balancer for Refine {
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn keeps_capacity(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(self.tolerance.balance(phase, self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("refine", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn whole_tasks() {
        let trial = Trial::weighing("refine", &[2, 2], &[5, 5, 4, 2], &[1, 1]);
        assert_eq!(trial.after, [7, 9]);
    }

    #[test]
    fn a_tolerance_leaves_more_where_it_is() {
        let moved = |balancer: &str| Trial::of(balancer, "complete:4", &[12, 8, 8, 8]).moves().iter().map(|(.., tasks)| tasks).sum::<u64>();
        assert_eq!((moved("refine"), moved("refine:tolerance=1.2"), moved("refine:tolerance=1.4")), (3, 2, 0));
    }
}
