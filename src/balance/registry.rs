//! The registry of balancers: facts known before a phase, and the construction from a specification.

use super::{ALL, Balancer, Cost, Promises, QuotaRule, SIMPLEST_FIRST, partition_file, parts, repair};
use crate::error::Result;
use crate::registry::{self, OnTopologies, Registered};
use crate::topology::{Kind, KnownNetwork, Topology};

/// A balancer's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A balancer that was chosen, ready to run.
pub type Chosen = registry::Chosen<Facts>;

/// Properties of a balancer that are known before it runs.
pub struct Facts {
    /// The kinds of topology that it runs on; the first is the one it gets when none is asked for.
    pub kinds: &'static [Kind],
    /// The topology that it gets on a network when none is asked for; `None`: of its first kind, fitted to the ranks.
    pub suited: Option<fn(&KnownNetwork<'_>) -> Topology>,
    /// Requirement on a topology beyond its kind: a reason to refuse one, as a clause that follows the balancer's name, or `None`.
    pub refuses: fn(&Topology) -> Option<String>,
    /// Definition of its quotas.
    pub quota: QuotaRule,
    /// Its guarantees, which the tests check.
    pub promises: Promises,
    /// At most this many steps, messages and bytes, predicted from the paper's formulas and our message sizes.
    pub cost: fn(&Topology) -> Cost,
}

impl Registered for Facts {
    type Made = Box<dyn Balancer>;
    const WHAT: &'static str = "balancer";
    const ALL: &'static [&'static Entry] = ALL;
    const SIMPLEST_FIRST: &'static [&'static str] = SIMPLEST_FIRST;
}

impl OnTopologies for Facts {
    fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    fn refuses(&self, topology: &Topology) -> Option<String> {
        (self.refuses)(topology)
    }

    fn suited(&self, network: &KnownNetwork<'_>) -> Topology {
        match self.suited {
            Some(suited) => suited(network),
            None => Topology::fitted(self.kinds[0], network.hosts().ranks()),
        }
    }
}

/// The balancer that `NAME[:key=value,..]` names, or `NAME[..]+refine`: the same, and what whole tasks leave is repaired by pairs of ranks.
///
/// # Errors
/// If there is none of this name (the sentence lists all), or its options are wrong; for `from:FILE`, which is made by [`from_parts`](super::from_parts).
pub fn find(spec: &str) -> Result<Chosen> {
    if partition_file(spec).is_some() {
        return Err(parts::not_read().into());
    }
    let Some(walk) = spec.strip_suffix(repair::SUFFIX) else { return Ok(registry::find(spec)?) };
    let walk: Chosen = registry::find(walk)?;
    let (name, entry) = (format!("{}{}", walk.name, repair::SUFFIX), walk.entry);
    Ok(Chosen { name, entry, made: Box::new(repair::Repaired::new(walk)) })
}

/// All balancers but those that need a [place](crate::load::WorkQueue::with_places) of each task.
pub fn without_places() -> impl Iterator<Item = &'static Entry> {
    ALL.iter().copied().filter(|entry| find(entry.name).is_ok_and(|chosen| !chosen.needs_places()))
}

/// The balancers in a list `NAME[:key=value,..],NAME,..`.
pub fn listed(list: &str) -> Vec<String> {
    crate::spec::items(list, |name| name == "from" || registry::knows::<Facts>(name.strip_suffix(repair::SUFFIX).unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_balancer_has_a_place_among_the_simplest() {
        let mut places: Vec<usize> = ALL.iter().map(|entry| entry.simplicity()).collect();
        places.sort_unstable();
        assert_eq!(places, (0..ALL.len()).collect::<Vec<_>>());
    }
}
