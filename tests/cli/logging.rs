//! Output of `RUST_LOG` on standard error, in simulation; tests/mpi/commands.rs has the same on real ranks.

use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

fn logged(filter: Option<&str>, arguments: &str) -> Output {
    let mut command = Command::new(cargo_bin("equipoise"));
    command.args(arguments.split_whitespace()).env_remove("RUST_LOG").envs(filter.map(|filter| ("RUST_LOG", filter)));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns true if a line has all of these, in this order.
fn has_line(text: &str, parts: &[&str]) -> bool {
    let holds = |line: &str| {
        let mut rest = line;
        parts.iter().all(|part| rest.split_once(part).map(|(_, after)| rest = after).is_some())
    };
    text.lines().any(holds)
}

const BALANCE: &str = "balance --sim 4 --balancer cwa --topology hypercube:2 --loads 9,0,0,3 --output json";

#[test]
fn each_message_is_logged_at_trace_level_and_nothing_by_default() {
    let (quiet, traced) = (logged(None, BALANCE), logged(Some("trace"), BALANCE));
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "");
    assert_eq!(quiet.stdout, traced.stdout);
    let text = String::from_utf8_lossy(&traced.stderr);
    for parts in [
        &["DEBUG", "4 simulated ranks: run 1 begins on hypercube:2 (4 nodes) on 4 ranks of 1 host;"][..],
        &["DEBUG", "rank 0 node 0 at ", " begins a phase with 9 units of work"],
        &["TRACE", "rank 1 node 1 at ", " sends 'cwa sub-cube load' to node 0 (run 1, epoch 0)"],
        &["TRACE", "rank 0: 'cwa sub-cube load' from node 1 arrives for node 0"],
        &["TRACE", "rank 0 node 0 at ", " takes 'cwa sub-cube load' from node 1 (run 1, epoch 0)"],
        &["DEBUG", "rank 0 node 0 at ", " sends 'tasks' to node ", " tasks"],
        &["DEBUG", "rank 3 node 3 at ", " ends its phase with 3 units of work"],
    ] {
        assert!(has_line(&text, parts), "{parts:?} is not in\n{text}");
    }
}

#[test]
fn decisions_without_messages_are_logged_at_debug_level() {
    let output = logged(Some("debug"), "run --sim 4 --scheduler steal --workload queens:n=9 --output quiet");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(has_line(&text, &["DEBUG", "node ", "sends 'policy' to node "]), "{text}");
    assert!(has_line(&text, &["DEBUG", "node ", "sends 'tasks' to node ", " 1 tasks"]), "{text}");
    assert!(!text.contains("TRACE") && !text.contains(" takes "), "{text}");
}

#[test]
fn schedulers_of_independent_tasks_log_what_they_assign() {
    let run = |scheduler: &str| {
        let output = logged(
            Some("debug"),
            &format!("run --sim 3 --scheduler {scheduler} --workload costs:tasks=30,mu_cp=100,mu_cc=100 --output quiet"),
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let dealt = run("dss");
    assert!(has_line(&dealt, &["DEBUG", "rank 0 node 0 at ", " deals 1 tasks, from task "]), "{dealt}");
    assert!(has_line(&dealt, &["DEBUG", "rank 0 node 0 at ", " has no more tasks for node "]), "{dealt}");
    let assigned = run("sash");
    assert!(has_line(&assigned, &["DEBUG", "rank 2 node 2 at ", " ends phase 1 of its scheduling: ", " tasks are assigned"]), "{assigned}");
    assert!(has_line(&assigned, &["DEBUG", "rank 2 node 2 at ", " assigns ", " tasks to node "]), "{assigned}");
    let placed = logged(Some("debug"), "run --sim 4 --scheduler random --workload queens:n=7 --output quiet");
    let placed = String::from_utf8_lossy(&placed.stderr);
    assert!(has_line(&placed, &["DEBUG", "rank 0 node 0 at ", " places task ", " at node "]), "{placed}");
}

#[test]
fn a_farm_logs_what_becomes_of_each_task() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(cargo_bin("equipoise"));
    command.args(["farm", "--retries", "1", "--output", "quiet", "--array", "1-2", "--"]).args(["sh", "-c", "test $FARM_ATTEMPT = 2"]);
    let output = command.current_dir(&folder).env("RUST_LOG", "debug").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for parts in [
        &["DEBUG", "rank 0, lead: task 2 goes to rank 0, attempts before: 0"][..],
        &["DEBUG", "rank 0, hand: ", " tasks have come from the lead"],
        &["DEBUG", "rank 0, lead: task 2 failed on rank 0 in attempt 1, and is tried again there"],
        &["DEBUG", "rank 0, lead: task 2 has ended on rank 0 in attempt 2: done"],
    ] {
        assert!(has_line(&text, parts), "{parts:?} is not in\n{text}");
    }
}
