//! Access to MPI's functions and constants.
//!
//! Two ways with one face: [`linked`](self) through the crate `mpi`, which reads the site's `mpi.h` when it is built (feature `mpi`), and
//! `dynamic`, which finds `libmpi` when the program runs and needs nothing of MPI at build time (feature `mpi-dynamic`). Where a build has both
//! features it is linked.

#[cfg(all(not(feature = "mpi"), not(feature = "mpi-dynamic")))]
compile_error!("real ranks need the feature `mpi` (linked with the MPI that is installed) or `mpi-dynamic` (finds MPI when it runs)");

#[cfg(not(feature = "mpi"))]
mod dynamic;
#[cfg(not(feature = "mpi"))]
mod family;
#[cfg(not(feature = "mpi"))]
mod library;
#[cfg(feature = "mpi")]
mod linked;
#[cfg(not(feature = "mpi"))]
mod losses;

#[cfg(not(feature = "mpi"))]
pub use self::dynamic::*;
#[cfg(feature = "mpi")]
pub use self::linked::*;
#[cfg(not(feature = "mpi"))]
pub use self::losses::*;
