//! Longest task first (R. L. Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17, 1969): the heaviest task goes to the rank
//! that is done with it first, then the next; where tasks are now matters only among equals. What it does is in
//! [`assign::greedy`](fn@crate::assign::greedy), how tasks get there in [`central`](super::central).
//!
//! ```text
//!   tasks 5 4 3 3 3 on 3 ranks     5 | 4 | 3     then 3 | 3 to the two that are done first:     5 | 4 3 | 3 3
//! ```
//!
//! Guarantee: at most 4/3 of the least possible time on equal ranks, twice on others. It moves nearly all tasks: the price of an assignment from
//! nothing.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment, vectors};

pub(super) static ENTRY: Entry = Entry {
    name: "greedy",
    title: "longest task first, each to the rank that is done with it first",
    source: "Graham 1969",
    options: "",
    examples: &["greedy"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Tasks,
        promises: Promises { exact: true, local: true, ordered: false, optimal: false },
        cost: central::cost,
    },
};

struct Greedy;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(Greedy)))
}

impl Rule for Greedy {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn by_columns(&self) -> bool {
        true
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        match &given.vectors {
            Some(vectors) => vectors::greedy(vectors),
            None => assign::greedy(&given.problem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("greedy", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn whole_tasks() {
        let trial = Trial::weighing("greedy", &[5, 0, 0], &[3, 3, 5, 4, 3], &[1, 1, 1]);
        assert_eq!(trial.after, [5, 7, 6]);
    }
}
