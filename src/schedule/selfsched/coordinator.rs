//! Coordinators: they receive requests for tasks and deal tasks out, to ranks or to hosts, whose coordinators deal them out again.
//!
//! ```text
//!   one coordinator        a coordinator per host (clusters=hosts)
//!
//!        node 0                  node 0: top          deals every rank its chunk, a host's together
//!       / |  | \                 /          \
//!      ranks               host 0            host 1   deal what they have by the same rule
//!                          /   \             /   \
//!                           ranks             ranks
//! ```

use std::collections::BTreeSet;

use log::debug;
use serde::{Deserialize, Serialize};

use super::dealer::{Deal, Dealer};
use super::rules::Measured;
use crate::load::Cost;
use crate::node::{Node, Tag, Ticks, TimerId};
use crate::schedule::independent::{Chunk, Pace, chunk};
use crate::topology::NodeId;

/// Tag of grants to a rank.
pub const GRANT: Tag = crate::node::tags::independent::GRANT;
/// Tag of requests of a host's coordinator.
pub const DEMAND: Tag = crate::node::tags::independent::DEMAND;
/// Tag of grants to a host's coordinator.
pub const SUPPLY: Tag = crate::node::tags::independent::SUPPLY;

/// Number of ticks within which requests of the same time are heard: by the model messages take no time, but in the simulator they take a tick.
const SAME_TIME: Ticks = 3;

/// Tasks dealt to a rank, or to all ranks of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Tasks; consecutive chunks are merged.
    pub chunks: Vec<Chunk>,
    /// Number of requests that they answer.
    pub answers: u64,
    /// Whether there is nothing left for the node that asked.
    pub ended: bool,
    /// Time at which it is given, by the model.
    pub at: Cost,
}

/// Request of a host's coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Demand {
    /// Measurements of each rank of the host since the last request.
    pub measured: Vec<Measured>,
    /// Number of chunks for each of its ranks.
    pub rounds: u64,
}

/// A client: a node that tasks are dealt to.
#[derive(Clone, Debug)]
pub struct Client {
    /// The node.
    pub node: NodeId,
    /// The ranks for which it asks, as the dealer knows them.
    pub ranks: Vec<usize>,
}

/// Supplier of a host's coordinator: the top coordinator, and the state of the requests to it.
#[derive(Debug)]
struct Source {
    top: NodeId,
    /// Whether it has been asked and has not answered; whether it has nothing more.
    asked: bool,
    ended: bool,
    /// Measurements of each rank since it was last asked; maximum number of chunks that one of them wanted at a time.
    measured: Vec<Measured>,
    rounds: u64,
}

/// Deals out tasks to its clients.
pub struct Coordinator {
    node: Node,
    pace: Pace,
    begun: Ticks,
    dealer: Dealer,
    clients: Vec<Client>,
    source: Option<Source>,
    answer: Tag,
    /// Requests by the model's time, sorted; served when all that are made at the same time have arrived.
    pending: BTreeSet<(Cost, usize)>,
    hearing: Option<TimerId>,
    /// Requests by the clock, each with its number of chunks.
    asking: Vec<(usize, u64)>,
    /// Requests that wait for tasks to arrive.
    patient: Vec<(usize, u64)>,
    /// The timer of the next arrival.
    arrival: Option<TimerId>,
    /// Tasks dealt to this node, until they are [taken](Coordinator::own).
    own: Vec<Grant>,
    /// Number of granted requests.
    pub grants: u64,
}

impl Coordinator {
    /// A coordinator of clients in the order of their nodes, whom it answers with this tag. The run began at this time.
    pub fn new(node: Node, pace: Pace, begun: Ticks, dealer: Dealer, clients: Vec<Client>, answer: Tag) -> Coordinator {
        Coordinator {
            node,
            pace,
            begun,
            dealer,
            clients,
            source: None,
            answer,
            pending: BTreeSet::new(),
            hearing: None,
            asking: Vec::new(),
            patient: Vec::new(),
            arrival: None,
            own: Vec::new(),
            grants: 0,
        }
    }

    /// The same with a dealer that is supplied by another coordinator.
    #[must_use]
    pub fn supplied_by(mut self, top: NodeId) -> Coordinator {
        let measured = vec![Measured::default(); self.clients.len()];
        self.source = Some(Source { top, asked: false, ended: false, measured, rounds: 1 });
        self
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.clients.binary_search_by_key(&node, |client| client.node).ok()
    }

    /// Hears a request for a number of chunks; `measured` is by rank of the client. By the model it is made when the rank will be free.
    pub fn requested(&mut self, from: NodeId, measured: &[Measured], chunks: u64, free: Cost) {
        let Some(place) = self.place(from) else { return };
        for (rank, measured) in self.clients[place].ranks.iter().zip(measured) {
            self.dealer.learn(*rank, *measured);
            if let Some(source) = &mut self.source {
                source.measured[*rank].add(*measured);
                source.rounds = source.rounds.max(chunks);
            }
        }
        if self.pace.by_model {
            self.pending.insert((free, place));
            if self.hearing.is_none() {
                self.hearing = Some(self.node.set_timer(self.node.now() + SAME_TIME));
            }
            return;
        }
        match self.asking.iter_mut().find(|(asks, _)| *asks == place) {
            Some((_, wanted)) => *wanted += chunks,
            None => self.asking.push((place, chunks)),
        }
    }

    /// Hears that a timer has ended; whether it was one of this coordinator's.
    pub fn timer(&mut self, timer: TimerId) -> bool {
        if self.hearing != Some(timer) && self.arrival != Some(timer) {
            return false;
        }
        let arrived = (self.arrival == Some(timer)).then(|| self.pace.cost(self.node.now() - self.begun));
        self.hearing = self.hearing.filter(|hearing| *hearing != timer);
        self.arrival = self.arrival.filter(|arrival| *arrival != timer);
        if arrived.is_some() {
            self.asking.splice(0..0, self.patient.drain(..));
        }
        for (free, place) in std::mem::take(&mut self.pending) {
            self.grant(place, 1, free, arrived.map_or(free, |now| free.max(now)));
        }
        true
    }

    /// Takes in what the source has dealt to this host.
    pub fn supply(&mut self, grant: Grant) {
        if let Some(source) = &mut self.source {
            source.asked = false;
            source.ended = grant.ended;
        }
        self.dealer.supply(grant.chunks, !grant.ended);
        self.asking.splice(0..0, self.patient.drain(..));
    }

    /// Serves all pending requests, by the clock.
    pub fn serve(&mut self) {
        if self.asking.is_empty() {
            return;
        }
        let now = self.pace.cost(self.node.now() - self.begun);
        for at in 0..self.asking.len() {
            let (place, chunks) = self.asking[at];
            self.grant(place, chunks, now, now);
        }
        self.asking.clear();
    }

    /// The source and the request to send to it now; `None` if there is no source or it is too early. It is time when a client waits, or when less
    /// than a task is left for every second client.
    pub fn demand(&mut self) -> Option<(NodeId, Demand)> {
        let (waits, left) = (!self.patient.is_empty(), self.dealer.left());
        let source = self.source.as_mut().filter(|source| !source.asked && !source.ended)?;
        if !waits && 2 * left >= self.clients.len() as u64 {
            return None;
        }
        source.asked = true;
        let measured = source.measured.iter_mut().map(std::mem::take).collect();
        Some((source.top, Demand { measured, rounds: std::mem::replace(&mut source.rounds, 1) }))
    }

    /// Takes the tasks that were dealt to this node.
    pub fn own(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.own)
    }

    /// Deals out what a client gets at this time, which asks since a time of its own. What is to come later, it waits for.
    fn grant(&mut self, place: usize, chunks: u64, since: Cost, at: Cost) {
        let mut grant = Grant { chunks: Vec::with_capacity(1), answers: 0, ended: false, at };
        let mut later = None;
        while grant.answers < chunks && later.is_none() && !grant.ended {
            let mut got = false;
            for rank in &self.clients[place].ranks {
                match self.dealer.deal(*rank, at) {
                    Deal::Chunk(dealt) => {
                        debug!(
                            "{} deals {} tasks, from task {} on, to node {}",
                            self.node,
                            dealt.count(),
                            dealt.first().unwrap_or_default(),
                            self.clients[place].node
                        );
                        chunk::push(&mut grant.chunks, dealt);
                        got = true;
                    }
                    Deal::Later(arrival) => later = Some(arrival),
                    Deal::Nothing => {}
                }
            }
            grant.answers += u64::from(got);
            grant.ended = !got && later.is_none();
        }
        self.grants += grant.answers;
        if grant.ended {
            debug!("{} has no more tasks for node {}", self.node, self.clients[place].node);
        }
        if let Some(arrival) = later.filter(|_| grant.answers < chunks) {
            debug!("{} lets node {} wait until more tasks have arrived", self.node, self.clients[place].node);
            match self.pace.by_model {
                true => _ = self.pending.insert((since, place)),
                false => self.patient.push((place, chunks - grant.answers)),
            }
            if let (Some(arrival), None) = (arrival, self.arrival) {
                let at = self.begun.saturating_add(self.pace.ticks(arrival));
                self.arrival = Some(self.node.expect_at(at.max(self.node.now())));
            }
        }
        if grant.answers == 0 && !grant.ended {
            return;
        }
        let to = self.clients[place].node;
        match to == self.node.me() {
            true => self.own.push(grant),
            false => self.node.send(to, self.answer, &grant),
        }
    }
}
