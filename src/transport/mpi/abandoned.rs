//! Buffers that outlive their operation.

use std::any::Any;
use std::sync::Mutex;

/// They stay reachable, so that tools that look for lost memory find none here.
static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Keeps buffers to the end of the process: MPI may still read or write them, because their operation will never be complete.
pub(crate) fn keep(buffers: impl Any + Send) {
    // A list is whole whoever panicked meanwhile.
    KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(Box::new(buffers));
}
