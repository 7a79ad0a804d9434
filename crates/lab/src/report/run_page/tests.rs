use super::super::html::tests::environment;
use super::*;
use crate::experiment::Site;
use crate::experiment::run::tests::simulated;
use crate::experiment::run::{NodeTimeline, Rounds, TraceEntry};
use crate::workload::graphs::Number;
use equipoise::schedule::accounting::Happening;
use equipoise::topology::RankId;

/// Two ranks, of which one is busy for a second and the other for the second half of it.
pub(in crate::report) fn record(scheduler: &str, makespan: f64) -> RunRecord {
    let executed = |rank: u32, at, ticks| NodeTimeline {
        node: rank,
        rank: RankId::new(rank),
        entries: vec![TraceEntry::new(at, None, Happening::Executed { ticks }), TraceEntry::new(at, None, Happening::Resumed)],
    };
    RunRecord {
        scheduler: scheduler.into(),
        workload: "tree:roots=<2>".into(),
        topology: "complete:2".into(),
        site: Site { ranks: 2, hosts: 1, seed: 1, ..Site::default() },
        unit_seconds: 1.0,
        tasks: 2,
        answer: Number::Whole(2),
        answer_is: "tasks",
        known: None,
        makespan,
        sequential: 1.5,
        sequential_is_plain: false,
        work: 1.5,
        efficiency: 0.75 / makespan,
        largest: 1.0,
        chain: 1.0,
        bound: 1.0,
        bound_efficiency: 1.0 / makespan,
        gain: Some(0.5),
        messages: 40,
        control: 30,
        bytes: 1234,
        migrated: 1,
        busy: vec![1.0, 0.5],
        idle: vec![makespan - 1.0, makespan - 0.5],
        overhead: vec![0.25, 0.25],
        simplicity: ["static", "random", "steal"].iter().position(|name| *name == scheduler).unwrap_or(9),
        timeline: vec![executed(0, 0, 1_000_000_000), executed(1, 500_000_000, 500_000_000)],
        ..simulated("tree:roots=2,levels=0", &["static"], 2, None, false).unwrap().remove(0)
    }
}

/// The same in several rounds, which differ by some per cent.
pub(in crate::report) fn repeated(scheduler: &str, makespan: f64, rounds: usize) -> RunRecord {
    let makespans = [0.95, 1.0, 1.05].iter().cycle().take(rounds).map(|part| part * makespan);
    let sequentials = [0.95, 1.0, 1.05].iter().cycle().take(rounds).map(|part| 1.5 * part);
    RunRecord { rounds: Some(in_rounds(makespans.collect(), sequentials.collect())), ..record(scheduler, makespan) }
}

/// Rounds of two workers; the bound is a second.
pub(in crate::report) fn in_rounds(makespans: Vec<f64>, sequentials: Vec<f64>) -> Rounds {
    let efficiencies: Vec<f64> = sequentials.iter().zip(&makespans).map(|(alone, makespan)| alone / (2.0 * makespan)).collect();
    let of_the_bound: Vec<f64> = makespans.iter().map(|makespan| 1.0 / makespan).collect();
    let gains: Vec<f64> = sequentials.iter().zip(&makespans).map(|(alone, makespan)| (alone - makespan) / (alone - 1.0)).collect();
    Rounds::of(makespans, sequentials, &efficiencies, &of_the_bound).unwrap().with_gains(&gains)
}

fn rendered(records: &[RunRecord]) -> String {
    let mut out = Vec::new();
    write(&mut out, &environment("equipoise run"), records).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_page_has_all_and_needs_nothing() {
    let page = rendered(&[repeated("steal", 1.25, 9), repeated("static", 2.0, 9), repeated("random", 1.25, 9)]);
    for text in [
        "On these 2 ranks use random (statistically tied with: steal): 1.25 s, 80.0% of what the granularity bound allows, 1.20 times as fast as one worker.",
        "tree:roots=&lt;2&gt;",
        "9 rounds, seeds from 1 on",
        "Open MPI v4",
        "60.0 (80.0)",
        "when the ranks were busy under static",
        "1.19-1.31 s",
        "whiskers cover the true median over seeds with 96 % confidence.",
        "Topologies: all on complete:2.",
        "interval of the median",
        "Ended after 2000 ms.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Five charts at least, and three timelines.
    assert!(page.matches("role=\"img\"").count() >= 5 + 3);
    assert!(!page.contains("Loads on the topology") && !page.contains("<script"));
    for outside in ["http://", "https://", "src=", "href="] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(outside), "{outside}");
    }
}

#[test]
fn one_run_is_told_without_intervals() {
    let page = rendered(&[record("steal", 1.25)]);
    assert!(page.contains("Makespan 1250 ms under steal, 80.0 % of what the granularity bound allows."));
    assert!(page.contains("with --repeat there are intervals") && !page.contains("interval of the median"));
}

#[test]
fn overhead_is_no_more_than_idle_time() {
    let [busy, overhead, idle] = parts_of_time(&record("steal", 1.125));
    // Rank 0 idled for 0.125 s only.
    assert_eq!([busy, overhead, idle], [0.75, 0.1875, 0.1875]);
}

#[test]
fn what_takes_much_longer_leaves_the_picture() {
    let (timelines, _) = timelines(&[record("steal", 1.0), record("static", 9.0)], ("s", 1.0));
    assert!(timelines[1].says.contains("9.00 s, beyond the picture") && !timelines[1].svg.contains("reference"));
    assert!(!timelines[0].says.contains("beyond") && timelines[0].svg.contains("reference"));
}
