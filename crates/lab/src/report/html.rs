//! A report as one HTML page that needs nothing beside itself: pictures, tables, and where the figures come from.
//!
//! The words and the looks are in `report.html.j2`, which is compiled in; here is what they are filled with. Whatever users wrote (file names,
//! balancers' options, the command line) is escaped, by the template engine or by the SVG writer beside it.

use std::io::{self, Write};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment as Templates};
use serde::Serialize;

use super::chart::{self, Bar, Bars};
use super::figures::{bytes, duration_us, listed, ratio, several, three, whole};
use super::row::Row;
use super::sketch::{self, Sketches};
use super::{advice, table};
use crate::experiment::{BalanceRecord, CompareRecord, Environment, Site};

const TEMPLATE: &str = include_str!("report.html.j2");

/// Writes the report of a comparison.
///
/// # Errors
/// If the writer fails.
pub fn compare(out: &mut dyn Write, environment: &Environment, records: &[CompareRecord]) -> io::Result<()> {
    let Some(first) = records.first() else { return Ok(()) };
    let cases = records.chunk_by(|a, b| a.case == b.case).map(|case| {
        let rows: Vec<Row> = case.iter().map(Row::from).collect();
        let title = table::title(&case[0].loads, case[0].payload, case[0].weighing.payload_is_mean);
        self::case(&title, &case[0].site, case[0].tasks, &rows)
    });
    let names: Vec<&str> = records.iter().take_while(|record| record.case == first.case).map(|r| r.balancer.as_str()).collect();
    let rounds =
        if first.site.network.is_some() { "virtual time, which repeats exactly".into() } else { several(first.repeat.into(), "round") };
    page(
        out,
        &Page {
            title: format!(
                "{} on {}",
                if names.len() == 1 { names[0].into() } else { several(names.len() as u64, "balancer") },
                table::place(&first.site)
            ),
            summary: advice::sentence(records),
            environment: circumstances(environment, &first.site, Some(rounds)),
            cases: cases.collect(),
            nodes: Vec::new(),
        },
    )
}

/// Writes the report of one phase.
///
/// # Errors
/// If the writer fails.
pub fn balance(out: &mut dyn Write, environment: &Environment, record: &BalanceRecord) -> io::Result<()> {
    let row = Row::from(record);
    let nodes = match record.loads.len() {
        ..=256 => (0..record.loads.len()).map(|node| node_cells(record, node)).collect(),
        _ => Vec::new(),
    };
    page(
        out,
        &Page {
            title: format!("{} on {}", record.balancer, table::place(&record.site)),
            summary: table::verdict(record),
            environment: circumstances(environment, &record.site, None),
            cases: vec![case(
                &table::title(&table::shortened(&record.topology), record.payload, record.weighing.payload_is_mean),
                &record.site,
                record.tasks,
                &[row],
            )],
            nodes,
        },
    )
}

/// What the template is filled with.
#[derive(Serialize)]
pub(super) struct Page {
    pub title: String,
    pub summary: String,
    /// Names and values.
    pub environment: Vec<(&'static str, String)>,
    pub cases: Vec<Case>,
    /// For one phase: node, power, load, quota, final.
    pub nodes: Vec<[String; 5]>,
}

/// Some tasks, and what became of them.
#[derive(Default, Serialize)]
pub(super) struct Case {
    pub title: String,
    pub says: String,
    /// A sentence and a picture each.
    pub charts: Vec<Figure>,
    /// Pictures that need the page's whole width.
    pub wide: Vec<Timed>,
    pub headings: Vec<&'static str>,
    pub table: Vec<Vec<String>>,
    pub table_says: String,
    pub maps: Vec<Map>,
    pub maps_say: String,
    /// Of runs.
    pub timelines: Vec<Timed>,
    pub timelines_say: String,
}

#[derive(Serialize)]
pub(super) struct Figure {
    pub heading: &'static str,
    pub says: String,
    pub legend: Vec<(&'static str, &'static str)>,
    pub svg: String,
}

/// When ranks were busy, drawn.
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

fn case(title: &str, site: &Site, tasks: u64, rows: &[Row]) -> Case {
    let maps: Vec<(Map, bool)> = rows.iter().map(map).collect();
    let (drawn, counted) = (maps.iter().any(|(_, nodes)| *nodes), maps.iter().any(|(_, nodes)| !nodes));
    let (headings, cells) = cells(rows, site);
    let least = rows.iter().filter_map(|row| row.least).min();
    Case {
        title: title.into(),
        says: format!(
            "{} on the ranks; the most loaded rank has {} times the mean{}.{}",
            several(tasks, "task"),
            ratio(rows.iter().map(|row| row.imbalance[0]).fold(0.0, f64::max)),
            least.map(|least| format!(", and at least {} must move to meet the quotas", whole(least))).unwrap_or_default(),
            table::harm(rows.iter().map(|row| (row.balancer, row.declined, row.imbalance)))
                .iter()
                .map(|said| format!(" {said}."))
                .collect::<String>()
        ),
        charts: vec![time(rows), hops(rows), imbalance(rows)],
        headings,
        table: cells,
        table_says: format!(
            "All figures of this case; {}{}",
            if site.network.is_some() { "times are virtual" } else { "times are those of the slowest node" },
            if rows.iter().any(|row| !row.native) { ", and * marks a topology with more nodes than ranks." } else { "." }
        ),
        maps: maps.into_iter().map(|(map, _)| map).collect(),
        maps_say: match (drawn, counted) {
            (false, _) => COLUMNS.into(),
            (true, false) => VESSELS.into(),
            (true, true) => format!("{VESSELS} Where there are too many to be drawn: {}", COLUMNS.to_lowercase()),
        },
        ..Case::default()
    }
}

const VESSELS: &str = "Each square is a node, filled as far as it is loaded; the line across it is its quota, a broken rim a virtual node. After a good phase \
                       all are filled to their lines.";
const COLUMNS: &str = "How many nodes have how many tasks; after a good phase all stand in one column.";

const PARTS: [(&str, &str); 3] = [("information", "gathering information"), ("decision", "deciding"), ("exchange", "exchanging tasks")];

fn time(rows: &[Row]) -> Figure {
    let bar = |row: &Row| Bar {
        name: row.balancer.into(),
        parts: PARTS.iter().zip(shares(row)).map(|((class, _), ms)| (ms, *class)).collect(),
        interval: row.interval.map(|[low, high]| (low, high)),
        label: duration_us(row.ms * 1e3),
        ..Bar::default()
    };
    let busy = || rows.iter().filter(|row| row.moved > 0);
    let least = busy().map(|row| row.ms).fold(f64::INFINITY, f64::min);
    let most = busy().map(|row| row.ms).fold(0.0, f64::max);
    let mut says = match busy().count() {
        0 => "Nothing moved".into(),
        1 => format!("The phase took {}", duration_us(least * 1e3)),
        _ => format!("Those that move anything took {} to {}", duration_us(least * 1e3), duration_us(most * 1e3)),
    };
    let mut legend = PARTS.to_vec();
    match rows.iter().filter(|row| row.interval.is_some()).map(|row| row.coverage).reduce(f64::min) {
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
        rows: rows.iter().map(bar).collect(),
        reference: None,
    };
    Figure { heading: "Time", says, legend, svg: chart::bars(&chart) }
}

/// The parts of the whole time. Medians of the parts need not add up to the median of the whole, so only their proportions are taken.
fn shares(row: &Row) -> [f64; 3] {
    let sum: f64 = row.parts.iter().sum();
    row.parts.map(|part| if sum > 0.0 { part / sum * row.ms } else { 0.0 })
}

fn hops(rows: &[Row]) -> Figure {
    let bar = |row: &Row| Bar {
        name: row.balancer.into(),
        parts: vec![(row.hops as f64, "plain")],
        mark: row.optimum.map(|optimum| optimum as f64),
        label: match row.optimum {
            Some(optimum) if optimum == row.hops => "least".into(),
            Some(optimum) if optimum > 0 && row.hops > 0 => format!("× {}", ratio(row.hops as f64 / optimum as f64)),
            _ => chart::plain(row.hops as f64),
        },
        ..Bar::default()
    };
    let least: Vec<&str> = rows.iter().filter(|row| row.moved > 0 && row.optimum == Some(row.hops)).map(|row| row.balancer).collect();
    let says = match (least.as_slice(), rows.iter().any(|row| row.optimum.is_some())) {
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
        rows: rows.iter().map(bar).collect(),
        reference: None,
    };
    Figure {
        heading: "Task-hops against the optimum",
        says,
        legend: vec![("plain", "task-hops"), ("diamond", "least possible")],
        svg: chart::bars(&chart),
    }
}

fn imbalance(rows: &[Row]) -> Figure {
    let bar = |row: &Row| Bar {
        name: row.balancer.into(),
        parts: vec![(row.imbalance[1], "plain")],
        label: ratio(row.imbalance[1]),
        ..Bar::default()
    };
    let before = rows.iter().map(|row| row.imbalance[0]).fold(0.0, f64::max);
    let best = rows.iter().map(|row| row.imbalance[1]).fold(f64::INFINITY, f64::min);
    let said = format!("before: {}", ratio(before));
    let chart = Bars {
        title: "imbalance after a phase by balancer",
        axis: "largest load / mean load (1 is even)",
        rows: rows.iter().map(bar).collect(),
        reference: Some((before, &said)),
    };
    let says = format!("The most loaded rank has {} times the mean before, and {} times at the best after.", ratio(before), ratio(best));
    Figure { heading: "Imbalance left", says, legend: Vec::new(), svg: chart::bars(&chart) }
}

fn cells(rows: &[Row], site: &Site) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings =
        vec!["balancer", "topology", "imbalance after", "moved (least)", "task-hops (× least)", "steps", "messages", "bytes"];
    if site.hosts > 1 {
        headings.push("bytes between hosts");
    }
    headings.push("time, ms");
    if rows.iter().any(|row| row.interval.is_some()) {
        headings.push("interval, ms");
    }
    let are_times = rows.iter().any(|row| row.step_us.is_some());
    let pays = if are_times { "a step after it takes" } else { "pays when a task (a unit of work) lasts" };
    headings.extend(["information / decision / exchange", pays]);
    let cells = |row: &Row| {
        let hops = match row.optimum {
            Some(optimum) if optimum > 0 && row.hops > 0 => format!("{} ({})", whole(row.hops), ratio(row.hops as f64 / optimum as f64)),
            _ => whole(row.hops),
        };
        let mut cells = vec![
            row.balancer.to_string(),
            format!("{}{}", row.topology, if row.native { "" } else { "*" }),
            ratio(row.imbalance[1]),
            row.least.map_or(whole(row.moved), |least| format!("{} ({})", whole(row.moved), whole(least))),
            hops,
            row.steps.to_string(),
            whole(row.messages),
            bytes(row.bytes),
        ];
        if site.hosts > 1 {
            cells.push(bytes(row.host_bytes));
        }
        cells.push(three(row.ms));
        cells.extend(row.interval.map(|[low, high]| format!("{} – {}", three(low), three(high))));
        cells.push(row.parts.map(|ms| duration_us(ms * 1e3)).join(" / "));
        cells.push(match (row.step_us, row.break_even_us) {
            (Some(us), _) => duration_us(us),
            (None, Some(us)) => format!("{} or more", duration_us(us)),
            (None, None) => "never".into(),
        });
        cells
    };
    (headings, rows.iter().map(cells).collect())
}

/// Its pictures, and whether they show single nodes.
fn map(row: &Row) -> (Map, bool) {
    let Sketches { before, after, nodes, omits } = sketch::sketches(row.map);
    let says = format!("{} moved{}{}", several(row.moved, "task"), if omits.is_some() { ". " } else { "." }, omits.unwrap_or_default());
    (Map { title: format!("{} on {}", row.balancer, row.topology), says, before, after }, nodes)
}

fn node_cells(record: &BalanceRecord, node: usize) -> [String; 5] {
    [node.to_string(), record.powers.shown(node), whole(record.loads[node]), whole(record.quota[node]), whole(record.finals[node])]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::advice::tests::record;
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

    fn rendered(command: &str, records: &[CompareRecord]) -> String {
        let mut out = Vec::new();
        compare(&mut out, &environment(command), records).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_page_has_all_and_needs_nothing() {
        let records = [record("cwa", "hot", 0.2, 10.0), record("direct", "hot", 0.1, 10.0), record("cwa", "uniform", 0.2, 10.0)];
        let page = rendered("equipoise compare", &records);
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
        // Three charts for each of two cases, and loads before and after for each record.
        assert_eq!(page.matches("role=\"img\"").count(), 2 * 3 + 3 * 2);
        for outside in ["http://", "https://", "src=", "href=", "@import", "url(\"", "<script"] {
            let without_names = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_names.contains(outside), "{outside}");
        }
    }

    #[test]
    fn what_users_write_stays_text() {
        let evil = "<img src=x onerror=alert(1)>";
        let records = [record(evil, &format!("@{evil}"), 0.2, 10.0), record("b\"'&", "hot", 0.2, 10.0)];
        let page = rendered(&format!("equipoise '{evil}' {{{{ 7 * 7 }}}} {{% raw %}}"), &records);
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
