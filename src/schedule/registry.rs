//! The registry of schedulers of tasks that spawn tasks: facts known before a run, and what a scheduler has to provide.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{AnyPolicy, Place};
use super::{ALL, SIMPLEST_FIRST};
use crate::balance;
use crate::error::Result;
use crate::node::Ticks;
use crate::registry::{self, OnTopologies, Registered, Unsuitable};
use crate::spec::{InvalidSpec, Options};
use crate::topology::{Hosts, Kind, KnownNetwork, NodeId, Overlay, Placement, RankId, Topology};

/// Every kind of topology, for schedulers that don't look at it.
pub(super) const ANY: &[Kind] =
    &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph];

/// Every kind of topology, for schedulers whose nodes know only their neighbours.
pub(super) const NEIGHBOURLY: &[Kind] =
    &[Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Complete, Kind::Graph];

/// A scheduler's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A scheduler that was chosen, ready to run.
pub type Chosen = registry::Chosen<Facts>;

/// Properties of a scheduler that are known before it runs.
pub struct Facts {
    /// Kinds of topology that it runs on; the first is the default.
    pub kinds: &'static [Kind],
}

impl Registered for Facts {
    type Made = Arc<dyn Scheduler>;
    const WHAT: &'static str = "scheduler";
    const ALL: &'static [&'static Entry] = ALL;
    const SIMPLEST_FIRST: &'static [&'static str] = SIMPLEST_FIRST;
}

impl OnTopologies for Facts {
    fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }
}

/// Makes the policies of a run's nodes. The same value serves all nodes of a process.
pub trait Scheduler: Send + Sync {
    /// The policy of one node, which draws from this stream of random numbers.
    ///
    /// # Errors
    /// If the options don't fit the overlay: a sentence that names the option.
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>>;

    /// Regions into which it divides the overlay's nodes; empty if it does not.
    ///
    /// # Errors
    /// As [`policy`](Scheduler::policy).
    fn regions(&self, overlay: &Overlay) -> Result<Vec<Region>> {
        let _ = overlay;
        Ok(Vec::new())
    }

    /// The rank of the host, where roots are submitted and answers end.
    fn host_rank(&self) -> RankId {
        RankId::FIRST
    }

    /// Balancer that runs when the policy asks for a [system phase](super::policy::Action::Phase); `None` if it never does.
    fn balancer(&self) -> Option<Arc<balance::Chosen>> {
        None
    }
}

/// A part of the topology whose tasks are scheduled together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Region {
    /// The node that schedules them. A virtual one is served by the rank that hosts it.
    pub median: NodeId,
    /// The nodes that execute them, in ascending order.
    pub members: Vec<NodeId>,
}

impl Chosen {
    /// The node where roots are submitted and answers end: the real node of the host's rank.
    ///
    /// # Errors
    /// If there is no such rank.
    pub fn host_on(&self, placement: &Placement) -> Result<NodeId> {
        let (rank, ranks) = (self.host_rank(), placement.ranks());
        if rank.get() < ranks {
            return Ok(placement.real_node_of(rank));
        }
        Err(self.entry.conflict(format!("host_rank={rank}: there is no such rank; there are {ranks}, counted from 0")).into())
    }

    /// Why this scheduler can't run on a topology with the options that it was given, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<Unsuitable> {
        let balancers = || Some(self.balancer()?.entry.objection(topology)?.part_of(Facts::WHAT, &self.name));
        self.entry.objection(topology).or_else(balancers)
    }

    /// The topology that it gets when none is asked for, on ranks of one host.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        self.topology_on(&KnownNetwork::of_hosts(Hosts::single(ranks)))
    }

    /// The topology that it gets on a network when none is asked for.
    pub fn topology_on(&self, network: &KnownNetwork<'_>) -> Topology {
        match self.balancer() {
            Some(balancer) => balancer.entry.topology_on(network),
            None => self.entry.topology_on(network),
        }
    }
}

/// A length of time, in units of the workload's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units(pub f64);

impl Units {
    /// The value of an option, if it is given.
    ///
    /// # Errors
    /// If it is no length of time.
    pub fn read(options: &mut Options<'_>, key: &'static str) -> Result<Option<Units>, InvalidSpec> {
        let units = options.read(key, "a number of time units, 0 or more", |units: &f64| units.is_finite() && *units >= 0.0)?;
        Ok(units.map(Units))
    }

    /// In ticks, `unit` of which are a unit of the workload's time. At least a tick unless it is 0.
    pub fn ticks(self, unit: Ticks) -> Ticks {
        match self.0 {
            0.0 => 0,
            units => ((units * unit as f64).round() as Ticks).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::independent;

    #[test]
    fn every_scheduler_has_a_place_among_the_simplest() {
        let all = [
            (ALL.iter().map(|entry| entry.simplicity()).collect::<Vec<_>>(), SIMPLEST_FIRST.len()),
            (independent::ALL.iter().map(|entry| entry.simplicity()).collect(), independent::SIMPLEST_FIRST.len()),
        ];
        for (mut places, known) in all {
            places.sort_unstable();
            assert_eq!(places, (0..known).collect::<Vec<_>>());
        }
    }
}
