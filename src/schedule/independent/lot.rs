//! Tasks that are given together. What follows each other takes no more room than one task, however many there are.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::load::{Checksum, Segment};

/// Tasks, in the order in which they are to be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lot {
    /// So many from the first on, each `step` after the one before.
    Span {
        first: u64,
        count: u64,
        step: u64,
    },
    List(VecDeque<u64>),
}

impl Lot {
    /// These tasks.
    pub fn list(tasks: impl IntoIterator<Item = usize>) -> Lot {
        Lot::List(tasks.into_iter().map(|task| task as u64).collect())
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match self {
            Lot::Span { count, .. } => *count,
            Lot::List(tasks) => tasks.len() as u64,
        }
    }

    /// Them, in order.
    pub fn for_each(&self, mut each: impl FnMut(usize)) {
        match self {
            Lot::Span { first, count, step } => (0..*count).for_each(|i| each((first + i * step) as usize)),
            Lot::List(tasks) => tasks.iter().for_each(|task| each(*task as usize)),
        }
    }

    /// Them, in order, as a list.
    pub fn tasks(&self) -> Vec<usize> {
        let mut tasks = Vec::with_capacity(self.count() as usize);
        self.for_each(|task| tasks.push(task));
        tasks
    }

    /// Takes out the first so many; all, if there are fewer.
    pub fn take_first(&mut self, most: u64) -> Lot {
        match self {
            Lot::Span { first, count, step } => {
                let taken = most.min(*count);
                let front = Lot::Span { first: *first, count: taken, step: *step };
                *first += taken * *step;
                *count -= taken;
                front
            }
            Lot::List(tasks) => Lot::List(tasks.drain(..tasks.len().min(most as usize)).collect()),
        }
    }

    /// Appends another lot, if that keeps the form: one row goes on, or a list. Otherwise gives it back.
    pub fn append(&mut self, other: Lot) -> Option<Lot> {
        match (self, other) {
            (Lot::Span { first, count, step: 1 }, Lot::Span { first: next, count: more, step: 1 }) if *first + *count == next => {
                *count += more;
                None
            }
            (Lot::List(tasks), Lot::List(more)) => {
                tasks.extend(more);
                None
            }
            (_, other) => Some(other),
        }
    }

    /// The sum over their numbers.
    pub fn checksum(&self) -> Checksum {
        if let Lot::Span { first, count, step: 1 } = self {
            return Checksum::of(&Segment::range(*first, *count));
        }
        let mut sum = Checksum::default();
        self.for_each(|task| sum = sum.and(Checksum::of(&Segment::range(task as u64, 1))));
        sum
    }
}

/// Appends a lot to others.
pub fn push(lots: &mut Vec<Lot>, lot: Lot) {
    let rest = match lots.last_mut() {
        Some(last) => last.append(lot),
        None => Some(lot),
    };
    lots.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_are_taken_apart_and_put_together() {
        let mut row = Lot::Span { first: 3, count: 5, step: 1 };
        let front = row.take_first(2);
        assert_eq!((front.tasks(), row.tasks()), (vec![3, 4], vec![5, 6, 7]));
        let mut lots = vec![front];
        push(&mut lots, row);
        assert_eq!(lots, [Lot::Span { first: 3, count: 5, step: 1 }]);
        push(&mut lots, Lot::Span { first: 9, count: 1, step: 1 });
        assert_eq!(lots.len(), 2, "8 is missing between");
        let mut every_third = Lot::Span { first: 1, count: 3, step: 3 };
        assert_eq!(every_third.take_first(9).tasks(), [1, 4, 7]);
        assert_eq!(every_third.count(), 0);
        let mut list = Lot::list([4, 2]);
        assert_eq!(list.append(Lot::list([9])), None);
        assert_eq!((list.take_first(1).tasks(), list.tasks()), (vec![4], vec![2, 9]));
    }

    #[test]
    fn checksums_do_not_depend_on_the_form() {
        assert_eq!(Lot::Span { first: 3, count: 4, step: 1 }.checksum(), Lot::list([6, 3, 5, 4]).checksum());
        assert_ne!(Lot::list([3, 5]).checksum(), Lot::list([4, 4]).checksum());
    }
}
