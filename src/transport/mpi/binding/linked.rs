//! MPI through the crate `mpi`: its bindings are made from the `mpi.h` of the MPI that the program is linked with.

use std::ffi::{c_char, c_int, c_void};

use ::mpi::ffi;
pub use ::mpi::ffi::{
    MPI_Abort, MPI_Aint, MPI_Allgather, MPI_Cancel, MPI_Comm, MPI_Comm_create_group, MPI_Comm_dup_with_info, MPI_Comm_free, MPI_Comm_group,
    MPI_Comm_rank, MPI_Comm_set_errhandler, MPI_Comm_size, MPI_Comm_test_inter, MPI_Datatype, MPI_Errhandler, MPI_Error_string,
    MPI_Fetch_and_op, MPI_Get_count, MPI_Group, MPI_Group_free, MPI_Group_incl, MPI_Iallgather, MPI_Iallgatherv, MPI_Iallreduce,
    MPI_Iexscan, MPI_Info, MPI_Irecv, MPI_Ireduce_scatter_block, MPI_Is_thread_main, MPI_Isend, MPI_Op, MPI_Request, MPI_Status, MPI_Test,
    MPI_Testsome, MPI_Wait, MPI_Win, MPI_Win_allocate, MPI_Win_flush, MPI_Win_free, MPI_Win_lock_all, MPI_Win_set_errhandler,
    MPI_Win_unlock_all,
};
use ::mpi::{Threading, environment};

/// Reads constants that MPI's library holds.
macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $constant:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name() -> $type {
            // SAFETY: a constant that MPI's library holds; reading it has no condition.
            unsafe { ffi::$constant }
        }
    )*};
}

constants! {
    /// MPI's type of bytes.
    byte: MPI_Datatype = RSMPI_UINT8_T;
    /// MPI's type of `u64`.
    unsigned_64: MPI_Datatype = RSMPI_UINT64_T;
    /// The operation that adds.
    sum: MPI_Op = RSMPI_SUM;
    /// MPI's "no request".
    no_request: MPI_Request = RSMPI_REQUEST_NULL;
    /// The communicator of all ranks.
    world: MPI_Comm = RSMPI_COMM_WORLD;
    /// The handler that returns errors instead of ending the job.
    errors_return: MPI_Errhandler = RSMPI_ERRORS_RETURN;
    /// No hints.
    no_info: MPI_Info = RSMPI_INFO_NULL;
    /// No communicator.
    no_comm: MPI_Comm = RSMPI_COMM_NULL;
    /// Source of a receive from any rank (`MPI_ANY_SOURCE`).
    any_source: c_int = RSMPI_ANY_SOURCE;
    /// Receives whatever tag.
    any_tag: c_int = RSMPI_ANY_TAG;
    /// "I want no status."
    status_ignore: *mut MPI_Status = RSMPI_STATUS_IGNORE;
    /// "I want no statuses."
    statuses_ignore: *mut MPI_Status = RSMPI_STATUSES_IGNORE;
}

/// Source of the message that a status describes.
pub fn source(status: &MPI_Status) -> c_int {
    status.MPI_SOURCE
}

/// The tag of the message that a status tells of.
pub fn tag(status: &MPI_Status) -> c_int {
    status.MPI_TAG
}

/// Returns true if this process has an MPI: it is linked.
pub fn is_loaded() -> bool {
    true
}

/// Returns true if MPI has been initialised in this process.
pub fn is_initialized() -> bool {
    environment::is_initialized()
}

/// Returns true if MPI has been finalised in this process.
pub fn is_finalized() -> bool {
    environment::is_finalized()
}

/// Returns true if threads other than the one that initialised MPI may call it, one at a time.
pub fn other_threads_may_call() -> bool {
    environment::threading_support() >= Threading::Serialized
}

/// MPI as this process initialised it. Finalises when it is dropped.
pub type Universe = environment::Universe;

/// Initialises MPI for a process with threads of which one calls MPI. `None` if it was initialised before; the flag says whether MPI
/// offers that.
pub fn initialise() -> Option<(Universe, bool)> {
    let (universe, level) = ::mpi::initialize_with_threading(Threading::Funneled)?;
    Some((universe, level >= Threading::Funneled))
}

/// MPI's own description.
pub fn library_version() -> String {
    environment::library_version().unwrap_or_default()
}

/// The version of the MPI standard that it keeps.
pub fn standard_version() -> (i32, i32) {
    environment::version()
}

/// The name of the machine, if it is text.
pub fn processor_name() -> Option<String> {
    environment::processor_name().ok()
}

/// How MPI was found: it is linked.
pub fn found() -> Result<String, String> {
    Ok("linked".into())
}

/// Returns true if the job may survive the death of a rank: never, since `mpi.h` does not declare the functions for it.
pub fn survives_losses() -> bool {
    false
}

/// Returns true if a call failed because a rank is lost.
pub fn is_loss(_: c_int) -> bool {
    false
}

/// All ranks of a communicator that are lost so far.
///
/// # Errors
/// None here.
pub fn lost_ranks(_: MPI_Comm) -> Result<Vec<c_int>, c_int> {
    Ok(Vec::new())
}

/// Waits until all ranks of a communicator that are left have called this.
///
/// # Errors
/// None here.
pub fn agree(_: MPI_Comm) -> Result<(), c_int> {
    Ok(())
}

/// The communicator whose handle lies at an address and has this many bytes; a size that is no handle's is given back.
///
/// # Safety
/// The address is that of a communicator handle of the MPI that this program is linked with.
pub unsafe fn comm_at(address: *const c_void, size: usize) -> Result<MPI_Comm, usize> {
    if size != size_of::<MPI_Comm>() {
        return Err(size_of::<MPI_Comm>());
    }
    // SAFETY: the caller's promise; the size is that of a handle.
    Ok(unsafe { address.cast::<MPI_Comm>().read_unaligned() })
}

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The communicator that a Fortran program knows by this number. `None` if there is none.
pub fn comm_of_fortran(number: c_int) -> Option<MPI_Comm> {
    // MPICH's handles are the numbers themselves, and its `MPI_Comm_f2c` may be a macro.
    if size_of::<MPI_Comm>() == size_of::<c_int>() {
        // SAFETY: of the same size, and a plain number in an MPI where handles have that size.
        return Some(unsafe { std::mem::transmute_copy(&number) });
    }
    // SAFETY: a null handle asks for any library of the process, and the name ends with a zero.
    let found = unsafe { dlsym(std::ptr::null_mut(), c"MPI_Comm_f2c".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the MPI standard gives the function this signature (MPI_Fint is a C int in every MPI known).
    let convert: unsafe extern "C" fn(c_int) -> MPI_Comm = unsafe { std::mem::transmute(found) };
    // SAFETY: a call without conditions.
    let comm = unsafe { convert(number) };
    // SAFETY: a handle of another size than a C int is a pointer in every MPI known.
    let is_null = size_of::<MPI_Comm>() == size_of::<usize>() && unsafe { std::mem::transmute_copy::<_, usize>(&comm) } == 0;
    (!is_null).then_some(comm)
}
