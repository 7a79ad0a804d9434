//! Memory of simulations: they need little, and a failed allocation is one sentence.

use std::process::Output;

/// Runs the program with so many KiB of address space.
fn within(kib: u64, arguments: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin("equipoise");
    let line = format!("ulimit -v {kib} && exec \"$E\" {arguments}");
    std::process::Command::new("sh").arg("-c").arg(line).env("E", program).output().unwrap()
}

/// The gathered loads lie in this process once: 16,384 copies of 16,384 loads would be 2 GiB.
#[test]
fn what_all_nodes_know_is_there_once() {
    for balancer in ["direct", "optimal", "kwa", "psts"] {
        let output = within(700_000, &format!("balance --sim 8192 --balancer {balancer} --output json"));
        assert!(output.status.success(), "{balancer}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let gathered = within(700_000, "balance --sim 16384 --balancer direct --output json");
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));
}

#[test]
fn more_ranks_than_memory_holds_are_refused_before() {
    let output = within(300_000, "balance --sim 1000000 --balancer dem");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("equipoise: --sim 1000000: ") && said.lines().count() == 1, "{said}");
}

#[test]
fn memory_that_ends_later_is_one_sentence() {
    let output = within(300_000, "balance --sim 50000 --balancer optimal");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("equipoise: out of memory: ") && said.lines().count() == 1, "{said}");
    assert!(output.stdout.is_empty());
}
