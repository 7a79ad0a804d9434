//! Immediate sends that own the bytes they read.

use std::ffi::c_int;
use std::mem;

use super::abandoned;
use super::binding::{self as mpi, MPI_Request, byte, no_request};
use super::ffi::{Comm, check, count, passed, survives, test};
use super::outgoing::Outgoing;
use crate::error::Result;
use crate::topology::RankId;

/// Number of requests that one [look](those_over) covers.
pub(super) const TESTED_AT_ONCE: usize = 128;

/// Indices of the requests that are over, of at most [`TESTED_AT_ONCE`], in descending order: so removing one from the list moves none that is still
/// to be removed.
pub(super) fn those_over<'a>(requests: &mut [MPI_Request], indices: &'a mut [c_int; TESTED_AT_ONCE]) -> Result<&'a [c_int]> {
    let number = requests.len().min(TESTED_AT_ONCE) as c_int;
    let mut over: c_int = 0;
    // SAFETY: these are requests that MPI gave, there is room for an index of each, and statuses are not wanted.
    check("MPI_Testsome", unsafe {
        mpi::MPI_Testsome(number, requests.as_mut_ptr(), &raw mut over, indices.as_mut_ptr(), mpi::statuses_ignore())
    })?;
    // MPI_UNDEFINED (negative) says that there was nothing active.
    let over = &mut indices[..usize::try_from(over).unwrap_or(0)];
    over.sort_unstable_by(|a, b| b.cmp(a));
    Ok(over)
}

/// Immediate sends that are not over, with the bytes they read.
#[derive(Default)]
pub(super) struct Sends {
    requests: Vec<MPI_Request>,
    bytes: Vec<Outgoing>,
    /// Start of the next poll: many sends are polled in turns.
    cursor: usize,
}

impl Sends {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Starts a send. One that is over at once gives its bytes back.
    pub fn start(&mut self, comm: &Comm, to: RankId, tag: c_int, bytes: Outgoing) -> Result<Option<Outgoing>> {
        let slice = bytes.bytes();
        let mut request = no_request();
        // SAFETY: the slice is valid now, and stays so where it is until the request is over: `self` owns the bytes, whose heap block
        // (or static) does not move with them, and leaks them if it is dropped before.
        let passed = passed("MPI_Isend", unsafe {
            mpi::MPI_Isend(slice.as_ptr().cast(), count(slice.len())?, byte(), to.get() as c_int, tag, comm.raw, &raw mut request)
        })?;
        if !passed {
            return Ok(Some(bytes));
        }
        // From here on MPI may read the bytes, so they must be held before anything can fail.
        let waits = matches!(bytes, Outgoing::Shared(_));
        self.requests.push(request);
        self.bytes.push(bytes);
        // A long piece is over when its receiver has fetched it. To ask whether a send is over that is not makes MPI poll of the network, and
        // give the processor away if it finds nothing there; the receiver is better served by what this rank does next.
        let newest = self.requests.len() - 1;
        if waits || test(&mut self.requests[newest])?.is_none() {
            return Ok(None);
        }
        self.requests.pop();
        Ok(self.bytes.pop())
    }

    /// Hands the bytes of some sends that are over to `done`.
    pub fn collect(&mut self, mut done: impl FnMut(Outgoing)) -> Result<()> {
        if self.requests.is_empty() {
            return Ok(());
        }
        if self.cursor >= self.requests.len() {
            self.cursor = 0;
        }
        let end = self.requests.len().min(self.cursor + TESTED_AT_ONCE);
        if survives() {
            for at in (self.cursor..end).rev() {
                let is_over = test(&mut self.requests[at])?.is_some();
                // A failed send is over, too.
                if is_over || self.requests[at] == no_request() {
                    self.requests.swap_remove(at);
                    done(self.bytes.swap_remove(at));
                }
            }
            self.cursor = end;
            return Ok(());
        }
        let mut indices = [0; TESTED_AT_ONCE];
        for index in those_over(&mut self.requests[self.cursor..end], &mut indices)? {
            let index = self.cursor + *index as usize;
            self.requests.swap_remove(index);
            done(self.bytes.swap_remove(index));
        }
        self.cursor = end;
        Ok(())
    }
}

impl Drop for Sends {
    fn drop(&mut self) {
        // MPI may still read them. The list itself is ours.
        if !self.bytes.is_empty() {
            abandoned::keep(mem::take(&mut self.bytes));
        }
    }
}
