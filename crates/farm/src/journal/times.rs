//! Mean run times of commands. A million commands may all be different: each takes 24 bytes.

/// Means that wait to be sorted in, at least.
const WAITING: usize = 4096;

/// The mean time of a command.
#[derive(Clone, Copy, Debug)]
struct Mean {
    key: u64,
    seconds: f64,
    runs: u32,
}

impl Mean {
    /// The mean of the runs of both.
    fn and(self, other: Mean) -> Mean {
        let runs = self.runs.saturating_add(other.runs);
        let part = f64::from(other.runs) / f64::from(runs);
        Mean { seconds: self.seconds + (other.seconds - self.seconds) * part, runs, ..self }
    }
}

/// Mean times by keys of commands.
#[derive(Debug, Default)]
pub struct Times {
    /// The first `sorted` have keys that rise; the others wait.
    all: Vec<Mean>,
    sorted: usize,
}

impl Times {
    /// Adds a run.
    pub fn add(&mut self, key: u64, seconds: f64) {
        let run = Mean { key, seconds, runs: 1 };
        match self.all[self.sorted..].last_mut().filter(|last| last.key == key) {
            Some(last) => *last = last.and(run),
            None => self.all.push(run),
        }
        // No more than a half wait, so that a mean is sorted in a few times at most on average.
        if self.all.len() - self.sorted > WAITING.max(self.sorted / 2) {
            self.settle();
        }
    }

    /// Sorts in what waits, in place.
    pub fn settle(&mut self) {
        self.all.sort_unstable_by_key(|mean| mean.key);
        self.all.dedup_by(|later, first| {
            let is_same = later.key == first.key;
            if is_same {
                *first = first.and(*later);
            }
            is_same
        });
        self.sorted = self.all.len();
    }

    /// Mean seconds of the runs with a key. It is found at once after [`Times::settle`].
    pub fn get(&self, key: u64) -> Option<f64> {
        let (sorted, waiting) = self.all.split_at(self.sorted);
        let known = sorted.binary_search_by_key(&key, |mean| mean.key).ok().map(|at| sorted[at]);
        let all = known.into_iter().chain(waiting.iter().copied().filter(|mean| mean.key == key));
        all.reduce(Mean::and).map(|mean| mean.seconds)
    }

    /// Takes over other means, which count more than those that were known.
    pub fn take_over(&mut self, mut others: Times) {
        self.settle();
        others.settle();
        self.all.retain(|mean| others.get(mean.key).is_none());
        self.all.append(&mut others.all);
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// As a map would have it, whenever it is asked.
        #[test]
        fn means_are_those_of_all_runs(runs in proptest::collection::vec((0u64..40, 0u32..1000), 0..300), settles in 0usize..300) {
            let (mut times, mut sums): (Times, HashMap<u64, (f64, u32)>) = (Times::default(), HashMap::new());
            for (at, (key, seconds)) in runs.iter().enumerate() {
                times.add(*key, f64::from(*seconds));
                let (sum, number) = sums.entry(*key).or_default();
                (*sum, *number) = (*sum + f64::from(*seconds), *number + 1);
                if at % (settles + 1) == settles {
                    times.settle();
                }
            }
            for key in 0..50 {
                let expected = sums.get(&key).map(|(sum, number)| sum / f64::from(*number));
                match (times.get(key), expected) {
                    (Some(found), Some(expected)) => prop_assert!((found - expected).abs() < 1e-9 * (1.0 + expected)),
                    (found, expected) => prop_assert_eq!(found, expected),
                }
            }
        }
    }

    #[test]
    fn many_keys_are_kept_once() {
        let mut times = Times::default();
        (0..30_000u64).for_each(|run| times.add(run % 10_000, 2.0));
        assert!(times.all.len() <= 10_000 + WAITING.max(5_000), "{}", times.all.len());
        assert!((0..10_000).all(|key| times.get(key) == Some(2.0)) && times.get(10_000).is_none());
        assert_eq!(size_of::<Mean>(), 24);
    }

    #[test]
    fn others_count_more() {
        let of = |runs: &[(u64, f64)]| {
            let mut times = Times::default();
            runs.iter().for_each(|(key, seconds)| times.add(*key, *seconds));
            times
        };
        let mut times = of(&[(1, 1.0), (2, 2.0), (2, 4.0)]);
        times.take_over(of(&[(1, 5.0), (1, 7.0), (3, 9.0)]));
        assert_eq!([1, 2, 3, 4].map(|key| times.get(key)), [Some(6.0), Some(3.0), Some(9.0), None]);
    }
}
