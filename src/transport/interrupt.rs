//! A request from outside to end: the signal that a resource manager sends before a job's time is over.
//!
//! A series of runs checks for it [between two runs](crate::agreement::is_interrupted), and stops there. A run that continues for longer
//! than a grace after the request is given up ([`Error::Interrupted`](crate::Error::Interrupted)), so that there is time left to report
//! finished results.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Says whether this process was asked to end. Clones are the same request.
#[derive(Clone, Debug)]
pub struct Interrupt {
    /// Number of the signal; 0 if none came.
    signal: Arc<AtomicUsize>,
    /// Time at which the request was first seen.
    since: Arc<OnceLock<Instant>>,
    grace: Duration,
}

impl Interrupt {
    /// A request that has not come yet. A run that continues for `grace` after it is given up.
    pub fn new(grace: Duration) -> Interrupt {
        Interrupt { signal: Arc::default(), since: Arc::default(), grace }
    }

    /// SIGUSR1 and SIGTERM ask from now on, and end this process no more.
    ///
    /// # Errors
    /// If the system refuses.
    #[cfg(feature = "signals")]
    pub fn on_signals(&self) -> crate::Result<()> {
        use signal_hook::consts::{SIGTERM, SIGUSR1};

        let register = |signal| signal_hook::flag::register_usize(signal, self.signal.clone(), signal as usize).map(|_| ());
        let refused = |why: std::io::Error| crate::Error::Failed(format!("no signals can be caught: {why}"));
        [SIGUSR1, SIGTERM].into_iter().try_for_each(register).map_err(refused)
    }

    /// Asks, by a signal's number.
    pub fn ask(&self, signal: i32) {
        self.signal.store(signal as usize, Ordering::Relaxed);
    }

    /// Number of the signal that asked; 0 if none did.
    pub fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed) as i32
    }

    /// Returns true if the grace after the request is over. It begins when the request is first noticed.
    pub fn is_overdue(&self) -> bool {
        self.signal() != 0 && self.since.get_or_init(Instant::now).elapsed() >= self.grace
    }
}

/// The name of a signal, such as `SIGTERM`.
pub fn signal_name(signal: i32) -> String {
    #[cfg(feature = "signals")]
    if let Some(name) = signal_hook::low_level::signal_name(signal) {
        return name.into();
    }
    format!("signal {signal}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_begins_with_the_request() {
        let interrupt = Interrupt::new(Duration::from_millis(30));
        std::thread::sleep(Duration::from_millis(40));
        assert!(!interrupt.is_overdue() && interrupt.signal() == 0);
        interrupt.clone().ask(15);
        assert!(!interrupt.is_overdue() && interrupt.signal() == 15);
        std::thread::sleep(Duration::from_millis(40));
        assert!(interrupt.is_overdue());
    }

    #[test]
    fn signals_have_names() {
        if cfg!(feature = "signals") {
            assert_eq!(signal_name(15), "SIGTERM");
        }
        assert_eq!(signal_name(9999), "signal 9999");
    }
}
