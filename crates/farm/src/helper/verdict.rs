//! Verdict on an attempt that has ended, where the end of the job may have ended it.
//!
//! At the end of an allocation a batch system may send its signal to all processes: to the tasks, to their helper and to the rank, in any order. A
//! task that fails of that has not failed by itself; it is left for another job. Of a task that fails before anything else is known it cannot be said
//! which it is. That waits for a moment, and for longer if it died by such a signal.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::running::Stopped;
use crate::task::State;

/// The signals that ask a job to end.
pub const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];
/// Time until which the rank says that the job ends, if a task has died of that.
const DOUBT: Duration = Duration::from_secs(2);
/// Time within which a signal that has reached a task reaches its helper.
const BRIEF: Duration = Duration::from_millis(100);

/// Facts about the end of the job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// The rank has said that no more tasks are started.
    pub is_draining: bool,
    /// Time at which this helper got one of the signals.
    pub told: Option<Instant>,
}

impl Ending {
    /// A signal that nobody else got, so that no order of the rank follows, is forgotten.
    fn reached_all(&self, now: Instant) -> bool {
        self.told.is_some_and(|at| self.is_draining || now.saturating_duration_since(at) < 2 * DOUBT)
    }
}

/// Verdict on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Is(State),
    /// A failure, unless it is known within this time that the job ends.
    Open(Duration),
}

/// Judges an attempt by what is known now.
pub fn judge(status: ExitStatus, stopped: Option<Stopped>, ending: &Ending, now: Instant) -> Verdict {
    match stopped {
        Some(Stopped::TimedOut) => Verdict::Is(State::Failed),
        // A task that succeeded before it was stopped is done.
        _ if status.success() => Verdict::Is(State::Done),
        Some(Stopped::Drained) => Verdict::Is(State::Left),
        None if ending.reached_all(now) => Verdict::Is(State::Left),
        None if !is_by_signal(status) => Verdict::Open(BRIEF),
        None if ending.is_draining => Verdict::Is(State::Left),
        None => Verdict::Open(DOUBT),
    }
}

/// Returns true if a signal of those ended it, or a program that a shell ran for it.
fn is_by_signal(status: ExitStatus) -> bool {
    ENDING.iter().any(|signal| status.signal() == Some(*signal) || status.code() == Some(128 + signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dies_with_its_job_is_left() {
        let (exit, signal) = (|code: i32| ExitStatus::from_raw(code << 8), ExitStatus::from_raw);
        let now = Instant::now() + 10 * DOUBT;
        let none = Ending::default();
        let draining = Ending { is_draining: true, told: None };
        let told = Ending { is_draining: false, told: now.checked_sub(DOUBT) };
        let both = Ending { is_draining: true, told: now.checked_sub(8 * DOUBT) };
        let long_ago = Ending { is_draining: false, told: both.told };
        let (done, left) = (Verdict::Is(State::Done), Verdict::Is(State::Left));
        let (failed, open) = (Verdict::Open(BRIEF), Verdict::Open(DOUBT));
        for (status, expected) in [
            (exit(0), [done; 5]),
            (exit(1), [failed, failed, left, left, failed]),
            (signal(libc::SIGTERM), [open, left, left, left, open]),
            (signal(libc::SIGUSR1), [open, left, left, left, open]),
            (exit(128 + libc::SIGTERM), [open, left, left, left, open]),
            (signal(libc::SIGSEGV), [failed, failed, left, left, failed]),
        ] {
            let judged = [&none, &draining, &told, &both, &long_ago].map(|ending| judge(status, None, ending, now));
            assert_eq!(judged, expected, "{status}");
            assert_eq!(judge(status, Some(Stopped::TimedOut), &both, now), Verdict::Is(State::Failed));
            assert_eq!(judge(status, Some(Stopped::Drained), &draining, now), if status.success() { done } else { left });
        }
    }
}
