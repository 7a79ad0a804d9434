//! The nodes that a rank hosts during a run, and the condition that each of them waits for.

use std::fmt::Write;
use std::rc::Rc;

use crate::topology::{NodeId, Overlay, RankId};
use crate::transport::inbox::{Inbox, covers};
use crate::transport::timers::Timers;
use crate::transport::{Event, Interest, Scope, Ticks};

/// One run of the world, on this rank.
pub(super) struct Run {
    pub number: u32,
    pub overlay: Rc<Overlay>,
    /// The nodes that this rank hosts, in ascending order.
    pub local_nodes: Vec<LocalNode>,
    /// Messages of this run sent to each rank.
    pub sent: Vec<u64>,
    /// Messages of this run that came from other ranks.
    pub received: u64,
    /// Each with its local node.
    pub timers: Timers<(usize, Scope)>,
    /// Time at which the last of what is known to happen by itself will have happened.
    pub expected: Ticks,
    /// Number of the last timer or piece of work.
    last: u64,
}

/// A node of this rank.
pub(super) struct LocalNode {
    pub node: NodeId,
    pub inbox: Inbox,
    pub waits: Waits,
    /// Whether it has waited for room in the outbox, perhaps in a join with something else.
    pub full: bool,
    /// Likewise for the next poll of the network.
    pub turn: bool,
    /// Something has happened since its program was last polled.
    pub dirty: bool,
}

/// Condition that a node's program waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Waits {
    /// Nothing known to the carrier.
    Nothing,
    Event(Interest),
    Room,
    /// An operation of MPI's own, of this name.
    Collective(&'static str),
    /// The next poll of the network.
    Turn,
    /// It has ended.
    Ended,
}

impl Run {
    pub fn new(number: u32, overlay: Rc<Overlay>, me: RankId) -> Run {
        let nodes = overlay.placement.nodes_on(me);
        let local_node = |node| LocalNode { node, inbox: Inbox::default(), waits: Waits::Nothing, full: false, turn: false, dirty: true };
        let sent = vec![0; overlay.placement.ranks() as usize];
        let local_nodes = nodes.into_iter().map(local_node).collect();
        Run { number, overlay, local_nodes, sent, received: 0, timers: Timers::default(), expected: 0, last: 0 }
    }

    /// A new number for a timer or a piece of work.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The place of a node among the local nodes; `None` if it is on another rank.
    pub fn place_of(&self, node: NodeId) -> Option<usize> {
        self.local_nodes.binary_search_by_key(&node, |local_node| local_node.node).ok()
    }

    /// Gives an event to a node. True if its program waits for just that.
    pub fn push(&mut self, local_node: usize, event: Event) -> bool {
        let local_node = &mut self.local_nodes[local_node];
        let wanted = matches!(&local_node.waits, Waits::Event(interest) if covers(interest, &event));
        local_node.inbox.push(event);
        // A program that has ended is not polled, and a rank with something to poll does not sleep.
        local_node.dirty |= local_node.waits != Waits::Ended;
        wanted
    }

    /// Marks the local nodes that a poll of the network, or room in the outbox, lets go on.
    pub fn wake(&mut self, room: bool) {
        for local_node in &mut self.local_nodes {
            let has_room = room && std::mem::take(&mut local_node.full);
            local_node.dirty |= has_room | std::mem::take(&mut local_node.turn);
        }
    }

    /// Returns true if all programs of this rank have ended.
    pub fn has_ended(&self) -> bool {
        self.local_nodes.iter().all(|local_node| local_node.waits == Waits::Ended)
    }

    pub fn has_dirty(&self) -> bool {
        self.local_nodes.iter().any(|local_node| local_node.dirty)
    }

    /// Returns true if some program only waits for the next poll of the network.
    pub fn takes_turn(&self) -> bool {
        self.local_nodes.iter().any(|local_node| local_node.turn)
    }

    /// Returns true if some program waits for a message from any node, or in one of MPI's own operations, which progress on other ranks
    /// only while this one polls.
    pub fn listens(&self) -> bool {
        self.local_nodes.iter().any(|local_node| match local_node.waits {
            Waits::Event(interest) => interest.is_open(),
            Waits::Collective(_) => true,
            _ => false,
        })
    }

    /// Report of the nodes' waits, a line per node.
    pub fn tell(&self) -> String {
        /// Maximum number of nodes that are listed.
        const LINES: usize = 16;
        let mut lines = String::new();
        let waiting = || self.local_nodes.iter().filter(|local_node| local_node.waits != Waits::Ended);
        for local_node in waiting().take(LINES) {
            let _ = match local_node.waits {
                Waits::Event(interest) => write!(lines, "\n  node {} waits for {interest}", local_node.node),
                Waits::Room => write!(lines, "\n  node {} waits for room in the outbox", local_node.node),
                Waits::Collective(name) => write!(lines, "\n  node {} waits for the others in MPI's {name}", local_node.node),
                _ => write!(lines, "\n  node {} runs, and makes no progress", local_node.node),
            };
            let _ = match local_node.inbox.len() {
                0 => Ok(()),
                1 => write!(lines, "; one other event is in its inbox"),
                many => write!(lines, "; {many} other events are in its inbox"),
            };
        }
        match waiting().count() {
            0 => lines.push_str("\n  its nodes have ended; it waits for the other ranks to end the run"),
            many if many > LINES => {
                let _ = write!(lines, "\n  and {} nodes more", many - LINES);
            }
            _ => {}
        }
        lines
    }
}
