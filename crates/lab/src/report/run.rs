//! Runs under schedulers, for people.

use comfy_table::{ColumnConstraint, Table};

use super::columns::RankTimes;
use super::figures::{bytes, duration_us, several, three, whole};
use super::run_times::{has_unit, percent, range, time};
use super::table::{self, coverage, lines, place};
use super::verdict;
use crate::experiment::{RunRecord, Scheduling, Site};

/// Maximum number of ranks that are listed; of more, the quartiles are.
const LISTED: usize = 16;

/// Some lines about one run.
pub fn run(record: &RunRecord, width: u16) -> String {
    let topology = if record.native { "native" } else { "overlay" };
    let RunRecord { scheduler, workload, site, .. } = record;
    let mut out = format!("{workload} under {scheduler} on {} ({topology}), {}", record.topology, place(site));
    if record.workers > 1 {
        out.push_str(&format!(", {} each", several(record.workers.into(), "worker")));
    }
    out.push('\n');
    let mut line = |name: &str, text: String| out.push_str(&format!("  {name:<11}{text}\n"));
    line("answer", answer(record));
    line(
        "tasks",
        match record.scheduling {
            Some(_) => whole(record.tasks),
            None => format!("{}, of which {} waited for children", whole(record.tasks), whole(record.joins)),
        },
    );
    line("makespan", makespan(record));
    let plain = if record.sequential_is_plain {
        format!(", by a plain program; all tasks together {}", time(record, record.work))
    } else {
        ", all tasks together".into()
    };
    let typical = record.typical();
    line("sequential", format!("{}{plain}", time(record, typical.sequential)));
    line("efficiency", format!("{} of the ideal", percent(typical.efficiency)));
    match &record.scheduling {
        Some(scheduling) => of_scheduling(record, scheduling).into_iter().for_each(|(name, text)| line(name, text)),
        None => line("", against_the_bound(record)),
    }
    if let Some(shared) = shared_cores(&record.site) {
        line("cores", shared);
    }
    line(
        "cost",
        format!(
            "{}, {}, {} ({} to schedule)",
            several(record.migrated, "migration"),
            bytes(record.bytes),
            several(record.messages, "message"),
            whole(record.control)
        ),
    );
    if let Some(responses) = &record.responses {
        let [low, high] = responses.response_ci95;
        let mean = time(record, responses.response_mean);
        line(
            "response",
            format!("{mean} on average over {} (95 %: {} to {})", several(responses.graphs, "graph"), three(low), three(high)),
        );
        let at = |value| three(value);
        line(
            "",
            format!(
                "50 % {}, 90 % {}, 95 % {}, 99 % {}, most {}",
                at(responses.response_p50),
                at(responses.response_p90),
                at(responses.response_p95),
                at(responses.response_p99),
                at(responses.response_max)
            ),
        );
        if has_unit(record) {
            line("", format!("u, a graph's mean time, is {}", duration_us(record.unit_seconds * 1e6)));
        }
    }
    if record.overload.is_some() {
        line("overloaded", overloaded(record));
    }
    regions(record).into_iter().enumerate().for_each(|(index, text)| line(if index == 0 { "regions" } else { "" }, text));
    out.push_str(&ranks(record, width));
    if let Some(interruption) = &record.interrupted {
        out.push_str(&format!("{}\n", interruption.sentence("runs")));
    }
    out
}

/// Lines about independent tasks.
fn of_scheduling(record: &RunRecord, scheduling: &Scheduling) -> Vec<(&'static str, String)> {
    let at = |value: f64| time(record, value);
    let or_none = |value: Option<f64>| value.map_or_else(|| "too many tasks".into(), at);
    let search = match scheduling.v {
        None => format!("{} without search", several(scheduling.decisions, "grant")),
        Some(v) => {
            let small = |value: f64| if has_unit(record) { format!("{} cycles", three(value)) } else { duration_us(value * 1e6) };
            format!(
                "{}, {} of {} in {}: {} each, {} is the most that keeps all busy with phases of one task",
                several(scheduling.decisions, "phase"),
                several(scheduling.expansions, "expansion"),
                several(scheduling.generated, "node"),
                at(scheduling.search_time),
                small(v),
                small(scheduling.v_bound)
            )
        }
    };
    let mut lines = vec![
        ("", format!("{} of the lower bound {}", percent(record.typical().bound_efficiency), at(record.typical().bound))),
        (
            "beforehand",
            format!(
                "min-min {}, sufferage {}, earliest completion {}",
                or_none(scheduling.min_min),
                or_none(scheduling.sufferage),
                at(scheduling.earliest_completion)
            ),
        ),
        ("scheduling", format!("on rank {}: {search}", scheduling.scheduler_rank)),
        ("waiting", format!("{} of all workers together", at(scheduling.waiting_time))),
    ];
    if let Some((optimum, gap)) = scheduling.optimum.zip(scheduling.gap) {
        lines.insert(1, ("", format!("{} above the optimum {}", percent(gap), at(optimum))));
    }
    let response = scheduling.task_response_mean.map(|mean| format!("{} on average from a task's arrival to its end", at(mean)));
    lines.extend(response.map(|text| ("response", text)));
    lines
}

/// Rates of an overloaded stream; empty for others.
fn overloaded(record: &RunRecord) -> String {
    let Some(overload) = &record.overload else { return String::new() };
    let rate = |graphs| format!("{} graphs {}", three(graphs), if has_unit(record) { "a unit" } else { "a second" });
    format!("{} came, {} were answered: response times grow as long as the stream lasts", rate(overload.offered), rate(overload.served))
}

/// A remark on ranks that share cores; `None` if each has one.
pub(super) fn shared_cores(site: &Site) -> Option<String> {
    let cores = site.cores.filter(|_| site.shares_cores())?;
    let ranks = several(site.ranks.into(), "rank");
    Some(format!("{ranks} share {}, so tasks that compute get no faster than with {cores} ranks", several(cores.into(), "core")))
}

/// The answer, what it is, and whether it is known to be right.
fn answer(record: &RunRecord) -> String {
    let judged = match record.known {
        // An approximation, within what was asked for.
        Some(known) if known != record.answer => format!(", within the tolerance of the known {known}"),
        Some(_) => ", as it should be".into(),
        None => String::new(),
    };
    format!("{} ({}){judged}", record.answer, record.answer_is)
}

/// The makespan; of several rounds the median, as all figures that are taken from it.
fn makespan(record: &RunRecord) -> String {
    let first = time(record, record.makespan);
    let Some(rounds) = &record.rounds else { return first };
    let Some((interval, covers)) = record.interval() else { return format!("{first} with seed {}", record.site.seed) };
    format!(
        "{}, median of {} ({}: {}); {first} with seed {}",
        time(record, record.typical().makespan),
        several(rounds.repeat.into(), "round"),
        coverage(covers),
        range(record, interval),
        record.site.seed
    )
}

fn against_the_bound(record: &RunRecord) -> String {
    let typical = record.typical();
    let gain = match typical.gain {
        None => "nothing could be gained".into(),
        Some(gain) if gain < 0.0 => "slower than one worker alone".into(),
        Some(gain) => format!("{} of the possible gain", percent(gain)),
    };
    let tasks = match record.largest {
        // They can be split.
        0.0 => String::new(),
        largest => format!(" (longest chain {}, largest task {})", time(record, record.chain), time(record, largest)),
    };
    format!("{} of the granularity bound {}{tasks}; {gain}", percent(typical.bound_efficiency), time(record, typical.bound))
}

fn regions(record: &RunRecord) -> Vec<String> {
    let regions = &record.regions;
    if regions.is_empty() {
        return Vec::new();
    }
    if record.site.ranks as usize > 4 * LISTED {
        let sizes = || regions.iter().map(|region| region.members.len());
        let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let size = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let medians: Vec<String> = regions.iter().take(LISTED).map(|region| region.median.to_string()).collect();
        let more = if regions.len() > LISTED { " .." } else { "" };
        return vec![format!("{} of {size} working nodes; medians {}{more}", regions.len(), medians.join(" "))];
    }
    let listed = |members: &[u32]| match members {
        [] => "no node works".into(),
        members => members.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    };
    regions.iter().map(|region| format!("median {}: {}", region.median, listed(&region.members))).collect()
}

/// The times of each rank, or of the quartiles by busy time.
fn ranks(record: &RunRecord, width: u16) -> String {
    let busy = &record.busy;
    let rows: Vec<RankTimes> = if busy.len() <= LISTED {
        (0..busy.len()).map(|rank| RankTimes { record, name: rank.to_string(), rank }).collect()
    } else {
        let mut order: Vec<usize> = (0..busy.len()).collect();
        order.sort_by(|a, b| busy[*a].total_cmp(&busy[*b]).then(a.cmp(b)));
        let last = order.len() - 1;
        let quartiles =
            [("minimum", 0), ("1st quartile", last / 4), ("median", last / 2), ("3rd quartile", last * 3 / 4), ("maximum", last)];
        quartiles.map(|(name, at)| RankTimes { record, name: format!("{name}: {}", order[at]), rank: order[at] }).into()
    };
    format!("\n{}", lines(&table::of(&rows, width)))
}

/// Several schedulers on the same workload: a heading and a table.
pub fn compare(records: &[RunRecord], width: u16) -> String {
    let Some(first) = records.first() else { return String::new() };
    let mut rounds = first.rounds.as_ref().map(|rounds| format!("; {}", several(rounds.repeat.into(), "round"))).unwrap_or_default();
    // A stream is judged by its response times.
    if let (Some((_, covers)), None) = (first.interval(), &first.responses) {
        rounds.push_str(&format!("; times are medians with their {} confidence intervals", coverage(covers)));
    }
    let workers = if first.workers > 1 { format!(", {} each", several(first.workers.into(), "worker")) } else { String::new() };
    let mut out = format!("{} on {}{workers}{rounds}\n", first.workload, place(&first.site));
    // A stream goes on until the graphs that count are answered, so its tasks are a matter of the scheduler.
    if first.responses.is_none() {
        let plain = if first.sequential_is_plain { "by a plain program" } else { "all tasks together" };
        out.push_str(&format!("answer {}; sequential time {}, {plain}\n", answer(first), time(first, first.typical().sequential)));
    }
    if let Some(optimum) = first.scheduling.as_ref().and_then(|scheduling| scheduling.optimum) {
        out.push_str(&format!("no schedule is shorter than {}\n", time(first, optimum)));
    }
    if has_unit(first) && first.scheduling.is_none() {
        out.push_str(&format!("u, a graph's mean time, is {}\n", duration_us(first.unit_seconds * 1e6)));
    }
    out.push_str(&topologies(records));
    out.push('\n');
    out.push_str(&lines(&comparison(records, width)));
    for (index, record) in records.iter().filter(|record| record.overload.is_some()).enumerate() {
        let apart = if index == 0 { "\n" } else { "" };
        out.push_str(&format!("{apart}{} is overloaded: {}\n", record.scheduler, overloaded(record)));
    }
    if let Some(shared) = shared_cores(&first.site) {
        out.push_str(&format!("\nThe {shared}.\n"));
    }
    out.push_str(&format!("\n{}\n", verdict::sentence(records)));
    out
}

/// A line for each topology, with the schedulers that ran on it.
pub(super) fn topologies(records: &[RunRecord]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for record in records {
        let topology = format!("{}{}", record.topology, if record.native { "" } else { " (overlay)" });
        match groups.iter_mut().find(|(other, _)| *other == topology) {
            Some((_, schedulers)) => schedulers.push(&record.scheduler),
            None => groups.push((topology, vec![&record.scheduler])),
        }
    }
    match &groups[..] {
        [(topology, _)] => format!("all on {topology}\n"),
        _ => groups.iter().map(|(topology, schedulers)| format!("on {topology}: {}\n", schedulers.join(", "))).collect(),
    }
}

fn comparison(records: &[RunRecord], width: u16) -> Table {
    let mut table = table::of(records, width);
    // Figures are not broken into pieces, however narrow the terminal is.
    for column in table.column_iter_mut() {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}
