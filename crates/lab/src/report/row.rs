//! What reports tell of one balancer on one case, from either kind of record.

use super::table;
use crate::experiment::{BalanceRecord, CompareRecord, LoadMap};

/// One balancer on one case, from either kind of record.
pub(super) struct Row<'a> {
    pub balancer: &'a str,
    pub topology: String,
    pub native: bool,
    pub imbalance: [f64; 2],
    pub moved: u64,
    /// Both only where quotas were met exactly.
    pub least: Option<u64>,
    pub optimum: Option<u128>,
    pub hops: u128,
    pub declined: bool,
    pub steps: u32,
    pub messages: u64,
    pub bytes: u64,
    pub host_bytes: u64,
    /// Information, decision, exchange.
    pub parts: [f64; 3],
    pub ms: f64,
    pub interval: Option<[f64; 2]>,
    pub coverage: f64,
    pub break_even_us: Option<f64>,
    /// How long a step takes after the phase, where loads are times.
    pub step_us: Option<f64>,
    pub map: &'a LoadMap,
}

impl<'a> From<&'a CompareRecord> for Row<'a> {
    fn from(record: &'a CompareRecord) -> Row<'a> {
        Row {
            balancer: &record.balancer,
            topology: table::kind_of(&record.map.topology, &record.topology),
            native: record.native,
            imbalance: [record.imbalance_before, record.imbalance_after],
            moved: record.moved,
            least: record.exact.then_some(record.least),
            hops: record.task_hops,
            optimum: record.optimum_task_hops.filter(|_| record.exact),
            declined: record.declined,
            steps: record.steps,
            messages: record.messages,
            bytes: record.bytes,
            host_bytes: record.host_bytes,
            parts: [record.ms_information, record.ms_decision, record.ms_exchange],
            ms: record.ms_median,
            interval: record.ms_ci95.filter(|_| record.site.network.is_none()),
            coverage: record.ms_coverage,
            break_even_us: record.break_even_us,
            step_us: record.weighing.unit_seconds.map(|seconds| record.makespan_after * seconds * 1e6),
            map: &record.map,
        }
    }
}

impl<'a> From<&'a BalanceRecord> for Row<'a> {
    fn from(record: &'a BalanceRecord) -> Row<'a> {
        Row {
            balancer: &record.balancer,
            topology: table::kind_of(&record.map.topology, &record.topology),
            native: record.native,
            imbalance: [record.imbalance.before.max_over_mean, record.imbalance.after.max_over_mean],
            moved: record.nonlocal_tasks,
            least: record.exact.then_some(record.minimum_nonlocal),
            hops: record.task_hops,
            optimum: record.optimum_task_hops.filter(|_| record.exact),
            declined: record.declined,
            steps: record.steps,
            messages: record.messages,
            bytes: record.bytes,
            host_bytes: record.host_bytes,
            parts: [record.ms_information, record.ms_decision, record.ms_exchange],
            ms: record.seconds * 1e3,
            interval: None,
            coverage: 0.0,
            break_even_us: record.break_even_us,
            step_us: record.weighing.unit_seconds.map(|seconds| record.makespan_after * seconds * 1e6),
            map: &record.map,
        }
    }
}
