//! Plans, and what they move.

use std::cell::RefCell;

use equipoise::guest::{self, Call, Failure, Given};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::worlds::World;
use crate::{Wrong, failure, raised};

#[pyclass(frozen, module = "equipoise._native")]
pub struct Plan {
    inner: guest::Plan,
}

/// Numbers of the machine's own form, in bytes that Python packed.
fn numbers<T: Copy>(bytes: &[u8], read: impl Fn(&[u8]) -> T) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(read).collect()
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    numbers(bytes, |bytes| f64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn whole(bytes: &[u8]) -> Vec<u64> {
    numbers(bytes, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn ranks(bytes: &[u8]) -> Vec<i32> {
    numbers(bytes, |bytes| i32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn verdict<'py>(py: Python<'py>, of: &guest::Verdict) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("before", of.before)?;
    dict.set_item("after", of.after)?;
    dict.set_item("bound", of.bound)?;
    dict.set_item("plan_seconds", of.plan_seconds)?;
    dict.set_item("move_seconds", of.move_seconds)?;
    dict.set_item("pays_from_seconds_per_unit", of.pays_from_seconds_per_unit)?;
    dict.set_item("moved", of.moved)?;
    dict.set_item("bytes", of.bytes)?;
    dict.set_item("pays", of.pays)?;
    dict.set_item("balancer", &of.balancer)?;
    Ok(dict)
}

#[pymethods]
impl Plan {
    #[getter]
    fn incoming(&self) -> usize {
        self.inner.incoming()
    }

    #[getter]
    fn destinations(&self) -> Vec<u32> {
        self.inner.destinations().to_vec()
    }

    #[getter]
    fn sources(&self) -> Vec<(u32, u64)> {
        self.inner.sources().to_vec()
    }

    #[getter]
    fn verdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        verdict(py, self.inner.verdict())
    }
}

/// Plans by weights (doubles), bytes (u64), pins (u8) and coordinates (doubles, item by item); each packed, or nothing.
#[allow(clippy::too_many_arguments, reason = "called by the package only")]
#[pyfunction]
pub fn plan(
    world: &World,
    py: Python<'_>,
    items: usize,
    weights: Option<&[u8]>,
    nbytes: Option<&[u8]>,
    pinned: Option<&[u8]>,
    dimensions: usize,
    coordinates: Option<&[u8]>,
    wrong: Wrong,
) -> PyResult<Plan> {
    let (weights, nbytes, coordinates) = (weights.map(doubles), nbytes.map(whole), coordinates.map(doubles));
    let given = Given {
        items,
        weights: weights.as_deref(),
        bytes: nbytes.as_deref(),
        pinned,
        coordinates: coordinates.as_deref().map(|all| (dimensions, all)),
        destinations: None,
    };
    let given = wrong.map_or(Ok(&given), |wrong| Err(failure(wrong)));
    let inner = py.detach(|| world.shared.0.plan_as(Call::Plan, given)).map_err(raised)?;
    Ok(Plan { inner })
}

/// A plan with destinations (i32, packed) that the caller has found.
#[pyfunction]
pub fn plan_from(
    world: &World,
    py: Python<'_>,
    items: usize,
    destinations: &[u8],
    weights: Option<&[u8]>,
    nbytes: Option<&[u8]>,
    wrong: Wrong,
) -> PyResult<Plan> {
    let (destinations, weights, nbytes) = (ranks(destinations), weights.map(doubles), nbytes.map(whole));
    let given =
        Given { items, weights: weights.as_deref(), bytes: nbytes.as_deref(), destinations: Some(&destinations), ..Given::default() };
    let given = wrong.map_or(Ok(&given), |wrong| Err(failure(wrong)));
    let inner = py.detach(|| world.shared.0.plan_as(Call::PlanFrom, given)).map_err(raised)?;
    Ok(Plan { inner })
}

#[pyfunction]
pub fn advise<'py>(
    world: &World,
    py: Python<'py>,
    items: usize,
    weights: Option<&[u8]>,
    nbytes: Option<&[u8]>,
    seconds_per_unit: f64,
    wrong: Wrong,
) -> PyResult<Bound<'py, PyDict>> {
    let (weights, nbytes) = (weights.map(doubles), nbytes.map(whole));
    let given = Given { items, weights: weights.as_deref(), bytes: nbytes.as_deref(), ..Given::default() };
    let given = wrong.map_or(Ok(&given), |wrong| Err(failure(wrong)));
    let found = py.detach(|| world.shared.0.advise_if(given, seconds_per_unit)).map_err(raised)?;
    verdict(py, &found)
}

/// Moves items of any size, or brings results back; `receive(from, index, bytes)` takes what arrives, and what it raises is raised here
/// and refuses the item for all ranks.
#[pyfunction]
pub fn carry_each(
    world: &World,
    py: Python<'_>,
    plan: &Plan,
    back: bool,
    items: Vec<PyBackedBytes>,
    receive: Py<PyAny>,
    wrong: Wrong,
) -> PyResult<()> {
    let op = if back { Call::ReturnVar } else { Call::MoveVar };
    let why: RefCell<Option<PyErr>> = RefCell::default();
    let carried = {
        let slices: Vec<&[u8]> = items.iter().map(|item| &**item).collect();
        let given = wrong.map_or(Ok(slices.as_slice()), |wrong| Err(failure(wrong)));
        let shared = &world.shared;
        let mut take = |from: u32, index: u64, bytes: &[u8]| {
            let outcome = Python::attach(|py| receive.call1(py, (from, index, PyBytes::new(py, bytes))).map(drop));
            match outcome {
                Ok(()) => 0,
                Err(raised) => {
                    *why.borrow_mut() = Some(raised);
                    1
                }
            }
        };
        carried(py, || shared.0.carry_each(Ok(&plan.inner), op, given, &mut take))
    };
    match why.into_inner() {
        Some(raised) => Err(raised),
        None => carried.map_err(raised),
    }
}

/// Moves items of one size between arrays: `from` and `into` are addresses, with lengths in bytes.
#[allow(clippy::too_many_arguments, reason = "called by the package only")]
#[pyfunction]
pub fn carry(
    world: &World,
    py: Python<'_>,
    plan: &Plan,
    back: bool,
    from: (usize, usize),
    into: (usize, usize),
    size: usize,
    wrong: Wrong,
) -> PyResult<()> {
    let op = if back { Call::Return } else { Call::Move };
    let shared = &world.shared;
    let given = || match wrong {
        Some(wrong) => Err(failure(wrong)),
        None => Ok(arrays(from, into)),
    };
    carried(py, || shared.0.carry(Ok(&plan.inner), op, given(), size)).map_err(raised)
}

/// Makes a call without the interpreter's lock.
fn carried(py: Python<'_>, call: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    /// Wrapper for a closure that stays on this thread, which only gives the lock back meanwhile.
    struct Here<T>(T);
    // SAFETY: `detach` runs its closure on the thread that calls it.
    #[allow(unsafe_code, reason = "see above")]
    unsafe impl<T> Send for Here<T> {}
    impl<F: FnOnce() -> Result<(), Failure>> Here<F> {
        fn run(self) -> Result<(), Failure> {
            (self.0)()
        }
    }
    let call = Here(call);
    py.detach(move || call.run())
}

/// The arrays that the package holds.
fn arrays<'a>(from: (usize, usize), into: (usize, usize)) -> (&'a [u8], &'a mut [u8]) {
    if from.1 == 0 && into.1 == 0 {
        return (&[], &mut []);
    }
    // SAFETY: addresses and lengths are those of contiguous numpy arrays that the package holds during the call; `into` is a new one, which nothing
    // else refers to and which does not overlap with `from`. An empty one may be anywhere, so a dangling pointer stands for it.
    #[allow(unsafe_code, reason = "see above")]
    unsafe {
        let read = if from.1 == 0 { &[] } else { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(from.0), from.1) };
        let write =
            if into.1 == 0 { &mut [] } else { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(into.0), into.1) };
        (read, write)
    }
}
