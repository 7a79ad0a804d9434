//! Tasks and loads, and how much of them each node should have.
//!
//! A *task* is the unit that moves; a *load* is a number of tasks (or of work units); a *power* is a node's relative speed; a *quota*
//! is the load that a node should have. Tasks without payload are ranges of ids, so a billion of them cost nothing.

pub mod pile;
pub mod plan;
pub mod position;
pub mod power;
pub mod quota;

pub use pile::{Checksum, Parcel, Pile, Segment, Task, TaskId};
pub use plan::{Plan, Transfer};
pub use position::Positions;
pub use power::Powers;
pub use quota::{Quota, Shares};
