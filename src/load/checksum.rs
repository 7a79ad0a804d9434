//! Checksum of tasks, which is the same before and after they move.

use serde::{Deserialize, Serialize};

use super::Segment;

/// An order-independent sum over tasks: if it is the same before and after, no task was lost, duplicated or changed. Ranges are summed in
/// closed form, so a billion tasks cost no more than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Number of tasks.
    pub tasks: u64,
    /// Sum of work units.
    pub work: u64,
    /// Sum of the ids, modulo 2^128.
    pub ids: u128,
    /// Sum of the squares of the ids, modulo 2^128.
    pub squares: u128,
    /// Sum of payload bytes.
    pub payload: u64,
}

impl Checksum {
    /// The sum over one segment.
    pub fn of(segment: &Segment) -> Checksum {
        let (first, count) = (u128::from(segment.first()), u128::from(segment.len()));
        // Below `count`: sums of i and of i^2.
        let sum = triangle(count);
        let squares = square_pyramid(count);
        Checksum {
            tasks: segment.len(),
            work: segment.work(),
            ids: first.wrapping_mul(count).wrapping_add(sum),
            squares: first
                .wrapping_mul(first)
                .wrapping_mul(count)
                .wrapping_add(first.wrapping_mul(sum).wrapping_mul(2))
                .wrapping_add(squares),
            payload: segment.payload().len() as u64,
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
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_sums_as_its_tasks_do(first in any::<u64>(), count in 1u64..50, weight in 0u64..9, size in 0usize..9) {
            let first = first.min(u64::MAX - count);
            let row = Segment::row(first, count, weight, Bytes::from(vec![1; size * count as usize])).unwrap();
            let one_by_one = row.tasks().map(|task| {
                let id = u128::from(task.id);
                Checksum { tasks: 1, work: task.weight, ids: id, squares: id.wrapping_mul(id), payload: task.payload.len() as u64 }
            });
            prop_assert_eq!(Checksum::of(&row), one_by_one.fold(Checksum::default(), Checksum::and));
        }
    }

    #[test]
    fn the_closed_form_holds_at_the_largest_ranges() {
        // Two halves sum to the whole, also where n (n-1) (2n-1) / 6 is far beyond 128 bits.
        let whole = Checksum::of(&Segment::range(0, u64::MAX));
        for cut in [1, 3, u64::MAX / 3, u64::MAX / 2, u64::MAX - 1] {
            let halves = Checksum::of(&Segment::range(0, cut)).and(Checksum::of(&Segment::range(cut, u64::MAX - cut)));
            assert_eq!(halves, whole);
        }
    }
}
