//! MPI calls that a guest in somebody else's program needs: communicators given by address, transfers between the caller's own arrays, and
//! numbers on rank 0 that every rank reads and changes while rank 0 computes.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr;

use ::mpi::ffi;
use ::mpi::traits::AsRaw;

use super::ffi::{Comm, byte, check, count, no_request};
use crate::error::{Error, Result};
use crate::topology::RankId;

impl Comm {
    /// Duplicates a communicator, without the hints of the original: those can forbid receives from any source.
    pub fn duplicate_without_hints(raw: ffi::MPI_Comm) -> Result<Comm> {
        let mut duplicate = MaybeUninit::uninit();
        // SAFETY: `raw` is a communicator that its owner keeps during the call; MPI writes the duplicate if it returns success; the info handle is MPI's own constant.
        let raw = unsafe {
            check("MPI_Comm_dup_with_info", ffi::MPI_Comm_dup_with_info(raw, ffi::RSMPI_INFO_NULL, duplicate.as_mut_ptr()))?;
            duplicate.assume_init()
        };
        // SAFETY: `raw` is the valid communicator made above.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN) })?;
        Ok(Comm { raw, _here: std::marker::PhantomData })
    }
}

/// A communicator of the caller's, not yet ours.
#[derive(Clone, Copy)]
pub(crate) struct Foreign(pub(super) ffi::MPI_Comm);

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

impl Foreign {
    /// The communicator of rsmpi's.
    pub fn of(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) -> Foreign {
        Foreign(comm.as_raw())
    }

    /// The communicator whose handle of `size` bytes is at this address.
    ///
    /// # Safety
    /// `size` bytes can be read there, and they are a communicator's handle.
    ///
    /// # Errors
    /// Wrong usage if the size is not that of a handle of this MPI, or the address is null.
    pub unsafe fn at(address: *const c_void, size: usize) -> Result<Foreign> {
        let expected = mem::size_of::<ffi::MPI_Comm>();
        if address.is_null() {
            return Err(Error::usage("the address of the communicator is NULL"));
        }
        if size != expected {
            return Err(Error::usage(format!("a communicator has {expected} bytes in this MPI, and {size} were given")));
        }
        // SAFETY: the caller promises that these bytes are a handle; they need not be aligned.
        Ok(Foreign(unsafe { ptr::read_unaligned(address.cast()) }))
    }

    /// The communicator that a Fortran program knows by this number.
    ///
    /// # Errors
    /// If this MPI has no way to say.
    pub fn of_fortran(number: c_int) -> Result<Foreign> {
        // MPICH's handles are the numbers themselves, and its `MPI_Comm_f2c` may be a macro.
        if mem::size_of::<ffi::MPI_Comm>() == mem::size_of::<c_int>() {
            // SAFETY: of the same size, and a plain number in an MPI where handles have that size.
            return Ok(Foreign(unsafe { mem::transmute_copy(&number) }));
        }
        // SAFETY: a null handle asks for any library of the process, and the name ends with a zero.
        let found = unsafe { dlsym(ptr::null_mut(), c"MPI_Comm_f2c".as_ptr()) };
        if found.is_null() {
            return Err(Error::Failed("this MPI has no MPI_Comm_f2c".into()));
        }
        // SAFETY: the MPI standard gives the function this signature (MPI_Fint is a C int in every MPI known).
        let convert: unsafe extern "C" fn(c_int) -> ffi::MPI_Comm = unsafe { mem::transmute(found) };
        // SAFETY: a call without conditions.
        let found = unsafe { convert(number) };
        // SAFETY: a handle of another size than a C int is a pointer in every MPI known.
        let is_null = mem::size_of::<ffi::MPI_Comm>() == mem::size_of::<usize>() && unsafe { mem::transmute_copy::<_, usize>(&found) } == 0;
        if is_null {
            return Err(Error::usage(format!("no communicator has the number {number}")));
        }
        Ok(Foreign(found))
    }

    /// Checks that it is a communicator of one group that MPI can work with now.
    ///
    /// # Errors
    /// Wrong usage if it is null, or an intercommunicator.
    pub fn check(self) -> Result<()> {
        // SAFETY: reading a constant of MPI's.
        if self.0 == unsafe { ffi::RSMPI_COMM_NULL } {
            return Err(Error::usage("the communicator is MPI_COMM_NULL"));
        }
        let mut inter: c_int = 0;
        // SAFETY: a communicator by the caller's promise; the pointer is valid.
        check("MPI_Comm_test_inter", unsafe { ffi::MPI_Comm_test_inter(self.0, &raw mut inter) })?;
        if inter != 0 {
            return Err(Error::usage("the communicator is an intercommunicator, and a world needs an intracommunicator"));
        }
        Ok(())
    }
}

/// Part of an array that leaves for a rank.
#[derive(Clone, Copy)]
pub(crate) struct Leaving {
    pub to: RankId,
    pub from: *const u8,
    pub length: usize,
}

/// Part of an array that a rank's bytes go into.
#[derive(Clone, Copy)]
pub(crate) struct Arriving {
    pub from: RankId,
    pub into: *mut u8,
    pub length: usize,
}

/// Transfers between arrays that others own.
pub(super) struct Transfers {
    requests: Vec<ffi::MPI_Request>,
}

/// Room for what one look at the transfers finds.
const LOOK: usize = 256;

impl Transfers {
    /// Begins transfers. All ranks know what all others send them; between two ranks bytes arrive in the order of the lists.
    ///
    /// # Safety
    /// The arrays stay as they are, and where they are, until all transfers are over.
    pub unsafe fn begin(comm: &Comm, tag: c_int, piece: usize, arriving: &[Arriving], leaving: &[Leaving]) -> Result<Transfers> {
        let mut transfers = Transfers { requests: Vec::new() };
        for part in arriving {
            for start in (0..part.length).step_by(piece) {
                let size = piece.min(part.length - start);
                let mut request = no_request();
                // SAFETY: within the array, which stays by the caller's promise.
                check("MPI_Irecv", unsafe {
                    let into = part.into.add(start).cast();
                    ffi::MPI_Irecv(into, count(size)?, byte(), part.from as c_int, tag, comm.raw, &raw mut request)
                })?;
                transfers.requests.push(request);
            }
        }
        for part in leaving {
            for start in (0..part.length).step_by(piece) {
                let size = piece.min(part.length - start);
                let mut request = no_request();
                // SAFETY: within the array, which stays by the caller's promise.
                check("MPI_Isend", unsafe {
                    let from = part.from.add(start).cast();
                    ffi::MPI_Isend(from, count(size)?, byte(), part.to as c_int, tag, comm.raw, &raw mut request)
                })?;
                transfers.requests.push(request);
            }
        }
        Ok(transfers)
    }

    /// Looks at some; whether all are over.
    pub fn are_over(&mut self) -> Result<bool> {
        while !self.requests.is_empty() {
            let start = self.requests.len().saturating_sub(LOOK);
            let looked_at = &mut self.requests[start..];
            let mut indices = [0 as c_int; LOOK];
            let mut over: c_int = 0;
            // SAFETY: requests that MPI gave, room for as many indices, and no statuses wanted.
            check("MPI_Testsome", unsafe {
                let (incount, statuses) = (looked_at.len() as c_int, ffi::RSMPI_STATUSES_IGNORE);
                ffi::MPI_Testsome(incount, looked_at.as_mut_ptr(), &raw mut over, indices.as_mut_ptr(), statuses)
            })?;
            let over = usize::try_from(over).unwrap_or(0);
            if over == 0 {
                return Ok(false);
            }
            let over = &mut indices[..over];
            over.sort_unstable_by(|a, b| b.cmp(a));
            for &mut index in over {
                self.requests.swap_remove(start + index as usize);
            }
        }
        Ok(true)
    }
}

/// Numbers on rank 0 that all ranks change by one-sided calls.
pub(super) struct Window {
    raw: ffi::MPI_Win,
    length: usize,
}

impl Window {
    /// Makes so many numbers, all 0. All ranks must take part. Waits.
    pub fn allocate(comm: &Comm, length: usize) -> Result<Window> {
        let mine = if comm.rank()? == 0 { length } else { 0 };
        let mut base: *mut u64 = ptr::null_mut();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointers are valid; MPI writes the window if it returns success, and only then it is read.
        let raw = unsafe {
            check(
                "MPI_Win_allocate",
                ffi::MPI_Win_allocate(
                    (mine * 8) as ffi::MPI_Aint,
                    8,
                    ffi::RSMPI_INFO_NULL,
                    comm.raw,
                    (&raw mut base).cast(),
                    raw.as_mut_ptr(),
                ),
            )?;
            raw.assume_init()
        };
        if mine > 0 && !base.is_null() {
            // SAFETY: MPI gave this rank `length` numbers there, and nobody knows of them yet.
            unsafe { ptr::write_bytes(base, 0, mine) };
        }
        // SAFETY: the window is valid; errors of its calls are returned.
        check("MPI_Win_set_errhandler", unsafe { ffi::MPI_Win_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN) })?;
        // SAFETY: the window is valid.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(0, raw) })?;
        Ok(Window { raw, length })
    }

    fn operate(&self, at: usize, value: u64, operation: ffi::MPI_Op) -> Result<u64> {
        if at >= self.length {
            return Err(Error::Failed(format!("there are {} shared numbers, and no number {at}", self.length)));
        }
        let mut found = 0u64;
        // SAFETY: the window is locked for all, `at` lies within it, and both numbers stay until the flush is over.
        unsafe {
            let (from, into) = ((&raw const value).cast(), (&raw mut found).cast());
            let at = at as ffi::MPI_Aint;
            check("MPI_Fetch_and_op", ffi::MPI_Fetch_and_op(from, into, ffi::RSMPI_UINT64_T, 0, at, operation, self.raw))?;
            check("MPI_Win_flush", ffi::MPI_Win_flush(0, self.raw))?;
        }
        Ok(found)
    }

    /// Adds to a number; what it was before.
    pub fn add(&self, at: usize, value: u64) -> Result<u64> {
        // SAFETY: reading a constant of MPI's.
        self.operate(at, value, unsafe { ffi::RSMPI_SUM })
    }

    /// Sets a number; what it was before. MPI_REPLACE is no constant of the bindings, so the difference is added: only for numbers that
    /// one rank alone changes.
    pub fn set(&self, at: usize, value: u64) -> Result<u64> {
        let before = self.add(at, 0)?;
        self.add(at, value.wrapping_sub(before))
    }

    /// Gives it back to MPI. All ranks must take part.
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the window is ours and locked, and nobody uses it any more since `self` is consumed.
        unsafe {
            check("MPI_Win_unlock_all", ffi::MPI_Win_unlock_all(self.raw))?;
            check("MPI_Win_free", ffi::MPI_Win_free(&raw mut self.raw))
        }
    }
}
