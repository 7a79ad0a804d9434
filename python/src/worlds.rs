//! Worlds and loops.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use equipoise::guest::{self, Failure};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{INTERRUPT, Wrong, failure, raised};

/// A world, which other threads may touch but not use.
pub struct Shared(pub guest::World);

// SAFETY: every call of a guest's world first asks whether it is made by the thread that opened it, and refuses otherwise before anything but
// that thread's identity is read; rank and number of ranks never change.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Send for Shared {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "see above")]
unsafe impl Sync for Shared {}

#[pyclass(frozen, module = "equipoise._native")]
pub struct World {
    pub shared: Shared,
}

#[pymethods]
impl World {
    /// Opens a world on the communicator whose handle of `size` bytes is at `address`.
    #[new]
    fn new(py: Python<'_>, address: usize, size: usize, options: &str, wrong: Wrong) -> PyResult<World> {
        let options = wrong.map_or(Ok(options), |wrong| Err(failure(wrong)));
        // SAFETY: the package passes what mpi4py says of a communicator that it holds.
        #[allow(unsafe_code, reason = "see above")]
        let opened =
            py.detach(|| unsafe { guest::World::at(std::ptr::with_exposed_provenance::<c_void>(address), size, options) }.map(Shared));
        let shared = opened.map_err(raised)?;
        let interrupted = || Python::attach(|py| py.check_signals().map_err(|why| interrupt(py, why)));
        shared.0.ask_while_waiting(interrupted).map_err(raised)?;
        Ok(World { shared })
    }

    #[getter]
    fn rank(&self) -> u32 {
        self.shared.0.rank()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.shared.0.ranks()
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.shared.0.close()).map_err(raised)
    }

    fn set(&self, key: &str, value: &str) -> PyResult<()> {
        self.shared.0.set(key, value).map_err(raised)
    }

    /// Makes the world a lost one, for all ranks.
    fn abandon(&self, py: Python<'_>, status: i32, text: String) {
        py.detach(|| self.shared.0.abandon(failure((status, text))));
    }

    /// Everybody's bytes, by rank.
    fn exchange<'py>(&self, py: Python<'py>, name: &str, mine: &[u8], wrong: Wrong) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let given = wrong.map_or(Ok(mine), |wrong| Err(failure(wrong)));
        let all = py.detach(|| self.shared.0.exchange(name, given)).map_err(raised)?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    fn step(&self, py: Python<'_>, seconds: f64, wrong: Wrong) -> PyResult<bool> {
        let seconds = wrong.map_or(Ok(seconds), |wrong| Err(failure(wrong)));
        py.detach(|| self.shared.0.step_if(seconds)).map_err(raised)
    }

    fn progress(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.shared.0.progress()).map_err(raised)
    }

    fn begin_loop(&self, py: Python<'_>, first: u64, last: u64, rule: &str, wrong: Wrong) -> PyResult<Loop> {
        let given = wrong.map_or(Ok((first, last, rule)), |wrong| Err(failure(wrong)));
        let begun = py.detach(|| self.shared.0.begin_loop_if(given)).map_err(raised)?;
        Ok(Loop { inner: Mutex::new(Some(begun)) })
    }

    fn next(&self, py: Python<'_>, of: &Loop) -> PyResult<Option<(u64, u64)>> {
        let next = || {
            let mut inner = of.inner.lock().unwrap_or_else(PoisonError::into_inner);
            self.shared.0.next(inner.as_mut().ok_or_else(|| Failure::usage("the loop has ended"))?)
        };
        py.detach(next).map_err(raised)
    }

    fn end_loop(&self, py: Python<'_>, of: &Loop) -> PyResult<()> {
        let end = || {
            let inner = of.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.shared.0.end_loop_if(inner.as_ref().ok_or_else(|| Failure::usage("the loop has ended already")))
        };
        py.detach(end).map_err(raised)
    }
}

/// A loop whose iterations are dealt out.
#[pyclass(frozen, module = "equipoise._native")]
pub struct Loop {
    inner: Mutex<Option<guest::Loop>>,
}

/// Turns a signal handler's exception into the failure that the other ranks receive, and keeps it for the caller.
fn interrupt(py: Python<'_>, why: PyErr) -> Failure {
    let name = why.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
    INTERRUPT.set(Some(why));
    failure((1, format!("{name} while a call waited")))
}
