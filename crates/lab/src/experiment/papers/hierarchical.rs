//! Ahmad, Ghafoor and Fox 1994: figures 6 to 16, and what section 4.3 says of distances and migrations.
//!
//! Streams of random task graphs on a hypercube of 256 processors, all strategies of a point with the same arrivals, graphs and times. The paper does not
//! say how old the baseline's knowledge of its neighbours is, and that decides the result: announcements every half unit of time, under which most of section
//! 6 holds, are the reading of the claims; loads known at once are measured, too. `Section(6)` has points of figures 6 to 8 with slower migrations.

mod claims;

use super::super::ahmad1994::GraphStream;
use super::super::responses::BATCHES;
use super::super::run::TraceEntry;
use super::evidence::Mean;
use super::{Axes, Item, Job, Study, Value};
use equipoise::error::{Error, Result};
use equipoise::schedule::accounting::Happening;
use equipoise::topology::Topology;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The strategies, and the names of their curves.
const STRATEGIES: [(&str, &str); 3] =
    [("hierarchical", "hierarchical"), ("neighbour:age=0.5", "distributed"), ("neighbour:age=0", "distributed, loads known at once")];

/// Graphs at each point: quick, and the paper's.
const GRAPHS: [u32; 2] = [2_000, 100_000];

/// Migrations a unit of time where each takes twice as long as the text says, as an exchange of two messages would; and graphs, which are cheap at
/// the low loads of these points.
const SLOWER_RATE: u32 = 10;
const SLOWER_GRAPHS: [u32; 2] = [4_000, 100_000];

/// Processors.
const DIMENSION: u32 = 8;

pub(super) fn study() -> Study {
    let mut jobs = Vec::new();
    let mut point = |figure: u32, name: String, x: f64, (levels, children): (u32, u32), utilisation: f64, rate: u32| {
        let named = name.clone();
        jobs.push(Job::new(Item::Figure(figure), name, x, GRAPHS, move |seed, graphs| {
            responses(&STRATEGIES, &GraphStream { dimension: DIMENSION, levels, children, utilisation, rate, graphs }, &named, seed)
        }));
    };
    for (figure, graph) in [(6, (3, 2)), (7, (3, 3)), (8, (3, 4)), (9, (7, 1))] {
        for utilisation in [0.4, 0.5, 0.6, 0.7, 0.8, 0.9] {
            point(figure, String::new(), utilisation, graph, utilisation, 20);
        }
    }
    for utilisation in [0.5, 0.8] {
        let name = format!(", load {utilisation}");
        (2..=12).for_each(|children| point(10, name.clone(), children.into(), (1, children), utilisation, 20));
        (1..=9).for_each(|levels| point(11, name.clone(), levels.into(), (levels, 1), utilisation, 20));
        (1..=4).for_each(|levels| point(12, name.clone(), levels.into(), (levels, 2), utilisation, 20));
    }
    for (figure, utilisation) in [(13, 0.5), (14, 0.6), (15, 0.7), (16, 0.8)] {
        (4..=36).step_by(4).for_each(|rate| point(figure, String::new(), rate.into(), (3, 2), utilisation, rate));
    }
    for (children, utilisation) in [2, 3, 4].into_iter().flat_map(|children| [0.4, 0.5].map(|utilisation| (children, utilisation))) {
        let name = format!(", load {utilisation}");
        jobs.push(Job::new(Item::Section(6), format!("slower{name}"), f64::from(children), SLOWER_GRAPHS, move |seed, graphs| {
            let stream = GraphStream { dimension: DIMENSION, levels: 3, children, utilisation, rate: SLOWER_RATE, graphs };
            responses(&STRATEGIES[..2], &stream, &name, seed)
        }));
    }
    for utilisation in [0.5, 0.8] {
        jobs.push(Job::new(Item::Section(4), "locality", utilisation, [1_000, 5_000], move |seed, graphs| {
            locality(&GraphStream { dimension: DIMENSION, levels: 3, children: 2, utilisation, rate: 20, graphs }, seed)
        }));
    }
    Study { jobs, claims: claims::all() }
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

/// Mean response times in units, the mean time of a graph on one processor.
fn responses(strategies: &[(&str, &str)], stream: &GraphStream, name: &str, seed: u64) -> Result<Vec<Value>> {
    let of = |&(scheduler, curve): &(&str, &str)| {
        let record = stream.run(scheduler, seed, false)?;
        let responses = record.responses.ok_or_else(|| Error::Failed(format!("{scheduler}: no graph was answered")))?;
        Ok(Value::new(format!("{curve}{name}"), from_interval(responses.response_mean, responses.response_ci95, responses.graphs)?))
    };
    strategies.iter().map(of).collect()
}

/// The mean of a stream, whose interval comes from batches of consecutive graphs.
fn from_interval(value: f64, [low, high]: [f64; 2], cases: u64) -> Result<Mean> {
    let freedom = if cases >= 2 * BATCHES as u64 { BATCHES as f64 } else { cases as f64 } - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).map_err(|why| Error::Failed(why.to_string()))?;
    Ok(Mean { value, error: (high - low) / 2.0 / student.inverse_cdf(0.975), freedom, cases })
}

/// Distance between where a task ran and where it was born, which is where its parent ran; and migrations of a task: means and the most.
fn locality(stream: &GraphStream, seed: u64) -> Result<Vec<Value>> {
    let topology = Topology::parse(&format!("hypercube:{DIMENSION}"), 1 << DIMENSION)?;
    let mut values = Vec::new();
    for (scheduler, curve) in STRATEGIES {
        let record = stream.run(scheduler, seed, true)?;
        let mut distances = Vec::new();
        for node in &record.timeline {
            // Roots are born on the host, node 0: what is born there is left out.
            let mut ran: Vec<_> = node.entries.iter().filter_map(executed).filter(|name| name.born != 0).collect();
            // A task has a line for each slice.
            ran.sort_unstable();
            ran.dedup();
            distances.extend(ran.into_iter().map(|name| f64::from(topology.distance(name.born, node.node))));
        }
        let mean = Mean::of(&distances).ok_or_else(|| Error::Failed(format!("{scheduler}: no task ran")))?;
        let migrations = record.migrated as f64 / record.tasks.max(1) as f64;
        let exact = |what: &str, value: f64| Value::new(format!("{what}, {curve}"), Mean { cases: record.tasks, ..Mean::exact(value) });
        values.push(Value::new(format!("hops from birth to execution, {curve}"), mean));
        values.push(exact("most hops from birth to execution", distances.iter().copied().fold(0.0, f64::max)));
        values.push(exact("migrations of a task", migrations));
    }
    Ok(values)
}

fn executed(entry: &TraceEntry) -> Option<equipoise::schedule::accounting::Name> {
    matches!(entry.what, Happening::Executed { .. }).then_some(entry.task).flatten()
}
