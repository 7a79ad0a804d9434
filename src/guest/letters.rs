//! The messages of calls: which call they belong to, and how they are read.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::status::{Failure, Result, Status};
use crate::transport::wire;

/// Identifies a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Opens the world.
    Open,
    /// Closes the world.
    Close,
    /// Makes a plan.
    Plan,
    /// Makes a plan of given destinations.
    PlanFrom,
    /// Moves items of one size.
    Move,
    /// Moves items of several sizes.
    MoveVar,
    /// Returns results of one size.
    Return,
    /// Returns results of several sizes.
    ReturnVar,
    /// Reports a step.
    Step,
    /// Asks whether balancing pays.
    Advise,
    /// Begins a loop.
    LoopBegin,
    /// Ends a loop.
    LoopEnd,
    /// Runs tasks.
    Run,
    /// Exchanges bytes.
    Exchange,
}

impl Op {
    pub(super) fn name(self) -> &'static str {
        match self {
            Op::Open => "open",
            Op::Close => "close",
            Op::Plan => "plan_make",
            Op::PlanFrom => "plan_from",
            Op::Move => "plan_move",
            Op::MoveVar => "plan_move_var",
            Op::Return => "plan_return",
            Op::ReturnVar => "plan_return_var",
            Op::Step => "step",
            Op::Advise => "advise",
            Op::LoopBegin => "loop_begin",
            Op::LoopEnd => "loop_end",
            Op::Run => "run",
            Op::Exchange => "exchange",
        }
    }
}

/// Kinds of letters.
pub mod kinds {
    pub const UP: i32 = 1;
    pub const DOWN: i32 = 2;
    pub const COLLECT: i32 = 3;
    pub const SCATTER: i32 = 4;
    pub const LOST: i32 = 5;
    /// A rank is at work on its part of the call.
    pub const BUSY: i32 = 6;
    /// First kind of the messages of a run.
    pub const RUN: i32 = 10;
}

/// Reads what another rank wrote.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    wire::read_value(bytes).map_err(|why| Failure::new(Status::Failed, format!("another rank's words cannot be read: {why}")))
}
