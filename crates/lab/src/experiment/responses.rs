//! Response times of the graphs of a stream, from arrival to answer.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::statistics::{self, Estimate};
use equipoise::node::Ticks;
use equipoise::schedule::Graph;

/// The response times of a stream's graphs, in the unit that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// Number of graphs that count.
    pub graphs: u64,
    /// The mean, with an interval from the means of [batches](BATCHES): graphs that follow each other wait for the same others, so that
    /// single response times would promise too much.
    pub mean: Estimate,
    /// The times that this per cent of the graphs do not exceed.
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub most: f64,
}

/// Batches of consecutive graphs whose means are taken for independent (Law and Kelton, "Simulation modeling and analysis", 9.5.3).
pub const BATCHES: usize = 20;

impl Responses {
    /// Response times of the graphs whose numbers lie in the range, in any order; `unit` is the number of ticks in one unit of time. `None`
    /// if there are none.
    pub fn of(graphs: &[Graph], measured: &Range<u64>, unit: Ticks) -> Option<Responses> {
        let mut counting: Vec<&Graph> = graphs.iter().filter(|graph| measured.contains(&graph.number)).collect();
        counting.sort_by_key(|graph| graph.number);
        let times: Vec<f64> = counting.iter().map(|graph| graph.response() as f64 / unit.max(1) as f64).collect();
        let percentile = |percent| statistics::percentile(&times, percent);
        Some(Responses {
            graphs: times.len() as u64,
            mean: mean_of_batches(&times)?,
            p50: percentile(50.0)?,
            p90: percentile(90.0)?,
            p95: percentile(95.0)?,
            p99: percentile(99.0)?,
            most: percentile(100.0)?,
        })
    }
}

/// Graphs per unit of time until the last arrival.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overload {
    /// Rate of arrival.
    pub offered: f64,
    /// Rate of answers.
    pub served: f64,
}

impl Overload {
    pub fn of(graphs: &[Graph], unit: Ticks) -> Overload {
        let last = graphs.iter().map(|graph| graph.submitted).max().unwrap_or(0);
        let answered = graphs.iter().filter(|graph| graph.answered <= last).count();
        let rate = |count: usize| count as f64 * unit as f64 / last.max(1) as f64;
        Overload { offered: rate(graphs.len()), served: rate(answered) }
    }
}

/// The mean of all samples, with the interval that the means of equal batches of consecutive samples give. Up to two samples a batch there
/// are no batches. No response time is negative, so neither is the lower end.
fn mean_of_batches(samples: &[f64]) -> Option<Estimate> {
    let all = statistics::mean(samples)?;
    let size = samples.len() / BATCHES;
    if size < 2 {
        return Some(Estimate { low: all.low.max(0.0), ..all });
    }
    // The remainder belongs to the warm-up: the first samples are left out.
    let batches = samples[samples.len() % BATCHES..].chunks_exact(size);
    let means: Vec<f64> = batches.map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let batches = statistics::mean(&means)?;
    let half = (batches.high - batches.low) / 2.0;
    Some(Estimate { value: all.value, low: (all.value - half).max(0.0), high: all.value + half, coverage: batches.coverage })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    fn graph(number: u64, response: Ticks) -> Graph {
        Graph::new(number, number * 10, number * 10 + response)
    }

    #[test]
    fn only_measured_graphs_count_in_units() {
        let graphs: Vec<Graph> = [(3, 900), (1, 100), (2, 300), (0, 5_000), (4, 7_000)].map(|(number, time)| graph(number, time)).into();
        let responses = Responses::of(&graphs, &(1..4), 100).unwrap();
        assert_eq!((responses.graphs, responses.p50, responses.most), (3, 3.0, 9.0));
        assert!((responses.mean.value - 13.0 / 3.0).abs() < 1e-12);
        assert_eq!(Responses::of(&graphs, &(7..9), 100), None);
    }

    #[test]
    fn batches_see_what_graphs_have_in_common() {
        // A walk around 10 that remembers: neighbours correlate with 0.95.
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let (mut covered, mut naive, cases) = (0, 0, 300);
        for _ in 0..cases {
            let mut away = 0.0;
            let samples: Vec<f64> = (0..4_000)
                .map(|_| {
                    away = 0.95 * away + rng.random_range(-1.0..1.0);
                    10.0 + away
                })
                .collect();
            let covers = |estimate: Estimate| u32::from(estimate.low <= 10.0 && 10.0 <= estimate.high);
            covered += covers(mean_of_batches(&samples).unwrap());
            naive += covers(statistics::mean(&samples).unwrap());
        }
        assert!(f64::from(covered) / f64::from(cases) > 0.9, "{covered} of {cases}");
        assert!(f64::from(naive) / f64::from(cases) < 0.5, "{naive} of {cases}");
    }

    #[test]
    fn few_graphs_have_a_mean_too() {
        let graphs: Vec<Graph> = (0..3).map(|number| graph(number, 10 + number)).collect();
        let responses = Responses::of(&graphs, &(0..3), 1).unwrap();
        assert_eq!((responses.mean.value, responses.graphs), (11.0, 3));
        assert!(responses.mean.low < 10.0 && responses.mean.high > 12.0);
    }
}
