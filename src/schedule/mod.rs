//! Spawning: a computation whose tasks create tasks is spread over the nodes while it runs, and its answers flow back.
//!
//! A user writes a [`Computation`]; a [policy](policy::Policy) decides on each node where new tasks go; [`execute`] is what a node does: it
//! executes tasks between messages, carries out what the policy wants, keeps the parents that wait, and finds out when all is done
//! (`runtime`).
//!
//! ```text
//!   roots -> host's policy -> queue here ----------> ready -> worker -> answer -> parent's node -> join -> ..
//!                          -> send -> node's policy -> ..            -> children -> policy -> ..
//! ```
//!
//! To add a scheduler, write its file with a policy and enter it in the [registry](ALL).

pub mod accounting;
mod acwn;
pub mod computation;
mod cwn;
pub mod dss;
mod gde;
mod gradient;
mod hierarchical;
mod incremental;
pub mod independent;
mod neighbour;
mod neighbourhood;
mod options;
pub mod policy;
mod random;
mod registry;
mod rid;
mod runtime;
pub mod sash;
pub mod selfsched;
mod static_;
mod steal;
mod tree;

pub use accounting::{Graph, NodeReport, RunResult, Summary};
pub use computation::{Computation, Roots, Slice, Source, Style, Yield};
pub use options::Options;
pub use policy::QueueOrder;
pub use registry::{ALL, Chosen, Entry, Facts, Region, SIMPLEST_FIRST, Scheduler, Units, find, listed, make};
pub use runtime::execute;

#[cfg(test)]
mod tests;
