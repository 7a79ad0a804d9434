//! A task that is processed, as its function sees it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use super::buffers::reserve;
use super::call::World;
use super::run::{Item, Root};
use super::status::{Failure, Result};

/// Effects of a task that runs on another thread.
#[derive(Default)]
pub(super) struct Deeds {
    pub puts: Vec<Item>,
    pub results: Vec<Vec<u8>>,
    /// A failure that ends the run.
    pub failure: Option<Failure>,
}

/// Callback that processes a task. A result other than 0 ends the run.
pub type Process<'a> = &'a (dyn Fn(&Task<'_>, &[u8]) -> i32 + Sync);

/// A task being processed: operations of its function beyond computing.
pub struct Task<'a> {
    pub(super) root: Root,
    /// Maximum bytes of the tasks that it creates.
    pub(super) largest: usize,
    pub(super) place: Place<'a>,
}

pub(super) enum Place<'a> {
    /// On the thread of the world.
    Here(&'a World),
    /// On another thread. The flag is the run's: once it is set, no more tasks begin.
    There(&'a RefCell<Deeds>, &'a AtomicBool),
}

impl Task<'_> {
    /// Creates a task. `cost` is an estimate of its work, in the unit of the others (0: unknown): a rank that asks for tasks is given half of
    /// the work. Tasks of larger `priority` come first, as a hint.
    ///
    /// # Errors
    /// Wrong usage, if the cost is negative or not finite, or the body is too large for the scheduler; if there is no memory for the body.
    pub fn put(&self, body: &[u8], cost: f64, priority: i32) -> Result<()> {
        check_cost(cost)?;
        check_size(body.len(), self.largest)?;
        let item = Item { root: self.root, priority, cost, body: copied(body, "a task's body")?.into() };
        match &self.place {
            Place::Here(world) => _ = world.with_run(|run| run.queue_up(item)),
            Place::There(deeds, _) => deeds.borrow_mut().puts.push(item),
        }
        Ok(())
    }

    /// Sends a result to where the task's root was put. If there is no memory for it, the run ends with that failure.
    pub fn result(&self, bytes: &[u8]) {
        match (&self.place, copied(bytes, "a result")) {
            (Place::Here(world), Ok(bytes)) => world.to_root(self.root, bytes),
            (Place::Here(world), Err(failure)) => world.fails(failure),
            (Place::There(deeds, _), Ok(bytes)) => deeds.borrow_mut().results.push(bytes),
            (Place::There(deeds, _), Err(failure)) => _ = deeds.borrow_mut().failure.get_or_insert(failure),
        }
    }

    /// No more tasks begin on this rank, and none on the others from when the message arrives, which leaves at once.
    pub fn stop(&self) {
        match &self.place {
            Place::Here(world) => world.stop_run(),
            // The thread of the world sees it within its next look at the network, and tells the other ranks.
            Place::There(_, halted) => halted.store(true, Ordering::Relaxed),
        }
    }

    /// Answers other ranks, in long tasks.
    pub fn progress(&self) {
        if let Place::Here(world) = &self.place {
            world.serve_others();
        }
    }
}

/// A copy of bytes of the caller's.
pub(super) fn copied(bytes: &[u8], what: &str) -> Result<Vec<u8>> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len(), what)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

pub(super) fn check_cost(cost: f64) -> Result<()> {
    match cost.is_finite() && cost >= 0.0 {
        true => Ok(()),
        false => Err(Failure::usage(format!("cost {cost}: it must be finite and at least 0"))),
    }
}

/// Refuses a body that is too large for the scheduler.
pub(super) fn check_size(bytes: usize, largest: usize) -> Result<()> {
    match bytes <= largest {
        true => Ok(()),
        false => Err(Failure::usage(format!("a task of {bytes} bytes: no more than {largest} travel under this scheduler"))),
    }
}
