//! Tasks and loads, and how much of them each node should have.
//!
//! A *task* is the unit that moves; a *load* is a number of tasks (or of work units); a *power* is a node's relative speed; a *quota*
//! is the load that a node should have. Unit tasks without payload are ranges of ids, so a billion of them cost nothing. Tasks may have
//! several work units, and some may be pinned to their node. What independent tasks cost on ranks of different kinds is a matrix ([`Costs`]).

mod checksum;
pub mod columns;
mod costs;
mod links;
mod occupancy;
mod plan;
mod position;
mod power;
mod quota;
mod rank_time;
mod task_batch;
mod work_queue;

pub use checksum::Checksum;
pub use columns::{Column, ColumnRatio};
pub use costs::{CYCLE, Cost, Costs, MOST, NEVER, mean_of_finite};
pub use links::{Crossing, Crossings, Link};
pub use occupancy::{Holding, Occupancy};
pub use plan::{Plan, Transfer};
pub use position::{Aim, Positions};
pub use power::Powers;
pub use quota::{Quota, Shares};
pub use rank_time::RankTime;
pub use task_batch::{Segment, Task, TaskBatch, TaskId};
pub use work_queue::{Place, WorkQueue};
