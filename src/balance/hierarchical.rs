//! Two levels by hosts, after Charm++'s hybrid balancer (Zheng, Bhatelé, Meneses and Kalé 2011): between hosts tasks are refined, so that little moves over the network; within
//! a host the longest goes first, since moves there cost little. What it does is in [`assign::hierarchical`](fn@crate::assign::hierarchical), how tasks get there in
//! [`central`](super::central).
//!
//! ```text
//!   host A: ranks 0, 1     host B: ranks 2, 3          1. hosts as single ranks: what A has too much goes to B
//!   9 9 | -                2 2 | 3                     2. on each host, longest first
//! ```
//!
//! On one host it is [`greedy`](super::greedy), with a rank on each host it is [`refine`](super::refine). Unit tasks end at their quotas.
//!
//! `tolerance` is that of [`refine`](super::refine), between hosts.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::refine::Tolerance;
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment};

pub(super) static ENTRY: Entry = Entry {
    name: "hierarchical",
    title: "refinement between hosts, longest task first within each",
    source: "after Charm++'s hybrid balancer, Zheng et al. 2011",
    options: "tolerance=1.009",
    examples: &["hierarchical", "hierarchical:tolerance=1"],
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

struct Hierarchical {
    tolerance: Tolerance,
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(Hierarchical { tolerance: Tolerance::of(options)? })))
}

impl Rule for Hierarchical {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        assign::hierarchical(&given.problem, given.hosts, self.tolerance.or(given))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("hierarchical", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn on_one_host_the_longest_goes_first() {
        let trial = Trial::weighing("hierarchical", &[5, 0, 0], &[3, 3, 5, 4, 3], &[1, 1, 1]);
        assert_eq!(trial.after, [5, 7, 6]);
    }
}
