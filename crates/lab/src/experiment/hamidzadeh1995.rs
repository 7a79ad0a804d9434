//! The simulations of Hamidzadeh, Lilja and Atif 1995 (section 4): total times of SASH and of distributed self-scheduling on 2 to 20
//! processors, and the crossover, the least number of processors with which SASH is the faster.
//!
//! The paper prints curves, and gives crossovers in its text.

use crate::workload::independent::{Setting, Spread, drawn};
use equipoise::load::{CYCLE, Costs};
use equipoise::schedule::dss;
use equipoise::schedule::sash::phase::{Rules, schedule};

/// Tasks in every experiment.
const TASKS: u64 = 500;
/// Numbers of processors.
pub const LEAST: u32 = 2;
pub const MOST: u32 = 20;

/// One of the paper's figures.
#[derive(Clone, Copy, Debug)]
pub struct HamidzadehFigure {
    pub number: u32,
    /// Deviation of processing times (mean 500), and mean and deviation of communication times, in cycles. Times are uniform within three
    /// deviations around their mean.
    sigma_cp: f64,
    mu_cc: f64,
    sigma_cc: f64,
    /// The crossover that the paper gives; `None` where DSS always wins.
    pub crossover: Option<u32>,
}

const fn figure(number: u32, sigma_cp: f64, mu_cc: f64, sigma_cc: f64, crossover: Option<u32>) -> HamidzadehFigure {
    HamidzadehFigure { number, sigma_cp, mu_cc, sigma_cc, crossover }
}

/// All figures.
pub const FIGURES: [HamidzadehFigure; 12] = [
    figure(2, 10.0, 500.0, 10.0, None),
    figure(3, 10.0, 5000.0, 100.0, None),
    figure(4, 10.0, 50000.0, 1000.0, None),
    figure(5, 10.0, 500.0, 50.0, Some(13)),
    figure(6, 10.0, 5000.0, 500.0, Some(10)),
    figure(7, 10.0, 50000.0, 5000.0, Some(8)),
    figure(8, 10.0, 500.0, 100.0, Some(8)),
    figure(9, 10.0, 5000.0, 1000.0, Some(4)),
    figure(10, 10.0, 50000.0, 10000.0, Some(4)),
    figure(11, 100.0, 500.0, 100.0, Some(5)),
    figure(12, 100.0, 5000.0, 1000.0, Some(4)),
    figure(13, 100.0, 50000.0, 10000.0, Some(4)),
];

impl HamidzadehFigure {
    /// The workload as `--workload` names it.
    pub fn workload(&self) -> String {
        let HamidzadehFigure { sigma_cp, mu_cc, sigma_cc, .. } = self;
        format!("costs:sigma_cp={sigma_cp},mu_cc={mu_cc},sigma_cc={sigma_cc}")
    }

    /// The cost matrix for one seed.
    pub fn costs(&self, processors: u32, seed: u64) -> Costs {
        let processing = Spread { mean: 500.0, deviation: self.sigma_cp };
        let communication = Spread { mean: self.mu_cc, deviation: self.sigma_cc };
        drawn(TASKS, processing, communication, &Setting { seed, ranks: processors, is_simulated: true })
    }
}

/// Means of an independent implementation of the same reading: figure, tolerance of ten seeds or more, then DSS and SASH on 4, 8, 13 and 20
/// processors.
const REFERENCE: [(u32, f64, [[f64; 4]; 2]); 6] = [
    (2, 0.005, [[125316.0, 62995.0, 38997.0, 25230.0], [164668.0, 70447.0, 41327.0, 26620.0]]),
    (5, 0.015, [[125443.0, 62858.0, 38913.0, 25532.0], [157754.0, 66102.0, 38847.0, 24862.0]]),
    (8, 0.025, [[125660.0, 63036.0, 38937.0, 25626.0], [147049.0, 59924.0, 34721.0, 21936.0]]),
    (9, 0.025, [[688163.0, 350245.0, 215776.0, 142625.0], [699006.0, 258365.0, 141272.0, 86589.0]]),
    (11, 0.025, [[125232.0, 63296.0, 38974.0, 25741.0], [137906.0, 53907.0, 30090.0, 18403.0]]),
    (13, 0.025, [[6314908.0, 3193494.0, 1963811.0, 1309701.0], [6215980.0, 2231487.0, 1193598.0, 719923.0]]),
];

/// Reference means of DSS and of SASH in cycles, and by how much means of ten seeds or more may be off, in parts; `None` if the figure or the number of
/// processors has none.
pub(super) fn reference(figure: u32, processors: f64) -> Option<([f64; 2], f64)> {
    let (_, tolerance, [dss, sash]) = REFERENCE.iter().find(|(number, ..)| *number == figure)?;
    let at = [4.0, 8.0, 13.0, 20.0].iter().position(|known| *known == processors)?;
    Some(([dss[at], sash[at]], *tolerance))
}

/// The total times of DSS on all columns and of SASH (reading `r1`) on all but the last, in cycles.
pub fn totals(costs: &Costs) -> [f64; 2] {
    let (sash, _) = schedule(costs, (0..costs.ranks() - 1).collect(), &Rules::R1);
    [dss::makespan(costs), sash].map(|total| total as f64 / CYCLE as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_those_of_an_independent_implementation() {
        for number in [2, 5, 8, 9, 11, 13] {
            let figure = FIGURES.iter().find(|figure| figure.number == number).unwrap();
            for processors in [4, 8, 13, 20] {
                let (known, tolerance) = reference(number, processors.into()).unwrap();
                // Fewer seeds than the tolerances are for.
                let (seeds, allowed) = (2, 2.0 * tolerance);
                let totals: Vec<[f64; 2]> = (0..seeds).map(|seed| totals(&figure.costs(processors, 100 + seed))).collect();
                for (which, expected) in known.iter().enumerate() {
                    let mean = totals.iter().map(|both| both[which]).sum::<f64>() / seeds as f64;
                    assert!((mean / expected - 1.0).abs() <= allowed, "figure {number}, {processors}: {mean} instead of {expected}");
                }
            }
        }
        assert!(reference(3, 4.0).is_none() && reference(2, 5.0).is_none());
    }
}
