//! The record of a measured phase, and the measurements of which it is made.

use std::rc::Rc;

use serde::Serialize;

use equipoise::balance::Chosen;
use equipoise::error::{Error, Result};
use equipoise::load::{ColumnRatio, Crossings, Occupancy};
use equipoise::phase::Outcome;
use equipoise::phase::trace::Trace;
use equipoise::topology::Overlay;

use super::super::crossover::{Crossover, PhaseCost};
use super::super::interruption::Interruption;
use super::super::judged::Judged;
use super::super::load_source::LoadSource;
use super::super::site::{Imbalances, LoadMap, Site, milliseconds};
use super::super::statistics::{self, Estimate};
use super::super::tasks::Tasks;
use super::super::weighing::{LoadUnit, Weighing};
use super::Sample;

/// One balancer on one case. Serialised, it is a line of `compare --output json`.
#[derive(Clone, Debug, Serialize)]
pub struct CompareRecord {
    pub balancer: String,
    /// The rule by which its nodes are placed on ranks, where several are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<&'static str>,
    pub topology: String,
    /// Whether every node has a rank of its own.
    pub native: bool,
    #[serde(flatten)]
    pub site: Site,
    pub nodes: u32,
    pub loads: Rc<LoadSource>,
    /// Bytes that a task carries.
    pub payload: u64,
    /// Number of tasks.
    pub tasks: u64,
    #[serde(flatten)]
    pub weighing: Weighing,
    /// Number of measured rounds; one in simulation, where every round gives the same result.
    pub repeat: u32,
    /// max/mean load over ranks.
    pub imbalance_before: f64,
    pub imbalance_after: f64,
    /// Imbalance by all definitions.
    pub imbalance: Imbalances,
    /// Tasks that left their node, or with weights their work units.
    pub moved: u64,
    /// Minimum of `moved` with which the quotas are met exactly.
    pub least: u64,
    pub task_hops: u128,
    /// Minimum task-hops with which every node reaches its quota; `None` with weights, and above 4,096 nodes.
    pub optimum_task_hops: Option<u128>,
    /// Task-hops (with weights: work-hops) over their minimum; `None` if that is unknown, or no bound because not all quotas were met.
    pub hops_ratio: Option<f64>,
    /// Whether every node ended at its reachable quota.
    pub exact: bool,
    /// Whether the balancer declined moves of its rule, since they would have made the slowest rank slower.
    pub declined: bool,
    /// Collective operations that the phase used; omitted by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collectives: Option<&'static str>,
    /// Longest chain of dependent messages.
    pub steps: u32,
    /// Messages between ranks, and their bytes.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes that crossed from host to host.
    pub host_bytes: u64,
    /// Milliseconds of the slowest node: median over the rounds, and its confidence interval; `None` after one round on real ranks.
    pub ms_median: f64,
    pub ms_ci95: Option<[f64; 2]>,
    /// Coverage of the interval: less than 0.95 for few rounds; 1 in simulation, where nothing varies.
    pub ms_coverage: f64,
    /// Milliseconds of every round. The rounds of all records of a comparison are the same ones; of one that was interrupted some records may have
    /// one more.
    pub ms_rounds: Vec<f64>,
    /// Parts of the slowest node's time: medians over the rounds.
    pub ms_information: f64,
    pub ms_decision: f64,
    pub ms_exchange: f64,
    /// Task length, on a rank of average power, from which the phase pays with the cores that the ranks have; `None` if it never does.
    pub break_even_us: Option<f64>,
    /// Longest time of a rank that has a core of its own, in unit tasks on a rank of average power.
    pub finish_before: f64,
    pub finish_after: f64,
    /// Time until all ranks are done with the cores that they have, in the same unit; longer than `finish` where ranks share cores.
    pub makespan_before: f64,
    pub makespan_after: f64,
    /// Lower bound on max/mean over ranks for any assignment of these tasks: all work over all power, the largest task on the fastest rank,
    /// and pinned work in place.
    pub imbalance_bound: f64,
    /// Excess of the imbalance after the phase over that bound, relative to the bound.
    pub above_bound: f64,
    /// Bytes between tasks that cross ranks and hosts, where it is known which tasks talk to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossings: Option<Crossings>,
    /// Largest load of each weight over its rank's fair share, where tasks have several weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<ColumnRatio>>,
    /// Bytes of tasks on each rank, where ranks have a capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Occupancy>,
    /// Number of steps for which the loads last, if it was given; the phase's time is spread over them.
    #[serde(skip)]
    pub lasting: Option<u64>,
    /// Seconds of a unit of work, if they were given; see [`unit_seconds`](CompareRecord::unit_seconds).
    #[serde(skip)]
    pub task_seconds: Option<f64>,
    /// Imbalance from which the phase pays; omitted if the duration of tasks is unknown.
    #[serde(flatten)]
    pub crossover: Option<Crossover>,
    /// Milliseconds predicted by simulating the phase on a measured network; omitted by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms_predicted: Option<f64>,
    /// Set if the comparison ended early: the record covers the rounds until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// Place among the balancers that were compared.
    #[serde(skip)]
    pub contender: usize,
    /// Position in the list of balancers from the simplest on. It breaks ties between equally good ones.
    #[serde(skip)]
    pub simplicity: usize,
    /// Loads for the pictures; not in JSON.
    #[serde(skip)]
    pub map: LoadMap,
    #[serde(skip)]
    pub trace: Option<Trace>,
}

impl CompareRecord {
    /// Notes the collective operations of the phase: MPI's if the world offered them, on a native overlay.
    pub fn note_collectives(&mut self, native: bool) {
        self.collectives = Some(if native && self.native { "native" } else { "own" });
    }

    /// Milliseconds of gathering information, deciding and exchanging tasks.
    pub fn parts(&self) -> [f64; 3] {
        [self.ms_information, self.ms_decision, self.ms_exchange]
    }

    /// The imbalance from which the phase pays, where the duration of a unit of work is known.
    pub(super) fn crossover_of_this(&self) -> Option<Crossover> {
        let unit = self.unit_seconds()?;
        if self.imbalance_before > 1.0 && self.imbalance_after >= self.imbalance_before {
            // A phase without improvement never pays.
            return None;
        }
        let units = self.map.before.iter().map(|load| *load as f64).sum::<f64>();
        Crossover::of(&PhaseCost {
            phase: self.ms_median / 1e3,
            without_exchange: (self.ms_information + self.ms_decision) / 1e3,
            mean_step: units * unit / f64::from(self.site.ranks),
            steps: self.lasting.unwrap_or(1),
            after: self.imbalance_after,
            ranks: self.site.ranks,
        })
    }

    /// The confidence interval of the median time, where it was measured; simulated times repeat exactly.
    pub fn interval(&self) -> Option<[f64; 2]> {
        self.ms_ci95.filter(|_| self.site.network.is_none())
    }
}

/// The measurements of which a record is made.
pub(in crate::experiment) struct MeasuredPhase<'a> {
    pub balancer: &'a Chosen,
    pub overlay: &'a Overlay,
    pub loads: Rc<LoadSource>,
    pub tasks: &'a Tasks,
    pub judged: &'a Judged,
    /// Minimum hops, if they are known, in the tasks' unit.
    pub optimum: Option<u128>,
    /// The first one; counts and loads are the same in every round.
    pub outcome: &'a Outcome,
    pub samples: &'a [Sample],
    pub trace: Option<Trace>,
}

impl MeasuredPhase<'_> {
    pub fn record(self, site: &Site) -> Result<CompareRecord> {
        let MeasuredPhase { balancer, tasks, judged, optimum, outcome, samples, .. } = self;
        let Overlay { topology, placement } = self.overlay;
        let median = |part: usize| {
            let ms: Vec<f64> = samples.iter().map(|sample| milliseconds(sample[part])).collect();
            statistics::median(&ms).ok_or_else(|| unmeasured(balancer))
        };
        let Estimate { value: ms, low, high, coverage } = median(0)?;
        let counts = outcome.counts;
        let weighing = judged.weighing(tasks, outcome, optimum);
        let (moved, hops) = match &weighing.work {
            None => (tasks.count() - outcome.stayed, counts.task_hops),
            Some(work) => (work.nonlocal_work, work.work_hops),
        };
        Ok(CompareRecord {
            balancer: balancer.name.clone(),
            placement: None,
            topology: topology.name(),
            native: placement.native(),
            site: site.clone(),
            nodes: topology.nodes(),
            loads: self.loads,
            payload: tasks.payload(),
            tasks: tasks.count(),
            weighing,
            repeat: samples.len() as u32,
            imbalance_before: judged.imbalance.before.max_over_mean,
            imbalance_after: judged.imbalance.after.max_over_mean,
            imbalance: judged.imbalance,
            moved,
            least: judged.minimum_nonlocal,
            task_hops: counts.task_hops,
            optimum_task_hops: optimum.filter(|_| tasks.unit() == LoadUnit::Tasks),
            hops_ratio: optimum.filter(|_| judged.exact).and_then(|optimum| hops_ratio(hops, optimum)),
            exact: judged.exact,
            declined: outcome.declined,
            collectives: None,
            steps: counts.chain,
            messages: counts.messages,
            bytes: counts.bytes,
            host_bytes: counts.host_bytes,
            ms_median: ms,
            ms_ci95: (site.network.is_some() || samples.len() > 1).then_some([low, high]),
            ms_coverage: if site.network.is_some() { 1.0 } else { coverage },
            ms_rounds: samples.iter().map(|sample| milliseconds(sample[0])).collect(),
            ms_information: median(1)?.value,
            ms_decision: median(2)?.value,
            ms_exchange: median(3)?.value,
            break_even_us: judged.break_even_us((ms * 1e6) as u64),
            finish_before: judged.finish_before,
            finish_after: judged.finish_after,
            makespan_before: judged.makespan_before,
            makespan_after: judged.makespan_after,
            imbalance_bound: judged.imbalance_bound,
            above_bound: judged.imbalance.after.max_over_mean / judged.imbalance_bound - 1.0,
            crossings: outcome.crossings,
            columns: outcome.columns.clone(),
            memory: outcome.memory.clone(),
            lasting: None,
            task_seconds: None,
            crossover: None,
            ms_predicted: None,
            interrupted: None,
            contender: 0,
            simplicity: balancer.entry.simplicity(),
            map: LoadMap {
                topology: topology.clone(),
                placement: placement.clone(),
                quota: judged.quota.clone(),
                before: judged.loads.clone(),
                after: outcome.finals.clone(),
            },
            trace: self.trace,
        })
    }
}

/// 1 where nothing has to move and nothing did; none where something moved that did not have to.
fn hops_ratio(hops: u128, optimum: u128) -> Option<f64> {
    match (hops, optimum) {
        (0, 0) => Some(1.0),
        (_, 0) => None,
        (hops, optimum) => Some(hops as f64 / optimum as f64),
    }
}

pub(super) fn unmeasured(balancer: &Chosen) -> Error {
    Error::Failed(format!("{}: no phase was measured", balancer.name))
}
