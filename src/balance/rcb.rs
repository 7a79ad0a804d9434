//! Recursive coordinate bisection (M. J. Berger and S. H. Bokhari, 1987): ranks are halved, and the tasks are cut across the longest side of the box
//! that holds them, so that each half gets its share of the work; then each half likewise. What it does is in [`assign::bisection`], how tasks get
//! there in [`central`](super::central).
//!
//! ```text
//!   . . . | . . .         first across the longest side,
//!   . . . |-------        then each half across its own
//!   . . . | . . .
//! ```
//!
//! Near tasks stay together, wherever they were. Each cut is off by less than the task on it. It needs a place of each task.

use super::central::{self, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Options, Phase, Promises, QuotaRule, Running};
use crate::assign::{self, Assignment, Problem};
use crate::error::Result;
use crate::load::{Place, Shares};
use crate::topology::Placement;

pub(super) static ENTRY: Entry = Entry {
    name: "rcb",
    title: "recursive coordinate bisection",
    source: "Berger and Bokhari 1987",
    options: "",
    examples: &["rcb"],
    build,
    facts: Facts {
        kinds: central::ANY,
        refuses: |_| None,
        quota: QuotaRule::None,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: central::cost_of_all,
    },
};

struct Bisection;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Bisection))
}

impl Rule for Bisection {
    const BY_PLACE: bool = true;
    const NAME: &'static str = "rcb";

    fn assign(&self, problem: &Problem<'_>, places: &[Place]) -> Assignment {
        assign::bisection(problem, places)
    }
}

impl Balancer for Bisection {
    fn needs_places(&self) -> bool {
        true
    }

    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(central::exchange(phase, self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use crate::load::Place;

    #[test]
    fn near_tasks_come_together() {
        // A row of eight, dealt out in turns.
        let places: Vec<Vec<Place>> = (0..4).map(|node| [0, 4].map(|at| [f64::from(node + at), 0.0, 0.0]).to_vec()).collect();
        let trial = Trial::at("rcb", &places);
        assert_eq!((trial.after.as_slice(), trial.moves().len()), ([2; 4].as_slice(), 6), "tasks 0 and 7 are where they belong");
    }
}
