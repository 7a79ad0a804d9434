//! Tasks of given costs, emulated: a worker sleeps as long as a task costs. The costs are a file's matrix, or drawn as in Hamidzadeh, Lilja and
//! Atif 1995, section 4.1: processing and communication each uniform within three standard deviations of their means, by task and rank.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::optimum::Optimum;
use super::{Entry, Facts, Make, Plan, Problem, Setting, matrix};
use crate::workload::{ARRIVALS_STREAM, COSTS_STREAM};
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Cost, Costs};
use equipoise::names;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::independent::{Independent, Turn};
use equipoise::spec::{InvalidSpec, Options};

pub const ENTRY: Entry = Entry {
    name: "costs",
    title: "independent tasks of given costs on each rank",
    source: "Hamidzadeh, Lilja and Atif 1995, section 4.1",
    options: "file=M.csv (rows tasks, columns ranks, in cycles; inf: can't run there), optimum=CYCLES|TABLE (the file's least makespan, or a \
              table that has it by the file's name, to tell how far each scheduler is from it); or tasks=500, mu_cp=500, sigma_cp=10, mu_cc=500, \
              sigma_cc=50 (cycles; slept, 1 us each); arrival=RATE (tasks that arrive in 1000 cycles, at random; otherwise all are there), or \
              arrival=file (its first column is when, in cycles)",
    examples: &["costs:tasks=60,mu_cp=100,mu_cc=100", "costs:tasks=60,mu_cp=100,mu_cc=100,arrival=20"],
    build,
    facts: Facts { answer: "tasks" },
};

/// More tasks than this times ranks don't fit into memory with comfort.
const MOST_TASKS: u64 = 50_000_000;
/// The largest mean, in cycles.
const MOST_CYCLES: f64 = 1e9;

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let arrival = Arrival::read(options)?;
    if let Some(file) = options.value("file")? {
        if file.is_empty() {
            return Err(options.conflict("file needs a value, the name of a file"));
        }
        let file = names::path(file);
        let optimum = Optimum::read(options)?;
        if optimum.is_some() && matches!(arrival, Arrival::Rate(_)) {
            return Err(options.conflict("tasks that arrive at random have no optimum that is known"));
        }
        return Ok(Make::reading(options, move |setting| {
            let (costs, column) = matrix::read(&file, setting.ranks, arrival == Arrival::Column)?;
            let arrivals = if arrival == Arrival::Column { column } else { arrival.draw(costs.tasks(), setting.seed) };
            let wrong = |why| Error::input("workload", format!(" costs:file={},{why}", names::shown(&file)));
            let optimum = optimum.as_ref().map(|optimum| optimum.of(&file).map_err(wrong)).transpose()?;
            Ok(Problem { optimum, ..emulated(costs, arrivals) })
        }));
    }
    if arrival == Arrival::Column {
        return Err(options.conflict("arrival=file goes with file=M.csv"));
    }
    let tasks = options.within("tasks", 0..=MOST_TASKS)?.unwrap_or(500);
    let processing = Spread::read(options, ["mu_cp", "sigma_cp"], [500.0, 10.0])?;
    let communication = Spread::read(options, ["mu_cc", "sigma_cc"], [500.0, 50.0])?;
    Ok(Make::drawing(options, move |setting| {
        Ok(emulated(drawn(tasks, processing, communication, setting), arrival.draw(tasks as usize, setting.seed)))
    }))
}

/// Tasks of these costs that do nothing but take their time.
pub(super) fn emulated(costs: Costs, arrivals: Vec<Cost>) -> Problem {
    let known = costs.tasks() as u64;
    Problem { costs, arrivals, plan: Plan::Emulated { spins: false, values: Vec::new() }, known, sequential: None, optimum: None }
}

/// Arrival of the tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrival {
    /// All tasks are there from the beginning.
    Before,
    /// At random, with this mean number in 1,000 cycles (a Poisson process).
    Rate(f64),
    /// Times in the file's first column.
    Column,
}

impl Arrival {
    fn read(options: &mut Options<'_>) -> Result<Arrival, InvalidSpec> {
        match options.value("arrival")? {
            None => Ok(Arrival::Before),
            Some("file") => Ok(Arrival::Column),
            Some(text) => match text.parse::<f64>() {
                Ok(rate) if (1e-6..=1e9).contains(&rate) => Ok(Arrival::Rate(rate)),
                _ => Err(options.wrong("arrival", text, "a number of tasks in 1000 cycles above 0, or the word file")),
            },
        }
    }

    fn draw(self, tasks: usize, seed: u64) -> Vec<Cost> {
        let Arrival::Rate(rate) = self else { return Vec::new() };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(ARRIVALS_STREAM);
        let mut at = 0.0f64;
        let mut next = || {
            at += -(1.0 - rng.random::<f64>()).ln() * 1000.0 / rate;
            (at * CYCLE as f64).round() as Cost
        };
        (0..tasks).map(|_| next()).collect()
    }
}

/// A uniform distribution, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub deviation: f64,
}

impl Spread {
    fn read(options: &mut Options<'_>, [mean_key, deviation_key]: [&'static str; 2], defaults: [f64; 2]) -> Result<Spread, InvalidSpec> {
        let mean = options.real(mean_key, 0.0..=MOST_CYCLES)?.unwrap_or(defaults[0]);
        let deviation = options.not_negative(deviation_key)?.unwrap_or(defaults[1].min(mean / 3.0));
        if 3.0 * deviation > mean {
            return Err(options
                .conflict(format!("with {deviation_key}={deviation} some costs would be negative; at most {} is possible", mean / 3.0)));
        }
        Ok(Spread { mean, deviation })
    }

    fn draw(self, rng: &mut ChaCha8Rng) -> Cost {
        let (least, most) = (self.mean - 3.0 * self.deviation, self.mean + 3.0 * self.deviation);
        (rng.random_range(least..=most).max(0.0) * CYCLE as f64).round() as Cost
    }
}

/// A matrix for a seed. The costs of a task on the first ranks are the same however many there are.
pub fn drawn(tasks: u64, processing: Spread, communication: Spread, setting: &Setting) -> Costs {
    let mut costs = Vec::with_capacity(tasks as usize * setting.ranks as usize);
    for task in 0..tasks {
        let mut rng = ChaCha8Rng::seed_from_u64(setting.seed);
        rng.set_stream(COSTS_STREAM);
        rng.set_word_pos(u128::from(task) << 32);
        costs.extend((0..setting.ranks).map(|_| processing.draw(&mut rng) + communication.draw(&mut rng)));
    }
    // Whole rows by construction.
    Costs::new(setting.ranks.max(1), costs).unwrap_or_else(|| unreachable!("rows are whole"))
}

/// Tasks that take as long as the matrix says.
pub struct Emulated {
    costs: Arc<Costs>,
    arrivals: Vec<Cost>,
    /// Their parts of the answer; 1 if there are none.
    values: Vec<u64>,
    spins: bool,
    speeds: Vec<f64>,
    is_simulated: bool,
    /// Time at which the last task of this process should have ended. A worker that goes on without a pause makes up for what the system's
    /// timer was late, so that an emulated processor is as fast as it should be.
    due: Mutex<Option<Instant>>,
}

impl Emulated {
    pub fn new(costs: Arc<Costs>, speeds: Vec<f64>, is_simulated: bool) -> Emulated {
        Emulated { costs, arrivals: Vec::new(), values: Vec::new(), spins: false, speeds, is_simulated, due: Mutex::new(None) }
    }

    /// The tasks of a problem, on ranks of these speeds; its costs are theirs.
    pub(super) fn of(problem: Problem, speeds: Vec<f64>, is_simulated: bool) -> Emulated {
        let plain = Emulated::new(Arc::new(problem.costs), speeds, is_simulated);
        let (spins, values) = match problem.plan {
            Plan::Emulated { spins, values } => (spins, values),
            _ => (false, Vec::new()),
        };
        Emulated { arrivals: problem.arrivals, values, spins, ..plain }
    }

    /// Returns the time to sleep from now on for a task that takes `takes`.
    fn rest(&self, takes: Duration, turn: Turn) -> Duration {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let begins = due.filter(|_| turn.follows).unwrap_or(now).min(now);
        let ends = begins + takes;
        *due = Some(ends);
        ends.saturating_duration_since(now)
    }
}

/// Nanoseconds in a cycle on real ranks.
pub const REAL_CYCLE: Ticks = 1_000;

impl Independent for Emulated {
    fn costs(&self) -> &Arc<Costs> {
        &self.costs
    }

    fn speeds(&self) -> &[f64] {
        &self.speeds
    }

    fn arrivals(&self) -> &[Cost] {
        &self.arrivals
    }

    fn execute(&self, task: usize, turn: Turn, worker: &mut dyn Worker, _: &mut Vec<u8>) -> u64 {
        let cost = self.costs.of(task, turn.rank.index());
        if self.is_simulated {
            // A tick is a millionth of a cycle, as is a unit of costs.
            worker.sleep(cost.saturating_sub(turn.late));
        } else if self.spins {
            worker.spin((u128::from(cost) * u128::from(REAL_CYCLE) / u128::from(CYCLE)) as Ticks);
        } else if cost > 0 {
            let rest = self.rest(Duration::from_nanos((u128::from(cost) * u128::from(REAL_CYCLE) / u128::from(CYCLE)) as u64), turn);
            worker.sleep(rest.as_nanos() as Ticks);
        }
        self.values.get(task).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::independent::find;

    fn costs(spec: &str, seed: u64, ranks: u32) -> Costs {
        find(spec).unwrap().unwrap().problem(&Setting { seed, ranks, is_simulated: true }).unwrap().costs
    }

    #[test]
    fn costs_are_drawn_within_three_deviations() {
        let costs = costs("costs:tasks=2000,mu_cp=500,sigma_cp=100,mu_cc=5000,sigma_cc=1000", 3, 5);
        assert_eq!((costs.tasks(), costs.ranks()), (2000, 5));
        let all: Vec<f64> = costs.rows().flatten().map(|cost| *cost as f64 / CYCLE as f64).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / all.len() as f64;
        assert!((mean - 5500.0).abs() < 60.0, "{mean}");
        // A uniform interval of six sigma has a deviation of sqrt(3) sigma.
        let expected = 3.0 * (1000f64.powi(2) + 100f64.powi(2));
        assert!((variance / expected - 1.0).abs() < 0.05, "{variance} and {expected}");
        assert!(all.iter().all(|cost| (2200.0..=8800.0).contains(cost)));
    }

    #[test]
    fn a_seed_has_one_matrix_whatever_the_ranks() {
        let spec = "costs:tasks=30";
        assert_eq!(costs(spec, 1, 8).on_first(3), costs(spec, 1, 3));
        assert_ne!(costs(spec, 1, 3), costs(spec, 2, 3));
    }

    #[test]
    fn tasks_arrive_at_their_rate_and_in_order() {
        let chosen = find("costs:tasks=5000,arrival=2.5").unwrap().unwrap();
        let arrivals = chosen.problem(&Setting { seed: 4, ranks: 2, is_simulated: true }).unwrap().arrivals;
        assert!(arrivals.is_sorted());
        let rate = 5000.0 / (arrivals[4999] as f64 / CYCLE as f64 / 1000.0);
        assert!((rate / 2.5 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn wrong_options_are_refused() {
        for (spec, names) in [
            ("costs:tasks=x", "tasks"),
            ("costs:mu_cp=10,sigma_cp=5", "sigma_cp"),
            ("costs:mu_cc=-1", "mu_cc"),
            ("costs:colour=red", "colour"),
            ("costs:file=", "file"),
            ("costs:file=a,optimum=-1", "optimum is a number of cycles"),
            ("costs:file=a,optimum=7,arrival=3", "tasks that arrive at random"),
            ("costs:optimum=7", "optimum"),
            ("costs:arrival=0", "arrival"),
            ("costs:arrival=file", "arrival"),
            ("loop", "file"),
            ("loop:file=a,unit=3", "unit"),
            ("mandelbrot:width=0", "width"),
            ("mandelbrot:x=far", "x"),
            ("mandelbrot:span=0", "span"),
            ("spmm:file=a,rows=3", "rows"),
            ("spmm:times=b", "times"),
        ] {
            let why = find(spec).err().unwrap().to_string();
            assert!(why.contains(names), "{spec}: {why}");
        }
        assert!(find("queens:n=8").unwrap().is_none());
    }
}
