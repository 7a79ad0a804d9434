//! Second-order diffusion (Muthukrishnan, Ghosh and Schultz, "First- and second-order diffusive methods for rapid, coarse, distributed load
//! balancing", 1998): a step goes on in the direction of the one before. See the [module](super) for the steps, cost and promises.
//!
//! `w(k+1) = beta (w(k) - alpha L w(k)) + (1 - beta) w(k-1)`, after a first step of first order, with beta = 2 / (1 + sqrt(1 - g^2)). After k steps
//! at most r^k (1 + k sqrt(1 - g^2)) of the imbalance is left, where r = sqrt(beta - 1), and exactly this part of the eigenvector of the second
//! eigenvalue: about the square root of the steps of first order.

use super::super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use super::spectrum;
use super::{Diffusion, Factors, KINDS, MOST_STEPS, PART, cost, part, refuses};
use crate::topology::Topology;

pub(in crate::balance) static ENTRY: Entry = Entry {
    name: "sos",
    title: "second-order diffusion",
    source: "Muthukrishnan, Ghosh and Schultz 1998",
    options: "part=0.01 (of the imbalance that may be left, 0.000001 to 0.5)",
    examples: &["sos", "sos:part=0.2"],
    build,
    facts: Facts {
        kinds: KINDS,
        suited: None,
        refuses: |topology| refuses(steps(topology, PART), "since what lies far apart has to flow that far"),
        quota: QuotaRule::Proportional,
        knows: Knowledge::Neighbours,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: |topology| cost(topology, steps(topology, PART).unwrap_or(MOST_STEPS)),
    },
};

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Diffusion { steps: factors, part: part(options)? }))
}

/// The weight of a step against the one before, where an eigenvalue of a step of first order is at most gamma.
fn beta(gamma: f64) -> f64 {
    2.0 / (1.0 + (1.0 - gamma * gamma).sqrt())
}

/// Upper bound on the remaining imbalance after `steps` steps, relative to that at the beginning.
pub(super) fn left(gamma: f64, steps: u32) -> f64 {
    let decay = (beta(gamma) - 1.0).sqrt().powi(steps as i32);
    decay * (1.0 + f64::from(steps) * (1.0 - gamma * gamma).sqrt())
}

/// Number of steps after which no more than this part of any imbalance is left; `None` if they are very many.
pub(super) fn steps(topology: &Topology, part: f64) -> Option<u32> {
    let Some(extremes) = spectrum::extremes(topology) else { return Some(0) };
    let gamma = extremes.gamma();
    // Smaller parts than the usual one take longer.
    (1..=16 * MOST_STEPS).find(|steps| left(gamma, *steps) <= part)
}

pub(super) fn factors(topology: &Topology, part: f64) -> Vec<Factors> {
    let Some(extremes) = spectrum::extremes(topology) else { return Vec::new() };
    let (alpha, beta) = (extremes.alpha(), beta(extremes.gamma()));
    let count = steps(topology, part).unwrap_or(16 * MOST_STEPS) as usize;
    (0..count).map(|step| Factors { alpha, beta: if step == 0 { 1.0 } else { beta } }).collect()
}
