//! SIGUSR1 and SIGUSR2, which resource managers send before the time is over, and which end a process that has not asked for them. Where a
//! program asks, they come to its nodes as events.

use std::io;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::AtomicBool;

use signal_hook::SigId;
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::low_level::unregister;

use crate::error::{Error, Result};
use crate::transport::Signal;

/// Sees to it that neither signal ends this process from now on. A program calls this first of all; before there is a world, and after it, a
/// signal is for nobody.
///
/// # Errors
/// If the system refuses.
pub fn survive() -> Result<()> {
    static ONCE: Once = Once::new();
    let mut registered = Ok(());
    ONCE.call_once(|| {
        let ignored = || Arc::<AtomicBool>::default();
        registered = [SIGUSR1, SIGUSR2].into_iter().try_for_each(|signal| signal_hook::flag::register(signal, ignored()).map(|_| ()));
    });
    registered.map_err(refused)
}

/// The flags that a world's executor looks at; they are raised while the value lives.
pub(super) struct Caught {
    pub flags: Vec<(Signal, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
}

impl Caught {
    /// None at all, unless they are wanted.
    pub fn begin(wanted: bool) -> Result<Caught> {
        let mut caught = Caught { flags: Vec::new(), registered: Vec::new() };
        let signals: &[_] = if wanted { &[(Signal::User1, SIGUSR1), (Signal::User2, SIGUSR2)] } else { &[] };
        for &(signal, number) in signals {
            let flag = Arc::<AtomicBool>::default();
            caught.registered.push(signal_hook::flag::register(number, flag.clone()).map_err(refused)?);
            caught.flags.push((signal, flag));
        }
        Ok(caught)
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        // The system's own way with the signal does not come back with that: it goes on to do nothing.
        self.registered.drain(..).for_each(|registered| {
            unregister(registered);
        });
    }
}

fn refused(why: io::Error) -> Error {
    Error::Failed(format!("no signals can be caught: {why}"))
}
