//! A task that is processed, as its function sees it.

use std::cell::RefCell;

use super::buffers::reserve;
use super::call::World;
use super::run::Root;
use super::status::{Failure, Result};

/// Effects of a task that runs on another thread.
#[derive(Default)]
pub(super) struct Deeds {
    pub puts: Vec<(i32, Vec<u8>)>,
    pub results: Vec<Vec<u8>>,
    pub stops: bool,
    /// A failure that ends the run.
    pub failure: Option<Failure>,
}

/// Callback that processes a task. A result other than 0 ends the run.
pub type Process<'a> = &'a (dyn Fn(&Task<'_>, &[u8]) -> i32 + Sync);

/// A task being processed: operations of its function beyond computing.
pub struct Task<'a> {
    pub(super) root: Root,
    pub(super) place: Place<'a>,
}

pub(super) enum Place<'a> {
    /// On the thread of the world.
    Here(&'a World),
    /// On another thread.
    There(&'a RefCell<Deeds>),
}

impl Task<'_> {
    /// Creates a task. `cost` is an estimate of its work (0: unknown); tasks of larger `priority` come first, as a hint.
    ///
    /// # Errors
    /// Wrong usage, if the cost is negative or not finite; if there is no memory for the body.
    pub fn put(&self, body: &[u8], cost: f64, priority: i32) -> Result<()> {
        check_cost(cost)?;
        let body = copied(body, "a task's body")?;
        match &self.place {
            Place::Here(world) => _ = world.with_run(|run| run.push(self.root, priority, body)),
            Place::There(deeds) => deeds.borrow_mut().puts.push((priority, body)),
        }
        Ok(())
    }

    /// Sends a result to where the task's root was put. If there is no memory for it, the run ends with that failure.
    pub fn result(&self, bytes: &[u8]) {
        match (&self.place, copied(bytes, "a result")) {
            (Place::Here(world), Ok(bytes)) => world.to_root(self.root, bytes),
            (Place::Here(world), Err(failure)) => world.fails(failure),
            (Place::There(deeds), Ok(bytes)) => deeds.borrow_mut().results.push(bytes),
            (Place::There(deeds), Err(failure)) => _ = deeds.borrow_mut().failure.get_or_insert(failure),
        }
    }

    /// No more tasks begin anywhere.
    pub fn stop(&self) {
        match &self.place {
            Place::Here(world) => world.stop_run(),
            Place::There(deeds) => deeds.borrow_mut().stops = true,
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
