//! The unit of loads, and how near to the quotas a phase came: figures in all records for tasks that are not alike.

use std::fmt;

use serde::Serialize;

use equipoise::load::Transfer;
use equipoise::topology::NodeId;

/// Unit of loads, quotas and final loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadUnit {
    #[default]
    Tasks,
    /// Work units, of which a task may have several.
    Work,
}

impl LoadUnit {
    /// One of them, with its article.
    pub fn one(self) -> &'static str {
        match self {
            LoadUnit::Tasks => "a task",
            LoadUnit::Work => "a unit of work",
        }
    }
}

impl fmt::Display for LoadUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadUnit::Tasks => "tasks",
            LoadUnit::Work => "work",
        })
    }
}

/// Sizes of the tasks, and distances of the final loads from the quotas.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Weighing {
    pub unit: LoadUnit,
    /// Seconds per work unit, if the source of the tasks gives them: then loads are times.
    pub unit_seconds: Option<f64>,
    /// Whether the tasks carry different amounts, so that the payload is their mean.
    #[serde(skip)]
    pub payload_is_mean: bool,
    /// Work units of the largest task.
    pub largest_task: u64,
    /// Tasks that may not move.
    pub pinned_tasks: u64,
    /// The largest difference between a node's final load and its quota.
    pub deviation: u64,
    /// Lower bound of the deviation for the pinned tasks, if work could be divided at will.
    pub best_deviation: u64,
    /// Figures in work units, if tasks have several.
    #[serde(flatten)]
    pub work: Option<Work>,
}

/// Figures in work units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    pub work: u64,
    /// Work units times hops.
    pub work_hops: u128,
    /// Minimum number of work-hops with which every node would end exactly at its quota.
    pub optimum_work_hops: Option<u128>,
    /// Work units of the tasks that ended elsewhere than they began, or left and came back.
    pub nonlocal_work: u64,
}

/// A transfer in the form for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedMove {
    pub step: u32,
    pub src: NodeId,
    pub dst: NodeId,
    pub tasks: u64,
    /// Their work units, where tasks may have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
}

impl PlannedMove {
    pub(super) fn of(transfer: Transfer, unit: LoadUnit) -> PlannedMove {
        let Transfer { step, src, dst, tasks, work } = transfer;
        PlannedMove { step, src, dst, tasks, work: (unit == LoadUnit::Work).then_some(work) }
    }
}
