//! Opening, closing and options of a world.

use std::ffi::c_void;

use super::call::{State, World, in_another_call};
use super::letters::Op;
use super::options::Options;
use super::status::{Failure, Result};
use crate::transport::mpi::foreign::Foreign;
use crate::transport::mpi::guest::{self as carrier, Link};

impl World {
    /// Opens a world on a communicator of rsmpi's. All its ranks must take part.
    ///
    /// # Errors
    /// Wrong usage on all ranks, if MPI is not initialised or may not be called by this thread.
    #[cfg(feature = "mpi")]
    pub fn of(comm: &impl crate::transport::mpi::rsmpi::traits::AsRaw<Raw = crate::transport::mpi::rsmpi::ffi::MPI_Comm>) -> Result<World> {
        World::with_options(comm, "")
    }

    /// The same with options: `key=value`, separated by blanks, as in `balancer=refine timeout=60`.
    ///
    /// # Errors
    /// Wrong usage on all ranks, if some option is wrong on one of them.
    #[cfg(feature = "mpi")]
    pub fn with_options(
        comm: &impl crate::transport::mpi::rsmpi::traits::AsRaw<Raw = crate::transport::mpi::rsmpi::ffi::MPI_Comm>,
        options: &str,
    ) -> Result<World> {
        World::open(|| Ok(Foreign::of(comm)), Ok(options))
    }

    /// Opens a world on the communicator whose handle of `size` bytes is at this address, so that the caller need not use the same
    /// bindings. Collective over the communicator; the options may already be known to be wrong on this rank.
    ///
    /// # Safety
    /// `size` bytes can be read there, and they are the handle of a communicator of the MPI that this library is linked with.
    ///
    /// # Errors
    /// As for [`of`](World::of).
    #[allow(unsafe_code, reason = "hands on the promise of its caller")]
    pub unsafe fn at(address: *const c_void, size: usize, options: Result<&str>) -> Result<World> {
        // SAFETY: the caller's promise.
        World::open(|| unsafe { Foreign::at(address, size) }, options)
    }

    /// Opens a world on the communicator that a Fortran program knows by this number. All its ranks must take part.
    ///
    /// # Errors
    /// As for [`of`](World::of).
    pub fn of_fortran(number: i32, options: Result<&str>) -> Result<World> {
        World::open(|| Foreign::of_fortran(number), options)
    }

    fn open(comm: impl FnOnce() -> crate::Result<Foreign>, options: Result<&str>) -> Result<World> {
        if !carrier::is_active() {
            return Err(Failure::usage("MPI is not initialised, or finalised already"));
        }
        if !carrier::may_call()? {
            return Err(Failure::usage(
                "this thread did not initialise MPI, and may not call it: initialise with MPI_THREAD_SERIALIZED or more",
            ));
        }
        let comm = comm()?;
        comm.check()?;
        let read = options.and_then(Options::parse);
        let link = Link::open(comm)?;
        let (rank, ranks) = (link.rank, link.ranks);
        let (options, mine) = match read {
            Ok(options) => {
                let checked = options.check(ranks);
                (options, checked)
            }
            Err(why) => (Options::default(), Err(why)),
        };
        let world = World::with(State::new(link, options), rank, ranks);
        let agreed = world.call(|world| {
            let mut state = world.state.borrow_mut();
            state.agree(Op::Open, mine, &[]).map(drop)
        });
        if let Err(failure) = agreed {
            // All ranks are here: the duplicates go back.
            if !failure.status.ends_the_world() {
                _ = world.state.borrow_mut().end();
            }
            return Err(failure);
        }
        Ok(world)
    }

    /// Closes the world: its communicators go back to MPI, and nothing can be called after that. All ranks must take part, but for a lost world,
    /// which is only left.
    ///
    /// # Errors
    /// Wrong usage if another rank calls something else, or a loop is open; the world is open then.
    pub fn close(&self) -> Result<()> {
        self.check_thread()?;
        {
            let Ok(mut state) = self.state.try_borrow_mut() else {
                return Err(in_another_call());
            };
            if self.in_callback.get() {
                return Err(Failure::usage("callbacks may call put, result, stop, progress and error only"));
            }
            if state.lost().is_some() || !carrier::is_active() {
                // Its communicators are MPI's affair now.
                state.link = None;
                return Ok(());
            }
        }
        self.call(|world| {
            let mut state = world.state.borrow_mut();
            let open = state.loops.iter().filter(|open| **open).count();
            let mine = match open {
                0 => Ok(()),
                1 => Err(Failure::usage("1 loop is open: end it first")),
                open => Err(Failure::usage(format!("{open} loops are open: end them first"))),
            };
            state.agree(Op::Close, mine, &[])?;
            state.confirm(Op::Close)?;
            state.end()
        })
    }

    /// Why the world is lost, if it is.
    pub fn lost(&self) -> Option<Failure> {
        self.state.try_borrow().ok().and_then(|state| state.lost().cloned())
    }

    /// Returns true if the loop is still open.
    pub fn has_open(&self, of: &super::Loop) -> bool {
        self.state.try_borrow().is_ok_and(|state| state.lost().is_none() && of.is_open_in(&state.loops))
    }

    /// Sets an option. Options must be the same on all ranks at the next call that all make.
    ///
    /// # Errors
    /// Wrong usage, if the key or the value is unknown.
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        self.enter()?;
        let mut options = self.state.borrow().options.clone();
        let set = options.set(key, value).and_then(|()| options.check(self.ranks()));
        self.concluded(set)?;
        self.state.borrow_mut().options = options;
        Ok(())
    }
}
