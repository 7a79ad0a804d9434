//! The tasks that a node holds.

use std::collections::BTreeMap;

use super::position::Aim;
use super::{Checksum, Segment, TaskBatch, TaskId};
use crate::topology::NodeId;

/// The tasks that a node holds, in order: those received in front of its own, its own, and those received behind them; separately, the tasks that
/// may not move.
///
/// A task is a node's *own* from the start; one that left and came back is foreign, like all that arrive. Walks give away foreign tasks
/// first, so that no task travels that did not have to. Pinned tasks count as load and never leave.
#[derive(Clone, Debug, Default)]
pub struct WorkQueue {
    before: TaskBatch,
    own: TaskBatch,
    behind: TaskBatch,
    /// Boxed, since nearly no work queue has any.
    pinned: Option<Box<TaskBatch>>,
    /// Boxed for the same reason.
    places: Option<Box<[Place]>>,
}

/// Place of a task in space; programs with one or two dimensions leave the last coordinates 0.
pub type Place = [f64; 3];

impl WorkQueue {
    /// A work queue of a node's own tasks.
    pub fn new(own: TaskBatch) -> WorkQueue {
        WorkQueue { own, ..WorkQueue::default() }
    }

    /// Unit tasks without payload, numbered consecutively over the nodes: node i holds `loads[i]` of them.
    pub fn numbered(loads: &[u64], node: NodeId) -> WorkQueue {
        let node = node as usize;
        WorkQueue::new([Segment::range(loads[..node].iter().sum(), loads[node])].into_iter().collect())
    }

    /// The same with tasks of the node's own that may not move.
    pub fn with_pinned(self, pinned: TaskBatch) -> WorkQueue {
        WorkQueue { pinned: (!pinned.is_empty()).then(|| Box::new(pinned)), ..self }
    }

    /// Adds a place for each task that may move, in their order, for balancers by place (`rcb`, `sfc`). Coordinates are finite. Places are
    /// read when a phase begins; they don't travel with the tasks.
    pub fn with_places(self, places: Vec<Place>) -> WorkQueue {
        WorkQueue { places: Some(places.into()), ..self }
    }

    /// The places of the tasks that may move, as they were given.
    pub fn places(&self) -> Option<&[Place]> {
        self.places.as_deref()
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.before.len() + self.own.len() + self.behind.len() + self.pinned().map_or(0, TaskBatch::len)
    }

    /// Returns true if it holds no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of the tasks' work units.
    pub fn work(&self) -> u64 {
        self.movable() + self.pinned().map_or(0, TaskBatch::work)
    }

    /// Work units of the tasks that may move.
    pub fn movable(&self) -> u64 {
        self.before.work() + self.own.work() + self.behind.work()
    }

    /// Work units of the largest task that may move, 0 if there is none.
    pub(crate) fn largest_movable(&self) -> u64 {
        [&self.before, &self.own, &self.behind].into_iter().map(TaskBatch::largest).max().unwrap_or(0)
    }

    /// The tasks that may not move.
    pub fn pinned(&self) -> Option<&TaskBatch> {
        self.pinned.as_deref()
    }

    /// Number of own tasks that never left.
    pub fn own(&self) -> u64 {
        self.own.len() + self.pinned().map_or(0, TaskBatch::len)
    }

    /// Work units of own tasks that never left.
    pub fn own_work(&self) -> u64 {
        self.own.work() + self.pinned().map_or(0, TaskBatch::work)
    }

    /// Takes about this amount of work: foreign tasks first (the latest first), then own ones from the back.
    ///
    /// Unit tasks give the amount exactly. Among tasks of several units each is taken that fits into the remaining amount, in this order;
    /// at the end also the lightest remaining one, if the sum then is nearer to the amount. If the queue holds that much work, the sum
    /// differs from the amount by at most half of the largest task.
    pub fn take(&mut self, amount: u64) -> TaskBatch {
        self.take_within(amount, u64::MAX)
    }

    /// The same, but never more than `most`, which is at least the amount.
    pub fn take_within(&mut self, amount: u64, most: u64) -> TaskBatch {
        let mut taken = self.take_fitting(amount);
        let missing = amount - taken.work();
        let fits = |weight: u64| weight.abs_diff(missing) < missing && weight <= most - taken.work();
        if missing > 0 && self.lightest().is_some_and(fits) {
            taken.append(self.take_lightest());
        }
        taken
    }

    /// The same, but never more than the amount. If something is missing, each movable task that is left is larger.
    pub(crate) fn take_fitting(&mut self, amount: u64) -> TaskBatch {
        // Tasks that lie further to the back come behind.
        let mut behind = self.behind.take_back(amount);
        let mut left = amount - behind.work();
        if left > 0 && !self.behind.is_empty() {
            behind.prepend(self.behind.pick(left));
            left = amount - behind.work();
        }
        let mut before = self.before.take_front(left);
        if left > before.work() && !self.before.is_empty() {
            let picked = self.before.pick(left - before.work());
            before.append(picked);
        }
        left -= before.work();
        let mut taken = self.own.take_back(left);
        if left > taken.work() && !self.own.is_empty() {
            taken.prepend(self.own.pick(left - taken.work()));
        }
        taken.append(before);
        taken.append(behind);
        taken
    }

    /// Work units of the lightest task that may move.
    pub(crate) fn lightest(&self) -> Option<u64> {
        [&self.behind, &self.before, &self.own].into_iter().filter_map(TaskBatch::lightest).min()
    }

    /// Takes the lightest task that may move; a foreign one if there is a choice.
    pub(crate) fn take_lightest(&mut self) -> TaskBatch {
        let lots = [&mut self.behind, &mut self.before, &mut self.own];
        let lightest = lots.into_iter().filter_map(|lot| Some((lot.lightest()?, lot))).min_by_key(|(weight, _)| *weight);
        lightest.map_or_else(TaskBatch::default, |(weight, lot)| lot.take_one(weight))
    }

    /// Takes tasks off the front that aim before unit `cut` of the work queue, whose first task begins at unit 0; pinned tasks are not among them.
    pub(crate) fn take_front_before(&mut self, cut: u64, aim: Aim) -> TaskBatch {
        let mut taken = TaskBatch::default();
        for lot in [&mut self.before, &mut self.own, &mut self.behind] {
            let at = taken.work();
            taken.append(lot.take_front_before(at, cut, aim));
            if !lot.is_empty() {
                break;
            }
        }
        taken
    }

    /// Takes tasks off the back that aim at unit `cut` of the work queue or behind it; they keep their order.
    pub(crate) fn take_back_from(&mut self, cut: u64, aim: Aim) -> TaskBatch {
        let end = self.movable();
        let mut taken = TaskBatch::default();
        for lot in [&mut self.behind, &mut self.own, &mut self.before] {
            let until = end - taken.work();
            taken.prepend(lot.take_back_from(until, cut, aim));
            if !lot.is_empty() {
                break;
            }
        }
        taken
    }

    /// Work units of the last task that may move.
    pub(crate) fn last(&self) -> Option<u64> {
        [&self.behind, &self.own, &self.before].into_iter().find_map(|lot| Some(lot.segments().next_back()?.weight()))
    }

    /// Takes the last task that may move.
    pub(crate) fn take_last(&mut self) -> TaskBatch {
        let lots = [&mut self.behind, &mut self.own, &mut self.before];
        lots.into_iter().find(|lot| !lot.is_empty()).map_or_else(TaskBatch::default, TaskBatch::take_last)
    }

    /// Takes foreign tasks whose ids are in these rows (first id and number, in any order, not overlapping) until they are at least `work` units, or
    /// all of them if they are less. Prefers few tasks, and little more work than asked for.
    pub(crate) fn take_of(&mut self, rows: &[(TaskId, u64)], work: u64) -> TaskBatch {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        let mut lots: Vec<(u64, TaskId, u64)> = self.before.lots_in(&rows).chain(self.behind.lots_in(&rows)).collect();
        lots.retain(|(weight, ..)| *weight > 0);
        lots.sort_unstable();
        let (mut missing, mut chosen) = (work, Vec::new());
        while missing > 0 {
            // The smallest that is enough alone, or else some of the largest.
            let enough = lots.partition_point(|(weight, ..)| *weight < missing);
            let Some((weight, first, count)) = (if enough < lots.len() { Some(lots[enough]) } else { lots.pop() }) else { break };
            let some = (missing / weight).clamp(1, count);
            chosen.push((first, some));
            missing = missing.saturating_sub(some * weight);
            if missing > 0 && some < count {
                lots.push((weight, first + some, count - some));
            }
        }
        chosen.sort_unstable();
        let mut taken = self.before.take_rows(&chosen);
        taken.append(self.behind.take_rows(&chosen));
        taken
    }

    /// Takes the tasks at some places among those that may move, counted from 0 in their order: first place, number and receiver, in ascending order
    /// and not overlapping. What each gets keeps its order.
    pub(crate) fn take_places(&mut self, parts: &[(u64, u64, NodeId)]) -> BTreeMap<NodeId, TaskBatch> {
        let (mut taken, mut at) = (BTreeMap::new(), 0);
        for lot in [&mut self.before, &mut self.own, &mut self.behind] {
            let tasks = lot.len();
            lot.take_places(at, parts, &mut taken);
            at += tasks;
        }
        taken
    }

    /// Weight and number of the tasks in each row of alike tasks that may move, in their order.
    pub(crate) fn movable_rows(&self) -> Vec<(u64, u64)> {
        let mut rows: Vec<(u64, u64)> = Vec::new();
        let lots = [&self.before, &self.own, &self.behind];
        for segment in lots.into_iter().flat_map(TaskBatch::segments) {
            match rows.last_mut() {
                Some((weight, count)) if *weight == segment.weight() => *count += segment.len(),
                _ => rows.push((segment.weight(), segment.len())),
            }
        }
        rows
    }

    /// Bytes of one task and number of tasks in each row of tasks of the same size that may move, in their order.
    pub(crate) fn movable_bytes(&self) -> Vec<(u64, u64)> {
        let mut rows: Vec<(u64, u64)> = Vec::new();
        let lots = [&self.before, &self.own, &self.behind];
        for segment in lots.into_iter().flat_map(TaskBatch::segments) {
            let bytes = segment.size() as u64;
            match rows.last_mut() {
                Some((of_one, count)) if *of_one == bytes => *count += segment.len(),
                _ => rows.push((bytes, segment.len())),
            }
        }
        rows
    }

    /// The tasks that may move, in their order.
    pub fn movable_segments(&self) -> impl Iterator<Item = &Segment> {
        self.before.segments().chain(self.own.segments()).chain(self.behind.segments())
    }

    /// Puts arrived tasks behind all others.
    pub fn put_behind(&mut self, batch: TaskBatch) {
        self.behind.append(batch);
    }

    /// Puts arrived tasks in front of all others, in their order.
    pub fn put_before(&mut self, batch: TaskBatch) {
        self.before.prepend(batch);
    }

    /// All tasks in order, those that may not move last.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        let pinned = self.pinned().into_iter().flat_map(TaskBatch::segments);
        self.before.segments().chain(self.own.segments()).chain(self.behind.segments()).chain(pinned)
    }

    /// All tasks in the same order, out of the work queue.
    pub fn into_batch(self) -> TaskBatch {
        let mut all = self.before;
        all.append(self.own);
        all.append(self.behind);
        all.append(self.pinned.map_or_else(TaskBatch::default, |pinned| *pinned));
        all
    }

    /// The order-free sum over all tasks.
    pub fn checksum(&self) -> Checksum {
        self.segments().map(Checksum::of).fold(Checksum::default(), Checksum::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Task;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn range(first: u64, count: u64) -> Segment {
        Segment::range(first, count)
    }

    fn task(id: u64) -> Segment {
        Segment::from(Task { id, weight: 1, payload: Bytes::from(vec![id as u8; 3]) })
    }

    /// Its payloads tell the tasks' ids.
    fn row(first: u64, count: u64) -> Segment {
        let payload = (first..first + count).flat_map(|id| [id as u8; 3]).collect::<Vec<u8>>();
        Segment::row(first, count, 1, Bytes::from(payload)).unwrap()
    }

    fn ids<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<u64> {
        let id = |task: Task| {
            assert!(task.payload.iter().all(|byte| *byte == task.id as u8), "{task:?}");
            task.id
        };
        segments.flat_map(Segment::tasks).map(id).collect()
    }

    #[test]
    fn foreign_tasks_leave_first_and_own_ones_only_then() {
        let mut queue = WorkQueue::new([range(10, 5)].into_iter().collect());
        queue.put_behind([range(90, 2)].into_iter().collect());
        queue.put_before([range(70, 2)].into_iter().collect());
        assert_eq!((queue.len(), queue.own()), (9, 5));
        assert_eq!(ids(queue.take(3).segments()), [70, 90, 91]);
        assert_eq!(ids(queue.take(2).segments()), [14, 71]);
        assert_eq!((queue.len(), queue.own()), (4, 4));
        assert_eq!(queue.take(9).len(), 4);
        assert!(queue.is_empty());
    }

    #[test]
    fn ranges_that_continue_each_other_are_one() {
        let mut queue = WorkQueue::default();
        for first in (0..100).step_by(10) {
            queue.put_behind([range(first, 10)].into_iter().collect());
        }
        for first in (100..200u32).step_by(10).rev().map(u64::from) {
            queue.put_before([range(first, 10)].into_iter().collect());
        }
        assert_eq!(queue.segments().collect::<Vec<_>>(), [&range(100, 100), &range(0, 100)]);
    }

    proptest! {
        #[test]
        fn taking_splits_as_a_list_does(counts in prop::collection::vec((0u64..5, 0..3), 0..8), cuts in prop::collection::vec((0u64..9, 0..3), 0..12)) {
            let mut next = 1000;
            let mut queue = WorkQueue::default();
            let mut list: Vec<u64> = Vec::new();
            for (count, kind) in counts {
                for _ in 0..if kind == 0 { count } else { 1 } {
                    let segment = match kind {
                        0 => task(next),
                        1 => range(next, count),
                        _ => row(next, count),
                    };
                    list.extend(ids([&segment].into_iter()));
                    queue.put_behind([segment].into_iter().collect());
                    next += 50;
                }
            }
            let sum = queue.checksum();
            let mut taken_sum = Checksum::default();
            for (tasks, from) in cuts {
                let batch = if from == 0 {
                    queue.take_front_before(tasks, Aim::Middle)
                } else {
                    queue.take_back_from(queue.work().saturating_sub(tasks), Aim::Middle)
                };
                let tasks = (tasks as usize).min(list.len());
                let expected: Vec<u64> = if from == 0 { list.drain(..tasks).collect() } else { list.split_off(list.len() - tasks) };
                prop_assert_eq!(ids(batch.segments()), expected.clone());
                prop_assert_eq!(batch.len(), expected.len() as u64);
                taken_sum = batch.segments().map(Checksum::of).fold(taken_sum, Checksum::and);
            }
            prop_assert_eq!(ids(queue.segments()), list);
            prop_assert_eq!(queue.checksum().and(taken_sum), sum);
        }

        #[test]
        fn what_is_taken_is_as_near_as_half_a_task(
            lots in prop::collection::vec(prop::collection::vec(0u64..20, 0..8), 4),
            amount in 0u64..200,
        ) {
            let mut id = 0;
            let mut batch = |weights: &[u64]| -> TaskBatch {
                // Neighbours of the same weight become rows.
                let one = |weight: &u64| {
                    id += 1;
                    Segment::from(Task { id, weight: *weight / 4, payload: Bytes::new() })
                };
                weights.iter().map(one).collect()
            };
            let mut queue = WorkQueue::new(batch(&lots[0])).with_pinned(batch(&lots[3]));
            queue.put_behind(batch(&lots[1]));
            queue.put_before(batch(&lots[2]));
            let (sum, movable, largest) = (queue.checksum(), queue.movable(), queue.largest_movable());
            let taken = queue.take(amount);
            prop_assert!(taken.work() == movable && movable < amount || 2 * taken.work().abs_diff(amount) <= largest);
            prop_assert_eq!(queue.pinned().map_or(0, TaskBatch::len), lots[3].len() as u64);
            let taken_sum = taken.segments().map(Checksum::of).fold(Checksum::default(), Checksum::and);
            prop_assert_eq!((taken_sum.work, taken_sum.tasks), (taken.work(), taken.len()));
            prop_assert_eq!(queue.checksum().and(taken_sum), sum);
        }

        #[test]
        fn some_tasks_are_taken_out_of_their_rows(
            weights in prop::collection::vec((1u64..12, 1u64..5), 1..8),
            own in 0u64..9,
            wanted in prop::collection::vec(any::<bool>(), 48),
            work in 0u64..60,
        ) {
            let mut queue = WorkQueue::new([range(1000, own)].into_iter().collect());
            let mut next = 0;
            let mut all = Vec::new();
            for (at, (weight, count)) in weights.into_iter().enumerate() {
                let segment = Segment::row(next, count, weight, Bytes::from(vec![7; 2 * count as usize])).unwrap();
                all.extend((next..next + count).map(|id| (id, weight)));
                next += count + u64::from(at % 2 == 0);
                if at % 3 == 0 { queue.put_before([segment].into_iter().collect()) } else { queue.put_behind([segment].into_iter().collect()) }
            }
            let rows: Vec<(u64, u64)> = (0..48).filter(|id| wanted[*id as usize]).map(|id| (id, 1)).rev().collect();
            let there: Vec<(u64, u64)> = all.into_iter().filter(|(id, _)| wanted[*id as usize]).collect();
            let (sum, available) = (queue.checksum(), there.iter().map(|(_, weight)| weight).sum::<u64>());
            let taken = queue.take_of(&rows, work);
            prop_assert!(taken.work() >= work.min(available));
            // None of them could have stayed.
            prop_assert!(taken.segments().all(|segment| taken.work() - segment.weight() < work));
            prop_assert!(taken.segments().flat_map(Segment::tasks).all(|task| there.contains(&(task.id, task.weight))));
            prop_assert_eq!(queue.own(), own);
            prop_assert_eq!(taken.segments().map(Checksum::of).fold(queue.checksum(), Checksum::and), sum);
        }

        #[test]
        fn tasks_are_taken_from_their_places(
            counts in prop::collection::vec((1u64..9, any::<bool>(), 0..3), 0..8),
            whose in prop::collection::vec(0u32..4, 72),
        ) {
            let (mut queue, mut next) = (WorkQueue::default(), 100);
            for (count, with_payload, lot) in counts {
                let segment = if with_payload { row(next, count) } else { range(next, count) };
                match lot {
                    0 => queue.before.push(segment),
                    1 => queue.own.push(segment),
                    _ => queue.behind.push(segment),
                }
                next += count + 5;
            }
            let (before, sum) = (ids(queue.segments()), queue.checksum());
            prop_assert_eq!(queue.movable_rows().iter().map(|(_, count)| count).sum::<u64>(), before.len() as u64);
            // Node 0 keeps its own.
            let parts: Vec<(u64, u64, u32)> = (0..before.len()).filter(|at| whose[*at] > 0).map(|at| (at as u64, 1, whose[at])).collect();
            let taken = queue.take_places(&parts);
            let of = |node: u32| (0..before.len()).filter(|at| whose[*at] == node).map(|at| before[at]).collect::<Vec<u64>>();
            prop_assert_eq!(ids(queue.segments()), of(0));
            for node in 1..4 {
                prop_assert_eq!(taken.get(&node).map_or(Vec::new(), |batch| ids(batch.segments())), of(node));
            }
            let moved = taken.values().flat_map(TaskBatch::segments).map(Checksum::of).fold(queue.checksum(), Checksum::and);
            prop_assert_eq!(moved, sum);
        }

        #[test]
        fn a_pile_is_cut_where_its_tasks_aim(weights in prop::collection::vec(prop_oneof![0u64..9, 2u64..4], 1..12), cut in 0u64..60, first in any::<bool>()) {
            let aim = if first { Aim::First } else { Aim::Middle };
            let tasks = |range: std::ops::Range<usize>| -> TaskBatch {
                range.map(|id| Segment::from(Task { id: id as u64, weight: weights[id], payload: Bytes::new() })).collect()
            };
            let (a, b) = (weights.len() / 3, weights.len() * 2 / 3);
            let mut queue = WorkQueue::new(tasks(a..b));
            queue.put_behind(tasks(b..weights.len()));
            queue.put_before(tasks(0..a));
            let mut start = 0;
            let expected: Vec<u64> = (0..weights.len()).filter(|&id| {
                let aims = aim.of(start, weights[id]);
                start += weights[id];
                aims < cut
            }).map(|id| id as u64).collect();
            let mut other = queue.clone();
            prop_assert_eq!(ids(queue.take_front_before(cut, aim).segments()), expected.clone());
            other.take_back_from(cut, aim);
            prop_assert_eq!(ids(other.segments()), expected);
        }
    }
}
