//! Ahmad, Ghafoor and Fox 1994: the medians of section 3, figures 6 to 16, and what section 4.3 says of distances and migrations.
//!
//! Streams of random task graphs on a hypercube of 256 processors, all strategies of a point with the same arrivals, graphs and times. The paper does not
//! say how old the baseline's knowledge of its neighbours is, and that decides the result: announcements every half unit of time, under which most of section
//! 6 holds, are the reading of the claims; loads known at once are measured, too. `Section(6)` has points of figures 6 to 8 with slower migrations.
//!
//! A response time depends on how much work happened to arrive, and how fast. Both were drawn from distributions with known means, so they are control
//! variates: means are corrected for how far the draws of each batch of graphs were from these.

mod best;
mod claims;
mod section_3;
mod section_4;

use super::super::ahmad1994::{self, GraphStream};
use super::super::responses::BATCHES;
use super::evidence::{Mean, controlled};
use super::{Axes, Claim, Item, Job, Reference, Study, Value};
use equipoise::error::{Error, Result};

/// The strategies, and the names of their curves.
const STRATEGIES: [(&str, &str); 3] =
    [("hierarchical", "hierarchical"), ("neighbour:age=0.5", "distributed"), ("neighbour:age=0", "distributed, loads known at once")];

/// The curve of how much longer responses take under the second strategy than under the first, with the same graphs.
const LONGER: &str = "distributed less hierarchical";

/// Graphs at each point: quick, and the paper's.
const GRAPHS: [u32; 2] = [2_000, 100_000];

/// Graphs of figure 6 at loads 0.4 and 0.5: quick, full. The hierarchical response differs so little between these loads that 100,000 graphs do not show it.
const GRAPHS_ALIKE: [u32; 2] = [2_000, 1_000_000];

/// Last part of the names of helper curves for figure 10 at load 0.5, their places and graphs: the figure ends at 12 children of the root, where the
/// hierarchical response still falls, and a claim asks on how many the responses are shortest.
const BEYOND: &str = ", load 0.5, beyond the figure";
const BEYOND_CHILDREN: [u32; 4] = [15, 18, 21, 24];
const BEYOND_GRAPHS: [u32; 2] = [2_000, 200_000];

/// Migrations a unit of time where each takes twice as long as the text says, as an exchange of two messages would; and graphs, which are cheap at
/// the low loads of these points.
const SLOWER_RATE: u32 = 10;
const SLOWER_GRAPHS: [u32; 2] = [4_000, 100_000];

/// The same with two and three children at the lower one of these loads, where the responses are nearly the same.
const SLOWER_GRAPHS_ALIKE: [u32; 2] = [4_000, 1_000_000];

/// Processors.
const DIMENSION: u32 = 8;

/// The parts that most claims have in common.
const CLAIM: Claim = Claim { id: "", place: "section 6.1", items: &[], says: "", number: "", reading: AGE, why: "", judge: |_| None };

const AGE: &str = "neighbours announce their loads every half unit of time";

pub(super) fn study() -> Study {
    let mut jobs = Vec::from(section_3::jobs());
    for place in places() {
        let Place { figure, name, x, graph: (levels, children), utilisation, rate } = place;
        let graphs = if figure == 6 && x < 0.6 { GRAPHS_ALIKE } else { GRAPHS };
        jobs.push(Job::new(Item::Figure(figure), name.clone(), x, graphs, move |seed, graphs| {
            responses(&STRATEGIES, &GraphStream { dimension: DIMENSION, levels, children, utilisation, rate, graphs }, &name, seed)
        }));
    }
    for children in BEYOND_CHILDREN {
        jobs.push(Job::new(Item::Figure(10), BEYOND, children.into(), BEYOND_GRAPHS, move |seed, graphs| {
            let stream = GraphStream { dimension: DIMENSION, levels: 1, children, utilisation: 0.5, rate: 20, graphs };
            responses(&STRATEGIES[..2], &stream, BEYOND, seed)
        }));
    }
    for (children, utilisation) in [2, 3, 4].into_iter().flat_map(|children| [0.4, 0.5].map(|utilisation| (children, utilisation))) {
        let name = format!(", load {utilisation}");
        let graphs = if utilisation == 0.4 && children < 4 { SLOWER_GRAPHS_ALIKE } else { SLOWER_GRAPHS };
        jobs.push(Job::new(Item::Section(6), format!("slower{name}"), f64::from(children), graphs, move |seed, graphs| {
            let stream = GraphStream { dimension: DIMENSION, levels: 3, children, utilisation, rate: SLOWER_RATE, graphs };
            responses(&STRATEGIES[..2], &stream, &name, seed)
        }));
    }
    for utilisation in [0.5, 0.8] {
        jobs.push(Job::new(Item::Section(4), "locality", utilisation, [2_400, 24_000], move |seed, graphs| {
            section_4::measured(&GraphStream { dimension: DIMENSION, levels: 3, children: 2, utilisation, rate: 20, graphs }, seed)
        }));
    }
    Study { jobs, claims: claims::all() }
}

/// A place of a figure, and what is simulated there.
struct Place {
    figure: u32,
    /// Last part of the curves' names.
    name: String,
    x: f64,
    /// Edges from the root to the deepest tasks, and the most children of a task.
    graph: (u32, u32),
    utilisation: f64,
    rate: u32,
}

/// All places of figures 6 to 16.
fn places() -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |figure, name: &str, x, graph, utilisation, rate| {
        places.push(Place { figure, name: name.into(), x, graph, utilisation, rate });
    };
    for (figure, graph) in [(6, (3, 2)), (7, (3, 3)), (8, (3, 4)), (9, (7, 1))] {
        [0.4, 0.5, 0.6, 0.7, 0.8, 0.9].into_iter().for_each(|utilisation| add(figure, "", utilisation, graph, utilisation, 20));
    }
    for utilisation in [0.5, 0.8] {
        let name = format!(", load {utilisation}");
        (2..=12u32).for_each(|children| add(10, &name, children.into(), (1, children), utilisation, 20));
        (1..=9u32).for_each(|levels| add(11, &name, levels.into(), (levels, 1), utilisation, 20));
        (1..=4u32).for_each(|levels| add(12, &name, levels.into(), (levels, 2), utilisation, 20));
    }
    for (figure, utilisation) in [(13, 0.5), (14, 0.6), (15, 0.7), (16, 0.8)] {
        (4..=36u32).step_by(4).for_each(|rate| add(figure, "", rate.into(), (3, 2), utilisation, rate));
    }
    places
}

/// The reference mean of a point: an independent simulator's.
pub(super) fn reference(item: Item, curve: &str, x: f64) -> Option<Reference> {
    let mut here = places().into_iter().filter(|place| item == Item::Figure(place.figure) && x == place.x);
    let (place, which) = here.find_map(|place| {
        let which = STRATEGIES.iter().position(|(_, strategy)| curve.strip_prefix(strategy) == Some(place.name.as_str()))?;
        Some((place, which))
    })?;
    let (value, tolerance) = ahmad1994::reference(place.graph, place.utilisation, place.rate)?[which];
    Some(Reference { value, tolerance, cases: GRAPHS[1].into() })
}

pub(super) fn axes(item: Item) -> Axes {
    let response = |title: &str, x: &str| Axes::linear(title, x, "mean response time, in mean times of a graph");
    match item {
        Item::Figure(number @ 6..=9) => {
            let graphs = ["binary trees", "ternary trees", "quaternary trees", "chains"][number as usize - 6];
            response(&format!("response time, {graphs}"), "utilisation")
        }
        Item::Figure(10) => response("response time and children of the root", "children of the root, at most"),
        Item::Figure(11) => response("response time and length of chains", "tasks below the root, at most"),
        Item::Figure(12) => response("response time and levels of binary trees", "levels below the root"),
        Item::Figure(number @ 13..=16) => {
            let load = ["0.5", "0.6", "0.7", "0.8"][number as usize - 13];
            response(&format!("response time and rate of migration, load {load}"), "migrations a unit of time")
        }
        Item::Section(6) => response("response time at low load with slower migrations", "children of a task, at most"),
        _ => Axes::linear("distances and migrations", "utilisation", "hops; migrations of a task"),
    }
}

/// Mean response times in units, the mean time of a graph on one processor; and how much longer they take under the second strategy than under the
/// first. More graphs than the paper's are several streams.
fn responses(strategies: &[(&str, &str)], all: &GraphStream, name: &str, seed: u64) -> Result<Vec<Value>> {
    let mut draws: Vec<[f64; 2]> = Vec::new();
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); strategies.len()];
    for (number, from) in (0..all.graphs).step_by(GRAPHS[1] as usize).enumerate() {
        let stream = GraphStream { graphs: GRAPHS[1].min(all.graphs - from), ..*all };
        let seed = seed.wrapping_add(number as u64);
        draws.extend(stream.draws(seed));
        for ((scheduler, _), samples) in strategies.iter().zip(&mut samples) {
            let record = stream.run(scheduler, seed, false)?;
            let unit = record.unit_seconds * 1e9;
            samples.extend(record.graphs.iter().map(|graph| graph.response() as f64 / unit));
        }
    }
    if let [first, second, ..] = &samples[..] {
        samples.push(second.iter().zip(first).map(|(second, first)| second - first).collect());
    }
    let curves = strategies.iter().map(|(_, curve)| *curve).chain([LONGER]);
    let value = |(curve, samples): (&str, &Vec<f64>)| {
        Some(Value::new(format!("{curve}{name}"), of_batches(samples, &draws)?).helper_if(curve == LONGER || name == BEYOND))
    };
    let values: Option<Vec<Value>> = curves.zip(&samples).map(value).collect();
    values.ok_or_else(|| Error::Failed("no graph was answered".into()))
}

/// The mean over a stream's graphs, whose error comes from batches of consecutive ones, with their draws as control variates. The first graphs are left
/// out where the batches don't hold all; up to two graphs a batch there are no batches.
fn of_batches(samples: &[f64], draws: &[[f64; 2]]) -> Option<Mean> {
    let size = samples.len() / BATCHES;
    if size < 2 || draws.len() != samples.len() {
        return Mean::of(samples);
    }
    let from = samples.len() % BATCHES;
    let mean = |numbers: &mut dyn Iterator<Item = f64>| numbers.sum::<f64>() / size as f64;
    let batches: Vec<f64> = samples[from..].chunks_exact(size).map(|batch| mean(&mut batch.iter().copied())).collect();
    let controls: Vec<[f64; 2]> =
        draws[from..].chunks_exact(size).map(|batch| [0, 1].map(|which| mean(&mut batch.iter().map(|draws| draws[which])))).collect();
    Some(Mean { cases: samples.len() as u64, ..controlled(&batches, &controls)? })
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Measuring, Paper, measure};
    use super::*;

    #[test]
    fn means_are_those_of_an_independent_simulator() {
        let graphs = if cfg!(debug_assertions) { 1_500 } else { 20_000 };
        let is_known = |job: &Job| reference(job.item, &format!("hierarchical{}", job.name), job.x).is_some();
        let known: Vec<Job> = study().jobs.into_iter().filter(is_known).collect();
        // The table's 17 lines; five are in two figures.
        assert_eq!(known.len(), 22);
        // Few of them where programs are slow: one of each of four figures, at low load.
        let few = [(6, 0.4), (7, 0.5), (9, 0.6), (10, 8.0)].map(|(figure, x)| (Item::Figure(figure), x));
        let jobs: Vec<Job> = known.into_iter().filter(|job| !cfg!(debug_assertions) || few.contains(&(job.item, job.x))).collect();
        let measured = measure(Paper::Hierarchical, &jobs, &Measuring::new(Effort::Cases(graphs), 1), |_| {}).unwrap();
        let points = measured.0.iter().filter_map(|point| Some((point, point.reference?)));
        assert_eq!(points.clone().count(), 3 * jobs.len());
        for (point, Reference { value, tolerance, .. }) in points {
            // Both are samples: ours has few graphs.
            let (away, chance) = ((point.value - value).abs(), (point.high - point.low) / 2.0);
            assert!(away <= tolerance * value + chance && chance < 0.15 * value, "{value}: {point:?}");
            assert_eq!(point.is_as_expected(), None);
        }
    }

    #[test]
    fn a_place_has_the_reference_of_its_graph_load_and_rate() {
        let value = |figure, curve: &str, x| reference(Item::Figure(figure), curve, x).map(|found| (found.value, found.tolerance));
        assert_eq!(value(6, "hierarchical", 0.4), Some((0.889, 0.02)));
        assert_eq!(value(6, "distributed", 0.9), Some((1.974, 0.08)));
        assert_eq!(value(7, "distributed, loads known at once", 0.9), Some((1.355, 0.06)));
        assert_eq!(value(10, "distributed, load 0.8", 12.0), Some((1.602, 0.04)));
        assert_eq!(value(10, "distributed, loads known at once, load 0.5", 8.0), Some((0.667, 0.03)));
        assert_eq!(value(16, "hierarchical", 12.0), Some((1.067, 0.02)));
        for (figure, curve, x) in
            [(6, "hierarchical", 0.5), (6, LONGER, 0.4), (10, "hierarchical", 8.0), (13, "hierarchical, load 0.5", 4.0)]
        {
            assert_eq!(value(figure, curve, x), None, "figure {figure}, {curve} at {x}");
        }
    }

    #[test]
    fn the_work_that_arrived_explains_a_part_of_the_responses() {
        let stream = GraphStream { dimension: 4, levels: 3, children: 2, utilisation: 0.6, rate: 20, graphs: 1_000 };
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for seed in 0..if cfg!(debug_assertions) { 12 } else { 60 } {
            let values = responses(&STRATEGIES[..2], &stream, "", seed).unwrap();
            assert_eq!(values.iter().map(|value| value.curve.as_str()).collect::<Vec<_>>(), ["hierarchical", "distributed", LONGER]);
            let [hierarchical, distributed, longer] = [0, 1, 2].map(|at: usize| values[at].mean);
            // The difference of the means is the mean of the differences, and has less error than if they were independent.
            assert!((distributed.value - hierarchical.value - longer.value).abs() < 1e-9 && longer.freedom == 17.0);
            with.push(hierarchical.value);
            let plain = stream.run("hierarchical", seed, false).unwrap().responses.unwrap();
            without.push(plain.response_mean);
        }
        let [with, without] = [with, without].map(|means| Mean::of(&means).unwrap());
        assert!(with.error < 0.8 * without.error, "{with:?} {without:?}");
        assert!((with.value - without.value).abs() < 3.0 * without.error, "{with:?} {without:?}");
    }
}
