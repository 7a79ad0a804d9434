//! The laboratory of Equipoise: what is run, how often and on what, and what comes out.
//!
//! - [`workload`]: inputs to balance: patterns of loads and powers, tasks, files; and graphs of tasks to schedule.
//! - [`divisible`]: one load that can be cut anywhere: the share of each processor, and the finish time.
//! - [`experiment`]: what is run, how often and on what, and the records of it; the papers' studies.
//! - [`bounds`]: lower bounds and heuristics for independent tasks.
//! - [`report`]: what records look like to people and programs.
//! - [`tags`]: tags of messages, and epochs.
//! - [`whole_file`]: files that are complete or not there.

pub mod bounds;
pub mod divisible;
pub mod experiment;
pub mod report;
pub mod tags;
pub mod whole_file;
pub mod workload;
