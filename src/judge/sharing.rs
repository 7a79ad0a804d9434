//! Finish times of ranks that share cores.
//!
//! A rank computes on one core. Where more ranks than cores are busy, the system gives each the same part of them (fair processor sharing),
//! so that with `c` cores and `k` busy ranks each goes on at the rate `min(1, c / k)`:
//!
//! ```text
//!   loads 1 2 3 on one core:   |1|2|3|1..  all three at a third of the speed until the first is done, then two at half, then one
//! ```
//!
//! Balancing gains less there: what the slowest rank gets rid of, others do on the same cores.

use serde::{Deserialize, Serialize};

use crate::topology::RankId;

/// Ranks that have these cores together, and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreGroup {
    /// In ascending order.
    pub ranks: Vec<RankId>,
    pub cores: u32,
}

impl CoreGroup {
    /// Returns true if there are more ranks than cores.
    pub fn is_shared(&self) -> bool {
        self.ranks.len() > self.cores as usize
    }
}

/// Time at which all ranks are done; `times` by rank are the durations on a core of its own. A rank that is in no group has its own core.
pub fn makespan(times: &[f64], groups: &[CoreGroup]) -> f64 {
    let in_groups = groups.iter().filter(|group| group.is_shared()).map(|group| {
        let mut of_group: Vec<f64> = group.ranks.iter().filter_map(|rank| times.get(rank.index()).copied()).collect();
        shared(&mut of_group, group.cores)
    });
    // No program finishes earlier than it would alone.
    let alone = times.iter().copied().fold(0.0, f64::max);
    in_groups.fold(alone, f64::max)
}

/// Time at which ranks on the same cores are all done: between two ends all that are busy go on at the same rate.
fn shared(times: &mut [f64], cores: u32) -> f64 {
    times.sort_by(f64::total_cmp);
    let (mut now, mut done) = (0.0, 0.0);
    for (index, time) in times.iter().enumerate() {
        let busy = times.len() - index;
        if *time > done {
            now += (time - done) * (busy as f64 / f64::from(cores.max(1))).max(1.0);
            done = *time;
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group(ranks: std::ops::Range<u32>, cores: u32) -> CoreGroup {
        CoreGroup { ranks: ranks.map(RankId::new).collect(), cores }
    }

    #[test]
    fn balancing_gains_less_where_cores_are_shared() {
        let (before, after) = ([12.0, 31.0, 7.0, 22.0, 5.0, 40.0, 18.0, 25.0], [20.0; 8]);
        for (cores, ends, gain) in [(8, 40.0, 20.0), (4, 50.5, 10.5), (2, 84.5, 4.5), (1, 160.0, 0.0)] {
            let groups = [group(0..8, cores)];
            assert_eq!(makespan(&before, &groups), ends, "{cores} cores");
            assert_eq!(makespan(&before, &groups) - makespan(&after, &groups), gain, "{cores} cores");
        }
    }

    #[test]
    fn the_slowest_group_decides() {
        // Three on one core, three with one each, and one in no group.
        let groups = [group(0..3, 1), group(3..6, 3)];
        assert_eq!(makespan(&[1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 0.0], &groups), 6.0);
        assert_eq!(makespan(&[1.0, 2.0, 3.0, 5.0, 5.0, 9.0, 0.0], &groups), 9.0);
        assert_eq!(makespan(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0], &groups), 7.0);
        assert_eq!(makespan(&[], &groups), 0.0);
        assert_eq!(makespan(&[1.0, f64::INFINITY, 1.0], &groups), f64::INFINITY);
        // No core at all would never end: there is always one.
        assert_eq!(makespan(&[2.0, 2.0], &[group(0..2, 0)]), 4.0);
    }

    proptest! {
        #[test]
        fn it_is_between_the_longest_and_the_sum(times in prop::collection::vec(0.0f64..100.0, 1..12), cores in 1u32..12) {
            let groups = [group(0..times.len() as u32, cores)];
            let ends = makespan(&times, &groups);
            let (longest, sum) = (times.iter().copied().fold(0.0, f64::max), times.iter().sum::<f64>());
            prop_assert!(ends >= longest.max(sum / f64::from(cores)) * (1.0 - 1e-9));
            prop_assert!(ends <= (longest + sum / f64::from(cores)) * (1.0 + 1e-9));
            prop_assert!(makespan(&times, &[group(0..times.len() as u32, cores + 1)]) <= ends * (1.0 + 1e-9));
        }
    }
}
