//! Self-scheduling: a rank that runs out of tasks requests more, and a rule sets the number.
//!
//! Ranks ask a coordinator, which works as well; with `clusters=hosts` it is on their own host, and asks the top one for all of them
//! together. Nothing is known of the tasks beforehand; adaptive rules learn from measurements.

pub mod coordinator;
pub mod dealer;
mod layout;
pub(crate) mod named;
pub mod program;
// Public for the farm of this workspace only, which deals by these. No promise is made about them.
mod role;
#[doc(hidden)]
pub mod rules;

use std::sync::Arc;

use dealer::{Dealer, Terms};
use rules::{Chunks, Rounding, Rule};

use super::independent::{Entry, Facts, Independent, Pace, Running, Scheduler, by_host};
use crate::error::{Error, Result};
use crate::node::Node;
use crate::spec::{InvalidSpec, Options};
use crate::topology::RankId;

/// Requests that a rank may have under way or granted, but not begun, unless the options say otherwise.
const OUTSTANDING: u64 = 8;

/// Its entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "selfsched",
    title: "self-scheduling with chunks by a rule",
    source: "Polychronopoulos and Kuck 1987; Hummel, Schonberg and Flynn 1992; Tzen and Ni 1993; and others",
    options: "rule=gss|static|cyclic|single|ss|fixed|fsc|mfsc|fac2|tss|tfss|fiss|tap|wf|awf|awf-b|awf-c|awf-d|awf-e|af, chunk=8 (of fixed), \
              overhead=1 (of fsc: of an assignment, as a part of the deviation of a task's time), stages=3 (of fiss), variation=.. (of tap: deviation over \
              mean of a task's time; otherwise as measured), rounding=up|down (or ceil|floor; quotients), \
              least=1 (tasks in a chunk), weights=1:2:.. (of wf, by rank; otherwise the ranks' speeds), outstanding=8 (requests of a rank at a time), \
              clusters=none|hosts (a coordinator per host)",
    examples: &[
        "selfsched",
        "selfsched:rule=awf",
        "selfsched:clusters=hosts",
        "selfsched:rule=fsc,overhead=0.5",
        "selfsched:rule=mfsc",
        "selfsched:rule=tfss",
        "selfsched:rule=fiss,stages=4",
        "selfsched:rule=tap",
        "selfsched:rule=awf-b",
        "selfsched:rule=awf-c",
        "selfsched:rule=awf-d",
        "selfsched:rule=awf-e",
    ],
    build,
    facts: Facts { knows_costs: false },
};

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>, InvalidSpec> {
    let (rule, rounding, least) = dealing(options, Rule::Gss)?;
    let weights = match options.value("weights")? {
        None => None,
        Some(_) if rule != Rule::Wf => return Err(options.conflict("weights belong to rule=wf")),
        Some(text) => {
            let weight = |text: &str| text.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
            let weights: Option<Vec<f64>> = text.split(':').map(weight).collect();
            Some(weights.ok_or_else(|| options.wrong("weights", text, "a number above 0 for each rank, with colons between"))?)
        }
    };
    let (outstanding, by_host) = (outstanding(options)?, by_host(options)?);
    let terms = Terms { rule, fixed: 0.0, affinity: false };
    refuse_early(options, terms, by_host)?;
    Ok(Arc::new(SelfScheduling { terms, rounding, least, weights, outstanding, by_host }))
}

/// A rule with its options, for who deals the tasks itself: the rule, how quotients are rounded, and the least number of tasks. Without `rule=` it is
/// `otherwise`.
///
/// # Errors
/// If an option is wrong.
pub fn dealing(options: &mut Options<'_>, otherwise: Rule) -> Result<(Rule, Option<Rounding>, u64), InvalidSpec> {
    let rule = options.choice("rule", &named::RULES)?.unwrap_or(otherwise);
    let rule = named::refined(rule, options, "rule=")?;
    Ok((rule, named::rounding(options)?, options.whole("least", 1)?.unwrap_or(1)))
}

/// The option of that name.
pub(super) fn outstanding(options: &mut Options<'_>) -> Result<u64, InvalidSpec> {
    Ok(options.whole("outstanding", 1)?.unwrap_or(OUTSTANDING))
}

/// Refuses coordinators of hosts where they would have nothing to do.
pub(super) fn refuse_early(options: &Options<'_>, terms: Terms, by_host: bool) -> Result<(), InvalidSpec> {
    match by_host && is_early(terms) {
        true => {
            Err(options.conflict("clusters=hosts is of no use to what is dealt out before the beginning (rule=static|cyclic, static=..)"))
        }
        false => Ok(()),
    }
}

/// Returns true if tasks are dealt out before the beginning.
fn is_early(terms: Terms) -> bool {
    matches!(terms.rule, Rule::Static | Rule::Cyclic) || terms.fixed > 0.0
}

/// Self-scheduling by a rule.
pub struct SelfScheduling {
    pub(super) terms: Terms,
    pub(super) rounding: Option<Rounding>,
    pub(super) least: u64,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) outstanding: u64,
    /// Whether hosts have coordinators of their own.
    pub(super) by_host: bool,
}

impl SelfScheduling {
    /// The weights of all ranks.
    fn weights(&self, work: &dyn Independent) -> Result<Vec<f64>> {
        let ranks = work.costs().ranks();
        match &self.weights {
            None if work.speeds().len() == ranks => Ok(work.speeds().to_vec()),
            None => Ok(vec![1.0; ranks]),
            Some(weights) if weights.len() == ranks => Ok(weights.clone()),
            Some(weights) => Err(ENTRY.conflict(format!("there are {} weights, and {ranks} ranks", weights.len())).into()),
        }
    }

    fn chunks(&self, tasks: usize, weights: &[f64]) -> Chunks {
        Chunks::new(self.terms.rule, tasks as u64, weights, self.rounding, self.least)
    }

    /// Returns the dealer of all tasks.
    fn dealer(&self, work: &dyn Independent) -> Result<Dealer> {
        if !work.arrivals().is_empty() && is_early(self.terms) {
            let why = ": tasks that arrive over time cannot be dealt out beforehand (rule=static|cyclic, dss:static=..)";
            return Err(Error::input("scheduler", why));
        }
        let chunks = self.chunks(work.costs().tasks(), &self.weights(work)?);
        Ok(Dealer::new(work.costs().clone(), work.arrivals(), self.terms, chunks))
    }

    /// Returns the dealer that deals out to these ranks what another dealer has dealt to them.
    fn dealer_of(&self, ranks: &[RankId], work: &dyn Independent) -> Result<Dealer> {
        let all = self.weights(work)?;
        let weights: Vec<f64> = ranks.iter().map(|rank| all[rank.index()]).collect();
        Ok(Dealer::supplied(
            work.costs().clone(),
            ranks.iter().map(|rank| rank.index()).collect(),
            self.terms.affinity,
            self.chunks(0, &weights),
        ))
    }
}

impl Scheduler for SelfScheduling {
    fn execute(self: Arc<Self>, node: Node, work: Arc<dyn Independent>, pace: Pace) -> Running {
        Box::pin(async move {
            let by_host = self.by_host && node.overlay().placement.hosts().count() > 1;
            // The model knows one coordinator.
            let pace = Pace { by_model: pace.by_model && !by_host, ..pace };
            let role = |node: &Node, begun| match by_host {
                false => layout::one(&self, node, work.as_ref(), pace, begun),
                true => layout::by_host(&self, node, work.as_ref(), pace, begun),
            };
            program::execute(node, work.clone(), pace, self.outstanding, self.terms.rule.counts_overhead(), role).await
        })
    }
}
