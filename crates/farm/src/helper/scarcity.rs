//! Scarcity: the system refuses descriptors, processes or memory for a further command. That is no failure of the command, which waits until another one has
//! ended, or for a while.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Time until the next attempt where no command ends.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for which nothing can be started although no command runs, until the job gives up.
const LONGEST: Duration = Duration::from_secs(60);

/// Descriptors of a command that runs, those of this process itself and of a start, and the standard streams of a command.
const EACH: u64 = 2;
const REST: u64 = 32;
const STREAMS: usize = 3;

/// Returns true if the system may have later what it refuses now.
pub fn is_scarce(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM))
}

/// Refusals that were seen.
#[derive(Debug, Default)]
pub struct Scarcity {
    /// Nothing is started before this.
    pause: Option<Instant>,
    /// Since when nothing could be started and nothing ran.
    idle: Option<Instant>,
    is_said: bool,
}

impl Scarcity {
    /// A command could not be started. Returns true for the first one.
    ///
    /// # Errors
    /// If nothing could be started for a long time although nothing runs.
    pub fn refused(&mut self, why: &str, is_idle: bool, now: Instant) -> io::Result<bool> {
        self.pause = Some(now + PAUSE);
        self.idle = is_idle.then(|| self.idle.unwrap_or(now));
        if self.idle.is_some_and(|since| now.saturating_duration_since(since) >= LONGEST) {
            return Err(io::Error::other(format!("no command could be started for {} s: {why}", LONGEST.as_secs())));
        }
        Ok(!std::mem::replace(&mut self.is_said, true))
    }

    /// A command was started.
    pub fn started(&mut self) {
        self.idle = None;
    }

    /// A command has ended, so that there is room again.
    pub fn ended(&mut self) {
        self.pause = None;
    }

    /// Time of the next attempt, if one has to be waited for.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        self.pause.filter(|until| *until > now)
    }
}

/// The limits of open files: of this process, and of the commands that it starts.
#[derive(Debug)]
pub struct Descriptors {
    own: Rlimit,
    of_commands: Rlimit,
    /// Held, where the limits differ, so that the streams that a command gets have low numbers: the C library hands over none above the limit.
    low: Vec<File>,
}

impl Default for Descriptors {
    /// One limit for all.
    fn default() -> Descriptors {
        let limit = getrlimit(Resource::Nofile);
        Descriptors { own: limit, of_commands: limit, low: Vec::new() }
    }
}

impl Descriptors {
    /// Raises the limit of this process as far as it may, where it is too low for this number of commands at a time. Commands keep the limit that they
    /// would have: a program may not expect more.
    pub fn raised_for(workers: u32) -> Descriptors {
        let limit = getrlimit(Resource::Nofile);
        let own = Rlimit { current: limit.maximum, ..limit };
        let suffices = limit.current.is_none_or(|current| current >= u64::from(workers) * EACH + REST);
        let low: Vec<File> = (0..STREAMS).map_while(|_| File::open("/dev/null").ok()).collect();
        let is_low = |file: &File| limit.current.is_none_or(|current| (file.as_raw_fd() as u64) < current);
        if suffices || own == limit || low.len() < STREAMS || !low.iter().all(is_low) || setrlimit(Resource::Nofile, own).is_err() {
            return Descriptors::default();
        }
        Descriptors { own, of_commands: limit, low }
    }

    /// Begins the start of a command: its streams, which are opened next, get low numbers.
    pub fn release(&mut self) {
        self.low.clear();
    }

    /// Ends it: these numbers are free again.
    pub fn hold(&mut self) {
        if self.own != self.of_commands {
            self.low = (0..STREAMS).map_while(|_| File::open("/dev/null").ok()).collect();
        }
    }

    /// Starts something with the limit of commands. What it needs is open by then.
    pub fn for_commands<T>(&self, start: impl FnOnce() -> T) -> T {
        if self.own == self.of_commands {
            return start();
        }
        // To lower it and to raise it as far as before are always allowed.
        let _ = setrlimit(Resource::Nofile, self.of_commands);
        let started = start();
        let _ = setrlimit(Resource::Nofile, self.own);
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_said_once_and_end_in_giving_up() {
        let (mut scarcity, began) = (Scarcity::default(), Instant::now());
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        assert_eq!(scarcity.pause(began), None);
        assert!(scarcity.refused("x", false, at(0)).unwrap());
        assert!(scarcity.pause(at(0)).is_some() && scarcity.pause(at(1)).is_none());
        // As long as something runs there is hope.
        assert!(!scarcity.refused("x", false, at(100)).unwrap());
        scarcity.ended();
        assert_eq!(scarcity.pause(at(100)), None);
        assert!(!scarcity.refused("x", true, at(101)).unwrap() && !scarcity.refused("x", true, at(160)).unwrap());
        scarcity.started();
        assert!(!scarcity.refused("x", true, at(162)).unwrap() && !scarcity.refused("x", true, at(221)).unwrap());
        assert_eq!(scarcity.refused("none", true, at(222)).unwrap_err().to_string(), "no command could be started for 60 s: none");
    }

    #[test]
    fn what_is_scarce_may_come_again() {
        let scarce = |code| is_scarce(&io::Error::from_raw_os_error(code));
        assert!([libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::ENOMEM].into_iter().all(scarce));
        assert!(![libc::ENOENT, libc::EACCES, libc::E2BIG, libc::ENOSPC].into_iter().any(scarce));
    }
}
