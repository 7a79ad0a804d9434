//! The simulations of Ahmad, Ghafoor and Fox 1994 (section 6): mean response times of random task graphs that arrive over time on a
//! hypercube of 256 processors, under hierarchical scheduling and under its baseline; and limits that are known exactly.
//!
//! The paper prints curves. The means to compare with are those of an independent event simulator of the same reading, with the tolerances
//! that 100,000 graphs justify. The paper does not say how old the baseline's knowledge of its neighbours is, and it decides the result: half a
//! unit and none at all are both shown.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use super::run::{self, RunRecord, RunSpec, SchedulerContender};
use crate::workload::graphs;
use equipoise::error::{Error, Result};
use equipoise::schedule;
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim;
use equipoise::transport::world::World;

/// Graphs whose response times are measured at each point.
pub const GRAPHS: u32 = 100_000;

/// Hierarchical scheduling, and the baseline with announcements every half unit and at once.
const SCHEDULERS: [&str; 3] = ["hierarchical", "neighbour:age=0.5", "neighbour:age=0"];

/// One mean response time to be measured.
#[derive(Clone, Copy, Debug)]
pub struct AhmadCase {
    pub scheduler: &'static str,
    /// Dimension of the cube.
    dimension: u32,
    /// Edges from the root to the deepest tasks, and the most children of a task.
    levels: u32,
    children: u32,
    pub utilisation: f64,
    /// Migrations in a unit of time, each after the other; 0 if they take no time.
    rate: u32,
    /// Mean response in units, and by how much it may be off, in parts.
    expected: f64,
    tolerance: f64,
    /// Whether it is known exactly.
    is_limit: bool,
}

/// A line of the table: levels and children, utilisation, rate; means under the three schedulers.
type PrintedLine = ((u32, u32), f64, u32, [f64; 3]);

const LINES: [PrintedLine; 17] = [
    ((3, 2), 0.4, 20, [0.889, 0.892, 0.873]),
    ((3, 2), 0.6, 20, [0.895, 1.004, 0.920]),
    ((3, 2), 0.8, 20, [0.965, 1.461, 1.304]),
    ((3, 2), 0.9, 20, [1.204, 1.974, 1.564]),
    ((3, 3), 0.5, 20, [0.772, 0.875, 0.764]),
    ((3, 3), 0.9, 20, [1.258, 2.384, 1.355]),
    ((3, 4), 0.4, 20, [0.701, 0.768, 0.670]),
    ((3, 4), 0.7, 20, [0.920, 1.463, 0.874]),
    ((7, 1), 0.4, 20, [1.043, 1.026, 1.022]),
    ((7, 1), 0.6, 20, [1.046, 1.080, 1.059]),
    ((7, 1), 0.8, 20, [1.048, 1.553, 1.464]),
    ((1, 2), 0.8, 20, [0.973, 1.475, 1.373]),
    ((1, 8), 0.5, 20, [0.676, 0.778, 0.667]),
    ((1, 12), 0.8, 20, [0.889, 1.602, 0.865]),
    ((3, 2), 0.5, 4, [1.223, 1.377, 1.244]),
    ((3, 2), 0.8, 12, [1.067, 1.534, 1.352]),
    ((3, 2), 0.5, 36, [0.856, 0.875, 0.852]),
];

/// The limits: independent queues are M/M/1; where nothing waits a chain takes its own time, and a root with up to two children
/// (1 + 1 + 2/3 + 1/20) / 3 units.
const LIMITS: [AhmadCase; 5] = [
    limit("static", 8, (0, 1), 0.5, 0, 2.0),
    limit("hierarchical", 8, (7, 1), 0.002, 0, 1.0),
    limit("neighbour:age=0", 8, (7, 1), 0.002, 0, 1.0),
    limit("hierarchical", 8, (1, 2), 0.002, 20, 0.9056),
    limit("neighbour:age=0", 8, (1, 2), 0.002, 20, 0.9056),
];

const fn limit(scheduler: &'static str, dimension: u32, graph: (u32, u32), utilisation: f64, rate: u32, expected: f64) -> AhmadCase {
    let (levels, children) = graph;
    AhmadCase { scheduler, dimension, levels, children, utilisation, rate, expected, tolerance: 0.02, is_limit: true }
}

/// Allowed relative deviations of means under the three schedulers, as fractions.
fn tolerances(utilisation: f64) -> [f64; 3] {
    if utilisation < 0.85 { [0.02, 0.04, 0.03] } else { [0.05, 0.08, 0.06] }
}

/// The table's means for graphs of these levels and children under the three schedulers, each with its tolerance; `None` if it has no such line.
pub(super) fn reference(graph: (u32, u32), utilisation: f64, rate: u32) -> Option<[(f64, f64); 3]> {
    let (.., means) = LINES.iter().find(|(of, at, with, _)| (*of, *at, *with) == (graph, utilisation, rate))?;
    let tolerances = tolerances(utilisation);
    Some([0, 1, 2].map(|which| (means[which], tolerances[which])))
}

/// Every point of the table, and the limits.
pub fn cases() -> Vec<AhmadCase> {
    let point = |&((levels, children), utilisation, rate, means): &PrintedLine| {
        let each = SCHEDULERS.into_iter().zip(means.into_iter().zip(tolerances(utilisation)));
        each.map(move |(scheduler, (expected, tolerance))| AhmadCase {
            scheduler,
            dimension: 8,
            levels,
            children,
            utilisation,
            rate,
            expected,
            tolerance,
            is_limit: false,
        })
    };
    LINES.iter().flat_map(point).chain(LIMITS).collect()
}

/// A mean response time, measured and expected, in units: mean times of a graph on one processor.
#[derive(Clone, Debug, Serialize)]
pub struct AhmadPoint {
    pub figure: &'static str,
    pub scheduler: &'static str,
    pub topology: String,
    pub levels: u32,
    pub children: u32,
    pub utilisation: f64,
    pub rate: u32,
    /// Whether what is expected is exact.
    pub limit: bool,
    pub graphs: u32,
    pub measured: f64,
    pub ci95: [f64; 2],
    pub expected: f64,
    pub tolerance: f64,
    pub agrees: bool,
}

/// Simulates the cases with `graphs` graphs each; `progress` is called with the number of cases done.
///
/// # Errors
/// If a simulation fails.
pub fn reproduce(cases: &[AhmadCase], graphs: u32, seed: u64, progress: impl Fn(usize) + Sync) -> Result<Vec<AhmadPoint>> {
    let points: Mutex<Vec<(usize, Result<AhmadPoint>)>> = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get).min(cases.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { break };
                    let point = case.measure(graphs, seed);
                    if let Ok(mut points) = points.lock() {
                        points.push((at, point));
                        progress(points.len());
                    }
                }
            });
        }
    });
    let mut points = points.into_inner().map_err(|_| Error::Failed("a simulation ended in a panic".into()))?;
    points.sort_unstable_by_key(|(at, _)| *at);
    points.into_iter().map(|(_, point)| point).collect()
}

/// A stream of random graphs on a hypercube.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphStream {
    pub dimension: u32,
    pub levels: u32,
    pub children: u32,
    pub utilisation: f64,
    /// Migrations in a unit of time; 0 if they take no time.
    pub rate: u32,
    pub graphs: u32,
}

impl GraphStream {
    /// Simulates it under a scheduler.
    ///
    /// # Errors
    /// If there is no such scheduler, or the simulation fails.
    pub fn run(&self, scheduler: &str, seed: u64, trace: bool) -> Result<RunRecord> {
        let GraphStream { levels, children, utilisation, rate, graphs, .. } = self;
        let rate = if *rate == 0 { "none".into() } else { rate.to_string() };
        let workload = format!("stream:levels={levels},children={children},utilisation={utilisation},rate={rate},graphs={graphs}");
        let nodes = 1 << self.dimension;
        let topology = Topology::parse(&format!("hypercube:{}", self.dimension), nodes)?;
        let model = sim::Model { network: sim::Network::Zero, seed, ..sim::Model::default() };
        let spec = RunSpec {
            contenders: vec![SchedulerContender::new(schedule::find(scheduler)?, Overlay::one_host(topology, nodes)?)?],
            workload: graphs::find(&workload)?,
            workers: 1,
            repeat: None,
            seed,
            trace,
        };
        let records = run::run(&mut World::simulated(nodes, model), &spec, |_, _, _| {})?;
        records.into_iter().next().ok_or_else(|| Error::Failed(format!("{scheduler}: nothing was recorded")))
    }

    /// Random draws for the graphs that count: by how much the time since the last arrival and the graph's total time are above their means, in these.
    pub fn draws(&self, seed: u64) -> impl Iterator<Item = [f64; 2]> {
        let graphs = u64::from(self.graphs);
        let warm_up = graphs::usual_warm_up(self.utilisation, graphs);
        let counting = graphs::Draws::new(seed).skip(warm_up as usize).take(self.graphs as usize);
        counting.map(|draws| draws.map(|drawn| drawn - 1.0))
    }
}

impl AhmadCase {
    fn measure(&self, graphs: u32, seed: u64) -> Result<AhmadPoint> {
        let AhmadCase { dimension, levels, children, utilisation, rate, .. } = *self;
        let record = GraphStream { dimension, levels, children, utilisation, rate, graphs }.run(self.scheduler, seed, false)?;
        let (name, responses) = (record.topology, record.responses);
        let responses = responses.ok_or_else(|| Error::Failed(format!("{}: no graph was answered", self.scheduler)))?;
        let (measured, ci95) = (responses.response_mean, responses.response_ci95);
        // With fewer graphs than the tolerances are for, what chance does is added.
        let chance = if graphs < GRAPHS { ci95[1] - ci95[0] } else { 0.0 };
        let tolerance = self.tolerance * self.expected + chance;
        Ok(AhmadPoint {
            figure: "section 6",
            scheduler: self.scheduler,
            topology: name,
            levels: self.levels,
            children: self.children,
            utilisation: self.utilisation,
            rate: self.rate,
            limit: self.is_limit,
            graphs,
            measured,
            ci95,
            expected: self.expected,
            tolerance,
            agrees: (measured - self.expected).abs() <= tolerance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_the_graphs_that_count() {
        let stream = GraphStream { dimension: 4, levels: 2, children: 2, utilisation: 0.5, rate: 20, graphs: 200 };
        let record = stream.run("hierarchical", 3, false).unwrap();
        let draws: Vec<[f64; 2]> = stream.draws(3).collect();
        assert_eq!((record.graphs.len(), draws.len()), (200, 200));
        // Eight graphs a unit of time arrive.
        let ticks = record.unit_seconds * 1e9 / 8.0;
        for (pair, drawn) in record.graphs.windows(2).zip(&draws[1..]) {
            let gap = (pair[1].submitted - pair[0].submitted) as f64 / ticks;
            assert!((gap - drawn[0] - 1.0).abs() < 1e-6, "{pair:?}: {drawn:?}");
        }
        // No graph is answered before its tasks on the longest way have ended: a third of its work, as its levels are three.
        assert!(
            record
                .graphs
                .iter()
                .zip(&draws)
                .all(|(graph, drawn)| { graph.response() as f64 / ticks / 8.0 > (drawn[1] + 1.0) / 7.0 - 1e-6 })
        );
    }

    #[test]
    fn limits_and_a_line_of_the_table_hold_with_few_graphs() {
        let all = cases();
        assert_eq!(all.len(), 17 * 3 + 5);
        let few: Vec<AhmadCase> = all.into_iter().filter(|case| case.is_limit || (case.utilisation == 0.6 && case.levels == 3)).collect();
        let points = reproduce(&few, if cfg!(debug_assertions) { 1_500 } else { 10_000 }, 3, |_| {}).unwrap();
        assert_eq!(points.len(), 8);
        let off: Vec<&AhmadPoint> = points.iter().filter(|point| !point.agrees).collect();
        assert!(off.is_empty(), "{off:#?}");
        assert!(points.iter().all(|point| point.tolerance < 0.3 * point.expected), "{points:#?}");
    }
}
