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

/// The last line for people of a command, with this on standard input.
fn last_line(line: &str, input: &str) -> String {
    let output = Command::cargo_bin("equipoise").unwrap().args(line.split(' ')).write_stdin(input).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().lines().last().unwrap().to_string()
}

/// Four ranks with ten tasks each of the same work; nearly all bytes are on rank 0.
fn heavy_on_one() -> String {
    let tasks = |rank: u32| format!("{rank},100,{}\n", if rank == 0 { 1000 } else { 10 }).repeat(10);
    format!("rank,work,bytes\n{}", (0..4).map(tasks).collect::<String>())
}

#[test]
fn the_advice_goes_by_the_largest_ratio() {
    let said = last_line("compare --sim 4 --tasks - --weights-columns work,bytes", &heavy_on_one());
    assert!(
        said.starts_with(
            "On these 4 simulated ranks use refine (as fast: greedy-refine): it brings the largest ratio of all weights from 3.88 to 1."
        ),
        "{said}"
    );
    // By the work alone there is nothing to be gained.
    let said = last_line("compare --sim 4 --tasks - --balancer refine,none", &heavy_on_one());
    assert!(said.starts_with("Leave the tasks where they are: "), "{said}");
    let shown = |line: &str, input: &str| {
        let output = Command::cargo_bin("equipoise").unwrap().args(line.split(' ')).write_stdin(input).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let one = shown("balance --sim 4 --balancer refine --tasks - --weights-columns work,bytes", &heavy_on_one());
    assert!(one.contains("  pays       it brings the largest ratio of all weights from 3.88 to 1."), "{one}");
}

/// Two ranks with the same work. Rank 0 holds 200 bytes.
const FULL: &str = "rank,work,bytes\n0,10,100\n0,10,100\n1,10,10\n1,10,10\n";

#[test]
fn beyond_the_capacity_the_advice_is_to_move() {
    let said = last_line("compare --sim 2 --tasks - --capacity 150", FULL);
    assert!(said.starts_with("On these 2 simulated ranks use refine ("), "{said}");
    assert!(
        said.contains(
            "): rank 0 holds 200 B at first and has room for 150 B, so tasks must move; it brings the imbalance from 1.00 to 1.00 in "
        ),
        "{said}"
    );
    let said = last_line("compare --sim 2 --tasks - --capacity 200", FULL);
    assert!(said.starts_with("Leave the tasks where they are: "), "{said}");
    for command in ["balance --sim 2 --balancer refine", "compare --sim 2 --balancer refine"] {
        let record = &records(&format!("{command} --tasks - --capacity 150,160"), FULL)[0];
        assert_eq!(record["memory"], json!({"capacity": [150, 160], "before": [200, 20], "after": [110, 110]}), "{command}");
    }
    assert!(records("balance --sim 2 --balancer refine --tasks -", FULL)[0].get("memory").is_none());
}

#[test]
fn the_time_of_a_phase_counts_where_tasks_have_a_duration() {
    let compare = |more: &str| last_line(&format!("compare --sim 4 --loads 40,0,0,0 --balancer direct,cwa {more}"), "");
    let said = compare("--task-seconds 1e-9 --steps 1");
    assert!(
        said.starts_with("Leave the tasks where they are: on these 4 simulated ranks no phase pays within 1 step; direct does so first"),
        "{said}"
    );
    let said = compare("--task-seconds 1e-3 --steps 1");
    assert!(
        said.starts_with("On these 4 simulated ranks use direct: a step takes 40.0 ms now and 10.0 ms after; balancing costs "),
        "{said}"
    );
    for (more, times) in [("--steps 5", 1), ("--steps 5 --task-seconds 1e-3", 0), ("", 0)] {
        let line = format!("compare --sim 4 --loads 40,0,0,0 --balancer direct,cwa --output json {more}");
        let output = Command::cargo_bin("equipoise").unwrap().args(line.split_whitespace()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.matches("--steps is not used: the duration of tasks is not known").count(), times, "{more}: {errors}");
    }
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

/// Ranks are dealt out to two hosts in turn, whose nodes are consecutive: node 1 is on rank 2, node 2 on rank 1.
#[test]
fn tables_capacities_and_partitions_are_by_rank_wherever_nodes_are_placed() {
    const TABLE: &str = "rank,work,bytes\n0,10,1\n1,20,60\n2,30,3\n3,40,4\n";
    let partition = file("1\n2\n3\n0\n");
    for placed in ["--placement hosts", "--placement identity", "--placement random --seed 5"] {
        let phase = |more: &str, input: &str| records(&format!("balance --sim 4 --sim-hosts 2,cyclic {placed} {more}"), input).remove(0);
        let by_rank = |more: &str, input: &str| phase(more, input)["final_by_rank"].clone();
        let held = json!([10, 20, 30, 40]);
        assert_eq!(by_rank("--balancer none --tasks -", TABLE), held, "{placed}");
        // Loads and powers are by node.
        let listed = phase("--balancer direct --loads 25,26,24,25 --powers 1,2,3,4", "");
        assert_eq!((&listed["loads"], &listed["final"]), (&json!([25, 26, 24, 25]), &held), "{placed}");
        // The tasks go round.
        let from = format!("--balancer from:{} --tasks -", partition.display());
        assert_eq!(by_rank(&from, TABLE), json!([40, 10, 20, 30]), "{placed}");
        // Only rank 1 has more than it may have.
        let memory = &phase("--balancer refine --capacity 64,50,64,64 --tasks -", TABLE)["memory"];
        assert_eq!(memory["before"], json!([1, 60, 3, 4]), "{placed}");
        let after: Vec<u64> = memory["after"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).collect();
        assert!(after[1] <= 50 && after.iter().sum::<u64>() == 68, "{placed}: {after:?}");
        // Task 1 is rank 1's: it talks to task 0 on rank 0, which is on the other host.
        let links = file("0 1 7\n");
        let crossing = phase(&format!("--balancer none --tasks - --communications {}", links.display()), TABLE);
        assert_eq!(crossing["crossings"]["before"]["hosts"].as_f64(), Some(7.0), "{placed}");
    }
    // Nodes 1 and 2 have changed places.
    let shown = &records("balance --sim 4 --sim-hosts 2,cyclic --balancer none --loads 10,20,30,40 --powers 1,2,3,4", "")[0];
    assert_eq!((&shown["loads"], &shown["powers"]), (&json!([10, 20, 30, 40]), &json!([1, 2, 3, 4])));
    assert_eq!(shown["final_by_rank"], json!([10, 30, 20, 40]));
}

/// Lines for people of a command, apart from its result.
fn remarks(line: &str) -> String {
    let output = Command::cargo_bin("equipoise").unwrap().args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn bandwidths_that_do_not_count_are_said() {
    let (unequal, equal) = (file("0 1\n1 2\n2 3 0.001\n3 0\n"), file("0 1\n1 2\n2 3\n3 0\n"));
    let said = "the bandwidths of the graph's links do not count in times: network switched:latency=20us,per_byte=2.7ns knows no links; \
                with --network hops they count";
    let on = |command: &str, graph: &std::path::Path, more: &str| {
        remarks(&format!("{command} --sim 4 --topology graph:{}{more}", graph.display()))
    };
    for command in ["balance --balancer psts", "balance --balancer direct", "compare --balancer psts,direct"] {
        // Once, however many balancers there are.
        assert_eq!(on(command, &unequal, "").matches(said).count(), 1, "{command}");
        assert!(!on(command, &unequal, " --network hops").contains("bandwidths"), "{command}");
        assert!(
            !on(command, &equal, "").contains("bandwidths") && !on(command, &unequal, " --output json").contains("bandwidths"),
            "{command}"
        );
    }
    // And so it is: the slow link is felt on `hops` only.
    let times = |graph: &std::path::Path, network: &str| {
        let line = format!(
            "balance --sim 4 --balancer direct --topology graph:{} --network {network} --loads 0,0,0,40 --payload 999",
            graph.display()
        );
        records(&line, "")[0]["ms_exchange"].as_f64().unwrap()
    };
    assert_eq!(times(&unequal, "switched"), times(&equal, "switched"));
    assert!(times(&unequal, "hops") > times(&equal, "hops"));
}
