//! Loops.

use std::ffi::{c_char, c_int};

use equipoise::guest::{Loop, Status};

use crate::{eqp_world, guarded, on, text, usage};

/// An open loop, and its world.
pub struct eqp_loop {
    world: *mut eqp_world,
    of: Loop,
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_loop_begin(w: *mut eqp_world, first: u64, last: u64, rule: *const c_char, out: *mut *mut eqp_loop) -> c_int {
    let mut begun = None;
    // SAFETY: the caller's promise for all of them.
    unsafe {
        let status = on(w, |world| {
            let given = if out.is_null() {
                usage("out is NULL; in Fortran, a loop of this handle is open: loop_end ends it")
            } else {
                text(rule, "rule").map(|rule| (first, last, rule))
            };
            begun = Some(world.begin_loop_if(given)?);
            Ok(())
        });
        if let Some(out) = out.as_mut() {
            *out = begun.map_or(std::ptr::null_mut(), |of| Box::into_raw(Box::new(eqp_loop { world: w, of })));
        }
        status
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_loop_next(l: *mut eqp_loop, from: *mut u64, to: *mut u64) -> c_int {
    // SAFETY: NULL or an open loop, of an open world; NULL or the caller's to write to.
    unsafe {
        let Some(handle) = l.as_mut() else { return -(Status::Usage as c_int) };
        let Some(world) = handle.world.as_ref() else { return -(Status::Usage as c_int) };
        let (Some(from), Some(to)) = (from.as_mut(), to.as_mut()) else { return -world.status(usage("from or to is NULL")) };
        match guarded(|| world.world.next(&mut handle.of)) {
            Ok(None) => world.status(Ok(())),
            Ok(Some(chunk)) => {
                (*from, *to) = chunk;
                world.status(Ok(()));
                1
            }
            Err(failure) => -world.status(Err(failure)),
        }
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_loop_end(l: *mut *mut eqp_loop) -> c_int {
    // SAFETY: NULL or the address of a handle; the handle is NULL or an open loop, of an open world.
    unsafe {
        let Some(handle) = l.as_mut() else { return 0 };
        let Some(open) = handle.as_ref() else { return 0 };
        let status = on(open.world, |world| world.end_loop_if(Ok(&open.of)));
        let is_open = open.world.as_ref().is_some_and(|world| world.world.has_open(&open.of));
        if !is_open {
            drop(Box::from_raw(*handle));
            *handle = std::ptr::null_mut();
        }
        status
    }
}
