//! Built-in tasks that sleep. They end when they should, and not when the kernel gets round to it: what is compared is the farm's own cost.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use super::slots::Taken;

/// A built-in task that sleeps.
pub struct Sleeper {
    pub seq: u64,
    pub attempt: u32,
    pub taken: Taken,
    pub began: Instant,
    pub until: Instant,
    /// Seconds since 1970.
    pub start: f64,
}

/// A processor is given up, but not left alone, for as long as this at most.
const MOST: Duration = Duration::from_micros(100);

/// The built-in tasks that sleep.
#[derive(Default)]
pub struct Sleepers {
    all: Vec<Sleeper>,
    /// Mean time by which the kernel wakes this process too late: by its timer slack, and on virtual machines some 70 us more. It is asked to wake it so
    /// much sooner.
    late: Duration,
}

impl Sleepers {
    pub fn begin(&mut self, sleeper: Sleeper) {
        if self.all.is_empty() {
            // A list of built-in tasks starts no commands, which would inherit this. Where it is refused, sleepers are late.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
        }
        self.all.push(sleeper);
    }

    /// Time at which the kernel should wake this process for the first of them.
    pub fn alarm(&self) -> Option<Instant> {
        self.first().map(|first| first.checked_sub(self.late).unwrap_or(first))
    }

    fn first(&self) -> Option<Instant> {
        self.all.iter().map(|sleeper| sleeper.until).min()
    }

    /// Takes those that have slept long enough, or all; for one that is about to wake it waits.
    pub fn take_over(&mut self, all: bool) -> Vec<Sleeper> {
        let Some(first) = self.first() else { return Vec::new() };
        if let Some(late) = self.alarm().and_then(|alarm| Instant::now().checked_duration_since(alarm)) {
            self.late = (7 * self.late + late.min(MOST)) / 8;
            while Instant::now() < first {
                std::thread::yield_now();
            }
        }
        let now = Instant::now();
        self.all.extract_if(.., |sleeper| all || sleeper.until <= now).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(seq: u64, until: Instant) -> Sleeper {
        Sleeper { seq, attempt: 1, taken: Taken::default(), began: Instant::now(), until, start: 0.0 }
    }

    #[test]
    fn none_is_taken_before_its_time() {
        let now = Instant::now();
        let mut sleepers = Sleepers::default();
        assert!(sleepers.alarm().is_none() && sleepers.take_over(true).is_empty());
        sleepers.begin(sleeper(1, now));
        sleepers.begin(sleeper(2, now + Duration::from_secs(1000)));
        assert_eq!(sleepers.alarm(), Some(now));
        assert_eq!(sleepers.take_over(false).iter().map(|sleeper| sleeper.seq).collect::<Vec<_>>(), [1]);
        assert!(sleepers.take_over(false).is_empty());
        assert_eq!(sleepers.take_over(true).iter().map(|sleeper| sleeper.seq).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn the_alarm_is_as_much_sooner_as_the_last_ones_were_late() {
        let mut sleepers = Sleepers::default();
        let (mut woken, length) = (Instant::now(), Duration::from_millis(2));
        for seq in 0..20 {
            let until = woken + length;
            sleepers.begin(sleeper(seq, until));
            std::thread::sleep(sleepers.alarm().unwrap().saturating_duration_since(Instant::now()));
            assert_eq!(sleepers.take_over(false).len(), 1);
            woken = Instant::now();
            assert!(woken >= until);
        }
        sleepers.begin(sleeper(20, woken + length));
        let sooner = (woken + length) - sleepers.alarm().unwrap();
        assert!(sooner > Duration::ZERO && sooner <= MOST, "{sooner:?}");
    }
}
