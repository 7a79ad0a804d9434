//! Tasks, and lots of them that lie together.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::position::Aim;
use crate::topology::NodeId;

/// A task's number, unique in the whole job.
pub type TaskId = u64;

/// A task with something to carry, or of another size than one work unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Unique among all tasks of a run.
    pub id: TaskId,
    /// Work units, at least 0.
    pub weight: u64,
    /// Data of the task, opaque to the balancer.
    pub payload: Bytes,
}

/// Some tasks that lie together: consecutive ids, the same weight, and payloads of the same size one behind the other in one buffer.
///
/// A row of tasks is cut and handed on without a look at its single tasks, until a caller asks for [`tasks`](Segment::tasks). Unit tasks
/// without payload are a row whose buffer is empty, so a billion of them cost nothing; a task unlike its neighbours is a row of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    first: TaskId,
    count: u64,
    /// Weight of each task.
    weight: u64,
    /// Payloads of all tasks; its length is a multiple of their number.
    payload: Bytes,
}

impl Segment {
    /// Unit tasks without payload, by id: `first .. first + count`.
    pub fn range(first: TaskId, count: u64) -> Segment {
        Segment { first, count, weight: 1, payload: Bytes::new() }
    }

    /// Returns `count` tasks with consecutive ids and this weight each, whose payloads share the buffer evenly; `None` if the buffer's length is no
    /// multiple of `count`.
    pub fn row(first: TaskId, count: u64, weight: u64, payload: Bytes) -> Option<Segment> {
        let even = if count == 0 { payload.is_empty() } else { (payload.len() as u64).is_multiple_of(count) };
        even.then_some(Segment { first, count, weight, payload })
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns true if it holds no task.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// First id; the others follow it.
    pub fn first(&self) -> TaskId {
        self.first
    }

    /// Work units of each task.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The payloads, one behind the other.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Bytes of each task's payload.
    pub fn size(&self) -> usize {
        (self.payload.len() as u64).checked_div(self.count).unwrap_or(0) as usize
    }

    /// Work units of all tasks.
    pub fn work(&self) -> u64 {
        self.weight.wrapping_mul(self.count)
    }

    /// The tasks one by one. Their payloads are slices of the common buffer and keep it alive.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + '_ {
        let size = self.size();
        let payload =
            move |at: u64| if size == 0 { Bytes::new() } else { self.payload.slice(at as usize * size..(at as usize + 1) * size) };
        (0..self.count).map(move |at| Task { id: self.first.wrapping_add(at), weight: self.weight, payload: payload(at) })
    }

    /// Returns true if another row's tasks follow these as if both were one row.
    pub fn continues_in(&self, next: &Segment) -> bool {
        self.first.wrapping_add(self.count) == next.first && self.weight == next.weight && self.size() == next.size()
    }

    /// Makes another's tasks part of this row, if they continue it and there is no payload that would have to be copied.
    fn join(&mut self, next: &Segment) -> bool {
        let joins = self.payload.is_empty() && next.payload.is_empty() && self.continues_in(next);
        if joins {
            self.count = self.count.wrapping_add(next.count);
        }
        joins
    }

    /// Cuts the first `head` tasks off; `head` must be below their number.
    fn cut(&mut self, head: u64) -> Segment {
        let payload = self.payload.split_to(head as usize * self.size());
        let front = Segment { first: self.first, count: head, weight: self.weight, payload };
        self.first = self.first.wrapping_add(head);
        self.count -= head;
        front
    }

    /// Cuts the first tasks off, or all of them.
    fn cut_or_all(&mut self, head: u64) -> Segment {
        if head < self.count { self.cut(head) } else { std::mem::replace(self, Segment::range(0, 0)) }
    }

    /// Ranges of positions of those tasks in this row whose ids are in `rows` (ascending and disjoint).
    fn parts_in<'a>(&self, rows: &'a [(TaskId, u64)]) -> impl Iterator<Item = (u64, u64)> + 'a {
        let (first, end) = (u128::from(self.first), u128::from(self.first) + u128::from(self.count));
        let end_of = |row: &(TaskId, u64)| u128::from(row.0) + u128::from(row.1);
        let from = rows.partition_point(|row| end_of(row) <= first);
        let near = rows[from..].iter().take_while(move |row| u128::from(row.0) < end);
        let part = move |row: &(TaskId, u64)| ((u128::from(row.0).max(first) - first) as u64, (end_of(row).min(end) - first) as u64);
        near.map(part).filter(|(from, until)| from < until)
    }

    /// Number of these tasks, from one end, that have at most `work` units together.
    fn fitting(&self, work: u64) -> u64 {
        work.checked_div(self.weight).map_or(self.count, |tasks| tasks.min(self.count))
    }

    /// Number of tasks that aim before unit `cut` of a row in which the first begins at unit `start`.
    fn aiming_before(&self, start: u64, cut: u64, aim: Aim) -> u64 {
        match cut.saturating_sub(aim.of(start, self.weight)) {
            0 => 0,
            room => room
                .checked_sub(1)
                .and_then(|room| room.checked_div(self.weight))
                .map_or(self.count, |more| self.count.min(more.saturating_add(1))),
        }
    }

    /// Number of tasks that aim at unit `cut` or behind it, of a row in which the last ends before unit `end`.
    fn aiming_from(&self, end: u64, cut: u64, aim: Aim) -> u64 {
        self.count - self.aiming_before(end - self.work(), cut, aim)
    }
}

impl From<Task> for Segment {
    fn from(task: Task) -> Segment {
        Segment { first: task.id, count: 1, weight: task.weight, payload: task.payload }
    }
}

/// Tasks that travel from one node to another, in order. Sums stay below 2^64 while those of the whole job do, for which its input is
/// checked; numbers of a garbled message wrap around.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskBatch {
    segments: VecDeque<Segment>,
    count: u64,
    work: u64,
}

impl TaskBatch {
    /// Returns an empty batch with room for this number of segments.
    pub fn with_capacity(segments: usize) -> TaskBatch {
        TaskBatch { segments: VecDeque::with_capacity(segments), ..TaskBatch::default() }
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns true if it holds no task.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of the tasks' work units.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Work units of the largest task, 0 if there is none.
    pub fn largest(&self) -> u64 {
        self.segments.iter().map(Segment::weight).max().unwrap_or(0)
    }

    /// Its segments, in order.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = &Segment> + DoubleEndedIterator {
        self.segments.iter()
    }

    /// Adds tasks behind the others. Ranges that continue each other become one.
    pub fn push(&mut self, segment: Segment) {
        let (count, work) = (segment.len(), segment.work());
        if count == 0 {
            return;
        }
        self.count = self.count.wrapping_add(count);
        self.work = self.work.wrapping_add(work);
        if self.segments.back_mut().is_some_and(|back| back.join(&segment)) {
            return;
        }
        self.reserve();
        self.segments.push_back(segment);
    }

    /// Most batches of most nodes are one range: the first segment takes room for one, not for several.
    fn reserve(&mut self) {
        if self.segments.capacity() == 0 {
            self.segments.reserve_exact(1);
        }
    }

    /// Adds tasks in front of the others.
    fn push_front(&mut self, mut segment: Segment) {
        let (count, work) = (segment.len(), segment.work());
        if count == 0 {
            return;
        }
        self.count = self.count.wrapping_add(count);
        self.work = self.work.wrapping_add(work);
        match self.segments.front_mut() {
            Some(front) if segment.join(front) => *front = segment,
            _ => {
                self.reserve();
                self.segments.push_front(segment);
            }
        }
    }

    /// Adds another batch's tasks behind these.
    pub fn append(&mut self, other: TaskBatch) {
        if self.segments.is_empty() {
            *self = other;
            return;
        }
        for segment in other.segments {
            self.push(segment);
        }
    }

    /// Adds another batch's tasks in front of these, in their order.
    pub fn prepend(&mut self, mut other: TaskBatch) {
        if self.segments.is_empty() {
            *self = other;
            return;
        }
        while let Some(last) = other.segments.pop_back() {
            self.push_front(last);
        }
    }

    /// Takes a segment, or its first tasks, off the front.
    fn pop_front(&mut self, tasks: u64) -> Option<Segment> {
        let front = self.segments.front_mut()?;
        let segment = if tasks < front.len() { front.cut(tasks) } else { self.segments.pop_front()? };
        self.count -= segment.len();
        self.work -= segment.work();
        Some(segment)
    }

    /// Takes a segment, or its last tasks, off the back.
    fn pop_back(&mut self, tasks: u64) -> Option<Segment> {
        let mut segment = self.segments.pop_back()?;
        if tasks < segment.len() {
            let kept = segment.cut(segment.len() - tasks);
            self.segments.push_back(kept);
        }
        self.count -= segment.len();
        self.work -= segment.work();
        Some(segment)
    }

    /// Takes tasks off the front, in order, while the next one fits into the remainder of `work`.
    pub fn take_front(&mut self, work: u64) -> TaskBatch {
        if work >= self.work {
            return if work == 0 { TaskBatch::default() } else { std::mem::take(self) };
        }
        let mut taken = TaskBatch::default();
        while taken.work < work
            && let Some(fitting) = self.segments.front().map(|front| front.fitting(work - taken.work)).filter(|fitting| *fitting > 0)
            && let Some(segment) = self.pop_front(fitting)
        {
            taken.push(segment);
        }
        taken
    }

    /// Takes tasks off the back while the next one fits into the remainder of `work`; they keep their order.
    pub fn take_back(&mut self, work: u64) -> TaskBatch {
        if work >= self.work {
            return if work == 0 { TaskBatch::default() } else { std::mem::take(self) };
        }
        let mut taken = TaskBatch::default();
        while taken.work < work
            && let Some(fitting) = self.segments.back().map(|back| back.fitting(work - taken.work)).filter(|fitting| *fitting > 0)
            && let Some(segment) = self.pop_back(fitting)
        {
            taken.push_front(segment);
        }
        taken
    }

    /// Picks tasks from anywhere, going backwards: each that fits into what `work` has left. Both lots keep their order.
    pub(super) fn pick(&mut self, work: u64) -> TaskBatch {
        let mut taken = TaskBatch::default();
        let mut kept = TaskBatch::default();
        while let Some(last) = self.segments.back() {
            let fitting = if taken.work < work { last.fitting(work - taken.work) } else { 0 };
            match self.pop_back(if fitting == 0 { u64::MAX } else { fitting }) {
                Some(segment) if fitting == 0 => kept.push_front(segment),
                Some(segment) => taken.push_front(segment),
                None => break,
            }
        }
        *self = kept;
        taken
    }

    /// The tasks with ids in these rows (first id and number, in ascending order, apart from each other): weight, first id and number of each lot.
    pub(super) fn lots_in<'a>(&'a self, rows: &'a [(TaskId, u64)]) -> impl Iterator<Item = (u64, TaskId, u64)> + 'a {
        let within =
            |segment: &'a Segment| segment.parts_in(rows).map(move |(from, until)| (segment.weight, segment.first + from, until - from));
        self.segments.iter().flat_map(within)
    }

    /// Takes the tasks with ids in such rows. Both lots keep their order.
    pub(super) fn take_rows(&mut self, rows: &[(TaskId, u64)]) -> TaskBatch {
        let (mut taken, mut kept) = (TaskBatch::default(), TaskBatch::default());
        for mut segment in std::mem::take(self).segments {
            let parts: Vec<(u64, u64)> = segment.parts_in(rows).collect();
            let mut at = 0;
            for (from, until) in parts {
                for (end, lot) in [(from, &mut kept), (until, &mut taken)] {
                    match end - at {
                        0 => {}
                        all if all == segment.count => {
                            lot.push(std::mem::replace(&mut segment, Segment::range(0, 0)));
                        }
                        some => lot.push(segment.cut(some)),
                    }
                    at = end;
                }
            }
            kept.push(segment);
        }
        *self = kept;
        taken
    }

    /// Takes the tasks at some places, of which `at` is that of the first task: first place, number and receiver, in ascending order and not
    /// overlapping. Both what is taken and what is left keep their order.
    pub(super) fn take_places(&mut self, at: u64, parts: &[(u64, u64, NodeId)], taken: &mut BTreeMap<NodeId, TaskBatch>) {
        let (mut at, mut kept) = (at, TaskBatch::default());
        let mut parts = parts[parts.partition_point(|(first, count, _)| first + count <= at)..].iter().peekable();
        for mut segment in std::mem::take(self).segments {
            let end = at + segment.len();
            while at < end {
                let Some(&&(first, count, dst)) = parts.peek().filter(|(first, ..)| *first < end) else {
                    kept.push(segment.cut_or_all(end - at));
                    at = end;
                    break;
                };
                if at < first {
                    kept.push(segment.cut_or_all(first - at));
                    at = first;
                }
                let until = (first + count).min(end);
                taken.entry(dst).or_default().push(segment.cut_or_all(until - at));
                at = until;
                if until == first + count {
                    parts.next();
                }
            }
        }
        *self = kept;
    }

    /// Work units of the lightest task.
    pub(super) fn lightest(&self) -> Option<u64> {
        self.segments.iter().map(Segment::weight).min()
    }

    /// Takes the last task of exactly this weight.
    pub(super) fn take_one(&mut self, weight: u64) -> TaskBatch {
        let Some(at) = self.segments.iter().rposition(|segment| segment.weight() == weight) else { return TaskBatch::default() };
        let mut behind = TaskBatch { segments: self.segments.split_off(at + 1), count: 0, work: 0 };
        behind.count = behind.segments.iter().map(Segment::len).sum();
        behind.work = behind.segments.iter().map(Segment::work).sum();
        self.count -= behind.count;
        self.work -= behind.work;
        let one = self.pop_back(1).into_iter().collect();
        self.append(behind);
        one
    }

    /// Takes the last task.
    pub(super) fn take_last(&mut self) -> TaskBatch {
        self.pop_back(1).into_iter().collect()
    }

    /// Takes tasks off the front, the first of which begins at unit `at` of some row, as long as they aim before unit `cut`.
    pub fn take_front_before(&mut self, at: u64, cut: u64, aim: Aim) -> TaskBatch {
        let mut taken = TaskBatch::default();
        while let Some(front) = self.segments.front() {
            let start = at + taken.work;
            match front.aiming_before(start, cut, aim) {
                0 => break,
                tasks => self.pop_front(tasks).into_iter().for_each(|segment| taken.push(segment)),
            }
        }
        taken
    }

    /// Takes tasks off the back, the last of which ends before unit `end` of some row, as long as they aim at unit `cut` or behind it.
    pub fn take_back_from(&mut self, end: u64, cut: u64, aim: Aim) -> TaskBatch {
        let mut taken = TaskBatch::default();
        while let Some(back) = self.segments.back() {
            let until = end - taken.work;
            match back.aiming_from(until, cut, aim) {
                0 => break,
                tasks => self.pop_back(tasks).into_iter().for_each(|segment| taken.push_front(segment)),
            }
        }
        taken
    }
}

impl FromIterator<Segment> for TaskBatch {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> TaskBatch {
        let mut batch = TaskBatch::default();
        segments.into_iter().for_each(|segment| batch.push(segment));
        batch
    }
}
