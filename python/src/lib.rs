//! `equipoise._native`: the guest's calls for Python. What users see is in the package around it, which knows mpi4py, numpy and pickling.
//!
//! Arrays come as addresses and lengths, which the package takes from numpy arrays that it holds meanwhile. Calls release the interpreter's lock.

mod plans;
mod worlds;

use std::cell::RefCell;

use equipoise::guest::{Failure, Status};
use pyo3::prelude::*;

pyo3::create_exception!(_native, NativeFailure, pyo3::exceptions::PyException, "A failed call: status and sentence.");

thread_local! {
    /// The exception of a signal handler that ended this thread's call.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// A failure as the exception that the package translates; the exception of a signal handler that ended the call as itself.
fn raised(failure: Failure) -> PyErr {
    INTERRUPT.take().unwrap_or_else(|| NativeFailure::new_err((failure.status as i32, failure.text)))
}

/// Mistake in this rank's arguments, as the package found it: a status and a sentence.
type Wrong = Option<(i32, String)>;

fn failure((status, text): (i32, String)) -> Failure {
    let status = match status {
        2 => Status::Usage,
        3 => Status::Stuck,
        4 => Status::Mpi,
        5 => Status::Memory,
        6 => Status::Callback,
        7 => Status::Panic,
        _ => Status::Failed,
    };
    Failure::new(status, text)
}

/// The MPI of the process; nothing before it has one, which is mpi4py's to load.
#[pyfunction]
fn mpi() -> Option<String> {
    Some(equipoise::transport::mpi::description_if_loaded()?.unwrap_or_else(|why| why.to_string()))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("NativeFailure", module.py().get_type::<NativeFailure>())?;
    module.add_class::<worlds::World>()?;
    module.add_class::<worlds::Loop>()?;
    module.add_class::<plans::Plan>()?;
    module.add_function(wrap_pyfunction!(plans::plan, module)?)?;
    module.add_function(wrap_pyfunction!(plans::plan_from, module)?)?;
    module.add_function(wrap_pyfunction!(plans::advise, module)?)?;
    module.add_function(wrap_pyfunction!(plans::carry_each, module)?)?;
    module.add_function(wrap_pyfunction!(plans::carry, module)?)?;
    module.add_function(wrap_pyfunction!(mpi, module)?)
}
