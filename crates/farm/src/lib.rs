//! A farm of commands: a list of any commands runs over the ranks of a job, each exactly once.
//!
//! ```text
//!   list -> lead (rank 0: deals, counts, prints) --- tasks ---> hand (every rank) --- orders ---> helper (a process) -> commands
//!              ^-------------------------------- outcomes -------- journal <---------- news ---------'
//! ```
//!
//! - [`list`] reads the tasks, one at a time; a long list is never in memory as a whole.
//! - [`lead`] decides which rank gets which task when. It is a plain struct, without a network.
//! - [`hand`] gives the tasks of one rank to its helper, and writes what became of them into the [`journal`].
//! - [`helper`] is a small process that was started before MPI, and that starts the commands.
//! - [`starter`] is its sister for programs that the caller talks to over pipes (`divide --command`).
//! - [`engine`] puts a lead and hands together, in one process or over the ranks of a world.

pub mod engine;
pub mod environment;
pub mod hand;
pub mod helper;
pub mod joining;
pub mod journal;
pub mod lead;
pub mod leases;
pub mod limits;
pub mod list;
pub mod messages;
pub mod output;
pub mod prepare;
pub mod presence;
pub mod report;
pub mod scheduler;
pub mod settings;
pub mod starter;
pub mod status;
pub mod tags;
pub mod task;
