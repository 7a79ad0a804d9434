//! The simulated world: every node's program in one process, in virtual time, without MPI.
//!
//! # How it goes
//!
//! Time is an integer number of ticks (virtual nanoseconds) and begins at 0 in each run. A calendar holds what is to happen; an instant's
//! events all happen before any program runs, then the programs of the nodes to which something happened are polled, each once, in the
//! order in which it happened to them. The same world, seed and program give the same run, to the tick.
//!
//! Everything takes time: a message, a poll of the network ([`Transport::poll_turn`](crate::transport::Transport::poll_turn)), a piece of
//! work, a slice and a timer take at least one tick. So nothing that a program does is seen by another at the same instant, and a program
//! that only asks does not stop the clock.
//!
//! # A node's own clock
//!
//! Computing that a node is charged for lets its own clock run ahead of the world's. What it sends leaves at its own time; its program
//! is polled again only when the world has caught up. Nodes of one rank have a clock each: they share the rank's speed and its
//! workers, but do not wait for each other's computing.
//!
//! # What is modelled
//!
//! Links ([`Network`]), speeds ([`Speed`], which divide charges, work and slices, but not sleep), workers per rank, the outbox limit, and
//! disturbances ([`Rules`]). A lost rank's programs are dropped with their results; what it had sent and had not arrived is lost with it;
//! it goes on forwarding the messages of others, as a network does. Every node receives a signal.
//!
//! A run ends when all programs have ended, with the first error, or with [`Error::Stuck`] when nothing is left to happen or nothing but
//! background messages, timers and polls of the network happened for [`Model::timeout`]. What is left of it is dropped.

mod calendar;
mod engine;
mod links;
mod measured;
mod network;
mod order;
mod port;
mod report;
mod rules;
mod speed;
mod state;
mod traffic;
mod units;

pub use measured::{Measured, MeasuredLink, Rendezvous};
pub use network::{Link, Network};
pub use rules::{Messages, Rules};
pub use speed::Speed;
pub use units::{format as format_duration, format_ticks, parse as parse_duration};

use log::debug;

use super::Port;
use super::Program;
use super::interrupt::Interrupt;
use crate::error::{Error, Result};
use crate::topology::{Hosts, NodeId, Overlay};
use crate::transport::Ticks;

/// The simulated machine. The default: the default [`Network`], ranks of speed 1 on one host with one worker each.
#[derive(Clone, Debug)]
pub struct Model {
    /// Costs of messages.
    pub network: Network,
    /// Speed by rank; empty if all are 1. A measured network's speeds have to be put here, too.
    pub speeds: Vec<Speed>,
    /// Host of each rank; `None` if all ranks share one, or the network defines it.
    pub hosts: Option<Hosts>,
    /// The seed that programs see.
    pub seed: u64,
    /// Opaque work that a rank does at a time.
    pub workers: u32,
    /// Budget of a slice of work, in ticks.
    pub slice: Ticks,
    /// Cost of a poll of the network in ticks, independent of the speed; at least 1.
    pub poll: Ticks,
    /// Bytes, headers included, that a node may have under way before [`ready_to_send`](crate::node::Node::ready_to_send) waits.
    pub outbox: u64,
    /// Ticks without progress after which the run is stuck.
    pub timeout: Ticks,
    /// Disturbances: delays, losses, signals.
    pub rules: Rules,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            network: Network::default(),
            speeds: Vec::new(),
            hosts: None,
            seed: 0,
            workers: 1,
            slice: 100_000,
            poll: 1,
            outbox: 64 << 20,
            timeout: 300_000_000_000,
            rules: Rules::default(),
        }
    }
}

/// A number of simulated ranks.
pub struct World {
    ranks: u32,
    model: Model,
    runs: u32,
    elapsed: Ticks,
    interrupt: Option<Interrupt>,
}

impl World {
    /// Returns a world of `ranks` ranks.
    pub fn new(ranks: u32, model: Model) -> World {
        World { ranks, model, runs: 0, elapsed: 0, interrupt: None }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Hosts of the ranks.
    pub fn hosts(&self) -> Hosts {
        let measured = match &self.model.network {
            Network::Measured(measured) => Some(measured.hosts.clone()),
            _ => None,
        };
        self.model.hosts.clone().or(measured).unwrap_or_else(|| Hosts::single(self.ranks))
    }

    /// Costs of messages.
    pub fn network(&self) -> &Network {
        &self.model.network
    }

    /// The model, to change it between runs.
    pub fn model(&mut self) -> &mut Model {
        &mut self.model
    }

    /// Gives up a run, from now on, when this request is overdue.
    pub(crate) fn end_on(&mut self, interrupt: &Interrupt) {
        self.interrupt = Some(interrupt.clone());
    }

    /// Virtual time at which the last run ended.
    pub fn elapsed(&self) -> Ticks {
        self.elapsed
    }

    /// Runs a program on every node; see [`transport::world::World::run`](crate::transport::world::World::run). Nodes of lost ranks have no result.
    ///
    /// # Errors
    /// The first error of a program; [`Error::Stuck`] when no node can go on; [`Error::Interrupted`] when a request to end is overdue; wrong usage if the model or the overlay does not fit the ranks.
    ///
    /// # Panics
    /// If a program panics.
    pub(crate) fn run<T: 'static>(&mut self, overlay: &Overlay, program: impl FnMut(Port) -> Program<T>) -> Result<Vec<(NodeId, T)>> {
        self.check(overlay)?;
        self.runs = self.runs.wrapping_add(1);
        debug!("{} simulated ranks: run {} begins on {overlay}; {:?}", self.ranks, self.runs, self.model);
        let (results, elapsed) = engine::run(overlay, &self.model, self.runs, self.interrupt.as_ref(), program);
        debug!("{} simulated ranks: run {} has ended after {elapsed} ns of virtual time", self.ranks, self.runs);
        self.elapsed = elapsed;
        results
    }

    fn check(&self, overlay: &Overlay) -> Result<()> {
        let (ranks, speeds) = (self.ranks, self.model.speeds.len());
        if overlay.placement.ranks() != ranks {
            return Err(Error::usage(format!(
                "a simulation of {ranks} ranks: the topology is placed on {} ranks",
                overlay.placement.ranks()
            )));
        }
        if speeds != 0 && speeds != ranks as usize {
            return Err(Error::usage(format!("a simulation of {ranks} ranks: there are {speeds} speeds, one for each rank is needed")));
        }
        if let Network::Measured(measured) = &self.model.network
            && measured.hosts.ranks() != ranks
        {
            let has = measured.hosts.ranks();
            return Err(Error::usage(format!("a simulation of {ranks} ranks: the network {} has {has}", measured.name)));
        }
        if self.model.workers == 0 {
            return Err(Error::usage(format!("a simulation of {ranks} ranks: a rank needs at least one worker")));
        }
        if let Some((_, rank)) = self.model.rules.losses.iter().find(|(_, rank)| rank.get() >= ranks) {
            return Err(Error::usage(format!("a simulation of {ranks} ranks: there is no rank {rank} to lose")));
        }
        Ok(())
    }
}
