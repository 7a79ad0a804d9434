//! The tasks behind the loads: which ids each node holds at first, and what they carry.

use bytes::Bytes;

use crate::workload::weights::{Pins, Weights};
use equipoise::error::{Error, Result};
use equipoise::load::{Segment, Task, TaskBatch, TaskId, WorkQueue};
use equipoise::memory;
use equipoise::topology::NodeId;

/// The tasks that every node holds before it is balanced. Their ids are consecutive over the nodes: node 0 has the first, the last node the
/// last.
#[derive(Clone, Debug)]
pub struct InitialTasks {
    /// `first[i]` is the first id of node i; one more entry ends the last node's.
    first: Vec<TaskId>,
    payload: u64,
    weights: Weights,
    pins: Pins,
}

/// Sums over the tasks of each node, and of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Work units by rank; once they are placed, by node.
    pub work: Vec<u64>,
    /// Work units that may not move, among `work`; empty if there are none.
    pub pinned: Vec<u64>,
    /// Number of tasks that may not move.
    pub pinned_tasks: u64,
    /// Work units of the largest task.
    pub largest: u64,
}

impl InitialTasks {
    /// Tasks for each node in the number given by `loads`, each of weight 1 and with `payload` bytes.
    ///
    /// # Errors
    /// If there are more tasks in all than a u64 can number.
    pub fn new(loads: &[u64], payload: u64) -> Result<InitialTasks> {
        let mut first = Vec::with_capacity(loads.len() + 1);
        let mut next: TaskId = 0;
        first.push(next);
        for load in loads {
            next = next.checked_add(*load).ok_or_else(|| Error::input("loads", ": the tasks of all ranks together are beyond 2^64 - 1"))?;
            first.push(next);
        }
        Ok(InitialTasks { first, payload, weights: Weights::Unit, pins: Pins::default() })
    }

    /// The same tasks with other weights, and some of them pinned.
    pub fn weighing(self, weights: Weights, pins: Pins) -> InitialTasks {
        InitialTasks { weights, pins, ..self }
    }

    /// Returns true if these are unit tasks.
    pub fn are_unit(&self) -> bool {
        self.weights.are_unit()
    }

    /// Returns true if the tasks of a node are one row, not objects one by one.
    fn are_alike(&self) -> bool {
        self.are_unit() && self.pins.are_none()
    }

    /// Bytes that describe this number of these tasks, without their payloads.
    pub fn described_in(&self, tasks: u64) -> u128 {
        if self.are_alike() { 0 } else { u128::from(tasks) * size_of::<Segment>() as u128 }
    }

    /// Sums over the tasks of each node.
    ///
    /// # Errors
    /// If all tasks have more than 2^64 - 1 work units.
    pub fn amounts(&self) -> Result<Amounts> {
        let nodes = self.first.len() - 1;
        if self.are_unit() && self.pins.are_none() {
            let work = (0..nodes as NodeId).map(|node| self.load(node)).collect();
            return Ok(Amounts { work, pinned: Vec::new(), pinned_tasks: 0, largest: u64::from(self.total() > 0) });
        }
        let pinned = if self.pins.are_none() { Vec::new() } else { vec![0; nodes] };
        let mut amounts = Amounts { work: vec![0; nodes], pinned, ..Amounts::default() };
        let mut total = 0u64;
        for node in 0..nodes {
            let (first, count) = (self.first[node], self.load(node as NodeId));
            for (weight, pinned) in self.weights.of(first, count).zip(self.pins.of(first, count)) {
                let too_much = || Error::input("weights", ": the work of all tasks together is beyond 2^64 - 1");
                total = total.checked_add(weight).ok_or_else(too_much)?;
                amounts.work[node] += weight;
                if pinned {
                    amounts.pinned[node] += weight;
                    amounts.pinned_tasks += 1;
                }
                amounts.largest = amounts.largest.max(weight);
            }
        }
        Ok(amounts)
    }

    /// Number of tasks of all nodes.
    pub fn total(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// Number of tasks of a node.
    pub fn load(&self, node: NodeId) -> u64 {
        self.first[node as usize + 1] - self.first[node as usize]
    }

    /// Bytes that each task carries.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Initial work queue of a node: unit tasks are one row with one buffer; other tasks have payloads that are slices of one buffer.
    ///
    /// # Errors
    /// If the buffer cannot be allocated.
    pub fn queue(&self, node: NodeId) -> Result<WorkQueue> {
        let (first, count) = (self.first[node as usize], self.load(node));
        let flat = flat_payloads(first, count, self.payload).ok_or_else(|| {
            Error::input("payload", format!(" {}: there is no memory for the {count} tasks of rank {node}", self.payload))
        })?;
        if self.are_alike() {
            return Ok(WorkQueue::new(Segment::row(first, count, 1, flat).into_iter().collect()));
        }
        let length = self.payload as usize;
        let (mut movable, mut pinned) = (TaskBatch::default(), TaskBatch::default());
        let weights = self.weights.of(first, count).zip(self.pins.of(first, count));
        for (index, (weight, is_pinned)) in weights.enumerate() {
            let start = index * length;
            let task = Segment::from(Task { id: first + index as u64, weight, payload: flat.slice(start..start + length) });
            if is_pinned { pinned.push(task) } else { movable.push(task) }
        }
        Ok(WorkQueue::new(movable).with_pinned(pinned))
    }
}

/// The payloads of consecutive tasks one behind the other, or nothing if memory does not hold them.
fn flat_payloads(first: TaskId, count: u64, length: u64) -> Option<Bytes> {
    let bytes = usize::try_from(count.checked_mul(length)?).ok()?;
    let mut flat: Vec<u8> = Vec::new();
    if !memory::reserve(&mut flat, bytes) {
        return None;
    }
    if length == 0 {
        return Some(Bytes::new());
    }
    for id in first..first + count {
        let end = flat.len() + length as usize;
        for word in words(id, length) {
            let missing = end - flat.len();
            flat.extend_from_slice(&word[..missing.min(word.len())]);
            if missing <= word.len() {
                break;
            }
        }
    }
    Some(Bytes::from(flat))
}

/// Returns true if a segment is as [`InitialTasks`] with this payload made it: a payload still belongs to its task's id, byte for byte.
pub fn is_intact(segment: &Segment, payload: u64) -> bool {
    let belongs = |(bytes, id): (&[u8], TaskId)| bytes.chunks(8).zip(words(id, payload)).all(|(chunk, word)| *chunk == word[..chunk.len()]);
    let size = segment.size();
    segment.weight() == 1
        && size as u64 == payload
        && (size == 0 || segment.payload().chunks_exact(size).zip(segment.first()..).all(belongs))
}

/// A task's payload in words without end: the stream of SplitMix64 (Steele, Lea and Flood 2014) that starts from its id and length.
fn words(id: TaskId, length: u64) -> impl Iterator<Item = [u8; 8]> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = mix(id ^ length.rotate_left(40));
    std::iter::repeat_with(move || {
        state = state.wrapping_add(GOLDEN);
        mix(state).to_le_bytes()
    })
}

/// SplitMix64's mixing function, a bijection.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tasks_without_payload_are_one_range() {
        let tasks = InitialTasks::new(&[3, 0, 1_000_000_000_000, 2], 0).unwrap();
        assert_eq!((tasks.total(), tasks.load(2)), (1_000_000_000_005, 1_000_000_000_000));
        let queue = tasks.queue(2).unwrap();
        assert_eq!(queue.segments().collect::<Vec<_>>(), [&Segment::range(3, 1_000_000_000_000)]);
        assert!(tasks.queue(1).unwrap().is_empty());
        assert!(queue.segments().all(|segment| is_intact(segment, 0) && !is_intact(segment, 8)));
    }

    #[test]
    fn tasks_beyond_numbering_or_memory_are_refused() {
        assert!(InitialTasks::new(&[u64::MAX, 1], 0).is_err_and(|why| why.exit_status() == 2));
        let tasks = InitialTasks::new(&[u64::MAX / 2], 16).unwrap();
        assert_eq!(
            tasks.queue(0).unwrap_err().to_string(),
            format!("payload 16: there is no memory for the {} tasks of rank 0", u64::MAX / 2)
        );
    }

    #[test]
    fn weights_and_pins_make_tasks_one_by_one() {
        let weights = Weights::Listed(vec![5, 0, 7, 2, 9]);
        let tasks = InitialTasks::new(&[2, 3], 0).unwrap().weighing(weights, Pins::parse("p=0.5", 4).unwrap());
        let amounts = tasks.amounts().unwrap();
        assert_eq!((amounts.work.clone(), amounts.largest), (vec![5, 18], 9));
        let queues = [tasks.queue(0).unwrap(), tasks.queue(1).unwrap()];
        let pinned = |queue: &WorkQueue| queue.pinned().map_or((0, 0), |pinned| (pinned.work(), pinned.len()));
        assert_eq!(amounts.pinned, [pinned(&queues[0]).0, pinned(&queues[1]).0]);
        assert_eq!(amounts.pinned_tasks, pinned(&queues[0]).1 + pinned(&queues[1]).1);
        assert_eq!([queues[0].work(), queues[1].work()], [5, 18]);
        assert_eq!((queues[0].len(), queues[1].len(), queues[1].own_work()), (2, 3, 18));
        assert_eq!((tasks.described_in(0), InitialTasks::new(&[9], 0).unwrap().described_in(9)), (0, 0));
        let huge = InitialTasks::new(&[2], 0).unwrap().weighing(Weights::Listed(vec![u64::MAX, 1]), Pins::default());
        assert!(huge.amounts().unwrap_err().to_string().starts_with("weights"));
    }

    proptest! {
        #[test]
        fn payloads_lie_in_one_buffer_and_belong_to_their_ids(loads in prop::collection::vec(0u64..20, 1..6), payload in 1u64..40) {
            let tasks = InitialTasks::new(&loads, payload).unwrap();
            let mut next = 0;
            for node in 0..loads.len() as u32 {
                let queue = tasks.queue(node).unwrap();
                prop_assert_eq!((queue.len(), queue.own()), (loads[node as usize], loads[node as usize]));
                prop_assert!(queue.segments().count() <= 1, "payloads lie apart");
                for segment in queue.segments() {
                    prop_assert!(is_intact(segment, payload));
                    for task in segment.tasks() {
                        prop_assert_eq!((task.id, task.payload.len() as u64), (next, payload));
                        prop_assert!(is_intact(&Segment::from(task), payload));
                        next += 1;
                    }
                }
            }
            prop_assert_eq!(next, tasks.total());
        }

        #[test]
        fn one_wrong_byte_or_another_id_is_noticed(
            id in 0u64..1000,
            payload in 1u64..40,
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
        ) {
            let mut bytes = flat_payloads(id, 1, payload).unwrap().to_vec();
            let task = |id, bytes: &[u8]| Segment::from(Task { id, weight: 1, payload: Bytes::copy_from_slice(bytes) });
            prop_assert!(is_intact(&task(id, &bytes), payload));
            prop_assert!(payload < 8 || !is_intact(&task(id + 1, &bytes), payload));
            prop_assert!(!is_intact(&task(id, &bytes[1..]), payload));
            bytes[at.index(payload as usize)] ^= flip;
            prop_assert!(!is_intact(&task(id, &bytes), payload));
        }
    }
}
