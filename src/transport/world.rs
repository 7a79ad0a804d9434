//! Worlds: they run a program on every node of an overlay, on real ranks or in simulation.

use std::ops::Range;

use super::interrupt::Interrupt;
#[cfg(feature = "_ranks")]
use super::mpi;
use super::{Port, Program, sim};
use crate::error::{Error, Result};
use crate::topology::{Hosts, KnownNetwork, NodeId, Overlay, RankId};

/// Real ranks or a simulation of them.
///
/// Opaque, so that a program compiles alike with and without the feature `mpi`; the feature only adds constructors.
pub struct World {
    kind: Kind,
    interrupt: Option<Interrupt>,
    /// The signal for which something ended early; 0 if nothing did.
    interrupted: i32,
}

enum Kind {
    #[cfg(feature = "_ranks")]
    Mpi(mpi::World),
    Sim(Box<sim::World>),
}

impl From<sim::World> for World {
    fn from(world: sim::World) -> World {
        World { kind: Kind::Sim(Box::new(world)), interrupt: None, interrupted: 0 }
    }
}

#[cfg(feature = "_ranks")]
impl From<mpi::World> for World {
    fn from(world: mpi::World) -> World {
        World { kind: Kind::Mpi(world), interrupt: None, interrupted: 0 }
    }
}

#[cfg(feature = "_ranks")]
impl World {
    /// The ranks that a launcher started; `None` if no launcher started this process. See [`mpi::World::launched`].
    ///
    /// # Errors
    /// As [`mpi::World::launched`].
    pub fn launched(options: mpi::Options) -> Result<Option<World>> {
        Ok(mpi::World::launched(options)?.map(World::from))
    }

    /// Initialises MPI and takes all of its ranks. See [`mpi::World::init`].
    ///
    /// # Errors
    /// As [`mpi::World::init`].
    pub fn init(options: mpi::Options) -> Result<World> {
        mpi::World::init(options).map(World::from)
    }

    /// The ranks of a communicator of the caller's. See [`mpi::World::on`].
    ///
    /// # Errors
    /// As [`mpi::World::on`].
    #[cfg(feature = "mpi")]
    pub fn on(comm: &impl mpi::rsmpi::traits::AsRaw<Raw = mpi::rsmpi::ffi::MPI_Comm>, options: mpi::Options) -> Result<World> {
        mpi::World::on(comm, options).map(World::from)
    }

    /// The world as one of real ranks; `None` if it is simulated.
    pub fn as_real(&self) -> Option<&mpi::World> {
        match &self.kind {
            Kind::Mpi(world) => Some(world),
            Kind::Sim(_) => None,
        }
    }
}

impl World {
    /// A simulation of `ranks` ranks.
    pub fn simulated(ranks: u32, model: sim::Model) -> World {
        sim::World::new(ranks, model).into()
    }

    /// The world as a simulation, to read or change its model between runs; `None` on real ranks.
    pub fn as_simulation(&mut self) -> Option<&mut sim::World> {
        match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(_) => None,
            Kind::Sim(world) => Some(world),
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        match &self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.ranks(),
            Kind::Sim(world) => world.ranks(),
        }
    }

    /// Returns true if this process holds node 0, and so is the one that prints.
    pub fn is_first(&self) -> bool {
        match &self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.rank() == RankId::FIRST,
            Kind::Sim(_) => true,
        }
    }

    /// Facts about the network between the ranks: in simulation its model, on real ranks the hosts.
    pub fn network(&self) -> KnownNetwork<'_> {
        match &self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(_) => KnownNetwork::of_hosts(self.hosts()),
            Kind::Sim(world) => {
                KnownNetwork::new(self.hosts(), |overlay, from, to, bytes| world.network().passage(overlay, from, to, bytes))
            }
        }
    }

    /// Hosts of the ranks.
    pub fn hosts(&self) -> Hosts {
        match &self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.hosts().clone(),
            Kind::Sim(world) => world.hosts(),
        }
    }

    /// Puts the hosts into racks, as [`Hosts::with_racks`] does, for placements and trees of hosts. On real ranks all of them must be given the same.
    pub fn use_racks(&mut self, of_host: &[u32]) {
        let hosts = self.hosts().with_racks(of_host);
        match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.use_hosts(hosts),
            Kind::Sim(world) => world.model().hosts = Some(hosts),
        }
    }

    /// The ranks that this process holds: all of them in simulation, itself on real ranks. [`RankId::each`] walks over them.
    pub fn held(&self) -> Range<RankId> {
        match &self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.rank()..RankId::new(world.rank().get() + 1),
            Kind::Sim(world) => RankId::FIRST..RankId::new(world.ranks()),
        }
    }

    /// Returns true if time is virtual: then a run repeats to the tick, and all programs begin at the same instant.
    pub fn is_simulated(&self) -> bool {
        matches!(self.kind, Kind::Sim(_))
    }

    /// Changes the seed that the programs of later runs see. Every rank must call this with the same one.
    pub fn reseed(&mut self, seed: u64) {
        match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.reseed(seed),
            Kind::Sim(world) => world.model().seed = seed,
        }
    }

    /// Selects MPI's own operations for sums, scans and all-gathers of later runs, where each rank has one node. No effect in simulation.
    /// Collective; every rank passes the same value.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn use_native_collectives(&mut self, native: bool) -> Result<()> {
        match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.use_native_collectives(native),
            Kind::Sim(_) => {
                let _ = native;
                Ok(())
            }
        }
    }

    /// Listens to this request from now on, which ends the world's operations; see [`interrupt`](super::interrupt). Every rank must call
    /// this.
    pub fn end_on(&mut self, interrupt: &Interrupt) {
        self.interrupt = Some(interrupt.clone());
        match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.end_on(interrupt),
            Kind::Sim(world) => world.end_on(interrupt),
        }
    }

    /// The request to end that this world listens to, if there is one.
    pub fn interrupt(&self) -> Option<&Interrupt> {
        self.interrupt.as_ref()
    }

    /// Signal for which this world ended something early, on every remaining rank; `None` if it did not.
    pub fn interrupted(&self) -> Option<i32> {
        (self.interrupted != 0).then_some(self.interrupted)
    }

    /// Notes that the current operation ends early because of this signal. All ranks know of it.
    pub(crate) fn note_interruption(&mut self, signal: i32) {
        self.interrupted = signal;
    }

    /// Runs a program on every node of the overlay, and returns the results of the nodes that this process holds, in node order: all of
    /// them in simulation, the rank's own on real ranks. `program` is called once per node held here, in node order.
    ///
    /// Every rank must call this with the same overlay and the same program. When it returns, no message of the run is left anywhere.
    ///
    /// # Errors
    /// The first error of a node's program. On real ranks an error ends the job (the other ranks would wait for ever), so it is
    /// returned in simulation only. [`Error::Stuck`] when no node can go on. [`Error::Interrupted`], on rank 0, when a request to end came, and
    /// the grace after it is over: then the job ends when the world is dropped.
    pub(crate) fn run<T: 'static>(&mut self, overlay: &Overlay, program: impl FnMut(Port) -> Program<T>) -> Result<Vec<(NodeId, T)>> {
        let outcome = match &mut self.kind {
            #[cfg(feature = "_ranks")]
            Kind::Mpi(world) => world.run(overlay, program),
            Kind::Sim(world) => world.run(overlay, program),
        };
        if let (Err(Error::Interrupted), Some(interrupt)) = (&outcome, &self.interrupt) {
            self.interrupted = interrupt.signal();
        }
        outcome
    }
}
