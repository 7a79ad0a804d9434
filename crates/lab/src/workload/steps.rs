//! The work of each rank in each step of a run.

/// The noun with which sentences about a series begin; the option has the same name.
pub(super) const SERIES: &str = "series";

/// Maximum number of times, of all ranks in all steps together.
pub(super) const MOST_TIMES: usize = 1 << 27;

/// Steps of a recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Work by step and rank, in one unit of time (seconds for LBAF); all steps have the same number of ranks.
    pub work: Vec<Vec<f64>>,
    /// The numbers by which the source knows the steps, in increasing order: those of phases or of a table, or 0, 1, ..
    pub numbers: Vec<u64>,
    /// Phases of the run that were not recorded.
    pub skipped: Vec<u64>,
}
