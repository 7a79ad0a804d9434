//! The tasks of an experiment, as the nodes of this process hold them at the beginning of every phase.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::settle::agree;
use super::weighing::Unit;
use crate::error::Result;
use crate::load::{Pile, Powers, Shares};
use crate::topology::NodeId;
use crate::transport::world::World;
use crate::workload::files::FileTasks;
use crate::workload::memory;
use crate::workload::tasks::{Amounts, InitialTasks};
use crate::workload::weights::{Pins, Weights};

/// Tasks by node. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    count: u64,
    unit: Unit,
    amounts: Rc<Amounts>,
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
    /// Numbered unit tasks with this many bytes of payload each; `loads`, the number of tasks, by node.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1, or if they don't fit into memory.
    pub fn numbered(world: &mut World, loads: Vec<u64>, payload: u64) -> Result<Tasks> {
        Tasks::weighing(world, loads, payload, Weights::Unit, Pins::default())
    }

    /// The same of other weights, and some of them pinned to their nodes. Which, all ranks know.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1 tasks or work units, or if they don't fit into memory.
    pub fn weighing(world: &mut World, loads: Vec<u64>, payload: u64, weights: Weights, pins: Pins) -> Result<Tasks> {
        let tasks = InitialTasks::new(&loads, payload).map(|tasks| tasks.weighing(weights, pins)).and_then(|tasks| {
            // A rank may come to hold as many as the largest load before, or all of what a few ranks hold after.
            let held = if world.is_simulated() { tasks.total() } else { loads.iter().copied().max().unwrap_or(0) };
            memory::check(held, payload, memory::available())?;
            let option = if tasks.are_unit() { "--pinned" } else { "--weights" };
            memory::check_bytes(held, option, tasks.described_in(held), memory::available())?;
            Ok((tasks.amounts()?, tasks))
        });
        let (amounts, tasks) = agree(world, tasks)?;
        let unit = if tasks.are_unit() { Unit::Tasks } else { Unit::Work };
        let count = tasks.total();
        Ok(Tasks { count, unit, amounts: Rc::new(amounts), payload, origin: Origin::Numbered(Rc::new(tasks)) })
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
        let loads = files.loads(ranks);
        let amounts = Amounts { pinned: Vec::new(), work: loads, pinned_tasks: 0, largest: u64::from(!files.is_empty()) };
        let count = files.len();
        Ok(Tasks { count, unit: Unit::Tasks, amounts: Rc::new(amounts), payload, origin: Origin::Read(Rc::new(piles)) })
    }

    /// Number of tasks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What loads are counted in.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Work units by node, as many as tasks if these are unit tasks; virtual nodes may be left out at the end.
    pub fn loads(&self) -> &[u64] {
        &self.amounts.work
    }

    /// What the tasks are together.
    pub fn amounts(&self) -> &Amounts {
        &self.amounts
    }

    /// What a phase over these tasks balances for, on a topology of so many nodes.
    pub fn shares(&self, powers: &Powers) -> Shares {
        let shares = Shares::new(powers.clone());
        if self.amounts.pinned.is_empty() {
            return shares;
        }
        let mut pinned = self.amounts.pinned.clone();
        pinned.resize(powers.nodes() as usize, 0);
        shares.with_pinned(pinned)
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
            Origin::Numbered(tasks) if (node as usize) < self.loads().len() => tasks.pile(node),
            Origin::Numbered(_) => Ok(Pile::default()),
            Origin::Read(piles) => Ok(piles.get(&node).cloned().unwrap_or_default()),
        }
    }
}
