//! The watchdog's last resort: a thread that notices that this rank's programs never let it poll of the network.
//!
//! The other ranks find such a rank, unless they are all like it, or there are none, or a rank without an answer may compute.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{STUCK, abort};
use crate::error::{Error, Result};
use crate::topology::RankId;

/// Beaten by the executor.
#[derive(Default)]
pub(super) struct Heartbeat {
    beats: Arc<AtomicU64>,
    /// Whether a run is going on: between runs no rank watches the heartbeat.
    running: Arc<AtomicBool>,
    listener: RefCell<Option<Listener>>,
}

/// The thread that listens. It ends when the other end of its channel is gone.
struct Listener {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Heartbeat {
    pub fn beat(&self) {
        // One thread writes: no need for an atomic addition.
        self.beats.store(self.beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Starts the thread that listens. It ends the job when it has heard nothing for twice the timeout: later than the other ranks do.
    /// Time in which the whole process is stopped does not count.
    pub fn watch(&self, rank: RankId, timeout: Duration) -> Result<()> {
        let (beats, running) = (self.beats.clone(), self.running.clone());
        let tick = (timeout / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        // Number of ticks in twice the timeout; lower ranks report first.
        let patience = (2 * timeout).div_duration_f64(tick).ceil() + 5.0 + f64::from(rank.get().min(64));
        let (alive, world) = mpsc::channel();
        let listen = move || {
            let (mut last, mut silent) = (0, 0.0);
            while world.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                let now = beats.load(Ordering::Relaxed);
                silent = if now == last && running.load(Ordering::Relaxed) { silent + 1.0 } else { 0.0 };
                last = now;
                if silent > patience {
                    let time = tick.mul_f64(silent).as_secs_f64().round();
                    let sentence = format!("equipoise: no progress for {time} s: a program on rank {rank} computes without ever waiting");
                    abort::job(&sentence, STUCK);
                }
            }
        };
        let started = thread::Builder::new().name("heartbeat".into()).spawn(listen);
        let thread = started.map_err(|why| Error::Failed(format!("no thread could be started for the watchdog: {why}")))?;
        *self.listener.borrow_mut() = Some(Listener { alive, thread });
        Ok(())
    }

    /// Wakes the thread, if there is one, and waits for its end.
    pub fn stop(&self) {
        if let Some(Listener { alive, thread }) = self.listener.borrow_mut().take() {
            drop(alive);
            // It ends the job or returns; a panic of it has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_thread_ends_as_soon_as_it_is_told() {
        let heartbeat = Heartbeat::default();
        heartbeat.watch(RankId::FIRST, Duration::from_secs(3600)).unwrap();
        heartbeat.set_running(true);
        heartbeat.beat();
        let begin = Instant::now();
        heartbeat.stop();
        assert!(heartbeat.listener.borrow().is_none());
        // Its tick is a second.
        assert!(begin.elapsed() < Duration::from_millis(900), "{:?}", begin.elapsed());
    }
}
