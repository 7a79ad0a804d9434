//! Work that runs concurrently with the programs of a rank: opaque work on worker threads, sliced work on the communication thread.

use std::any::Any;
use std::collections::VecDeque;
#[cfg(not(loom))]
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};
use log::debug;

// tests/loom runs the pool under every order of its threads.
#[cfg(loom)]
use crate::threads::{self as thread, JoinHandle, Thread};

use super::{abort, ffi};
use crate::error::{Error, Result};
use crate::transport::work::{Opaque, RealWorker, processor_time, since};
use crate::transport::{Finished, Needed, Scope, Sliced, Ticks, WorkId, Worker};

/// Node of the rank that started a piece of work, and the scope.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub local_node: usize,
    pub scope: Scope,
    pub work: WorkId,
}

/// Both ends of a channel.
struct Pipe<T> {
    entry: Sender<(Owner, T)>,
    exit: Receiver<(Owner, T)>,
}

impl<T> Pipe<T> {
    fn new() -> Pipe<T> {
        let (entry, exit) = unbounded();
        Pipe { entry, exit }
    }
}

/// Threads that carry out opaque work, started when the first work comes.
pub(super) struct WorkerPool {
    size: usize,
    /// The beginning of the clock.
    began: Instant,
    hired: Vec<JoinHandle<()>>,
    jobs: Pipe<Opaque>,
    done: Pipe<Finished>,
    /// Number of pieces of work that were given out and have not come back.
    out: usize,
}

impl WorkerPool {
    pub fn new(size: usize, began: Instant) -> WorkerPool {
        WorkerPool { size: size.max(1), began, hired: Vec::new(), jobs: Pipe::new(), done: Pipe::new(), out: 0 }
    }

    pub fn is_busy(&self) -> bool {
        self.out > 0
    }

    /// Gives out work; it begins as soon as a worker is free.
    pub fn give(&mut self, owner: Owner, work: Opaque) -> Result<()> {
        self.out += 1;
        // One more thread as long as all may be busy.
        if self.hired.len() < self.size && self.out > self.hired.len() {
            self.hire()?;
        }
        // Both ends of the channel live here, so it cannot be closed.
        let _ = self.jobs.entry.send((owner, work));
        Ok(())
    }

    /// The next work that has ended.
    pub fn next_done(&mut self) -> Option<(Owner, Finished)> {
        if self.out == 0 {
            return None;
        }
        let done = self.done.exit.try_recv().ok()?;
        self.out -= 1;
        Some(done)
    }

    /// Takes back the work that has not begun.
    pub fn recall(&mut self) {
        while self.jobs.exit.try_recv().is_ok() {
            self.out -= 1;
        }
    }

    fn hire(&mut self) -> Result<()> {
        debug!("worker thread {} starts; {} pieces of work are out", self.hired.len(), self.out);
        let (jobs, done) = (self.jobs.exit.clone(), self.done.entry.clone());
        let (began, boss) = (self.began, thread::current());
        let worker = thread::Builder::new()
            .name(format!("worker {}", self.hired.len()))
            .spawn(move || work_on(&jobs, &done, began, &boss))
            .map_err(|why| Error::Failed(format!("no worker thread could be started: {why}")))?;
        self.hired.push(worker);
        Ok(())
    }

    /// Ends the workers, and waits for the idle ones. A worker that still executes abandoned work ends after it.
    pub fn dismiss(&mut self) {
        self.recall();
        while self.next_done().is_some() {}
        (self.jobs, self.done) = (Pipe::new(), Pipe::new());
        let hired = std::mem::take(&mut self.hired);
        if self.out == 0 {
            // A worker that died has said so.
            hired.into_iter().for_each(|worker| drop(worker.join()));
        }
        self.out = 0;
    }
}

/// Ends the job if its thread dies in a task without a panic's report (as `std::panic::resume_unwind` makes it): the task's end would never be
/// reported.
struct Alive;

impl Drop for Alive {
    fn drop(&mut self) {
        if std::thread::panicking() && ffi::is_active() {
            let name = thread::current().name().unwrap_or("a worker").to_string();
            abort::job(&format!("equipoise: thread '{name}' died while it executed a task"), abort::PANICKED);
        }
    }
}

/// A worker's life: it ends when the worker pool is gone.
fn work_on(jobs: &Receiver<(Owner, Opaque)>, done: &Sender<(Owner, Finished)>, epoch: Instant, boss: &Thread) {
    let _alive = Alive;
    for (owner, work) in jobs {
        let (began, before) = (since(epoch), processor_time());
        let mut worker = RealWorker::on_thread();
        let output = work(&mut worker);
        let ended = since(epoch);
        let took = ended.saturating_sub(began);
        let processor = processor_time().zip(before).map_or(took, |(after, before)| after.saturating_sub(before));
        let finished = Finished { work: owner.work, output, began, ended, needed: Needed::within(took, processor, worker.asleep()) };
        if done.send((owner, finished)).is_err() {
            break;
        }
        boss.unpark();
    }
}

/// Sliced work, first come, first served: the first runs until it is done.
#[derive(Default)]
pub(super) struct Slices {
    waiting: VecDeque<(Owner, Box<dyn Sliced>)>,
    /// Start time of the first, if it has begun.
    began: Option<Ticks>,
    /// Whether the first is out for its slice.
    out: bool,
}

impl Slices {
    pub fn is_busy(&self) -> bool {
        self.out || !self.waiting.is_empty()
    }

    pub fn give(&mut self, owner: Owner, work: Box<dyn Sliced>) {
        self.waiting.push_back((owner, work));
    }

    /// Takes the first out, to give it a slice.
    pub fn take(&mut self, now: Ticks) -> Option<(Owner, Box<dyn Sliced>)> {
        let first = self.waiting.pop_front()?;
        self.began.get_or_insert(now);
        self.out = true;
        Some(first)
    }

    /// Puts the first back, which has more to do.
    pub fn put_back(&mut self, owner: Owner, work: Box<dyn Sliced>) {
        self.out = false;
        self.waiting.push_front((owner, work));
    }

    /// The first is done.
    pub fn done(&mut self, owner: Owner, output: Box<dyn Any + Send>, now: Ticks) -> Finished {
        self.out = false;
        let began = self.began.take().unwrap_or(now);
        Finished { work: owner.work, output, began, ended: now, needed: Needed::all(now.saturating_sub(began)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    fn owner(number: u64) -> Owner {
        Owner { local_node: 0, scope: Scope { run: 1, epoch: 0 }, work: WorkId(number) }
    }

    #[test]
    fn a_crew_does_all_it_is_given_and_no_more_than_it_can_at_once() {
        let mut pool = WorkerPool::new(2, Instant::now());
        for number in 0..20u64 {
            pool.give(
                owner(number),
                Box::new(move |worker| {
                    worker.spin(1000);
                    Box::new(number * number)
                }),
            )
            .unwrap();
        }
        let mut results = Vec::new();
        while pool.is_busy() {
            match pool.next_done() {
                Some((owner, finished)) => {
                    assert!(finished.began <= finished.ended);
                    results.push((owner.work.0, *finished.output.downcast::<u64>().unwrap()));
                }
                None => thread::park_timeout(Duration::from_millis(1)),
            }
        }
        results.sort_unstable();
        assert_eq!(results, (0..20).map(|n| (n, n * n)).collect::<Vec<_>>());
        assert_eq!(pool.hired.len(), 2);
        pool.dismiss();
        assert!(pool.hired.is_empty() && !pool.is_busy());
    }

    #[test]
    fn what_work_needed_is_told_apart_from_its_time() {
        let mut pool = WorkerPool::new(1, Instant::now());
        pool.give(
            owner(0),
            Box::new(|worker| {
                worker.sleep(20_000_000);
                // Waits other than by the worker's `sleep`: this counts neither as processor time nor as sleep.
                thread::sleep(Duration::from_millis(20));
                worker.spin(1_000_000);
                worker.drag(0.5);
                Box::new(())
            }),
        )
        .unwrap();
        let finished = loop {
            match pool.next_done() {
                Some((_, finished)) => break finished,
                None => thread::park_timeout(Duration::from_millis(1)),
            }
        };
        let Needed { processor, asleep } = finished.needed;
        // 41 ms, and half as long again.
        assert!(finished.ended - finished.began >= 61_000_000);
        assert_eq!(asleep, 20_000_000);
        assert!(processor > 0 && processor <= finished.ended - finished.began - 40_000_000, "{processor}");
    }

    #[test]
    fn recalled_work_does_not_begin() {
        let mut pool = WorkerPool::new(1, Instant::now());
        let (go, gate) = unbounded::<()>();
        pool.give(
            owner(0),
            Box::new(move |_| {
                let _ = gate.recv();
                Box::new(())
            }),
        )
        .unwrap();
        // The only worker holds the first when its queue is empty again.
        while !pool.jobs.exit.is_empty() {
            thread::yield_now();
        }
        pool.give(owner(1), Box::new(|_| panic!("this must not begin"))).unwrap();
        pool.recall();
        go.send(()).unwrap();
        while pool.is_busy() {
            if let Some((owner, _)) = pool.next_done() {
                assert_eq!(owner.work, WorkId(0));
            }
        }
    }
}
