//! Chunks: tasks that are given together. Consecutive tasks take no more room than one task.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::load::{Checksum, Segment};

/// Tasks, in the order in which they are to be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chunk {
    /// A number of tasks from the first on, each `step` after the one before.
    Span {
        /// Number of the first task.
        first: u64,
        /// Number of tasks.
        count: u64,
        /// Distance between the numbers of two tasks.
        step: u64,
    },
    /// Tasks by their numbers.
    List(VecDeque<u64>),
}

impl Chunk {
    /// These tasks.
    pub fn list(tasks: impl IntoIterator<Item = usize>) -> Chunk {
        Chunk::List(tasks.into_iter().map(|task| task as u64).collect())
    }

    /// Number of tasks.
    pub fn count(&self) -> u64 {
        match self {
            Chunk::Span { count, .. } => *count,
            Chunk::List(tasks) => tasks.len() as u64,
        }
    }

    /// The first task.
    pub fn first(&self) -> Option<usize> {
        match self {
            Chunk::Span { first, count, .. } => (*count > 0).then_some(*first as usize),
            Chunk::List(tasks) => tasks.front().map(|task| *task as usize),
        }
    }

    /// The tasks, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (first, count, step, list) = match self {
            Chunk::Span { first, count, step } => (*first, *count, *step, None),
            Chunk::List(tasks) => (0, 0, 0, Some(tasks)),
        };
        let span = (0..count).map(move |i| (first + i * step) as usize);
        span.chain(list.into_iter().flatten().map(|task| *task as usize))
    }

    /// Calls `each` for every task, in order.
    pub fn for_each(&self, mut each: impl FnMut(usize)) {
        match self {
            Chunk::Span { first, count, step } => (0..*count).for_each(|i| each((first + i * step) as usize)),
            Chunk::List(tasks) => tasks.iter().for_each(|task| each(*task as usize)),
        }
    }

    /// List of the tasks, in order.
    pub fn tasks(&self) -> Vec<usize> {
        let mut tasks = Vec::with_capacity(self.count() as usize);
        self.for_each(|task| tasks.push(task));
        tasks
    }

    /// Takes out the first `count` tasks; all, if there are fewer.
    pub fn take_first(&mut self, most: u64) -> Chunk {
        match self {
            Chunk::Span { first, count, step } => {
                let taken = most.min(*count);
                let front = Chunk::Span { first: *first, count: taken, step: *step };
                *first += taken * *step;
                *count -= taken;
                front
            }
            Chunk::List(tasks) => Chunk::List(tasks.drain(..tasks.len().min(most as usize)).collect()),
        }
    }

    /// Appends another chunk, if the result has the form of a row or of a list. Otherwise returns it.
    pub fn append(&mut self, other: Chunk) -> Option<Chunk> {
        match (self, other) {
            (Chunk::Span { first, count, step: 1 }, Chunk::Span { first: next, count: more, step: 1 }) if *first + *count == next => {
                *count += more;
                None
            }
            (Chunk::List(tasks), Chunk::List(more)) => {
                tasks.extend(more);
                None
            }
            (_, other) => Some(other),
        }
    }

    /// The sum over their numbers.
    pub fn checksum(&self) -> Checksum {
        if let Chunk::Span { first, count, step: 1 } = self {
            return Checksum::of(&Segment::range(*first, *count));
        }
        let mut sum = Checksum::default();
        self.for_each(|task| sum = sum.and(Checksum::of(&Segment::range(task as u64, 1))));
        sum
    }
}

/// Appends a chunk to others.
pub fn push(chunks: &mut Vec<Chunk>, chunk: Chunk) {
    let rest = match chunks.last_mut() {
        Some(last) => last.append(chunk),
        None => Some(chunk),
    };
    chunks.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_taken_apart_and_put_together() {
        let mut row = Chunk::Span { first: 3, count: 5, step: 1 };
        let front = row.take_first(2);
        assert_eq!((front.tasks(), row.tasks()), (vec![3, 4], vec![5, 6, 7]));
        let mut chunks = vec![front];
        push(&mut chunks, row);
        assert_eq!(chunks, [Chunk::Span { first: 3, count: 5, step: 1 }]);
        push(&mut chunks, Chunk::Span { first: 9, count: 1, step: 1 });
        assert_eq!(chunks.len(), 2, "8 is missing between");
        let mut every_third = Chunk::Span { first: 1, count: 3, step: 3 };
        assert_eq!(every_third.take_first(9).tasks(), [1, 4, 7]);
        assert_eq!(every_third.count(), 0);
        let mut list = Chunk::list([4, 2]);
        assert_eq!(list.append(Chunk::list([9])), None);
        assert_eq!((list.take_first(1).tasks(), list.tasks()), (vec![4], vec![2, 9]));
    }

    #[test]
    fn checksums_do_not_depend_on_the_form() {
        assert_eq!(Chunk::Span { first: 3, count: 4, step: 1 }.checksum(), Chunk::list([6, 3, 5, 4]).checksum());
        assert_ne!(Chunk::list([3, 5]).checksum(), Chunk::list([4, 4]).checksum());
    }
}
