//! Baselines of the bench: phases written in C (`by_hand.c`, `zoltan.c`), which `scripts/bench` compiles to shared objects with the MPI's
//! own compiler. They run in this process, on the same MPI, and keep all buffers from phase to phase.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use equipoise::{Error, Result};
use libloading::Library;

/// Content of a rank: number of tasks, sum of their numbers and of the squares, and number of changed payload words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Found {
    pub tasks: u64,
    pub ids: u64,
    pub squares: u64,
    pub wrong: u64,
}

type Begin = unsafe extern "C" fn(usize, u64) -> *mut c_void;
type Fill = unsafe extern "C" fn(*mut c_void, u64, u64) -> c_int;
type Run = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
type Check = unsafe extern "C" fn(*const c_void, *mut Found);
type End = unsafe extern "C" fn(*mut c_void);

/// One kind of phase with its tasks. Lives between MPI's initialisation and its end, on the thread that initialised it.
pub struct ByHand {
    state: NonNull<c_void>,
    fill: Fill,
    run: Run,
    check: Check,
    end: End,
    /// Holds the code that the pointers above point to.
    _library: Library,
}

impl ByHand {
    /// Loads a library, and makes room for `room` tasks of `size` bytes. Collective: all ranks must call it.
    pub fn load(path: &str, size: usize, room: u64) -> Result<ByHand> {
        let wrong = |why: libloading::Error| Error::usage(format!("{path}: {why}"));
        // SAFETY: the file is one that scripts/bench has compiled from by_hand.c or zoltan.c in this file's folder: loading it runs nothing but
        // the loaders of MPI and Zoltan.
        let library = unsafe { Library::new(path) }.map_err(wrong)?;
        // SAFETY: tasks.h declares these functions with just these types; the pointers are kept together with the library that they lead into.
        let (begin, fill, run, check, end) = unsafe {
            (
                *library.get::<Begin>(b"by_hand_begin\0").map_err(wrong)?,
                *library.get::<Fill>(b"by_hand_fill\0").map_err(wrong)?,
                *library.get::<Run>(b"by_hand_phase\0").map_err(wrong)?,
                *library.get::<Check>(b"by_hand_check\0").map_err(wrong)?,
                *library.get::<End>(b"by_hand_end\0").map_err(wrong)?,
            )
        };
        // SAFETY: MPI is initialised (the callers see to it), and all ranks call this. The size is at least 8, as tasks.h needs it.
        let state = unsafe { begin(size.max(8), room) };
        let state = NonNull::new(state).ok_or_else(|| Error::Failed(format!("{path}: it can't begin")))?;
        Ok(ByHand { state, fill, run, check, end, _library: library })
    }

    /// The tasks that the next phase begins with: `first .. first + count`.
    pub fn fill(&mut self, first: u64, count: u64) -> Result<()> {
        // SAFETY: the state is the one that `begin` made, and nothing else uses it.
        let filled = unsafe { (self.fill)(self.state.as_ptr(), first, count) };
        if filled == 0 { Err(Error::Failed("there is no memory for the tasks".into())) } else { Ok(()) }
    }

    /// One phase. All ranks must call it.
    pub fn phase(&mut self, way: i32) -> Result<()> {
        // SAFETY: as above; MPI is initialised, and this is the thread that did it.
        match unsafe { (self.run)(self.state.as_ptr(), way) } {
            0 => Ok(()),
            code => Err(Error::Failed(format!("the phase in C ended with {code}"))),
        }
    }

    /// Current content.
    pub fn check(&self) -> Found {
        let mut found = Found::default();
        // SAFETY: as above; `found` has room for the four numbers that are written.
        unsafe { (self.check)(self.state.as_ptr(), &raw mut found) };
        found
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        // SAFETY: the state is not used any more. MPI is not finalised yet, since the owner of this value is dropped before the universe.
        unsafe { (self.end)(self.state.as_ptr()) };
    }
}
