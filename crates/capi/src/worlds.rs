//! Opening, closing and options.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use equipoise::guest::{Result, Status, World};
use equipoise::transport::mpi;

use crate::{c_text, eqp_world, guarded, on, text, usage};

thread_local! {
    /// Why the last open on this thread failed.
    static UNOPENED: RefCell<CString> = RefCell::default();
}

/// Reads the options; wrong ones are reported to the other ranks.
///
/// # Safety
/// `options` is NULL or ends with a zero.
unsafe fn read<'a>(options: *const c_char, out: *mut *mut eqp_world) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    if out.is_null() { usage("out is NULL") } else { unsafe { text(options, "options") } }
}

fn opened(out: *mut *mut eqp_world, open: impl FnOnce() -> Result<World>) -> c_int {
    let world = guarded(open);
    match world {
        Ok(world) => {
            let handle = Box::new(eqp_world { world, error: RefCell::default() });
            // SAFETY: not NULL, and the caller's to write to.
            unsafe { *out = Box::into_raw(handle) };
            0
        }
        Err(failure) => {
            if !out.is_null() {
                // SAFETY: not NULL, and the caller's to write to.
                unsafe { *out = std::ptr::null_mut() };
            }
            UNOPENED.with(|unopened| *unopened.borrow_mut() = c_text(&failure.text));
            failure.status as c_int
        }
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_open(comm: *const c_void, comm_size: usize, options: *const c_char, out: *mut *mut eqp_world) -> c_int {
    // SAFETY: the caller's promise for both.
    opened(out, || unsafe { World::at(comm, comm_size, read(options, out)) })
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_open_fortran(comm: c_int, options: *const c_char, out: *mut *mut eqp_world) -> c_int {
    // SAFETY: the caller's promise.
    opened(out, || World::of_fortran(comm, unsafe { read(options, out) }))
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_close(w: *mut *mut eqp_world) -> c_int {
    // SAFETY: NULL, or the address of a handle.
    let Some(handle) = (unsafe { w.as_mut() }) else { return 0 };
    // SAFETY: NULL or open, by the caller's promise.
    let Some(world) = (unsafe { handle.as_ref() }) else { return 0 };
    if let Err(failure) = world.world.check_thread() {
        return world.status(Err(failure));
    }
    let lost = world.world.lost();
    let closed = guarded(|| world.world.close());
    let status = world.status(closed);
    if status == Status::Usage as c_int && lost.is_none() {
        return status;
    }
    // SAFETY: made by `opened`, and not used any more.
    drop(unsafe { Box::from_raw(*handle) });
    *handle = std::ptr::null_mut();
    lost.map_or(status, |lost| lost.status as c_int)
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_set(w: *mut eqp_world, key: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller's promise for all three.
    unsafe { on(w, |world| world.set(text(key, "key")?, text(value, "value")?)) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_error(w: *const eqp_world) -> *const c_char {
    // SAFETY: NULL or open, by the caller's promise.
    match unsafe { w.as_ref() } {
        Some(world) => world.said(),
        None => UNOPENED.with(|unopened| unopened.borrow().as_ptr()),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn eqp_version() -> *const c_char {
    static VERSION: OnceLock<CString> = OnceLock::new();
    static WITHOUT_MPI: OnceLock<CString> = OnceLock::new();
    let text = |mpi: &str| c_text(&format!("equipoise {}, {mpi}", env!("CARGO_PKG_VERSION")));
    let find = || {
        let found = guarded(|| Ok(mpi::description_if_loaded().transpose()?)).unwrap_or_else(|failure| Some(failure.text))?;
        Some(VERSION.get_or_init(|| text(&found)))
    };
    // The program may load its MPI later, and ask again.
    VERSION.get().or_else(find).unwrap_or_else(|| WITHOUT_MPI.get_or_init(|| text("no MPI in this process yet"))).as_ptr()
}
