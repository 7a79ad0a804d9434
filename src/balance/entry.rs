//! Facts about a balancer that are known before a phase, and the types of the registry's entries.

use super::{ALL, Balancer, Cost, Promises, QuotaRule, SIMPLEST_FIRST};
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
    /// The knowledge from which its nodes decide.
    pub knows: Knowledge,
    /// Its guarantees, which the tests check.
    pub promises: Promises,
    /// At most this many steps, messages and bytes, predicted from the paper's formulas and our message sizes.
    pub cost: fn(&Topology) -> Cost,
}

/// A node's knowledge of the others when it decides, in ascending order of what has to be sent for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// Nothing.
    Nothing,
    /// The loads of its neighbours.
    Neighbours,
    /// The loads of some ranks, by gossip.
    Gossip,
    /// Sums of loads along the topology: of subtrees, sub-cubes, rows.
    Sums,
    /// The load of every node, by an all-gather.
    Loads,
    /// Every task, by an all-gather.
    Tasks,
    /// Every task and its place, by an all-gather.
    Places,
}

impl Knowledge {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Nothing => "nothing",
            Knowledge::Neighbours => "neighbours' loads",
            Knowledge::Gossip => "some loads",
            Knowledge::Sums => "sums",
            Knowledge::Loads => "all loads",
            Knowledge::Tasks => "all tasks",
            Knowledge::Places => "all tasks, places",
        }
    }

    /// Returns true if it takes an all-gather, which does not scale to any number of ranks.
    pub fn is_of_all(self) -> bool {
        self >= Knowledge::Loads
    }
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
