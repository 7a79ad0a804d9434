//! The tasks that a node holds.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A task's number, unique in the whole job.
pub type TaskId = u64;

/// A task with something to carry.
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

    fn push_front(&mut self, segment: Segment) {
        let (count, work) = (segment.count(), segment.work());
        if count == 0 {
            return;
        }
        self.count = self.count.wrapping_add(count);
        self.work = self.work.wrapping_add(work);
        if let (Some(Segment::Range { first, count }), Segment::Range { first: earlier, count: more }) =
            (self.segments.front_mut(), &segment)
            && *earlier + *more == *first
        {
            *first = *earlier;
            *count += more;
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

    /// Takes the first tasks, at most as many as there are.
    pub fn take_front(&mut self, tasks: u64) -> Parcel {
        if tasks >= self.count {
            return std::mem::take(self);
        }
        if self.are_single() {
            let rest = self.segments.split_off(tasks as usize);
            let front = std::mem::replace(&mut self.segments, rest);
            return self.cut_off(front);
        }
        let mut taken = Parcel::default();
        while taken.count < tasks {
            let missing = tasks - taken.count;
            let Some(front) = self.segments.front_mut() else { break };
            let segment = if front.count() <= missing {
                self.segments.pop_front().unwrap_or(Segment::Range { first: 0, count: 0 })
            } else {
                front.cut(missing)
            };
            taken.push(segment);
        }
        self.count -= taken.count;
        self.work -= taken.work;
        taken
    }

    /// Takes the last tasks, at most as many as there are; they keep their order.
    pub fn take_back(&mut self, tasks: u64) -> Parcel {
        let tasks = tasks.min(self.count);
        if tasks < self.count && self.are_single() {
            let back = self.segments.split_off((self.count - tasks) as usize);
            return self.cut_off(back);
        }
        let front = self.take_front(self.count - tasks);
        std::mem::replace(self, front)
    }
}

impl Parcel {
    /// An empty parcel with room for so many segments.
    pub fn with_capacity(segments: usize) -> Parcel {
        Parcel { segments: VecDeque::with_capacity(segments), ..Parcel::default() }
    }

    /// Whether every segment is one task, so that a row of tasks can be cut without looking at each.
    fn are_single(&self) -> bool {
        self.segments.len() as u64 == self.count
    }

    /// Segments that were taken out, as a parcel of single tasks of their own.
    fn cut_off(&mut self, segments: VecDeque<Segment>) -> Parcel {
        let (count, work) = (segments.len() as u64, segments.iter().fold(0, |sum: u64, segment| sum.wrapping_add(segment.work())));
        self.count -= count;
        self.work = self.work.wrapping_sub(work);
        Parcel { segments, count, work }
    }
}

impl FromIterator<Segment> for Parcel {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Parcel {
        let mut parcel = Parcel::default();
        segments.into_iter().for_each(|segment| parcel.push(segment));
        parcel
    }
}

/// The tasks that a node holds, in order: what came in front of its own, its own, what came behind them.
///
/// A task is a node's *own* from the start; one that left and came back is foreign, like all that arrive. Walks give away foreign tasks
/// first, so that no task travels that did not have to.
#[derive(Clone, Debug, Default)]
pub struct Pile {
    before: Parcel,
    own: Parcel,
    behind: Parcel,
}

impl Pile {
    /// A pile of a node's own tasks.
    pub fn new(own: Parcel) -> Pile {
        Pile { own, ..Pile::default() }
    }

    /// Number of tasks.
    pub fn len(&self) -> u64 {
        self.before.count + self.own.count + self.behind.count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of the tasks' work units.
    pub fn work(&self) -> u64 {
        self.before.work + self.own.work + self.behind.work
    }

    /// Number of own tasks that never left.
    pub fn own(&self) -> u64 {
        self.own.count
    }

    /// Takes foreign tasks first (the last that came), then own ones from the back.
    pub fn take(&mut self, tasks: u64) -> Parcel {
        let mut taken = self.behind.take_back(tasks);
        if taken.count < tasks {
            let mut earlier = self.before.take_front(tasks - taken.count);
            earlier.append(taken);
            taken = earlier;
        }
        if taken.count < tasks {
            let mut own = self.own.take_back(tasks - taken.count);
            own.append(taken);
            taken = own;
        }
        taken
    }

    /// Takes the first tasks in the pile's order.
    pub fn take_front(&mut self, tasks: u64) -> Parcel {
        let mut taken = self.before.take_front(tasks);
        taken.append(self.own.take_front(tasks - taken.count));
        taken.append(self.behind.take_front(tasks - taken.count));
        taken
    }

    /// Takes the last tasks in the pile's order; they keep it.
    pub fn take_back(&mut self, tasks: u64) -> Parcel {
        let behind = self.behind.take_back(tasks);
        let own = self.own.take_back(tasks - behind.count);
        let mut taken = self.before.take_back(tasks - behind.count - own.count);
        taken.append(own);
        taken.append(behind);
        taken
    }

    /// Puts arrived tasks behind all others.
    pub fn put_behind(&mut self, parcel: Parcel) {
        self.behind.append(parcel);
    }

    /// Puts arrived tasks in front of all others, in their order.
    pub fn put_before(&mut self, mut parcel: Parcel) {
        while let Some(last) = parcel.segments.pop_back() {
            self.before.push_front(last);
        }
    }

    /// All tasks in order.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.before.segments().chain(self.own.segments()).chain(self.behind.segments())
    }

    /// All tasks in order, out of the pile.
    pub fn into_parcel(self) -> Parcel {
        let mut all = self.before;
        all.append(self.own);
        all.append(self.behind);
        all
    }

    /// The order-free sum over all tasks.
    pub fn checksum(&self) -> Checksum {
        self.segments().map(Checksum::of).fold(Checksum::default(), Checksum::and)
    }
}

/// An order-free sum over tasks: what is the same before and after says that none was lost, doubled or changed. Ranges are summed in
/// closed form, so a billion tasks cost no more than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Number of tasks.
    pub tasks: u64,
    /// Sum of work units.
    pub work: u64,
    /// Sum of ids and of their squares, modulo 2^128.
    pub ids: u128,
    pub squares: u128,
    /// Sum of payload bytes.
    pub payload: u64,
}

impl Checksum {
    /// The sum over one segment.
    pub fn of(segment: &Segment) -> Checksum {
        match segment {
            Segment::Range { first, count } => {
                let (first, count) = (u128::from(*first), u128::from(*count));
                // Below `count`: sums of i and of i^2.
                let sum = triangle(count);
                let squares = square_pyramid(count);
                Checksum {
                    tasks: count as u64,
                    work: count as u64,
                    ids: first.wrapping_mul(count).wrapping_add(sum),
                    squares: first
                        .wrapping_mul(first)
                        .wrapping_mul(count)
                        .wrapping_add(first.wrapping_mul(sum).wrapping_mul(2))
                        .wrapping_add(squares),
                    payload: 0,
                }
            }
            Segment::One(task) => {
                let id = u128::from(task.id);
                Checksum { tasks: 1, work: task.weight, ids: id, squares: id.wrapping_mul(id), payload: task.payload.len() as u64 }
            }
        }
    }

    /// The sum over two lots of tasks.
    pub fn and(self, other: Checksum) -> Checksum {
        Checksum {
            tasks: self.tasks.wrapping_add(other.tasks),
            work: self.work.wrapping_add(other.work),
            ids: self.ids.wrapping_add(other.ids),
            squares: self.squares.wrapping_add(other.squares),
            payload: self.payload.wrapping_add(other.payload),
        }
    }
}

/// 0 + 1 + .. + (n - 1), for n up to 2^64.
fn triangle(n: u128) -> u128 {
    n * n.saturating_sub(1) / 2
}

/// 0 + 1 + 4 + .. + (n - 1)^2 modulo 2^128: divided by 2 and 3 before the last multiplication.
fn square_pyramid(n: u128) -> u128 {
    let product = triangle(n);
    let odd = 2 * n.max(1) - 1;
    if product.is_multiple_of(3) { (product / 3).wrapping_mul(odd) } else { product.wrapping_mul(odd / 3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(first: u64, count: u64) -> Segment {
        Segment::Range { first, count }
    }

    fn task(id: u64) -> Segment {
        Segment::One(Task { id, weight: 1, payload: Bytes::from(vec![id as u8; 3]) })
    }

    fn ids<'a>(segments: impl Iterator<Item = &'a Segment>) -> Vec<u64> {
        segments
            .flat_map(|segment| match segment {
                Segment::Range { first, count } => (*first..first + count).collect(),
                Segment::One(task) => vec![task.id],
            })
            .collect()
    }

    #[test]
    fn foreign_tasks_leave_first_and_own_ones_only_then() {
        let mut pile = Pile::new([range(10, 5)].into_iter().collect());
        pile.put_behind([range(90, 2)].into_iter().collect());
        pile.put_before([range(70, 2)].into_iter().collect());
        assert_eq!((pile.len(), pile.own()), (9, 5));
        assert_eq!(ids(pile.take(3).segments()), [70, 90, 91]);
        assert_eq!(ids(pile.take(2).segments()), [14, 71]);
        assert_eq!((pile.len(), pile.own()), (4, 4));
        assert_eq!(pile.take(9).len(), 4);
        assert!(pile.is_empty());
    }

    #[test]
    fn ranges_that_continue_each_other_are_one() {
        let mut pile = Pile::default();
        for first in (0..100).step_by(10) {
            pile.put_behind([range(first, 10)].into_iter().collect());
        }
        for first in (100..200u32).step_by(10).rev().map(u64::from) {
            pile.put_before([range(first, 10)].into_iter().collect());
        }
        assert_eq!(pile.segments().collect::<Vec<_>>(), [&range(100, 100), &range(0, 100)]);
    }

    proptest! {
        #[test]
        fn taking_splits_as_a_list_does(counts in prop::collection::vec((0u64..5, any::<bool>()), 0..8), cuts in prop::collection::vec((0u64..9, 0..3), 0..12)) {
            let mut next = 1000;
            let mut pile = Pile::default();
            let mut list: Vec<u64> = Vec::new();
            for (count, single) in counts {
                for _ in 0..if single { count } else { 1 } {
                    let segment = if single { task(next) } else { range(next, count) };
                    list.extend(ids([&segment].into_iter()));
                    pile.put_behind([segment].into_iter().collect());
                    next += 50;
                }
            }
            let sum = pile.checksum();
            let mut taken_sum = Checksum::default();
            for (tasks, from) in cuts {
                let parcel = if from == 0 { pile.take_front(tasks) } else { pile.take_back(tasks) };
                let tasks = (tasks as usize).min(list.len());
                let expected: Vec<u64> = if from == 0 { list.drain(..tasks).collect() } else { list.split_off(list.len() - tasks) };
                prop_assert_eq!(ids(parcel.segments()), expected.clone());
                prop_assert_eq!(parcel.len(), expected.len() as u64);
                taken_sum = parcel.segments().map(Checksum::of).fold(taken_sum, Checksum::and);
            }
            prop_assert_eq!(ids(pile.segments()), list);
            prop_assert_eq!(pile.checksum().and(taken_sum), sum);
        }

        #[test]
        fn a_range_sums_as_its_tasks_do(first in any::<u64>(), count in 1u64..50) {
            let first = first.min(u64::MAX - count);
            let single = |id| Checksum { work: 1, payload: 0, ..Checksum::of(&Segment::One(Task { id, weight: 1, payload: Bytes::new() })) };
            let one_by_one = (first..first + count).map(single).fold(Checksum::default(), Checksum::and);
            prop_assert_eq!(Checksum::of(&range(first, count)), one_by_one);
        }
    }

    #[test]
    fn the_closed_form_holds_at_the_largest_ranges() {
        // Two halves sum to the whole, also where n (n-1) (2n-1) / 6 is far beyond 128 bits.
        let whole = Checksum::of(&range(0, u64::MAX));
        for cut in [1, 3, u64::MAX / 3, u64::MAX / 2, u64::MAX - 1] {
            let halves = Checksum::of(&range(0, cut)).and(Checksum::of(&range(cut, u64::MAX - cut)));
            assert_eq!(halves, whole);
        }
    }
}
