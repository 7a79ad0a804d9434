//! The keys of JSON that other programs rely on, and their types.

use assert_cmd::Command;
use serde_json::Value;

use crate::files::file;

/// A key and what its value is.
pub type Key = (&'static str, fn(&Value) -> bool);

pub fn integers(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_u64))
}

pub fn number_or_null(value: &Value) -> bool {
    value.is_number() || value.is_null()
}

fn moves(value: &Value) -> bool {
    let is_move = |item: &Value| ["step", "src", "dst", "tasks"].iter().all(|key| item[*key].is_u64());
    value.as_array().is_some_and(|list| list.iter().all(is_move))
}

pub fn interval(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.len() == 2 && list.iter().all(Value::is_number) && list[0].as_f64() <= list[1].as_f64())
}

const BALANCE: &[Key] = &[
    ("balancer", Value::is_string),
    ("topology", Value::is_string),
    ("ranks", Value::is_u64),
    ("nodes", Value::is_u64),
    ("loads", integers),
    ("powers", |value| value.as_array().is_some_and(|list| list.iter().all(Value::is_number))),
    ("quota", integers),
    ("final", integers),
    ("final_by_rank", integers),
    ("moves", moves),
    ("task_hops", Value::is_u64),
    ("optimum_task_hops", |value| value.is_u64() || value.is_null()),
    ("nonlocal_tasks", Value::is_u64),
    ("minimum_nonlocal", Value::is_u64),
    ("steps", Value::is_u64),
    ("messages", Value::is_u64),
    ("bytes", Value::is_u64),
    ("seconds", Value::is_f64),
    ("unit", Value::is_string),
    ("largest_task", Value::is_u64),
    ("pinned_tasks", Value::is_u64),
    ("deviation", Value::is_u64),
    ("best_deviation", Value::is_u64),
];

const COMPARE: &[Key] = &[
    ("balancer", Value::is_string),
    ("topology", Value::is_string),
    ("native", Value::is_boolean),
    ("ranks", Value::is_u64),
    ("loads", Value::is_string),
    ("payload", Value::is_u64),
    ("imbalance_before", Value::is_f64),
    ("imbalance_after", Value::is_f64),
    ("moved", Value::is_u64),
    ("least", Value::is_u64),
    ("task_hops", Value::is_u64),
    ("hops_ratio", number_or_null),
    ("steps", Value::is_u64),
    ("messages", Value::is_u64),
    ("bytes", Value::is_u64),
    ("ms_median", Value::is_f64),
    ("ms_ci95", interval),
    ("ms_information", Value::is_f64),
    ("ms_decision", Value::is_f64),
    ("ms_exchange", Value::is_f64),
    ("break_even_us", number_or_null),
];

pub fn lines(arguments: &str) -> Vec<Value> {
    let output = Command::cargo_bin("equipoise").unwrap().args(arguments.split_whitespace()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {errors}");
    assert_eq!(errors, "", "{arguments}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{arguments}: {why}: {line}"))).collect()
}

pub fn assert_keys(object: &Value, keys: &[Key]) {
    for (key, is_right) in keys {
        assert!(object.get(key).is_some_and(is_right), "{key}: {:?}", object.get(key));
    }
}

#[test]
fn balance_prints_one_object() {
    let lines = lines("balance --sim 8 --loads 19,11,2,9,0,9,10,4 --output json");
    let [object] = &lines[..] else { panic!("{} lines", lines.len()) };
    assert_keys(object, BALANCE);
    assert_eq!(object["balancer"], "cwa");
    assert_eq!(object["topology"], "hypercube:3");
    assert_eq!(object["final"], serde_json::json!([8, 8, 8, 8, 8, 8, 8, 8]));
    assert_eq!((object["task_hops"].as_u64(), object["optimum_task_hops"].as_u64()), (Some(21), Some(21)));
    assert_eq!((object["nonlocal_tasks"].as_u64(), object["minimum_nonlocal"].as_u64()), (Some(18), Some(18)));
    assert_eq!(object["steps"], 6);
}

#[test]
fn every_balancer_prints_every_key_on_any_number_of_ranks() {
    for balancer in equipoise::balance::without_places() {
        for ranks in [1, 5, 8] {
            let lines =
                lines(&format!("balance --sim {ranks} --balancer {} --loads poisson:mean=9 --payload 3 --output json", balancer.name));
            let [object] = &lines[..] else { panic!("{} lines", lines.len()) };
            assert_keys(object, BALANCE);
            let sum = |key: &str| object[key].as_array().unwrap().iter().map(|load| load.as_u64().unwrap()).sum::<u64>();
            assert_eq!(sum("loads"), sum("final"), "{}", balancer.name);
            assert_eq!(sum("final"), sum("final_by_rank"));
            assert_eq!(sum("final"), sum("quota"));
            assert_eq!(object["final_by_rank"].as_array().unwrap().len(), ranks);
            assert_eq!(object["nodes"].as_u64().unwrap() as usize, object["final"].as_array().unwrap().len());
        }
    }
}

#[test]
fn a_virtual_nodes_tasks_count_for_its_rank() {
    let lines = lines("balance --sim 5 --balancer none --topology mesh:2x4 --loads 1,1,1,1,1,10,20,30 --output json");
    assert_eq!(lines[0]["final_by_rank"], serde_json::json!([11, 21, 31, 1, 1]));
    assert_eq!(lines[0]["native"], false);
}

#[test]
fn a_list_for_the_ranks_fills_the_real_nodes() {
    for (command, loads) in [("balance", "loads"), ("compare --balancer cwa", "")] {
        let arguments = format!("{command} --sim 6 --loads 30,0,0,0,10,2 --powers 1,2,1,1,1,1 --output json");
        let lines = lines(&arguments);
        assert_eq!(lines.len(), 1, "{arguments}");
        if !loads.is_empty() {
            assert_eq!(lines[0][loads], serde_json::json!([30, 0, 0, 0, 10, 2, 0, 0]));
            assert_eq!(lines[0]["final"], serde_json::json!([6, 12, 6, 6, 6, 6, 0, 0]));
        }
    }
    let whole = lines("balance --sim 6 --loads 30,0,0,0,10,2,7,0 --output json");
    assert_eq!(whole[0]["loads"], serde_json::json!([30, 0, 0, 0, 10, 2, 7, 0]));
}

#[test]
fn compare_prints_a_line_for_each_combination() {
    let lines = lines("compare --sim 6 --loads hot:total=60 --loads zero --payload 0,100 --output json");
    assert_eq!(lines.len(), equipoise::balance::without_places().count() * 2 * 2);
    for line in &lines {
        assert_keys(line, COMPARE);
        assert_eq!(line["ranks"], 6);
    }
    let none = lines.iter().find(|line| line["balancer"] == "none").unwrap();
    assert_eq!((none["imbalance_before"].as_f64(), none["moved"].as_u64(), none["least"].as_u64()), (Some(6.0), Some(0), Some(50)));
    assert!(none["break_even_us"].is_null());
    let cwa = lines.iter().find(|line| line["balancer"] == "cwa" && line["payload"] == 100).unwrap();
    assert_eq!((cwa["imbalance_after"].as_f64(), cwa["native"].as_bool()), (Some(1.0), Some(false)));
    assert!(cwa["bytes"].as_u64().unwrap() > 50 * 100);
}

#[test]
fn with_weights_loads_are_work() {
    let lines = lines("balance --sim 2 --balancer direct --loads 3,1 --weights 4,5,6,1 --output json");
    assert_eq!(lines[0]["loads"], serde_json::json!([15, 1]));
    assert_eq!(lines[0]["quota"], serde_json::json!([8, 8]));
    assert_eq!(lines[0]["final"], serde_json::json!([9, 7]));
    assert_eq!(lines[0]["moves"], serde_json::json!([{"step": 0, "src": 0, "dst": 1, "tasks": 1, "work": 6}]));
    let figures =
        ["tasks", "work", "largest_task", "deviation", "best_deviation", "task_hops", "work_hops", "optimum_work_hops", "nonlocal_tasks"];
    assert_eq!(figures.map(|key| lines[0][key].as_u64().unwrap()), [4, 16, 6, 1, 0, 1, 6, 7, 1]);
    assert!(lines[0]["unit"] == "work" && lines[0]["optimum_task_hops"].is_null());
}

#[test]
fn pinned_tasks_stay() {
    let all = lines("balance --sim 4 --balancer cwa --loads 20,0,0,0 --pinned p=1 --output json");
    assert_eq!(
        (all[0]["final"].clone(), all[0]["reachable"].clone()),
        (serde_json::json!([20, 0, 0, 0]), serde_json::json!([20, 0, 0, 0]))
    );
    assert_eq!(
        [&all[0]["pinned_tasks"], &all[0]["deviation"], &all[0]["best_deviation"]].map(|value| value.as_u64().unwrap()),
        [20, 15, 15]
    );
    for balancer in equipoise::balance::ALL.iter().filter(|balancer| balancer.facts.promises.exact) {
        let lines = lines(&format!("balance --sim 8 --balancer {} --loads hot:total=80 --pinned p=0.5 --output json", balancer.name));
        assert_eq!(lines[0]["deviation"], lines[0]["best_deviation"], "{}", balancer.name);
        assert!(lines[0]["best_deviation"].as_u64().unwrap() > 10 && lines[0]["unit"] == "tasks");
    }
    assert!(lines("balance --sim 4 --loads 20,0,0,0 --output json")[0].get("reachable").is_none());
}

#[test]
fn weights_are_compared() {
    let lines = lines("compare --sim 8 --loads uniform:mean=20 --weights exponential:mean=50 --pinned p=0.1 --output json");
    assert_eq!(lines.len(), equipoise::balance::without_places().count());
    for line in &lines {
        assert_keys(line, COMPARE);
        assert_eq!((line["unit"].as_str(), line["tasks"].as_u64()), (Some("work"), Some(160)));
        assert!(line["deviation"].as_u64() >= line["best_deviation"].as_u64());
        let near = line["deviation"].as_u64().unwrap() <= 4 * line["largest_task"].as_u64().unwrap();
        assert!(near || ["none", "dem", "fos", "sos", "ops"].contains(&line["balancer"].as_str().unwrap()), "{line}");
    }
}

#[test]
fn a_phase_pays_above_its_crossover() {
    let mut paid = [false, false];
    for seconds in [1e-7, 1e-6, 1e-5, 3e-5, 1e-4, 1e-3] {
        let command = format!("compare --sim 8 --balancer psts,direct,cwa,none --task-seconds {seconds} --output json");
        for record in lines(&command) {
            let number = |key: &str| record[key].as_f64().unwrap();
            if record["balancer"] == "none" {
                assert!(record.get("crossover_excess").is_none(), "{record}");
                continue;
            }
            let gained = (number("finish_before") - number("finish_after")) * seconds;
            let pays = gained > number("ms_median") / 1e3;
            let above = number("imbalance_before") - 1.0 > number("crossover_excess");
            assert_eq!(above, pays, "{record}");
            assert!(number("crossover_arrival") < number("crossover_excess") * 8.0 / 7.0, "{record}");
            paid[usize::from(pays)] = true;
        }
    }
    assert_eq!(paid, [true, true]);
    // Nothing is said where nobody knows how long a task takes.
    assert!(lines("compare --sim 8 --balancer direct --output json")[0].get("crossover_excess").is_none());
}

#[test]
fn a_graph_is_read_from_its_file() {
    let file = file("# a ring of six\n0 1\n1 2\n2 3\n3 4\n4 5 0.5\n5 0\n");
    let graph = format!("graph:{}", file.display());
    for balancer in ["optimal", "direct", "psts", "dem", "none"] {
        let lines = lines(&format!("balance --sim 6 --balancer {balancer} --topology {graph} --loads 12,0,0,0,0,0 --output json"));
        assert_keys(&lines[0], BALANCE);
        assert_eq!((lines[0]["topology"].as_str(), lines[0]["native"].as_bool()), (Some(graph.as_str()), Some(true)));
        assert_eq!((&lines[0]["embedding"]["grid"], &lines[0]["embedding"]["virtual_nodes"]), (&"grid:2x2x2".into(), &2.into()));
        assert!(lines[0]["embedding"]["dilation"].as_f64().is_some_and(|dilation| (1.0..=4.0).contains(&dilation)));
        if ["optimal", "direct", "psts"].contains(&balancer) {
            assert_eq!(lines[0]["final"], serde_json::json!([2, 2, 2, 2, 2, 2]), "{balancer}");
        }
        // 2 * (1 + 2 + 3 + 2 + 1) task-hops.
        assert_eq!(lines[0]["optimum_task_hops"], 18);
        assert!(balancer != "optimal" || lines[0]["task_hops"] == 18);
    }
    let compared = lines(&format!("compare --sim 4 --topology {graph} --output json"));
    let on_graphs = equipoise::balance::without_places().filter(|entry| entry.facts.kinds.contains(&equipoise::topology::Kind::Graph));
    assert_eq!(compared.len(), on_graphs.count());
    assert!(compared.iter().all(|line| line["native"] == false));
    std::fs::write(&file, "0 1\n1 one\n").unwrap();
    let output = Command::cargo_bin("equipoise").unwrap().args(["balance", "--sim", "2", "--topology", &graph]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1));
    assert!(said.contains(&format!("{}: line 2: \"one\"", file.display())), "{said}");
}

#[test]
fn a_billion_tasks_a_node_cost_nothing() {
    let lines = lines("balance --sim 8 --loads hot:total=8000000000 --output json");
    assert_eq!(lines[0]["final"][7], 1_000_000_000u64);
}

#[test]
fn the_same_seed_gives_the_same_output() {
    let text =
        |seed: &str| lines(&format!("balance --sim 16 --loads sparse --powers uniform:1..10 --balancer mwa --seed {seed} --output json"));
    assert_eq!(text("7"), text("7"));
    assert_ne!(text("7")[0]["loads"], text("8")[0]["loads"]);
}

#[test]
fn list_tells_what_there_is() {
    let lines = lines("list --output json --ranks 16");
    let balancers = lines[0]["balancers"].as_array().unwrap();
    assert_eq!(balancers.len(), equipoise::balance::ALL.len());
    for balancer in balancers {
        assert!(["steps", "messages", "bytes"].iter().all(|key| balancer[*key].is_u64()));
        assert!(["name", "title", "source", "options", "topology", "quota"].iter().all(|key| balancer[*key].is_string()));
    }
    assert_eq!(lines[0]["topologies"].as_array().unwrap().len(), 9);
}

#[test]
fn quiet_says_nothing() {
    assert!(lines("balance --sim 8 --output quiet").is_empty());
    assert!(lines("compare --sim 3 --output quiet").is_empty());
}

#[test]
fn reports_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (table, report) = (folder.path().join("table.csv"), folder.path().join("report"));
    let shown = lines(&format!("compare --sim 4 --output json --csv {} --report {}", table.display(), report.display()));
    let csv = std::fs::read_to_string(&table).unwrap();
    assert_eq!(csv, std::fs::read_to_string(report.join("table.csv")).unwrap());
    assert_eq!(csv.lines().count(), 1 + shown.len());
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() >= columns));
    let records = std::fs::read_to_string(report.join("records.jsonl")).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records, shown);
    let page = std::fs::read_to_string(report.join("report.html")).unwrap();
    let page = page.replace("&#x2f;", "/");
    assert!(page.contains(&format!("compare --sim 4 --output json --csv {}", table.display())) && page.contains("<svg"));
    assert!(!page.contains("src=") && !page.contains("href="));
    lines(&format!("balance --sim 4 --output quiet --report {}", report.display()));
    let nodes = std::fs::read_to_string(report.join("table.csv")).unwrap();
    assert_eq!(nodes.lines().count(), 1 + 4);
    let page = std::fs::read_to_string(report.join("report.html")).unwrap();
    assert!(page.contains("cwa on hypercube:2") && page.contains("<th scope=\"col\">quota</th>"));
}

#[test]
fn files_are_tasks() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a/one", "1"), ("a/two", "22"), ("a/three", "333"), ("b/four", "4444")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let lines = lines(&format!("balance --sim 2 --balancer direct --tasks files:{} --output json", folder.path().display()));
    assert_eq!(lines[0]["loads"], serde_json::json!([3, 1]));
    assert_eq!(lines[0]["final"], serde_json::json!([2, 2]));
}

#[test]
fn traces_are_valid_and_causes_come_before_effects() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    for command in ["balance --sim 13 --loads hot:total=100 --payload 8", "compare --sim 6 --loads hot:total=60"] {
        lines(&format!("{command} --output quiet --trace {}", file.display()));
        let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let (mut sent, mut now) = (std::collections::BTreeMap::new(), (0, 0.0));
        let (mut arrows, mut phases) = (0, 0);
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let (pid, ts) = (event["pid"].as_u64().unwrap(), event["ts"].as_f64().unwrap());
            assert!(now.0 < pid || (now.0 == pid && now.1 <= ts), "{event} at {now:?}");
            now = (pid, ts);
            match event["ph"].as_str().unwrap() {
                "X" => phases += u32::from(event["cat"] == "phase"),
                "s" => assert!(sent.insert(event["id"].as_u64().unwrap(), ts).is_none(), "{event}"),
                "f" => {
                    let before = sent.get(&event["id"].as_u64().unwrap());
                    assert!(before.is_some_and(|before| *before < ts), "{event}: sent at {before:?}");
                    arrows += 1;
                }
                other => panic!("{other}"),
            }
        }
        assert_eq!((sent.len(), Some(arrows)), (arrows as usize, trace["otherData"]["arrows"].as_u64()));
        assert!(arrows > 30 && phases > 12, "{command}: {arrows} arrows, {phases} parts");
        assert_eq!(trace["otherData"]["messages left out"], 0);
        assert!(events.iter().any(|event| event["args"]["tasks"].as_u64() > Some(0)));
    }
}
