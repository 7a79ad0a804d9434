//! Registries of items that are chosen by name, and the construction of an item from its specification.
//!
//! A room with items to choose from (balancers, schedulers, workloads) defines further facts about each ([`Registered`]), and lists its
//! [entries](Entry). The command line, `list`, the documentation's tables and the tests use the list.

use std::fmt;
use std::ops::Deref;

use crate::spec::{self, InvalidSpec, Mistake, Options, Spec};
use crate::topology::{Hosts, Kind, KnownNetwork, Topology};

/// Facts about an entry beyond those that all entries have. The type also stands for its room's registry.
pub trait Registered: Sized + 'static {
    /// Type of what an entry builds.
    type Made;
    /// The noun with which sentences about it begin: `scheduler`.
    const WHAT: &'static str;
    /// All entries, in the order in which they are shown.
    const ALL: &'static [&'static Entry<Self>];
    /// The names of all, the simplest first: of those that do equally well the simplest is recommended. Empty where nothing is compared.
    const SIMPLEST_FIRST: &'static [&'static str] = &[];
}

/// An entry of a registry: facts about an item that are known before it is made.
pub struct Entry<T: Registered> {
    /// Its name in a specification.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// Author, year, section; empty if there is no source.
    pub source: &'static str,
    /// Its options as `key=value, ..` with the default first; empty if it has none.
    pub options: &'static str,
    /// Specifications for tests, each quick to run, with the options that change its behaviour.
    pub examples: &'static [&'static str],
    /// Makes it with the given options.
    pub build: fn(&mut Options<'_>) -> Result<T::Made, InvalidSpec>,
    /// Further facts about the entry, by the kind of registry.
    pub facts: T,
}

impl<T: Registered> Entry<T> {
    /// Its place among the [simplest](Registered::SIMPLEST_FIRST).
    pub fn simplicity(&self) -> usize {
        T::SIMPLEST_FIRST.iter().position(|name| *name == self.name).unwrap_or(T::SIMPLEST_FIRST.len())
    }

    /// The error that its options don't fit its use, found when it is used; `why` is a clause that follows a colon.
    pub fn conflict(&self, why: impl Into<String>) -> InvalidSpec {
        InvalidSpec { what: T::WHAT, name: self.name.into(), mistake: Mistake::Conflict { why: crate::names::one_line(why.into()) } }
    }
}

/// Entries that run on some kinds of topology only.
pub trait OnTopologies: Registered {
    /// The kinds of topology that it runs on; the first is the one it gets when none is asked for.
    fn kinds(&self) -> &'static [Kind];

    /// Why it can't run on a topology of one of these kinds (a clause that follows its name), if it can't.
    fn refuses(&self, topology: &Topology) -> Option<String> {
        let _ = topology;
        None
    }

    /// The topology that it gets on a network when none is asked for: of its first kind, fitted to the ranks, unless it has reasons for another.
    fn suited(&self, network: &KnownNetwork<'_>) -> Topology {
        Topology::fitted(self.kinds()[0], network.hosts().ranks())
    }
}

impl<T: OnTopologies> Entry<T> {
    /// Why it can't run on a topology, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<Unsuitable> {
        let objection = |why| Unsuitable { what: T::WHAT, name: self.name.into(), why };
        let kinds = self.facts.kinds();
        if !kinds.contains(&topology.kind()) {
            let kinds: Vec<_> = kinds.iter().map(Kind::to_string).collect();
            return Some(objection(format!("runs on {}, not on {}", kinds.join(", "), topology.name())));
        }
        self.facts.refuses(topology).map(objection)
    }

    /// The topology that it gets when none is asked for, on ranks of one host.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        self.topology_on(&KnownNetwork::of_hosts(Hosts::single(ranks)))
    }

    /// The topology that it gets on a network when none is asked for.
    pub fn topology_on(&self, network: &KnownNetwork<'_>) -> Topology {
        self.facts.suited(network)
    }
}

/// A choice does not fit its use: it cannot run on this topology, or cannot schedule tasks of this kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {name} {why}")]
#[non_exhaustive]
pub struct Unsuitable {
    /// Noun for the choice: `balancer`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// A clause that follows the name.
    pub why: String,
}

impl Unsuitable {
    /// The item of this specification is unsuitable; `why` is a clause that follows its name.
    pub(crate) fn new(spec: &Spec, why: String) -> Unsuitable {
        Unsuitable { what: spec.what(), name: spec::shown(spec.name()), why }
    }

    /// The same of what has this as a part: a scheduler, of its balancer.
    pub(crate) fn part_of(self, what: &'static str, name: &str) -> Unsuitable {
        // The clause stands behind a colon.
        Unsuitable { what, name: format!("{name}:"), why: self.to_string() }
    }
}

/// Item chosen by name, ready to be used. Dereferences to the item itself.
pub struct Chosen<T: Registered> {
    /// Specification as it was given, options included.
    pub name: String,
    /// Its entry in the registry.
    pub entry: &'static Entry<T>,
    /// The item that the entry built.
    pub made: T::Made,
}

impl<T: Registered> Deref for Chosen<T> {
    type Target = T::Made;

    fn deref(&self) -> &T::Made {
        &self.made
    }
}

impl<T: Registered<Made: Clone>> Clone for Chosen<T> {
    fn clone(&self) -> Self {
        Chosen { name: self.name.clone(), entry: self.entry, made: self.made.clone() }
    }
}

impl<T: Registered> fmt::Debug for Chosen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", T::WHAT, self.name)
    }
}

/// Returns true if an entry has this name.
pub fn knows<T: Registered>(name: &str) -> bool {
    T::ALL.iter().any(|entry| entry.name == name)
}

/// The names of all entries.
pub fn names<T: Registered>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().map(|entry| entry.name)
}

/// Examples of all entries, for tests.
pub fn examples<T: Registered>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().flat_map(|entry| entry.examples.iter().copied())
}

/// Builds the item that `NAME[:key=value,..]` names.
///
/// # Errors
/// If there is no entry of this name, or its options are wrong.
pub fn find<T: Registered>(text: &str) -> Result<Chosen<T>, InvalidSpec> {
    make(&Spec::parse(T::WHAT, text)?)
}

/// Builds the item that a specification names.
///
/// # Errors
/// As [`find`].
pub fn make<T: Registered>(spec: &Spec) -> Result<Chosen<T>, InvalidSpec> {
    let entry = T::ALL.iter().find(|entry| entry.name == spec.name()).ok_or_else(|| spec.unknown(names::<T>()))?;
    Ok(Chosen { name: crate::names::one_line(spec.to_string()), entry, made: spec.build(entry.build)? })
}

/// The items of a list `NAME[:key=value,..],NAME,..`.
pub fn items<T: Registered>(list: &str) -> Vec<String> {
    spec::items(list, knows::<T>)
}

/// The specifications in a list.
///
/// # Errors
/// If an option is empty.
pub fn specs<T: Registered>(list: &str) -> Result<Vec<Spec>, InvalidSpec> {
    items::<T>(list).iter().map(|item| Spec::parse(T::WHAT, item)).collect()
}
