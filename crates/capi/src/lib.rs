//! The C library: `include/equipoise.h` says what each function does. Each checks what C can get wrong, and hands on to
//! [`equipoise::guest`], also what is wrong: all ranks hear of it there.
//!
//! No panic leaves a function. Handles are boxes; what is called with a handle that is none is outside any promise.

// The boundary to C: pointers and lengths are taken on the caller's word, as the header says.
#![allow(unsafe_code, non_camel_case_types)]

mod loops;
mod plans;
mod tasks;
mod worlds;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use equipoise::guest::{Failure, Result, Status, World};

/// An open world.
pub struct eqp_world {
    pub(crate) world: World,
    /// Text of the last call of the thread that opened the world.
    error: RefCell<CString>,
}

thread_local! {
    /// Text of the last call of a thread that processes tasks for a world: C reads it while other threads make calls.
    static ERROR_OF_WORKER: RefCell<CString> = RefCell::default();
}

pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

impl eqp_world {
    fn says(&self, text: &str) {
        match self.world.check_thread() {
            Ok(()) => *self.error.borrow_mut() = c_text(text),
            Err(_) => ERROR_OF_WORKER.with_borrow_mut(|error| *error = c_text(text)),
        }
    }

    /// The text of this thread's last call.
    pub(crate) fn said(&self) -> *const c_char {
        match self.world.check_thread() {
            Ok(()) => self.error.borrow().as_ptr(),
            Err(_) => ERROR_OF_WORKER.with_borrow(|error| error.as_ptr()),
        }
    }

    /// A call's status; its sentence is remembered.
    pub(crate) fn status(&self, result: Result<()>) -> c_int {
        match result {
            Ok(()) => {
                self.says("");
                0
            }
            Err(failure) => {
                self.says(&failure.text);
                failure.status as c_int
            }
        }
    }
}

/// Makes a call on a world.
///
/// # Safety
/// `w` is NULL or an open world.
pub(crate) unsafe fn on(w: *const eqp_world, call: impl FnOnce(&World) -> Result<()>) -> c_int {
    // SAFETY: NULL or open, by the caller's promise.
    let Some(world) = (unsafe { w.as_ref() }) else { return Status::Usage as c_int };
    let result = guarded(|| call(&world.world));
    world.status(result)
}

/// Runs something that must not unwind.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(Failure::new(Status::Panic, "a panic")))
}

pub(crate) fn usage<T>(text: impl Into<String>) -> Result<T> {
    Err(Failure::usage(text))
}

/// A text from C; NULL is an empty one.
///
/// # Safety
/// `text` is NULL or ends with a zero.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: ends with a zero, by the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().or_else(|_| usage(format!("{what} is not UTF-8")))
}

/// An array from C, which may be NULL if it is empty.
///
/// # Safety
/// `length` values can be read there.
pub(crate) unsafe fn array<'a, T>(start: *const T, length: usize, what: &str) -> Result<&'a [T]> {
    check(start.is_null(), length, size_of::<T>(), what)?;
    // SAFETY: not NULL where there is something, of a possible length, and readable by the caller's promise.
    Ok(if length == 0 { &[] } else { unsafe { slice::from_raw_parts(start, length) } })
}

/// The same, to write to.
///
/// # Safety
/// `length` values can be written there, and nothing else reads them meanwhile.
pub(crate) unsafe fn array_mut<'a, T>(start: *mut T, length: usize, what: &str) -> Result<&'a mut [T]> {
    check(start.is_null(), length, size_of::<T>(), what)?;
    // SAFETY: not NULL where there is something, of a possible length, and ours by the caller's promise.
    Ok(if length == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(start, length) } })
}

fn check(is_null: bool, length: usize, size: usize, what: &str) -> Result<()> {
    if length.checked_mul(size.max(1)).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return usage(format!("{what}: {length} are more than any memory holds"));
    }
    if is_null && length > 0 {
        return usage(format!("{what} is NULL, and there should be {length}"));
    }
    Ok(())
}
