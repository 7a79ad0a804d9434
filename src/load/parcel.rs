//! Tasks, and lots of them that lie together.

use std::collections::VecDeque;

use bytes::Bytes;

use super::position::Aim;

/// A task's number, unique in the whole job.
pub type TaskId = u64;

/// A task with something to carry, or of another size than one work unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// Work units, at least 0.
    pub weight: u64,
    pub payload: Bytes,
}

/// Some tasks that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Unit tasks without payload, by id: `first .. first + count`, count at least 1.
    Range {
        first: TaskId,
        count: u64,
    },
    One(Task),
}

impl Segment {
    fn count(&self) -> u64 {
        match self {
            Segment::Range { count, .. } => *count,
            Segment::One(_) => 1,
        }
    }

    fn work(&self) -> u64 {
        match self {
            Segment::Range { count, .. } => *count,
            Segment::One(task) => task.weight,
        }
    }

    /// Work units of its largest task.
    fn largest(&self) -> u64 {
        match self {
            Segment::Range { .. } => 1,
            Segment::One(task) => task.weight,
        }
    }

    /// Cuts a segment in two; `head` must be below its count.
    fn cut(&mut self, head: u64) -> Segment {
        match self {
            Segment::Range { first, count } => {
                let front = Segment::Range { first: *first, count: head };
                *first += head;
                *count -= head;
                front
            }
            Segment::One(_) => Segment::Range { first: 0, count: 0 },
        }
    }

    /// Of the tasks of this segment, from one end, how many have no more than `work` units together.
    fn fitting(&self, work: u64) -> u64 {
        match self {
            Segment::Range { count, .. } => work.min(*count),
            Segment::One(task) => u64::from(task.weight <= work),
        }
    }
}

/// Tasks on their way from one node to another, in order. Sums stay below 2^64 as long as those of the whole job do, which its input is
/// checked for; what a garbled message claims wraps around.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parcel {
    segments: VecDeque<Segment>,
    count: u64,
    work: u64,
}

impl Parcel {
    /// An empty parcel with room for so many segments.
    pub fn with_capacity(segments: usize) -> Parcel {
        Parcel { segments: VecDeque::with_capacity(segments), ..Parcel::default() }
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of the tasks' work units.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Work units of the largest task, 0 if there is none.
    pub fn largest(&self) -> u64 {
        self.segments.iter().map(Segment::largest).max().unwrap_or(0)
    }

    pub fn segments(&self) -> impl ExactSizeIterator<Item = &Segment> + DoubleEndedIterator {
        self.segments.iter()
    }

    /// Adds tasks behind the others. Ranges that continue each other become one.
    pub fn push(&mut self, segment: Segment) {
        let (count, work) = (segment.count(), segment.work());
        if count == 0 {
            return;
        }
        self.count = self.count.wrapping_add(count);
        self.work = self.work.wrapping_add(work);
        if let (Some(Segment::Range { first, count }), Segment::Range { first: next, count: more }) = (self.segments.back_mut(), &segment)
            && first.wrapping_add(*count) == *next
        {
            *count = count.wrapping_add(*more);
            return;
        }
        self.reserve();
        self.segments.push_back(segment);
    }

    /// Most parcels of most nodes are one range: the first segment takes room for one, not for several.
    fn reserve(&mut self) {
        if self.segments.capacity() == 0 {
            self.segments.reserve_exact(1);
        }
    }

    /// Adds tasks in front of the others.
    fn push_front(&mut self, segment: Segment) {
        let (count, work) = (segment.count(), segment.work());
        if count == 0 {
            return;
        }
        self.count = self.count.wrapping_add(count);
        self.work = self.work.wrapping_add(work);
        if let (Some(Segment::Range { first, count }), Segment::Range { first: earlier, count: more }) =
            (self.segments.front_mut(), &segment)
            && earlier.wrapping_add(*more) == *first
        {
            *first = *earlier;
            *count = count.wrapping_add(*more);
            return;
        }
        self.reserve();
        self.segments.push_front(segment);
    }

    /// Adds another parcel's tasks behind these.
    pub fn append(&mut self, other: Parcel) {
        if self.segments.is_empty() {
            *self = other;
            return;
        }
        for segment in other.segments {
            self.push(segment);
        }
    }

    /// Adds another parcel's tasks in front of these, in their order.
    pub fn prepend(&mut self, mut other: Parcel) {
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
        let segment = if tasks < front.count() { front.cut(tasks) } else { self.segments.pop_front()? };
        self.count -= segment.count();
        self.work -= segment.work();
        Some(segment)
    }

    /// Takes a segment, or its last tasks, off the back.
    fn pop_back(&mut self, tasks: u64) -> Option<Segment> {
        let mut segment = self.segments.pop_back()?;
        if tasks < segment.count() {
            let kept = segment.cut(segment.count() - tasks);
            self.segments.push_back(kept);
        }
        self.count -= segment.count();
        self.work -= segment.work();
        Some(segment)
    }

    /// Takes tasks off the front, one after the other, as long as the next one fits into what `work` has left.
    pub fn take_front(&mut self, work: u64) -> Parcel {
        if work >= self.work {
            return if work == 0 { Parcel::default() } else { std::mem::take(self) };
        }
        let mut taken = Parcel::default();
        while taken.work < work
            && let Some(fitting) = self.segments.front().map(|front| front.fitting(work - taken.work)).filter(|fitting| *fitting > 0)
            && let Some(segment) = self.pop_front(fitting)
        {
            taken.push(segment);
        }
        taken
    }

    /// Takes tasks off the back, one after the other, as long as the next one fits into what `work` has left; they keep their order.
    pub fn take_back(&mut self, work: u64) -> Parcel {
        if work >= self.work {
            return if work == 0 { Parcel::default() } else { std::mem::take(self) };
        }
        let mut taken = Parcel::default();
        while taken.work < work
            && let Some(fitting) = self.segments.back().map(|back| back.fitting(work - taken.work)).filter(|fitting| *fitting > 0)
            && let Some(segment) = self.pop_back(fitting)
        {
            taken.push_front(segment);
        }
        taken
    }

    /// Picks tasks from anywhere, going backwards: each that fits into what `work` has left. Both lots keep their order.
    pub(super) fn pick(&mut self, work: u64) -> Parcel {
        let mut taken = Parcel::default();
        let mut kept = Parcel::default();
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

    /// Work units of the lightest task.
    pub(super) fn lightest(&self) -> Option<u64> {
        self.segments.iter().map(Segment::largest).min()
    }

    /// Takes the last task of exactly this weight.
    pub(super) fn take_one(&mut self, weight: u64) -> Parcel {
        let Some(at) = self.segments.iter().rposition(|segment| segment.largest() == weight) else { return Parcel::default() };
        let mut behind = Parcel { segments: self.segments.split_off(at + 1), count: 0, work: 0 };
        behind.count = behind.segments.iter().map(Segment::count).sum();
        behind.work = behind.segments.iter().map(Segment::work).sum();
        self.count -= behind.count;
        self.work -= behind.work;
        let one = self.pop_back(1).into_iter().collect();
        self.append(behind);
        one
    }

    /// Takes tasks off the front, the first of which begins at unit `at` of some row, as long as they aim before unit `cut`.
    pub fn take_front_before(&mut self, at: u64, cut: u64, aim: Aim) -> Parcel {
        let mut taken = Parcel::default();
        while let Some(front) = self.segments.front() {
            let start = at + taken.work;
            let tasks = match front {
                Segment::Range { count, .. } => cut.saturating_sub(start).min(*count),
                Segment::One(task) => u64::from(aim.of(start, task.weight) < cut),
            };
            match tasks {
                0 => break,
                _ => self.pop_front(tasks).into_iter().for_each(|segment| taken.push(segment)),
            }
        }
        taken
    }

    /// Takes tasks off the back, the last of which ends before unit `end` of some row, as long as they aim at unit `cut` or behind it.
    pub fn take_back_from(&mut self, end: u64, cut: u64, aim: Aim) -> Parcel {
        let mut taken = Parcel::default();
        while let Some(back) = self.segments.back() {
            let until = end - taken.work;
            let tasks = match back {
                Segment::Range { count, .. } => until.saturating_sub(cut).min(*count),
                Segment::One(task) => u64::from(aim.of(until - task.weight, task.weight) >= cut),
            };
            match tasks {
                0 => break,
                _ => self.pop_back(tasks).into_iter().for_each(|segment| taken.push_front(segment)),
            }
        }
        taken
    }
}

impl FromIterator<Segment> for Parcel {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Parcel {
        let mut parcel = Parcel::default();
        segments.into_iter().for_each(|segment| parcel.push(segment));
        parcel
    }
}
