//! Tasks that were born at a node or came there, until its policy places them.
//!
//! Most are placed at once and in order, a few much later. So they are kept in a row sorted by number, with holes, and neither kind costs a
//! search.

use std::collections::VecDeque;

use crate::schedule::policy::ItemId;

/// Maximum number of holes in a row beyond the number of tasks that it holds.
const HOLES: usize = 64;

pub(super) struct Unplaced<T> {
    /// In ascending order; `None` where one was placed. The first is never a hole.
    row: VecDeque<(ItemId, Option<T>)>,
    held: usize,
}

impl<T> Default for Unplaced<T> {
    fn default() -> Self {
        Unplaced { row: VecDeque::new(), held: 0 }
    }
}

impl<T> Unplaced<T> {
    pub fn len(&self) -> usize {
        self.held
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Adds a task. No number comes twice.
    pub fn push(&mut self, id: ItemId, item: T) {
        self.held += 1;
        match self.row.back() {
            // Its migration took longer than that of one with a higher number.
            Some((last, _)) if *last > id => {
                let at = self.row.partition_point(|(other, _)| *other < id);
                self.row.insert(at, (id, Some(item)));
            }
            _ => self.row.push_back((id, Some(item))),
        }
    }

    pub fn get_mut(&mut self, id: ItemId) -> Option<&mut T> {
        let at = self.find(id)?;
        self.row[at].1.as_mut()
    }

    pub fn remove(&mut self, id: ItemId) -> Option<T> {
        let at = self.find(id)?;
        let item = self.row[at].1.take()?;
        self.held -= 1;
        while let Some((_, None)) = self.row.front() {
            self.row.pop_front();
        }
        if self.row.len() > 2 * self.held + HOLES {
            self.row.retain(|(_, item)| item.is_some());
        }
        Some(item)
    }

    /// Index of a number: found at once as long as none is missing before it.
    fn find(&self, id: ItemId) -> Option<usize> {
        let first = self.row.front()?.0;
        let guess = usize::try_from(id.0.checked_sub(first.0)?).ok()?;
        match self.row.get(guess) {
            Some((found, _)) if *found == id => Some(guess),
            _ => self.row.binary_search_by_key(&id, |(id, _)| *id).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_would(steps in prop::collection::vec((0u64..40, any::<bool>()), 0..400)) {
            let (mut row, mut map) = (Unplaced::default(), BTreeMap::new());
            let (mut late, mut next) = (Vec::new(), 1);
            for (number, enters) in steps {
                if enters {
                    // Now and then a number is given out, and comes in later.
                    if number == 0 { late.push(next) } else { row.push(ItemId(next), next); map.insert(next, next); }
                    next += 1;
                } else if number == 1 && let Some(id) = late.pop() {
                    row.push(ItemId(id), id);
                    map.insert(id, id);
                } else {
                    let id = next.saturating_sub(number);
                    prop_assert_eq!(row.get_mut(ItemId(id)).copied(), map.get(&id).copied());
                    prop_assert_eq!(row.remove(ItemId(id)), map.remove(&id));
                }
                prop_assert_eq!((row.len(), row.is_empty()), (map.len(), map.is_empty()));
            }
            prop_assert_eq!(row.row.into_iter().filter_map(|(_, item)| item).collect::<Vec<_>>(), map.into_values().collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_that_stays_does_not_keep_the_places_of_those_that_go() {
        let mut row = Unplaced::default();
        row.push(ItemId(1), 1);
        for id in 2..10_000 {
            row.push(ItemId(id), id);
            assert_eq!(row.remove(ItemId(id)), Some(id));
        }
        assert!(row.row.len() <= HOLES + 3);
        assert_eq!((row.remove(ItemId(1)), row.remove(ItemId(1))), (Some(1), None));
    }
}
