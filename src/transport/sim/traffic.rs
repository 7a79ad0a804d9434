//! Transport of messages between simulated nodes.

use log::{Level, log_enabled, trace};

use super::links::{Way, reserve};
use super::measured::Measured;
use super::network::{Link, Network};
use super::state::{Due, State};
use crate::topology::{NodeId, Overlay, Placement};
use crate::transport::{Envelope, Event, Message, Numbered, Ticks, wire};

fn size(message: &Message) -> u64 {
    (wire::HEADER + message.body.len()) as u64
}

/// A message's way through a measured network.
fn way<'a>(measured: &'a Measured, overlay: &Overlay, message: &Message) -> Way<'a> {
    let rank_of = |node| overlay.placement.rank_of(node);
    Way { measured, from: rank_of(message.envelope.src), to: rank_of(message.envelope.dst), bytes: size(message) }
}

/// Returns true if two nodes share a rank, so that nothing between them needs the network.
fn share_rank(placement: &Placement, a: NodeId, b: NodeId) -> bool {
    placement.rank_of(a) == placement.rank_of(b)
}

impl State {
    /// Sends a message at its node's own time.
    pub fn send(&mut self, overlay: &Overlay, message: Message) {
        let (src, dst) = (message.envelope.src, message.envelope.dst);
        let nodes = overlay.placement.nodes();
        assert!(dst < nodes, "node {src} sends to node {dst}, but the nodes are 0 to {}", nodes - 1);
        if self.nodes.is_empty() || self.is_lost(overlay.placement.rank_of(dst)) {
            return;
        }
        let now = self.time_of(src);
        self.outbox[src as usize] += size(&message);
        if self.disturbance.withholds(&message.envelope, now) {
            return;
        }
        if share_rank(&overlay.placement, src, dst) {
            return self.arrive(message, now.saturating_add(1));
        }
        let waits = match &self.links.network {
            Network::Switched(link) | Network::Hops(link) => link.contention,
            Network::Measured(_) => true,
            Network::Zero => false,
        };
        if waits {
            if now > self.now {
                self.calendar.enter(now, Due::Leave(message));
            } else {
                self.leave(overlay, message);
            }
            return;
        }
        let cost = self.links.network.passage(overlay, src, dst, size(&message));
        self.arrive(message, now.saturating_add(cost));
    }

    /// A message leaves its node, and waits for those before it.
    pub fn leave(&mut self, overlay: &Overlay, message: Message) {
        match self.links.network {
            Network::Measured(ref measured) => {
                let measured = measured.clone();
                let way = way(&measured, overlay, &message);
                let start = self.links.leave_rank(&way, self.now);
                if way.shares_ports() && start > self.now {
                    self.calendar.enter(start, Due::LeaveHost(message));
                } else {
                    let head = self.links.leave_host(&way, start);
                    self.calendar.enter(head, Due::Head(message));
                }
            }
            Network::Zero => self.arrive(message, self.now.saturating_add(1)),
            Network::Switched(link) => {
                let busy = link.transmission(size(&message));
                let port = &mut self.links.out[overlay.placement.rank_of(message.envelope.src).index()];
                let start = reserve(port, self.now, busy);
                // On a link that costs nothing the message takes its one tick here.
                let ahead = if link.latency == 0 && busy == 0 { 1 } else { link.latency };
                self.calendar.enter(start.saturating_add(ahead), Due::Head(message));
            }
            Network::Hops(link) => {
                let src = message.envelope.src;
                self.hop(overlay, link, message, src);
            }
        }
    }

    /// A message has got its rank's port, and comes to that of its host.
    pub fn leave_host(&mut self, overlay: &Overlay, message: Message) {
        let Network::Measured(measured) = &self.links.network else { return self.arrive(message, self.now) };
        let measured = measured.clone();
        let head = self.links.leave_host(&way(&measured, overlay, &message), self.now);
        self.calendar.enter(head, Due::Head(message));
    }

    /// A message has got its destination's host's port, and comes to that of the rank.
    pub fn reach_rank(&mut self, overlay: &Overlay, message: Message) {
        let Network::Measured(measured) = &self.links.network else { return self.arrive(message, self.now) };
        let measured = measured.clone();
        let at = self.links.reach_rank(&way(&measured, overlay, &message), self.now);
        self.arrive(message, at);
    }

    /// The beginning of a message is at its destination's port.
    pub fn head(&mut self, overlay: &Overlay, message: Message) {
        if let Network::Measured(measured) = &self.links.network {
            let measured = measured.clone();
            let start = self.links.reach_host(&way(&measured, overlay, &message), self.now);
            match start > self.now {
                true => self.calendar.enter(start, Due::ReachRank(message)),
                false => self.reach_rank(overlay, message),
            }
            return;
        }
        let Network::Switched(link) = self.links.network else { return self.arrive(message, self.now) };
        let busy = link.transmission(size(&message));
        let port = &mut self.links.into[overlay.placement.rank_of(message.envelope.dst).index()];
        let start = reserve(port, self.now, busy);
        self.arrive(message, start.saturating_add(busy));
    }

    /// A message is wholly at a node on its way.
    pub fn forward(&mut self, overlay: &Overlay, message: Message, at: NodeId) {
        match self.links.network {
            Network::Hops(link) => self.hop(overlay, link, message, at),
            _ => self.arrive(message, self.now),
        }
    }

    fn hop(&mut self, overlay: &Overlay, link: Link, message: Message, mut at: NodeId) {
        let dst = message.envelope.dst;
        while at != dst {
            let next = overlay.topology.next_hop(at, dst);
            if !share_rank(&overlay.placement, at, next) {
                let bytes = size(&message);
                let link = link.between(&overlay.topology, at, next);
                let start = self.links.between(at, next, self.now, link.transmission(bytes));
                self.calendar.enter(start.saturating_add(link.passage(bytes)), Due::Hop(message, next));
                return;
            }
            at = next;
        }
        self.arrive(message, self.now);
    }

    /// A message that the network brings at this time arrives then, or later if rules or earlier messages of its pair say so.
    fn arrive(&mut self, message: Message, at: Ticks) {
        let mut at = at;
        let delays = self.disturbance.delays;
        if delays {
            at = at.saturating_add(self.disturbance.delay(&message.envelope));
        }
        if delays || self.links.network.may_overtake() {
            at = self.nodes[message.envelope.src as usize].order.after_earlier(message.envelope.dst, at, self.now);
        }
        self.calendar.enter(at, Due::Deliver(message));
    }

    /// A message has arrived.
    pub fn deliver(&mut self, overlay: &Overlay, message: Message) {
        let (src, dst) = (message.envelope.src, message.envelope.dst);
        let outbox = &mut self.outbox[src as usize];
        let before = *outbox;
        *outbox -= size(&message);
        if before > self.model.outbox && *outbox <= self.model.outbox && self.nodes[src as usize].full {
            self.nodes[src as usize].full = false;
            self.touch(src);
        }
        if !self.lost.is_empty() && (self.is_lost(overlay.placement.rank_of(src)) || self.is_lost(overlay.placement.rank_of(dst))) {
            return;
        }
        if log_enabled!(Level::Trace) {
            let (rank, Envelope { scope, tag, .. }) = (overlay.placement.rank_of(dst), &message.envelope);
            trace!("rank {rank}: {} from node {src} arrives for node {dst} ({scope}) at {} ns", Numbered(*tag), self.now);
        }
        if message.envelope.is_progress() {
            self.progressed(self.now);
        }
        self.tell(dst, Event::Message(message));
    }
}
