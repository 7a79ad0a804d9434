//! Independent tasks to schedule. One file each; the [registry](ALL) is data that the command line and `list` go through.

mod costs;
mod matrix;

use std::sync::Arc;

use super::pattern::Pattern;
use crate::error::{Error, Result};
use crate::load::{Cost, Costs};
use crate::schedule::independent::Independent;

pub use costs::{Emulated, REAL_CYCLE, Spread, drawn};
pub use matrix::read;

const OPTION: &str = "--workload";

/// All workloads of independent tasks, in the order in which they are shown.
pub const ALL: &[&Entry] = &[&costs::ENTRY];

/// A workload's place in the registry.
pub struct Entry {
    /// As the command line names it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Author, year, section; empty where there is nobody to name.
    pub source: &'static str,
    /// Its options as `key=value, ..` with their defaults.
    pub options: &'static str,
    /// What its answer is.
    pub answer: &'static str,
    build: fn(&mut Pattern<'_>) -> Result<Make>,
}

/// Where a workload's matrix comes from.
pub struct Make {
    /// Whether it comes from a file, which one rank reads.
    reads: bool,
    make: Box<MakeCosts>,
}

type MakeCosts = dyn Fn(&Setting) -> Result<Costs> + Send + Sync;

/// What a workload may depend on beside its options; the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub seed: u64,
    pub ranks: u32,
}

/// A workload that was asked for.
pub struct Chosen {
    /// As it was asked for, options included.
    pub name: String,
    pub entry: &'static Entry,
    make: Make,
}

/// The workload named `name[:key=value,..]`; `None` if no workload of independent tasks has this name.
///
/// # Errors
/// If its options are wrong.
pub fn find(spec: &str) -> Result<Option<Chosen>> {
    let spec = spec.trim();
    let name = spec.split(':').next().unwrap_or_default().trim();
    let Some(entry) = ALL.iter().find(|entry| entry.name == name) else { return Ok(None) };
    let mut pattern = Pattern::parse(OPTION, spec)?;
    let make = (entry.build)(&mut pattern)?;
    pattern.finish()?;
    Ok(Some(Chosen { name: spec.to_string(), entry, make }))
}

impl Chosen {
    /// Whether a file must be read, which belongs to one rank.
    pub fn reads(&self) -> bool {
        self.make.reads
    }

    /// What the tasks cost in a setting: for every task there is a rank that can run it.
    ///
    /// # Errors
    /// If the file can't be read or is no matrix for these ranks, or no rank can run one of the tasks; the sentence names the place.
    pub fn costs(&self, setting: &Setting) -> Result<Costs> {
        let costs = (self.make.make)(setting)?;
        match costs.impossible() {
            Some(task) => Err(Error::usage(format!("{OPTION} {}: no rank can run task {task} (counted from 0)", self.name))),
            None => Ok(costs),
        }
    }

    /// The tasks, ready to be executed. A cycle takes 10^6 ticks in simulation and 1 us on real ranks.
    pub fn prepare(&self, costs: Costs, speeds: Vec<f64>, is_simulated: bool) -> Arc<dyn Independent> {
        Arc::new(Emulated::new(Arc::new(costs), speeds, is_simulated))
    }
}

/// The matrix on ranks of these speeds; none if all are 1.
pub fn at_speeds(costs: Costs, speeds: &[f64]) -> Costs {
    if speeds.is_empty() { costs } else { costs.map(|rank, cost| (cost as f64 / speeds[rank]).round() as Cost) }
}
