//! What an attempt is that has ended, where the end of the job may have ended it.
//!
//! At the end of an allocation a batch system may send its signal to all processes: to the tasks, to their helper and to the rank, in any order. A
//! task that fails of that has not failed by itself; it is left for another job. Of a task that dies by such a signal before anything else is known
//! it cannot be said which it is: that waits for a moment.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::running::Stopped;
use crate::task::State;

/// The signals that ask a job to end.
pub const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];
/// Time until which the job is told to end if a task has died of that.
pub const DOUBT: Duration = Duration::from_secs(2);

/// What is known about the end of the job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// The rank has said that no more tasks are started.
    pub is_draining: bool,
    /// When this helper got one of the signals.
    pub told: Option<Instant>,
}

impl Ending {
    /// A signal that nobody else got, so that no order of the rank follows, is forgotten.
    fn reached_all(&self, now: Instant) -> bool {
        self.told.is_some_and(|at| self.is_draining || now.saturating_duration_since(at) < 2 * DOUBT)
    }

    /// Returns true if the job ends.
    pub fn is_known(&self, now: Instant) -> bool {
        self.is_draining || self.reached_all(now)
    }
}

/// The state of a task after an attempt; `None` if that will be known in a moment.
pub fn judge(status: ExitStatus, stopped: Option<Stopped>, ending: &Ending, now: Instant) -> Option<State> {
    match stopped {
        Some(Stopped::TimedOut) => Some(State::Failed),
        // A task that succeeded before it was stopped is done.
        _ if status.success() => Some(State::Done),
        Some(Stopped::Drained) => Some(State::Left),
        None if ending.reached_all(now) => Some(State::Left),
        None if !is_by_signal(status) => Some(State::Failed),
        None => ending.is_draining.then_some(State::Left),
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
        let (done, failed, left, open) = (Some(State::Done), Some(State::Failed), Some(State::Left), None);
        for (status, none_, draining_, told_, both_, long_ago_) in [
            (exit(0), done, done, done, done, done),
            (exit(1), failed, failed, left, left, failed),
            (signal(libc::SIGTERM), open, left, left, left, open),
            (signal(libc::SIGUSR1), open, left, left, left, open),
            (exit(128 + libc::SIGTERM), open, left, left, left, open),
            (signal(libc::SIGSEGV), failed, failed, left, left, failed),
        ] {
            let judged = [&none, &draining, &told, &both, &long_ago].map(|ending| judge(status, None, ending, now));
            assert_eq!(judged, [none_, draining_, told_, both_, long_ago_], "{status}");
            assert_eq!(judge(status, Some(Stopped::TimedOut), &both, now), failed);
            assert_eq!(judge(status, Some(Stopped::Drained), &draining, now), if status.success() { done } else { left });
        }
        assert!(!none.is_known(now) && draining.is_known(now) && told.is_known(now) && !long_ago.is_known(now));
    }
}
