//! Prediction of a phase on a measured network, by simulating the same phase.

use std::rc::Rc;

use equipoise::Result;
use equipoise::phase::{self, Setting};
use equipoise::topology::Overlay;
use equipoise::transport::sim::{Measured, Model, World};
use equipoise::transport::world;

use super::site::milliseconds;

/// Milliseconds of the slowest node of a phase on this network, whose hosts and links are by rank. The tasks of all nodes must be to be had in this process.
///
/// # Errors
/// As [`phase::run`].
pub fn predicted_ms(network: &Measured, overlay: &Overlay, setting: &Rc<Setting>, seed: u64) -> Result<Option<f64>> {
    let ranks = overlay.placement.ranks();
    let network = network.on(ranks)?;
    let model = Model { speeds: network.speeds.clone(), network: network.network(), seed, ..Model::default() };
    let mut simulated = world::World::from(World::new(ranks, model));
    let outcome = phase::run(&mut simulated, overlay, setting)?;
    Ok(outcome.map(|outcome| milliseconds(outcome.elapsed)))
}
