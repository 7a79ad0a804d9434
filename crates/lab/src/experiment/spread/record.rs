//! The record of an input divided over ranks.

mod why;

use serde::Serialize;

use crate::divisible::spread::{Range, SpreadEnding, SpreadPlan, TimeInterval};
use crate::experiment::site::Site;

use super::SpreadSetting;
use crate::divisible::spread::SpreadCosts;
use equipoise::topology::RankId;

/// One input, divided. Serialised with the answer, it is the line of `divide --output json`. Lists are by rank unless they say otherwise, times
/// are seconds since the distribution began.
#[derive(Clone, Debug, Serialize)]
pub struct SpreadRecord {
    pub input: String,
    /// Compression of the input, if any; then `bytes` is its unpacked size.
    pub unpacked_from: Option<&'static str>,
    pub bytes: u64,
    pub kernel: String,
    pub records: String,
    pub topology: String,
    /// The rank that had the input and got the answer.
    pub origin: RankId,
    /// Whether every node of the topology has a rank of its own.
    pub native: bool,
    #[serde(flatten)]
    pub site: Site,
    pub installments: u32,
    /// Origin of the costs.
    pub calibration: String,
    pub calibration_seconds: f64,
    /// Bytes of every rank's share.
    pub shares: Vec<u64>,
    /// Finish time of each rank; 0 without a share.
    pub finish: Vec<f64>,
    pub predicted_finish: Vec<f64>,
    /// Whether computing costs were known beforehand; if not, all predictions are 0.
    pub predicts: bool,
    /// Predicted and measured time until all answers were there.
    pub predicted: f64,
    pub makespan: f64,
    /// The latest finish less the earliest, over the latest; of ranks with a share.
    pub spread: f64,
    /// The originator alone over the makespan.
    pub speedup: f64,
    /// Time of the originator alone.
    pub sequential: f64,
    /// Whether that was measured with the baselines; otherwise it follows from the calibration, or from the speed of the originator in the run.
    pub sequential_is_measured: bool,
    /// Time after the makespan until output was collected; 0 if there is none.
    pub collecting: f64,
    pub split: Vec<Split>,
    pub links: Vec<LinkRecord>,
    /// Layered distribution compared with the paper's equations; omitted for other distributions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayersRecord>,
    /// Times of other ways to divide the same input; empty unless requested.
    pub baselines: Vec<Baseline>,
    /// Those that failed where the division had succeeded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baselines_failed: Vec<FailedBaseline>,
    /// Why one of them was faster, if one was.
    pub why: Option<String>,
    /// Predicted and measured timeline of each rank.
    #[serde(skip)]
    pub charts: Vec<[RankTimeline; 2]>,
}

/// A layered distribution, layer 0 first, by Blazewicz and Drozdowski 1995. They neglect the return of answers: `speedup` and `utilisation`
/// are until the last rank has computed its share, the record's own `speedup` is until all answers have arrived.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayersRecord {
    /// The part of the input that a rank of each layer computes, by equations 2 and 3.
    pub alpha: Vec<f64>,
    pub speedup: f64,
    pub model_speedup: f64,
    pub utilisation: f64,
    pub model_utilisation: f64,
}

/// Parts of a rank's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Split {
    /// Time from the beginning until it computes.
    pub waiting: f64,
    pub computing: f64,
    /// Between installments.
    pub pausing: f64,
    /// Time from its finish to the end of all.
    pub idle: f64,
    /// Seconds per byte, by the calibration and in the run; 0 without a share.
    pub calibrated: f64,
    pub achieved: f64,
    /// Maximum number of bytes of its share that waited for its worker.
    pub most_waiting: u64,
}

/// Traffic and costs of a link of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkRecord {
    /// Ranks.
    pub from: RankId,
    pub to: RankId,
    pub bytes: u64,
    pub startup: f64,
    pub seconds_per_byte: f64,
}

/// Another way to do the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    pub name: String,
    pub makespan: f64,
    /// Its makespan over that of the division.
    pub ratio: f64,
}

/// Another way to do the same that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedBaseline {
    pub name: String,
    /// A sentence.
    pub why: String,
}

/// Intervals in which a rank received its share, and computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankTimeline {
    pub sending: Vec<TimeInterval>,
    pub computing: Vec<TimeInterval>,
}

/// The parts of which a record is made.
pub(super) struct Made<'a> {
    pub setting: &'a SpreadSetting,
    pub input: String,
    pub unpacked_from: Option<&'static str>,
    pub site: Site,
    pub costs: &'a SpreadCosts,
    pub plan: &'a SpreadPlan,
    pub ranges: &'a [Range],
    pub ending: &'a SpreadEnding,
    pub offsets: &'a [i64],
    pub calibration: String,
    pub calibration_seconds: f64,
    pub predicts: bool,
}

impl Made<'_> {
    /// A time of a node's clock, since the distribution began.
    fn since(&self, node: usize, at: u64) -> f64 {
        let offset = self.offsets.get(node).copied().unwrap_or(0);
        (at.wrapping_add_signed(offset) as i64).saturating_sub(self.ending.began as i64) as f64 / 1e9
    }

    fn timeline(&self, node: usize) -> RankTimeline {
        let report = &self.ending.reports[node];
        let interval =
            |&(begin, end): &(u64, u64)| TimeInterval { begin: self.since(node, begin).max(0.0), end: self.since(node, end).max(0.0) };
        RankTimeline {
            sending: report.receiving.iter().map(interval).collect(),
            computing: report.computing.iter().map(interval).collect(),
        }
    }

    pub fn record(&self) -> SpreadRecord {
        let Made { setting, costs, plan, ending, .. } = self;
        let predicts = |seconds: f64| if self.predicts { seconds } else { 0.0 };
        let placement = &setting.overlay.placement;
        let origin = setting.origin as usize;
        let node_of = |rank: RankId| placement.real_node_of(rank) as usize;
        let by_rank = |what: &dyn Fn(usize) -> f64| RankId::all(placement.ranks()).map(|rank| what(node_of(rank))).collect::<Vec<f64>>();
        let has_share = |node: usize| !ending.reports[node].computing.is_empty();
        let finish = by_rank(&|node| if has_share(node) { self.since(node, ending.reports[node].finished).max(0.0) } else { 0.0 });
        let makespan = (ending.ended - ending.began) as f64 / 1e9;
        let shared = RankId::all(placement.ranks()).filter(|&rank| has_share(node_of(rank))).map(|rank| finish[rank.index()]);
        let (least, most) = shared.fold((f64::INFINITY, 0.0f64), |(least, most), at| (least.min(at), most.max(at)));
        let split = |rank: RankId| {
            let node = node_of(rank);
            let computing = self.timeline(node).computing;
            let (Some(first), Some(last)) = (computing.first(), computing.last()) else {
                return Split { idle: makespan, calibrated: predicts(costs.compute[node]), ..Split::default() };
            };
            let reads = if node == origin { costs.links[origin].per_byte } else { 0.0 };
            let busy = ending.reports[node].busy as f64 / 1e9;
            Split {
                waiting: first.begin,
                computing: busy,
                pausing: (last.end - first.begin - busy).max(0.0),
                idle: (makespan - last.end).max(0.0),
                calibrated: predicts(costs.compute[node] + reads),
                achieved: busy / (self.ranges[node].len().max(1)) as f64,
                most_waiting: ending.reports[node].waiting,
            }
        };
        let links = ending.reports.iter().zip(0..).flat_map(|(report, node)| {
            report.sent.iter().map(move |&(to, bytes)| LinkRecord {
                from: placement.rank_of(node),
                to: placement.rank_of(to),
                bytes,
                startup: costs.links[to as usize].startup,
                seconds_per_byte: costs.links[to as usize].per_byte,
            })
        });
        let busy = ending.reports[origin].busy as f64 / 1e9;
        let sequential = match self.predicts {
            true => costs.start[origin] + costs.own(setting.origin) * setting.length as f64,
            false => busy / self.ranges[origin].len().max(1) as f64 * setting.length as f64,
        };
        // Answers are short: what they cost on their way to the originator is to begin.
        let way_home = |node: usize| setting.tree.way_up(node as u32).map(|link| costs.links[link as usize].startup).sum::<f64>();
        let answered =
            (0..plan.shares.len()).filter(|node| plan.shares[*node] > 0).map(|node| plan.predicted.finish[node] + way_home(node));
        let predicted = predicts(answered.fold(0.0, f64::max));
        let charts = RankId::all(placement.ranks()).map(|rank| {
            let node = node_of(rank);
            let expected = match self.predicts {
                true => RankTimeline { sending: plan.predicted.sending[node].clone(), computing: plan.predicted.computing[node].clone() },
                false => RankTimeline::default(),
            };
            [expected, self.timeline(node)]
        });
        let layers = setting.layers.as_ref().map(|layers| {
            let alpha = layers.shares(costs, setting.length, self.predicts);
            let (speedup, model, ranks) = (ratio(sequential, most), 1.0 / alpha[0], f64::from(placement.ranks()));
            LayersRecord { alpha, speedup, model_speedup: model, utilisation: speedup / ranks, model_utilisation: model / ranks }
        });
        SpreadRecord {
            layers,
            input: self.input.clone(),
            unpacked_from: self.unpacked_from,
            bytes: setting.length,
            kernel: setting.computation.name(),
            records: setting.records.to_string(),
            topology: setting.overlay.topology.name(),
            origin: setting.origin_rank,
            native: placement.native(),
            site: self.site.clone(),
            installments: plan.installments,
            calibration: self.calibration.clone(),
            calibration_seconds: self.calibration_seconds,
            shares: RankId::all(placement.ranks()).map(|rank| self.ranges[node_of(rank)].len()).collect(),
            finish,
            predicted_finish: by_rank(&|node| predicts(plan.predicted.finish[node])),
            predicts: self.predicts,
            predicted,
            makespan,
            spread: if most > 0.0 { (most - least) / most } else { 0.0 },
            speedup: ratio(sequential, makespan),
            sequential,
            sequential_is_measured: false,
            collecting: 0.0,
            split: RankId::all(placement.ranks()).map(split).collect(),
            links: links.collect(),
            baselines: Vec::new(),
            baselines_failed: Vec::new(),
            why: None,
            charts: charts.collect(),
        }
    }
}

impl SpreadRecord {
    /// Enters what the same took otherwise.
    pub(super) fn compare(&mut self, measured: Vec<(String, Result<f64, String>)>) {
        let mut baselines = Vec::new();
        for (name, taken) in measured {
            match taken {
                Ok(taken) => baselines.push((name, taken)),
                Err(why) => self.baselines_failed.push(FailedBaseline { name, why }),
            }
        }
        let originator = super::alone(self.origin);
        if let Some((_, alone)) = baselines.iter().find(|(name, _)| *name == originator) {
            self.sequential = *alone;
            self.sequential_is_measured = true;
            self.speedup = ratio(*alone, self.makespan);
        }
        let makespan = self.makespan;
        let baseline = |(name, taken)| Baseline { name, makespan: taken, ratio: ratio(taken, makespan) };
        self.baselines = baselines.into_iter().map(baseline).collect();
        self.why = why::not_fastest(self);
    }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 1.0 }
}
