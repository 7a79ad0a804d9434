//! Savvas and Kechadi 2004: the example of section 4.2 (tables 1 to 5), equations 8 to 15 against simulated time, tables 6 and 7, figures 4 to 6.
//!
//! The paper times a machine of 2004 and does not say how long a task or a message takes there. Ours are simulated: a task of one unit takes 100 us,
//! messages are those of the default network. Grids are named, so that nothing depends on which one `psts` would choose.

mod arrivals;
mod claims;
mod example;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::super::wu1997::Bench;
use super::{Axes, Item, Job, Study, Value, named};
use equipoise::error::{Error, Result};
use equipoise::judge;
use equipoise::load::Powers;
use equipoise::topology::Topology;
use equipoise::transport::sim::{Model, Network};

use arrivals::Sizes;

/// Tasks of the experiments, and how long one takes.
const TASKS: u64 = 4000;
const TASK_SECONDS: f64 = 100e-6;

/// Random cases of a phase's time: quick, full. On a line it may be the same in all of them, and some fifty that are alike are needed to say that others
/// hardly differ.
const CASES: [u32; 2] = [50, 60];

/// Streams of figure 6's tasks: quick, full. Their speed-ups vary much where a slow node is overloaded.
const ARRIVALS: [u32; 2] = [10, 1000];

/// Grids by dimension for each number of nodes: the line, and the highest dimension that the paper took.
pub(super) const GRIDS: [(u32, &str, &str); 6] = [
    (2, "grid:2", "grid:2"),
    (4, "grid:4", "grid:2x2"),
    (8, "grid:8", "grid:2x2x2"),
    (16, "grid:16", "grid:2x2x2x2"),
    (32, "grid:32", "grid:2x2x2x4"),
    (64, "grid:64", "grid:2x2x4x4"),
];

/// Grids of tables 6 and 7 on more nodes than the paper had.
const BEYOND: [(u32, &str, &str); 2] = [(256, "grid:256", "grid:4x4x4x4"), (1024, "grid:1024", "grid:4x4x4x4x4")];

/// Tables 6 and 7, by number of nodes: the line, higher dimensions, and the line with one arriving task.
const CROSSOVERS: [[f64; 3]; 6] = [
    [1.0057, 1.0057, 0.20333],
    [0.6736, 0.2058, 0.15937],
    [0.4622, 0.2979, 0.13593],
    [2.0316, 1.6069, 0.12421],
    [2.7028, 2.4228, 0.11835],
    [3.0457, 2.8701, 0.11591],
];

/// Printed values of the paper where ours are times of another machine.
pub(super) fn printed(item: Item, curve: &str, nodes: f64) -> Option<f64> {
    let column = match (item, curve) {
        (Item::Table(6), "d = 1") => 0,
        (Item::Table(6), "d > 1") => 1,
        (Item::Table(7), "d = 1") => 2,
        _ => return None,
    };
    let row = GRIDS.iter().position(|(number, ..)| f64::from(*number) == nodes)?;
    Some(CROSSOVERS[row][column])
}

/// Streams of figure 6: the curve, and the tasks' sizes.
const STREAMS: [(&str, Sizes); 2] = [(UNIFORM, Sizes::Uniform), (POISSON, Sizes::Poisson)];
const UNIFORM: &str = "arrivals over time, uniform sizes";
const POISSON: &str = "arrivals over time, Poisson sizes";

/// 64 nodes in every number of dimensions.
const FACTORED: [(u32, &str); 6] =
    [(1, "grid:64"), (2, "grid:8x8"), (3, "grid:4x4x4"), (4, "grid:2x2x4x4"), (5, "grid:2x2x2x2x4"), (6, "grid:2x2x2x2x2x2")];

pub(super) fn study() -> Study {
    let mut jobs = example::jobs();
    for (dimension, grid) in FACTORED {
        jobs.push(Job::new(Item::Section(4), grid, f64::from(dimension), [10, 60], move |seed, cases| by_dimension(grid, seed, cases)));
    }
    let tables = |jobs: &mut Vec<Job>, (nodes, line, high): (u32, &'static str, &'static str)| {
        let x = f64::from(nodes);
        jobs.push(Job::new(Item::Table(6), "crossover", x, CASES, move |seed, cases| crossovers(nodes, line, high, seed, cases)));
        jobs.push(Job::new(Item::Table(7), "crossover", x, CASES, move |seed, cases| arrival(nodes, [line, high], seed, cases)));
    };
    for (nodes, line, high) in GRIDS {
        tables(&mut jobs, (nodes, line, high));
        let x = f64::from(nodes);
        jobs.push(Job::new(Item::Figure(4), "time", x, CASES, move |seed, cases| times("dim = 1", line, seed, cases)));
        jobs.push(Job::new(Item::Figure(5), "time", x, CASES, move |seed, cases| times("dim > 1", high, seed, cases)));
        jobs.push(Job::new(Item::Figure(6), "speed-up", x, [10, 50], move |seed, cases| speedup(high, seed, cases)));
        for (curve, sizes) in STREAMS {
            jobs.push(Job::new(Item::Figure(6), curve, x, ARRIVALS, move |seed, cases| arrivals::speedup(curve, high, sizes, seed, cases)));
        }
    }
    BEYOND.into_iter().for_each(|grids| tables(&mut jobs, grids));
    Study { jobs, claims: claims::all() }
}

pub(super) fn axes(item: Item) -> Axes {
    let by_nodes = |title: &str, y: &str| Axes { log_x: true, ..Axes::linear(title, "nodes", y) };
    match item {
        Item::Table(_) => {
            Axes { log_y: true, ..by_nodes("imbalance from which a phase pays", "imbalance (largest over ideal load, less 1)") }
        }
        Item::Figure(6) => by_nodes("speed-up by a phase", "speed-up"),
        Item::Figure(_) => Axes { log_y_on_ranks: true, ..by_nodes("time of a phase", "ms") },
        _ => Axes::linear("phases by dimension, 64 nodes", "dimension of the grid", "ms; steps"),
    }
}

fn bench(grid: &str, powers: Powers, network: Network) -> Result<Bench> {
    Bench::with("psts", Topology::parse(grid, 1)?, powers, Model { network, ..Model::default() })
}

fn equal(grid: &str, network: &str) -> Result<Bench> {
    let nodes = Topology::parse(grid, 1)?.nodes();
    bench(grid, Powers::equal(nodes, nodes), Network::parse(network)?)
}

fn powers(listed: Vec<u64>) -> Result<Powers> {
    Powers::listed(listed).map_err(|why| Error::Failed(why.to_string()))
}

/// Loads of 4,000 tasks, each on a node drawn at random.
pub(super) fn scattered(nodes: u32, seed: u64) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut loads = vec![0; nodes as usize];
    (0..TASKS).for_each(|_| loads[rng.random_range(0..nodes) as usize] += 1);
    loads
}

/// Time of a phase on 64 nodes, in milliseconds, on a switch and from hop to hop; and the longest chain of messages.
fn by_dimension(grid: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 3] = Default::default();
    let (mut switched, mut hops) = (equal(grid, "switched")?, equal(grid, "hops")?);
    for case in 0..u64::from(cases) {
        let loads = scattered(64, seed + case);
        let outcome = switched.phase(&loads, false)?;
        let each = [outcome.elapsed as f64 / 1e6, hops.phase(&loads, false)?.elapsed as f64 / 1e6, f64::from(outcome.counts.chain)];
        samples.iter_mut().zip(each).for_each(|(list, sample)| list.push(sample));
    }
    named(["ms on a switch", "ms from hop to hop", "steps"], samples, None)
}

/// How much higher the crossover is on a grid of more dimensions, with the same loads.
const HIGHER: &str = "d > 1 less d = 1";

/// The imbalance (largest load over ideal load, less 1) from which a phase pays: its time over the time of the ideal load.
fn crossovers(nodes: u32, line: &str, high: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 3] = Default::default();
    let mut benches = [equal(line, "switched")?, equal(high, "switched")?];
    for case in 0..u64::from(cases) {
        let loads = scattered(nodes, seed + case);
        for (list, bench) in samples.iter_mut().zip(&mut benches) {
            list.push(pays_from(bench.phase(&loads, false)?.elapsed, &loads));
        }
        let [line, high] = [0, 1].map(|which| samples[which].last().copied().unwrap_or(0.0));
        samples[2].push(high - line);
    }
    named(["d = 1", "d > 1", HIGHER], samples, Some(HIGHER))
}

/// A phase's time (nanoseconds) over the time of the ideal load.
pub(super) fn pays_from(elapsed: u64, loads: &[u64]) -> f64 {
    let ideal = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
    elapsed as f64 / 1e9 / (ideal * TASK_SECONDS)
}

/// Loads that are even, of 4,000 tasks at most, but for one more that has arrived on some node.
pub(super) fn with_one_more(nodes: u32, seed: u64) -> Vec<u64> {
    let mut loads = vec![TASKS / u64::from(nodes); nodes as usize];
    loads[(seed % u64::from(nodes)) as usize] += 1;
    loads
}

/// The same where all is balanced but for one task that has just arrived.
fn arrival(nodes: u32, grids: [&str; 2], seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut samples: [Vec<f64>; 2] = Default::default();
    for (list, grid) in samples.iter_mut().zip(grids) {
        let mut bench = equal(grid, "switched")?;
        for case in 0..u64::from(cases) {
            let loads = with_one_more(nodes, seed + case);
            list.push(pays_from(bench.phase(&loads, false)?.elapsed, &loads));
        }
    }
    named(["d = 1", "d > 1"], samples, None)
}

/// Time of a phase over 4,000 tasks, in milliseconds.
fn times(curve: &str, grid: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = equal(grid, "switched")?;
    let nodes = bench.topology().nodes();
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        samples.push(bench.phase(&scattered(nodes, seed + case), false)?.elapsed as f64 / 1e6);
    }
    named([curve], [samples], None)
}

/// How much sooner 4,000 tasks end with a phase than where they were placed: nodes have powers from 1 to 10, and all tasks are there at the beginning.
fn speedup(grid: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let nodes = Topology::parse(grid, 1)?.nodes();
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed + case);
        let listed: Vec<u64> = (0..nodes).map(|_| rng.random_range(1..=10)).collect();
        let loads = scattered(nodes, seed.rotate_left(32) + case);
        let outcome = bench(grid, powers(listed.clone())?, Network::parse("switched")?)?.phase(&loads, false)?;
        let before = judge::finishes(&loads, &listed).into_iter().fold(0.0, f64::max);
        let after = judge::finishes(&outcome.finals, &listed).into_iter().fold(0.0, f64::max);
        samples.push(before / (after + outcome.elapsed as f64 / 1e9 / TASK_SECONDS));
    }
    named(["speed-up"], [samples], None)
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Measuring, Paper, measure};
    use super::*;

    #[test]
    fn numbers_of_another_machine_are_printed_and_not_tested() {
        let jobs: Vec<Job> = study().jobs.into_iter().filter(|job| matches!(job.item, Item::Table(6 | 7)) && job.x == 4.0).collect();
        let points = measure(Paper::Psts, &jobs, &Measuring::new(Effort::Cases(2), 1), |_| {}).unwrap();
        let found: Vec<_> = points.0.iter().map(|point| (point.printed, point.agrees)).collect();
        assert_eq!(found, [(Some(0.6736), None), (Some(0.2058), None), (None, None), (Some(0.15937), None), (None, None)]);
    }
}
