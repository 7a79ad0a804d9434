//! The columns of a comparison of balancers.

use super::super::figures::{self, bytes, duration_us, ratio, three, two, whole};
use super::{Column, Tabular, Value};
use crate::experiment::{CompareRecord, LoadUnit};
use equipoise::load::{Holding, Occupancy};
use equipoise::topology::Topology;

/// Times below this many milliseconds are those of doing nothing, on real ranks.
const NOTHING: f64 = 0.01;

impl Tabular for CompareRecord {
    fn columns() -> Vec<Column<CompareRecord>> {
        let new = Column::<CompareRecord>::new;
        let shown = Column::<CompareRecord>::shown;
        vec![
            new("balancer", |r| r.balancer.csv()).heading("balancer").left(),
            new("placement", |r| r.placement.map(str::to_string).csv())
                .heading("place\u{ad}ment")
                .reads(|r| r.placement.unwrap_or("-").into())
                .when(|records| records.iter().any(|r| r.placement.is_some()))
                .about("rule by which nodes are placed on ranks (--placement all)")
                .only_then()
                .left(),
            new("topology", |r| r.topology.csv()).heading("topology").reads(kind).left(),
            new("native", |r| r.native.csv()),
            new("ranks", |r| r.site.ranks.csv()),
            new("hosts", |r| r.site.hosts.csv()),
            new("network", |r| r.site.network.csv()),
            new("seed", |r| r.site.seed.csv()),
            new("nodes", |r| r.nodes.csv()),
            new("loads", |r| r.loads.csv()),
            new("payload", |r| r.payload.csv()),
            new("tasks", |r| r.tasks.csv()),
            new("repeat", |r| r.repeat.csv()),
            new("imbalance_before", |r| r.imbalance_before.csv()),
            new("imbalance_after", |r| r.imbalance_after.csv())
                .heading("imba\u{ad}lance")
                .reads(|r| ratio(r.imbalance_after))
                .about("max/mean load over ranks after the phase"),
            new("excess_before", |r| r.imbalance.before.max_over_mean_less_one.csv()),
            new("excess_after", |r| r.imbalance.after.max_over_mean_less_one.csv()),
            new("mean_over_max_before", |r| r.imbalance.before.mean_over_max.csv()),
            new("mean_over_max_after", |r| r.imbalance.after.mean_over_max.csv()),
            new("moved", |r| r.moved.csv())
                .heading("moved")
                .reads(|r| whole(r.moved))
                .about("tasks (with weights: work units) that left their node"),
            new("least", |r| r.least.csv()),
            new("task_hops", |r| r.task_hops.csv())
                .heading("task-hops")
                .reads(hops)
                .about("tasks times links crossed, to be compared within one topology only; in brackets:\nover its minimum, where all nodes reached their quotas"),
            new("hops_ratio", |r| r.hops_ratio.csv()),
            new("steps", |r| r.steps.csv()).heading("steps").about("longest chain of dependent messages"),
            new("messages", |r| r.messages.csv()).heading("msgs").reads(|r| whole(r.messages)).about("messages between ranks"),
            new("bytes", |r| r.bytes.csv()).heading("bytes").reads(|r| bytes(r.bytes)).about("bytes in these messages"),
            new("host_bytes", |r| r.host_bytes.csv())
                .heading("inter-\nhost")
                .reads(|r| bytes(r.host_bytes))
                .when(|records| records.iter().any(|r| r.site.hosts > 1))
                .about("bytes between hosts"),
            new("ms_median", |r| r.ms_median.csv())
                .heading("time")
                .unit("ms")
                .reads(time)
                .about("time of the slowest node, median over the rounds"),
            shown("interval", interval)
                .unit("ms")
                .when(|records| records.iter().any(has_interval))
                .about("confidence interval of the median"),
            new("ms_low", |r| r.ms_ci95.map(|interval| interval[0]).csv()),
            new("ms_high", |r| r.ms_ci95.map(|interval| interval[1]).csv()),
            new("ms_coverage", |r| r.ms_coverage.csv()),
            shown("info/dec/\nexch", parts).unit("%").about("shares of that time: gathering information, deciding, exchanging tasks"),
            new("ms_information", |r| r.ms_information.csv()),
            new("ms_decision", |r| r.ms_decision.csv()),
            new("ms_exchange", |r| r.ms_exchange.csv()),
            new("break_even_us", |r| r.break_even_us.csv())
                .heading("break-\neven")
                .reads(|r| r.break_even_us.map_or("never".into(), duration_us))
                .when(|records| !has_steps(records) && !has_columns(records) && records.iter().all(|r| r.beyond_capacity().is_none()))
                .about("task length (with weights: length of a work unit) from which the phase pays,\nwith the cores that the ranks share"),
            new("finish_before", |r| r.finish_before.csv()),
            new("finish_after", |r| r.finish_after.csv()),
            new("unit", |r| r.weighing.unit.csv()),
            new("largest_task", |r| r.weighing.largest_task.csv()),
            new("pinned_tasks", |r| r.weighing.pinned_tasks.csv()),
            new("deviation", |r| r.weighing.deviation.csv()),
            new("best_deviation", |r| r.weighing.best_deviation.csv()),
            new("exact", |r| r.exact.csv()),
            new("declined", |r| r.declined.csv()),
            new("cores", |r| r.site.cores.csv()),
            new("unit_seconds", |r| r.weighing.unit_seconds.csv()),
            new("makespan_before", |r| r.makespan_before.csv()),
            new("makespan_after", |r| r.makespan_after.csv())
                .heading("step")
                .reads(|r| r.unit_seconds().map_or("-".into(), |seconds| duration_us(r.makespan_after * seconds * 1e6)))
                .when(has_steps)
                .about("length of a step after the phase, where the duration of tasks is known"),
            new("imbalance_bound", |r| r.imbalance_bound.csv()),
            new("above_bound", |r| r.above_bound.csv())
                .heading("above\nbound")
                .unit("%")
                .reads(|r| if r.above_bound.is_finite() { format!("{:.1}", 100.0 * r.above_bound) } else { "-".into() })
                .when(|records| records.iter().any(|r| r.weighing.unit == LoadUnit::Work))
                .about("imbalance above the lower bound for whole tasks: all work over all power, the\nlargest task on the fastest rank, pinned work"),
            new("ms_predicted", |r| r.ms_predicted.csv())
                .heading("pre\u{ad}dicted")
                .unit("ms")
                .reads(|r| r.ms_predicted.map_or("-".into(), three))
                .when(|records| records.iter().any(|r| r.ms_predicted.is_some()))
                .about("time of the phase simulated on the network of --network FILE.toml")
                .only_then(),
            new("crossing_before", |r| r.crossings.map(|c| c.before.ranks).csv())
                .heading("talk\nbefore")
                .reads(|r| r.crossings.map_or("-".into(), |c| bytes(c.before.ranks as u64)))
                .when(talks)
                .about("bytes between tasks on different ranks before the phase")
                .only_then(),
            new("crossing_after", |r| r.crossings.map(|c| c.after.ranks).csv())
                .heading("talk\nafter")
                .reads(|r| r.crossings.map_or("-".into(), |c| bytes(c.after.ranks as u64)))
                .when(talks)
                .about("the same after it")
                .only_then(),
            new("host_crossing_before", |r| r.crossings.map(|c| c.before.hosts).csv())
                .heading("hosts\nbefore")
                .reads(|r| r.crossings.map_or("-".into(), |c| bytes(c.before.hosts as u64)))
                .when(talks_over_hosts)
                .about("bytes between tasks on different hosts before the phase")
                .only_then(),
            new("host_crossing_after", |r| r.crossings.map(|c| c.after.hosts).csv())
                .heading("hosts\nafter")
                .reads(|r| r.crossings.map_or("-".into(), |c| bytes(c.after.hosts as u64)))
                .when(talks_over_hosts)
                .about("the same after it")
                .only_then(),
            new("worst_column_before", |r| r.largest_ratios().map(|[before, _]| before).csv())
                .heading("ratio\nbefore")
                .reads(|r| r.largest_ratios().map_or("-".into(), |[before, _]| ratio(before)))
                .when(has_columns)
                .about("largest load over its rank's fair share, of all weights of --weights-columns, before")
                .only_then(),
            new("worst_column_after", |r| r.largest_ratios().map(|[_, after]| after).csv())
                .heading("ratio\nafter")
                .reads(|r| r.largest_ratios().map_or("-".into(), |[_, after]| ratio(after)))
                .when(has_columns)
                .about("the same after the phase")
                .only_then(),
            new("fullest_before", |r| filled(r, Occupancy::fullest_before).csv())
                .heading("full\nbefore")
                .unit("%")
                .reads(|r| filled(r, Occupancy::fullest_before).map_or("-".into(), |part| three(100.0 * part)))
                .when(has_capacity)
                .about("bytes of the fullest rank in percent of its capacity, before")
                .only_then(),
            new("fullest_after", |r| filled(r, Occupancy::fullest_after).csv())
                .heading("full\nafter")
                .unit("%")
                .reads(|r| filled(r, Occupancy::fullest_after).map_or("-".into(), |part| three(100.0 * part)))
                .when(has_capacity)
                .about("the same after the phase")
                .only_then(),
            new("crossover_excess", |r| r.crossover.map(|crossover| crossover.crossover_excess).csv())
                .heading("pays\nabove")
                .reads(|r| r.crossover.map_or("-".into(), |crossover| ratio(1.0 + crossover.crossover_excess)))
                .when(has_crossover)
                .about("imbalance from which the phase pays with tasks of the given length, with a core for\neach rank")
                .only_then(),
            new("crossover_arrival", |r| r.crossover.map(|crossover| crossover.crossover_arrival).csv())
                .heading("arrival")
                .unit("%")
                .reads(|r| r.crossover.map_or("-".into(), |crossover| three(100.0 * crossover.crossover_arrival)))
                .when(has_crossover)
                .about("work of one arriving task from which a phase that distributes it pays, in percent of\nthe mean load of a rank")
                .only_then(),
        ]
    }
}

/// Part of its capacity that the fullest rank holds, where ranks have one.
fn filled(record: &CompareRecord, fullest: fn(&Occupancy) -> Option<Holding>) -> Option<f64> {
    let part = |holding: Holding| holding.held as f64 / holding.capacity as f64;
    record.memory.as_ref().map(|memory| fullest(memory).map_or(0.0, part))
}

fn has_capacity(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.memory.is_some())
}

fn has_steps(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.unit_seconds().is_some())
}

fn has_columns(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.columns.is_some())
}

fn talks(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.crossings.is_some())
}

fn talks_over_hosts(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.crossings.is_some() && record.site.hosts > 1)
}

/// Kind and size of the topology, with a star if it has more nodes than ranks.
fn kind(record: &CompareRecord) -> String {
    format!("{}{}", kind_of(record), if record.native { "" } else { "*" })
}

/// The name of the topology, shortened for trees and grids of many dimensions, whose names are too long for a column.
pub(in crate::report) fn kind_of(record: &CompareRecord) -> String {
    match &record.map.topology {
        Topology::Tree(tree) => format!("tree:{}", tree.nodes()),
        Topology::Grid(grid) if grid.dims().len() > 3 && grid.dims().iter().all(|side| *side == grid.dims()[0]) => {
            format!("grid:{}^{}", grid.dims()[0], grid.dims().len())
        }
        _ => record.topology.clone(),
    }
}

fn hops(record: &CompareRecord) -> String {
    match record.hops_ratio {
        Some(ratio) if record.task_hops > 0 => format!("{} ({})", whole(record.task_hops), figures::ratio(ratio)),
        _ => whole(record.task_hops),
    }
}

/// Real ranks that move nothing take a time that says nothing.
fn takes_nothing(record: &CompareRecord) -> bool {
    record.site.network.is_none() && record.ms_median < NOTHING
}

fn time(record: &CompareRecord) -> String {
    if takes_nothing(record) { format!("<{NOTHING}") } else { three(record.ms_median) }
}

fn has_crossover(records: &[CompareRecord]) -> bool {
    records.iter().any(|record| record.crossover.is_some())
}

fn has_interval(record: &CompareRecord) -> bool {
    record.interval().is_some()
}

fn interval(record: &CompareRecord) -> String {
    let shown = record.interval().filter(|_| !takes_nothing(record));
    shown.map_or_else(|| "-".into(), |[low, high]| format!("{}-{}", two(low), two(high)))
}

/// The parts of the time in percent.
fn parts(record: &CompareRecord) -> String {
    let parts = record.parts();
    let sum: f64 = parts.iter().sum();
    if sum <= 0.0 {
        return "-".into();
    }
    parts.map(|part| format!("{:.0}", 100.0 * part / sum)).join("/")
}
