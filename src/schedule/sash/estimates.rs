//! A scheduler's estimates of the costs of tasks.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::Sash;
use crate::load::{Cost, Costs, NEVER, mean_of_finite};

/// Streams of random numbers below are nodes'.
const ESTIMATES_STREAM: u64 = (1 << 32) + 0x61;

/// Costs that are wrong by as much as the options say; the same for all schedulers of a seed.
pub fn estimates(costs: &Arc<Costs>, sash: &Sash, seed: u64) -> Arc<Costs> {
    if sash.error == 0.0 && !sash.alike {
        return costs.clone();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(ESTIMATES_STREAM);
    let known = match sash.alike {
        false => costs.as_ref().clone(),
        true => {
            let alike = costs.rows().flat_map(|row| {
                let mean = mean_of_finite(row.iter());
                row.iter().map(move |cost| if *cost == NEVER { NEVER } else { mean })
            });
            Costs::new(costs.ranks() as u32, alike.collect()).unwrap_or_else(|| costs.as_ref().clone())
        }
    };
    Arc::new(known.map(|_, cost| (cost as f64 * (1.0 + sash.error * rng.random_range(-1.0..=1.0))).max(0.0) as Cost))
}
