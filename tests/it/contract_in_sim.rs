//! The simulated world holds what every world promises.

use equipoise::transport::sim;
use equipoise::transport::world::World;

use crate::contract::{OUTBOX, cases};

fn holds_on(ranks: u32) {
    for case in cases() {
        let model = sim::Model { outbox: OUTBOX as u64, ..sim::Model::default() };
        let mut world = World::simulated(ranks, model);
        if let Err(why) = (case.check)(&mut world) {
            panic!("on {ranks} ranks, '{}': {why}", case.name);
        }
    }
}

#[test]
fn the_contract_holds_on_1_to_3_simulated_ranks() {
    (1..=3).for_each(holds_on);
}

#[test]
fn the_contract_holds_on_8_simulated_ranks() {
    holds_on(8);
}

#[test]
fn the_contract_holds_on_13_simulated_ranks() {
    holds_on(13);
}
