//! Tasks that really compute. A plain program runs them all once before the ranks do: it says the answer, and with its time what each task
//! costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Problem, Setting};
use crate::workload::independent::REAL_CYCLE;
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Cost, Costs};
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::independent::{Independent, Turn};

/// Computation of the tasks of a workload.
pub(super) trait Kernel: Send + Sync {
    fn tasks(&self) -> usize;

    /// Computes a task: its part of the answer, and how many units of work it was. What goes to node 0 is appended to `product`.
    fn compute(&self, task: usize, worker: &mut dyn Worker, product: &mut Vec<u8>) -> (u64, u64);

    /// Checks a task's product by another method than the one that computed it.
    ///
    /// # Errors
    /// The difference, as a sentence.
    fn check(&self, task: usize, product: &[u8]) -> Result<(), String>;
}

/// A plain program has no one to give way to.
struct Alone;

impl Worker for Alone {
    fn checkpoint(&mut self) {}
    fn charge(&mut self, _: Ticks) {}
    fn sleep(&mut self, _: Ticks) {}
    fn spin(&mut self, _: Ticks) {}
}

/// Runs all tasks in sequence, and returns costs, the answer, and the seconds it took. The cost of a task is its number of units; in
/// simulation a unit takes a given number of nanoseconds, on real ranks the average that it took here.
///
/// # Errors
/// If a task's product is wrong.
pub(super) fn plain(kernel: &dyn Kernel, setting: &Setting, nanoseconds: f64) -> Result<(Costs, u64, f64)> {
    let (mut answer, mut units, mut scratch) = (0u64, Vec::with_capacity(kernel.tasks()), Vec::new());
    let mut took = Duration::ZERO;
    for task in 0..kernel.tasks() {
        scratch.clear();
        let began = Instant::now();
        let (value, work) = kernel.compute(task, &mut Alone, &mut scratch);
        took += began.elapsed();
        kernel.check(task, &scratch).map_err(|why| Error::Failed(format!("the plain program is wrong at task {task}: {why}")))?;
        answer = answer.wrapping_add(value);
        units.push(work);
    }
    let all: u64 = units.iter().sum();
    let unit = if setting.is_simulated { nanoseconds } else { took.as_nanos() as f64 / all.max(1) as f64 };
    let cost = |units: &u64| (*units as f64 * unit / REAL_CYCLE as f64 * CYCLE as f64).round() as Cost;
    let costs = units.iter().flat_map(|units| vec![cost(units); setting.ranks as usize]).collect();
    // Whole rows by construction.
    let costs = Costs::new(setting.ranks.max(1), costs).unwrap_or_else(|| unreachable!("rows are whole"));
    Ok((costs, answer, took.as_secs_f64()))
}

/// Tasks that compute on ranks, which are slowed down to the speeds that they are said to have.
pub(super) struct Computed {
    kernel: Arc<dyn Kernel>,
    costs: Arc<Costs>,
    /// The fastest has 1.
    speeds: Vec<f64>,
    is_simulated: bool,
}

impl Computed {
    pub fn new(kernel: Arc<dyn Kernel>, problem: Problem, speeds: Vec<f64>, is_simulated: bool) -> Computed {
        Computed { kernel, costs: Arc::new(problem.costs), speeds, is_simulated }
    }
}

impl Independent for Computed {
    fn costs(&self) -> &Arc<Costs> {
        &self.costs
    }

    fn speeds(&self) -> &[f64] {
        &self.speeds
    }

    fn execute(&self, task: usize, turn: Turn, worker: &mut dyn Worker, product: &mut Vec<u8>) -> u64 {
        let began = Instant::now();
        let (value, _) = self.kernel.compute(task, worker, product);
        if self.is_simulated {
            worker.charge(self.costs.of(task, turn.rank.index()).saturating_sub(turn.late));
        } else if let Some(speed) = self.speeds.get(turn.rank.index()).filter(|speed| **speed < 1.0) {
            worker.sleep((began.elapsed().as_nanos() as f64 * (1.0 / speed - 1.0)) as Ticks);
        }
        value
    }
}
