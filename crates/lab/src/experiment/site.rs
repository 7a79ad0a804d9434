//! The ranks that an experiment ran on, and the imbalance of its loads: fields that all records share.

use serde::Serialize;

use super::cores;
use equipoise::error::Result;
use equipoise::judge::{CoreGroup, Imbalance};
use equipoise::topology::{Placement, Topology};
use equipoise::transport::world::World;

/// The ranks that an experiment ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Site {
    pub ranks: u32,
    pub hosts: u32,
    /// Total number of cores that the ranks may run on; `None` in simulation, where each rank has a core of its own, and if unknown.
    pub cores: Option<u32>,
    /// Groups of ranks that share cores; on real ranks, in the records of rank 0.
    #[serde(skip)]
    pub groups: Vec<CoreGroup>,
    /// The model of the simulated network; `None` on real ranks.
    pub network: Option<String>,
    pub seed: u64,
}

impl Site {
    /// The site of a world whose programs see this seed. All ranks must ask.
    ///
    /// # Errors
    /// As [`World::run`].
    pub fn of(world: &mut World, seed: u64) -> Result<Site> {
        let (ranks, hosts) = (world.ranks(), world.hosts().count());
        let groups = cores::groups(world)?;
        let network = world.as_simulation().map(|world| world.model().network.to_string());
        let cores = groups.iter().map(|group| group.cores).reduce(u32::saturating_add);
        Ok(Site { ranks, hosts, cores, groups, network, seed })
    }

    /// Returns true if some ranks have fewer cores than they are.
    pub fn shares_cores(&self) -> bool {
        self.groups.iter().any(CoreGroup::is_shared)
    }
}

/// The imbalance over ranks before and after a phase, by all three definitions in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Imbalances {
    pub before: Imbalance,
    pub after: Imbalance,
}

/// Numbers of tasks by node, before and after a phase, and where the nodes are.
#[derive(Clone, Debug)]
pub struct LoadMap {
    pub topology: Topology,
    pub placement: Placement,
    pub before: Vec<u64>,
    /// Quota of each node.
    pub quota: Vec<u64>,
    pub after: Vec<u64>,
}

/// Ticks as milliseconds.
pub(super) fn milliseconds(ticks: u64) -> f64 {
    ticks as f64 / 1e6
}
