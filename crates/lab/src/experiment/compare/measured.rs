//! The record of a measured phase.

use std::rc::Rc;

use equipoise::balance::Chosen;
use equipoise::error::{Error, Result};
use equipoise::phase::Outcome;
use equipoise::phase::trace::Trace;
use equipoise::topology::Overlay;

use super::super::judged::Judged;
use super::super::load_source::LoadSource;
use super::super::site::{LoadMap, Site, milliseconds};
use super::super::statistics::{self, Estimate};
use super::super::tasks::Tasks;
use super::super::weighing::LoadUnit;
use super::{CompareRecord, Sample};

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
