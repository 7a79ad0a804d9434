//! Output of `balance` and `compare` for tasks with several weights, links from standard input, and chosen collectives.

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::files::file;

/// The records that a command prints, with this on standard input.
fn records(line: &str, input: &str) -> Vec<Value> {
    let mut command = Command::cargo_bin("equipoise").unwrap();
    let output = command.current_dir(super::ROOT).args(line.split(' ')).args(["--output", "json"]).write_stdin(input).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Two ranks; work is even at first, cells are all on rank 0.
const TABLE: &str = "rank,work,cells\n0,4,6\n0,4,6\n1,4,0\n1,4,0\n";

#[test]
fn all_weights_are_evened_out_and_told() {
    let before = |name: &str, before: f64, after: f64| json!({"name": name, "before": before, "after": after});
    for balancer in ["greedy", "refine", "greedy-refine"] {
        let line = format!("balance --sim 2 --balancer {balancer} --tasks - --weights-columns cells,work");
        let record = &records(&line, TABLE)[0];
        assert_eq!(record["columns"], json!([before("cells", 2.0, 1.0), before("work", 1.0, 1.0)]), "{record}");
        assert_eq!((&record["final"], &record["declined"]), (&json!([8, 8]), &json!(false)));
    }
    // By its work alone nothing has to move.
    let alone = &records("balance --sim 2 --balancer refine --tasks -", TABLE.replace(",cells", ",bytes").as_str())[0];
    assert_eq!((&alone["nonlocal_tasks"], alone.get("columns")), (&json!(0), None));
    let compared = records("compare --sim 2 --tasks - --weights-columns work,cells", TABLE);
    let names: Vec<_> = compared.iter().map(|record| record["balancer"].as_str().unwrap()).collect();
    assert_eq!(names, ["greedy", "refine", "greedy-refine", "none"]);
    assert_eq!(compared[3]["columns"], json!([before("work", 1.0, 1.0), before("cells", 2.0, 2.0)]));
}

#[test]
fn links_on_standard_input_hold_for_all_cases() {
    let compared = records("compare --sim 2 --balancer none --loads 2,2 --loads 3,1 --communications -", "0 3 10\n1 2 20\n");
    let crossing = |record: &Value| record["crossings"]["before"]["ranks"].as_f64();
    assert_eq!(compared.iter().map(crossing).collect::<Vec<_>>(), [Some(30.0), Some(10.0)]);
    // A task must be there in every case.
    let (mut command, links) = (Command::cargo_bin("equipoise").unwrap(), file("0 3\n"));
    command.args(["compare", "--sim", "2", "--loads", "2,2", "--loads", "1,1", "--communications"]).arg(&links);
    let refused = command.output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(2)
            && why.starts_with("equipoise: --communications /")
            && why.contains("line 1: task 3, but there are 2 tasks"),
        "{why}"
    );
}

#[test]
fn simulated_collectives_are_our_own_and_said_to_be() {
    let plain = records("balance --sim 5 --balancer direct --loads 9,1,0,0,0", "");
    for choice in ["own", "native", "auto"] {
        let mut told = records(&format!("balance --sim 5 --balancer direct --loads 9,1,0,0,0 --collectives {choice}"), "");
        let used = told[0].as_object_mut().and_then(|record| record.remove("collectives"));
        assert_eq!((used, &told), (Some(json!("own")), &plain));
    }
    let told = records("compare --sim 5 --balancer direct,psts --collectives native", "");
    assert!(told.iter().all(|record| record["collectives"] == "own") && told.len() == 2, "{told:?}");
}
