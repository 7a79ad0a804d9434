//! Workloads. To balance: loads and powers by rank, the tasks behind the loads, real files and the tasks of real runs. To schedule: [graphs] of
//! tasks that spawn tasks, and [independent] tasks.
//!
//! Parsing an option touches no file, so every rank may do it; drawing a pattern may read one (`@FILE`) and belongs to rank 0, which
//! tells the others. Patterns depend on the seed and the number of ranks only, never on the topology: every balancer of a comparison
//! gets the same loads.

mod decimal;
pub mod files;
pub mod graphs;
pub mod independent;
mod items;
pub mod kernels;
pub mod lbaf;
pub mod links;
pub mod loads;
pub mod measured;
pub mod memory;
pub mod network;
pub mod powers;
pub mod series;
mod source;
pub mod steps;
pub mod task_table;
pub mod tasks;
#[cfg(test)]
mod testing;
pub mod text;
mod time;
pub mod weights;

pub use decimal::Decimal;
pub use files::{FileTask, FileTasks};
pub use loads::LoadPattern;
pub use measured::{MeasuredTask, MeasuredTasks};
pub use powers::PowerPattern;
pub use source::{TaskSource, column_names};
pub use tasks::{InitialTasks, is_intact};
pub use time::TimeUnit;
pub use weights::{Pins, WeightPattern, Weights};

/// The streams of random numbers that are drawn under one seed. Nodes draw from the streams of their own numbers, which are below 2^32.
const LOADS_STREAM: u64 = 1 << 32;
const POWERS_STREAM: u64 = (1 << 32) + 1;
/// The seeds of task trees.
const SHAPES_STREAM: u64 = (1 << 32) + 2;
/// Random stream for the arrivals of the graphs of a stream, and of independent tasks.
const ARRIVALS_STREAM: u64 = (1 << 32) + 3;
/// Their times.
const TIMES_STREAM: u64 = (1 << 32) + 4;
/// Weights of tasks, and which may not move.
const WEIGHTS_STREAM: u64 = (1 << 32) + 5;
const PINNED_STREAM: u64 = (1 << 32) + 6;
/// Random stream for the costs of independent tasks.
const COSTS_STREAM: u64 = (1 << 32) + 7;
/// The matrices of multiplications and determinants, and what their products are checked with.
const MATRICES_STREAM: u64 = (1 << 32) + 8;
const CHECKS_STREAM: u64 = (1 << 32) + 9;
