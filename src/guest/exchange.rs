//! Operations for bindings of other languages, beyond the calls of programs: an all-gather of bytes, giving a world up, and being
//! interrupted.

use std::time::{Duration, Instant};

use super::call::{State, World};
use super::interrupts::Interrupts;
use super::letters::Op;
use super::status::{Failure, Result, split};

/// Interval between two calls.
const EVERY: Duration = Duration::from_millis(20);

impl World {
    /// All-gather of bytes, by rank; `mine` is this rank's bytes, or the error in its arguments. `name` describes the bytes, and is the
    /// same on all ranks. Collective.
    ///
    /// # Errors
    /// The failure of the lowest rank that has one.
    pub fn exchange(&self, name: &str, mine: Result<&[u8]>) -> Result<Vec<Vec<u8>>> {
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let name = name.bytes().fold(17u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
            let (mine, wrong) = split(mine);
            state.agree_saying(Op::Exchange, wrong, &[("call", name)], mine.unwrap_or_default().to_vec())
        })
    }

    /// Makes the world a lost one, here and with the other ranks, which hear of it when they wait next. Not collective.
    pub fn abandon(&self, failure: Failure) {
        // The call returns the failure that it was given.
        _ = self.call(|_| Err::<(), _>(failure));
    }

    /// Sets a callback that is called some fifty times a second while calls wait.
    ///
    /// # Errors
    /// [`Status::Usage`](super::Status::Usage) on another thread than the one that opened the world.
    pub fn ask_while_waiting(&self, ask: impl FnMut() -> Result<()> + 'static) -> Result<()> {
        self.check_thread()?;
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.interrupts = Interrupts { ask: Some(Box::new(ask)), last: None };
        }
        Ok(())
    }
}

impl State {
    /// Asks whether this wait should end, if it is time to.
    pub fn ask(&mut self) -> Result<()> {
        let Interrupts { ask: Some(ask), last } = &mut self.interrupts else { return Ok(()) };
        let now = Instant::now();
        match last {
            Some(last) if now.duration_since(*last) < EVERY => Ok(()),
            _ => {
                *last = Some(now);
                ask()
            }
        }
    }
}
