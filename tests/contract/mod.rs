//! Promises of every world to the programs of its nodes, written against `Node`, to be run in each.
//!
//! A world that runs these has outboxes of [`OUTBOX`] bytes; a carrier that treats short and long bodies differently does so at
//! [`INLINE`] and [`CHUNK`].

mod concurrent;
mod groups;
mod messages;
mod time_and_work;

use std::future::Future;

use equipoise::node::{self, Node};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

pub const INLINE: usize = 1000;
pub const CHUNK: usize = 4096;
pub const OUTBOX: usize = 256 << 10;

/// A promise, and a function that finds out whether a world holds it.
pub struct Case {
    pub name: &'static str,
    pub check: fn(&mut World) -> Result<()>,
}

/// All cases, for any number of ranks.
pub fn cases() -> Vec<Case> {
    [concurrent::CASES, groups::CASES, messages::CASES, time_and_work::CASES]
        .concat()
        .into_iter()
        .map(|(name, check)| Case { name, check })
        .collect()
}

/// A name and what it stands for, as the lists in this folder have it.
type Entry = (&'static str, fn(&mut World) -> Result<()>);

/// Fails the program that it stands in, with a sentence.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(equipoise::Error::Failed(format!($($why)+)));
        }
    };
}
use ensure;

/// Runs a program on one node per rank, all of them neighbours.
fn on_ranks<F>(world: &mut World, program: impl FnMut(Node) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + 'static,
{
    on(world, "complete", program)
}

/// Runs a program on every node of a topology.
fn on<F>(world: &mut World, topology: &str, program: impl FnMut(Node) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + 'static,
{
    let ranks = world.ranks();
    let wrong = |why: equipoise::topology::InvalidTopology| Error::usage(why.to_string());
    let topology = Topology::parse(topology, ranks).map_err(wrong)?;
    let overlay = Overlay::one_host(topology, ranks).map_err(wrong)?;
    node::run(world, &overlay, program).map(|_| ())
}

/// Bytes that tell where they belong: every one depends on its place and on who sent which message.
fn pattern(sender: u32, number: u64, length: usize) -> Vec<u8> {
    let seed = u64::from(sender).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd134_2543_de82_ef95);
    let mut bytes = Vec::with_capacity(length + 8);
    // A word at a time: these tests run without optimisation.
    while bytes.len() < length {
        let place = bytes.len() as u64;
        bytes.extend_from_slice(&(seed ^ place.wrapping_mul(0xff51_afd7_ed55_8ccd)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
