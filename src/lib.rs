//! Equipoise balances dynamic, irregular work over MPI ranks: collective balancers that run on real ranks under `mpirun`, and the very
//! same code on a simulated network of a million ranks.
//!
//! # Start here
//!
//! An MPI program whose ranks have cells of uneven cost opens a [`guest`]'s world on its communicator, lends cells to other ranks, and brings the
//! results home:
//!
//! ```no_run
//! # use equipoise::transport::mpi::rsmpi;
//! # fn chemistry(cell: &Vec<f64>) -> f64 { cell[0] }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let universe = rsmpi::initialize().ok_or("MPI was initialised before")?;
//! # let comm = universe.world();
//! # let (cells, cost) = (vec![vec![0.5; 100]; 10], vec![1.0; 10]);
//! use equipoise::guest::World;
//!
//! let world = World::with_options(&comm, "balancer=refine")?;                 // comm: the program's own
//! let plan = world.plan(&cost)?;                                              // cost: a number for each cell of this rank
//! println!("{} now, {} after", plan.verdict().before, plan.verdict().after);  // the slowest rank over the mean
//! let there = plan.move_vec(cells)?;                                          // anything that serialises
//! let results = there.iter().map(chemistry).collect();
//! let mine: Vec<f64> = plan.give_back(results)?;                              // one for each cell, in their order
//! # drop(mine);
//! world.close()?;
//! # Ok(()) }
//! ```
//!
//! All ranks make these calls together. [`guest`] also has loops, tasks that create tasks, and the question whether to balance before the next step.
//! A program whose `Vec` of tasks is to be balanced for good, and no more, calls [`balance_vec`]; [`redistribute`](redistribute()) is the same in a
//! world of any kind, for example on four simulated ranks:
//!
//! ```
//! use equipoise::transport::{sim, world::World};
//!
//! let mut world = World::simulated(4, sim::Model::default());
//! let tasks = equipoise::redistribute(&mut world, "direct", |rank| if rank.get() == 0 { (0..8).collect() } else { vec![] })?;
//! assert!(tasks.iter().all(|(_, tasks): &(_, Vec<u64>)| tasks.len() == 2));
//! # Ok::<(), equipoise::Error>(())
//! ```
//!
//! To see which balancer suits some ranks and loads, run `mpirun -n 8 equipoise compare`. To read the code, begin with [`node`] (what a
//! program sees of its world), then the Cube Walking Algorithm in `src/balance/cwa.rs` (what a balancer looks like).
//!
//! # What a program writes
//!
//! - A *rank program* is an `async fn` of a [`Node`](node::Node), started by [`node::run`].
//! - A *balancer* implements [`balance::Balancer`]; `examples/your_own_balancer.rs` is one.
//! - A *scheduler* implements [`schedule::policy::Policy`]; `examples/your_own_scheduler.rs` is one.
//! - A *computation* whose tasks create tasks implements [`schedule::Computation`]; see `examples/divide_and_conquer.rs`.
//! - A *topology* is made by [`topology::Topology::parse`], or of any graph.
//! - A program with time steps asks a [`trigger::Trigger`] after each step whether to balance.
//!
//! # Units
//!
//! Times are [`Ticks`](transport::Ticks), nanoseconds. Loads are work units; a unit task has one. Nodes, ranks and hosts are numbered from 0.
//!
//! # Features
//!
//! - `mpi` (on by default): real ranks, linked with the MPI that is installed.
//! - `mpi-dynamic`: real ranks over the MPI that is found when the program runs; nothing of MPI is needed to build it. For Linux on little-endian
//!   machines of 64 bits.
//! - `plain` (on by default): values of plain types (`bytemuck`) move as bytes, without being serialised (`WorldPlan::move_plain` in [`guest`]).
//! - `signals`: SIGUSR1 and SIGUSR2 as events on real ranks. Without it options that ask for them are refused.
//!
//! A feature only adds, with one exception: `mpi` wins over `mpi-dynamic`. A program built with both is linked with the MPI that is installed and
//! looks for no other, so `mpi-dynamic` is chosen with `default-features = false`.
//!
//! The library logs through the crate `log`: launch, overlay, phases, decisions and the watchdog at debug level, every
//! message at trace level.

#![deny(missing_docs)]
#![allow(rustdoc::private_intra_doc_links, reason = "the contract is told where its private parts are, too")]

pub mod advice;
pub mod assign;
pub mod balance;
pub mod error;
pub mod guest;
pub mod load;
pub mod node;
pub mod redistribute;
pub mod registry;
pub mod schedule;
pub mod spec;
pub mod topology;
pub mod transport;
pub mod trigger;

// Public for the laboratory and the program of this workspace only. No promise is made about these, and they are not documented.
#[doc(hidden)]
pub mod agreement;
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
pub mod judge;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod phase;

pub use error::{Error, Result};
pub use redistribute::{balance_vec, balance_weighed, redistribute, redistribute_weighed};
