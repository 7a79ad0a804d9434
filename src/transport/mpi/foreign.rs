//! MPI calls that a guest in another program needs: communicators given by address, transfers between the caller's own arrays, and
//! numbers on rank 0 that every rank reads and changes while rank 0 computes.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::binding::{self as mpi, byte, no_request};
use super::ffi::{Comm, check, count};
use super::sends::{TESTED_AT_ONCE, those_over};
use crate::error::{Error, Result};
use crate::topology::RankId;

/// A communicator of the caller's, not yet ours.
#[derive(Clone, Copy)]
pub(crate) struct Foreign(pub(super) mpi::MPI_Comm);

impl Foreign {
    /// The communicator of rsmpi's.
    #[cfg(feature = "mpi")]
    pub fn of(comm: &impl ::mpi::traits::AsRaw<Raw = mpi::MPI_Comm>) -> Foreign {
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
        if address.is_null() {
            return Err(Error::usage("the address of the communicator is NULL"));
        }
        // SAFETY: the caller promises that these bytes are a handle.
        let comm = unsafe { mpi::comm_at(address, size) };
        let wrong = |expected| Error::usage(format!("a communicator has {expected} bytes in this MPI, and {size} were given"));
        comm.map(Foreign).map_err(wrong)
    }

    /// The communicator that a Fortran program knows by this number.
    ///
    /// # Errors
    /// Wrong usage if there is none.
    pub fn of_fortran(number: c_int) -> Result<Foreign> {
        mpi::comm_of_fortran(number).map(Foreign).ok_or_else(|| Error::usage(format!("no communicator has the number {number}")))
    }

    /// Checks that it is a communicator of one group that MPI can work with now.
    ///
    /// # Errors
    /// Wrong usage if it is null, or an intercommunicator.
    pub fn check(self) -> Result<()> {
        if self.0 == mpi::no_comm() {
            return Err(Error::usage("the communicator is MPI_COMM_NULL"));
        }
        let mut inter: c_int = 0;
        // SAFETY: a communicator by the caller's promise; the pointer is valid.
        check("MPI_Comm_test_inter", unsafe { mpi::MPI_Comm_test_inter(self.0, &raw mut inter) })?;
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
    requests: Vec<mpi::MPI_Request>,
}

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
                    mpi::MPI_Irecv(into, count(size)?, byte(), part.from.get() as c_int, tag, comm.raw, &raw mut request)
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
                    mpi::MPI_Isend(from, count(size)?, byte(), part.to.get() as c_int, tag, comm.raw, &raw mut request)
                })?;
                transfers.requests.push(request);
            }
        }
        Ok(transfers)
    }

    /// Number of transfers that are not known to be over.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Looks at some; whether all are over.
    pub fn are_over(&mut self) -> Result<bool> {
        while !self.requests.is_empty() {
            let start = self.requests.len().saturating_sub(TESTED_AT_ONCE);
            let mut indices = [0; TESTED_AT_ONCE];
            let over = those_over(&mut self.requests[start..], &mut indices)?;
            if over.is_empty() {
                return Ok(false);
            }
            for index in over {
                self.requests.swap_remove(start + *index as usize);
            }
        }
        Ok(true)
    }
}

/// Numbers on rank 0 that all ranks change by one-sided calls.
pub(super) struct Window {
    raw: mpi::MPI_Win,
    length: usize,
}

impl Window {
    /// Makes a window of `length` numbers, all 0. Collective: all ranks must call it. Waits.
    pub fn allocate(comm: &Comm, length: usize) -> Result<Window> {
        let mine = if comm.rank()? == RankId::FIRST { length } else { 0 };
        let mut base: *mut u64 = ptr::null_mut();
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointers are valid; MPI writes the window if it returns success, and only then it is read.
        let raw = unsafe {
            check(
                "MPI_Win_allocate",
                mpi::MPI_Win_allocate((mine * 8) as mpi::MPI_Aint, 8, mpi::no_info(), comm.raw, (&raw mut base).cast(), raw.as_mut_ptr()),
            )?;
            raw.assume_init()
        };
        if mine > 0 && !base.is_null() {
            // SAFETY: MPI gave this rank `length` numbers there, and no other rank uses them yet.
            unsafe { ptr::write_bytes(base, 0, mine) };
        }
        // SAFETY: the window is valid; errors of its calls are returned.
        check("MPI_Win_set_errhandler", unsafe { mpi::MPI_Win_set_errhandler(raw, mpi::errors_return()) })?;
        // SAFETY: the window is valid.
        check("MPI_Win_lock_all", unsafe { mpi::MPI_Win_lock_all(0, raw) })?;
        Ok(Window { raw, length })
    }

    fn operate(&self, at: usize, value: u64, operation: mpi::MPI_Op) -> Result<u64> {
        if at >= self.length {
            return Err(Error::Failed(format!("there are {} shared numbers, and no number {at}", self.length)));
        }
        let mut found = 0u64;
        // SAFETY: the window is locked for all, `at` lies within it, and both numbers stay until the flush is over.
        unsafe {
            let (from, into) = ((&raw const value).cast(), (&raw mut found).cast());
            let at = at as mpi::MPI_Aint;
            check("MPI_Fetch_and_op", mpi::MPI_Fetch_and_op(from, into, mpi::unsigned_64(), 0, at, operation, self.raw))?;
            check("MPI_Win_flush", mpi::MPI_Win_flush(0, self.raw))?;
        }
        Ok(found)
    }

    /// Adds to a shared number, and returns its previous value.
    pub fn add(&self, at: usize, value: u64) -> Result<u64> {
        self.operate(at, value, mpi::sum())
    }

    /// Sets a shared number, and returns its previous value. MPI_REPLACE is no constant of the bindings, so the difference is added: only
    /// for numbers that one rank alone changes.
    pub fn set(&self, at: usize, value: u64) -> Result<u64> {
        let before = self.add(at, 0)?;
        self.add(at, value.wrapping_sub(before))
    }

    /// Gives it back to MPI. All ranks must take part.
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the window is ours and locked, and not used any more since `self` is consumed.
        unsafe {
            check("MPI_Win_unlock_all", mpi::MPI_Win_unlock_all(self.raw))?;
            check("MPI_Win_free", mpi::MPI_Win_free(&raw mut self.raw))
        }
    }
}
