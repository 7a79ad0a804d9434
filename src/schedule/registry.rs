//! All schedulers: what is known of each before it runs, and how the command line names it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;

use super::policy::{AnyPolicy, Place};
use super::{acwn, cwn, gde, gradient, hierarchical, incremental, neighbour, random, rid, static_, steal};
use crate::balance;
use crate::error::{Error, Result};
use crate::node::Ticks;
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
    pub build: fn(&Settings) -> Result<Arc<dyn Scheduler>>,
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
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        if let Some((before, option)) = name.split_once(',')
            && ALL.iter().any(|entry| entry.name == before)
        {
            return Error::usage(format!("--scheduler {before}: options follow a colon, as in {before}:{option}"));
        }
        let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        Error::usage(format!("--scheduler '{name}' is unknown; known are {}", known.join(", ")))
    })?;
    let scheduler = (entry.build)(&Settings::parse(entry.name, options)?)?;
    Ok(Chosen { name: spec.to_string(), entry, scheduler })
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

/// The error for a key that a scheduler does not know.
pub(super) fn unknown_option(scheduler: &str, key: &str, known: &[&str]) -> Error {
    if known.is_empty() {
        return Error::usage(format!("--scheduler {scheduler} takes no options, '{key}' was given"));
    }
    Error::usage(format!("--scheduler {scheduler} has no option '{key}'; it has {}", known.join(", ")))
}

/// The error for a value that is none of those that a scheduler's key takes.
pub(super) fn wrong_value(scheduler: &str, key: &str, value: &str, takes: &str) -> Error {
    Error::usage(format!("--scheduler {scheduler}: {key} is {takes}, not '{value}'"))
}

/// A length of time, in units of the workload's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units(pub f64);

impl Units {
    /// In ticks, of which a unit has so many. What is not 0 is at least a tick.
    pub fn ticks(self, unit: Ticks) -> Ticks {
        match self.0 {
            0.0 => 0,
            units => ((units * unit as f64).round() as Ticks).max(1),
        }
    }
}

/// A scheduler's options, as `key=value` pairs from the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    scheduler: &'static str,
    pairs: Vec<(String, String)>,
}

impl Settings {
    fn parse(scheduler: &'static str, text: &str) -> Result<Settings> {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_string(), value.trim().to_string())),
            None => Err(Error::usage(format!("--scheduler {scheduler}: '{pair}' is not of the form key=value"))),
        };
        let pairs = text.split(',').filter(|text| !text.trim().is_empty()).map(pair).collect::<Result<Vec<_>>>()?;
        Ok(Settings { scheduler, pairs })
    }

    /// All pairs, in the order in which they were given.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The error for a key that the scheduler does not know.
    pub fn unknown(&self, key: &str, known: &[&str]) -> Error {
        unknown_option(self.scheduler, key, known)
    }

    /// The error for a value that is none of those that the key takes.
    pub fn wrong(&self, key: &str, value: &str, takes: &str) -> Error {
        wrong_value(self.scheduler, key, value, takes)
    }

    /// A length of time in units of the workload's time, in whole ticks; one that is not 0 is at least a tick.
    ///
    /// # Errors
    /// If the value is none.
    pub fn units(&self, key: &str, value: &str) -> Result<Units> {
        let units = value.parse().ok().filter(|units: &f64| units.is_finite() && *units >= 0.0);
        units.map(Units).ok_or_else(|| self.wrong(key, value, "a number of time units, 0 or more"))
    }

    /// A whole number in a range.
    ///
    /// # Errors
    /// If the value is none.
    pub fn whole(&self, key: &str, value: &str, range: RangeInclusive<u32>) -> Result<u32> {
        let takes = match (*range.start(), *range.end()) {
            (least, u32::MAX) => format!("a whole number, {least} or more"),
            (least, most) => format!("a whole number from {least} to {most}"),
        };
        value.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| self.wrong(key, value, &takes))
    }

    /// A number between 0 and 1, neither of them.
    ///
    /// # Errors
    /// If the value is none.
    pub fn fraction(&self, key: &str, value: &str) -> Result<f64> {
        let number = value.parse().ok().filter(|number: &f64| *number > 0.0 && *number < 1.0);
        number.ok_or_else(|| self.wrong(key, value, "a number between 0 and 1"))
    }

    /// Checks that there are no options.
    ///
    /// # Errors
    /// If there is one.
    pub fn none(&self) -> Result<()> {
        self.pairs().next().map_or(Ok(()), |(key, _)| Err(self.unknown(key, &[])))
    }
}
