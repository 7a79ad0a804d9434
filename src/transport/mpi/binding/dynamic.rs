//! MPI found at run time, with the names and arguments of the linked one.
//!
//! A handle is a machine word here. Where MPI's handles are C ints, a word's lower half is the int and its upper half is zero, so that MPI
//! may write an int where a single handle is (on little-endian machines; a build for others is refused). Lists of handles and of statuses are
//! converted.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use super::family::{Constant, Family};
use super::library::{self, Loaded};

// Elsewhere an int on the stack may lie otherwise than in the lower half of a word, and processes are found in another way.
#[cfg(not(all(target_os = "linux", target_endian = "little", target_pointer_width = "64")))]
compile_error!("the feature `mpi-dynamic` is for Linux on little-endian machines of 64 bits; link with MPI by the feature `mpi`");

/// A handle of MPI's, of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Handle(pub(super) usize);

pub type MPI_Comm = Handle;
pub type MPI_Datatype = Handle;
pub type MPI_Errhandler = Handle;
pub type MPI_Group = Handle;
pub type MPI_Info = Handle;
pub type MPI_Op = Handle;
pub type MPI_Request = Handle;
pub type MPI_Win = Handle;
/// An address, or a size in memory.
pub type MPI_Aint = isize;

/// A status as MPI writes it, with the size of the largest one of all families.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct MPI_Status([c_int; STATUS_INTS]);

const STATUS_INTS: usize = 8;

/// Declares MPI's functions: a table of their addresses, and for each a function that calls it.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        #[allow(non_snake_case, reason = "MPI's own names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Functions {
            fn of(loaded: &Loaded) -> Result<Functions, String> {
                Ok(Functions {
                    $($name: {
                        let address = library::address(&loaded.library, stringify!($name))
                            .ok_or_else(|| format!("{} has no {}", loaded.found, stringify!($name)))?;
                        // SAFETY: the address is that of MPI's function of this name, whose arguments the standard fixes. Handles are passed
                        // as words: where they are ints, the callee reads the lower half of the register.
                        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(address) }
                    },)*
                })
            }
        }

        functions!(@calls $($name($($argument: $type),*);)*);
    };
    (@calls $($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// MPI's function of this name.
        ///
        /// # Safety
        /// As the MPI standard says.
        #[allow(non_snake_case, dead_code, reason = "MPI's own names; some are called under another name")]
        pub unsafe fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { (mpi().functions.$name)($($argument),*) }
        }
    )*};
}

functions! {
    MPI_Init_thread(argc: *mut c_int, argv: *mut c_void, required: c_int, provided: *mut c_int);
    MPI_Initialized(flag: *mut c_int);
    MPI_Finalized(flag: *mut c_int);
    MPI_Finalize();
    MPI_Query_thread(provided: *mut c_int);
    MPI_Is_thread_main(flag: *mut c_int);
    MPI_Get_processor_name(name: *mut c_char, length: *mut c_int);
    MPI_Get_library_version(version: *mut c_char, length: *mut c_int);
    MPI_Get_version(version: *mut c_int, subversion: *mut c_int);
    MPI_Error_string(code: c_int, text: *mut c_char, length: *mut c_int);
    MPI_Abort(comm: MPI_Comm, code: c_int);
    MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, duplicate: *mut MPI_Comm);
    MPI_Comm_set_errhandler(comm: MPI_Comm, handler: MPI_Errhandler);
    MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int);
    MPI_Comm_size(comm: MPI_Comm, size: *mut c_int);
    MPI_Comm_free(comm: *mut MPI_Comm);
    MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group);
    MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, created: *mut MPI_Comm);
    MPI_Group_incl(group: MPI_Group, number: c_int, ranks: *const c_int, included: *mut MPI_Group);
    MPI_Group_free(group: *mut MPI_Group);
    MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int);
    MPI_Allgather(from: *const c_void, sent: c_int, sends: MPI_Datatype, to: *mut c_void, received: c_int, receives: MPI_Datatype, comm: MPI_Comm);
    MPI_Iallgather(
        from: *const c_void, sent: c_int, sends: MPI_Datatype, to: *mut c_void, received: c_int, receives: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request
    );
    MPI_Iallgatherv(
        from: *const c_void, sent: c_int, sends: MPI_Datatype, to: *mut c_void, received: *const c_int, places: *const c_int, receives: MPI_Datatype,
        comm: MPI_Comm, request: *mut MPI_Request
    );
    MPI_Iallreduce(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request
    );
    MPI_Iexscan(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request
    );
    MPI_Isend(from: *const c_void, count: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    MPI_Irecv(to: *mut c_void, count: c_int, datatype: MPI_Datatype, from: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request);
    MPI_Ireduce_scatter_block(
        from: *const c_void, to: *mut c_void, count: c_int, datatype: MPI_Datatype, op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request
    );
    MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status);
    MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status);
    MPI_Cancel(request: *mut MPI_Request);
    MPI_Get_count(status: *const MPI_Status, datatype: MPI_Datatype, count: *mut c_int);
    MPI_Win_allocate(size: MPI_Aint, unit: c_int, info: MPI_Info, comm: MPI_Comm, base: *mut c_void, window: *mut MPI_Win);
    MPI_Win_set_errhandler(window: MPI_Win, handler: MPI_Errhandler);
    MPI_Win_lock_all(assertion: c_int, window: MPI_Win);
    MPI_Win_unlock_all(window: MPI_Win);
    MPI_Win_flush(rank: c_int, window: MPI_Win);
    MPI_Win_free(window: *mut MPI_Win);
    MPI_Fetch_and_op(
        from: *const c_void, found: *mut c_void, datatype: MPI_Datatype, rank: c_int, at: MPI_Aint, op: MPI_Op, window: MPI_Win
    );
}

/// `MPI_Testsome`, whose lists are laid out as the family has them.
type Testsome = unsafe extern "C" fn(c_int, *mut c_void, *mut c_int, *mut c_int, *mut c_void) -> c_int;

/// The MPI of this process.
struct Mpi {
    family: Family,
    functions: Functions,
    testsome: Testsome,
    byte: Handle,
    unsigned_64: Handle,
    sum: Handle,
    no_request: Handle,
    world: Handle,
    errors_return: Handle,
    no_info: Handle,
    no_comm: Handle,
}

impl Mpi {
    fn of(loaded: &Loaded) -> Result<Mpi, String> {
        let constants = loaded.family.constants();
        let address = |name| library::address(&loaded.library, name).ok_or_else(|| format!("{} has no {name}", loaded.found));
        let handle = |constant| match constant {
            Constant::Symbol(name) => library::object(loaded, name).map(Handle).ok_or_else(|| format!("{} has no {name}", loaded.found)),
            Constant::Value(value) => Ok(Handle(value)),
        };
        // SAFETY: as for the other functions; lists are passed by address.
        let testsome = unsafe { std::mem::transmute::<usize, Testsome>(address("MPI_Testsome")?) };
        Ok(Mpi {
            family: loaded.family,
            functions: Functions::of(loaded)?,
            testsome,
            byte: handle(constants.byte)?,
            unsigned_64: handle(constants.unsigned_64)?,
            sum: handle(constants.sum)?,
            no_request: handle(constants.no_request)?,
            world: handle(constants.world)?,
            errors_return: handle(constants.errors_return)?,
            no_info: handle(constants.no_info)?,
            no_comm: handle(constants.no_comm)?,
        })
    }
}

/// The MPI of this process, once it was asked for.
static MPI: OnceLock<Result<Mpi, String>> = OnceLock::new();

/// The MPI of this process; the sentence why there is none.
fn try_mpi() -> Result<&'static Mpi, &'static str> {
    MPI.get_or_init(|| Mpi::of(library::loaded()?)).as_ref().map_err(String::as_str)
}

/// Returns true if this process has an MPI by now. Loads none: a guest comes before the program's own MPI, when Python imports it, say, and
/// what is loaded then would stay.
pub fn is_loaded() -> bool {
    MPI.get().is_some() || library::is_here()
}

/// The MPI of this process, after [`initialise`] or [`is_initialized`] has found it.
fn mpi() -> &'static Mpi {
    match try_mpi() {
        Ok(mpi) => mpi,
        Err(why) => panic!("{why}"),
    }
}

/// MPI's type of bytes.
pub fn byte() -> MPI_Datatype {
    mpi().byte
}

/// MPI's type of `u64`.
pub fn unsigned_64() -> MPI_Datatype {
    mpi().unsigned_64
}

/// The operation that adds.
pub fn sum() -> MPI_Op {
    mpi().sum
}

/// MPI's "no request".
pub fn no_request() -> MPI_Request {
    mpi().no_request
}

/// The communicator of all ranks.
pub fn world() -> MPI_Comm {
    mpi().world
}

/// The handler that returns errors instead of ending the job.
pub fn errors_return() -> MPI_Errhandler {
    mpi().errors_return
}

/// No hints.
pub fn no_info() -> MPI_Info {
    mpi().no_info
}

/// No communicator.
pub fn no_comm() -> MPI_Comm {
    mpi().no_comm
}

/// Source of a receive from any rank (`MPI_ANY_SOURCE`).
pub fn any_source() -> c_int {
    mpi().family.any_source()
}

/// Receives whatever tag.
pub fn any_tag() -> c_int {
    mpi().family.any_tag()
}

/// "I want no status."
pub fn status_ignore() -> *mut MPI_Status {
    std::ptr::without_provenance_mut(mpi().family.ignore())
}

/// "I want no statuses."
pub fn statuses_ignore() -> *mut MPI_Status {
    status_ignore()
}

/// Source of the message that a status describes.
pub fn source(status: &MPI_Status) -> c_int {
    status.0[mpi().family.source_at()]
}

/// The tag of the message that a status tells of.
pub fn tag(status: &MPI_Status) -> c_int {
    status.0[mpi().family.source_at() + 1]
}

/// Requests that one call of [`MPI_Testsome`] looks at, at most.
const MOST: usize = 128;

/// MPI's function of this name, for at most 128 requests.
///
/// # Safety
/// As the MPI standard says. `statuses` is a list of our statuses, or [`statuses_ignore`].
#[allow(non_snake_case, reason = "MPI's own name")]
pub unsafe fn MPI_Testsome(
    count: c_int,
    requests: *mut MPI_Request,
    over: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
) -> c_int {
    let mpi = mpi();
    let number = usize::try_from(count).unwrap_or(0);
    assert!(number <= MOST, "{number} requests are more than one look covers");
    let wanted = statuses != statuses_ignore();
    let ints = mpi.family.status_ints();
    let mut raw = [0 as c_int; MOST * STATUS_INTS];
    let raw_statuses: *mut c_void = if wanted { raw.as_mut_ptr().cast() } else { statuses.cast() };
    let code;
    if mpi.family == Family::Mpich {
        let mut small = [0 as c_int; MOST];
        // SAFETY: the caller's list has `number` requests. Each holds an int in its lower half.
        let list = unsafe { std::slice::from_raw_parts_mut(requests, number) };
        small.iter_mut().zip(&*list).for_each(|(small, request)| *small = request.0 as c_int);
        // SAFETY: the caller's promise; both lists of ours have room for `number` of what this family has.
        code = unsafe { (mpi.testsome)(count, small.as_mut_ptr().cast(), over, indices, raw_statuses) };
        list.iter_mut().zip(small).for_each(|(request, small)| request.0 = small.cast_unsigned() as usize);
    } else {
        // SAFETY: the caller's promise; handles of this family are words, and the list of statuses has room for `number` of its.
        code = unsafe { (mpi.testsome)(count, requests.cast(), over, indices, raw_statuses) };
    }
    if wanted && code == 0 {
        // SAFETY: MPI has written the number of those that are over.
        let over = usize::try_from(unsafe { *over }).unwrap_or(0).min(number);
        for at in 0..over {
            let mut status = MPI_Status([0; STATUS_INTS]);
            status.0[..ints].copy_from_slice(&raw[at * ints..(at + 1) * ints]);
            // SAFETY: the caller's list has room for a status of each request.
            unsafe { statuses.add(at).write(status) };
        }
    }
    code
}

/// Returns true if MPI has been initialised in this process. Returns false if it has no MPI.
pub fn is_initialized() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time; the pointer is valid for the call.
    is_loaded() && try_mpi().is_ok() && unsafe { MPI_Initialized(&raw mut flag) } == 0 && flag != 0
}

/// Returns true if MPI has been finalised in this process.
pub fn is_finalized() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time; the pointer is valid for the call.
    is_loaded() && try_mpi().is_ok() && unsafe { MPI_Finalized(&raw mut flag) } == 0 && flag != 0
}

/// Returns true if threads other than the one that initialised MPI may call it, one at a time.
pub fn other_threads_may_call() -> bool {
    let mut level = 0;
    // SAFETY: MPI is initialised (the callers see to it), and the pointer is valid for the call.
    unsafe { MPI_Query_thread(&raw mut level) == 0 && level >= mpi().family.serialized() }
}

/// MPI as this process initialised it. Finalises when it is dropped.
pub struct Universe(());

impl Drop for Universe {
    fn drop(&mut self) {
        // SAFETY: this process initialised MPI, and there is one such value only; what stood on MPI is gone by the order of fields.
        unsafe { MPI_Finalize() };
    }
}

/// Initialises MPI for a process with threads of which one calls MPI. `None` if it was initialised before; the flag says whether MPI
/// offers that.
pub fn initialise() -> Option<(Universe, bool)> {
    if is_initialized() {
        return None;
    }
    let (wanted, mut level) = (mpi().family.funneled(), 0);
    // SAFETY: MPI was not initialised; it takes no arguments; the pointer is valid for the call.
    let code = unsafe { MPI_Init_thread(std::ptr::null_mut(), std::ptr::null_mut(), wanted, &raw mut level) };
    (code == 0).then_some((Universe(()), level >= wanted))
}

/// A text that MPI writes into a buffer of this many bytes.
fn text(size: usize, write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let mut bytes = vec![0u8; size];
    let mut length: c_int = 0;
    let code = write(bytes.as_mut_ptr().cast(), &raw mut length);
    bytes.truncate(usize::try_from(length).ok()?);
    // Some count the terminating zero.
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    (code == 0).then(|| String::from_utf8(bytes).ok())?
}

/// MPI's own description; nothing without an MPI.
pub fn library_version() -> String {
    // The standard ABI's MPI_MAX_LIBRARY_VERSION_STRING is 8192, the largest of all.
    const LONGEST: usize = 8192;
    // SAFETY: may be called before MPI is initialised; the buffer is as long as any such text, and the pointer is valid.
    let read = || text(LONGEST, |bytes, length| unsafe { MPI_Get_library_version(bytes, length) });
    try_mpi().ok().and_then(|_| read()).unwrap_or_default()
}

/// The version of the MPI standard that it keeps; zero without an MPI.
pub fn standard_version() -> (i32, i32) {
    let (mut version, mut subversion) = (0, 0);
    if try_mpi().is_ok() {
        // SAFETY: may be called before MPI is initialised; both pointers are valid for the call.
        unsafe { MPI_Get_version(&raw mut version, &raw mut subversion) };
    }
    (version, subversion)
}

/// The name of the machine, if it is text.
pub fn processor_name() -> Option<String> {
    // The standard ABI's MPI_MAX_PROCESSOR_NAME is 256, the largest of all.
    const LONGEST: usize = 256;
    // SAFETY: MPI is initialised (the callers see to it); the buffer is as long as any such name, and the pointer is valid.
    text(LONGEST + 1, |bytes, length| unsafe { MPI_Get_processor_name(bytes, length) })
}

/// Library that was found and how, or the sentence why none was.
pub fn found() -> Result<String, String> {
    try_mpi()?;
    Ok(library::loaded()?.found.clone())
}

/// The communicator whose handle lies at an address and has this many bytes; of a size that is no handle's, the size that one has.
///
/// # Safety
/// The address is that of a communicator handle of the MPI that this process has.
pub unsafe fn comm_at(address: *const c_void, size: usize) -> Result<MPI_Comm, usize> {
    let expected = mpi().family.handle_size();
    if size != expected {
        return Err(expected);
    }
    // SAFETY: the caller's promise; the size is that of a handle.
    Ok(Handle(unsafe {
        if size == size_of::<u32>() { address.cast::<u32>().read_unaligned() as usize } else { address.cast::<usize>().read_unaligned() }
    }))
}

/// The communicator that a Fortran program knows by this number. `None` if there is none.
pub fn comm_of_fortran(number: c_int) -> Option<MPI_Comm> {
    let mpi = mpi();
    if mpi.family == Family::Mpich {
        return Some(Handle(number.cast_unsigned() as usize));
    }
    let library = &library::loaded().ok()?.library;
    let address = ["MPI_Comm_f2c", "MPI_Comm_fromint"].into_iter().find_map(|name| library::address(library, name))?;
    // SAFETY: the MPI standard gives both functions this signature (MPI_Fint is a C int in every MPI known).
    let convert = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int) -> Handle>(address) };
    // SAFETY: a call without conditions.
    let comm = unsafe { convert(number) };
    (comm.0 != 0).then_some(comm)
}
