//! Scheduling of computations whose tasks create tasks: the tasks are spread over the nodes while the computation runs, and answers flow
//! back.
//!
//! A user writes a [`Computation`]; a [policy](policy::Policy) decides on each node where new tasks go; [`execute`] is the program of a
//! node. It executes tasks between messages, carries out the policy's actions, keeps waiting parents, and detects termination (`runtime`).
//!
//! ```text
//!   roots -> host's policy -> queue here ----------> ready -> worker -> answer -> parent's node -> join -> ..
//!                          -> send -> node's policy -> ..            -> children -> policy -> ..
//! ```
//!
//! To add a scheduler, write its file with a policy and enter it in [`ALL`].

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
mod kinds;
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
pub use kinds::{find, listed, make};
pub use options::Options;
pub use policy::QueueOrder;
pub use registry::{Chosen, Entry, Facts, Region, Scheduler, Units};
pub use runtime::execute;

/// All schedulers, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &hierarchical::ENTRY,
    &neighbour::ENTRY,
    &gradient::ENTRY,
    &cwn::ENTRY,
    &acwn::ENTRY,
    &rid::ENTRY,
    &gde::ENTRY,
    &incremental::ENTRY,
    &steal::ENTRY,
    &random::ENTRY,
    &static_::ENTRY,
];

/// The names of all, the simplest first: among schedulers that do equally well the simplest is recommended.
pub const SIMPLEST_FIRST: &[&str] =
    &["static", "random", "steal", "rid", "neighbour", "cwn", "acwn", "gradient", "gde", "hierarchical", "incremental"];

/// All schedulers of independent tasks, in the order in which they are shown.
pub const INDEPENDENT: &[&independent::Entry] = &[&sash::ENTRY, &sash::SADS, &dss::ENTRY, &selfsched::ENTRY];

/// Their names, the simplest first.
pub const INDEPENDENT_SIMPLEST_FIRST: &[&str] = &["selfsched", "dss", "sads", "sash"];

#[cfg(test)]
mod tests;
