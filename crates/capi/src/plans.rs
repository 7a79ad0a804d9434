//! Plans, steps and advice.

use std::ffi::{c_char, c_int, c_void};

use equipoise::guest::{Call, Failure, Given, Plan, Result, Status, Verdict};

use crate::{array, array_mut, eqp_world, guarded, on, usage};

/// A plan.
pub struct eqp_plan(Plan);

/// See `equipoise.h`.
#[repr(C)]
pub struct eqp_verdict {
    before: f64,
    after: f64,
    bound: f64,
    plan_seconds: f64,
    move_seconds: f64,
    pays_from_seconds_per_unit: f64,
    moved: u64,
    bytes: u64,
    pays: i32,
    zero: i32,
    balancer: [c_char; 64],
    more: [f64; 15],
}

const _: () = assert!(size_of::<eqp_verdict>() == 256);

/// A callback for what has come.
pub type eqp_receive_fn = Option<unsafe extern "C-unwind" fn(*mut c_void, c_int, u64, *const c_void, usize) -> c_int>;

impl eqp_verdict {
    fn of(verdict: &Verdict) -> eqp_verdict {
        let mut balancer = [0; 64];
        // The last byte stays 0.
        for (into, byte) in balancer[..63].iter_mut().zip(verdict.balancer.bytes()) {
            *into = byte as c_char;
        }
        eqp_verdict {
            before: verdict.before,
            after: verdict.after,
            bound: verdict.bound,
            plan_seconds: verdict.plan_seconds,
            move_seconds: verdict.move_seconds,
            pays_from_seconds_per_unit: verdict.pays_from_seconds_per_unit,
            moved: verdict.moved,
            bytes: verdict.bytes,
            pays: verdict.pays.map_or(-1, i32::from),
            zero: 0,
            balancer,
            more: [0.0; 15],
        }
    }
}

/// Item arrays of a C caller. NULL stands for the default of all items, except for coordinates and destinations.
#[derive(Clone, Copy)]
struct Arrays {
    n: usize,
    weight: *const f64,
    bytes: *const u64,
    pinned: *const u8,
    dimensions: Option<(c_int, *const f64)>,
    destination: Option<*const c_int>,
}

impl Arrays {
    /// # Safety
    /// The arrays have `n` values each, and coordinates `n` times the dimensions.
    unsafe fn given<'a>(self) -> Result<Given<'a>> {
        let n = self.n;
        if n > isize::MAX as usize / 64 {
            return usage(format!("{n} items are too many"));
        }
        // SAFETY: the caller's promise for all of them.
        unsafe {
            let coordinates = match self.dimensions {
                None => None,
                Some((dimensions, start)) => {
                    let per_item =
                        usize::try_from(dimensions).ok().filter(|dimensions| (1..=3).contains(dimensions) || (*dimensions, n) == (0, 0));
                    let Some(per_item) = per_item else { return usage(format!("{dimensions} dimensions: there must be 1 to 3")) };
                    let Some(all) = n.checked_mul(per_item) else { return usage(format!("{n} items are too many")) };
                    Some((per_item, array(start, all, "coordinates")?))
                }
            };
            let maybe = |is_null: bool| !is_null;
            Ok(Given {
                items: n,
                weights: maybe(self.weight.is_null()).then(|| array(self.weight, n, "weight")).transpose()?,
                bytes: maybe(self.bytes.is_null()).then(|| array(self.bytes, n, "bytes")).transpose()?,
                pinned: maybe(self.pinned.is_null()).then(|| array(self.pinned, n, "pinned")).transpose()?,
                coordinates,
                destinations: self.destination.map(|start| array(start, n, "destination")).transpose()?,
            })
        }
    }
}

unsafe fn make(w: *mut eqp_world, call: Call, arrays: Arrays, out: *mut *mut eqp_plan) -> c_int {
    // SAFETY: NULL, or the caller's to write to.
    let into = unsafe { out.as_mut() };
    let has_out = into.is_some();
    let mut made = None;
    // SAFETY: the promise of the callers, which have it from C.
    let status = unsafe {
        on(w, |world| {
            let given = match has_out {
                true => arrays.given(),
                false => usage("out is NULL"),
            };
            made = Some(world.plan_as(call, given.as_ref().map_err(Clone::clone))?);
            Ok(())
        })
    };
    if let Some(into) = into {
        *into = made.map_or(std::ptr::null_mut(), |plan| Box::into_raw(Box::new(eqp_plan(plan))));
    }
    status
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_make(
    w: *mut eqp_world,
    n: usize,
    weight: *const f64,
    bytes: *const u64,
    pinned: *const u8,
    out: *mut *mut eqp_plan,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { make(w, Call::Plan, Arrays { n, weight, bytes, pinned, dimensions: None, destination: None }, out) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_make_at(
    w: *mut eqp_world,
    n: usize,
    weight: *const f64,
    bytes: *const u64,
    pinned: *const u8,
    dimensions: c_int,
    coordinates: *const f64,
    out: *mut *mut eqp_plan,
) -> c_int {
    let dimensions = Some((dimensions, coordinates));
    // SAFETY: the caller's promise.
    unsafe { make(w, Call::Plan, Arrays { n, weight, bytes, pinned, dimensions, destination: None }, out) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_from(
    w: *mut eqp_world,
    n: usize,
    destination: *const c_int,
    weight: *const f64,
    bytes: *const u64,
    out: *mut *mut eqp_plan,
) -> c_int {
    let arrays = Arrays { n, weight, bytes, pinned: std::ptr::null(), dimensions: None, destination: Some(destination) };
    // SAFETY: the caller's promise.
    unsafe { make(w, Call::PlanFrom, arrays, out) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_verdict(p: *const eqp_plan, out: *mut eqp_verdict) -> c_int {
    // SAFETY: NULL or a plan, and NULL or the caller's to write to.
    let (Some(plan), false) = (unsafe { p.as_ref() }, out.is_null()) else { return Status::Usage as c_int };
    // SAFETY: not NULL, and the caller's to write to.
    unsafe { out.write(eqp_verdict::of(plan.0.verdict())) };
    0
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_incoming(p: *const eqp_plan) -> usize {
    // SAFETY: NULL or a plan.
    unsafe { p.as_ref() }.map_or(0, |plan| plan.0.incoming())
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_destinations(p: *const eqp_plan, rank: *mut c_int) -> c_int {
    // SAFETY: NULL or a plan.
    let Some(plan) = (unsafe { p.as_ref() }) else { return Status::Usage as c_int };
    let destinations = plan.0.destinations();
    // SAFETY: room for all items, by the caller's promise.
    let Ok(into) = (unsafe { array_mut(rank, destinations.len(), "rank") }) else { return Status::Usage as c_int };
    into.iter_mut().zip(destinations).for_each(|(into, rank)| *into = *rank as c_int);
    0
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_sources(p: *const eqp_plan, rank: *mut c_int, index: *mut u64) -> c_int {
    // SAFETY: NULL or a plan.
    let Some(plan) = (unsafe { p.as_ref() }) else { return Status::Usage as c_int };
    let sources = plan.0.sources();
    // SAFETY: room for all arrivals, by the caller's promise.
    let both = unsafe { (array_mut(rank, sources.len(), "rank"), array_mut(index, sources.len(), "index")) };
    let (Ok(ranks), Ok(indices)) = both else { return Status::Usage as c_int };
    for ((rank, index), source) in ranks.iter_mut().zip(indices).zip(sources) {
        (*rank, *index) = (source.0 as c_int, source.1);
    }
    0
}

fn missing<T>() -> Result<T> {
    usage("the plan is NULL")
}

unsafe fn carry(w: *mut eqp_world, p: *const eqp_plan, call: Call, from: *const c_void, size: usize, into: *mut c_void) -> c_int {
    // SAFETY: NULL or a plan.
    let plan = unsafe { p.as_ref() }.map(|plan| &plan.0);
    let (given, wanted) = plan.map_or((0, 0), |plan| match call {
        Call::Move => (plan.destinations().len(), plan.incoming()),
        _ => (plan.incoming(), plan.destinations().len()),
    });
    let bytes = |items: usize| items.checked_mul(size).ok_or_else(|| Failure::usage(format!("{size} bytes for an item are too many")));
    // SAFETY: arrays of these lengths, by the caller's promise, which do not overlap.
    unsafe {
        on(w, |world| {
            let arrays = bytes(given)
                .and_then(|given| array(from.cast::<u8>(), given, "bytes of items"))
                .and_then(|from| Ok((from, array_mut(into.cast::<u8>(), bytes(wanted)?, "bytes of out")?)));
            world.carry(plan.map_or_else(missing, Ok), call, arrays, size)
        })
    }
}

unsafe fn carry_each(
    w: *mut eqp_world,
    p: *const eqp_plan,
    call: Call,
    items: *const *const c_void,
    sizes: *const usize,
    receive: eqp_receive_fn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: NULL or a plan.
    let plan = unsafe { p.as_ref() }.map(|plan| &plan.0);
    let count = plan.map_or(0, |plan| if call == Call::MoveVar { plan.destinations().len() } else { plan.incoming() });
    // SAFETY: this number of items, each of its size, by the caller's promise.
    unsafe {
        on(w, |world| {
            let given: Result<Vec<&[u8]>> = (|| {
                if receive.is_none() {
                    return usage("the callback is NULL");
                }
                let (items, sizes) = (array(items, count, "items")?, array(sizes, count, "sizes")?);
                let item = |(at, (start, size)): (usize, (&*const c_void, &usize))| {
                    array(start.cast::<u8>(), *size, &format!("item {at}: bytes of it"))
                };
                items.iter().zip(sizes).enumerate().map(item).collect()
            })();
            let mut callback = |from: u32, index: u64, bytes: &[u8]| match receive {
                Some(receive) => receive(context, from as c_int, index, bytes.as_ptr().cast(), bytes.len()),
                None => 0,
            };
            let given = given.as_ref().map(Vec::as_slice).map_err(Clone::clone);
            world.carry_each(plan.map_or_else(missing, Ok), call, given, &mut callback)
        })
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_move(
    w: *mut eqp_world,
    p: *mut eqp_plan,
    items: *const c_void,
    item_bytes: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { carry(w, p, Call::Move, items, item_bytes, out) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_move_var(
    w: *mut eqp_world,
    p: *mut eqp_plan,
    items: *const *const c_void,
    sizes: *const usize,
    receive: eqp_receive_fn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { carry_each(w, p, Call::MoveVar, items, sizes, receive, context) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_return(
    w: *mut eqp_world,
    p: *mut eqp_plan,
    results: *const c_void,
    result_bytes: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { carry(w, p, Call::Return, results, result_bytes, out) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_return_var(
    w: *mut eqp_world,
    p: *mut eqp_plan,
    results: *const *const c_void,
    sizes: *const usize,
    receive: eqp_receive_fn,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { carry_each(w, p, Call::ReturnVar, results, sizes, receive, context) }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_plan_free(p: *mut *mut eqp_plan) {
    // SAFETY: NULL, or the address of a handle.
    let Some(handle) = (unsafe { p.as_mut() }) else { return };
    if !handle.is_null() {
        // SAFETY: made by `make`, and not used any more.
        let plan = unsafe { Box::from_raw(*handle) };
        *handle = std::ptr::null_mut();
        _ = guarded(|| {
            drop(plan);
            Ok(())
        });
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_step(w: *mut eqp_world, my_seconds: f64, balance_now: *mut c_int) -> c_int {
    // SAFETY: NULL or open; NULL or the caller's to write to.
    unsafe {
        on(w, |world| {
            let now = world.step_if(if balance_now.is_null() { usage("balance_now is NULL") } else { Ok(my_seconds) });
            if let Some(into) = balance_now.as_mut() {
                *into = c_int::from(*now.as_ref().unwrap_or(&false));
            }
            now.map(drop)
        })
    }
}

/// # Safety
/// See `equipoise.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eqp_advise(
    w: *mut eqp_world,
    n: usize,
    weight: *const f64,
    bytes: *const u64,
    seconds_per_unit: f64,
    out: *mut eqp_verdict,
) -> c_int {
    let arrays = Arrays { n, weight, bytes, pinned: std::ptr::null(), dimensions: None, destination: None };
    // SAFETY: the caller's promise.
    unsafe {
        on(w, |world| {
            let given = if out.is_null() { usage("out is NULL") } else { arrays.given() };
            let verdict = world.advise_if(given.as_ref().map_err(Clone::clone), seconds_per_unit)?;
            out.write(eqp_verdict::of(&verdict));
            Ok(())
        })
    }
}
