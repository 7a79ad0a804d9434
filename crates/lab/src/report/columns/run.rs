//! The columns of runs under schedulers, and of a run's ranks.

use super::super::figures::{bytes, ratio, three, whole};
use super::super::run_times::{parts_of_time, range, time};
use super::{Column, Tabular, Value};
use crate::experiment::run::{ResponseTimes, Rounds};
use crate::experiment::{RunRecord, Scheduling};

impl Tabular for RunRecord {
    fn columns() -> Vec<Column<RunRecord>> {
        let new = Column::<RunRecord>::new;
        let shown = Column::<RunRecord>::shown;
        vec![
            new("scheduler", |r| r.scheduler.csv()).heading("scheduler").reads(|r| in_lines(&r.scheduler)).left(),
            new("workload", |r| r.workload.csv()),
            new("topology", |r| r.topology.csv()),
            new("native", |r| r.native.csv()),
            new("ranks", |r| r.site.ranks.csv()),
            new("hosts", |r| r.site.hosts.csv()),
            new("network", |r| r.site.network.csv()),
            new("seed", |r| r.site.seed.csv()),
            new("workers", |r| r.workers.csv()),
            new("unit_seconds", |r| r.unit_seconds.csv()),
            new("tasks", |r| r.tasks.csv()),
            new("joins", |r| r.joins.csv()),
            new("answer", |r| r.answer.csv()),
            new("known", |r| r.known.csv()),
            new("repeat", |r| of_rounds(r, |rounds| rounds.repeat).csv()),
            new("makespan", |r| r.makespan.csv())
                .heading("makespan")
                .reads(|r| time(r, r.typical().makespan))
                .about("time from the first submission to the last answer; median over the rounds"),
            shown("interval", |r| r.interval().map_or_else(|| "-".into(), |(interval, _)| range(r, interval)))
                .when(|records| are_finite(records) && records.iter().any(|r| r.interval().is_some()))
                .about("confidence interval of the median; with fewer than six rounds, their range"),
            shown("response", response)
                .when(are_streams)
                .about("mean response time of a stream's graphs, and half its 95 % interval"),
            shown("99th\nperc.", |r| of_responses(r, |times| times.response_p99).map_or_else(|| "-".into(), |p99| time(r, p99)))
                .when(are_streams)
                .about("99th percentile of the response times"),
            new("makespan_mean", |r| of_rounds(r, |rounds| rounds.makespan_mean).csv()),
            new("makespan_low", |r| makespan_interval(r).map(|interval| interval[0]).csv()),
            new("makespan_high", |r| makespan_interval(r).map(|interval| interval[1]).csv()),
            new("sequential", |r| r.sequential.csv()),
            new("sequential_is_plain", |r| r.sequential_is_plain.csv()),
            new("work", |r| r.work.csv()),
            new("efficiency", |r| r.efficiency.csv())
                .heading("effi\u{ad}ciency")
                .unit("%")
                .reads(|r| percent(r.typical().efficiency))
                .about("sequential time / (makespan x workers)"),
            new("largest", |r| r.largest.csv()),
            new("chain", |r| r.chain.csv()),
            new("bound", |r| r.bound.csv()),
            new("bound_efficiency", |r| r.bound_efficiency.csv())
                .heading("% of\nbound")
                .reads(|r| percent(r.typical().bound_efficiency))
                .when(are_finite)
                .about("lower bound / makespan; the bound is the longest chain, the largest task, or the\nsequential time / workers (or / the cores that they share), whichever is longest"),
            new("gain", |r| r.gain.csv())
                .heading("gain")
                .unit("%")
                .reads(gain)
                .when(are_finite)
                .about("achieved part of the gain over one worker that the bound allows"),
            shown("above\noptimum", |r| gap(r).map_or_else(|| "-".into(), percent))
                .unit("%")
                .when(|records| records.iter().any(|r| gap(r).is_some()))
                .about("excess of the makespan over the known optimum"),
            shown("idle", |r| share_of_time(r, 2)).unit("%").about("part of the workers' time spent waiting for tasks"),
            shown("over\u{ad}head", |r| share_of_time(r, 1))
                .unit("%")
                .about("part spent waiting while the rank received, decided, packed and joined;\nin simulation this takes no time"),
            shown("max/\nmean\nbusy", |r| if r.mean_busy() > 0.0 { ratio(r.most_busy() / r.mean_busy()) } else { "-".into() })
                .about("busy time of the busiest rank over the mean of all ranks"),
            new("messages", |r| r.messages.csv()).heading("msgs").reads(|r| whole(r.messages)).about("messages between ranks"),
            new("control", |r| r.control.csv()),
            new("bytes", |r| r.bytes.csv()).heading("bytes").reads(|r| bytes(r.bytes)).about("bytes in these messages"),
            new("migrated", |r| r.migrated.csv())
                .heading("mi\u{ad}grated")
                .reads(|r| whole(r.migrated))
                .about("task migrations from rank to rank"),
            new("regions", |r| r.regions.len().csv()),
            new("busy_least", |r| r.busy.iter().copied().fold(f64::INFINITY, f64::min).csv()),
            new("busy_mean", |r| r.mean_busy().csv()),
            new("busy_most", |r| r.most_busy().csv()),
            new("graphs", |r| r.responses.as_ref().map(|times| times.graphs).csv()),
            new("response_mean", |r| of_responses(r, |times| times.response_mean).csv()),
            new("response_low", |r| of_responses(r, |times| times.response_ci95[0]).csv()),
            new("response_high", |r| of_responses(r, |times| times.response_ci95[1]).csv()),
            new("response_p50", |r| of_responses(r, |times| times.response_p50).csv()),
            new("response_p90", |r| of_responses(r, |times| times.response_p90).csv()),
            new("response_p95", |r| of_responses(r, |times| times.response_p95).csv()),
            new("response_p99", |r| of_responses(r, |times| times.response_p99).csv()),
            new("scheduler_rank", |r| of_scheduling(r, |it| it.scheduler_rank).csv()),
            new("decisions", |r| of_scheduling(r, |it| it.decisions).csv()),
            new("expansions", |r| of_scheduling(r, |it| it.expansions).csv()),
            new("generated", |r| of_scheduling(r, |it| it.generated).csv()),
            new("search_time", |r| of_scheduling(r, |it| it.search_time).csv()),
            new("waiting_time", |r| of_scheduling(r, |it| it.waiting_time).csv()),
            new("min_min", |r| of_scheduling(r, |it| it.min_min).flatten().csv()),
            new("earliest_completion", |r| of_scheduling(r, |it| it.earliest_completion).csv()),
            new("optimum", |r| of_scheduling(r, |it| it.optimum).flatten().csv()),
            new("gap", |r| gap(r).csv()),
            new("task_response_mean", |r| of_scheduling(r, |it| it.task_response_mean).flatten().csv()),
            new("offered", |r| r.overload.map(|overload| overload.offered).csv()),
            new("served", |r| r.overload.map(|overload| overload.served).csv()),
            new("cores", |r| r.site.cores.csv()),
            new("makespan_median", |r| of_rounds(r, |rounds| rounds.typical.makespan).csv()),
            new("makespan_coverage", |r| of_rounds(r, |rounds| rounds.makespan_coverage).flatten().csv()),
            new("sequential_median", |r| of_rounds(r, |rounds| rounds.typical.sequential).csv()),
            new("efficiency_median", |r| of_rounds(r, |rounds| rounds.typical.efficiency).csv()),
            new("bound_efficiency_median", |r| of_rounds(r, |rounds| rounds.typical.bound_efficiency).csv()),
        ]
    }
}

fn are_streams(records: &[RunRecord]) -> bool {
    records.iter().any(|record| record.responses.is_some())
}

/// The makespan of a stream depends on its arrivals, so no bound says how good it is.
fn are_finite(records: &[RunRecord]) -> bool {
    !are_streams(records)
}

fn of_rounds<T>(record: &RunRecord, part: fn(&Rounds) -> T) -> Option<T> {
    record.rounds.as_ref().map(part)
}

fn of_responses(record: &RunRecord, part: fn(&ResponseTimes) -> f64) -> Option<f64> {
    record.responses.as_ref().map(part)
}

fn of_scheduling<T>(record: &RunRecord, part: fn(&Scheduling) -> T) -> Option<T> {
    record.scheduling.as_ref().map(part)
}

fn makespan_interval(record: &RunRecord) -> Option<[f64; 2]> {
    of_rounds(record, |rounds| rounds.makespan_ci95).flatten()
}

/// Relative excess of the median makespan over the optimum, where that is known.
fn gap(record: &RunRecord) -> Option<f64> {
    of_scheduling(record, |scheduling| scheduling.gap).flatten()
}

fn response(record: &RunRecord) -> String {
    let Some(times) = &record.responses else { return "-".into() };
    // The lower end is no less than 0.
    let half = times.response_ci95[1] - times.response_mean;
    format!("{} \u{b1} {}", time(record, times.response_mean), time(record, half))
}

fn percent(share: f64) -> String {
    three(100.0 * share)
}

fn gain(record: &RunRecord) -> String {
    match record.typical().gain {
        None => "-".into(),
        Some(gain) if gain < 0.0 => "none".into(),
        Some(gain) => percent(gain),
    }
}

/// One of the [parts of the time](parts_of_time) in percent of all.
fn share_of_time(record: &RunRecord, part: usize) -> String {
    let parts = parts_of_time(record);
    match parts.iter().sum::<f64>() {
        0.0 => "-".into(),
        all => format!("{:.1}", 100.0 * parts[part] / all),
    }
}

/// A scheduler's name, broken into lines where it has many options.
fn in_lines(name: &str) -> String {
    const LONG: usize = 20;
    if name.len() > LONG { name.replace(':', ":\n").replace(',', ",\n") } else { name.to_string() }
}

/// The times of one rank of a run.
pub(in crate::report) struct RankTimes<'a> {
    pub record: &'a RunRecord,
    /// The rank, and the reason for its selection.
    pub name: String,
    pub rank: usize,
}

impl Tabular for RankTimes<'_> {
    fn columns() -> Vec<Column<Self>> {
        let shown = Column::<Self>::shown;
        vec![
            shown("rank", |row| row.name.clone()),
            shown("busy", |row| time(row.record, row.record.busy[row.rank])),
            shown("busy", |row| {
                let (busy, idle) = (row.record.busy[row.rank], row.record.idle[row.rank]);
                if busy + idle > 0.0 { percent(busy / (busy + idle)) } else { "-".into() }
            })
            .unit("%"),
            shown("idle", |row| time(row.record, row.record.idle[row.rank])),
            shown("overhead", |row| time(row.record, row.record.overhead[row.rank])),
        ]
    }
}
