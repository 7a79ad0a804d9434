//! The report of a division as an HTML page: finish times by rank against the predicted ones, where the time went, and the times of other methods.

use std::io::{self, Write};

use super::chart::{self, Bar, Bars};
use super::columns::{RankShare, SpreadLink};
use super::figures::{bytes, seconds, several, three};
use super::gantt;
use super::html::{CaptionedChart, Page, Section, Table, Timed, circumstances, page};
use super::spread::{LISTED, pairs};
use super::table::place;
use crate::experiment::spread::Split;
use crate::experiment::{Environment, SpreadRecord};

/// Writes the report of one division.
///
/// # Errors
/// If the writer fails.
pub fn write(out: &mut dyn Write, environment: &Environment, record: &SpreadRecord) -> io::Result<()> {
    let mut circumstances = circumstances(environment, &record.site, None);
    let form = if record.native { "native" } else { "overlay" };
    circumstances.extend([
        ("Input", format!("{} ({}, records: {})", record.input, bytes(record.bytes), record.records)),
        ("Topology", format!("{} ({form})", record.topology)),
        ("Costs", format!("{}, in {}", record.calibration, seconds(record.calibration_seconds))),
    ]);
    let mut sections = vec![division(record)];
    sections.extend((!record.links.is_empty()).then(|| links(record)));
    let title = format!("{} on {}", record.kernel, place(&record.site));
    page(out, &Page { title, summary: summary(record), environment: circumstances, sections, nodes: Table::default() })
}

fn summary(record: &SpreadRecord) -> String {
    let off = match record.predicted > 0.0 {
        true => format!(", {} % {} predicted", three(100.0 * (record.makespan / record.predicted - 1.0).abs()), side(record)),
        false => String::new(),
    };
    let whence = match (record.sequential_is_measured, record.predicts) {
        (true, _) => "",
        (false, true) => " (by the calibration)",
        (false, false) => " (as fast as it was in the run)",
    };
    let mut said = format!(
        "Done after {}{off}; the ranks finished within {} % of each other; {} times as fast as rank {} alone{whence}.",
        seconds(record.makespan),
        three(100.0 * record.spread),
        three(record.speedup),
        record.origin
    );
    if let Some(why) = &record.why {
        said.push_str(&format!(" But {why}."));
    }
    said
}

fn side(record: &SpreadRecord) -> &'static str {
    if record.makespan < record.predicted { "sooner than" } else { "later than" }
}

fn division(record: &SpreadRecord) -> Section {
    let (unit, times) = unit(record);
    let mut charts = vec![finish(record, (unit, times))];
    if !record.baselines.is_empty() {
        charts.push(baselines(record, (unit, times)));
    }
    let more = record.shares.len().saturating_sub(LISTED);
    let (gantt_title, rows) = pairs(record);
    Section {
        title: "The division".into(),
        says: format!(
            "{} in {}, on {}; answers at rank {} after {}{}.",
            bytes(record.bytes),
            several(record.installments.into(), "installment"),
            several(record.shares.iter().filter(|share| **share > 0).count() as u64, "rank"),
            record.origin,
            seconds(record.makespan),
            match record.collecting > 0.0 {
                true => format!(", and what was written {} after that", seconds(record.collecting)),
                false => String::new(),
            }
        ),
        charts,
        wide: vec![Timed {
            title: "Predicted and measured".into(),
            says: "When each rank's share was on the way, and when it computed on it.".into(),
            svg: gantt::in_page(&gantt_title, &rows),
        }],
        table: Table::of(&RankShare::of(record).take(LISTED).collect::<Vec<_>>()),
        table_says: match more {
            0 => "All ranks; idle is the time from a rank's finish until all answers were there.".into(),
            more => format!("The first ranks; {} more are in table.csv.", several(more as u64, "rank")),
        },
        ..Section::default()
    }
}

/// The unit of times, and how many there are in a second.
fn unit(record: &SpreadRecord) -> (&'static str, f64) {
    if record.makespan.max(record.predicted) >= 10.0 { ("s", 1.0) } else { ("ms", 1e3) }
}

const SPLIT: [(&str, &str); 4] = [("idle", "waiting"), ("busy", "computing"), ("decision", "pausing"), ("exchange", "idle")];

fn finish(record: &SpreadRecord, (unit, times): (&str, f64)) -> CaptionedChart {
    let bar = |rank: usize| {
        let Split { waiting, computing, pausing, idle, .. } = record.split[rank];
        let parts = [waiting, computing, pausing, idle];
        Bar {
            name: format!("rank {rank}"),
            parts: SPLIT.iter().zip(parts).map(|((class, _), part)| (part * times, *class)).collect(),
            mark: (record.shares[rank] > 0 && record.predicts).then_some(record.predicted_finish[rank] * times),
            label: if record.shares[rank] > 0 { three(record.finish[rank] * times) } else { "no share".into() },
            ..Bar::default()
        }
    };
    let axis = format!("time since the beginning, {unit}");
    let rows = (0..record.shares.len().min(LISTED)).map(bar).collect();
    let chart = Bars { title: "where each rank's time went", axis: &axis, rows, reference: None };
    CaptionedChart {
        heading: "Where the time went",
        says: format!(
            "The diamond is when a rank was expected to finish, the number when it did; together they were within {} % of each other.",
            three(100.0 * record.spread)
        ),
        legend: SPLIT.into_iter().chain([("diamond", "predicted finish")]).collect(),
        svg: chart::bars(&chart),
    }
}

fn baselines(record: &SpreadRecord, (unit, times): (&str, f64)) -> CaptionedChart {
    let bar = |name: &str, makespan: f64| Bar {
        name: name.into(),
        parts: vec![(makespan * times, "plain")],
        label: chart::plain(makespan * times),
        ..Bar::default()
    };
    let rows: Vec<Bar> = std::iter::once(bar("the division", record.makespan))
        .chain(record.baselines.iter().map(|baseline| bar(short(&baseline.name), baseline.makespan)))
        .collect();
    let axis = format!("makespan, {unit}");
    let chart = Bars { title: "the division and other ways", axis: &axis, rows, reference: None };
    let ratios: Vec<String> =
        record.baselines.iter().map(|baseline| format!("{} takes {} times as long", baseline.name, three(baseline.ratio))).collect();
    CaptionedChart {
        heading: "Other ways to do the same",
        says: format!("Against the division, {}.", ratios.join(", ")),
        legend: Vec::new(),
        svg: chart::bars(&chart),
    }
}

/// Names that are short enough for a chart.
fn short(name: &str) -> &str {
    if name == "chunks on demand" { "on demand" } else { name }
}

fn links(record: &SpreadRecord) -> Section {
    Section {
        title: "Links".into(),
        says: "What went over each link of the tree, and what the link can do, as it was measured before.".into(),
        table: Table::of(&record.links.iter().take(LISTED).map(SpreadLink).collect::<Vec<_>>()),
        table_says: match record.links.len().saturating_sub(LISTED) {
            0 => "All links over which something went.".into(),
            more => format!("The first links; {} more are in records.jsonl.", several(more as u64, "link")),
        },
        ..Section::default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::html::tests::environment;
    use super::*;
    use crate::experiment::Site;
    use crate::experiment::spread::{Baseline, LinkRecord, RankTimeline, TimeInterval};
    use equipoise::topology::RankId;

    pub(in crate::report) fn record() -> SpreadRecord {
        let interval = |begin, end| TimeInterval { begin, end };
        let timeline = |sending: &[(f64, f64)], computing: &[(f64, f64)]| RankTimeline {
            sending: sending.iter().map(|&(begin, end)| interval(begin, end)).collect(),
            computing: computing.iter().map(|&(begin, end)| interval(begin, end)).collect(),
        };
        let split = |waiting, computing, pausing, idle| Split {
            waiting,
            computing,
            pausing,
            idle,
            calibrated: 1e-9,
            achieved: 1.1e-9,
            most_waiting: 9,
        };
        SpreadRecord {
            origin: RankId::FIRST,
            layers: None,
            unpacked_from: None,
            input: "a<b>.txt".into(),
            bytes: 1000,
            kernel: "grep=<x>".into(),
            records: "lines".into(),
            topology: "hypercube:1".into(),
            native: true,
            site: Site { ranks: 2, hosts: 1, seed: 1, ..Site::default() },
            installments: 2,
            calibration: "measured".into(),
            calibration_seconds: 0.1,
            shares: vec![600, 400],
            finish: vec![1.05, 1.1],
            predicted_finish: vec![1.0, 1.0],
            predicts: true,
            predicted: 1.0,
            makespan: 1.1,
            spread: 0.05,
            speedup: 1.5,
            sequential: 1.65,
            sequential_is_measured: true,
            collecting: 0.0,
            split: vec![split(0.0, 1.05, 0.0, 0.05), split(0.2, 0.8, 0.1, 0.0)],
            links: vec![LinkRecord { from: RankId::FIRST, to: RankId::new(1), bytes: 400, startup: 1e-6, seconds_per_byte: 1e-8 }],
            baselines: vec![Baseline { name: "equal shares".into(), makespan: 1.32, ratio: 1.2 }],
            baselines_failed: Vec::new(),
            why: None,
            charts: vec![
                [timeline(&[], &[(0.0, 1.0)]), timeline(&[], &[(0.0, 1.05)])],
                [timeline(&[(0.0, 0.2)], &[(0.2, 1.0)]), timeline(&[(0.0, 0.25)], &[(0.2, 0.7), (0.8, 1.1)])],
            ],
        }
    }

    #[test]
    fn the_page_has_all_and_needs_nothing() {
        let mut out = Vec::new();
        write(&mut out, &environment("equipoise divide"), &record()).unwrap();
        let page = String::from_utf8(out).unwrap();
        for text in [
            "Done after 1.10 s, 10.0 % later than predicted; the ranks finished within 5.00 % of each other; 1.50 times as fast as rank 0 alone.",
            "a&lt;b&gt;.txt",
            "equal shares takes 1.20 times as long",
            "1 measured: sending from 0 s to 0.25 s",
            "bandwidth, MB",
            "Open MPI v4",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.matches("role=\"img\"").count() >= 3);
        // The predicted and the measured bars, and the rows of the legend.
        assert_eq!(page.matches("class=\"computing\"").count(), 5 + 1);
        for outside in ["http://", "https://", "src=", "href=", "<b>", "<script"] {
            assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
        }
    }
}
