//! The simulated world, seen through `Node`.

mod clock;
mod collectives;
mod failures;
mod links;
mod measured;
mod orders;
mod runs;
mod stuck;
mod work;

use std::future::Future;

use equipoise::node::{self, Node, Tag};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim::{self, Model, Network, Rules};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

const DATA: Tag = Tag::new(1, "data");
const REPLY: Tag = Tag::new(2, "reply");
const NEWS: Tag = Tag::background(3, "news");

/// Bytes of a header: a message of this many bytes less takes a round number of ticks.
const HEADER: usize = equipoise::node::HEADER_BYTES as usize;

fn model(network: &str) -> Model {
    Model { network: Network::parse(network).unwrap(), ..Model::default() }
}

fn disturbed(network: &str, rules: Rules) -> Model {
    Model { rules, ..model(network) }
}

fn overlay(topology: &str, ranks: u32) -> Overlay {
    Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap()
}

/// Runs a program on every node of a topology on so many ranks, and returns the results by node.
fn on<T, F>(ranks: u32, topology: &str, model: Model, program: impl FnMut(Node) -> F) -> Result<Vec<T>>
where
    T: 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let mut world = World::simulated(ranks, model);
    let results = node::run(&mut world, &overlay(topology, ranks), program)?;
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// The report of a run that is expected to be stuck.
fn report<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    match outcome {
        Err(Error::Stuck { report }) => report,
        other => panic!("not stuck, but {other:?}"),
    }
}
