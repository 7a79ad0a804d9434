//! A space-filling curve: the tasks in their order along Hilbert's curve are cut into one piece for each rank, exactly as [`chains`](super::chains)
//! does. What it does is in [`assign::along_curve`], how tasks get there in [`central`](super::central).
//!
//! ```text
//!   5 6 9 A        the curve goes from neighbour to neighbour:
//!   4 7 8 B        a piece of it is a region without holes
//!   3 2 D C
//!   0 1 E F
//! ```
//!
//! The slowest rank is as fast as any cut of this order makes it. Regions are less compact than those of [`rcb`](super::rcb), but a small change of
//! the work moves borders by little. It needs a place of each task.

use super::central::{self, Central};
use super::ground::{Given, Rule};
use super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use crate::assign::{self, Assignment};

pub(super) static ENTRY: Entry = Entry {
    name: "sfc",
    title: "pieces of a space-filling curve",
    source: "Hilbert 1891; Pinar and Aykanat 2004",
    options: "curve=hilbert",
    examples: &["sfc", "sfc:curve=hilbert"],
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

struct Curve;

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    options.choice("curve", &[("hilbert", ())])?;
    Ok(Box::new(Central(Curve)))
}

impl Rule for Curve {
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
        assign::along_curve(&given.problem, given.places)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use crate::load::Place;

    #[test]
    fn a_piece_of_the_curve_is_a_region() {
        // A square of four by four, dealt out in rows; its quarters are the four pieces.
        let places: Vec<Vec<Place>> = (0..4).map(|row| (0..4).map(|column| [f64::from(row), f64::from(column), 0.0]).collect()).collect();
        let trial = Trial::at("sfc", &places);
        assert_eq!(trial.after, [4; 4]);
        // Of each row at most half stays.
        assert!(trial.stayed.iter().all(|stayed| *stayed <= 2), "{:?}", trial.stayed);
    }
}
