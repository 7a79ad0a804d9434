//! Tables and summaries for people, as plain text.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::advice;
use super::columns::{self, Heading, Tabular};
use super::figures::{bytes, duration_us, payload, ratio, several, three, whole};
use crate::experiment::balance::Embedded;
use crate::experiment::{BalanceRecord, CaseResult, CompareRecord, LoadUnit, Site};
use equipoise::load::{ColumnRatio, Crossings, Holding};

/// Maximum number of entries of a list that is shown to people.
const LISTED: usize = 64;

/// A table of the columns that people see for these rows, made for a width in characters.
pub(super) fn of<R: Tabular>(rows: &[R], width: u16) -> Table {
    let (headings, cells) = columns::shown(rows);
    let text = headings.iter().take_while(|heading| heading.is_text).count();
    let headings: Vec<String> = headings.iter().map(Heading::in_lines).collect();
    let mut table = table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), text, width);
    table.add_rows(cells);
    table
}

/// An empty table with these headings, made for a width in characters. The first `left` columns are aligned to the left.
pub fn table(headings: &[&str], left: usize, width: u16) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(headings.iter().enumerate().map(|(column, heading)| {
        let alignment = if column < left { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(heading).set_alignment(alignment)
    }));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The lines of a table, without the blanks at their ends.
pub fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// One phase in some lines.
pub fn balance(record: &BalanceRecord) -> String {
    let BalanceRecord { site, imbalance, .. } = record;
    let mut out = format!("{} on {}, {}\n", record.balancer, topology(record), place(site));
    if let Some(Embedded { grid, virtual_nodes, virtual_links, dilation, mean_dilation }) = &record.embedding {
        let missing = format!("{}, {}", several(*virtual_nodes, "virtual node"), several(*virtual_links, "virtual link"));
        out.push_str(&format!("  embedded   in {grid}: {missing}, dilation {} ({} on average)\n", ratio(*dilation), ratio(*mean_dilation)));
    }
    let payload = if record.payload > 0 { format!(" {}", payload(record.payload, record.weighing.payload_is_mean)) } else { String::new() };
    let mut line = |name: &str, text: String| out.push_str(&format!("  {name:<11}{text}\n"));
    line("tasks", format!("{}{payload}", whole(record.tasks)));
    let weighing = &record.weighing;
    if let Some(work) = &weighing.work {
        line("work", format!("{}, the largest task {}", several(work.work, "unit"), whole(weighing.largest_task)));
    }
    if weighing.pinned_tasks > 0 {
        line("pinned", several(weighing.pinned_tasks, "task"));
    }
    let figures = |i: &equipoise::judge::Imbalance| {
        format!(
            "{} max/mean, {} max/mean - 1, {} mean/max",
            ratio(i.max_over_mean),
            three(i.max_over_mean_less_one),
            ratio(i.mean_over_max)
        )
    };
    line("imbalance", format!("{} before", figures(&imbalance.before)));
    line("", format!("{} after", figures(&imbalance.after)));
    if record.declined {
        line("declined", "moves that would have made the slowest rank slower (--plain makes them)".into());
    }
    // These are no bounds where quotas are not met, or where tasks must also move for other reasons.
    let is_bound = record.exact && record.memory.is_none() && record.columns.is_none();
    let least = |least: String| if is_bound { format!(" (the least possible: {least})") } else { String::new() };
    let optimum = record.optimum_task_hops.map(|optimum| least(whole(optimum))).unwrap_or_default();
    let minimum = weighing.work.as_ref().map_or(whole(record.minimum_nonlocal), |_| several(record.minimum_nonlocal, "unit"));
    line("moved", format!("{}{} in {}", several(record.nonlocal_tasks, "task"), least(minimum), several(record.transfers, "transfer")));
    line("task-hops", format!("{}{optimum}", whole(record.task_hops)));
    if let Some(work) = &weighing.work {
        let optimum = work.optimum_work_hops.map(|optimum| format!(" (the least for quotas met exactly: {})", whole(optimum)));
        line("work-hops", format!("{}{}", whole(work.work_hops), optimum.unwrap_or_default()));
    }
    if weighing.work.is_some() || weighing.pinned_tasks > 0 {
        let best = format!("at best {} if work could be parted at will", whole(weighing.best_deviation));
        line("deviation", format!("{} from a quota at most ({best})", whole(weighing.deviation)));
    }
    let mut messages =
        format!("{}, {}, {}", several(record.steps.into(), "step"), several(record.messages, "message"), bytes(record.bytes));
    if record.site.hosts > 1 {
        messages.push_str(&format!(" ({} of them between hosts)", bytes(record.host_bytes)));
    }
    line("cost", messages);
    if let Some(Crossings { before, after, .. }) = record.crossings {
        let hosts = if record.site.hosts > 1 {
            format!(", {} and {} hosts", bytes(before.hosts as u64), bytes(after.hosts as u64))
        } else {
            String::new()
        };
        let (were, are) = (bytes(before.ranks as u64), bytes(after.ranks as u64));
        line("talk", format!("{were} between tasks cross ranks before, {are} after{hosts}"));
    }
    for ColumnRatio { name, before, after, .. } in record.columns.iter().flatten() {
        line("weight", format!("{name}: largest load {} of its fair share before, {} after", ratio(*before), ratio(*after)));
    }
    if let Some(memory) = &record.memory {
        line("memory", format!("{} before", fullest(memory.fullest_before())));
        line("", format!("{} after", fullest(memory.fullest_after())));
    }
    line(
        "time",
        format!(
            "{} (information {}, decision {}, exchange {})",
            duration_us(record.seconds * 1e6),
            duration_us(record.ms_information * 1e3),
            duration_us(record.ms_decision * 1e3),
            duration_us(record.ms_exchange * 1e3)
        ),
    );
    line("pays", pays(record));
    if let Some(shared) = shared_cores(site) {
        line("cores", shared);
    }
    if record.loads.len() <= LISTED {
        let listed = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        line("loads", listed(&record.loads));
        if record.powers.differ() {
            line("powers", (0..record.loads.len()).map(|node| record.powers.shown(node)).collect::<Vec<_>>().join(" "));
        }
        line("quotas", listed(&record.quota));
        if let Some(reachable) = &record.reachable {
            line("reachable", listed(reachable));
        }
        line("final", listed(&record.finals));
        if !record.native {
            line("by rank", listed(&record.final_by_rank));
        }
        if let Some(memory) = &record.memory {
            line("bytes", format!("{} before", listed(&memory.before)));
            line("", format!("{} after", listed(&memory.after)));
        }
    }
    out
}

/// The rank that holds the largest part of its capacity.
fn fullest(holding: Option<Holding>) -> String {
    match holding {
        Some(Holding { rank, held, capacity, .. }) => format!("rank {rank} holds {} and has room for {}", bytes(held), bytes(capacity)),
        None => "no rank holds a byte".into(),
    }
}

fn topology(record: &BalanceRecord) -> String {
    let name = shortened(&record.topology);
    match (u64::from(record.nodes)).saturating_sub(u64::from(record.site.ranks)) {
        0 => format!("{name} (native)"),
        virtual_nodes => format!("{name} (overlay: {})", several(virtual_nodes, "virtual node")),
    }
}

/// A name cut to what a line can take: trees given by their parents have long ones.
pub(super) fn shortened(name: &str) -> String {
    const MOST: usize = 48;
    match name.char_indices().nth(MOST) {
        None => name.to_string(),
        Some((end, _)) => format!("{}..", &name[..end]),
    }
}

/// One phase in a sentence.
pub(super) fn verdict(record: &BalanceRecord) -> String {
    let brings = format!(
        "{} brings the imbalance from {} to {} (max/mean) in {}",
        record.balancer,
        ratio(record.imbalance.before.max_over_mean),
        ratio(record.imbalance.after.max_over_mean),
        duration_us(record.seconds * 1e6)
    );
    let phase = &record.phase;
    match advice::result(phase) {
        Some(result) if phase.beyond_capacity().is_some() || phase.largest_ratios().is_some() => format!("{}: {result}.", record.balancer),
        Some(result) => format!("{brings}: {result}."),
        None => format!("{brings}; it pays {}.", pays(record)),
    }
}

/// The condition under which a phase pays, or what it achieves where that is more.
fn pays(record: &BalanceRecord) -> String {
    let (before, after) = (record.makespan_before, record.makespan_after);
    match (advice::result(&record.phase), record.break_even_us) {
        (Some(result), _) => result,
        (None, None) if after > before => format!("never: the slowest rank takes {} times as long as before", ratio(after / before)),
        (None, None) => "never: the slowest rank takes as long as before".into(),
        (None, Some(us)) if us < advice::SHORTEST_US && record.weighing.unit == LoadUnit::Work && (before - after).is_finite() => {
            format!("when {} of work last longer than that", several((before - after) as u64, "unit"))
        }
        (None, Some(us)) => format!("when {} lasts {} or more", record.weighing.unit.one(), duration_us(us)),
    }
}

/// A remark on ranks that share cores; `None` if each has one.
pub(super) fn shared_cores(site: &Site) -> Option<String> {
    let cores = site.cores.filter(|_| site.shares_cores())?;
    Some(format!(
        "{} share {}: when a phase pays is reckoned with these, and phases take longer than with a core for each",
        several(site.ranks.into(), "rank"),
        several(cores.into(), "core")
    ))
}

/// `8 ranks on 2 hosts` or `8 simulated ranks, network ..`.
pub(super) fn place(site: &Site) -> String {
    match &site.network {
        None => {
            let shared = match site.cores {
                Some(cores) if site.shares_cores() => format!(", sharing {}", several(cores.into(), "core")),
                _ => String::new(),
            };
            format!("{} on {}{shared}", several(site.ranks.into(), "rank"), several(site.hosts.into(), "host"))
        }
        Some(network) => {
            let hosts = if site.hosts > 1 { format!(" on {} hosts", site.hosts) } else { String::new() };
            format!("{}{hosts}, network {network}", several(site.ranks.into(), "simulated rank"))
        }
    }
}

/// A comparison: a heading and a table for each case.
pub fn compare(results: &[CaseResult], width: u16) -> String {
    let records = || results.iter().flat_map(|result| &result.records);
    let Some(first) = records().next() else { return String::new() };
    let rounds = match first.site.network {
        None => format!("{}; {}", several(first.repeat.into(), "round"), intervals(first)),
        Some(_) => "times are virtual and repeat exactly".into(),
    };
    let mut out = format!("{}; {rounds}\n", place(&first.site));
    for result in results {
        out.push('\n');
        out.push_str(&heading(result));
        out.push_str(&lines(&of(&result.records, width)));
    }
    out.push('\n');
    if records().any(|record| !record.native) {
        out.push_str("* an overlay: the topology has more nodes than there are ranks\n");
    }
    if let Some(shared) = shared_cores(&first.site) {
        out.push_str(&format!("The {shared}.\n"));
    }
    harm(records()).iter().for_each(|said| out.push_str(&format!("{said}\n")));
    out
}

/// The balancers that declined moves, and those that made the slowest rank slower, a sentence each.
pub(super) fn harm<'a>(records: impl Iterator<Item = &'a CompareRecord> + Clone) -> Vec<String> {
    let names = |which: fn(&&CompareRecord) -> bool| {
        let mut names: Vec<&str> = Vec::new();
        for record in records.clone().filter(which) {
            if !names.contains(&record.balancer.as_str()) {
                names.push(&record.balancer);
            }
        }
        names
    };
    let declined = names(|record| record.declined);
    let slower = names(|record| {
        let [before, after] = record.largest_ratios().unwrap_or([record.imbalance_before, record.imbalance_after]);
        after > before
    });
    let said = |what: &str, names: Vec<&str>| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
    let sentences = [
        said("Moves that would have made the slowest rank slower were declined by", declined),
        said("The slowest rank became slower with", slower),
    ];
    sentences.into_iter().flatten().collect()
}

/// A remark on the confidence intervals.
fn intervals(record: &CompareRecord) -> String {
    match record.ms_ci95 {
        None => "one time says nothing about the next, so there are no intervals".into(),
        Some(_) => format!("times are medians with their {} confidence intervals", coverage(record.ms_coverage)),
    }
}

/// A coverage, rounded down: `96 %`.
pub(super) fn coverage(coverage: f64) -> String {
    // 0.99 is a little less than 0.99 in binary.
    format!("{} %", (coverage * 100.0 + 1e-9).floor())
}

/// Loads and payload as a heading: `hot:total=1000, tasks of 64 B`.
pub(super) fn title(loads: &str, record: &CompareRecord) -> String {
    format!("{loads}, tasks {}", payload(record.payload, record.weighing.payload_is_mean))
}

fn heading(CaseResult { loads, records, .. }: &CaseResult) -> String {
    let Some(record) = records.first() else { return String::new() };
    let payload = payload(record.payload, record.weighing.payload_is_mean);
    let weighing = &record.weighing;
    let work = weighing.work.as_ref();
    let work_of =
        |work: &crate::experiment::Work| format!(" of {} (the largest {})", several(work.work, "work unit"), whole(weighing.largest_task));
    let pinned = if weighing.pinned_tasks > 0 { format!(", {} pinned", whole(weighing.pinned_tasks)) } else { String::new() };
    // A bound for balancers that meet the quotas; shown only if one does.
    let least = records.iter().filter(|record| record.exact).map(|record| record.least).min();
    let least = least.map(|least| work.map_or(whole(least), |_| several(least, "unit")));
    let least = least.map(|least| format!(", at least {least} must move to meet the quotas")).unwrap_or_default();
    let step = match record.unit_seconds() {
        Some(seconds) => format!(", a step takes {}", duration_us(record.makespan_before * seconds * 1e6)),
        None => String::new(),
    };
    format!(
        "{}: {} {payload}{}{pinned}{step}, imbalance {} (max/mean, at best {}){least}\n",
        shortened(&loads.to_string()),
        several(record.tasks, "task"),
        work.map(work_of).unwrap_or_default(),
        ratio(record.imbalance_before),
        ratio(record.imbalance_bound),
    )
}
