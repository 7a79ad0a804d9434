//! First-order diffusion (Cybenko, "Dynamic load balancing for distributed memory multiprocessors", 1989): in each step the same part of every
//! difference crosses its link. See the [module](super) for the steps, cost and promises.
//!
//! With the best part, alpha = 2 / (lambda_2 + lambda_n), each step leaves at most g = (lambda_n - lambda_2) / (lambda_n + lambda_2) of the
//! imbalance, the square root of the sum of squares. On a hypercube of dimension d alpha is 1 / (d + 1) and g is (d - 1) / (d + 1), Cybenko's
//! figures.

use super::super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use super::spectrum::{self, Extremes};
use super::{Diffusion, Factors, KINDS, PART, cost, part, refuses};
use crate::topology::Topology;

pub(in crate::balance) static ENTRY: Entry = Entry {
    name: "fos",
    title: "first-order diffusion",
    source: "Cybenko 1989",
    options: "part=0.01 (of the imbalance that may be left, 0.000001 to 0.5)",
    examples: &["fos", "fos:part=0.2"],
    build,
    facts: Facts {
        kinds: KINDS,
        suited: None,
        refuses: |topology| refuses(Some(steps(topology, PART)), "which sos and ops need fewer of"),
        quota: QuotaRule::Proportional,
        knows: Knowledge::Neighbours,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: |topology| cost(topology, steps(topology, PART)),
    },
};

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Diffusion { steps: factors, part: part(options)? }))
}

/// Number of steps after which no more than this part of any imbalance is left.
pub(super) fn steps(topology: &Topology, part: f64) -> u32 {
    let Some(extremes) = spectrum::extremes(topology) else { return 0 };
    let gamma = extremes.gamma();
    if gamma <= 0.0 { 1 } else { (part.ln() / gamma.ln()).ceil() as u32 }
}

pub(super) fn factors(topology: &Topology, part: f64) -> Vec<Factors> {
    let alpha = spectrum::extremes(topology).map_or(0.0, Extremes::alpha);
    vec![Factors { alpha, beta: 1.0 }; steps(topology, part) as usize]
}
