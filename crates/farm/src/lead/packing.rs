//! Selection of the next task when not all can end in the remaining time: one of those that together fill it best.
//!
//! Beginning the longest that fits wastes time: of tasks of 6, 5 and 5 s one of 6 s leaves 4 s of 10 unused. What a worker begins is the longest
//! task of a subset whose sum comes as close as possible to its time left (subset sum, by dynamic programming over parts of that time).

/// The time left is cut into this many parts; a task's length is rounded up to them, so that what is chosen fits.
const PARTS: usize = 4096;
/// Maximum number of candidates; more are thinned out evenly, since enough of the remaining ones fit well.
pub const CANDIDATES: usize = 512;

/// The number of the task that is begun next, if one fits. `lengths` are in seconds, the longest first.
pub fn best_first(lengths: &[f64], left: f64) -> Option<usize> {
    let parts = |length: f64| (length / left * PARTS as f64).ceil().max(1.0) as usize;
    let fitting = lengths.iter().position(|length| *length <= left)?;
    // The task by which each sum was first reached; sums of longer tasks come first.
    let mut reached: Vec<Option<(u32, u32)>> = vec![None; PARTS + 1];
    let mut highest = 0;
    for (at, length) in lengths.iter().enumerate().filter(|(_, length)| **length <= left) {
        let parts = parts(*length).min(PARTS);
        for sum in (0..=highest.min(PARTS - parts)).rev() {
            if (sum == 0 || reached[sum].is_some()) && reached[sum + parts].is_none() {
                reached[sum + parts] = Some((at as u32, parts as u32));
                highest = highest.max(sum + parts);
            }
        }
        if highest == PARTS {
            break;
        }
    }
    let (mut sum, mut longest) = (highest, fitting);
    while let Some((at, parts)) = reached[sum].filter(|_| sum > 0) {
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
}
