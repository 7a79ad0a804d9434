//! A world: what runs a program on every node of an overlay, on real ranks or in simulation.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

#[cfg(feature = "mpi")]
use super::mpi;
use super::{Port, sim};
use crate::error::Result;
use crate::topology::{Hosts, NodeId, Overlay, RankId};

/// One node's program, ready to be polled.
pub type Program<T> = Pin<Box<dyn Future<Output = Result<T>>>>;

/// Real ranks or a simulation of them.
pub enum World {
    #[cfg(feature = "mpi")]
    Mpi(mpi::World),
    Sim(sim::World),
}

impl World {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.ranks(),
            World::Sim(world) => world.ranks(),
        }
    }

    /// Whether this process holds node 0, and so is the one that prints.
    pub fn is_first(&self) -> bool {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.rank() == 0,
            World::Sim(_) => true,
        }
    }

    /// Which ranks share a host.
    pub fn hosts(&self) -> Hosts {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.hosts().clone(),
            World::Sim(world) => world.hosts(),
        }
    }

    /// The ranks that this process holds: all of them in simulation, itself on real ranks.
    pub fn held(&self) -> Range<RankId> {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.rank()..world.rank() + 1,
            World::Sim(world) => 0..world.ranks(),
        }
    }

    /// Whether time is virtual: then a run repeats to the tick, and all programs begin at the same instant.
    pub fn is_simulated(&self) -> bool {
        matches!(self, World::Sim(_))
    }

    /// Changes the seed that the programs of later runs see. Every rank must call this with the same one.
    pub fn reseed(&mut self, seed: u64) {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.reseed(seed),
            World::Sim(world) => world.model().seed = seed,
        }
    }

    /// Runs a program on every node of the overlay, and returns the results of the nodes that this process holds, in node order: all of
    /// them in simulation, the rank's own on real ranks. `program` is called once per node held here, in node order.
    ///
    /// Every rank must call this with the same overlay and the same program. When it returns, no message of the run is left anywhere.
    ///
    /// # Errors
    /// The first error of a node's program. On real ranks an error ends the job (the other ranks would wait for ever), so it is
    /// returned in simulation only. [`Error::Stuck`](crate::Error::Stuck) when nobody can go on.
    pub fn run<T: 'static>(&mut self, overlay: &Overlay, program: impl FnMut(Port) -> Program<T>) -> Result<Vec<(NodeId, T)>> {
        match self {
            #[cfg(feature = "mpi")]
            World::Mpi(world) => world.run(overlay, program),
            World::Sim(world) => world.run(overlay, program),
        }
    }
}
