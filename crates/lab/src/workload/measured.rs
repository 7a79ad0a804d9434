//! Tasks that were measured in some run, with the ranks that held them: real loads, to see what a balancer would have made of them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::tasks::Amounts;
use equipoise::error::{Error, Result};
use equipoise::load::{Column, Place, Segment, Task, TaskBatch, WorkQueue};
use equipoise::memory;
use equipoise::topology::RankId;

/// The noun for them.
pub(super) const TASKS: &str = "tasks";

/// The tasks of a run. Rank 0 reads them and tells the others. A task's id is its index, in the order of the run's ranks.
///
/// Tasks of rank r, of the R ranks that the run had, are first held by our rank `r * ranks / R`: whole ranks, dealt out in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTasks {
    /// Ranks of the run, those without tasks included.
    pub ranks: u32,
    /// In the order of their ranks.
    pub tasks: Vec<MeasuredTask>,
    /// Place of each task; empty if unknown.
    pub places: Vec<Place>,
    /// Communication between tasks, if known.
    pub communications: Vec<Communication>,
    /// Several weights of each task, where they were asked for.
    pub columns: Vec<Column>,
    /// Communications that were left out, since one of their tasks is not among these.
    pub left_out: u64,
    /// Seconds that a work unit lasted, where work is measured time.
    pub seconds_per_unit: Option<f64>,
}

/// A task of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTask {
    /// The rank that held it.
    pub rank: RankId,
    /// Name in the run; a number of any size.
    pub name: Option<u64>,
    /// Work units; times are nanoseconds, or finer where a table has finer ones.
    pub work: u64,
    /// Bytes that it takes along when it moves.
    pub bytes: u64,
    /// Whether it could not have been moved.
    pub pinned: bool,
}

/// Zeros of which the payloads of tasks are cut out.
///
/// # Errors
/// If there is no memory for as many.
pub(super) fn zeros(largest: u64) -> Result<Bytes> {
    let mut zeros: Vec<u8> = Vec::new();
    if usize::try_from(largest).ok().is_none_or(|bytes| !memory::reserve(&mut zeros, bytes)) {
        return Err(Error::input(TASKS, format!(": there is no memory for a task of {largest} bytes")));
    }
    zeros.resize(largest as usize, 0);
    Ok(Bytes::from(zeros))
}

/// Some messages from a task to another, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Communication {
    pub from: u64,
    pub to: u64,
    /// Bytes of all its messages together. Not always whole: some runs give means.
    pub bytes: f64,
}

impl MeasuredTasks {
    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.tasks.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The work or the bytes of all tasks as a column, if that is its name.
    pub fn column(&self, name: &str) -> Option<Column> {
        let weight: fn(&MeasuredTask) -> u64 = match name {
            "work" => |task| task.work,
            "bytes" => |task| task.bytes,
            _ => return None,
        };
        Some(Column { name: name.into(), weights: self.tasks.iter().map(weight).collect() })
    }

    /// Bytes that all tasks carry together.
    pub fn bytes(&self) -> u64 {
        self.tasks.iter().fold(0, |sum, task| sum.saturating_add(task.bytes))
    }

    /// The rank that first holds the tasks of one of the run's ranks, of this number of ranks.
    fn holder_of(&self, rank: RankId, ranks: u32) -> RankId {
        RankId::new((u64::from(rank.get()) * u64::from(ranks) / u64::from(self.ranks.max(1))) as u32)
    }

    /// Sums over the tasks that each of `ranks` ranks holds at first.
    ///
    /// # Errors
    /// If all tasks together have more than 2^64 - 1 work units.
    pub fn amounts(&self, ranks: u32) -> Result<Amounts> {
        let pinned_tasks = self.tasks.iter().filter(|task| task.pinned).count() as u64;
        let none = || vec![0u64; ranks as usize];
        let mut amounts = Amounts { work: none(), pinned: if pinned_tasks > 0 { none() } else { Vec::new() }, pinned_tasks, largest: 0 };
        let mut total = 0u64;
        for task in &self.tasks {
            let too_much = || Error::input(TASKS, ": the work of all tasks together is beyond 2^64 - 1");
            total = total.checked_add(task.work).ok_or_else(too_much)?;
            let rank = self.holder_of(task.rank, ranks).index();
            amounts.work[rank] += task.work;
            if task.pinned {
                amounts.pinned[rank] += task.work;
            }
            amounts.largest = amounts.largest.max(task.work);
        }
        Ok(amounts)
    }

    /// Bytes that each of `ranks` ranks holds at first.
    pub fn bytes_by_rank(&self, ranks: u32) -> Vec<u64> {
        let mut bytes = vec![0u64; ranks as usize];
        for task in &self.tasks {
            let of_rank = &mut bytes[self.holder_of(task.rank, ranks).index()];
            *of_rank = of_rank.saturating_add(task.bytes);
        }
        bytes
    }

    /// The tasks that one of `ranks` ranks holds at first. Their payloads in the measured run are not known, so they are zeros, cut out of one
    /// buffer.
    ///
    /// # Errors
    /// If there is no memory for the largest task's bytes.
    pub fn queue(&self, rank: RankId, ranks: u32) -> Result<WorkQueue> {
        let held = || (0u64..).zip(&self.tasks).filter(|(_, task)| self.holder_of(task.rank, ranks) == rank);
        let largest = held().map(|(_, task)| task.bytes).max().unwrap_or(0);
        let zeros = zeros(largest)?;
        let (mut movable, mut pinned) = (TaskBatch::default(), TaskBatch::default());
        let mut places = Vec::new();
        for (id, task) in held() {
            if !task.pinned {
                places.extend(self.places.get(id as usize));
            }
            let segment = Segment::from(Task { id, weight: task.work, payload: zeros.slice(..task.bytes as usize) });
            if task.pinned { pinned.push(segment) } else { movable.push(segment) }
        }
        let queue = WorkQueue::new(movable).with_pinned(pinned);
        Ok(if self.places.is_empty() { queue } else { queue.with_places(places) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_task_is_held_once(
            tasks in prop::collection::vec(((0u32..9).prop_map(RankId::new), 0u64..100, 0u64..50, any::<bool>()), 0..40),
            nodes in 1u32..14,
        ) {
            let mut tasks: Vec<MeasuredTask> =
                tasks.into_iter().map(|(rank, work, bytes, pinned)| MeasuredTask { rank, name: None, work, bytes, pinned }).collect();
            tasks.sort_by_key(|task| task.rank);
            let run = MeasuredTasks { ranks: 9, tasks, places: Vec::new(), communications: Vec::new(), columns: Vec::new(), left_out: 0, seconds_per_unit: None };
            let amounts = run.amounts(nodes).unwrap();
            let queues: Vec<WorkQueue> = RankId::all(nodes).map(|rank| run.queue(rank, nodes).unwrap()).collect();
            prop_assert_eq!(queues.iter().map(WorkQueue::work).collect::<Vec<_>>(), amounts.work);
            prop_assert_eq!(queues.iter().map(WorkQueue::len).sum::<u64>(), run.len());
            let pinned = |queue: &WorkQueue| queue.pinned().map_or(0, TaskBatch::work);
            let of_amounts = if amounts.pinned.is_empty() { vec![0; nodes as usize] } else { amounts.pinned };
            prop_assert_eq!(queues.iter().map(pinned).collect::<Vec<_>>(), of_amounts);
            let bytes = |queue: &WorkQueue| queue.checksum().payload;
            prop_assert_eq!(queues.iter().map(bytes).collect::<Vec<_>>(), run.bytes_by_rank(nodes));
            prop_assert_eq!(queues.iter().map(bytes).sum::<u64>(), run.bytes());
        }
    }
}
