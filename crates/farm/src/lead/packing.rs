//! Selection of the next task when not all can end in the remaining time: one of those that together fill it best.
//!
//! Beginning the longest that fits wastes time: of tasks of 6, 5 and 5 s one of 6 s leaves 4 s of 10 unused. What a worker begins is the longest
//! task of a subset whose sum comes as close as possible to its time left (subset sum, by dynamic programming over parts of that time).

use std::collections::BTreeMap;

/// The time left is cut into this many parts; a task's length is rounded up to them, so that what is chosen fits.
const PARTS: usize = 4096;
/// Maximum number of candidates; more are thinned out evenly, since enough of the remaining ones fit well.
pub const CANDIDATES: usize = 512;

/// Fewer candidates that fit are too few, if there are more tasks than candidates.
pub const FEW: usize = CANDIDATES / 4;
/// Changes of the tasks after which candidates are looked for again: this takes a look at all tasks, tens of thousands.
const LASTS: usize = CANDIDATES / 8;

/// Candidates among many tasks, which have places in an order, kept for some time.
#[derive(Debug, Default)]
pub struct Sample<Place> {
    places: Vec<Place>,
    /// Changes since they were looked for.
    age: usize,
}

impl<Place: Copy + Ord> Sample<Place> {
    /// A task was added, or taken.
    pub fn changed(&mut self) {
        self.age += 1;
    }

    /// Candidates among these tasks. Some of them may be gone; of few tasks all are candidates.
    pub fn of<T>(&mut self, tasks: &BTreeMap<Place, T>) -> &[Place] {
        if self.places.is_empty() || self.age >= LASTS || tasks.len() <= CANDIDATES {
            let all: Vec<Place> = tasks.keys().copied().collect();
            *self = Sample { places: thinned(&all), age: 0 };
        }
        &self.places
    }

    /// Returns true if the last task that was taken came from candidates that were looked for then.
    #[cfg(test)]
    pub fn is_new(&self) -> bool {
        self.age == 1
    }
}

/// At most as many places as there may be candidates, evenly from all.
pub fn thinned<Place: Copy>(places: &[Place]) -> Vec<Place> {
    places.iter().step_by(places.len().div_ceil(CANDIDATES).max(1)).copied().collect()
}

/// A set of sums, a bit each.
type Sums = [u64; PARTS / 64 + 1];

/// The sums that are reached from others by one more task of this length.
fn shifted(sums: &Sums, by: usize) -> Sums {
    let (words, bits) = (by / 64, by % 64);
    std::array::from_fn(|at| {
        let word = |at: Option<usize>| at.map_or(0, |at| sums[at]);
        let low = word(at.checked_sub(words));
        let carried = if bits == 0 { 0 } else { word(at.checked_sub(words + 1)) >> (64 - bits) };
        (low << bits) | carried
    })
}

/// The number of the task that is begun next, if one fits. `lengths` are in seconds, the longest first.
pub fn best_first(lengths: &[f64], left: f64) -> Option<usize> {
    let parts = |length: f64| ((length / left * PARTS as f64).ceil().max(1.0) as usize).min(PARTS);
    let fitting = lengths.iter().position(|length| *length <= left)?;
    // The task by which each sum was first reached; sums of longer tasks come first.
    let mut first: Vec<Option<(u32, u32)>> = vec![None; PARTS + 1];
    let mut reached: Sums = [0; PARTS / 64 + 1];
    reached[0] = 1;
    for (at, length) in lengths.iter().enumerate().filter(|(_, length)| **length <= left) {
        let parts = parts(*length);
        let further = shifted(&reached, parts);
        for (word, (known, further)) in reached.iter_mut().zip(further).enumerate() {
            let mut new = further & !*known;
            *known |= further;
            while new != 0 {
                let sum = 64 * word + new.trailing_zeros() as usize;
                // Bits of the last word are beyond the time.
                if let Some(first) = first.get_mut(sum) {
                    *first = Some((at as u32, parts as u32));
                }
                new &= new - 1;
            }
        }
        if first[PARTS].is_some() {
            break;
        }
    }
    let (mut sum, mut longest) = (first.iter().rposition(Option::is_some)?, fitting);
    while let Some((at, parts)) = first[sum].filter(|_| sum > 0) {
        (sum, longest) = (sum - parts as usize, at as usize);
    }
    Some(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_filled() {
        assert_eq!(best_first(&[6.0, 5.0, 5.0], 10.0), Some(1));
        assert_eq!(best_first(&[5.0], 5.0), Some(0));
        assert_eq!(best_first(&[5.0, 4.0, 1.0], 10.0), Some(0));
        assert_eq!(best_first(&[9.0, 3.0, 2.9], 6.0), Some(1));
        assert_eq!(best_first(&[9.0], 6.0), None);
        assert_eq!(best_first(&[], 6.0), None);
        assert_eq!(best_first(&[0.0], 1.0), Some(0));
    }

    #[test]
    fn one_after_the_other_they_fill_it() {
        // All but the last are of one length; only with the last the time is used up.
        let (mut lengths, mut left) = (vec![4.0, 4.0, 4.0, 4.0, 3.0], 11.0);
        let mut used = 0.0;
        while let Some(at) = best_first(&lengths, left) {
            let length = lengths.remove(at);
            (used, left) = (used + length, left - length);
        }
        assert!((used - 11.0).abs() < 1e-9, "{used}");
    }

    /// The same, sum by sum.
    fn by_sums(lengths: &[f64], left: f64) -> Option<usize> {
        let parts = |length: f64| ((length / left * PARTS as f64).ceil().max(1.0) as usize).min(PARTS);
        let fitting = lengths.iter().position(|length| *length <= left)?;
        let mut reached: Vec<Option<(usize, usize)>> = vec![None; PARTS + 1];
        for (at, length) in lengths.iter().enumerate().filter(|(_, length)| **length <= left) {
            let parts = parts(*length);
            for sum in (0..=PARTS - parts).rev() {
                if (sum == 0 || reached[sum].is_some()) && reached[sum + parts].is_none() {
                    reached[sum + parts] = Some((at, parts));
                }
            }
        }
        let (mut sum, mut longest) = (reached.iter().rposition(Option::is_some)?, fitting);
        while let Some((at, parts)) = reached[sum] {
            (sum, longest) = (sum - parts, at);
        }
        Some(longest)
    }

    proptest::proptest! {
        #[test]
        fn sets_of_sums_are_those_of_one_sum_after_the_other(lengths in proptest::collection::vec(0.0f64..50.0, 0..40), left in 0.1f64..200.0) {
            let mut lengths = lengths;
            lengths.sort_by(|one, other| other.total_cmp(one));
            proptest::prop_assert_eq!(best_first(&lengths, left), by_sums(&lengths, left));
        }
    }
}
