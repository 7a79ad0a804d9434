//! The largest differencing method (N. Karmarkar and R. M. Karp, 1982): tasks become sets whose heavy ones meet light ones, and sets are matched
//! with ranks so that most work stays. What it does is in [`assign::differencing`], how tasks get there in [`central`](super::central).
//!
//! ```text
//!   8 7 6 5 4 on 3 ranks     8-0-0 with 7-0-0: 8-7-0,  with 6: 8-7-6,  with 5 and 4: 8 | 7 4 | 6 5
//! ```
//!
//! It is made for ranks of equal power with nothing pinned. Elsewhere it is longest task first and then refinement, and no longer differencing.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment};

pub(super) static ENTRY: Entry = Entry {
    name: "kk",
    title: "the largest differencing method",
    source: "Karmarkar and Karp 1982",
    options: "",
    examples: &["kk"],
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

struct Differencing;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(Differencing)))
}

impl Rule for Differencing {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        assign::differencing(&given.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;

    #[test]
    fn unit_tasks_end_at_their_quotas_with_the_fewest_moved() {
        let trial = Trial::of("kk", "complete:4", &[9, 1, 0, 6]);
        assert_eq!((trial.after.as_slice(), trial.task_hops()), ([4, 4, 4, 4].as_slice(), 7));
        assert!(trial.kept_what_it_could(&[9, 1, 0, 6]));
    }

    #[test]
    fn whole_tasks() {
        let mut trial = Trial::weighing("kk", &[5, 0, 0], &[8, 7, 6, 5, 4], &[1, 1, 1]);
        trial.after.sort_unstable();
        assert_eq!(trial.after, [8, 11, 11]);
    }
}
