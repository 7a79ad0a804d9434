//! Items that balancers with knowledge of all tasks assign: single tasks, or blocks of alike tasks where there are very many.

use crate::load::Place;
use crate::topology::NodeId;

/// Largest number of tasks that are assigned one by one. With more, the tasks of long rows are assigned in blocks.
const SINGLE_UP_TO: u64 = 1 << 18;

/// Blocks of one size that a long row is cut into, before the rest is cut into smaller ones.
const BLOCKS: u64 = 32;

/// Tasks of a node as it reports them: weight and count of each row of tasks that may move, and their places if these are used.
pub(super) type Held = (Vec<(u64, u64)>, Vec<Place>);

/// Items to be assigned: tasks, or blocks of alike tasks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Items {
    pub weights: Vec<u64>,
    pub ranges: Vec<TaskRange>,
    pub places: Vec<Place>,
}

/// Range of consecutive tasks of a node, as positions among its tasks that may move.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskRange {
    pub node: NodeId,
    pub at: u64,
    pub count: u64,
}

impl Items {
    pub fn of(held: &[Held], single: bool) -> Items {
        Items::made(held, single, 1)
    }

    /// Each task for itself, those without work, too.
    pub fn all(held: &[Held]) -> Items {
        Items::made(held, true, 0)
    }

    /// Items from all tasks with at least `least` work.
    fn made(held: &[Held], single: bool, least: u64) -> Items {
        let tasks: u128 = held.iter().flat_map(|(rows, _)| rows).map(|(_, count)| u128::from(*count)).sum();
        let mut items = Items::default();
        for (node, (rows, places)) in (0..).zip(held) {
            let mut at = 0;
            for (weight, count) in rows {
                let end = at + count;
                while *weight >= least && at < end {
                    let count = if single || tasks <= u128::from(SINGLE_UP_TO) || !places.is_empty() { 1 } else { block(end - at) };
                    items.weights.push(weight * count);
                    items.places.extend(places.get(at as usize));
                    items.ranges.push(TaskRange { node, at, count });
                    at += count;
                }
                at = end;
            }
        }
        items
    }
}

/// Size of the next block when `left` equal tasks are left: whenever half of them are assigned, blocks become half as large, down to single tasks,
/// so that the large blocks carry the work and the small ones even it out.
fn block(left: u64) -> u64 {
    (left / (2 * BLOCKS)).checked_ilog2().map_or(1, |size| 1 << size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_cut_into_blocks_down_to_single_tasks() {
        let mut left = 1_000_000_000u64;
        let mut blocks = Vec::new();
        while left > 0 {
            blocks.push(block(left));
            left -= block(left);
        }
        assert_eq!(blocks.iter().sum::<u64>(), 1_000_000_000);
        assert!(blocks.len() < 2_000 && blocks[0] <= 1_000_000_000 / 32 && blocks.ends_with(&[1; 64]), "{}", blocks.len());
        assert!(blocks.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn tasks_are_items_with_their_places_among_those_that_may_move() {
        let held = [(vec![(3, 2), (0, 4), (5, 1)], Vec::new()), (Vec::new(), Vec::new()), (vec![(1, 1)], Vec::new())];
        let items = Items::of(&held, false);
        assert_eq!(items.weights, [3, 3, 5, 1]);
        let ranges: Vec<_> = items.ranges.iter().map(|range| (range.node, range.at, range.count)).collect();
        assert_eq!(ranges, [(0, 0, 1), (0, 1, 1), (0, 6, 1), (2, 0, 1)]);
        // 10^9 alike tasks on each node are some thousand items.
        let many = Items::of(&[(vec![(7, 1_000_000_000)], Vec::new()), (vec![(7, 1_000_000_000)], Vec::new())], false);
        assert!(many.ranges.len() < 4_000);
        assert_eq!(many.weights.iter().sum::<u64>(), 14_000_000_000);
    }
}
