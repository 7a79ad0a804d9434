//! Early end of an experiment: a record of the finished part, with a mark on it.

use equipoise::agreement;
use equipoise::error::{Error, Result};
use equipoise::transport::interrupt::signal_name;
use equipoise::transport::world::World;
use serde::Serialize;

/// The mark on a record of an experiment that was asked to end before it was through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// The signal that asked, such as `SIGUSR1`.
    pub signal: String,
    /// Number of finished phases or runs, and of all; unmeasured ones count, too.
    pub done: u64,
    pub of: u64,
}

impl Interruption {
    /// The interruption of the world's last operation; `None` if there was none, or it came when all was done.
    pub fn of(world: &World, done: u64, of: u64) -> Option<Interruption> {
        let signal = world.interrupted().filter(|_| done < of)?;
        Some(Interruption { signal: signal_name(signal), done, of })
    }

    /// One sentence about it; `what` is the noun for the counted items, in the plural.
    pub fn sentence(&self, what: &str) -> String {
        let Interruption { signal, done, of } = self;
        match done {
            0 => format!("Interrupted by {signal} before any of {of} {what} was finished."),
            _ => format!("Interrupted by {signal} after {done} of {of} {what}: the record is of these."),
        }
    }
}

/// Runs one step of an experiment and returns its result; `None` if the experiment ends here, because a rank was asked to end before the
/// step, or because the step was given up.
///
/// # Errors
/// Those of the step, and as [`World::run`].
pub(super) fn unless_interrupted<T>(world: &mut World, step: impl FnOnce(&mut World) -> Result<T>) -> Result<Option<T>> {
    let done = match agreement::is_interrupted(world) {
        Ok(false) => step(world).map(Some),
        Ok(true) => return Ok(None),
        Err(why) => Err(why),
    };
    match done {
        Err(Error::Interrupted) => Ok(None),
        done => done,
    }
}
