//! A report as one self-contained HTML page: charts, tables, and the environment of the experiment.
//!
//! Text and style are in the template `report.html.j2`, which is compiled in; this file makes the data for it. Whatever users wrote (file
//! names, options, the command line) is escaped by the template engine or by the SVG writer.

use std::io::{self, Write};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment as Templates};
use serde::Serialize;

use super::chart::{self, Bar, Bars};
use super::columns::{self, PhaseNode, Tabular, kind_of};
use super::figures::{duration_us, listed, ratio, several, whole};
use super::sketch::{self, Sketches};
use super::{advice, table};
use crate::experiment::{BalanceRecord, CaseResult, CompareRecord, Environment, Site};

const TEMPLATE: &str = include_str!("report.html.j2");

/// Writes the report of a comparison.
///
/// # Errors
/// If the writer fails.
pub fn compare(out: &mut dyn Write, environment: &Environment, results: &[CaseResult]) -> io::Result<()> {
    let Some((balancers, first)) = results.first().and_then(|result| Some((&result.records, result.records.first()?))) else {
        return Ok(());
    };
    let sections = results.iter().filter_map(|CaseResult { loads, records, .. }| {
        let title = table::title(&loads.to_string(), records.first()?);
        Some(section(&title, records))
    });
    let rounds =
        if first.site.network.is_some() { "virtual time, which repeats exactly".into() } else { several(first.repeat.into(), "round") };
    let named = if let [only] = &balancers[..] { only.balancer.clone() } else { several(balancers.len() as u64, "balancer") };
    page(
        out,
        &Page {
            title: format!("{named} on {}", table::place(&first.site)),
            summary: advice::sentence(results),
            environment: circumstances(environment, &first.site, Some(rounds)),
            sections: sections.collect(),
            nodes: Table::default(),
        },
    )
}

/// Writes the report of one phase.
///
/// # Errors
/// If the writer fails.
pub fn balance(out: &mut dyn Write, environment: &Environment, record: &BalanceRecord) -> io::Result<()> {
    let nodes = if record.loads.len() <= MOST_NODES { PhaseNode::of(record).collect() } else { Vec::new() };
    page(
        out,
        &Page {
            title: format!("{} on {}", record.balancer, table::place(&record.site)),
            summary: table::verdict(record),
            environment: circumstances(environment, &record.site, None),
            sections: vec![section(&table::title(&table::shortened(&record.topology), &record.phase), std::slice::from_ref(&record.phase))],
            nodes: Table::of(&nodes),
        },
    )
}

/// Nodes of one phase are listed up to this number.
const MOST_NODES: usize = 256;

/// The data of the template.
#[derive(Serialize)]
pub(super) struct Page {
    pub title: String,
    pub summary: String,
    /// Names and values.
    pub environment: Vec<(&'static str, String)>,
    pub sections: Vec<Section>,
    /// Nodes of one phase; empty if there are too many.
    pub nodes: Table,
}

/// A table in a page.
#[derive(Default, Serialize)]
pub(super) struct Table {
    headings: Vec<TableHeading>,
    rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct TableHeading {
    text: String,
    /// Explains the column.
    about: String,
    is_text: bool,
}

impl Table {
    /// The columns that people see for these rows.
    pub fn of<R: Tabular>(rows: &[R]) -> Table {
        let (headings, rows) = columns::shown(rows);
        let heading = |heading: columns::Heading| TableHeading {
            text: heading.in_one_line(),
            about: heading.about.replace('\n', " "),
            is_text: heading.is_text,
        };
        Table { headings: headings.into_iter().map(heading).collect(), rows }
    }
}

/// A part of a page: a case of a comparison, a workload or a division.
#[derive(Default, Serialize)]
pub(super) struct Section {
    pub title: String,
    pub says: String,
    /// Charts with a sentence each.
    pub charts: Vec<CaptionedChart>,
    /// Pictures as wide as the page.
    pub wide: Vec<Timed>,
    pub table: Table,
    /// Its heading; `Figures` if it is empty.
    pub table_title: &'static str,
    pub table_says: String,
    /// Whether the table has sentences, which are broken into lines.
    pub is_prose: bool,
    /// Figures of a paper.
    pub figures: Vec<Timed>,
    pub maps: Vec<Map>,
    pub maps_say: String,
    /// Timelines of runs.
    pub timelines: Vec<Timed>,
    pub timelines_say: String,
}

#[derive(Serialize)]
pub(super) struct CaptionedChart {
    pub heading: &'static str,
    pub says: String,
    pub legend: Vec<(&'static str, &'static str)>,
    pub svg: String,
}

/// A picture over time.
#[derive(Serialize)]
pub(super) struct Timed {
    pub title: String,
    pub says: String,
    pub svg: String,
}

/// Loads before and after, drawn.
#[derive(Serialize)]
pub(super) struct Map {
    title: String,
    says: String,
    before: String,
    after: String,
}

pub(super) fn page(out: &mut dyn Write, page: &Page) -> io::Result<()> {
    let mut templates = Templates::new();
    // Whatever the template's name: everything is escaped but what is called safe in it.
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_template("report", TEMPLATE).map_err(io::Error::other)?;
    let text = templates.get_template("report").and_then(|template| template.render(Serde(page))).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

pub(super) fn circumstances(environment: &Environment, site: &Site, rounds: Option<String>) -> Vec<(&'static str, String)> {
    const LISTED: usize = 16;
    let command = if environment.is_whole { "Command" } else { "Command of each rank (the launcher's is not known)" };
    let mut list = vec![(command, environment.command.clone())];
    list.extend(environment.folder.clone().map(|folder| ("Folder", folder)));
    list.extend([("Equipoise", environment.version.clone()), ("Date", environment.date.clone())]);
    list.push(match (&site.network, &environment.mpi) {
        (Some(network), _) => ("Simulated network", network.clone()),
        (None, mpi) => ("MPI", mpi.clone().unwrap_or_else(|| "unknown".into())),
    });
    list.push(("Ranks", whole(site.ranks)));
    list.extend(table::shared_cores(site).map(|shared| ("Cores", shared)));
    let mut hosts: Vec<String> =
        environment.hosts.iter().take(LISTED).map(|(name, ranks)| format!("{name} ({})", several((*ranks).into(), "rank"))).collect();
    if environment.hosts.len() > LISTED {
        hosts.push(format!("{} more", whole((environment.hosts.len() - LISTED) as u64)));
    }
    list.push((if site.network.is_some() { "Simulated hosts" } else { "Hosts" }, hosts.join(", ")));
    if let (None, Some(cores)) = (&site.network, environment.cores) {
        list.push(("Processors on the first host", cores.to_string()));
    }
    list.push(("Seed", site.seed.to_string()));
    list.extend(rounds.map(|rounds| ("Measured", rounds)));
    list
}

fn section(title: &str, records: &[CompareRecord]) -> Section {
    let Some(first) = records.first() else { return Section::default() };
    let maps: Vec<(Map, bool)> = records.iter().map(map).collect();
    let (drawn, counted) = (maps.iter().any(|(_, nodes)| *nodes), maps.iter().any(|(_, nodes)| !nodes));
    let least = records.iter().filter(|record| record.exact).map(|record| record.least).min();
    Section {
        title: title.into(),
        says: format!(
            "{} on the ranks; the most loaded rank has {} times the mean{}.{}",
            several(first.tasks, "task"),
            ratio(records.iter().map(|record| record.imbalance_before).fold(0.0, f64::max)),
            least.map(|least| format!(", and at least {} must move to meet the quotas", whole(least))).unwrap_or_default(),
            table::harm(records.iter()).iter().map(|said| format!(" {said}.")).collect::<String>()
        ),
        charts: vec![time(records), hops(records), imbalance(records)],
        table: Table::of(records),
        table_says: format!(
            "All figures of this case; {}{}",
            if first.site.network.is_some() { "times are virtual" } else { "times are those of the slowest node" },
            if records.iter().any(|record| !record.native) { ", and * marks a topology with more nodes than ranks." } else { "." }
        ),
        maps: maps.into_iter().map(|(map, _)| map).collect(),
        maps_say: match (drawn, counted) {
            (false, _) => COLUMNS.into(),
            (true, false) => VESSELS.into(),
            (true, true) => format!("{VESSELS} Where there are too many to be drawn: {}", COLUMNS.to_lowercase()),
        },
        ..Section::default()
    }
}

const VESSELS: &str = "Each square is a node, filled as far as it is loaded; the line across it is its quota, a broken rim a virtual node. After a good phase \
                       all are filled to their lines.";
const COLUMNS: &str = "How many nodes have how many tasks; after a good phase all stand in one column.";

const PARTS: [(&str, &str); 3] = [("information", "gathering information"), ("decision", "deciding"), ("exchange", "exchanging tasks")];

fn time(records: &[CompareRecord]) -> CaptionedChart {
    let bar = |record: &CompareRecord| Bar {
        name: record.balancer.clone(),
        parts: PARTS.iter().zip(shares(record)).map(|((class, _), ms)| (ms, *class)).collect(),
        interval: record.interval().map(|[low, high]| (low, high)),
        label: duration_us(record.ms_median * 1e3),
        ..Bar::default()
    };
    let busy = || records.iter().filter(|record| record.moved > 0);
    let least = busy().map(|record| record.ms_median).fold(f64::INFINITY, f64::min);
    let most = busy().map(|record| record.ms_median).fold(0.0, f64::max);
    let mut says = match busy().count() {
        0 => "Nothing moved".into(),
        1 => format!("The phase took {}", duration_us(least * 1e3)),
        _ => format!("Those that move anything took {} to {}", duration_us(least * 1e3), duration_us(most * 1e3)),
    };
    let mut legend = PARTS.to_vec();
    match records.iter().filter(|record| record.interval().is_some()).map(|record| record.ms_coverage).reduce(f64::min) {
        Some(coverage) => {
            legend.push(("whisker", "interval of the median"));
            says.push_str(&format!(
                "; bars are medians, divided as the parts' medians are, and whiskers cover the true median with {} confidence.",
                table::coverage(coverage)
            ));
        }
        None => says.push('.'),
    }
    let chart = Bars {
        title: "time of a phase by balancer",
        axis: "time of the slowest node, ms",
        rows: records.iter().map(bar).collect(),
        reference: None,
    };
    CaptionedChart { heading: "Time", says, legend, svg: chart::bars(&chart) }
}

/// The parts of the whole time. Medians of the parts need not add up to the median of the whole, so only their proportions are taken.
fn shares(record: &CompareRecord) -> [f64; 3] {
    let parts = record.parts();
    let sum: f64 = parts.iter().sum();
    parts.map(|part| if sum > 0.0 { part / sum * record.ms_median } else { 0.0 })
}

fn hops(records: &[CompareRecord]) -> CaptionedChart {
    let several = records.iter().any(|record| record.topology != records[0].topology);
    let bar = |record: &CompareRecord| Bar {
        // Links are others on another topology.
        name: if several { format!("{} ({})", record.balancer, record.map.topology.kind()) } else { record.balancer.clone() },
        parts: vec![(record.task_hops as f64, "plain")],
        mark: optimum(record).map(|optimum| optimum as f64),
        label: match optimum(record) {
            Some(optimum) if optimum == record.task_hops => "least".into(),
            Some(optimum) if optimum > 0 && record.task_hops > 0 => format!("× {}", ratio(record.task_hops as f64 / optimum as f64)),
            _ => chart::plain(record.task_hops as f64),
        },
        ..Bar::default()
    };
    let least: Vec<&str> = records
        .iter()
        .filter(|record| record.moved > 0 && optimum(record) == Some(record.task_hops))
        .map(|record| record.balancer.as_str())
        .collect();
    let says = match (least.as_slice(), records.iter().any(|record| optimum(record).is_some())) {
        (_, false) => "Tasks times links crossed; the least possible is known where quotas are met exactly, on up to 4,096 nodes.".into(),
        ([], _) => "Tasks times links crossed; nobody that moves tasks reaches the least possible on its topology (the diamond).".into(),
        (names, _) => format!(
            "Tasks times links crossed, against the least possible on each topology (the diamond), which {} reached.",
            listed(names)
        ),
    };
    let chart = Bars {
        title: "task-hops by balancer",
        axis: "tasks × links crossed (task-hops)",
        rows: records.iter().map(bar).collect(),
        reference: None,
    };
    CaptionedChart {
        heading: "Task-hops against the optimum",
        says,
        legend: vec![("plain", "task-hops"), ("diamond", "least possible")],
        svg: chart::bars(&chart),
    }
}

/// The minimum task-hops, where all quotas were met, so that it is a bound.
fn optimum(record: &CompareRecord) -> Option<u128> {
    record.optimum_task_hops.filter(|_| record.exact)
}

fn imbalance(records: &[CompareRecord]) -> CaptionedChart {
    let bar = |record: &CompareRecord| Bar {
        name: record.balancer.clone(),
        parts: vec![(record.imbalance_after, "plain")],
        label: ratio(record.imbalance_after),
        ..Bar::default()
    };
    let before = records.iter().map(|record| record.imbalance_before).fold(0.0, f64::max);
    let best = records.iter().map(|record| record.imbalance_after).fold(f64::INFINITY, f64::min);
    let said = format!("before: {}", ratio(before));
    let chart = Bars {
        title: "imbalance after a phase by balancer",
        axis: "largest load / mean load (1 is even)",
        rows: records.iter().map(bar).collect(),
        reference: Some((before, &said)),
    };
    let says = format!("The most loaded rank has {} times the mean before, and {} times at the best after.", ratio(before), ratio(best));
    CaptionedChart { heading: "Imbalance left", says, legend: Vec::new(), svg: chart::bars(&chart) }
}

/// The loads of a record drawn, and whether the pictures show single nodes.
fn map(record: &CompareRecord) -> (Map, bool) {
    let Sketches { before, after, nodes, omits } = sketch::sketches(&record.map);
    let says = format!(
        "{} moved{}{}",
        several(record.moved, if record.weighing.work.is_some() { "work unit" } else { "task" }),
        if omits.is_some() { ". " } else { "." },
        omits.unwrap_or_default()
    );
    (Map { title: format!("{} on {}", record.balancer, kind_of(record)), says, before, after }, nodes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::advice::tests::{case, record};
    use super::*;

    pub(in crate::report) fn environment(command: &str) -> Environment {
        Environment {
            version: "1.2.3".into(),
            command: command.into(),
            is_whole: true,
            folder: Some("/home/someone".into()),
            date: "2026-01-01T00:00:00Z".into(),
            mpi: Some("Open MPI v4".into()),
            hosts: vec![("node<7>".into(), 4)],
            cores: Some(2),
        }
    }

    fn rendered(command: &str, results: &[CaseResult]) -> String {
        let mut out = Vec::new();
        compare(&mut out, &environment(command), results).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_page_has_all_and_needs_nothing() {
        let hot = case("hot", [record("cwa", 0.2, 10.0), record("direct", 0.1, 10.0)]);
        let page = rendered("equipoise compare", &[hot, case("uniform", [record("cwa", 0.2, 10.0)])]);
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        for text in [
            "hot, tasks of 64 B",
            "uniform, tasks of 64 B",
            "Open MPI v4",
            "1.2.3",
            "2026-01-01",
            "time of the slowest node, ms",
            "cwa on complete:4",
            "use cwa",
            "Those that move anything took 100 us to 200 us",
            "whiskers cover the true median with 99 % confidence",
        ] {
            assert!(page.contains(text), "{text}");
        }
        // Three charts at least for each of two cases, and loads before and after for each record.
        assert!(page.matches("role=\"img\"").count() >= 2 * 3 + 3 * 2);
        for outside in ["http://", "https://", "src=", "href=", "@import", "url(\"", "<script"] {
            let without_names = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_names.contains(outside), "{outside}");
        }
    }

    #[test]
    fn what_users_write_stays_text() {
        let evil = "<img src=x onerror=alert(1)>";
        let results = [case(&format!("@{evil}"), [record(evil, 0.2, 10.0)]), case("hot", [record("b\"'&", 0.2, 10.0)])];
        let page = rendered(&format!("equipoise '{evil}' {{{{ 7 * 7 }}}} {{% raw %}}"), &results);
        assert!(!page.contains("<img"), "{page}");
        assert!(page.contains("{{ 7 * 7 }} {% raw %}") && page.contains("node&lt;7&gt;"));
        assert!(!page.contains("\"'&<"));
    }

    #[test]
    fn names_are_listed_briefly() {
        assert_eq!(
            [listed(&["a"]), listed(&["a", "b", "c"]), listed(&["a", "b", "c", "d", "e"])],
            ["a", "a, b and c", "a, b and 3 others"]
        );
    }
}
