//! Selection of the collective operations that phases use: the library's trees of point-to-point messages, or MPI's own where each node has
//! its own rank.

use std::fmt;
use std::str::FromStr;

use super::{one_node_per_rank, only};
use crate::error::Result;
use crate::node::{self, Node, Ticks, collective};
use crate::transport::world::World;

/// Requested collective operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collectives {
    /// Trees of messages.
    #[default]
    Own,
    /// MPI's.
    Native,
    /// Whichever is faster here.
    Auto,
}

impl Collectives {
    const ALL: [(&'static str, Collectives); 3] = [("own", Collectives::Own), ("native", Collectives::Native), ("auto", Collectives::Auto)];
}

impl FromStr for Collectives {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Collectives, String> {
        let known = Collectives::ALL.into_iter().find(|(name, _)| *name == text.trim());
        known.map(|(_, choice)| choice).ok_or_else(|| "known are own, native and auto".into())
    }
}

impl fmt::Display for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Collectives::ALL[*self as usize];
        f.write_str(name)
    }
}

/// Collective operations that later runs use, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Whether MPI's operations are used; only where each node has its own rank.
    pub native: bool,
    /// Measured time of a sum and an all-gather together, with our own trees and with MPI's, in nanoseconds of the slowest rank; `None` if
    /// it was not measured.
    pub measured: Option<[Ticks; 2]>,
}

/// Turns for each kind in a measurement, and operations in a turn. The median over the turns counts.
const TURNS: usize = 5;
const OPERATIONS: usize = 5;

/// Selects the collective operations of later runs. In simulation, and with one rank, these are always our own trees.
///
/// # Errors
/// If MPI fails; otherwise as [`World::run`].
pub fn use_collectives(world: &mut World, choice: Collectives) -> Result<Used> {
    let possible = !world.is_simulated() && world.ranks() > 1;
    let measured = match choice {
        Collectives::Auto if possible => Some(measure(world)?),
        _ => None,
    };
    let native = possible
        && match measured {
            Some([own, native]) => native < own,
            None => choice == Collectives::Native,
        };
    world.use_native_collectives(native)?;
    Ok(Used { native, measured })
}

/// Times of both kinds, on all ranks the same: of a turn's operations one.
fn measure(world: &mut World) -> Result<[Ticks; 2]> {
    let overlay = one_node_per_rank(world)?;
    let mut times = [Vec::new(), Vec::new()];
    // The first turn of each connects the ranks.
    for turn in 0..=TURNS {
        for kind in [0, 1] {
            world.use_native_collectives(kind == 1)?;
            let slowest = only(node::run(world, &overlay, timed)?)?;
            if turn > 0 {
                times[kind].push(slowest / OPERATIONS as Ticks);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[TURNS / 2]
    }))
}

/// Time of one turn of operations on the slowest node.
async fn timed(node: Node) -> Result<Ticks> {
    let everyone = node.everyone();
    everyone.barrier(&node).await?;
    let began = node.now();
    for _ in 0..OPERATIONS {
        let sum = everyone.sum(&node, 1).await?;
        if collective::FEW.contains(&everyone.size()) {
            everyone.all_gather_over_first(&node, sum).await?;
        } else {
            everyone.all_gather(&node, sum).await?;
        }
    }
    let took = node.now() - began;
    everyone.all_reduce(&node, took, Ticks::max).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::sim;

    #[test]
    fn names_read_back_and_others_are_refused() {
        for (name, choice) in Collectives::ALL {
            assert_eq!((name.parse(), choice.to_string()), (Ok(choice), name.to_string()));
        }
        assert_eq!("mpi".parse::<Collectives>(), Err("known are own, native and auto".into()));
    }

    #[test]
    fn simulated_ranks_use_our_own() {
        let mut world = World::simulated(4, sim::Model::default());
        for choice in [Collectives::Own, Collectives::Native, Collectives::Auto] {
            assert_eq!(use_collectives(&mut world, choice).unwrap(), Used { native: false, measured: None });
        }
    }
}
