//! All schedulers: what is known of each before it runs, and how the command line names it.

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{AnyPolicy, Place};
use super::{acwn, cwn, gde, gradient, hierarchical, incremental, independent, neighbour, random, rid, static_, steal};
use crate::balance;
use crate::error::{Error, Result};
use crate::node::Ticks;
use crate::options::{self, Options};
use crate::topology::{Kind, NodeId, Overlay, Topology};

/// All schedulers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &hierarchical::ENTRY,
    &neighbour::ENTRY,
    &gradient::ENTRY,
    &cwn::ENTRY,
    &acwn::ENTRY,
    &rid::ENTRY,
    &gde::ENTRY,
    &incremental::ENTRY,
    &steal::ENTRY,
    &random::ENTRY,
    &static_::ENTRY,
];

/// The names of all, the simplest first: among schedulers that do equally well the simplest is recommended.
pub const SIMPLEST_FIRST: [&str; 11] =
    ["static", "random", "steal", "rid", "neighbour", "cwn", "acwn", "gradient", "gde", "hierarchical", "incremental"];

/// Every kind of topology, for schedulers that don't look at it.
pub(super) const ANY: &[Kind] =
    &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph];

/// Every kind of topology, for schedulers that know nobody but their neighbours.
pub(super) const NEIGHBOURLY: &[Kind] =
    &[Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Complete, Kind::Graph];

/// A scheduler's place in the registry.
pub struct Entry {
    /// As the command line names it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Author, year, section.
    pub source: &'static str,
    /// The kinds of topology that it runs on; the first is the one it gets when none is asked for.
    pub kinds: &'static [Kind],
    /// Its options as `key=value, ..` with the default first; empty if it has none.
    pub options: &'static str,
    /// Makes the scheduler with the given options.
    pub build: fn(&mut Options<'_>) -> Result<Arc<dyn Scheduler>>,
}

/// Makes the policies of a run's nodes. The same value serves all nodes of a process.
pub trait Scheduler: Send + Sync {
    /// The policy of one node, which draws from this stream of random numbers.
    ///
    /// # Errors
    /// If the options don't fit the overlay: a sentence that names the option.
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>>;

    /// How it divides the overlay's nodes; empty if it does not.
    ///
    /// # Errors
    /// As [`policy`](Scheduler::policy).
    fn regions(&self, overlay: &Overlay) -> Result<Vec<Region>> {
        let _ = overlay;
        Ok(Vec::new())
    }

    /// What redistributes tasks when the policy asks for a [system phase](super::policy::Action::Phase); `None` if it never does.
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

/// A scheduler that was asked for, ready to run.
#[derive(Clone)]
pub struct Chosen {
    /// As it was asked for, options included.
    pub name: String,
    pub entry: &'static Entry,
    pub scheduler: Arc<dyn Scheduler>,
}

/// The scheduler named `name[:key=value,..]`.
///
/// # Errors
/// If there is none of this name (the sentence lists all), or its options are wrong.
pub fn find(spec: &str) -> Result<Chosen> {
    let (name, given) = options::split(spec);
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        if let Some((before, option)) = name.split_once(',')
            && ALL.iter().any(|entry| entry.name == before)
        {
            return Error::usage(format!("--scheduler {before}: options follow a colon, as in {before}:{option}"));
        }
        let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        Error::usage(format!("--scheduler '{name}' is unknown; known are {}", known.join(", ")))
    })?;
    let scheduler = Options::make(format!("--scheduler {name}"), given, entry.build)?;
    Ok(Chosen { name: spec.to_string(), entry, scheduler })
}

/// The schedulers in a list `NAME[:key=value,..],NAME,..`, those of independent tasks among them.
pub fn listed(list: &str) -> Vec<String> {
    let of_independent = |name: &str| independent::ALL.iter().any(|entry| entry.name == name);
    options::listed(list, |name| ALL.iter().any(|entry| entry.name == name) || of_independent(name))
}

impl Chosen {
    /// Why this scheduler can't run on a topology with the options that it was given, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<String> {
        let balancers = || {
            let objection = self.scheduler.balancer()?.entry.objection(topology)?;
            Some(format!("--scheduler {}: {objection}", self.name))
        };
        self.entry.objection(topology).or_else(balancers)
    }

    /// The topology that it gets when none is asked for, fitted to the ranks.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        match self.scheduler.balancer() {
            Some(balancer) => balancer.entry.default_topology(ranks),
            None => self.entry.default_topology(ranks),
        }
    }
}

impl Entry {
    /// Its place in [`SIMPLEST_FIRST`].
    pub fn simplicity(&self) -> usize {
        SIMPLEST_FIRST.iter().position(|name| *name == self.name).unwrap_or(SIMPLEST_FIRST.len())
    }

    /// Why this scheduler can't run on a topology, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<String> {
        if self.kinds.contains(&topology.kind()) {
            return None;
        }
        let kinds: Vec<_> = self.kinds.iter().map(Kind::to_string).collect();
        Some(format!("--scheduler {} runs on {}, not on --topology {}", self.name, kinds.join(", "), topology.name()))
    }

    /// The topology that it gets when none is asked for, fitted to the ranks.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        Topology::fitted(self.kinds[0], ranks)
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
    pub fn read(options: &mut Options<'_>, key: &'static str) -> Result<Option<Units>> {
        let units = options.read(key, "a number of time units, 0 or more", |units: &f64| units.is_finite() && *units >= 0.0)?;
        Ok(units.map(Units))
    }

    /// In ticks, of which a unit has so many. What is not 0 is at least a tick.
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
