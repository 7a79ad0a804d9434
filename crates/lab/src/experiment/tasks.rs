//! The tasks of an experiment, as the nodes of this process hold them at the beginning of every phase.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::weighing::LoadUnit;
use crate::workload::files::FileTasks;
use crate::workload::measured::Communication;
use crate::workload::memory;
use crate::workload::tasks::{Amounts, InitialTasks};
use crate::workload::weights::{Pins, Weights};
use crate::workload::{MeasuredTasks, TaskSource};
use equipoise::agreement::{agree, from_first};
use equipoise::error::{Error, Result};
use equipoise::load::{Column, Link, Powers, Shares, WorkQueue};
use equipoise::topology::{Hosts, NodeId, Placement, RankId};
use equipoise::transport::world::World;

/// Largest number of tasks that the ranks of one host hold together at first.
fn on_one_host(loads: &[u64], hosts: &Hosts) -> u64 {
    let mut held = vec![0u64; hosts.count() as usize];
    for (&load, rank) in loads.iter().zip(RankId::all(hosts.ranks()).cycle()) {
        let host = &mut held[hosts.host_of(rank).index()];
        *host = host.saturating_add(load);
    }
    held.into_iter().max().unwrap_or(0)
}

/// Tasks as they are given: numbered ones by node, those of a source by rank, index r being what rank r holds, whatever node it runs. Balancers count
/// nodes; [`on`](Tasks::on) a placement all are by node. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    count: u64,
    unit: LoadUnit,
    amounts: Rc<Amounts>,
    /// Placement of the tasks and their amounts by node, where they are by node.
    placed: Option<(Placement, Rc<Amounts>)>,
    payload: u64,
    unit_seconds: Option<f64>,
    /// Bytes by rank.
    capacity: Option<Rc<[u64]>>,
    /// Communication between tasks.
    links: Option<Arc<[Link]>>,
    /// Several weights of each.
    columns: Option<Arc<[Column]>>,
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    /// Made anew for every phase.
    Numbered(Rc<InitialTasks>),
    /// Read once: the work queues of the ranks that this process holds; and where rank 0 of several processes is, the list of all.
    Read { queues: Rc<BTreeMap<RankId, WorkQueue>>, list: Option<Rc<List>> },
}

/// Tasks that were read, without what they carry.
enum List {
    Files(FileTasks),
    Measured(MeasuredTasks),
}

impl Origin {
    /// The queues that a process has read. The list is kept where it may be needed to [gather](Tasks::gathered) them.
    fn read(world: &World, queues: BTreeMap<RankId, WorkQueue>, list: impl FnOnce() -> List) -> Origin {
        let is_needed = world.is_first() && !world.is_simulated();
        Origin::Read { queues: Rc::new(queues), list: is_needed.then(|| Rc::new(list())) }
    }
}

impl Tasks {
    /// Numbered unit tasks with this many bytes of payload each; `loads`, the number of tasks, by node.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1, or if they don't fit into memory.
    pub fn numbered(world: &mut World, loads: Vec<u64>, payload: u64) -> Result<Tasks> {
        Tasks::weighing(world, loads, payload, Weights::Unit, Pins::default())
    }

    /// Tasks with these weights, some of them pinned to their nodes. All ranks know which.
    ///
    /// # Errors
    /// Wrong usage if there are more than 2^64 - 1 tasks or work units, or if they don't fit into memory.
    pub fn weighing(world: &mut World, loads: Vec<u64>, payload: u64, weights: Weights, pins: Pins) -> Result<Tasks> {
        let tasks = InitialTasks::new(&loads, payload).map(|tasks| tasks.weighing(weights, pins)).and_then(|tasks| {
            let held = if world.is_simulated() { tasks.total() } else { on_one_host(&loads, &world.hosts()) };
            memory::check(held, payload, memory::available())?;
            let option = if tasks.are_unit() { "--pinned" } else { "--weights" };
            memory::check_bytes(held, option, tasks.described_in(held), memory::available())?;
            Ok((tasks.amounts()?, tasks))
        });
        let (amounts, tasks) = agree(world, tasks)?;
        let unit = if tasks.are_unit() { LoadUnit::Tasks } else { LoadUnit::Work };
        let count = tasks.total();
        Ok(Tasks {
            count,
            unit,
            amounts: Rc::new(amounts),
            placed: None,
            payload,
            unit_seconds: None,
            capacity: None,
            links: None,
            columns: None,
            origin: Origin::Numbered(Rc::new(tasks)),
        })
    }

    /// One task for each file; rank i holds the i-th part first. Every process reads what its ranks hold. The list of files is the same on all ranks.
    ///
    /// # Errors
    /// Wrong usage if a file cannot be read, on all ranks the same.
    pub fn files(world: &mut World, files: &FileTasks) -> Result<Tasks> {
        let ranks = world.ranks();
        let held = RankId::each(world.held());
        let by_rank: Vec<u64> = RankId::all(ranks).map(|rank| files.bytes_on(rank, ranks)).collect();
        let bytes = if world.is_simulated() { files.bytes() } else { on_one_host(&by_rank, &world.hosts()) };
        let read = memory::check_bytes(files.len(), "--tasks", memory::while_moving(bytes.into()), memory::available())
            .and_then(|()| held.map(|rank| Ok((rank, files.queue(rank, ranks)?))).collect::<Result<BTreeMap<_, _>>>());
        let queues = agree(world, read)?;
        let payload = files.bytes().checked_div(files.len()).unwrap_or(0);
        let loads = files.loads(ranks);
        let amounts = Amounts { pinned: Vec::new(), work: loads, pinned_tasks: 0, largest: u64::from(!files.is_empty()) };
        let count = files.len();
        Ok(Tasks {
            count,
            unit: LoadUnit::Tasks,
            amounts: Rc::new(amounts),
            placed: None,
            payload,
            unit_seconds: None,
            capacity: None,
            links: None,
            columns: None,
            origin: Origin::read(world, queues, || List::Files(files.clone())),
        })
    }

    /// The tasks of a run, dealt out in blocks; rank i holds the i-th block first. They are the same on all ranks.
    ///
    /// # Errors
    /// Wrong usage if they don't fit into memory, or are too much work; on all ranks the same.
    pub fn measured(world: &mut World, run: &MeasuredTasks) -> Result<Tasks> {
        let ranks = world.ranks();
        let held = RankId::each(world.held());
        let made = run.amounts(ranks).and_then(|amounts| {
            // In simulation all that moves is held at once.
            let bytes = if world.is_simulated() { run.bytes() } else { on_one_host(&run.bytes_by_rank(ranks), &world.hosts()) };
            memory::check_bytes(run.len(), "--tasks", memory::while_moving(bytes.into()), memory::available())?;
            let queues = held.map(|rank| Ok((rank, run.queue(rank, ranks)?))).collect::<Result<BTreeMap<_, _>>>()?;
            Ok((amounts, queues))
        });
        let (amounts, queues) = agree(world, made)?;
        let payload = run.bytes().checked_div(run.len()).unwrap_or(0);
        let origin = Origin::read(world, queues, || List::Measured(run.clone()));
        let link = |said: &Communication| Link { ends: (said.from, said.to), bytes: said.bytes };
        let links = (!run.communications.is_empty()).then(|| run.communications.iter().map(link).collect());
        Ok(Tasks {
            count: run.len(),
            unit: LoadUnit::Work,
            amounts: Rc::new(amounts),
            placed: None,
            payload,
            unit_seconds: run.seconds_per_unit,
            capacity: None,
            links,
            columns: (!run.columns.is_empty()).then(|| run.columns.iter().cloned().collect()),
            origin,
        })
    }

    /// The tasks of a source.
    ///
    /// # Errors
    /// Wrong usage if they can't be read, are not what they should be, or don't fit into memory; on all ranks the same.
    pub fn of_source(world: &mut World, source: &TaskSource) -> Result<Tasks> {
        Tasks::of_columns(world, source, &[])
    }

    /// The same with these columns as weights; see [`TaskSource::measured_in`].
    ///
    /// # Errors
    /// As [`of_source`](Tasks::of_source), and if there are no such columns.
    pub fn of_columns(world: &mut World, source: &TaskSource, columns: &[String]) -> Result<Tasks> {
        if let (TaskSource::Files(folder), true) = (source, columns.is_empty()) {
            let files = from_first(world, || FileTasks::scan(folder))?;
            return Tasks::files(world, &files);
        }
        match from_first(world, || source.measured_in(columns))? {
            Some(run) => Tasks::measured(world, &run),
            None => Err(Error::usage(format!("--tasks {source}: there is nothing to read"))),
        }
    }

    /// Number of tasks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Unit of the loads.
    pub fn unit(&self) -> LoadUnit {
        self.unit
    }

    /// The same tasks by node of a placement.
    pub fn on(&self, placement: &Placement) -> Tasks {
        if self.are_numbered() {
            return self.clone();
        }
        let Amounts { work, pinned, pinned_tasks, largest } = &*self.amounts;
        let amounts =
            Amounts { work: placement.by_node(work), pinned: placement.by_node(pinned), pinned_tasks: *pinned_tasks, largest: *largest };
        Tasks { placed: Some((placement.clone(), Rc::new(amounts))), ..self.clone() }
    }

    /// Work units (the number of tasks if these are unit tasks) as given, or by node of a placement; virtual nodes may be missing at the end.
    pub fn loads(&self) -> &[u64] {
        &self.amounts().work
    }

    /// Totals over the tasks, as given, or by node of a placement.
    pub fn amounts(&self) -> &Amounts {
        self.placed.as_ref().map_or(&self.amounts, |(_, amounts)| amounts)
    }

    /// The same tasks on ranks with a capacity in bytes each.
    pub fn within(self, capacity: Vec<u64>) -> Tasks {
        Tasks { capacity: Some(capacity.into()), ..self }
    }

    /// Returns true if it is known which tasks talk to each other.
    pub fn has_links(&self) -> bool {
        self.links.is_some()
    }

    /// Returns true if tasks have several weights.
    pub fn has_columns(&self) -> bool {
        self.columns.is_some()
    }

    /// The same with these links in place of the source's.
    pub fn linked(self, links: Arc<[Link]>) -> Tasks {
        Tasks { links: Some(links), ..self }
    }

    /// Shares by which a phase balances these tasks, by node of a placement, for a power of each node; `plain`: by the balancer's rule as printed in its source.
    pub fn shares(&self, powers: &Powers, plain: bool) -> Shares {
        let shares = Shares::new(powers.clone());
        let shares = if plain { shares.plainly() } else { shares };
        let shares = if self.amounts.largest > 1 { shares.weighted() } else { shares };
        let shares = match &self.capacity {
            Some(capacity) => shares.with_capacity(capacity.to_vec()),
            None => shares,
        };
        let shares = match &self.links {
            Some(links) => shares.with_links(links.clone()),
            None => shares,
        };
        let shares = match &self.columns {
            Some(columns) => shares.with_columns(columns.clone()),
            None => shares,
        };
        let mut pinned = self.amounts().pinned.clone();
        if pinned.is_empty() {
            return shares;
        }
        pinned.resize(powers.nodes() as usize, 0);
        shares.with_pinned(pinned)
    }

    /// Bytes that a task carries; of files and measured tasks, the mean.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Returns true if the tasks carry different amounts, so that [`payload`](Tasks::payload) is their mean.
    pub fn payload_is_mean(&self) -> bool {
        matches!(self.origin, Origin::Read { .. })
    }

    /// The same tasks, with those of all ranks in the process of rank 0, for a simulation there. Contents of files are zeros, as those of measured
    /// tasks always are: the time of a phase depends on their lengths alone.
    ///
    /// # Errors
    /// Wrong usage if they don't fit into its memory.
    pub fn gathered(&self) -> Result<Tasks> {
        let needed = match &self.origin {
            Origin::Numbered(tasks) => memory::needed(self.count, self.payload).max(tasks.described_in(self.count)),
            Origin::Read { list, .. } => memory::while_moving(list.as_ref().map_or(0, |list| list.bytes()).into()),
        };
        memory::check_bytes(self.count, TO_PREDICT, needed, memory::available())?;
        let Origin::Read { list: Some(list), .. } = &self.origin else { return Ok(self.clone()) };
        let ranks = self.amounts.work.len() as u32;
        let queues = RankId::all(ranks).map(|rank| Ok((rank, list.queue(rank, ranks)?))).collect::<Result<BTreeMap<_, _>>>()?;
        Ok(Tasks { origin: Origin::Read { queues: Rc::new(queues), list: None }, ..self.clone() })
    }

    /// Returns true if tasks are made from their numbers, so that every process can make those of all nodes.
    fn are_numbered(&self) -> bool {
        matches!(self.origin, Origin::Numbered(_))
    }

    /// Seconds per work unit, if the source gives them.
    pub fn unit_seconds(&self) -> Option<f64> {
        self.unit_seconds
    }

    /// The tasks of a rank or node as given, or of a node of a placement: none on those that [`loads`](Tasks::loads) leaves out.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn queue(&self, node: NodeId) -> Result<WorkQueue> {
        let at = match &self.placed {
            Some((placement, _)) if !placement.is_virtual(node) => placement.rank_of(node).get(),
            _ => node,
        };
        match &self.origin {
            Origin::Numbered(tasks) if (at as usize) < self.amounts.work.len() => tasks.queue(at),
            Origin::Numbered(_) => Ok(WorkQueue::default()),
            Origin::Read { queues, .. } => Ok(queues.get(&RankId::new(at)).cloned().unwrap_or_default()),
        }
    }
}

/// The option for which rank 0 needs the tasks of all ranks.
const TO_PREDICT: &str = "--network, whose simulation has all ranks on one machine";

impl List {
    /// Bytes that all tasks carry together.
    fn bytes(&self) -> u64 {
        match self {
            List::Files(files) => files.bytes(),
            List::Measured(run) => run.bytes(),
        }
    }

    fn queue(&self, rank: RankId, ranks: u32) -> Result<WorkQueue> {
        match self {
            List::Files(files) => files.blank_queue(rank, ranks),
            List::Measured(run) => run.queue(rank, ranks),
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
        // A virtual node's tasks lie on some rank: in turn, as without hosts.
        assert_eq!(on_one_host(&[5, 6, 7, 1, 1, 9], &hosts), 16);
        assert_eq!(on_one_host(&[u64::MAX, 1], &hosts), u64::MAX);
        assert_eq!(on_one_host(&[], &hosts), 0);
    }
}
