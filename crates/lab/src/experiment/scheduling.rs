//! Figures that only runs of independent tasks have.

use equipoise::topology::RankId;
use serde::Serialize;

/// Figures of runs of independent tasks. Times have the unit of the record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scheduling {
    /// The rank that scheduled.
    pub scheduler_rank: RankId,
    /// Phases of searching, or grants.
    pub decisions: u64,
    /// Nodes of the search that were expanded, and that were generated.
    pub expansions: u64,
    pub generated: u64,
    /// Time spent searching.
    pub search_time: f64,
    /// Idle time of workers while tasks were left for them, summed over the ranks.
    pub waiting_time: f64,
    /// Time per generated node of the search; `None` without search.
    pub v: Option<f64>,
    /// Maximum of `v` with which the scheduler keeps all workers busy with phases of one task: mean cost / workers squared.
    pub v_bound: f64,
    /// Lower bound of the makespan, and makespans of heuristics that know all tasks in advance, all on all ranks.
    pub lower_bound: f64,
    pub earliest_completion: f64,
    pub min_min: Option<f64>,
    pub sufferage: Option<f64>,
    /// Minimum makespan, if it is known, and the relative excess of the mean makespan over it.
    pub optimum: Option<f64>,
    pub gap: Option<f64>,
    /// Mean time from a task's arrival to its end; `None` if all tasks are there from the beginning.
    pub task_response_mean: Option<f64>,
}
