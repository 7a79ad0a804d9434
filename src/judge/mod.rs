//! Evaluation of a balancing phase, from its loads and its plan only.
//!
//! [`mod@imbalance`] has the three figures that the field calls so, and when the slowest rank ends; [`sharing`] when all end where ranks share
//! cores; [`locality`] says which tasks had to move and which did; [`mod@deviation`] how far from the quotas it ended; [`hops`] the least task-hops
//! with which the quotas can be reached. Plain functions over plain numbers: the judge does not know how a balancer works.

mod deviation;
mod hops;
mod imbalance;
mod locality;
mod sharing;

pub use deviation::{best_deviation, deviation};
pub use hops::optimum;
pub use imbalance::{Imbalance, bound, break_even_task_ticks, by_rank, finish, finishes, imbalance, least_finish};
pub use locality::{Breach, least_held, locality_breach, minimum_nonlocal, nonlocal};
pub use sharing::{CoreGroup, makespan};
