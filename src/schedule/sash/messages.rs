//! The messages between a coordinator and the ranks of its cluster.

use serde::{Deserialize, Serialize};

use crate::load::Cost;
use crate::node::{Tag, Ticks};

pub const ASSIGN: Tag = crate::node::tags::independent::ASSIGN;
pub const COMPLETED: Tag = crate::node::tags::independent::COMPLETED;
pub const END: Tag = crate::node::tags::independent::END;
pub const EFFORT: Tag = crate::node::tags::independent::CLUSTER_EFFORT;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assigned {
    pub tasks: Vec<u64>,
    /// Start time of the first task by the model.
    pub due: Option<Cost>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Completed {
    pub tasks: Vec<u64>,
    pub took: Ticks,
}
