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

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment};

pub(super) static ENTRY: Entry = Entry {
    name: "rcb",
    title: "recursive coordinate bisection",
    source: "Berger and Bokhari 1987",
    options: "",
    examples: &["rcb"],
    build,
    facts: Facts {
        kinds: central::ANY,
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Places,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: central::cost_by_place,
    },
};

struct Bisection;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Central(Bisection)))
}

impl Rule for Bisection {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn by_place(&self) -> bool {
        true
    }

    fn leaves_units_to_quotas(&self) -> bool {
        false
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        assign::bisection(&given.problem, given.places)
    }
}

#[cfg(test)]
mod tests {
    use crate::balance::gathering;
    use crate::topology::Topology;

    #[test]
    fn the_predicted_bytes_have_the_places() {
        // Nothing moves: one task on each rank, in the order of the ranks.
        for nodes in [2u32, 3, 5, 8] {
            let places: Vec<Vec<Place>> = (0..nodes).map(|node| vec![[f64::from(node), 0.0, 0.0]]).collect();
            for name in ["rcb", "sfc"] {
                let trial = Trial::at(name, &places);
                assert_eq!((trial.moves(), trial.stayed), (vec![], vec![1; nodes as usize]));
                let bound = (crate::balance::find(name).unwrap().entry.facts.cost)(&Topology::parse("complete", nodes).unwrap());
                // Of the bound the transfers are a part that was not used.
                let pairs = u64::from(nodes) * u64::from(nodes - 1);
                let gathered = bound.bytes - pairs * crate::node::migrate::TRANSFER_BYTES;
                assert!(trial.counts.bytes <= gathered, "{name} on {nodes}: {} bytes of {gathered}", trial.counts.bytes);
                assert!(trial.counts.bytes > gathering::cost(nodes).bytes, "a place is more than a load");
            }
        }
    }
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
