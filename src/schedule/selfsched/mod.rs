//! Self-scheduling: a rank that runs dry takes tasks for itself, and a rule says how many.
//!
//! Ranks ask a coordinator, which works as well. Nothing is known of the tasks beforehand; adaptive rules learn from what was measured.

pub mod dealer;
pub mod program;
pub mod rules;

use std::sync::Arc;

use dealer::{Dealer, Terms};
use rules::{Chunks, Rounding, Rule};

use super::independent::{Entry, Independent, Options, Pace, Running, Scheduler};
use crate::error::{Error, Result};
use crate::node::Node;

/// Requests that a rank may have under way or granted, but not begun, unless the options say otherwise.
const OUTSTANDING: u64 = 8;

pub const ENTRY: Entry = Entry {
    name: "selfsched",
    title: "self-scheduling with chunks by a rule",
    source: "Polychronopoulos and Kuck 1987; Hummel, Schonberg and Flynn 1992; Tzen and Ni 1993",
    options: "rule=gss|static|cyclic|single|ss|fixed|fac2|tss|wf|awf|af, chunk=8 (of fixed), rounding=up|down (or ceil|floor; quotients), \
              least=1 (tasks in a chunk), weights=1:2:.. (of wf, by rank; otherwise --speeds), outstanding=8 (requests of a rank at a time)",
    knows_costs: false,
    build,
};

const RULES: [(&str, Rule); 11] = [
    ("static", Rule::Static),
    ("cyclic", Rule::Cyclic),
    ("ss", Rule::Ss),
    ("fixed", Rule::Fixed(8)),
    ("single", Rule::Single),
    ("gss", Rule::Gss),
    ("fac2", Rule::Fac2),
    ("tss", Rule::Tss),
    ("wf", Rule::Wf),
    ("awf", Rule::Awf),
    ("af", Rule::Af),
];

fn build(options: &mut Options<'_>) -> Result<Arc<dyn Scheduler>> {
    let mut rule = options.choice("rule", &RULES)?.unwrap_or(Rule::Gss);
    match (options.count("chunk")?, &mut rule) {
        (Some(chunk), Rule::Fixed(size)) => *size = chunk,
        (Some(_), _) => return Err(options.refuse("chunk belongs to rule=fixed")),
        (None, _) => {}
    }
    let roundings = [("up", Rounding::Up), ("ceil", Rounding::Up), ("down", Rounding::Down), ("floor", Rounding::Down)];
    let rounding = options.choice("rounding", &roundings)?;
    let least = options.count("least")?.unwrap_or(1);
    let weights = match options.value("weights")? {
        None => None,
        Some(_) if rule != Rule::Wf => return Err(options.refuse("weights belong to rule=wf")),
        Some(text) => {
            let weight = |text: &str| text.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
            let weights: Option<Vec<f64>> = text.split(':').map(weight).collect();
            Some(weights.ok_or_else(|| options.wrong("weights", text, "a number above 0 for each rank, with colons between"))?)
        }
    };
    let outstanding = outstanding(options)?;
    Ok(Arc::new(SelfScheduling { terms: Terms { rule, fixed: 0.0, affinity: false }, rounding, least, weights, outstanding }))
}

/// The option of that name.
pub(super) fn outstanding(options: &mut Options<'_>) -> Result<u64> {
    Ok(options.count("outstanding")?.unwrap_or(OUTSTANDING))
}

/// Self-scheduling by a rule.
pub struct SelfScheduling {
    pub(super) terms: Terms,
    pub(super) rounding: Option<Rounding>,
    pub(super) least: u64,
    pub(super) weights: Option<Vec<f64>>,
    pub(super) outstanding: u64,
}

impl SelfScheduling {
    fn dealer(&self, work: &Arc<dyn Independent>) -> Result<Dealer> {
        let costs = work.costs();
        let ranks = costs.ranks();
        let weights = match &self.weights {
            None if work.speeds().len() == ranks => work.speeds().to_vec(),
            None => vec![1.0; ranks],
            Some(weights) if weights.len() == ranks => weights.clone(),
            Some(weights) => {
                let why = format!("--scheduler selfsched: there are {} weights, and {ranks} ranks", weights.len());
                return Err(Error::usage(why));
            }
        };
        if !work.arrivals().is_empty() && (matches!(self.terms.rule, Rule::Static | Rule::Cyclic) || self.terms.fixed > 0.0) {
            return Err(Error::usage(
                "--scheduler: tasks that arrive over time cannot be dealt out beforehand (rule=static|cyclic, dss:static=..)",
            ));
        }
        let chunks = Chunks::new(self.terms.rule, costs.tasks() as u64, &weights, self.rounding, self.least);
        Ok(Dealer::new(costs.clone(), work.arrivals(), self.terms, chunks))
    }
}

impl Scheduler for SelfScheduling {
    fn execute(self: Arc<Self>, node: Node, work: Arc<dyn Independent>, pace: Pace) -> Running {
        Box::pin(async move {
            let dealer = if node.me() == 0 { Some(self.dealer(&work)?) } else { None };
            program::execute(node, work, pace, self.outstanding, dealer).await
        })
    }
}
