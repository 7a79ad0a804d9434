//! CSV: one row a record, one column a figure.

use std::io::{self, Write};

use crate::experiment::{BalanceRecord, CompareRecord, RunRecord, SpreadRecord};

const COMPARE: [&str; 47] = [
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
    "exact",
    "declined",
    "cores",
    "unit_seconds",
    "makespan_before",
    "makespan_after",
];

/// Writes the records of a comparison, with a header. What is unknown is empty.
///
/// # Errors
/// If the writer fails.
pub fn compare(out: impl Write, records: &[CompareRecord]) -> io::Result<()> {
    table(out, COMPARE, records.iter().map(row))
}

fn table<const N: usize>(out: impl Write, header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> io::Result<()> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(header)?;
    for row in rows {
        table.write_record(row)?;
    }
    table.flush()
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn row(record: &CompareRecord) -> [String; COMPARE.len()] {
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
        or_empty(record.ms_ci95.map(|interval| interval[0])),
        or_empty(record.ms_ci95.map(|interval| interval[1])),
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
        record.exact.to_string(),
        record.declined.to_string(),
        or_empty(record.site.cores),
        or_empty(record.weighing.unit_seconds),
        record.makespan_before.to_string(),
        record.makespan_after.to_string(),
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

const RUN: [&str; 58] = [
    "scheduler",
    "workload",
    "topology",
    "native",
    "ranks",
    "hosts",
    "network",
    "seed",
    "workers",
    "unit_seconds",
    "tasks",
    "joins",
    "answer",
    "known",
    "repeat",
    "makespan",
    "makespan_mean",
    "makespan_low",
    "makespan_high",
    "sequential",
    "sequential_is_plain",
    "work",
    "efficiency",
    "largest",
    "chain",
    "bound",
    "bound_efficiency",
    "gain",
    "messages",
    "control",
    "bytes",
    "migrated",
    "regions",
    "busy_least",
    "busy_mean",
    "busy_most",
    "graphs",
    "response_mean",
    "response_low",
    "response_high",
    "response_p50",
    "response_p90",
    "response_p95",
    "response_p99",
    "scheduler_rank",
    "decisions",
    "expansions",
    "generated",
    "search_time",
    "waiting_time",
    "min_min",
    "earliest_completion",
    "optimum",
    "gap",
    "task_response_mean",
    "offered",
    "served",
    "cores",
];

/// Writes runs of spawning tasks, with a header. What there is not, is empty.
///
/// # Errors
/// If the writer fails.
pub fn run(out: impl Write, records: &[RunRecord]) -> io::Result<()> {
    table(out, RUN, records.iter().map(run_row))
}

fn run_row(record: &RunRecord) -> [String; RUN.len()] {
    let (rounds, responses, scheduling) = (record.rounds.as_ref(), record.responses.as_ref(), record.scheduling.as_ref());
    let [low, mean, high] = match rounds {
        Some(rounds) => {
            let [low, high] = [0, 1].map(|end| or_empty(rounds.makespan_ci95.map(|interval| interval[end])));
            [low, rounds.makespan_mean.to_string(), high]
        }
        None => Default::default(),
    };
    let ranks = record.busy.len().max(1) as f64;
    [
        record.scheduler.clone(),
        record.workload.clone(),
        record.topology.clone(),
        record.native.to_string(),
        record.site.ranks.to_string(),
        record.site.hosts.to_string(),
        record.site.network.clone().unwrap_or_default(),
        record.site.seed.to_string(),
        record.workers.to_string(),
        record.unit.seconds.to_string(),
        record.tasks.to_string(),
        record.joins.to_string(),
        record.answer.to_string(),
        or_empty(record.known),
        or_empty(rounds.map(|rounds| rounds.repeat)),
        record.makespan.to_string(),
        mean,
        low,
        high,
        record.sequential.to_string(),
        record.sequential_is_plain.to_string(),
        record.work.to_string(),
        record.efficiency.to_string(),
        record.largest.to_string(),
        record.chain.to_string(),
        record.bound.to_string(),
        record.bound_efficiency.to_string(),
        or_empty(record.gain),
        record.messages.to_string(),
        record.control.to_string(),
        record.bytes.to_string(),
        record.migrated.to_string(),
        record.regions.len().to_string(),
        record.busy.iter().copied().fold(f64::INFINITY, f64::min).to_string(),
        (record.busy.iter().sum::<f64>() / ranks).to_string(),
        record.busy.iter().copied().fold(0.0, f64::max).to_string(),
        or_empty(responses.map(|responses| responses.graphs)),
        or_empty(responses.map(|responses| responses.response_mean)),
        or_empty(responses.map(|responses| responses.response_ci95[0])),
        or_empty(responses.map(|responses| responses.response_ci95[1])),
        or_empty(responses.map(|responses| responses.response_p50)),
        or_empty(responses.map(|responses| responses.response_p90)),
        or_empty(responses.map(|responses| responses.response_p95)),
        or_empty(responses.map(|responses| responses.response_p99)),
        or_empty(scheduling.map(|scheduling| scheduling.scheduler_rank)),
        or_empty(scheduling.map(|scheduling| scheduling.decisions)),
        or_empty(scheduling.map(|scheduling| scheduling.expansions)),
        or_empty(scheduling.map(|scheduling| scheduling.generated)),
        or_empty(scheduling.map(|scheduling| scheduling.search_time)),
        or_empty(scheduling.map(|scheduling| scheduling.waiting_time)),
        or_empty(scheduling.and_then(|scheduling| scheduling.min_min)),
        or_empty(scheduling.map(|scheduling| scheduling.earliest_completion)),
        or_empty(scheduling.and_then(|scheduling| scheduling.optimum)),
        or_empty(scheduling.and_then(|scheduling| scheduling.gap)),
        or_empty(scheduling.and_then(|scheduling| scheduling.task_response_mean)),
        or_empty(record.overload.map(|overload| overload.offered)),
        or_empty(record.overload.map(|overload| overload.served)),
        or_empty(record.site.cores),
    ]
}

const SPREAD: [&str; 11] =
    ["rank", "share", "calibrated", "achieved", "predicted_finish", "finish", "waiting", "computing", "pausing", "idle", "most_waiting"];

/// Writes the ranks of a division, with a header: bytes, seconds, seconds per byte.
///
/// # Errors
/// If the writer fails.
pub fn spread(out: impl Write, record: &SpreadRecord) -> io::Result<()> {
    let row = |(rank, split): (usize, &crate::experiment::spread::Split)| {
        [
            rank.to_string(),
            record.shares[rank].to_string(),
            split.calibrated.to_string(),
            split.achieved.to_string(),
            record.predicted_finish[rank].to_string(),
            record.finish[rank].to_string(),
            split.waiting.to_string(),
            split.computing.to_string(),
            split.pausing.to_string(),
            split.idle.to_string(),
            split.most_waiting.to_string(),
        ]
    };
    table(out, SPREAD, record.split.iter().enumerate().map(row))
}
