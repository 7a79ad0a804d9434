//! The simulations of Hamidzadeh, Lilja and Atif 1995 (section 4): total times of SASH and of distributed self-scheduling on 2 to 20
//! processors, and the crossover, the least number of processors with which SASH is the faster.
//!
//! The paper prints curves, and gives crossovers in its text. The totals to compare with are those of an independent implementation of the
//! reading `r1`, with the tolerances of ten other seeds or more.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use super::statistics;
use crate::workload::independent::{Setting, Spread, drawn};
use equipoise::error::{Error, Result};
use equipoise::load::{CYCLE, Costs};
use equipoise::schedule::dss;
use equipoise::schedule::sash::phase::{Rules, schedule};

/// Tasks in every experiment.
const TASKS: u64 = 500;
/// Seeds for each point.
pub const SEEDS: u32 = 10;
/// Numbers of processors.
const LEAST: u32 = 2;
const MOST: u32 = 20;

/// One of the paper's figures.
#[derive(Clone, Copy, Debug)]
pub struct HamidzadehFigure {
    pub name: &'static str,
    /// Deviation of processing times (mean 500), and mean and deviation of communication times, in cycles.
    sigma_cp: f64,
    mu_cc: f64,
    sigma_cc: f64,
    /// By how much totals may differ, in parts.
    tolerance: f64,
    /// Mean totals with 4, 8, 13 and 20 processors, of DSS and of SASH, where they are known.
    totals: Option<[[f64; 4]; 2]>,
    /// The crossover of the reading, and of the paper; `None` where DSS always wins.
    crossover: Option<(u32, u32)>,
}

const fn figure(
    name: &'static str,
    sigma_cp: f64,
    mu_cc: f64,
    sigma_cc: f64,
    tolerance: f64,
    totals: Option<[[f64; 4]; 2]>,
    crossover: Option<(u32, u32)>,
) -> HamidzadehFigure {
    HamidzadehFigure { name, sigma_cp, mu_cc, sigma_cc, tolerance, totals, crossover }
}

/// The processors that totals are known for.
const KNOWN: [u32; 4] = [4, 8, 13, 20];

/// All figures.
pub const FIGURES: [HamidzadehFigure; 12] = [
    figure("2", 10.0, 500.0, 10.0, 0.005, Some([[125316.0, 62995.0, 38997.0, 25230.0], [164668.0, 70447.0, 41327.0, 26620.0]]), None),
    figure("3", 10.0, 5000.0, 100.0, 0.005, None, None),
    figure("4", 10.0, 50000.0, 1000.0, 0.005, None, None),
    figure(
        "5",
        10.0,
        500.0,
        50.0,
        0.015,
        Some([[125443.0, 62858.0, 38913.0, 25532.0], [157754.0, 66102.0, 38847.0, 24862.0]]),
        Some((13, 13)),
    ),
    figure("6", 10.0, 5000.0, 500.0, 0.015, None, Some((7, 10))),
    figure("7", 10.0, 50000.0, 5000.0, 0.015, None, Some((7, 8))),
    figure(
        "8",
        10.0,
        500.0,
        100.0,
        0.025,
        Some([[125660.0, 63036.0, 38937.0, 25626.0], [147049.0, 59924.0, 34721.0, 21936.0]]),
        Some((7, 8)),
    ),
    figure(
        "9",
        10.0,
        5000.0,
        1000.0,
        0.025,
        Some([[688163.0, 350245.0, 215776.0, 142625.0], [699006.0, 258365.0, 141272.0, 86589.0]]),
        Some((5, 4)),
    ),
    figure("10", 10.0, 50000.0, 10000.0, 0.025, None, Some((4, 4))),
    figure(
        "11",
        100.0,
        500.0,
        100.0,
        0.025,
        Some([[125232.0, 63296.0, 38974.0, 25741.0], [137906.0, 53907.0, 30090.0, 18403.0]]),
        Some((5, 5)),
    ),
    figure("12", 100.0, 5000.0, 1000.0, 0.025, None, Some((5, 4))),
    figure(
        "13",
        100.0,
        50000.0,
        10000.0,
        0.025,
        Some([[6314908.0, 3193494.0, 1963811.0, 1309701.0], [6215980.0, 2231487.0, 1193598.0, 719923.0]]),
        Some((4, 4)),
    ),
];

/// Quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HamidzadehQuantity {
    /// Mean total times, in cycles.
    Dss,
    Sash,
    /// The least number of processors with which SASH is faster; 0 for none.
    Crossover,
}

/// One figure's point, measured and expected.
#[derive(Clone, Debug, Serialize)]
pub struct HamidzadehPoint {
    pub figure: &'static str,
    pub quantity: HamidzadehQuantity,
    /// `None` for a crossover.
    pub processors: Option<u32>,
    pub seeds: u32,
    pub measured: f64,
    /// `None` where nothing is known to compare with.
    pub expected: Option<f64>,
    pub tolerance: f64,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    pub agrees: bool,
}

/// Simulates a figure with `seeds` seeds for each number of processors: first the total times, then the crossover.
///
/// # Errors
/// If there are no seeds.
pub fn reproduce(figure: &HamidzadehFigure, seeds: u32, seed: u64) -> Result<Vec<HamidzadehPoint>> {
    let processors: Vec<u32> = (LEAST..=MOST).collect();
    let jobs: Vec<(usize, u64)> = (0..processors.len()).flat_map(|at| (0..seeds).map(move |round| (at, seed + u64::from(round)))).collect();
    let totals = Mutex::new(vec![[Vec::<(u64, f64)>::new(), Vec::new()]; processors.len()]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get).min(jobs.len()) {
            scope.spawn(|| {
                while let Some(&(at, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let both = totals_of(figure, processors[at], seed);
                    if let Ok(mut totals) = totals.lock() {
                        totals[at].iter_mut().zip(both).for_each(|(list, total)| list.push((seed, total)));
                    }
                }
            });
        }
    });
    let mut totals = totals.into_inner().map_err(|_| Error::Failed("a simulation ended in a panic".into()))?;
    // In the order of seeds, whichever ended first: sums of the same numbers in another order differ.
    totals.iter_mut().flatten().for_each(|list| list.sort_unstable_by_key(|(seed, _)| *seed));
    let mean = |list: &[(u64, f64)]| {
        let totals: Vec<f64> = list.iter().map(|(_, total)| *total).collect();
        statistics::mean(&totals).map(|mean| mean.value).ok_or_else(|| Error::Failed("a mean needs a seed at least".into()))
    };
    let mut points = Vec::new();
    let mut crossover = 0;
    for (&processors, [dss, sash]) in processors.iter().zip(&totals) {
        let known = KNOWN.iter().position(|known| *known == processors);
        let means = [mean(dss)?, mean(sash)?];
        if crossover == 0 && means[1] < means[0] {
            crossover = processors;
        }
        for (which, quantity) in [HamidzadehQuantity::Dss, HamidzadehQuantity::Sash].into_iter().enumerate() {
            let expected = known.and_then(|known| Some(figure.totals?[which][known]));
            let measured = means[which];
            let agrees = expected.is_none_or(|expected| (measured / expected - 1.0).abs() <= figure.tolerance);
            let tolerance = expected.unwrap_or(measured) * figure.tolerance;
            points.push(HamidzadehPoint {
                figure: figure.name,
                quantity,
                processors: Some(processors),
                seeds,
                measured,
                expected,
                tolerance,
                paper: None,
                agrees,
            });
        }
    }
    let expected = figure.crossover.map_or(0.0, |(ours, _)| f64::from(ours));
    let tolerance = if figure.crossover.is_some() { 1.0 } else { 0.0 };
    let measured = f64::from(crossover);
    points.push(HamidzadehPoint {
        figure: figure.name,
        quantity: HamidzadehQuantity::Crossover,
        processors: None,
        seeds,
        measured,
        expected: Some(expected),
        tolerance,
        paper: Some(figure.crossover.map_or(0.0, |(_, paper)| f64::from(paper))),
        agrees: (measured - expected).abs() <= tolerance,
    });
    Ok(points)
}

/// The totals of DSS and of SASH for one matrix, in cycles.
fn totals_of(figure: &HamidzadehFigure, processors: u32, seed: u64) -> [f64; 2] {
    let processing = Spread { mean: 500.0, deviation: figure.sigma_cp };
    let communication = Spread { mean: figure.mu_cc, deviation: figure.sigma_cc };
    let costs: Costs = drawn(TASKS, processing, communication, &Setting { seed, ranks: processors, is_simulated: true });
    let workers = (0..processors as usize - 1).collect();
    let (sash, _) = schedule(&costs, workers, &Rules::R1);
    [dss::makespan(&costs), sash].map(|total| total as f64 / CYCLE as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few seeds of each kind of figure; all of them are `equipoise reproduce`'s.
    #[test]
    fn totals_are_as_published() {
        for (name, seeds) in [("2", 2), ("8", 3), ("11", 3)] {
            let figure = FIGURES.iter().find(|figure| figure.name == name).unwrap();
            for (at, processors) in KNOWN.into_iter().enumerate() {
                let totals: Vec<[f64; 2]> = (0..seeds).map(|seed| totals_of(figure, processors, 100 + seed)).collect();
                for (which, expected) in figure.totals.unwrap().iter().enumerate() {
                    let mean = totals.iter().map(|both| both[which]).sum::<f64>() / seeds as f64;
                    // Fewer seeds than the tolerance is for.
                    let allowed = 2.0 * figure.tolerance;
                    assert!(
                        (mean / expected[at] - 1.0).abs() <= allowed,
                        "figure {name}, {processors}: {mean} instead of {}",
                        expected[at]
                    );
                }
            }
        }
    }
}
