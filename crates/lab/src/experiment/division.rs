//! The record of a load divided by the model: the question and the solution.

use serde::Serialize;

use crate::divisible::model::{Ports, ProcessorShare, Question, Solution};

/// Maximum number of processors that are listed one by one.
pub const MOST_LISTED: usize = 4_096;

/// A division and its worth. Lists are by layer, the source first; times are seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ModelRecord {
    pub topology: String,
    pub ports: &'static str,
    pub source: u32,
    pub source_computes: bool,
    pub w: f64,
    pub z: f64,
    pub tcp: f64,
    pub tcm: f64,
    pub startup: f64,
    pub load: f64,
    #[serde(rename = "return")]
    pub results: f64,
    pub installments: usize,
    /// Method by which the division was found.
    pub method: &'static str,
    pub processors: u64,
    /// Number of processors of each layer.
    pub layers: Vec<u64>,
    /// The part of the load that one processor of each layer computes; their mean where they differ.
    pub alpha: Vec<f64>,
    /// The part of the load that one processor of each layer receives; their mean where they differ.
    pub volume: Vec<f64>,
    pub speedup: f64,
    pub utilisation: f64,
    pub equivalent_w: f64,
    pub makespan: f64,
    /// Arrival of the last share of each layer; empty where single processors were not calculated.
    pub arrival: Vec<f64>,
    /// Finish of the last processor of each layer; likewise.
    pub finish: Vec<f64>,
    /// Processors one by one, where those of a layer may differ; empty if there are more than [`MOST_LISTED`].
    pub by_processor: Vec<ProcessorRecord>,
    /// Rows of the Gantt chart: one for each layer, or for each processor.
    #[serde(skip)]
    pub rows: Vec<GanttRow>,
}

/// Share and times of one processor.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessorRecord {
    pub processor: u32,
    pub layer: u32,
    pub alpha: f64,
    pub volume: f64,
    pub arrival: f64,
    pub finish: f64,
}

/// Activity of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Computing,
    Sending,
    Returning,
}

/// A row of a Gantt chart.
#[derive(Clone, Debug)]
pub struct GanttRow {
    pub name: String,
    pub layer: u32,
    pub bars: Vec<GanttBar>,
}

/// One activity, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct GanttBar {
    pub activity: Activity,
    pub begin: f64,
    pub end: f64,
}

impl ModelRecord {
    /// The record of a question and its answer.
    pub fn new(question: &Question, solution: &Solution) -> ModelRecord {
        let Solution { layers, parts, .. } = solution;
        let latest = |time: fn(&ProcessorShare) -> f64| {
            let mut by_layer = vec![0.0; if parts.is_empty() { 0 } else { layers.len() }];
            for part in parts {
                by_layer[part.layer as usize] = time(part).max(by_layer[part.layer as usize]);
            }
            by_layer
        };
        let single = |part: &ProcessorShare| {
            Some(ProcessorRecord {
                processor: part.processor?,
                layer: part.layer,
                alpha: part.alpha,
                volume: part.volume,
                arrival: part.arrival,
                finish: part.finish,
            })
        };
        ModelRecord {
            topology: question.shape.name.clone(),
            ports: match question.ports {
                Ports::One => "one",
                Ports::All => "all",
            },
            source: question.source,
            source_computes: question.source_computes,
            w: question.w,
            z: question.z,
            tcp: question.tcp,
            tcm: question.tcm,
            startup: question.startup,
            load: question.load,
            results: question.results,
            installments: question.installments,
            method: solution.method.name(),
            processors: solution.processors,
            layers: layers.iter().map(|layer| layer.processors).collect(),
            alpha: layers.iter().map(|layer| layer.alpha).collect(),
            volume: layers.iter().map(|layer| layer.volume).collect(),
            speedup: solution.speedup,
            utilisation: solution.utilisation,
            equivalent_w: solution.equivalent_w,
            makespan: solution.makespan,
            arrival: latest(|part| part.arrival),
            finish: latest(|part| part.finish),
            by_processor: if parts.len() > MOST_LISTED { Vec::new() } else { parts.iter().filter_map(single).collect() },
            rows: parts.iter().map(row).collect(),
        }
    }
}

fn row(part: &ProcessorShare) -> GanttRow {
    let name = match part.processor {
        Some(processor) => format!("processor {processor}"),
        None => format!("layer {}", part.layer),
    };
    let computing = part.computing.iter().map(|&(begin, end)| GanttBar { activity: Activity::Computing, begin, end });
    let sending = part.sending.iter().map(|span| GanttBar { activity: Activity::Sending, begin: span.begin, end: span.end });
    let returning = part.returning.iter().map(|span| GanttBar { activity: Activity::Returning, begin: span.begin, end: span.end });
    GanttRow { name, layer: part.layer, bars: computing.chain(sending).chain(returning).collect() }
}
