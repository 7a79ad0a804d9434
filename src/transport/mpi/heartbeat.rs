//! The watchdog's last resort: a thread that notices that this rank's programs never let it look at the network.
//!
//! The other ranks find such a rank, unless they are all like it, or there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{STUCK, abort};
use crate::error::{Error, Result};
use crate::topology::RankId;

/// Beaten by the executor.
#[derive(Clone, Default)]
pub(super) struct Heartbeat {
    beats: Arc<AtomicU64>,
    /// Between runs nobody listens to it.
    running: Arc<AtomicBool>,
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
    /// Time in which the whole process is stopped does not count. The thread ends with the world.
    pub fn watch(&self, rank: RankId, timeout: Duration) -> Result<()> {
        let (beats, running) = (Arc::downgrade(&self.beats), self.running.clone());
        let tick = (timeout / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        // So many ticks make twice the timeout; lower ranks speak first.
        let patience = (2 * timeout).div_duration_f64(tick).ceil() + 5.0 + f64::from(rank.min(64));
        let listen = move || {
            let (mut last, mut silent) = (0, 0.0);
            loop {
                thread::sleep(tick);
                let Some(beats) = beats.upgrade() else { return };
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
        started.map(|_| ()).map_err(|why| Error::Failed(format!("no thread could be started for the watchdog: {why}")))
    }
}
