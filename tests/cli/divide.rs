//! `equipoise divide --model` from outside: what programs read, and what it draws.

use assert_cmd::Command;
use serde_json::Value;

fn json(arguments: &str) -> Value {
    let mut command = Command::cargo_bin("equipoise").unwrap();
    let output = command.args(["divide", "--model", "--output", "json"]).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{arguments}: {why}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Every known answer, asked for as it is written, in fractions.
#[test]
fn programs_get_the_known_answers() {
    for line in include_str!("../vectors/divisible.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| case[key].as_str().unwrap();
        let (w, z, tcp, tcm) = (text("w"), text("z"), text("Tcp"), text("Tcm"));
        let record = json(&format!("--topology hypercube:{} --w {w} --z {z} --tcp {tcp} --tcm {tcm}", case["dimension"]));
        for key in ["alpha", "volume"] {
            let (ours, theirs) = (numbers(&record[key]), numbers(&case[key]));
            assert!(ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() <= 1e-9 * b), "{key}: {line}");
        }
        for key in ["speedup", "utilisation", "equivalent_w"] {
            let (ours, theirs) = (record[key].as_f64().unwrap(), case[key].as_f64().unwrap());
            assert!((ours - theirs).abs() <= 1e-9 * theirs, "{key}: {ours} {line}");
        }
    }
}

#[test]
fn every_network_and_every_option_give_the_same_keys() {
    for arguments in [
        "--topology hypercube:30",
        "--topology hypercube:30 --ports one",
        "--topology hypercube:4 --startup 0.01 --return 0.5",
        "--topology line:7 --source 3",
        "--topology ring:6 --ports one",
        "--topology ring:6",
        "--topology star:4 --source-idle --ports one --startup 0.1",
        "--topology tree:kary=3,nodes=9 --startup 0.05",
        "--topology mesh:3x3 --installments 2",
        "--topology torus:3x3 --ports one --return 0.2",
        "--topology complete:5 --speeds 1,2,3,4,1/2 --links 0-3=1/7",
        "--topology graph:edges=0-1,1-2,2-0,2-3 --load 100",
    ] {
        let record = json(arguments);
        let layers = numbers(&record["layers"]);
        for key in ["alpha", "volume"] {
            assert_eq!(numbers(&record[key]).len(), layers.len(), "{arguments}: {key}");
        }
        let all: f64 = numbers(&record["alpha"]).iter().zip(&layers).map(|(alpha, processors)| alpha * processors).sum();
        assert!((all - 1.0).abs() < 1e-9, "{arguments}: {all}");
        assert_eq!(layers.iter().sum::<f64>(), record["processors"].as_f64().unwrap(), "{arguments}");
        for key in ["speedup", "utilisation", "equivalent_w", "makespan"] {
            assert!(record[key].as_f64().is_some_and(|number| number > 0.0), "{arguments}: {key}");
        }
        assert!(record["utilisation"].as_f64() <= Some(1.0 + 1e-9) && record["method"].is_string(), "{arguments}");
    }
}

#[test]
fn pictures_and_curves_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (curves, picture) = (folder.path().join("curves"), folder.path().join("gantt.svg"));
    let mut command = Command::cargo_bin("equipoise").unwrap();
    command.args(["divide", "--model", "--output", "quiet", "--curves"]).arg(&curves).assert().success().stdout("").stderr("");
    for number in 2..=8 {
        let table = std::fs::read_to_string(curves.join(format!("figure{number}.csv"))).unwrap();
        assert!(table.starts_with("curve,") && table.lines().count() > 30, "figure {number}");
        let drawn = std::fs::read_to_string(curves.join(format!("figure{number}.svg"))).unwrap();
        assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>") && drawn.contains(&format!("Figure {number}:")));
    }
    let mut command = Command::cargo_bin("equipoise").unwrap();
    command.args(["divide", "--model", "--topology", "hypercube:3", "--output", "quiet", "--gantt"]).arg(&picture).assert().success();
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!((0..=3).all(|layer| drawn.contains(&format!(">layer {layer}<"))) && drawn.matches("class=\"computing\"").count() == 5);
}
