//! Balancing inside somebody else's program, which has ranks, data and MPI of its own.
//!
//! A [`World`] stands on a duplicate of a communicator, and changes nothing else in the process. Its calls are collective unless they say
//! otherwise, and fail alike on all ranks.

mod balancers;
#[cfg(feature = "mpi")]
mod call;
mod capacity;
mod decide;
#[cfg(feature = "mpi")]
mod loops;
mod options;
#[cfg(feature = "mpi")]
mod plan;
#[cfg(feature = "mpi")]
mod route;
mod status;
mod step;
#[cfg(feature = "mpi")]
mod steps;
#[cfg(feature = "mpi")]
mod tasks;
mod units;
mod verdict;
#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
#[doc(hidden)]
pub use call::Op as Call;
#[cfg(feature = "mpi")]
pub use call::World;
#[cfg(feature = "mpi")]
pub use loops::Loop;
pub use options::{ByRank, Options};
#[cfg(feature = "mpi")]
pub use plan::{Given, Plan};
#[cfg(feature = "mpi")]
pub use route::Receive;
pub use status::{Failure, Result, Status};
#[cfg(feature = "mpi")]
pub use tasks::Task;
pub use verdict::Verdict;
