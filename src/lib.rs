//! Equipoise balances dynamic, irregular work over MPI ranks: collective balancers that run on real ranks under `mpirun`, and the very
//! same code on a simulated network of a million ranks.
//!
//! # Start here
//!
//! A program that has a `Vec` of tasks on each rank calls [`balance_vec`]. To see which balancer suits some ranks and loads, run
//! `mpirun -n 8 equipoise compare`. To read the code, begin with [`node`] (what a program sees of its world), then the Cube Walking
//! Algorithm in `src/balance/cwa.rs` (what a balancer looks like), then [`experiment::phase`] (how one is run and checked).
//!
//! ```
//! use equipoise::balance;
//! use equipoise::experiment::{self, BalanceSpec, Tasks};
//! use equipoise::load::Powers;
//! use equipoise::topology::{Overlay, Topology};
//! use equipoise::transport::{sim, world::World};
//!
//! // Eight simulated ranks as a hypercube, with the loads of Wu 1997, example 3.
//! let mut world = World::Sim(sim::World::new(8, sim::Model::default()));
//! let loads = vec![19, 11, 2, 9, 0, 9, 10, 4];
//! let spec = BalanceSpec {
//!     balancer: balance::find("cwa")?.into(),
//!     overlay: Overlay::one_host(Topology::parse("hypercube:3", 8)?, 8)?,
//!     tasks: Tasks::numbered(&mut world, loads, 0)?,
//!     powers: Powers::equal(8, 8),
//!     given_powers: None,
//!     seed: 1,
//!     moves: true,
//!     optimum: false,
//!     trace: false,
//!     plain: false,
//! };
//! let record = experiment::balance(&mut world, &spec)?.expect("node 0 is here");
//! assert_eq!(record.finals, [8; 8]);
//! assert_eq!((record.task_hops, record.optimum_task_hops), (21, Some(21)));
//! # Ok::<(), equipoise::Error>(())
//! ```
//!
//! # The flow of data
//!
//! ```text
//!   options            workload          topology              balance           node            transport
//!   --loads, --tasks -> loads, tasks --> overlay: nodes ------> a balancer ----> mover: tasks --> mpi   real ranks
//!   --topology          powers           on ranks and hosts     decides          as messages      sim   virtual time
//!                                                                  |                                |
//!   report <----------- experiment <-------- judge <-------------- plan, times <---- record (counts) <+
//!   table json csv      records              imbalance, optimum
//! ```
//!
//! # The modules
//!
//! - [`load`]: tasks, loads, powers, quotas and plans, as plain data.
//! - [`topology`]: who is next to whom, and how a topology's nodes lie on ranks and hosts.
//! - [`transport`]: the contract between a node and the world that carries its messages, and the two worlds.
//! - [`node`]: what a program sees of its world: messages, time, work, collectives and the mover of tasks.
//! - [`assign`]: whole tasks to ranks, where all weights are known: longest first, differencing, refinement, chains.
//! - [`balance`]: the balancers, one file each, and their registry.
//! - [`workload`]: what there is to balance: patterns of loads and powers, tasks, files; and graphs of tasks to schedule.
//! - [`schedule`]: computations whose tasks create tasks, spread while they run.
//! - [`divisible`]: one load that can be cut anywhere: who gets how much, and when all is done.
//! - [`flow`]: min-cost flow, which knows nothing of the rest.
//! - [`judge`]: what a phase was worth: imbalance, locality, the least task-hops.
//! - [`experiment`]: what is run, how often and on what, and the records of it.
//! - [`report`]: what records look like to people and programs.
//! - [`redistribute`](mod@redistribute): balancing a program's own tasks.
//! - [`trigger`]: when to balance: published criteria, and what a series of steps costs under each.
//! - [`options`]: the options of balancers and schedulers, `NAME[:key=value,..]`.
//! - [`error`]: what can go wrong, and its exit status.
//! - [`memory`]: large buffers that may not be had.
//! - [`names`]: names that others chose, of files above all, as text, as paths, and as they are shown.

pub mod agreement;
pub mod assign;
pub mod balance;
pub mod error;
pub mod flow;
pub mod judge;
pub mod load;
pub mod memory;
pub mod names;
pub mod node;
pub mod options;
pub mod phase;
pub mod redistribute;
pub mod schedule;
pub mod topology;
pub mod transport;
pub mod trigger;

pub use error::{Error, Result};
pub use redistribute::{balance_vec, redistribute};
