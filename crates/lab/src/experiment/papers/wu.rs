//! Wu 1997: the worked examples and their vectors (figures 6, 11 and 13), table I, figures 9 and 14 to 17, and the properties of section 4.
//!
//! Random loads are uniform in 0 to twice the mean, adjusted to the exact mean by one task at a time at nodes drawn at random; the paper says only that they
//! are random with this mean. An optimum
//! is the exact one, by min-cost flow. DEM's locality and costs are means over the cases that it balances fully, as in the paper; CWA's of figure 15
//! over the same cases, and once more over all.

mod claims;
mod examples;

use std::rc::Rc;

use super::super::wu1997::{self, Bench, Expected, MEANS, excess};
use super::evidence::{Mean, shares_differ};
use super::{Axes, Item, Job, Reference, Study, Value};
use equipoise::error::{Error, Result};
use equipoise::judge;
use equipoise::phase::Outcome;
use equipoise::topology::Topology;

/// Table I: by number of processors from 4 to 64, then by mean load, the printed per cent of 1,000 cases.
const TABLE: [[f64; 6]; 5] = [
    [74.3, 75.3, 75.7, 75.1, 74.5, 74.6],
    [31.2, 30.6, 34.8, 33.2, 36.2, 32.0],
    [4.0, 5.8, 6.3, 7.6, 5.4, 7.7],
    [0.0, 0.2, 0.1, 0.3, 0.2, 0.7],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
];

/// Random cases behind each number of the table.
const TABLE_CASES: u64 = 1000;

/// Walks on topologies of a shape: figure, balancer, topology, processors.
pub(super) const WALKS: [(u32, &str, &str, u32); 9] = [
    (16, "cwa", "hypercube:6", 64),
    (16, "cwa", "hypercube:8", 256),
    (17, "mwa", "mesh:2x2", 4),
    (17, "mwa", "mesh:4x2", 8),
    (17, "mwa", "mesh:4x4", 16),
    (17, "mwa", "mesh:8x4", 32),
    (17, "mwa", "mesh:8x8", 64),
    (17, "mwa", "mesh:16x8", 128),
    (17, "mwa", "mesh:16x16", 256),
];

pub(super) fn study() -> Study {
    let mut jobs = examples::jobs();
    jobs.push(Job::new(Item::Figure(3), "optimum", 0.0, [1, 1], |_, _| {
        let optimum = judge::optimum(&Topology::parse("hypercube:3", 8)?, &examples::FIGURE_1, &[8; 8])?;
        Ok(vec![Value::exact("fewest task-hops", optimum as f64, Some(21.0), 1.0)])
    }));
    jobs.push(Job::new(Item::Figure(9), "difference", 4.0, [200, 1000], dem_difference));
    for (name, topology) in [
        ("twa", "tree:binary,nodes=15"),
        ("cwa", "hypercube:4"),
        ("mwa", "mesh:4x4"),
        ("cwa", "hypercube:2"),
        ("cwa", "hypercube:1"),
        ("mwa", "mesh:2x2"),
        ("mwa", "mesh:2x1"),
        ("dem", "hypercube:4"),
    ] {
        let name = format!("{name} on {topology}");
        let balancer = name.split(' ').next().unwrap_or_default().to_string();
        jobs.push(Job::new(Item::Section(4), name.clone(), 0.0, [100, 1000], move |seed, cases| {
            properties(&balancer, topology, &name, seed, cases)
        }));
    }
    for (row, dimension) in (2..=6).enumerate() {
        for (column, mean) in MEANS.into_iter().enumerate() {
            let printed = TABLE[row][column];
            let name = format!("dem, {} processors", 1 << dimension);
            jobs.push(Job::new(Item::Table(1), name.clone(), mean as f64, [1000, 1000], move |seed, cases| {
                balanced(dimension, mean, printed, &name, seed, cases)
            }));
        }
    }
    for dimension in 2..=4u32 {
        for mean in MEANS {
            let name = format!("{} processors", 1 << dimension);
            jobs.push(Job::new(Item::Figure(14), name.clone(), mean as f64, [500, 1000], {
                let name = name.clone();
                move |seed, cases| locality(dimension, mean, &name, seed, cases)
            }));
            jobs.push(Job::new(Item::Figure(15), name.clone(), mean as f64, [500, 1000], move |seed, cases| {
                dem_and_cwa(dimension, mean, &name, seed, cases)
            }));
        }
    }
    for (figure, balancer, topology, processors) in WALKS {
        for mean in MEANS {
            let name = format!("{balancer}, {processors} processors");
            let quick = if processors <= 64 { 100 } else { 12 };
            jobs.push(Job::new(Item::Figure(figure), name.clone(), mean as f64, [quick, 100], move |seed, cases| {
                cost(balancer, topology, mean, &name, seed, cases)
            }));
        }
    }
    Study { jobs, claims: claims::all() }
}

/// Curves with reference values: figure, curve, balancer and topology of the series, and the fewest cases of a full run that count (DEM balances some
/// three quarters of them on 4 processors and a third on 8).
const REFERENCES: [(u32, &str, &str, &str, u64); 9] = [
    (14, "4 processors", "dem", "hypercube:2", 600),
    (14, "8 processors", "dem", "hypercube:3", 250),
    (15, "dem, 8 processors", "dem", "hypercube:3", 250),
    (15, "cwa over all cases, 8 processors", "cwa", "hypercube:3", 900),
    (15, "cwa over all cases, 16 processors", "cwa", "hypercube:4", 900),
    (16, "cwa, 64 processors", "cwa", "hypercube:6", 90),
    (17, "mwa, 8 processors", "mwa", "mesh:4x2", 90),
    (17, "mwa, 32 processors", "mwa", "mesh:8x4", 90),
    (17, "mwa, 128 processors", "mwa", "mesh:16x8", 90),
];

/// Quantile of the normal distribution for which all 54 points together (9 curves, 6 mean loads) are within it with 95 % (Bonferroni).
const QUANTILE: f64 = 3.31;

/// The reference mean of a point. Both means have errors, so the tolerance is that of their difference.
pub(super) fn reference(item: Item, curve: &str, mean_load: f64, ours: &Mean) -> Option<Reference> {
    let Item::Figure(figure) = item else { return None };
    let (.., balancer, topology, cases) = REFERENCES.into_iter().find(|known| (known.0, known.1) == (figure, curve))?;
    let is_of_it = |series: &&wu1997::Series| (series.figure.parse(), series.balancer, series.topology) == (Ok(figure), balancer, topology);
    let Expected { value, error, rounding } = wu1997::SERIES.iter().find(is_of_it)?.expected(mean_load as u64)?;
    let within = QUANTILE * error.hypot(ours.error) + rounding;
    Some(Reference { value, tolerance: within / value, cases })
}

pub(super) fn axes(item: Item) -> Axes {
    let by_mean = |title: &str, y: &str| Axes { log_x: true, ..Axes::linear(title, "mean load, tasks a processor", y) };
    let cost_of = |walks: &str| by_mean(&format!("normalised communication cost of {walks}"), "task-hops above the fewest, over these");
    match item {
        Item::Table(_) => by_mean("cases that DEM balances fully", "per cent"),
        Item::Figure(14) => by_mean("normalised locality of DEM", "tasks moved above the fewest, over these"),
        Item::Figure(15) => cost_of("DEM and CWA"),
        Item::Figure(16) => cost_of("CWA"),
        Item::Figure(17) => cost_of("MWA"),
        Item::Figure(6 | 11 | 13) => Axes::linear("the example's vectors", "", ""),
        _ => Axes::linear("properties", "", ""),
    }
}

/// The largest difference of loads after DEM on a 4-cube: over random cases, and with loads that it leaves as they are.
fn dem_difference(seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = Bench::of("dem", "hypercube:4")?;
    let mut difference = |loads: &[u64]| -> Result<u64> {
        let finals = bench.phase(loads, false)?.finals;
        Ok(finals.iter().max().unwrap_or(&0) - finals.iter().min().unwrap_or(&0))
    };
    // Neighbours differ by one, in which case DEM sends nothing: the number of ones in the node's address.
    let worst = difference(&(0..16u64).map(|node| u64::from(node.count_ones())).collect::<Vec<_>>())?;
    let draw = Bench::of("dem", "hypercube:4")?;
    let mut largest = 0;
    for case in 0..u64::from(cases) {
        largest = largest.max(difference(&draw.loads(MEANS[case as usize % 6], seed + case))?);
    }
    Ok(vec![
        Value::exact("with loads that differ by one along each link", worst as f64, Some(4.0), 1.0),
        Value::new("largest of random loads", Mean { cases: cases.into(), ..Mean::exact(largest as f64) }),
    ])
}

/// The worst of random cases: distance from the quotas; non-local tasks and task-hops above the fewest; and the longest chain of messages. Every
/// other case has a total that the nodes do not divide.
fn properties(balancer: &str, topology: &str, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = Bench::of(balancer, topology)?;
    let nodes = u64::from(bench.topology().nodes());
    let (mut uneven, mut nonlocal, mut hops, mut chain, mut communications) = (0, 0, 0, 0, 0);
    for case in 0..u64::from(cases) {
        let mut loads = bench.loads(MEANS[case as usize % 6], seed + case);
        let remainder = if case % 2 == 0 { 0 } else { case % nodes };
        loads[case as usize % nodes as usize] += remainder;
        let Outcome { finals, stayed, counts, transfers, .. } = bench.phase(&loads, false)?;
        if matches!(bench.topology(), Topology::Tree(_)) {
            communications = communications.max(transfers - fewest_communications(bench.topology(), &loads, &finals));
        }
        uneven = uneven.max(finals.iter().max().unwrap_or(&0) - finals.iter().min().unwrap_or(&0));
        chain = chain.max(counts.chain);
        if remainder == 0 {
            let moved = loads.iter().sum::<u64>() - stayed;
            nonlocal = nonlocal.max(moved - judge::minimum_nonlocal(&loads, &finals));
            hops = hops.max(counts.task_hops - judge::optimum(bench.topology(), &loads, &finals)?);
        }
    }
    let worst = |what: &str, value: f64| Value::new(format!("{name}: {what}"), Mean { cases: cases.into(), ..Mean::exact(value) });
    Ok(vec![
        worst("difference of loads", uneven as f64),
        worst("tasks moved above the fewest", nonlocal as f64),
        worst("task-hops above the fewest", hops as f64),
        worst("steps", f64::from(chain)),
        worst("communications above the fewest", communications as f64),
    ])
}

/// The least number of transfers with which a tree comes from some loads to others: one over each link whose two sides don't have what they end with.
fn fewest_communications(tree: &Topology, loads: &[u64], finals: &[u64]) -> u64 {
    let nodes = 0..tree.nodes();
    let links = nodes.clone().flat_map(|a| (a + 1..tree.nodes()).map(move |b| (a, b))).filter(|(a, b)| tree.distance(*a, *b) == 1);
    let beyond = |(a, b): (u32, u32), of: &[u64]| -> u64 {
        nodes.clone().filter(|node| tree.distance(*node, b) < tree.distance(*node, a)).map(|node| of[node as usize]).sum()
    };
    links.filter(|link| beyond(*link, loads) != beyond(*link, finals)).count() as u64
}

/// How often DEM balances fully, in per cent.
fn balanced(dimension: u32, mean: u64, printed: f64, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = Bench::of("dem", &format!("hypercube:{dimension}"))?;
    let mut even = Vec::new();
    for case in 0..u64::from(cases) {
        let finals = bench.phase(&bench.loads(mean, seed + case), false)?.finals;
        even.push(if finals.iter().all(|load| *load == mean) { 100.0 } else { 0.0 });
    }
    let count = even.iter().filter(|share| **share > 0.0).count() as u64;
    let theirs = (printed / 100.0 * TABLE_CASES as f64).round() as u64;
    let p = shares_differ((count, cases.into()), (theirs, TABLE_CASES));
    Ok(vec![Value { printed: Some((printed, p)), ..Value::new(name, mean_of(&even, name)?) }])
}

/// How many more tasks than necessary DEM moves, in parts of the fewest, over the cases that it balances.
fn locality(dimension: u32, mean: u64, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = Bench::of("dem", &format!("hypercube:{dimension}"))?;
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        let loads = bench.loads(mean, seed + case);
        let Outcome { finals, stayed, .. } = bench.phase(&loads, false)?;
        if finals.iter().all(|load| *load == mean) {
            let moved = loads.iter().sum::<u64>() - stayed;
            samples.extend(excess(moved.into(), judge::minimum_nonlocal(&loads, &finals).into()));
        }
    }
    Ok(Mean::of(&samples).map(|mean| Value::new(name, mean)).into_iter().collect())
}

/// Curve that helps to judge whether DEM's costs are more than twice CWA's.
const LESS_TWICE: &str = "dem less twice cwa";

/// Task-hops above the fewest, in parts of these: of DEM and of CWA over the cases that DEM balances, of CWA over all, and how much DEM's are above
/// twice CWA's.
fn dem_and_cwa(dimension: u32, mean: u64, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let topology = format!("hypercube:{dimension}");
    let (mut dem, mut cwa) = (Bench::of("dem", &topology)?, Bench::of("cwa", &topology)?);
    let quota: Rc<[u64]> = vec![mean; 1 << dimension].into();
    let mut samples: [Vec<f64>; 4] = Default::default();
    for case in 0..u64::from(cases) {
        let loads = dem.loads(mean, seed + case);
        let fewest = judge::optimum(dem.topology(), &loads, &quota)?;
        let Some(by_cwa) = excess(cwa.phase(&loads, false)?.counts.task_hops, fewest) else { continue };
        samples[2].push(by_cwa);
        let Outcome { finals, counts, .. } = dem.phase(&loads, false)?;
        if let (true, Some(by_dem)) = (*finals == *quota, excess(counts.task_hops, fewest)) {
            samples[0].push(by_dem);
            samples[1].push(by_cwa);
            samples[3].push(by_dem - 2.0 * by_cwa);
        }
    }
    let curves = ["dem", "cwa", "cwa over all cases", LESS_TWICE];
    let value = |(curve, samples): (&str, Vec<f64>)| {
        Some(Value::new(format!("{curve}, {name}"), Mean::of(&samples)?).helper_if(curve == LESS_TWICE))
    };
    Ok(curves.into_iter().zip(samples).filter_map(value).collect())
}

/// Task-hops of a walk above the fewest, in parts of these.
fn cost(balancer: &str, topology: &str, mean: u64, name: &str, seed: u64, cases: u32) -> Result<Vec<Value>> {
    let mut bench = Bench::of(balancer, topology)?;
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        let loads = bench.loads(mean, seed + case);
        let Outcome { finals, counts, .. } = bench.phase(&loads, false)?;
        samples.extend(excess(counts.task_hops, judge::optimum(bench.topology(), &loads, &finals)?));
    }
    Ok(vec![Value::new(name, mean_of(&samples, name)?)])
}

fn mean_of(samples: &[f64], name: &str) -> Result<Mean> {
    Mean::of(samples).ok_or_else(|| Error::Failed(format!("{name}: no case counts")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text has what decides between 0.06 and 0.08: docs/papers.md.
    #[test]
    fn dems_cost_on_eight_nodes_is_the_published_one() {
        let values = dem_and_cwa(3, 2, "8 processors", 1, if cfg!(debug_assertions) { 1_500 } else { 10_000 }).unwrap();
        let mean = values.iter().find(|value| value.curve == "dem, 8 processors").unwrap().mean;
        assert!((mean.value - 0.075).abs() < 3.0 * mean.error && mean.error < 0.01, "{mean:?}");
    }
}
