//! The report of runs under several schedulers as an HTML page: makespans and their bounds, the use of the workers' time, and the busy
//! times of ranks.

use std::io::{self, Write};

use super::chart::{self, Bar, Bars};
use super::figures::{several, three};
use super::html::{CaptionedChart, Page, Section, Table, Timed, circumstances, page};
use super::run;
use super::run_times::parts_of_time;
use super::spans::{self, TimeAxis};
use super::{table, verdict};
use crate::experiment::run::Typical;
use crate::experiment::{Environment, RunRecord};

/// Writes the report of runs of one workload.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, environment: &Environment, records: &[RunRecord]) -> io::Result<()> {
    let Some(first) = records.first() else { return Ok(()) };
    let schedulers = if records.len() == 1 { first.scheduler.clone() } else { several(records.len() as u64, "scheduler") };
    let mut rounds = match &first.rounds {
        Some(rounds) => format!("{}, seeds from {} on", several(rounds.repeat.into(), "round"), first.site.seed),
        None => "1 round".into(),
    };
    if first.site.network.is_some() {
        rounds.push_str("; virtual time, which repeats exactly");
    }
    let mut circumstances = circumstances(environment, &first.site, Some(rounds));
    circumstances.extend(run::shared_cores(&first.site).map(|shared| ("Cores", shared)));
    if first.workers > 1 {
        circumstances.push(("Workers of each rank", first.workers.to_string()));
    }
    page(
        out,
        &Page {
            title: format!("{schedulers} on {}", table::place(&first.site)),
            summary: summary(records),
            environment: circumstances,
            sections: vec![section(records)],
            nodes: Table::default(),
        },
    )
}

/// The unit of times: its name, and how many there are in the records' unit.
fn unit(records: &[RunRecord]) -> (&'static str, f64) {
    let longest = records.iter().map(|record| record.makespan).fold(0.0, f64::max);
    match records.first() {
        Some(record) if record.unit_seconds != 1.0 => (if record.scheduling.is_some() { "cycles" } else { "u" }, 1.0),
        _ if longest >= 10.0 => ("s", 1.0),
        _ if longest >= 0.01 => ("ms", 1e3),
        _ => ("us", 1e6),
    }
}

/// The time by which a scheduler is judged, with its interval: mean response time of a stream, otherwise the median makespan.
fn judged(record: &RunRecord) -> (f64, Option<[f64; 2]>) {
    match &record.responses {
        Some(responses) => (responses.response_mean, Some(responses.response_ci95)),
        None => (record.typical().makespan, record.interval().map(|(interval, _)| interval)),
    }
}

/// End of the time axes: the longest time that is at most three times the median, so that a few long bars do not squeeze the rest.
fn furthest(records: &[RunRecord], time: impl Fn(&RunRecord) -> f64) -> f64 {
    const LONGER: f64 = 3.0;
    let mut times: Vec<f64> = records.iter().map(time).collect();
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    times.into_iter().rfind(|time| *time <= LONGER * middle).unwrap_or(middle)
}

fn percent(share: f64) -> String {
    format!("{} %", three(100.0 * share))
}

/// The summary of the page: the verdict on several schedulers, the figures of one.
fn summary(records: &[RunRecord]) -> String {
    let [record] = records else { return verdict::sentence(records) };
    let (name, times) = unit(records);
    let is_stream = record.responses.is_some();
    let took = format!("{} {name}", three(judged(record).0 * times));
    let against = match is_stream {
        true => String::new(),
        false => format!(", {} of {}", percent(record.typical().bound_efficiency), bound_is(record)),
    };
    let sequential = record.typical().sequential;
    let alone = match record.sequential_is_plain && !is_stream && sequential < judged(record).0 {
        true => format!("; a plain program on one rank takes {} {name}", three(sequential * times)),
        false => String::new(),
    };
    format!("{} {took} under {}{against}{alone}.", if is_stream { "Response time" } else { "Makespan" }, record.scheduler)
}

fn bound_is(record: &RunRecord) -> &'static str {
    if record.scheduling.is_some() { "the lower bound" } else { "what the granularity bound allows" }
}

fn section(records: &[RunRecord]) -> Section {
    let Some(first) = records.first() else { return Section::default() };
    let unit = unit(records);
    let (name, times) = unit;
    let is_stream = first.responses.is_some();
    let mut says = format!("{} under {}.", first.workload, several(records.len() as u64, "scheduler"));
    if !is_stream {
        let plain = if first.sequential_is_plain { "by a plain program" } else { "for all tasks together" };
        says = format!(
            "Answer {} ({}); {}; sequential time {} {name}, {plain}.",
            first.answer,
            first.answer_is,
            several(first.tasks, "task"),
            three(first.typical().sequential * times)
        );
    }
    says.push_str(&format!(" Topologies: {}.", run::topologies(records).trim_end().replace('\n', "; ")));
    let mut charts = vec![judgement(records, unit)];
    if !is_stream {
        charts.push(efficiencies(records));
    }
    charts.extend([reasons(records, unit), messages(records), migrations(records)]);
    let several_rounds = first.rounds.as_ref().is_some_and(|rounds| rounds.repeat > 1);
    let (timelines, timelines_say) = timelines(records, unit);
    Section {
        title: first.workload.clone(),
        says,
        charts,
        table: Table::of(records),
        table_says: format!(
            "All figures{}{}",
            if several_rounds {
                "; makespan, efficiency, share of the bound and gain are by medians over all rounds, the others are the first round's"
            } else {
                ""
            },
            if records.iter().any(|record| !record.native) { "; an overlay is a topology with more nodes than ranks." } else { "." }
        ),
        timelines,
        timelines_say,
        ..Section::default()
    }
}

/// Makespans with their intervals and bounds, or a stream's response times.
fn judgement(records: &[RunRecord], (name, times): (&'static str, f64)) -> CaptionedChart {
    let is_stream = records.iter().any(|record| record.responses.is_some());
    let bar = |record: &RunRecord| {
        let (value, interval) = judged(record);
        let mark = match &record.responses {
            Some(responses) => responses.response_p99,
            None => record.typical().bound,
        };
        Bar {
            name: record.scheduler.clone(),
            parts: vec![(value * times, "plain")],
            interval: interval.map(|[low, high]| (low * times, high * times)),
            // A few late answers would squeeze all others.
            mark: (!is_stream || mark <= 4.0 * value).then_some(mark * times),
            label: chart::plain(value * times),
        }
    };
    let has_intervals = records.iter().any(|record| judged(record).1.is_some());
    let (heading, axis, mark) = match is_stream {
        true => ("Response time", format!("mean response time of a graph, {name}"), "99 % are below"),
        false => ("Makespan", format!("from the first submission to the last answer, {name}"), "the bound"),
    };
    let mut says = match is_stream {
        true => "How long a graph waits for its answer".to_string(),
        false => {
            "The diamond is what no scheduler can beat: the longest chain of tasks, the largest task, or the sequential time divided by \
                  all workers"
                .to_string()
        }
    };
    if let (false, Some(first)) = (is_stream, records.first().filter(|record| record.scheduling.is_some())) {
        let bound = three(first.typical().bound * times);
        says = format!("The diamond is the lower bound, {bound} {name}, that the costs of the tasks leave");
    }
    let mut legend = vec![("plain", if is_stream { "mean" } else { "median" }), ("diamond", mark)];
    let least = records.iter().filter_map(RunRecord::interval).map(|(_, covers)| covers).reduce(f64::min);
    if let (false, Some(covers)) = (is_stream, least) {
        legend.push(("whisker", "interval of the median"));
        says.push_str(&format!("; whiskers cover the true median over seeds with {} confidence.", table::coverage(covers)));
    } else if has_intervals {
        legend.push(("whisker", "95 % interval"));
        says.push('.');
    } else {
        legend[0].1 = "one run";
        says.push_str("; with --repeat there are intervals.");
    }
    let rows = records.iter().map(bar).collect();
    let chart = Bars { title: &format!("{} by scheduler", heading.to_lowercase()), axis: &axis, rows, reference: None };
    let most = furthest(records, |record| judged(record).1.map_or(judged(record).0, |[_, high]| high));
    CaptionedChart { heading, says, legend, svg: chart::bars_up_to(&chart, most * times) }
}

fn efficiencies(records: &[RunRecord]) -> CaptionedChart {
    let bar = |record: &RunRecord| {
        let Typical { efficiency: ideal, bound_efficiency: bound, .. } = record.typical();
        // Ranks for which tasks cost different amounts may do more work than the bound has.
        let most = if bound > 0.0 && record.scheduling.is_none() { ideal / bound } else { 0.0 };
        Bar {
            name: record.scheduler.clone(),
            parts: vec![(100.0 * ideal, "plain")],
            mark: (most > 0.0).then_some(100.0 * most),
            label: format!("{} ({})", three(100.0 * ideal), three(100.0 * bound)),
            ..Bar::default()
        }
    };
    let best = records.iter().map(|record| record.typical().bound_efficiency).fold(0.0, f64::max);
    let what = records.first().map_or("", bound_is);
    let mut legend = vec![("plain", "efficiency")];
    let diamond = match records.iter().any(|record| record.scheduling.is_some()) {
        true => "",
        false => {
            legend.push(("diamond", "possible"));
            "; the diamond is the most that the bound leaves possible"
        }
    };
    let chart = Bars {
        title: "efficiency by scheduler",
        axis: "sequential time / (makespan × workers), %",
        rows: records.iter().map(bar).collect(),
        reference: None,
    };
    CaptionedChart {
        heading: "Efficiency",
        says: format!("The ideal is 100 %{diamond}. In brackets: percents of {what}, {} at the best.", percent(best)),
        legend,
        svg: chart::bars(&chart),
    }
}

const REASONS: [(&str, &str); 3] = [("information", "executing tasks"), ("exchange", "overhead"), ("idle", "idle")];

fn reasons(records: &[RunRecord], (name, times): (&'static str, f64)) -> CaptionedChart {
    let bar = |record: &RunRecord| {
        let parts = parts_of_time(record);
        let all: f64 = parts.iter().sum();
        Bar {
            name: record.scheduler.clone(),
            parts: REASONS.iter().zip(parts).map(|((class, _), part)| (part * times, *class)).collect(),
            label: if all > 0.0 { percent_short(parts[0] / all) } else { "-".into() },
            ..Bar::default()
        }
    };
    let is_simulated = records.first().is_some_and(|record| record.site.network.is_some());
    let overhead = if is_simulated { "; in simulation it takes no time" } else { ", as far as it kept workers waiting" };
    let chart = Bars {
        title: "what workers did by scheduler",
        axis: &format!("time of a worker on average, {name}"),
        rows: records.iter().map(bar).collect(),
        reference: None,
    };
    CaptionedChart {
        heading: "What the time went into",
        says: format!(
            "Overhead is hearing, deciding, packing and joining{overhead}; the rest is waiting for tasks. The figures are the shares \
                 of executing (first round)."
        ),
        legend: REASONS.to_vec(),
        svg: chart::bars_up_to(&chart, furthest(records, |record| parts_of_time(record).iter().sum()) * times),
    }
}

fn percent_short(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn messages(records: &[RunRecord]) -> CaptionedChart {
    let bar = |record: &RunRecord| Bar {
        name: record.scheduler.clone(),
        parts: vec![(record.messages.saturating_sub(record.control) as f64, "plain"), (record.control as f64, "decision")],
        label: chart::plain(record.messages as f64),
        ..Bar::default()
    };
    let tasks = records.iter().map(|record| record.tasks).max().unwrap_or(0).max(1) as f64;
    let most = records.iter().map(|record| record.messages).max().unwrap_or(0) as f64 / tasks;
    let chart =
        Bars { title: "messages by scheduler", axis: "messages between ranks", rows: records.iter().map(bar).collect(), reference: None };
    CaptionedChart {
        heading: "Messages",
        says: format!(
            "Those that carry tasks or answers, and those to schedule and to find the end; up to {} a task (first round).",
            three(most)
        ),
        legend: vec![("plain", "tasks and answers"), ("decision", "to schedule")],
        svg: chart::bars(&chart),
    }
}

fn migrations(records: &[RunRecord]) -> CaptionedChart {
    let bar = |record: &RunRecord| Bar {
        name: record.scheduler.clone(),
        parts: vec![(record.migrated as f64, "plain")],
        label: chart::plain(record.migrated as f64),
        ..Bar::default()
    };
    let chart = Bars {
        title: "migrations by scheduler",
        axis: "tasks that changed their rank",
        rows: records.iter().map(bar).collect(),
        reference: None,
    };
    let tasks = records.iter().map(|record| record.tasks).max().unwrap_or(0);
    CaptionedChart {
        heading: "Migrations",
        says: format!("Of {} each; one that moves on counts again (first round).", several(tasks, "task")),
        legend: Vec::new(),
        svg: chart::bars(&chart),
    }
}

/// All timelines end at the same time, so that they can be compared; those much longer than the shortest leave the picture.
fn timelines(records: &[RunRecord], unit: (&'static str, f64)) -> (Vec<Timed>, String) {
    let end = furthest(records, |record| record.makespan);
    let (name, times) = unit;
    let timed = |record: &RunRecord| {
        let beyond = if record.makespan > end { ", beyond the picture" } else { "" };
        Timed {
            title: record.scheduler.clone(),
            says: format!("Ended after {} {name}{beyond}.", three(record.makespan * times)),
            svg: spans::timeline(record, TimeAxis { end, unit }),
        }
    };
    let ranks = records.first().map_or(0, |record| record.busy.len());
    let mut says = match records.iter().all(|record| record.timeline.is_empty()) {
        true => "When independent tasks were executed is not recorded: each row is a rank, its bar all its busy time".to_string(),
        false => "Each row is a rank, black where it executes tasks; where it does so only part of a moment, or with some of its workers, the row is \
                  lower (quarters)"
            .to_string(),
    };
    says.push_str(". All axes are the same, and the dashed line is the end of the first round");
    says.extend(spans::omits(ranks).map(|omits| format!("; {omits}")));
    says.push('.');
    (records.iter().map(timed).collect(), says)
}

#[cfg(test)]
pub(super) mod tests;
