//! No balancing: every task stays where it is. The reference for all other balancers.

use super::ground::{Given, Rule};
use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running};
use crate::assign::Assignment;
use crate::error::Result;
use crate::load::Shares;
use crate::topology::{Kind, Placement};

pub(super) static ENTRY: Entry = Entry {
    name: "none",
    title: "no balancing",
    source: "the reference that every balancer must beat",
    options: "",
    examples: &["none"],
    build,
    facts: Facts {
        kinds: &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::None,
        knows: Knowledge::Nothing,
        promises: Promises { exact: false, local: true, ordered: true, optimal: false },
        cost: |_| Cost { steps: 0, messages: 0, bytes: 0 },
    },
};

struct Nothing;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Nothing))
}

impl Rule for Nothing {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        given.problem.owners.to_vec()
    }
}

impl Balancer for Nothing {
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    /// It may be compared with those that do.
    fn keeps_columns(&self) -> bool {
        true
    }

    fn rule(&self) -> Option<&dyn Rule> {
        Some(self)
    }

    fn run<'a>(&'a self, _: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(async { Ok(()) })
    }
}
