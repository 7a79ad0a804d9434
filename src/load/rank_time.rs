//! The time that a rank takes for its work.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The time that a rank takes: work over power, compared exactly. No work is done at once on any power; on power 0 no other work is ever
/// done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RankTime {
    /// Work units.
    pub work: u64,
    /// Power of the rank, in the unit of [`Powers`](super::Powers).
    pub power: u64,
}

impl RankTime {
    /// Returns the largest amount of work that a rank of this power does in that time.
    pub fn most_work(self, power: u64) -> u64 {
        match (self.work, self.power) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            (work, of) => u64::try_from(u128::from(work) * u128::from(power) / u128::from(of)).unwrap_or(u64::MAX),
        }
    }

    /// The time without this amount of pinned work, if there is no power for it.
    pub fn without_what_is_stuck(self, pinned: u64) -> RankTime {
        let stuck = if self.power == 0 { pinned } else { 0 };
        RankTime { work: self.work.saturating_sub(stuck), ..self }
    }

    /// Returns true if the time is infinite.
    pub fn is_endless(self) -> bool {
        self.work > 0 && self.power == 0
    }
}

impl Ord for RankTime {
    fn cmp(&self, other: &RankTime) -> Ordering {
        match (self.work > 0, other.work > 0) {
            (true, true) if self.is_endless() || other.is_endless() => self.is_endless().cmp(&other.is_endless()),
            (true, true) => (u128::from(self.work) * u128::from(other.power)).cmp(&(u128::from(other.work) * u128::from(self.power))),
            (mine, theirs) => mine.cmp(&theirs),
        }
    }
}

impl PartialOrd for RankTime {
    fn partial_cmp(&self, other: &RankTime) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankTime {
    fn eq(&self, other: &RankTime) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankTime {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(work: u64, power: u64) -> RankTime {
        RankTime { work, power }
    }

    #[test]
    fn no_work_is_done_at_once_and_without_power_none_ever() {
        assert!(time(0, 0) == time(0, 5) && time(0, 0) < time(1, u64::MAX));
        assert!(time(1, 0) == time(9, 0) && time(1, 0) > time(u64::MAX, 1));
        assert!(time(1, 2) == time(2, 4) && time(1, 3) < time(1, 2));
        assert_eq!((time(0, 3).most_work(7), time(1, 0).most_work(0), time(2, 10).most_work(1)), (0, u64::MAX, 0));
        assert_eq!(time(u64::MAX, 1).most_work(2), u64::MAX);
    }

    proptest! {
        #[test]
        fn most_work_is_the_most(work in 1u64.., power in 1u64.., of: u64) {
            let (limit, most) = (time(work, power), time(work, power).most_work(of));
            prop_assert!(time(most, of) <= limit || of == 0 && most == 0);
            prop_assert!(most == u64::MAX || time(most + 1, of) > limit);
        }
    }
}
