//! The tasks of an experiment, as the nodes of this process hold them at the beginning of every phase.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::settle::agree;
use crate::error::Result;
use crate::load::Pile;
use crate::topology::{NodeId, Placement};
use crate::transport::world::World;
use crate::workload::files::FileTasks;
use crate::workload::memory;
use crate::workload::tasks::InitialTasks;

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
    /// Read once: the piles of the nodes that this process holds.
    Read(Rc<BTreeMap<NodeId, Pile>>),
}

impl Tasks {
    /// Numbered tasks with this many bytes of payload each; `loads` by node.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1, or if they don't fit into memory.
    pub fn numbered(world: &mut World, loads: Vec<u64>, payload: u64) -> Result<Tasks> {
        let tasks = InitialTasks::new(&loads, payload).and_then(|tasks| {
            // A rank may come to hold as many as the largest load before, or all of what a few ranks hold after.
            let held = if world.is_simulated() { tasks.total() } else { loads.iter().copied().max().unwrap_or(0) };
            memory::check(held, payload, memory::available()).map(|()| tasks)
        });
        let tasks = agree(world, tasks)?;
        Ok(Tasks { loads: loads.into(), payload, origin: Origin::Numbered(Rc::new(tasks)) })
    }

    /// One task for each file; real node i holds the i-th part first. Every process reads what the nodes hold that it has in one of the
    /// placements. The list of files is the same on all ranks.
    ///
    /// # Errors
    /// Wrong usage if a file cannot be read, on all ranks the same.
    pub fn files<'a>(world: &mut World, files: &FileTasks, placements: impl IntoIterator<Item = &'a Placement>) -> Result<Tasks> {
        let ranks = world.ranks();
        let held = real_nodes_held(world, placements);
        let read = held.into_iter().map(|node| Ok((node, files.pile(node, ranks)?))).collect::<Result<BTreeMap<_, _>>>();
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

/// The real nodes that this process has in one of the placements.
fn real_nodes_held<'a>(world: &World, placements: impl IntoIterator<Item = &'a Placement>) -> BTreeSet<NodeId> {
    placements.into_iter().flat_map(|placement| world.held().map(|rank| placement.real_node_of(rank))).collect()
}
