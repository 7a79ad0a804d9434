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
        &["DEBUG", "4 simulated ranks: run 1 begins on hypercube:2 (4 nodes) on 4 ranks"][..],
        &["DEBUG", "rank 0 node 0 at ", " begins a phase with 9 units of work"],
        &["TRACE", "rank 1 node 1 at ", " sends 'cwa sub-cube load' to node 0 (run 1, epoch 0)"],
        &["TRACE", "rank 0: 0x0101 from node 1 arrives for node 0"],
        &["TRACE", "rank 0 node 0 at ", " takes 0x0101 from node 1 (run 1, epoch 0)"],
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
