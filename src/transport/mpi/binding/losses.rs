//! Functions of Open MPI 5 for jobs that survive the loss of a rank (`mpirun --with-ft ulfm`: User Level Failure Mitigation).
//!
//! These functions are in no standard, so they are looked up apart from the others. Without them, and without that launcher, no loss is survived.

use std::ffi::c_int;
use std::sync::OnceLock;

use super::family::Family;
use super::{Handle, MPI_Comm, library};

/// `MPIX_ERR_PROC_FAILED` and `MPIX_ERR_PROC_FAILED_PENDING`.
const LOSS: [c_int; 2] = [75, 76];
/// The variable by which the launcher says that a job survives losses.
const VARIABLE: &str = "OMPI_MCA_mpi_ft_enable";

type Group = Handle;

/// The functions.
struct Functions {
    lost: unsafe extern "C" fn(MPI_Comm, *mut Group) -> c_int,
    acknowledge: unsafe extern "C" fn(MPI_Comm, c_int, *mut c_int) -> c_int,
    agree: unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int,
    group: unsafe extern "C" fn(MPI_Comm, *mut Group) -> c_int,
    size: unsafe extern "C" fn(Group, *mut c_int) -> c_int,
    translate: unsafe extern "C" fn(Group, c_int, *const c_int, Group, *mut c_int) -> c_int,
    free: unsafe extern "C" fn(*mut Group) -> c_int,
}

/// The functions, if this job survives losses.
fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let find = || {
        let loaded = library::loaded().ok()?;
        let is_enabled = std::env::var(VARIABLE).is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
        if loaded.family != Family::OpenMpi || !is_enabled {
            return None;
        }
        let address = |name| library::address(&loaded.library, name);
        // SAFETY: the addresses are those of the functions of these names, whose arguments MPI's standard fixes, or Open MPI's `mpi-ext.h`; a
        // handle of Open MPI's is a pointer.
        unsafe {
            use std::mem::transmute;
            Some(Functions {
                lost: transmute::<usize, unsafe extern "C" fn(MPI_Comm, *mut Group) -> c_int>(address("MPIX_Comm_get_failed")?),
                acknowledge: transmute::<usize, unsafe extern "C" fn(MPI_Comm, c_int, *mut c_int) -> c_int>(address(
                    "MPIX_Comm_ack_failed",
                )?),
                agree: transmute::<usize, unsafe extern "C" fn(MPI_Comm, *mut c_int) -> c_int>(address("MPIX_Comm_agree")?),
                group: transmute::<usize, unsafe extern "C" fn(MPI_Comm, *mut Group) -> c_int>(address("MPI_Comm_group")?),
                size: transmute::<usize, unsafe extern "C" fn(Group, *mut c_int) -> c_int>(address("MPI_Group_size")?),
                translate: transmute::<usize, unsafe extern "C" fn(Group, c_int, *const c_int, Group, *mut c_int) -> c_int>(address(
                    "MPI_Group_translate_ranks",
                )?),
                free: transmute::<usize, unsafe extern "C" fn(*mut Group) -> c_int>(address("MPI_Group_free")?),
            })
        }
    };
    FUNCTIONS.get_or_init(find).as_ref()
}

/// Returns true if the job may survive the death of a rank.
pub fn survives_losses() -> bool {
    functions().is_some()
}

/// Returns true if a call failed because a rank is lost.
pub fn is_loss(code: c_int) -> bool {
    LOSS.contains(&code) && functions().is_some()
}

/// All ranks of a communicator that are lost so far. From now on receives from any rank leave them out.
///
/// # Errors
/// The code of a call that failed.
pub fn lost_ranks(comm: MPI_Comm) -> Result<Vec<c_int>, c_int> {
    let Some(functions) = functions() else { return Ok(Vec::new()) };
    let passed = |code| if code == 0 { Ok(()) } else { Err(code) };
    let (mut lost, mut all, mut number, mut acknowledged) = (Handle(0), Handle(0), 0, 0);
    // SAFETY: the caller's communicator is valid; the groups are those that MPI makes of it, and are freed once; both lists have room for `number` ranks.
    unsafe {
        passed((functions.lost)(comm, &raw mut lost))?;
        passed((functions.size)(lost, &raw mut number))?;
        passed((functions.group)(comm, &raw mut all))?;
        let places: Vec<c_int> = (0..number).collect();
        let mut ranks = vec![0; places.len()];
        passed((functions.translate)(lost, number, places.as_ptr(), all, ranks.as_mut_ptr()))?;
        passed((functions.free)(&raw mut lost))?;
        passed((functions.free)(&raw mut all))?;
        passed((functions.acknowledge)(comm, number, &raw mut acknowledged))?;
        Ok(ranks)
    }
}

/// Waits until all ranks of a communicator that are left have called this.
///
/// # Errors
/// The code of the call, if it failed.
pub fn agree(comm: MPI_Comm) -> Result<(), c_int> {
    let mut flag = 1;
    // SAFETY: the caller's communicator is valid, and so is the pointer for the call.
    let code = functions().map_or(0, |functions| unsafe { (functions.agree)(comm, &raw mut flag) });
    if code == 0 || is_loss(code) { Ok(()) } else { Err(code) }
}
