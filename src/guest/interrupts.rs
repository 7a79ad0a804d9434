//! Questions that are asked while a call waits.

use std::time::Instant;

use super::status::Result;

/// Asked while a call waits; its failure ends the call, and the world.
pub(super) type Ask = Box<dyn FnMut() -> Result<()>>;

/// The question, and when it was asked last.
#[derive(Default)]
pub(super) struct Interrupts {
    pub ask: Option<Ask>,
    pub last: Option<Instant>,
}
