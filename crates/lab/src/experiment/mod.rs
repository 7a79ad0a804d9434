//! Experiments: what is run, how often and on what, and the records of what came out.
//!
//! A [`phase`](equipoise::phase) is one balancing phase on all nodes. [`balance`](fn@balance) runs one and [`compare`](fn@compare) many, on the same
//! [tasks](tasks::Tasks), [`run`](fn@run) a workload of spawning tasks, [`run_independent`] one of independent tasks, and all leave records that say
//! by themselves where and on what they were made. What must be the same on all ranks before a run is [settled](settle) first.

pub mod advise;
pub mod ahmad1994;
pub mod balance;
pub mod blazewicz1995;
pub mod compare;
mod cores;
pub mod crossover;
pub mod division;
pub mod environment;
pub mod hamidzadeh1995;
pub mod handicap;
pub mod independent;
pub mod interruption;
mod judged;
mod load_source;
pub mod papers;
mod prediction;
pub mod probe;
pub mod ranking;
pub mod responses;
pub mod run;
pub mod settle;
pub mod site;
pub mod spread;
pub mod statistics;
pub mod tasks;
pub mod weighing;
pub mod when;
mod worth;
pub mod wu1997;

pub use balance::{BalanceRecord, BalanceSpec, balance};
pub use compare::{CaseResult, CompareRecord, CompareSpec, compare};
pub use crossover::Crossover;
pub use division::ModelRecord;
pub use environment::Environment;
pub use equipoise::phase::trace::Trace;
pub use independent::{IndependentSpec, run_independent};
pub use interruption::Interruption;
pub use load_source::LoadSource;
pub use probe::{ProbeRecord, ProbeSpec, probe};
pub use ranking::{Ranking, Verdict};
pub use responses::Responses;
pub use run::{RunRecord, RunSpec, Scheduling, run};
pub use site::{Imbalances, LoadMap, Site};
pub use spread::{SpreadRecord, SpreadSpec, spread};
pub use tasks::Tasks;
pub use weighing::{LoadUnit, PlannedMove, Weighing, Work};
pub use when::{WhenRecord, when};
