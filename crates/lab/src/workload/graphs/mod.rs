//! Graphs of tasks that spawn tasks: computations with known answers, and synthetic ones.
//!
//! One file each; the [registry](ALL) is data that the command line, `list` and the tests go through. To add a workload, write its
//! [`Computation`] and its [`Workload`], and enter it there.
//!
//! Types end here: [`find`] reads `NAME[:key=value,..]`, [`Make::prepare`] makes a [`Prepared`], which runs under any scheduler and
//! answers with a [`Number`].
//!
//! ```
//! use equipoise::node;
//! use equipoise::schedule::{self, Options};
//! use equipoise::topology::Overlay;
//! use equipoise::transport::{sim, world::World};
//! use equipoise_lab::workload::graphs::{self, Number, Setting};
//!
//! let scheduler = schedule::find("steal")?;
//! let mut world = World::simulated(4, sim::Model::default());
//! let overlay = Overlay::one_host(scheduler.entry.default_topology(4), 4)?;
//! let workload = graphs::find("queens:n=8")?.prepare(&Setting { seed: 1, processors: 4, is_simulated: true })?;
//! let mut options = Options::default();
//! workload.adjust(&mut options);
//! let outcomes = node::run(&mut world, &overlay, |node| workload.execute(node, scheduler.clone(), options.clone()))?;
//! assert_eq!(outcomes[0].1.answer, Some(Number::Whole(92)));
//! # Ok::<(), equipoise::Error>(())
//! ```

mod fibonacci;
mod gauss;
mod matmul;
mod primes;
mod puzzle;
mod queens;
mod romberg;
#[cfg(test)]
mod tests;
mod tree;
mod uts;

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::independent;
use equipoise::error::{Error, Result};
use equipoise::node::Node;
use equipoise::registry::{self, Registered};
use equipoise::schedule::{self, Computation, Roots, RunResult};
use equipoise::spec::{Options, Spec};

pub use fibonacci::Fibonacci;
pub use gauss::Gauss;
pub use matmul::Matmul;
pub use primes::Primes;
pub use puzzle::Puzzle;
pub use queens::Queens;
pub use romberg::Romberg;
pub use tree::stream::{Draws, usual_warm_up};
pub use tree::{Cost, Growth, Submission, TaskTrees};
pub use uts::{Kind, Shape, Tally, Tree, Uts};

/// All workloads, in the order in which they are shown.
pub const ALL: &[&Entry] = &[
    &queens::ENTRY,
    &fibonacci::ENTRY,
    &uts::ENTRY,
    &puzzle::ENTRY,
    &primes::ENTRY,
    &romberg::ENTRY,
    &matmul::ENTRY,
    &gauss::ENTRY,
    &tree::ENTRY,
    &tree::stream::ENTRY,
];

/// A workload's place in the registry.
pub type Entry = registry::Entry<Facts>;

/// A workload that was chosen; [`prepare`](Make::prepare) makes it.
pub type Chosen = registry::Chosen<Facts>;

/// Facts about a workload that are known before it is made.
pub struct Facts {
    /// Meaning of its answer.
    pub answer: &'static str,
    /// Whether it has its own model of what communication costs: then it is simulated on a network without delays, unless another is asked
    /// for.
    pub has_own_network: bool,
}

impl Registered for Facts {
    type Made = Make;
    const WHAT: &'static str = "workload";
    const ALL: &'static [&'static Entry] = ALL;
}

/// Makes a workload that was chosen, in a setting.
pub struct Make {
    /// Its specification.
    name: String,
    make: Box<MakePrepared>,
}

type MakePrepared = dyn Fn(&Setting) -> Result<Prepared> + Send + Sync;

/// Parameters of a workload apart from its options; the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Seed from which random workloads are drawn, the same for all schedulers.
    pub seed: u64,
    /// Tasks that can be executed at a time, by all ranks together.
    pub processors: u32,
    pub is_simulated: bool,
}

/// The workload that `NAME[:key=value,..]` names.
///
/// # Errors
/// If there is none of this name (the sentence lists all, those of independent tasks, too), or its options are wrong.
pub fn find(spec: &str) -> Result<Chosen> {
    let spec = Spec::parse(Facts::WHAT, spec)?;
    if !registry::knows::<Facts>(spec.name()) {
        return Err(spec.unknown(registry::names::<Facts>().chain(registry::names::<independent::Facts>())).into());
    }
    Ok(registry::make(&spec)?)
}

impl Make {
    fn new(options: &Options<'_>, make: impl Fn(&Setting) -> Result<Prepared> + Send + Sync + 'static) -> Make {
        Make { name: options.spec().to_string(), make: Box::new(make) }
    }

    /// The workload in a setting. Every process of the job makes its own, once a run.
    ///
    /// # Errors
    /// If the options and the setting together make something that can't be run.
    pub fn prepare(&self, setting: &Setting) -> Result<Prepared> {
        (self.make)(setting).map_err(|why| match why {
            Error::Usage(why) => Error::input(Facts::WHAT, format!(" {}: {why}", self.name)),
            other => other,
        })
    }
}

/// A computation that can be run by name.
pub trait Workload: Computation {
    /// Roots of the run.
    fn roots(&self) -> Roots<Self>;

    /// An answer as one number.
    fn number(&self, answer: &Self::Answer) -> Number;

    /// The answer, if it can be known from somewhere else than this computation: from a table, a formula, calculus, or another algorithm that
    /// shares no code with it.
    fn known(&self) -> Option<Number> {
        None
    }

    /// Largest error of a right answer against the known one; more than rounding only where an approximation is asked for.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// The answer as a plain sequential program finds it, without a runtime: what the run's time is compared with. `None` if there is no
    /// such program.
    fn sequential(&self) -> Option<Number> {
        None
    }

    /// Sets options to the workload's own defaults, where they have not been set.
    fn adjust(&self, options: &mut schedule::Options) {
        let _ = options;
    }

    /// For streams: the numbers of the graphs whose response times count.
    fn measured(&self) -> Option<Range<u64>> {
        None
    }
}

/// An answer as one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    Whole(u64),
    Real(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(number) => write!(f, "{number}"),
            Number::Real(number) => write!(f, "{number}"),
        }
    }
}

/// A workload, ready to run, whatever its types. Cheap to clone.
#[derive(Clone)]
pub struct Prepared(Arc<dyn Erased>);

/// A node's part in a run, being carried out.
pub type Running = Pin<Box<dyn Future<Output = Result<RunResult<Number>>>>>;

impl Prepared {
    pub fn new(workload: impl Workload) -> Prepared {
        Prepared(Arc::new(Kept { workload: Arc::new(workload), known: OnceLock::new() }))
    }

    /// One node's part in a run, see [`schedule::execute`]; call it on every node.
    pub fn execute(&self, node: Node, scheduler: schedule::Chosen, options: schedule::Options) -> Running {
        self.0.clone().execute(node, scheduler, options)
    }

    /// See [`Workload::known`]; worked out once.
    pub fn known(&self) -> Option<Number> {
        self.0.known()
    }

    /// See [`Workload::tolerance`].
    pub fn tolerance(&self) -> f64 {
        self.0.tolerance()
    }

    /// See [`Workload::sequential`].
    pub fn sequential(&self) -> Option<Number> {
        self.0.sequential()
    }

    /// See [`Workload::adjust`].
    pub fn adjust(&self, options: &mut schedule::Options) {
        self.0.adjust(options);
    }

    /// See [`Workload::measured`].
    pub fn measured(&self) -> Option<Range<u64>> {
        self.0.measured()
    }
}

/// A workload without its types.
trait Erased: Send + Sync {
    fn execute(self: Arc<Self>, node: Node, scheduler: schedule::Chosen, options: schedule::Options) -> Running;
    fn known(&self) -> Option<Number>;
    fn tolerance(&self) -> f64;
    fn sequential(&self) -> Option<Number>;
    fn adjust(&self, options: &mut schedule::Options);
    fn measured(&self) -> Option<Range<u64>>;
}

/// A workload, and its known answer once it has been asked for.
struct Kept<W> {
    workload: Arc<W>,
    known: OnceLock<Option<Number>>,
}

impl<W: Workload> Erased for Kept<W> {
    fn execute(self: Arc<Self>, node: Node, scheduler: schedule::Chosen, options: schedule::Options) -> Running {
        let workload = self.workload.clone();
        Box::pin(async move {
            let is_host = node.me() == scheduler.host_on(&node.overlay().placement)?;
            let roots = if is_host { workload.roots() } else { Roots::Elsewhere };
            let outcome = schedule::execute(node, workload.clone(), scheduler, roots, options).await?;
            Ok(outcome.map(|answer| workload.number(&answer)))
        })
    }

    fn known(&self) -> Option<Number> {
        *self.known.get_or_init(|| self.workload.known())
    }

    fn tolerance(&self) -> f64 {
        self.workload.tolerance()
    }

    fn sequential(&self) -> Option<Number> {
        self.workload.sequential()
    }

    fn adjust(&self, options: &mut schedule::Options) {
        self.workload.adjust(options);
    }

    fn measured(&self) -> Option<Range<u64>> {
        self.workload.measured()
    }
}
