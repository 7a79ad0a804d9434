//! Role of a node among the coordinators.

use super::coordinator::Coordinator;
use crate::topology::NodeId;

/// A node's role among the coordinators.
pub struct Role {
    /// The node that it asks for tasks.
    pub coordinator: NodeId,
    /// If it is one, of its host or of all.
    pub own: Option<Coordinator>,
    /// If hosts have coordinators, and it deals out tasks to them.
    pub top: Option<Coordinator>,
    /// Number of nodes that report to it when they have finished, itself included, and the node to which it reports then.
    pub reports: u32,
    pub reports_to: Option<NodeId>,
}

impl Role {
    pub fn coordinators(&self) -> impl Iterator<Item = &Coordinator> {
        self.own.iter().chain(&self.top)
    }

    /// Lets the host's coordinator have what the top one has dealt to it; whether that is anything.
    pub fn take_supply(&mut self) -> bool {
        let (Some(own), Some(top)) = (&mut self.own, &mut self.top) else { return false };
        let supplied = top.own();
        let any = !supplied.is_empty();
        supplied.into_iter().for_each(|grant| own.supply(grant));
        any
    }
}
