//! `equipoise when`: its figures for programs, and what it says to wrong input.

use assert_cmd::Command;
use serde_json::Value;

use crate::contract::{Key, assert_keys, integers, number_or_null};
use crate::files::file;

fn when(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("equipoise").unwrap().arg("when").args(arguments).output().unwrap()
}

fn records(arguments: &[&str]) -> Vec<Value> {
    let output = when(&[arguments, &["--output", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sentence of a refusal, which is one line and wrong usage.
fn refusal(arguments: &[&str]) -> String {
    let output = when(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count(), output.stdout.len()), (Some(2), 1, 0), "{said}");
    said.trim_end().strip_prefix("equipoise: ").unwrap().to_string()
}

const RECORD: &[Key] = &[
    ("criterion", Value::is_string),
    ("total", Value::is_number),
    ("ratio", number_or_null),
    ("steps", integers),
    ("balancings", Value::is_u64),
    ("series_steps", Value::is_u64),
    ("ranks", Value::is_u64),
    ("cost", Value::is_number),
];

/// Two ranks, one of which gains a unit a step.
fn growing() -> String {
    (0..40).map(|step| format!("{} 10\n", 10 + step)).collect()
}

#[test]
fn each_criterion_stands_beside_the_best_schedule() {
    let series = file(growing());
    let path = series.to_str().unwrap();
    let all = records(&["--series", path, "--cost", "4"]);
    for record in &all {
        assert_keys(record, RECORD);
        assert!(record["ratio"].as_f64().unwrap() >= 1.0, "{record}");
    }
    let names: Vec<&str> = all.iter().map(|record| record["criterion"].as_str().unwrap()).collect();
    let known = [
        "never",
        "every:steps=4",
        "threshold",
        "marquez",
        "menon",
        "menon-baseline",
        "menon-interval",
        "zhai",
        "procassini",
        "boulmier",
        "predicted",
    ];
    assert_eq!(names, [&["optimal"], &known[..]].concat());
    let chosen = records(&["--series", path, "--cost", "4", "--trigger", "menon,threshold:above=1.2,window=2,never"]);
    let names: Vec<&str> = chosen.iter().map(|record| record["criterion"].as_str().unwrap()).collect();
    assert_eq!(names, ["optimal", "menon", "threshold:above=1.2,window=2", "never"]);
    // The largest of each step is 10, 11, .., 49.
    assert_eq!(chosen[3]["total"], 1180.0);
    // 0 + 0.5 + 1 + 1.5 + 2 reach 4 after the fifth step.
    assert_eq!(chosen[1]["steps"][0], 5);
}

#[test]
fn a_table_and_lines_are_one_series() {
    let lines = file(growing());
    let rows: String = (0..40).flat_map(|step| [format!("{step},1,10\n"), format!("{step},0,{}\n", 10 + step)]).collect();
    let table = file(format!("step,rank,work\n{rows}"));
    let of = |path: &str| when(&["--series", path, "--cost", "4", "--output", "csv"]).stdout;
    let (one, other) = (of(lines.to_str().unwrap()), of(table.to_str().unwrap()));
    assert_eq!(one, other);
    let csv = String::from_utf8(one).unwrap();
    assert!(csv.starts_with("criterion,total,ratio,balancings,steps,series_steps,ranks,cost\noptimal,"), "{csv}");
    assert_eq!(csv.lines().count(), 13);
}

#[test]
fn phases_of_a_run_are_a_series() {
    let runs = format!("lbaf:{}/../../tests/data/loads/lbaf-nolb-8color-32ranks", env!("CARGO_MANIFEST_DIR"));
    let all = records(&["--series", &runs, "--cost", "0.01"]);
    let (best, never) = (&all[0], &all[1]);
    assert_eq!((&best["series_steps"], &best["ranks"]), (&10.into(), &32.into()));
    assert!(never["ratio"].as_f64().unwrap() > 1.2, "{never}");
    let phases: Vec<u64> = best["steps"].as_array().unwrap().iter().map(|phase| phase.as_u64().unwrap()).collect();
    assert!(!phases.is_empty() && phases.iter().all(|phase| phase % 100 == 1), "{phases:?}");
}

#[test]
fn wrong_input_is_refused_in_one_sentence() {
    let uneven = file("1 2\n3\n");
    let path = uneven.to_str().unwrap();
    let fine = file("1 2\n3 4\n");
    let fine = fine.to_str().unwrap();
    for (arguments, why) in [
        (
            &["--series", path, "--cost", "1"][..],
            format!("--series {path}: line 2: it has 1 numbers, and the first step has 2: one for each rank"),
        ),
        (&["--series", "/no/such", "--cost", "1"], "--series /no/such: it cannot be read: No such file or directory (os error 2)".into()),
        (&["--series", fine, "--cost", "-1"], "invalid value '-1' for '--cost <TIME>': it must be a number, 0 or more".into()),
        (&["--series", fine, "--cost", "NaN"], "invalid value 'NaN' for '--cost <TIME>': it must be a number, 0 or more".into()),
        (&["--series", fine], "the following required arguments were not provided: --cost <TIME>".into()),
        (
            &["--series", fine, "--cost", "1", "--trigger", "mennon"],
            "--trigger 'mennon' is unknown; known are never, every, threshold, marquez, menon, menon-baseline, menon-interval, zhai, \
             procassini, boulmier, predicted"
                .into(),
        ),
        (
            &["--series", fine, "--cost", "1", "--trigger", "every:steps=0"],
            "--trigger every: steps is a whole number, 1 or more, not '0'".into(),
        ),
        (&["--series", "lbaf:", "--cost", "1"], "--series lbaf:: the name of a folder is missing".into()),
    ] {
        assert_eq!(refusal(arguments), why);
    }
}

#[test]
fn standard_input_and_a_single_step_are_ordinary() {
    let mut command = Command::cargo_bin("equipoise").unwrap();
    let output = command.args(["when", "--series", "-", "--cost", "0", "--output", "json"]).write_stdin("5\n").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.contains("\"total\":5.0,\"ratio\":1.0")), "{text}");
}
