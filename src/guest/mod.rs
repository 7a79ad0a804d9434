//! Balancing inside somebody else's program, which has ranks, data and MPI of its own.
//!
//! A [`World`] stands on a duplicate of a communicator, and changes nothing else in the process. Its calls are collective unless they say
//! otherwise, and fail alike on all ranks.

mod balancers;
#[cfg(feature = "_ranks")]
mod call;
mod capacity;
mod decide;
#[cfg(feature = "_ranks")]
mod exchange;
#[cfg(feature = "_ranks")]
mod loops;
mod options;
#[cfg(feature = "_ranks")]
mod plan;
#[cfg(feature = "_ranks")]
mod route;
mod status;
mod step;
#[cfg(feature = "_ranks")]
mod steps;
#[cfg(feature = "_ranks")]
mod tasks;
mod units;
mod verdict;
#[cfg(feature = "_ranks")]
mod world;

#[cfg(feature = "_ranks")]
#[doc(hidden)]
pub use call::Op as Call;
#[cfg(feature = "_ranks")]
pub use call::World;
#[cfg(feature = "_ranks")]
pub use loops::Loop;
pub use options::{ByRank, Options};
#[cfg(feature = "_ranks")]
pub use plan::{Given, Plan};
#[cfg(feature = "_ranks")]
pub use route::Receive;
pub use status::{Failure, Result, Status};
#[cfg(feature = "_ranks")]
pub use tasks::Task;
pub use verdict::Verdict;
