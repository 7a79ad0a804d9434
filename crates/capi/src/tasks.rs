//! Tasks that create tasks.

use std::ffi::{c_char, c_int, c_void};

use equipoise::guest::{Receive, Status, Task};

use crate::plans::eqp_receive_fn;
use crate::{array, eqp_world, guarded, on, text, usage};

/// A task that is processed, and its world: a `Processed`, behind its address.
pub struct eqp_task {
    _private: [u8; 0],
}

struct Processed<'a> {
    task: &'a Task<'a>,
    world: &'a eqp_world,
}

/// The task behind an address, and its world.
///
/// # Safety
/// NULL, or what a process function was given and has not returned yet.
unsafe fn processed<'a>(task: *mut eqp_task) -> Option<&'a Processed<'a>> {
    // SAFETY: the caller's promise.
    unsafe { task.cast::<Processed<'a>>().as_ref() }
}

/// The caller's world, which process functions on other threads reach through their tasks.
#[derive(Clone, Copy)]
struct Handle(*const eqp_world);

// SAFETY: other threads only ask it which thread its own is, and have texts of their own.
unsafe impl Sync for Handle {}

impl Handle {
    /// # Safety
    /// An open world.
    unsafe fn get<'a>(&self) -> Option<&'a eqp_world> {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }
    }
}

/// A callback that processes a task.
pub type eqp_process_fn = Option<unsafe extern "C-unwind" fn(*mut c_void, *mut eqp_task, *const c_void, usize) -> c_int>;

/// The caller's pointer, which goes back to the caller's functions on whichever thread these run.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

// SAFETY: nothing here looks behind the pointer; with `workers` the caller's functions run on several threads, which they know.
unsafe impl Sync for Context {}

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_run(
    w: *mut eqp_world,
    scheduler: *const c_char,
    process: eqp_process_fn,
    context: *mut c_void,
    on_result: eqp_receive_fn,
) -> c_int {
    let (context, handle) = (Context(context), Handle(w));
    // SAFETY: the world is open until this call returns.
    let processing = |task: &Task<'_>, body: &[u8]| match (process, unsafe { handle.get() }) {
        (Some(process), Some(world)) => {
            let processed = Processed { task, world };
            // SAFETY: the caller's function, with what the header promises it.
            unsafe { process(context.get(), std::ptr::from_ref(&processed).cast_mut().cast(), body.as_ptr().cast(), body.len()) }
        }
        _ => 0,
    };
    let mut receiving = |from: u32, index: u64, bytes: &[u8]| match on_result {
        // SAFETY: as above.
        Some(receive) => unsafe { receive(context.get(), from as c_int, index, bytes.as_ptr().cast(), bytes.len()) },
        None => 0,
    };
    // SAFETY: the caller's promise.
    unsafe {
        on(w, |world| {
            let name = text(scheduler, "scheduler");
            let given = match (process, &name) {
                (None, _) => usage("the process function is NULL"),
                (_, Err(why)) => Err(why.clone()),
                _ => Ok(&processing as &(dyn Fn(&Task<'_>, &[u8]) -> i32 + Sync)),
            };
            let on_result = on_result.is_some().then_some(&mut receiving as Receive<'_>);
            world.run_if(name.unwrap_or(""), given, on_result)
        })
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_put(
    w: *mut eqp_world,
    from: *mut eqp_task,
    body: *const c_void,
    size: usize,
    cost: f64,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's promise for all of them.
    unsafe {
        match processed(from) {
            None => on(w, |world| world.put(array(body.cast(), size, "bytes of the body")?, cost, priority)),
            Some(Processed { task, world }) => {
                world.status(guarded(|| task.put(array(body.cast(), size, "bytes of the body")?, cost, priority)))
            }
        }
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_result(task: *mut eqp_task, bytes: *const c_void, size: usize) -> c_int {
    // SAFETY: NULL or the task that is processed; bytes by the caller's promise.
    unsafe {
        let Some(Processed { task, world }) = processed(task) else { return Status::Usage as c_int };
        world.status(guarded(|| {
            task.result(array(bytes.cast(), size, "bytes of the result")?);
            Ok(())
        }))
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_progress(w: *mut eqp_world) -> c_int {
    // SAFETY: the caller's promise.
    let Some(world) = (unsafe { w.as_ref() }) else { return Status::Usage as c_int };
    world.status(guarded(|| world.world.progress()))
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_stop(task: *mut eqp_task) -> c_int {
    // SAFETY: NULL or the task that is processed.
    let Some(Processed { task, world }) = (unsafe { processed(task) }) else { return Status::Usage as c_int };
    world.status(guarded(|| {
        task.stop();
        Ok(())
    }))
}
