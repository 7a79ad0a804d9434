//! Output of `run` for programs, and its files.

use equipoise::schedule;
use equipoise_lab::workload::{graphs, independent};
use serde_json::Value;

use crate::contract::{Key, assert_keys, interval, lines, number_or_null};
use crate::files::file;

fn numbers(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_number))
}

const RUN: &[Key] = &[
    ("scheduler", Value::is_string),
    ("workload", Value::is_string),
    ("topology", Value::is_string),
    ("native", Value::is_boolean),
    ("ranks", Value::is_u64),
    ("workers", Value::is_u64),
    ("tasks", Value::is_u64),
    ("answer", Value::is_number),
    ("known", number_or_null),
    ("makespan", Value::is_number),
    ("sequential", Value::is_number),
    ("efficiency", Value::is_number),
    ("bound", Value::is_number),
    ("gain", number_or_null),
    ("messages", Value::is_u64),
    ("bytes", Value::is_u64),
    ("migrated", Value::is_u64),
    ("busy", numbers),
];

const REPEATED: &[Key] = &[
    ("repeat", Value::is_u64),
    ("makespan_mean", Value::is_number),
    ("makespan_median", Value::is_number),
    ("sequential_median", Value::is_number),
    ("makespan_ci95", interval),
    ("makespan_coverage", Value::is_number),
    ("makespans", numbers),
];

const STREAM: &[Key] = &[("response_mean", Value::is_number), ("response_ci95", interval), ("graphs", Value::is_u64)];

fn sum(values: &Value) -> f64 {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).sum()
}

#[test]
fn every_scheduler_prints_every_key_on_any_number_of_ranks() {
    for scheduler in schedule::ALL {
        for (ranks, workers) in [(1, 1), (5, 3), (8, 1)] {
            let name = scheduler.name;
            let lines = lines(&format!("run --sim {ranks} --workers {workers} --scheduler {name} --workload queens:n=7 --output json"));
            let [object] = &lines[..] else { panic!("{} lines", lines.len()) };
            assert_keys(object, RUN);
            assert_eq!((object["answer"].as_u64(), object["known"].as_u64()), (Some(40), Some(40)), "{name}");
            assert_eq!(object["busy"].as_array().unwrap().len(), ranks);
            let sequential = object["sequential"].as_f64().unwrap();
            assert!((sum(&object["busy"]) - sequential).abs() < 1e-12, "{name}: virtual time is spent by tasks only");
            let ideal = object["makespan"].as_f64().unwrap() * f64::from(workers) * ranks as f64;
            assert!((object["efficiency"].as_f64().unwrap() * ideal - sequential).abs() < 1e-9 * ideal, "{name}");
            assert!(object.get("makespan_mean").is_none() && object.get("graphs").is_none());
        }
    }
}

#[test]
fn repeated_runs_have_a_mean() {
    let workload = "tree:levels=4,children=3,least=1,task=1ms";
    let several = lines(&format!("run --sim 4 --scheduler steal --workload {workload} --repeat 3 --seed 5 --output json"));
    assert_keys(&several[0], REPEATED);
    let alone = |seed: u32| lines(&format!("run --sim 4 --scheduler steal --workload {workload} --seed {seed} --output json")).remove(0);
    let makespans: Vec<Value> = (5..8).map(|seed| alone(seed)["makespan"].clone()).collect();
    assert_eq!(several[0]["makespans"], Value::from(makespans.clone()), "seeds 5 to 7");
    let mean = sum(&Value::from(makespans)) / 3.0;
    assert!((several[0]["makespan_mean"].as_f64().unwrap() - mean).abs() < 1e-12);
}

#[test]
fn a_stream_tells_its_response_times_in_its_own_unit() {
    let run =
        |unit: &str| lines(&format!("run --sim 16 --workload stream:graphs=300,utilisation=0.05,unit={unit} --output json")).remove(0);
    let (short, long) = (run("10ms"), run("1000ms"));
    for line in [&short, &long] {
        assert_keys(line, RUN);
        assert_keys(line, STREAM);
        assert_eq!(line["graphs"], 300);
    }
    let [short, long] = [short, long].map(|line| line["response_mean"].as_f64().unwrap());
    assert!((short - long).abs() < 0.01 && (0.5..1.2).contains(&long), "{short} {long}");
}

#[test]
fn compare_prints_a_line_for_each_scheduler() {
    let all = lines("run --sim 6 --compare --workload fibonacci:n=16,cutoff=8 --output json");
    assert_eq!(all.len(), schedule::ALL.len());
    all.iter().for_each(|line| assert_keys(line, RUN));
    assert!(all.iter().all(|line| line["answer"] == 987 && line["tasks"] == all[0]["tasks"]));
    let two = lines("run --sim 6 --compare neighbour:age=0,hops=2,static --workload fibonacci:n=9 --output json");
    assert_eq!([&two[0]["scheduler"], &two[1]["scheduler"]], ["neighbour:age=0,hops=2", "static"]);
}

#[test]
fn duties_reach_the_hierarchical_schedulers() {
    let line = lines("run --sim 16 --host dedicated --medians dedicated --workload queens:n=7 --output json").remove(0);
    assert_eq!(line["scheduler"], "hierarchical:host=dedicated,medians=dedicated");
    for region in line["regions"].as_array().unwrap() {
        let members = region["members"].as_array().unwrap();
        assert!(!members.contains(&region["median"]) && !members.contains(&Value::from(0)));
    }
}

#[test]
fn nodes_are_placed_by_the_rule() {
    for scheduler in ["steal", "hierarchical:host_rank=3", "neighbour:age=0.5"] {
        let run = |rule: &str| {
            let line =
                format!("run --sim 12 --sim-hosts 3,cyclic --workload queens:n=8 --scheduler {scheduler} --placement {rule} --output json");
            let record = lines(&line).remove(0);
            assert_eq!((&record["answer"], &record["known"]), (&92.into(), &92.into()), "{line}");
            record["makespan"].as_f64().unwrap()
        };
        assert!(run("hosts") != run("identity") && run("hosts") == run("hosts"), "{scheduler}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = |seed: u32| lines(&format!("run --sim 16 --scheduler steal --workload tree:levels=5 --seed {seed} --output json"));
    assert_eq!(text(7), text(7));
    assert_ne!(text(7)[0]["tasks"], text(8)[0]["tasks"]);
}

#[test]
fn tables_records_and_traces_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (table, timeline) = (folder.path().join("table.csv"), folder.path().join("trace.json"));
    let command = "run --sim 4 --compare steal,random --workload queens:n=6 --output json";
    let shown = lines(&format!("{command} --csv {} --trace {} --report {}", table.display(), timeline.display(), folder.path().display()));
    let csv = std::fs::read_to_string(&table).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2);
    let records = std::fs::read_to_string(folder.path().join("records.jsonl")).unwrap();
    assert_eq!(records.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>(), shown);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&timeline).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let executed = events.iter().filter(|event| event["ph"] == "X");
    let tasks: u64 = shown.iter().map(|line| line["tasks"].as_u64().unwrap()).sum();
    assert_eq!(executed.count() as u64, tasks, "one line a task");
    let left = |word: &str| events.iter().filter(|event| event["name"].as_str().unwrap().starts_with(word)).count();
    assert_eq!(left("task left"), left("task arrived"));
    // What is told last may come when all is done.
    assert!(left("heard") > 0 && left("heard") <= left("told"));
}

#[test]
fn list_tells_what_can_be_run() {
    let list = lines("list --output json").remove(0);
    let names =
        |key: &str| list[key].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_string()).collect::<Vec<_>>();
    let (spawning, independent) = (schedule::ALL.iter().map(|entry| entry.name), schedule::independent::ALL.iter().map(|entry| entry.name));
    assert_eq!(names("schedulers"), spawning.chain(independent).collect::<Vec<_>>());
    let (spawning, independent) = (graphs::ALL.iter().map(|entry| entry.name), independent::ALL.iter().map(|entry| entry.name));
    assert_eq!(names("workloads"), spawning.chain(independent).collect::<Vec<_>>());
    assert!(list["schedulers"].as_array().unwrap().iter().all(|entry| entry["tasks"] == "spawning" || entry["tasks"] == "independent"));
}

const INDEPENDENT: &[Key] = &[
    ("scheduler_rank", Value::is_u64),
    ("decisions", Value::is_u64),
    ("expansions", Value::is_u64),
    ("generated", Value::is_u64),
    ("search_time", Value::is_number),
    ("waiting_time", Value::is_number),
    ("v", number_or_null),
    ("v_bound", Value::is_number),
    ("lower_bound", Value::is_number),
    ("earliest_completion", Value::is_number),
    ("min_min", number_or_null),
    ("sufferage", number_or_null),
    ("optimum", number_or_null),
    ("gap", number_or_null),
];

#[test]
fn independent_tasks_print_every_key() {
    for scheduler in schedule::independent::ALL {
        for ranks in [1, 5] {
            let name = scheduler.name;
            let lines = lines(&format!("run --sim {ranks} --scheduler {name} --workload costs:tasks=40 --repeat 2 --output json"));
            let [object] = &lines[..] else { panic!("{} lines", lines.len()) };
            [RUN, REPEATED, INDEPENDENT].iter().for_each(|keys| assert_keys(object, keys));
            assert_eq!((object["answer"].as_u64(), object["tasks"].as_u64()), (Some(40), Some(40)), "{name}");
            assert_eq!(object["makespans"].as_array().unwrap().len(), 2);
            assert!(object["lower_bound"].as_f64() <= object["makespan"].as_f64(), "{name}");
        }
    }
}

#[test]
fn schedulers_that_need_no_cube_run_on_a_graph_from_a_file() {
    let file = file("# two triangles and a tail\n0 1\n1 2\n2 0\n2 3\n3 4\n4 5\n5 3\n5 6\n");
    let graph = format!("graph:{}", file.display());
    // 7 nodes on 5 ranks: two are virtual.
    for (ranks, native) in [(7, true), (5, false)] {
        let lines = lines(&format!(
            "run --sim {ranks} --compare --topology {graph} --workload tree:levels=4,children=3,roots=6,task=1ms --output json"
        ));
        assert_eq!(lines.len(), schedule::ALL.len() - 2, "all but hierarchical, and incremental with its usual balancer");
        for line in lines {
            assert_eq!((line["topology"].as_str(), line["native"].as_bool()), (Some(graph.as_str()), Some(native)), "{line}");
            assert!(line["answer"] == line["tasks"] && line["tasks"].as_u64() > Some(20), "{line}");
            let moved = line["migrated"].as_u64().unwrap() > 0;
            assert_eq!(moved, line["scheduler"] != "static", "{line}");
        }
    }
}

/// A word among the options of a scheduler in a list is no scheduler.
#[test]
fn words_stay_with_their_scheduler_in_lists() {
    for (workload, list, names) in [
        ("costs:tasks=20", "dss:static=0.3,affinity", &["dss:static=0.3,affinity"][..]),
        ("costs:tasks=20", "sash,dss:affinity,static=0.3,selfsched", &["sash", "dss:affinity,static=0.3", "selfsched"]),
        ("queens:n=5", "steal:victim=random,static,rid:low=1,u=0.4", &["steal:victim=random", "static", "rid:low=1,u=0.4"]),
    ] {
        let arguments = ["run", "--sim", "4", "--workload", workload, "--compare", list, "--output", "json"];
        let output = assert_cmd::Command::cargo_bin("equipoise").unwrap().args(arguments).output().unwrap();
        let ran: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["scheduler"].as_str().unwrap().to_string())
            .collect();
        assert_eq!(ran, names, "{list}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
