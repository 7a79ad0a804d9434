//! Facts about a scheduler of independent tasks that are known before it runs, and the types of the registry's entries.

use std::sync::Arc;

use super::{ALL, SIMPLEST_FIRST, Scheduler};
use crate::registry::{self, Registered};

/// A scheduler's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A scheduler that was chosen, ready to run.
pub type Chosen = registry::Chosen<Facts>;

/// Facts about a scheduler that are known before it runs.
pub struct Facts {
    /// Whether it uses costs before tasks are executed.
    pub knows_costs: bool,
}

impl Registered for Facts {
    type Made = Arc<dyn Scheduler>;
    const WHAT: &'static str = "scheduler";
    const ALL: &'static [&'static Entry] = ALL;
    const SIMPLEST_FIRST: &'static [&'static str] = SIMPLEST_FIRST;
}
