//! Collective balancers: all nodes redistribute what they hold, together, in one phase.
//!
//! A balancer decides, the [mover](crate::node::migrate) moves. One file each; the [registry](ALL) is data that the command line, `list`, the
//! documentation's table and the tests go through. To add a balancer, write its file and enter it there.

mod cwa;
mod dem;
mod direct;
mod kwa;
mod mwa;
mod none;
mod pslb;
mod psts;
#[cfg(test)]
mod testing;
mod twa;

use std::future::Future;
use std::pin::Pin;

use crate::error::{Error, Result};
use crate::load::{Pile, Powers, Quota, Shares, Transfer};
use crate::node::Node;
use crate::node::migrate::Mover;
use crate::topology::{Kind, Topology};

/// All balancers, in the order in which they are shown.
pub const ALL: &[&Entry] =
    &[&twa::ENTRY, &cwa::ENTRY, &mwa::ENTRY, &kwa::ENTRY, &dem::ENTRY, &pslb::ENTRY, &psts::ENTRY, &direct::ENTRY, &none::ENTRY];

/// A balancer's place in the registry: what is known of it before it runs.
pub struct Entry {
    /// As the command line names it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Author, year, section.
    pub source: &'static str,
    /// The kinds of topology that it runs on; the first is the one it gets when none is asked for.
    pub kinds: &'static [Kind],
    /// What it asks of a topology beyond its kind (`None`: nothing), as a reason to refuse one.
    pub refuses: fn(&Topology) -> Option<String>,
    pub quota: QuotaRule,
    pub promises: Promises,
    /// Steps, messages and bytes at the most, predicted from the paper's formulas and our message sizes.
    pub cost: fn(&Topology) -> Cost,
    /// Its options as `key=value, ..` with the default first; empty if it has none.
    pub options: &'static str,
    /// Makes the balancer with the given options.
    pub build: fn(&Options) -> Result<Box<dyn Balancer>>,
}

/// How a balancer decides what each node should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRule {
    /// In proportion to the powers, remainders by largest remainder ([`Quota::proportional`]).
    Proportional,
    /// By the position of the units in the node order (PSLB, and PSTS level by level).
    Positional,
    /// It has none of its own; its result is judged by the proportional quotas.
    None,
}

/// What a balancer guarantees, for unit tasks. Every promise is a property test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Every node ends at its quota.
    pub exact: bool,
    /// No node ever holds less than the smaller of its load and its quota.
    pub local: bool,
    /// The tasks' order over the nodes stays as it was.
    pub ordered: bool,
    /// The task-hops are the least possible on its topology.
    pub optimal: bool,
}

/// What a phase costs at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Longest chain of dependent messages.
    pub steps: u64,
    /// Messages of all nodes together.
    pub messages: u64,
    /// Bytes of these, without the tasks' payloads.
    pub bytes: u64,
}

/// What the nodes do in a phase. Stateless: the same value serves all nodes.
pub trait Balancer {
    /// What each node should end with, for a total; the proportional quotas unless the balancer has a rule of its own.
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        let _ = topology;
        shares.quota(total)
    }

    /// One node's part in the phase. The phase's pile holds the node's tasks, before and after.
    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a>;
}

/// A node's part in a phase, being carried out.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// One node's side of a balancing phase.
pub struct Phase<'a> {
    pub node: &'a Node,
    pub shares: &'a Shares,
    pub mover: Mover<'a>,
    times: Times,
    part: Part,
    since: u64,
}

/// The parts that a phase's time is split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Information,
    Decision,
    Exchange,
}

/// Ticks that a node spent in each part of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    pub information: u64,
    pub decision: u64,
    pub exchange: u64,
}

impl<'a> Phase<'a> {
    /// A phase that begins now, with the gathering of information.
    pub fn begin(node: &'a Node, shares: &'a Shares, pile: &'a mut Pile) -> Phase<'a> {
        let mover = Mover::new(node, pile);
        Phase { node, shares, mover, times: Times::default(), part: Part::Information, since: node.now() }
    }

    /// The time from now on belongs to this part.
    pub fn enter(&mut self, part: Part) {
        let now = self.node.now();
        let spent = match self.part {
            Part::Information => &mut self.times.information,
            Part::Decision => &mut self.times.decision,
            Part::Exchange => &mut self.times.exchange,
        };
        *spent += now - self.since;
        self.since = now;
        self.part = part;
    }

    /// The phase is over: what this node sent, and how long the parts took.
    pub fn end(mut self) -> (Vec<Transfer>, Times) {
        self.enter(Part::Exchange);
        (self.mover.into_sent(), self.times)
    }

    /// Number of tasks that this node holds.
    pub fn load(&self) -> u64 {
        self.mover.pile.len()
    }

    pub fn powers(&self) -> &Powers {
        self.shares.powers()
    }

    pub fn topology(&self) -> &'a Topology {
        self.node.topology()
    }
}

/// Options of a balancer, as `key=value` pairs from the command line.
#[derive(Clone, Debug, Default)]
pub struct Options(Vec<(String, String)>);

impl Options {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Checks that only known keys are given, for the balancer of this name.
    ///
    /// # Errors
    /// If another key is given; the sentence lists the known ones.
    pub fn only(&self, name: &str, known: &[&str]) -> Result<()> {
        match self.0.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => Err(Error::usage(format!("--balancer {name} takes no options, '{key}' was given"))),
            Some((key, _)) => Err(Error::usage(format!("--balancer {name} has no option '{key}'; it has {}", known.join(", ")))),
        }
    }
}

/// A balancer that was asked for, ready to run.
pub struct Chosen {
    /// As it was asked for, options included.
    pub name: String,
    pub entry: &'static Entry,
    pub balancer: Box<dyn Balancer>,
}

/// The balancer named `name[:key=value,..]`.
///
/// # Errors
/// If there is none of this name (the sentence lists all), or its options are wrong.
pub fn find(spec: &str) -> Result<Chosen> {
    let (name, options) = spec.split_once(':').map_or((spec, None), |(name, options)| (name, Some(options)));
    let entry = ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        Error::usage(format!("--balancer '{name}' is unknown; known are {}", known.join(", ")))
    })?;
    let pair = |pair: &str| match pair.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_string(), value.trim().to_string())),
        None => Err(Error::usage(format!("--balancer {name}: '{pair}' is not of the form key=value"))),
    };
    let options = options.into_iter().flat_map(|options| options.split(',')).map(pair).collect::<Result<Vec<_>>>()?;
    let twice =
        |(index, (key, _)): (usize, &(String, String))| options[..index].iter().any(|(earlier, _)| earlier == key).then(|| key.clone());
    if let Some(key) = options.iter().enumerate().find_map(twice) {
        return Err(Error::usage(format!("--balancer {name}: {key} is given twice")));
    }
    let balancer = (entry.build)(&Options(options))?;
    Ok(Chosen { name: spec.to_string(), entry, balancer })
}

impl Entry {
    /// Why this balancer can't run on a topology, if it can't.
    pub fn objection(&self, topology: &Topology) -> Option<String> {
        if !self.kinds.contains(&topology.kind()) {
            let kinds: Vec<_> = self.kinds.iter().map(Kind::to_string).collect();
            return Some(format!("--balancer {} runs on {}, not on --topology {}", self.name, kinds.join(", "), topology.name()));
        }
        (self.refuses)(topology)
    }

    /// The topology that it gets when none is asked for, fitted to the ranks.
    pub fn default_topology(&self, ranks: u32) -> Topology {
        Topology::fitted(self.kinds[0], ranks)
    }
}
