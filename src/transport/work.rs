//! Work that runs concurrently with a program: its two kinds, and its interface to the world.
//!
//! *Opaque* work runs on a worker thread of its rank (in the simulator: for the virtual time that it says it takes).
//! *Sliced* work can stop: it runs on the communication thread in slices, between polls of the network.

use std::any::Any;
use std::time::{Duration, Instant};

use super::{Ticks, WorkId};

/// Result of a piece of work. The program that started it knows the type.
pub type Output = Box<dyn Any + Send>;

/// Interface of opaque work to the world that it runs in.
pub trait Worker {
    /// A cheap call that lets the rank's communication thread have the processor. Tasks that take long should call it every few microseconds
    /// to milliseconds, so that a rank that computes still answers.
    fn checkpoint(&mut self);

    /// Says that the work takes this much time: passes in the simulator, nothing on real ranks (there it really takes it).
    fn charge(&mut self, ticks: Ticks);

    /// Does nothing for the given time: sleeps on real ranks, passes virtual time in the simulator.
    fn sleep(&mut self, ticks: Ticks);

    /// Computes for the given time: spins on real ranks (with checkpoints), passes virtual time in the simulator.
    fn spin(&mut self, ticks: Ticks);

    /// Time that the worker has spent in [`sleep`](Worker::sleep) so far; 0 where nobody asks for it.
    fn asleep(&self) -> Ticks {
        0
    }

    /// Time that a rank of speed 1 would have computed so far, in the simulator; `None` on real ranks.
    fn computed(&self) -> Option<Ticks> {
        None
    }

    /// Computes on for this part of the time since the work began: a test of the measurement makes tasks take longer so. Nothing in the
    /// simulator.
    fn drag(&mut self, part: f64) {
        let _ = part;
    }
}

/// A thread that checkpoints often lets others have the processor at most this often.
const PAUSE_EVERY: Duration = Duration::from_micros(50);

/// A worker whose time is real.
#[derive(Default)]
pub(super) struct RealWorker {
    /// `None` for work that a program does itself, on the communication thread: it has no thread to yield to, and is not timed.
    thread: Option<Times>,
    asleep: Ticks,
}

struct Times {
    began: Instant,
    last_pause: Instant,
}

impl RealWorker {
    /// The worker of a piece of work that begins now, on a thread of its own.
    #[cfg(feature = "_ranks")]
    pub fn on_thread() -> RealWorker {
        let now = Instant::now();
        RealWorker { thread: Some(Times { began: now, last_pause: now }), asleep: 0 }
    }
}

impl Worker for RealWorker {
    fn checkpoint(&mut self) {
        if let Some(times) = &mut self.thread
            && times.last_pause.elapsed() >= PAUSE_EVERY
        {
            std::thread::yield_now();
            times.last_pause = Instant::now();
        }
    }

    fn charge(&mut self, _: Ticks) {}

    fn sleep(&mut self, ticks: Ticks) {
        self.asleep += ticks;
        std::thread::sleep(Duration::from_nanos(ticks));
    }

    fn asleep(&self) -> Ticks {
        self.asleep
    }

    fn drag(&mut self, part: f64) {
        if let Some(times) = &self.thread {
            self.spin((since(times.began) as f64 * part) as Ticks);
        }
    }

    fn spin(&mut self, ticks: Ticks) {
        let began = Instant::now();
        while since(began) < ticks {
            self.checkpoint();
            std::hint::spin_loop();
        }
    }
}

/// Nanoseconds since an instant.
pub(super) fn since(began: Instant) -> Ticks {
    Ticks::try_from(began.elapsed().as_nanos()).unwrap_or(Ticks::MAX)
}

/// Work that stops by itself after about the budget it was given.
pub trait Sliced {
    /// Computes for about `budget` nanoseconds. What it reports as spent passes as virtual time in the simulator.
    fn step(&mut self, budget: Ticks) -> Step;
}

/// Result of a slice.
pub enum Step {
    /// There is more to do.
    More {
        /// Time that the slice took, in ticks.
        spent: Ticks,
    },
    /// The work is done.
    Done {
        /// Time that the slice took, in ticks.
        spent: Ticks,
        /// Result of the work.
        output: Output,
    },
}

/// Work that runs to its end once begun.
pub(crate) type Opaque = Box<dyn FnOnce(&mut dyn Worker) -> Output + Send>;

/// A piece of work.
pub(crate) enum Job {
    Opaque(Opaque),
    Sliced(Box<dyn Sliced>),
}

/// Work that has ended.
#[non_exhaustive]
pub struct Finished {
    /// Id of the work.
    pub work: WorkId,
    /// Its result.
    pub output: Output,
    /// Start time, on the clock of [`Transport::now`](super::Transport::now).
    pub began: Ticks,
    /// End time, on the same clock.
    pub ended: Ticks,
    /// Part of the time from `began` to `ended` that it needed. In the simulator, what it would have needed on a rank of speed 1.
    pub needed: Needed,
}

/// Time that a piece of work needed between its beginning and its end, without waiting for a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Processor time, in ticks.
    pub processor: Ticks,
    /// Time spent asleep.
    pub asleep: Ticks,
}

impl Needed {
    /// All of some time that went by on a clock, since nothing else is known.
    pub fn all(took: Ticks) -> Needed {
        Needed { processor: took, asleep: 0 }
    }

    /// At most the time that went by.
    pub fn within(took: Ticks, processor: Ticks, asleep: Ticks) -> Needed {
        let asleep = asleep.min(took);
        Needed { processor: processor.min(took - asleep), asleep }
    }

    /// Processor time and sleep together, in ticks.
    pub fn together(self) -> Ticks {
        self.processor + self.asleep
    }
}

/// Processor time of the calling thread so far, where the system tells.
#[cfg(feature = "_ranks")]
pub(super) fn processor_time() -> Option<Ticks> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Ticks::try_from(time.tv_sec).ok()? * 1_000_000_000 + Ticks::try_from(time.tv_nsec).ok()?)
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Finished({:?}, {}..{})", self.work, self.began, self.ended)
    }
}
