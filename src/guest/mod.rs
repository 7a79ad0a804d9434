//! Balancing inside another program, which has its own ranks, data and MPI.
//!
//! ```no_run
//! # fn chemistry(cell: &Vec<f64>) -> f64 { cell[0] }
//! # fn step(comm: &impl equipoise::transport::mpi::rsmpi::traits::AsRaw<Raw = equipoise::transport::mpi::rsmpi::ffi::MPI_Comm>, cells: Vec<Vec<f64>>, cost: &[f64]) -> equipoise::guest::Result<()> {
//! let world = equipoise::guest::World::with_options(comm, "balancer=refine")?;
//! let plan = world.plan(cost)?;
//! println!("{} now, {} after", plan.verdict().before, plan.verdict().after);
//! let there = plan.move_vec(cells)?;
//! let results = there.iter().map(chemistry).collect();
//! let mine: Vec<f64> = plan.give_back(results)?;
//! # Ok(()) }
//! ```
//!
//! A [`World`] stands on a duplicate of a communicator, and changes nothing else in the process. Its calls are collective unless they say
//! otherwise, and fail alike on all ranks.

#[cfg(feature = "_ranks")]
mod agreeing;
pub(crate) mod balancers;
#[cfg(feature = "_ranks")]
mod buffers;
#[cfg(feature = "_ranks")]
mod call;
pub(crate) mod decide;
#[cfg(feature = "_ranks")]
mod exchange;
#[cfg(feature = "_ranks")]
mod interrupts;
#[cfg(feature = "_ranks")]
mod letters;
#[cfg(feature = "_ranks")]
mod loops;
#[cfg(feature = "_ranks")]
mod measured;
mod options;
#[cfg(feature = "_ranks")]
mod places;
#[cfg(feature = "_ranks")]
mod plan;
#[cfg(feature = "_ranks")]
mod route;
#[cfg(feature = "_ranks")]
mod run;
#[cfg(feature = "_ranks")]
mod scheduled;
mod status;
#[cfg(feature = "_ranks")]
mod stealing;
mod step;
#[cfg(feature = "_ranks")]
mod steps;
#[cfg(feature = "_ranks")]
mod task;
#[cfg(feature = "_ranks")]
mod tasks;
pub(crate) mod travel;
mod units;
#[cfg(feature = "_ranks")]
mod values;
pub(crate) mod verdict;
#[cfg(feature = "_ranks")]
mod voice;
#[cfg(feature = "_ranks")]
mod world;

#[cfg(feature = "_ranks")]
pub use call::World;
#[cfg(feature = "_ranks")]
#[doc(hidden)]
pub use letters::Op as Call;
#[cfg(feature = "_ranks")]
pub use loops::Loop;
pub use options::{ByRank, Options};
#[cfg(feature = "_ranks")]
pub use places::Receive;
#[cfg(feature = "_ranks")]
pub use plan::{Given, Plan};
pub use status::{Failure, Result, Status};
#[cfg(feature = "_ranks")]
pub use task::{Process, Task};
pub use travel::Refused;
#[cfg(feature = "_ranks")]
pub use values::WorldPlan;
pub use verdict::Verdict;
