//! Balancing inside somebody else's program, which has ranks, data and MPI of its own.

mod balancers;
mod capacity;
mod decide;
mod options;
mod status;
mod step;
mod units;
mod verdict;

pub use options::{ByRank, Options};
pub use status::{Failure, Result, Status};
pub use verdict::Verdict;
