//! Diffusion by the optimal polynomial (Diekmann, Frommer and Monien, "Efficient schemes for nearest neighbor load balancing", 1999, section 4): a
//! step for each eigenvalue, after which nothing is left. See the [module](super) for the steps, cost and promises.
//!
//! `w(k) = w(k-1) - L w(k-1) / lambda_k` takes all of the eigenvalue's part out of the imbalance, and none back into it. The number of steps is
//! therefore the number of distinct nonzero eigenvalues: d on a hypercube of dimension d, n - 1 on a line, one on the complete graph. The order of
//! the eigenvalues does not matter to the result, but in between parts may grow and drown the others in rounding: each next eigenvalue is the one
//! that is farthest from those before, by the product of the distances (Leja's order).

use super::super::{Balancer, Entry, Facts, InvalidSpec, Knowledge, Options, Promises, QuotaRule};
use super::spectrum;
use super::{Diffusion, Factors, KINDS, cost};
use crate::topology::Topology;

pub(in crate::balance) static ENTRY: Entry = Entry {
    name: "ops",
    title: "diffusion by the optimal polynomial",
    source: "Diekmann, Frommer and Monien 1999, section 4",
    options: "",
    examples: &["ops"],
    build,
    facts: Facts {
        kinds: KINDS,
        suited: None,
        refuses: |topology| match spectrum::distinct(topology, MOST) {
            Some(_) => None,
            None => Some(format!("takes a step for each distinct eigenvalue of the topology, and there are more than {MOST} there")),
        },
        quota: QuotaRule::Proportional,
        knows: Knowledge::Neighbours,
        promises: Promises { exact: false, local: false, ordered: false, optimal: false },
        cost: |topology| cost(topology, factors(topology).len() as u32),
    },
};

/// Maximum number of steps: with more of them rounding would count.
const MOST: usize = 256;

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Diffusion { steps: |topology, _| factors(topology), part: 0.0 }))
}

pub(super) fn factors(topology: &Topology) -> Vec<Factors> {
    let eigenvalues = spectrum::distinct(topology, MOST).unwrap_or_default();
    ordered(eigenvalues).into_iter().map(|eigenvalue| Factors { alpha: 1.0 / eigenvalue, beta: 1.0 }).collect()
}

/// Leja's order: the largest first, then always the one with the largest product of distances to those before.
fn ordered(mut left: Vec<f64>) -> Vec<f64> {
    let mut distances = vec![0.0; left.len()];
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let farther = |one: &usize, other: &usize| {
            let by_distance: std::cmp::Ordering = f64::total_cmp(&distances[*one], &distances[*other]);
            by_distance.then(left[*one].total_cmp(&left[*other]))
        };
        let next = (0..left.len()).max_by(farther).unwrap_or(0);
        let eigenvalue = left.swap_remove(next);
        distances.swap_remove(next);
        for (distance, other) in distances.iter_mut().zip(&left) {
            // The logarithm of the product.
            *distance += (eigenvalue - other).abs().ln();
        }
        order.push(eigenvalue);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_jumps() {
        assert_eq!(ordered(vec![2.0, 4.0, 6.0, 8.0]), [8.0, 2.0, 6.0, 4.0]);
        assert_eq!(ordered(vec![]), [0.0; 0]);
    }
}
