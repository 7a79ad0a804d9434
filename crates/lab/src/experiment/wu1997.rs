//! The performance study of Wu 1997 (section 5): how often DEM balances fully (table I), and how far DEM, CWA and MWA are from the fewest
//! tasks moved (figure 14) and the fewest task-hops (figures 15 to 17), on random loads.
//!
//! The paper prints its figures as curves. The values to compare with are those of an independent implementation of the paper's set-up, with
//! their standard errors; table I's agree with the paper's own. Loads are uniform in 0 to twice the mean, then adjusted to the exact mean one task at a
//! time, each at a node drawn at random, so that they can be balanced fully. An optimum is the exact one, by min-cost flow.
//!
//! With few tasks a node the adjustment matters: with tasks dealt round and round, as `--loads uniform` does, DEM's cost at a mean load of 2 on 8 nodes
//! is 0.059, with nodes drawn at random 0.071 (each within 0.004), and the paper draws 0.08. Dealing round and round takes spread out of the loads.

use std::rc::Rc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::statistics::{self, CONFIDENCE};
use equipoise::balance;
use equipoise::error::{Error, Result};
use equipoise::judge;
use equipoise::load::{Powers, Segment, Shares, WorkQueue};
use equipoise::phase::{self, Outcome, Setting};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::sim;
use equipoise::transport::world::World;

/// The mean loads of the study.
pub const MEANS: [u64; 6] = [2, 5, 10, 20, 50, 100];

/// Quantity that is measured of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WuQuantity {
    /// Whether all nodes end at the mean: the mean over cases is a share.
    Balanced,
    /// (tasks moved - least) / least, of the cases that were balanced fully.
    Locality,
    /// (task-hops - least) / least, of the cases that were balanced fully.
    Cost,
}

/// A curve of a figure or a row of a table: one balancer on one topology.
#[derive(Clone, Debug)]
pub struct Series {
    /// `table 1`, `14` to `17`.
    pub figure: &'static str,
    pub balancer: &'static str,
    pub topology: &'static str,
    pub quantity: WuQuantity,
    /// Random cases per mean load, in the paper.
    pub cases: u32,
    /// Expected value at each mean load; and the error that each may have by its own printing and sampling: its standard error.
    expected: [f64; 6],
    error: Spread,
}

/// The standard errors of the expected values.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Error of a share of 1,000 cases.
    Share,
    Absolute(f64),
    /// A fraction of the value.
    Relative(f64),
}

const fn series(
    figure: &'static str,
    balancer: &'static str,
    topology: &'static str,
    quantity: WuQuantity,
    cases: u32,
    expected: [f64; 6],
    error: Spread,
) -> Series {
    Series { figure, balancer, topology, quantity, cases, expected, error }
}

/// All series that can be reproduced.
pub const SERIES: [Series; 14] = {
    use Spread::{Absolute, Relative, Share};
    use WuQuantity::{Balanced, Cost, Locality};
    [
        series("table 1", "dem", "hypercube:2", Balanced, 1000, [0.74, 0.75, 0.76, 0.75, 0.75, 0.75], Share),
        series("table 1", "dem", "hypercube:3", Balanced, 1000, [0.335, 0.325, 0.35, 0.345, 0.35, 0.33], Share),
        series("table 1", "dem", "hypercube:4", Balanced, 1000, [0.045, 0.06, 0.06, 0.07, 0.055, 0.08], Share),
        series("14", "dem", "hypercube:2", Locality, 1000, [0.08, 0.15, 0.16, 0.18, 0.18, 0.18], Relative(0.05)),
        series("14", "dem", "hypercube:3", Locality, 1000, [0.12, 0.20, 0.22, 0.24, 0.24, 0.25], Relative(0.05)),
        series("15", "dem", "hypercube:3", Cost, 1000, [0.08, 0.19, 0.25, 0.29, 0.29, 0.32], Relative(0.05)),
        series("15", "cwa", "hypercube:2", Cost, 1000, [0.0; 6], Absolute(0.0)),
        series("15", "cwa", "hypercube:3", Cost, 1000, [0.044, 0.045, 0.050, 0.045, 0.048, 0.047], Absolute(0.003)),
        series("15", "cwa", "hypercube:4", Cost, 1000, [0.102, 0.106, 0.107, 0.105, 0.108, 0.105], Absolute(0.003)),
        series("16", "cwa", "hypercube:6", Cost, 100, [0.252, 0.250, 0.247, 0.248, 0.246, 0.245], Absolute(0.0045)),
        series("17", "mwa", "mesh:2x2", Cost, 100, [0.0; 6], Absolute(0.0)),
        series("17", "mwa", "mesh:4x2", Cost, 100, [0.010, 0.012, 0.012, 0.008, 0.011, 0.010], Absolute(0.0013)),
        series("17", "mwa", "mesh:8x4", Cost, 100, [0.088, 0.085, 0.092, 0.088, 0.092, 0.089], Absolute(0.0045)),
        series("17", "mwa", "mesh:16x8", Cost, 100, [0.22, 0.21, 0.22, 0.25, 0.23, 0.22], Relative(0.05)),
    ]
};

/// A value to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Half a unit of its last printed digit.
    pub rounding: f64,
}

impl Series {
    /// The value to compare with at one of the [`MEANS`]; `None` at another mean load.
    pub fn expected(&self, mean_load: u64) -> Option<Expected> {
        MEANS.iter().position(|mean| *mean == mean_load).map(|index| self.at(index))
    }

    fn at(&self, index: usize) -> Expected {
        let value = self.expected[index];
        let error = match self.error {
            Spread::Share => (value * (1.0 - value) / 1000.0).sqrt(),
            Spread::Absolute(error) => error,
            Spread::Relative(error) => error * value,
        };
        let rounding = match value {
            0.0 => 0.0,
            _ if value < 0.2 && self.quantity == WuQuantity::Cost => 0.0005,
            _ => 0.005,
        };
        Expected { value, error, rounding }
    }
}

/// One point of a figure, measured and expected.
#[derive(Clone, Debug, Serialize)]
pub struct WuPoint {
    pub figure: &'static str,
    pub balancer: &'static str,
    pub topology: &'static str,
    pub quantity: WuQuantity,
    pub mean_load: u64,
    /// Random cases, and how many of them count.
    pub cases: u32,
    pub counted: usize,
    /// Mean over these, and its 95 % interval.
    pub measured: f64,
    pub ci95: [f64; 2],
    pub expected: f64,
    /// Allowed difference: if nothing is wrong, all compared points pass with a probability of 95 %.
    pub tolerance: f64,
    pub agrees: bool,
}

/// Measures a series with `cases` random cases per mean load; `points` is the number of points compared in all.
///
/// # Errors
/// If a balancer fails, or so few cases were balanced that there is nothing to compare.
pub fn reproduce(series: &Series, cases: u32, seed: u64, points: usize) -> Result<Vec<WuPoint>> {
    let topology = Topology::parse(series.topology, 1)?;
    let mut bench = Bench::new(series.balancer, topology)?;
    MEANS.iter().enumerate().map(|(index, mean)| point(series, &mut bench, index, *mean, cases, seed, points)).collect()
}

fn point(series: &Series, bench: &mut Bench, index: usize, mean_load: u64, cases: u32, seed: u64, points: usize) -> Result<WuPoint> {
    let mut samples = Vec::new();
    for case in 0..u64::from(cases) {
        // Other cases for each mean load, the same for all balancers.
        samples.extend(bench.sample(series.quantity, mean_load, seed + (case << 8) + index as u64)?);
    }
    let few = || {
        Error::Failed(format!("{} on {}: of {cases} cases with mean {mean_load} none can be compared", series.balancer, series.topology))
    };
    let estimate = statistics::mean(&samples).ok_or_else(few)?;
    let Expected { value: expected, error: theirs, rounding } = series.at(index);
    let n = samples.len() as f64;
    let variance = samples.iter().map(|sample| (sample - estimate.value).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    // A share that happens to be 0 or 1 among a few says nothing about its error; the expected one does.
    let variance = if series.quantity == WuQuantity::Balanced { expected * (1.0 - expected) } else { variance };
    let student = StudentsT::new(0.0, 1.0, (n - 1.0).max(1.0)).map_err(|why| Error::Failed(why.to_string()))?;
    let quantile = student.inverse_cdf(1.0 - (1.0 - CONFIDENCE) / 2.0 / points.max(1) as f64);
    let tolerance = quantile * (theirs.powi(2) + variance / n).sqrt() + rounding;
    Ok(WuPoint {
        figure: series.figure,
        balancer: series.balancer,
        topology: series.topology,
        quantity: series.quantity,
        mean_load,
        cases,
        counted: samples.len(),
        measured: estimate.value,
        ci95: [estimate.low, estimate.high],
        expected,
        tolerance,
        agrees: (estimate.value - expected).abs() <= tolerance,
    })
}

/// A balancer on simulated nodes, on a network without latency: only amounts matter here.
pub(super) struct Bench {
    world: World,
    overlay: Overlay,
    setting: Rc<Setting>,
}

impl Bench {
    fn new(balancer: &str, topology: Topology) -> Result<Bench> {
        let powers = Powers::equal(topology.nodes(), topology.nodes());
        Bench::with(balancer, topology, powers, sim::Model { network: sim::Network::Zero, ..sim::Model::default() })
    }

    /// Nodes of these powers on a network.
    ///
    /// # Errors
    /// If there is no such balancer, or it does not run on the topology.
    pub(super) fn with(balancer: &str, topology: Topology, powers: Powers, model: sim::Model) -> Result<Bench> {
        let nodes = topology.nodes();
        let setting = Rc::new(Setting {
            balancer: Rc::new(balance::find(balancer)?),
            // The study is of the rules as they are printed.
            shares: Shares::new(powers).plainly(),
            queue: Rc::new(|_| Ok(WorkQueue::default())),
            plan: false,
            trace: None,
            weighted: false,
        });
        Ok(Bench { world: World::simulated(nodes, model), overlay: Overlay::one_host(topology, nodes)?, setting })
    }

    /// A balancer by its name on a topology by its name, with equal powers.
    ///
    /// # Errors
    /// As [`Bench::with`].
    pub(super) fn of(balancer: &str, topology: &str) -> Result<Bench> {
        Bench::new(balancer, Topology::parse(topology, 1)?)
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.overlay.topology
    }

    /// One phase with these loads of unit tasks.
    ///
    /// # Errors
    /// If the balancer fails.
    pub(super) fn phase(&mut self, loads: &[u64], plan: bool) -> Result<Outcome> {
        let held: Rc<[u64]> = loads.into();
        let setting = Rc::make_mut(&mut self.setting);
        setting.plan = plan;
        setting.queue = Rc::new(move |node| {
            let first = held[..node as usize].iter().sum();
            Ok(WorkQueue::new([Segment::range(first, held[node as usize])].into_iter().collect()))
        });
        phase::run(&mut self.world, &self.overlay, &self.setting)?.ok_or_else(|| Error::Failed("a simulation left no outcome".into()))
    }

    /// Random loads with exactly this mean.
    pub(super) fn loads(&self, mean: u64, seed: u64) -> Vec<u64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = self.topology().nodes() as usize;
        let mut loads: Vec<u64> = (0..nodes).map(|_| rng.random_range(0..=2 * mean)).collect();
        let (mut sum, wanted) = (loads.iter().sum::<u64>(), mean * nodes as u64);
        while sum != wanted {
            let load = &mut loads[rng.random_range(0..nodes)];
            if sum < wanted && *load < 2 * mean {
                (*load, sum) = (*load + 1, sum + 1);
            } else if sum > wanted && *load > 0 {
                (*load, sum) = (*load - 1, sum - 1);
            }
        }
        loads
    }

    /// The quantity of one random case; none if the case does not count.
    fn sample(&mut self, quantity: WuQuantity, mean: u64, seed: u64) -> Result<Option<f64>> {
        let loads = self.loads(mean, seed);
        let Outcome { finals, stayed, counts, .. } = self.phase(&loads, false)?;
        let even = finals.iter().all(|load| *load == mean);
        let quota = vec![mean; loads.len()];
        Ok(match quantity {
            WuQuantity::Balanced => Some(f64::from(u8::from(even))),
            _ if !even => None,
            WuQuantity::Locality => {
                let moved = loads.iter().sum::<u64>() - stayed;
                excess(moved.into(), judge::minimum_nonlocal(&loads, &quota).into())
            }
            WuQuantity::Cost => excess(counts.task_hops, judge::optimum(self.topology(), &loads, &quota)?),
        })
    }
}

/// Relative excess over the least value; `None` if that is 0.
pub(super) fn excess(value: u128, least: u128) -> Option<f64> {
    (least > 0).then(|| (value as f64 - least as f64) / least as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_their_mean_and_keep_their_spread() {
        let bench = Bench::of("dem", "hypercube:3").unwrap();
        let mut squares = 0.0;
        for seed in 0..2_000 {
            let loads = bench.loads(2, seed);
            assert_eq!((loads.len(), loads.iter().sum::<u64>()), (8, 16));
            assert!(loads.iter().all(|load| *load <= 4) && loads == bench.loads(2, seed));
            squares += loads.iter().map(|load| (*load as f64 - 2.0).powi(2)).sum::<f64>() / 8.0;
        }
        // Variance 2 before the adjustment, 1.82 after it. Dealing round and round would leave 1.70.
        assert!((1.77..1.87).contains(&(squares / 2_000.0)), "{}", squares / 2_000.0);
    }
}
