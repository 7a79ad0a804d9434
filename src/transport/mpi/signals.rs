//! SIGUSR1 and SIGUSR2. Resource managers send them before a job's time is over, and they end a process that does not handle them. Where a
//! program asks for it, they come to its nodes as events.
//!
//! Handling signals needs the feature `signals`. Without it, asking for them is an error.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::Result;
use crate::transport::Signal;

/// Keeps either signal from ending this process, from now on. A program calls this before it opens a world; signals that arrive while no
/// world is open are dropped.
///
/// # Errors
/// If the system refuses, or the library was built without the feature `signals`.
pub fn survive() -> Result<()> {
    handler::survive()
}

/// The flags that signals raise while the value lives; a world's executor polls them.
pub(super) struct Caught {
    pub flags: Vec<(Signal, Arc<AtomicBool>)>,
    /// Held for its `Drop`.
    _handlers: handler::Registered,
}

impl Caught {
    /// Begins to catch both signals if they are wanted.
    pub fn begin(wanted: bool) -> Result<Caught> {
        let mut handlers = handler::Registered::default();
        let flags = if wanted { handlers.catch()? } else { Vec::new() };
        Ok(Caught { flags, _handlers: handlers })
    }
}

#[cfg(feature = "signals")]
mod handler {
    use std::io;
    use std::sync::Once;

    use signal_hook::SigId;
    use signal_hook::consts::{SIGUSR1, SIGUSR2};
    use signal_hook::low_level::unregister;

    use super::{Arc, AtomicBool, Result, Signal};
    use crate::error::Error;

    pub fn survive() -> Result<()> {
        static ONCE: Once = Once::new();
        let mut registered = Ok(());
        ONCE.call_once(|| {
            let ignored = || Arc::<AtomicBool>::default();
            registered = [SIGUSR1, SIGUSR2].into_iter().try_for_each(|signal| signal_hook::flag::register(signal, ignored()).map(|_| ()));
        });
        registered.map_err(refused)
    }

    /// Handlers that are registered until this is dropped.
    #[derive(Default)]
    pub struct Registered(Vec<SigId>);

    impl Registered {
        pub fn catch(&mut self) -> Result<Vec<(Signal, Arc<AtomicBool>)>> {
            [(Signal::User1, SIGUSR1), (Signal::User2, SIGUSR2)]
                .into_iter()
                .map(|(signal, number)| {
                    let flag = Arc::<AtomicBool>::default();
                    self.0.push(signal_hook::flag::register(number, flag.clone()).map_err(refused)?);
                    Ok((signal, flag))
                })
                .collect()
        }
    }

    impl Drop for Registered {
        fn drop(&mut self) {
            // This does not restore the default action: the signal goes on to do nothing.
            self.0.drain(..).for_each(|registered| {
                unregister(registered);
            });
        }
    }

    fn refused(why: io::Error) -> Error {
        Error::Failed(format!("no signals can be caught: {why}"))
    }
}

#[cfg(not(feature = "signals"))]
mod handler {
    use super::{Arc, AtomicBool, Result, Signal};
    use crate::error::Error;

    pub fn survive() -> Result<()> {
        Err(missing())
    }

    #[derive(Default)]
    pub struct Registered(());

    impl Registered {
        #[allow(clippy::unused_self)]
        pub fn catch(&mut self) -> Result<Vec<(Signal, Arc<AtomicBool>)>> {
            Err(missing())
        }
    }

    fn missing() -> Error {
        Error::usage("signals cannot be caught: equipoise was built without its feature `signals`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_caught_only_if_wanted_and_built_in() {
        assert!(Caught::begin(false).is_ok_and(|caught| caught.flags.is_empty()));
        match Caught::begin(true) {
            Ok(caught) => assert_eq!(caught.flags.len(), 2),
            Err(why) => assert!(!cfg!(feature = "signals") && why.to_string().contains("`signals`"), "{why}"),
        }
    }
}
