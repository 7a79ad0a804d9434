//! CSV: one row a record, one column a figure.

use std::io::{self, Write};

use crate::experiment::{BalanceRecord, CompareRecord};

const COMPARE: [&str; 41] = [
    "balancer",
    "topology",
    "native",
    "ranks",
    "hosts",
    "network",
    "seed",
    "nodes",
    "loads",
    "payload",
    "tasks",
    "repeat",
    "imbalance_before",
    "imbalance_after",
    "excess_before",
    "excess_after",
    "mean_over_max_before",
    "mean_over_max_after",
    "moved",
    "least",
    "task_hops",
    "hops_ratio",
    "steps",
    "messages",
    "bytes",
    "host_bytes",
    "ms_median",
    "ms_low",
    "ms_high",
    "ms_coverage",
    "ms_information",
    "ms_decision",
    "ms_exchange",
    "break_even_us",
    "finish_before",
    "finish_after",
    "unit",
    "largest_task",
    "pinned_tasks",
    "deviation",
    "best_deviation",
];

/// Writes the records of a comparison, with a header. What is unknown is empty.
///
/// # Errors
/// If the writer fails.
pub fn compare(out: impl Write, records: &[CompareRecord]) -> io::Result<()> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(COMPARE)?;
    for record in records {
        table.write_record(row(record))?;
    }
    table.flush()
}

fn row(record: &CompareRecord) -> [String; COMPARE.len()] {
    let or_empty = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let (before, after) = (&record.imbalance.before, &record.imbalance.after);
    [
        record.balancer.clone(),
        record.topology.clone(),
        record.native.to_string(),
        record.site.ranks.to_string(),
        record.site.hosts.to_string(),
        record.site.network.clone().unwrap_or_default(),
        record.site.seed.to_string(),
        record.nodes.to_string(),
        record.loads.clone(),
        record.payload.to_string(),
        record.tasks.to_string(),
        record.repeat.to_string(),
        record.imbalance_before.to_string(),
        record.imbalance_after.to_string(),
        before.max_over_mean_less_one.to_string(),
        after.max_over_mean_less_one.to_string(),
        before.mean_over_max.to_string(),
        after.mean_over_max.to_string(),
        record.moved.to_string(),
        record.least.to_string(),
        record.task_hops.to_string(),
        or_empty(record.hops_ratio),
        record.steps.to_string(),
        record.messages.to_string(),
        record.bytes.to_string(),
        record.host_bytes.to_string(),
        record.ms_median.to_string(),
        record.ms_ci95[0].to_string(),
        record.ms_ci95[1].to_string(),
        record.ms_coverage.to_string(),
        record.ms_information.to_string(),
        record.ms_decision.to_string(),
        record.ms_exchange.to_string(),
        or_empty(record.break_even_us),
        record.finish_before.to_string(),
        record.finish_after.to_string(),
        record.weighing.unit.to_string(),
        record.weighing.largest_task.to_string(),
        record.weighing.pinned_tasks.to_string(),
        record.weighing.deviation.to_string(),
        record.weighing.best_deviation.to_string(),
    ]
}

/// Writes the nodes of one phase, with a header: what each had, should have and has.
///
/// # Errors
/// If the writer fails.
pub fn balance(out: impl Write, record: &BalanceRecord) -> io::Result<()> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(["node", "power", "load", "quota", "final"])?;
    for (node, load) in record.loads.iter().enumerate() {
        let (power, quota, last) = (record.powers.shown(node), record.quota[node], record.finals[node]);
        table.write_record([node.to_string(), power, load.to_string(), quota.to_string(), last.to_string()])?;
    }
    table.flush()
}
