//! Independent tasks to schedule. One file each; the [registry](ALL) is data that the command line and `list` go through.

mod commands;
mod computed;
mod costs;
mod loops;
mod mandelbrot;
mod matrix;
mod matrix_market;
mod optimum;
mod spmm;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use computed::{Computed, Kernel};
use equipoise::error::{Error, Result};
use equipoise::load::{Cost, Costs};
use equipoise::registry::{self, Registered};
use equipoise::schedule::independent::Independent;
use equipoise::spec::Options;

pub use costs::{Emulated, REAL_CYCLE, Spread, drawn};
pub use mandelbrot::Picture;
pub use matrix_market::Sparse;
pub use spmm::Product;

/// All workloads of independent tasks, in the order in which they are shown.
pub const ALL: &[&Entry] = &[&costs::ENTRY, &commands::ENTRY, &loops::ENTRY, &mandelbrot::ENTRY, &spmm::ENTRY];

/// A workload's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A workload that was chosen; its [`Make`] makes the tasks.
pub type Chosen = registry::Chosen<Facts>;

/// Facts about a workload that are known before it is made.
pub struct Facts {
    /// Meaning of its answer.
    pub answer: &'static str,
}

impl Registered for Facts {
    type Made = Make;
    const WHAT: &'static str = "workload";
    const ALL: &'static [&'static Entry] = ALL;
}

/// Maker of a workload.
pub struct Make {
    /// Its specification.
    name: String,
    /// Whether one rank makes it, which reads a file or computes all tasks, and sends it to the others.
    at_one: bool,
    make: Arc<MakeProblem>,
    /// Checks what tasks left apart from their values, in order of the tasks.
    accept: Option<Box<Accept>>,
}

type MakeProblem = dyn Fn(&Setting) -> Result<Problem> + Send + Sync;
type Accept = dyn Fn(&[(usize, Bytes)]) -> Result<()> + Send + Sync;

impl Make {
    /// Every rank draws it.
    fn drawing(options: &Options<'_>, make: impl Fn(&Setting) -> Result<Problem> + Send + Sync + 'static) -> Make {
        Make { name: options.spec().to_string(), at_one: false, make: Arc::new(make), accept: None }
    }

    /// One rank reads a file.
    fn reading(options: &Options<'_>, make: impl Fn(&Setting) -> Result<Problem> + Send + Sync + 'static) -> Make {
        Make { at_one: true, ..Make::drawing(options, make) }
    }

    /// One rank runs a plain program; in simulation a unit of work takes this number of nanoseconds.
    fn computing(options: &Options<'_>, nanoseconds: f64, plan: impl Fn(&Setting) -> Result<Plan> + Send + Sync + 'static) -> Make {
        Make::reading(options, move |setting| {
            let plan = plan(setting)?;
            let Some(kernel) = plan.kernel() else { return Err(Error::Failed("a plan without anything to compute".into())) };
            let (costs, known, sequential) = computed::plain(kernel.as_ref(), setting, nanoseconds)?;
            Ok(Problem {
                costs,
                arrivals: Vec::new(),
                plan,
                known,
                sequential: (!setting.is_simulated).then_some(sequential),
                optimum: None,
            })
        })
    }
}

/// Tasks in a setting, the same on all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Costs on ranks of speed 1.
    pub costs: Costs,
    /// Arrival times, in order; empty if all tasks are there from the beginning.
    pub arrivals: Vec<Cost>,
    plan: Plan,
    /// The answer.
    pub known: u64,
    /// Seconds that a plain program took for all; `None` if tasks are emulated or time is virtual.
    pub sequential: Option<f64>,
    /// The minimum makespan, if it is known.
    pub optimum: Option<Cost>,
}

/// Work of the tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Plan {
    /// They take time; `values` are their parts of the answer (1 if there are none).
    Emulated {
        spins: bool,
        values: Vec<u64>,
    },
    Mandelbrot(Picture),
    Product(Product),
}

impl Plan {
    fn kernel(&self) -> Option<Arc<dyn Kernel>> {
        match self {
            Plan::Emulated { .. } => None,
            Plan::Mandelbrot(picture) => Some(Arc::new(picture.clone())),
            Plan::Product(product) => Some(Arc::new(product.clone())),
        }
    }
}

/// Parameters of a workload apart from its options; the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub seed: u64,
    pub ranks: u32,
    pub is_simulated: bool,
}

/// The workload that `NAME[:key=value,..]` names; `None` if no workload of independent tasks has this name.
///
/// # Errors
/// If its options are wrong.
pub fn find(spec: &str) -> Result<Option<Chosen>> {
    let name = spec.split(':').next().unwrap_or_default().trim();
    registry::knows::<Facts>(name).then(|| Ok(registry::find(spec)?)).transpose()
}

impl Make {
    /// Returns true if one rank makes it and sends it to the others: it reads a file, or computes all tasks to know the answer and the costs.
    pub fn is_made_by_one(&self) -> bool {
        self.at_one
    }

    /// The tasks in a setting: for each there is a rank that can run it.
    ///
    /// # Errors
    /// If a file can't be read or does not fit, or no rank can run one of the tasks; the sentence names the place.
    pub fn problem(&self, setting: &Setting) -> Result<Problem> {
        self.maker(*setting)()
    }

    /// Maker of the [`problem`](Make::problem), for any thread: it may take as long as all tasks together.
    pub fn maker(&self, setting: Setting) -> impl FnOnce() -> Result<Problem> + Send + 'static {
        let (make, name) = (self.make.clone(), self.name.clone());
        move || {
            let problem = make(&setting)?;
            match problem.costs.impossible() {
                Some(task) => Err(Error::input(Facts::WHAT, format!(" {name}: no rank can run task {task} (counted from 0)"))),
                None => Ok(problem),
            }
        }
    }

    /// The tasks, ready to be executed on ranks of these speeds (empty: all are alike). A cycle takes 10^6 ticks in simulation and 1 us on
    /// real ranks. Emulated tasks take as long as they cost at speed 1; those that compute take as long as they take on the fastest rank.
    pub fn prepare(&self, problem: Problem, speeds: Vec<f64>, is_simulated: bool) -> Arc<dyn Independent> {
        match problem.plan.kernel() {
            None => Arc::new(Emulated::of(problem.at_speeds(&speeds), speeds, is_simulated)),
            Some(kernel) => {
                let fastest = speeds.iter().copied().fold(0.0, f64::max);
                let speeds: Vec<f64> = speeds.iter().map(|speed| speed / fastest).collect();
                Arc::new(Computed::new(kernel, problem.at_speeds(&speeds), speeds, is_simulated))
            }
        }
    }

    /// Checks what tasks left apart from their values, in order of the tasks; writes what is to be written.
    ///
    /// # Errors
    /// If something is missing or damaged, or can't be written.
    pub fn accept(&self, products: &[(usize, Bytes)]) -> Result<()> {
        self.accept.as_ref().map_or(Ok(()), |accept| accept(products))
    }
}

impl Problem {
    /// The same tasks on ranks of these speeds; as they are if there are none.
    fn at_speeds(self, speeds: &[f64]) -> Problem {
        Problem { costs: at_speeds(self.costs, speeds), ..self }
    }
}

/// The matrix on ranks of these speeds; none if all are 1.
pub fn at_speeds(costs: Costs, speeds: &[f64]) -> Costs {
    if speeds.is_empty() { costs } else { costs.map(|rank, cost| (cost as f64 / speeds[rank]).round() as Cost) }
}
