//! The distribution of Blazewicz and Drozdowski 1995, executed on simulated hypercubes whose directed links share nothing.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::super::Value;
use super::EXAMPLE;
use crate::divisible::model::hypercube::shares;
use crate::divisible::spread::Records as InputRecords;
use crate::experiment::spread::{Distribution, LayeredForm, SpreadSpec, spread};
use crate::workload::kernels::{Computation, Reduce};
use equipoise::error::{Error, Result};
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;

/// How the points of a figure are named that are executed: by their curve and this.
pub(super) const EXECUTED: &str = ", executed";

/// Seconds for a byte of a processor's computation, w Tcp.
const PER_BYTE: f64 = 200e-9;
/// Number of input lines per processor. With fewer lines, message headers and rounding to whole lines would distort the smallest shares.
const LINES_EACH: u32 = 900;
/// Dimensions of the figures' executed points.
const DIMENSIONS: std::ops::RangeInclusive<u32> = 1..=8;
/// Dimensions of figures 2 and 3, which are drawn by layer, that are executed.
const DIMENSIONS_BY_LAYER: [u32; 4] = [2, 4, 6, 8];

/// Result of an execution.
#[derive(Clone, Debug)]
struct Executed {
    speedup: f64,
    utilisation: f64,
    /// How far apart the processors end, in parts of the whole time.
    apart: f64,
    /// Each processor's part of the load.
    parts: Vec<f64>,
}

/// A temporary input file of lines of varying length, sized for this number of processors.
fn input(processors: u32) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    let mut out = BufWriter::new(&mut file);
    for line in 0..LINES_EACH * processors {
        writeln!(out, "line {line} {:1$}", "", line as usize * 7 % 90)?;
    }
    out.flush()?;
    drop(out);
    Ok(file)
}

/// Divides a file where a byte takes a processor `ratio` times as long as a link (infinitely as long where links take no time). Figures share
/// executions: what was executed before is not executed again.
fn executed(dimension: u32, ratio: f64) -> Result<Executed> {
    static DONE: Mutex<BTreeMap<(u32, u64), Executed>> = Mutex::new(BTreeMap::new());
    let key = (dimension, ratio.to_bits());
    let done = || DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = done().get(&key).cloned() {
        return Ok(known);
    }
    let found = execute(dimension, PER_BYTE / ratio)?;
    done().insert(key, found.clone());
    Ok(found)
}

/// Divides a file over links that take `link` seconds for a byte.
fn execute(dimension: u32, link: f64) -> Result<Executed> {
    let ranks = 1 << dimension;
    let failed = |why: String| Error::Failed(why);
    let input = input(ranks).map_err(|why| failed(format!("the input to divide cannot be written: {why}")))?;
    let topology = Topology::parse("hypercube", ranks)?;
    let spec = SpreadSpec {
        input: input.path().into(),
        raw: false,
        computation: Computation::parse("count", false).map_err(|why| failed(why.to_string()))?,
        reduce: Reduce::Concat,
        records: InputRecords::Lines,
        overlay: Overlay::one_host(topology, ranks).map_err(|why| failed(why.to_string()))?,
        distribution: Distribution::Layers(LayeredForm::Hypercube),
        origin: RankId::FIRST,
        link: None,
        installments: None,
        calibration: None,
        pace: Some(vec![PER_BYTE; ranks as usize]),
        room: 1 << 30,
        patience: Duration::from_secs(60),
        baselines: false,
        sample: false,
        seed: 1,
    };
    let network =
        Network::parse(&format!("hops:latency=1us,per_byte={}ns,contention", link * 1e9)).map_err(|why| failed(why.to_string()))?;
    let mut world = World::simulated(ranks, Model { network, ..Model::default() });
    let record = spread(&mut world, &spec, Box::new(|_| Ok(())), Arc::new(|_, _| {}))?.map(|outcome| outcome.record);
    let record = record.ok_or_else(|| failed("the first rank is not here".into()))?;
    let layers = record.layers.as_ref().ok_or_else(|| failed("it was not divided in layers".into()))?;
    let parts = record.shares.iter().map(|share| *share as f64 / record.bytes as f64).collect();
    Ok(Executed { speedup: layers.speedup, utilisation: layers.utilisation, apart: record.spread, parts })
}

/// Against equations 1 to 3, for w Tcp = z Tcm.
pub(super) fn section(dimension: u32) -> Result<Vec<Value>> {
    let found = executed(dimension, 1.0)?;
    let value = |name: &str, value: f64| Value::exact(name, value, None, 0.0);
    Ok(vec![
        value("speed-up, executed", found.speedup),
        value("speed-up by equations 1 to 3", 1.0 / shares(dimension, &1.0, &1.0, &1.0, &1.0).alpha[0]),
        value("utilisation, executed", found.utilisation),
        value("finish times apart", found.apart),
    ])
}

/// The example of section 2: a 2-cube, all parameters 1.
pub(super) fn example() -> Result<Vec<Value>> {
    let Executed { speedup, utilisation, parts, .. } = executed(2, 1.0)?;
    // Of the two processors in layer 1, the one that is further from the example's share.
    let (first, second) = (parts[1], parts[2]);
    let middle = if (first - EXAMPLE[1].1).abs() < (second - EXAMPLE[1].1).abs() { second } else { first };
    let ours = [parts[0], middle, parts[3], speedup, utilisation];
    Ok(EXAMPLE.iter().zip(ours).map(|((name, _), ours)| Value::exact(format!("{name}{EXECUTED}"), ours, None, 0.0)).collect())
}

/// The points of a figure.
pub(super) fn curves(number: u32) -> Result<Vec<Value>> {
    if number <= 3 {
        let layers = DIMENSIONS_BY_LAYER.map(|dimension| by_layer(number, dimension));
        return layers.into_iter().collect::<Result<Vec<_>>>().map(|values| values.concat());
    }
    // What the curves are drawn for.
    let (parameter, values): (&str, &[f64]) = match number {
        4 => ("w", &[0.1, 1.0, 10.0]),
        6 => ("Tcp", &[0.1, 1.0, 10.0]),
        _ => ("z", &[0.0, 0.1, 1.0, 10.0]),
    };
    let mut points = Vec::new();
    for value in values {
        for dimension in DIMENSIONS {
            let found = executed(dimension, if parameter == "z" { 1.0 / value } else { *value })?;
            let d = f64::from(dimension);
            let (x, y) = match number {
                4 => (d, value / found.speedup),
                5 | 6 => (d, 1.0 / found.speedup),
                7 => (d.exp2(), found.speedup),
                _ => (d, found.utilisation),
            };
            points.push(Value { x: Some(x), ..Value::exact(format!("{parameter} = {value}{EXECUTED}"), y, None, 0.0) });
        }
    }
    Ok(points)
}

/// The parts of the load by layer: figure 2 of each processor (on average), figure 3 of all together.
fn by_layer(number: u32, dimension: u32) -> Result<Vec<Value>> {
    let parts = executed(dimension, 1.0)?.parts;
    let of = |layer: u32| {
        let held: Vec<f64> = (0u32..).zip(&parts).filter(|(node, _)| node.count_ones() == layer).map(|(_, part)| *part).collect();
        let sum: f64 = held.iter().sum();
        let y = if number == 2 { sum / held.len() as f64 } else { sum };
        Value { x: Some(f64::from(layer)), ..Value::exact(format!("d = {dimension}{EXECUTED}"), y, None, 0.0) }
    };
    Ok((0..=dimension).map(of).collect())
}
