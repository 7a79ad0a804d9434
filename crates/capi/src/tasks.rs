//! Tasks that create tasks.

use std::ffi::{c_char, c_int, c_void};

use equipoise::guest::{Receive, Status, Task};

use crate::plans::eqp_receive_fn;
use crate::{array, eqp_world, guarded, on, text, usage};

/// A task that is processed: a [`Task`], behind its address.
pub struct eqp_task {
    _private: [u8; 0],
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
    let context = Context(context);
    let processing = |task: &Task<'_>, body: &[u8]| match process {
        // SAFETY: the caller's function, with what the header promises it.
        Some(process) => unsafe { process(context.get(), std::ptr::from_ref(task).cast_mut().cast(), body.as_ptr().cast(), body.len()) },
        None => 0,
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
        match from.cast::<Task<'_>>().as_ref() {
            None => on(w, |world| world.put(array(body.cast(), size, "bytes of the body")?, cost, priority)),
            Some(task) => {
                let put = guarded(|| task.put(array(body.cast(), size, "bytes of the body")?, cost, priority));
                match w.as_ref() {
                    Some(world) => world.status(put),
                    None => put.map_or_else(|failure| failure.status as c_int, |()| 0),
                }
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
        let Some(task) = task.cast::<Task<'_>>().as_ref() else { return Status::Usage as c_int };
        let done = guarded(|| {
            task.result(array(bytes.cast(), size, "bytes of the result")?);
            Ok(())
        });
        done.map_or_else(|failure| failure.status as c_int, |()| 0)
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_progress(w: *mut eqp_world) -> c_int {
    // SAFETY: the caller's promise.
    let Some(world) = (unsafe { w.as_ref() }) else { return Status::Usage as c_int };
    match guarded(|| world.world.progress()) {
        Ok(()) => 0,
        Err(failure) => world.status(Err(failure)),
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_stop(task: *mut eqp_task) -> c_int {
    // SAFETY: NULL or the task that is processed.
    let Some(task) = (unsafe { task.cast::<Task<'_>>().as_ref() }) else { return Status::Usage as c_int };
    guarded(|| {
        task.stop();
        Ok(())
    })
    .map_or_else(|failure| failure.status as c_int, |()| 0)
}
