//! The tasks of an experiment, as the nodes of this process hold them at the beginning of every phase.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::settle::agree;
use crate::error::Result;
use crate::load::Pile;
use crate::topology::{Hosts, NodeId};
use crate::transport::world::World;
use crate::workload::files::FileTasks;
use crate::workload::memory;
use crate::workload::tasks::InitialTasks;

/// The most tasks that the ranks of one host hold together at first.
fn on_one_host(loads: &[u64], hosts: &Hosts) -> u64 {
    let mut held = vec![0u64; hosts.count() as usize];
    for (&load, rank) in loads.iter().zip((0..hosts.ranks()).cycle()) {
        let host = &mut held[hosts.host_of(rank) as usize];
        *host = host.saturating_add(load);
    }
    held.into_iter().max().unwrap_or(0)
}

/// Tasks by node. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    loads: Rc<[u64]>,
    payload: u64,
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    /// Made anew for every phase.
    Numbered(Rc<InitialTasks>),
    /// Read once: the piles of the ranks that this process holds.
    Read(Rc<BTreeMap<NodeId, Pile>>),
}

impl Tasks {
    /// Numbered tasks with this many bytes of payload each; `loads` by node.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1, or if they don't fit into memory.
    pub fn numbered(world: &mut World, loads: Vec<u64>, payload: u64) -> Result<Tasks> {
        let tasks = InitialTasks::new(&loads, payload).and_then(|tasks| {
            let held = if world.is_simulated() { tasks.total() } else { on_one_host(&loads, &world.hosts()) };
            memory::check(held, payload, memory::available()).map(|()| tasks)
        });
        let tasks = agree(world, tasks)?;
        Ok(Tasks { loads: loads.into(), payload, origin: Origin::Numbered(Rc::new(tasks)) })
    }

    /// One task for each file; every process reads those that its ranks hold first. The list of files is the same on all ranks.
    ///
    /// # Errors
    /// Wrong usage if a file cannot be read, on all ranks the same.
    pub fn files(world: &mut World, files: &FileTasks) -> Result<Tasks> {
        let ranks = world.ranks();
        let read = world.held().map(|rank| Ok((rank, files.pile(rank, ranks)?))).collect::<Result<BTreeMap<_, _>>>();
        let piles = agree(world, read)?;
        let payload = files.bytes().checked_div(files.len()).unwrap_or(0);
        Ok(Tasks { loads: files.loads(ranks).into(), payload, origin: Origin::Read(Rc::new(piles)) })
    }

    /// Number of tasks by node; virtual nodes may be left out at the end.
    pub fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// Bytes that a task carries; of files, the mean.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// A node's tasks: none on nodes that [`loads`](Tasks::loads) leaves out.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn pile(&self, node: NodeId) -> Result<Pile> {
        match &self.origin {
            Origin::Numbered(tasks) if (node as usize) < self.loads.len() => tasks.pile(node),
            Origin::Numbered(_) => Ok(Pile::default()),
            Origin::Read(piles) => Ok(piles.get(&node).cloned().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_of_a_host_share_its_memory() {
        let hosts = Hosts::from_names(&["a", "a", "b"].map(String::from));
        assert_eq!(on_one_host(&[5, 6, 7], &hosts), 11);
        // A virtual node's tasks lie on the rank that hosts it.
        assert_eq!(on_one_host(&[5, 6, 7, 1, 1, 9], &hosts), 16);
        assert_eq!(on_one_host(&[u64::MAX, 1], &hosts), u64::MAX);
        assert_eq!(on_one_host(&[], &hosts), 0);
    }
}
