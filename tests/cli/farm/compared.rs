//! A list of commands under every scheduler, in simulation: `run --compare --workload commands:..`.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::Place;

impl Place {
    fn with(list: &str) -> Place {
        let place = Place::new();
        place.list(list.as_bytes());
        place
    }

    fn compare(&self, ranks: u32, workload: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
        command.args(["run", "--sim", &ranks.to_string(), "--compare", "--output", "json", "--workload", workload]);
        command.current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap()
    }

    /// A record by scheduler.
    fn compared(&self, ranks: u32, workload: &str) -> Vec<Value> {
        let output = self.compare(ranks, workload);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn what_a_farm_has_recorded_is_played_under_all_schedulers() {
    let place = Place::with(
        &(0..12).map(|at| if at == 7 { "sleep 0.3\n".to_string() } else { format!("sleep 0.0{}\n", 1 + at % 4) }).collect::<String>(),
    );
    place.expect(0, &["jobs", "--journal", "j", "--output", "quiet"]);
    let recorded: f64 = place.records("j").values().map(|records| records[0][3].trim().parse::<f64>().unwrap()).sum();
    for ranks in [2, 4, 8] {
        let records = place.compared(ranks, "commands:file=jobs,journal=j");
        let names: Vec<&str> = records.iter().map(|record| record["scheduler"].as_str().unwrap()).collect();
        for known in ["sash", "sads", "dss", "selfsched"] {
            assert!(names.contains(&known), "{known}: {names:?}");
        }
        for record in &records {
            let number = |key: &str| record[key].as_f64().unwrap();
            let seconds = |key: &str| number(key) * number("unit_seconds");
            assert_eq!((number("tasks"), number("answer"), number("ranks")), (12.0, 12.0, f64::from(ranks)));
            assert!((seconds("work") - recorded).abs() < 0.01, "{recorded} s were recorded: {record}");
            assert!(seconds("makespan") >= 0.3 && seconds("makespan") <= recorded + 0.01, "{record}");
        }
    }
}

#[test]
fn a_list_that_is_not_to_be_compared_is_refused() {
    for (list, workload, said) in [
        ("sleep 1\n", "commands:file=jobs", "commands:file=jobs: line 1: it is not known how long it takes"),
        ("a #EQ cost=1\n#EQ barrier\nb #EQ cost=1\n", "commands:file=jobs", "independent tasks only, and the list has barriers"),
        ("a #EQ cost=1\nb #EQ cost=1 after=1\n", "commands:file=jobs", "line 2: a comparison has independent tasks only"),
        ("a #EQ cost=1 cpus=1\nb #EQ cost=1 cpus=2\n", "commands:file=jobs", "line 2: a comparison has workers, and no resources"),
        ("a #EQ cost=1 gpus=1\n", "commands:file=jobs", "line 1: a comparison has workers, and no resources"),
        ("a #EQ cost=1\n", "commands:file=none", "the list cannot be read"),
        ("a #EQ cost=1\n", "commands:file=jobs,journal=none", "none: it cannot be read"),
        ("a #EQ cost=1\n", "commands", "it needs file=LIST"),
    ] {
        let output = Place::with(list).compare(2, workload);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.contains(said), "{said}: {error}");
    }
}
