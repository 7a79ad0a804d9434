//! Manual pages and completions.

use assert_cmd::Command;

fn equipoise() -> Command {
    Command::cargo_bin("equipoise").unwrap()
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("new/man1");
    equipoise().arg("manual").arg(&pages).assert().success().stdout("");
    let help = String::from_utf8(equipoise().arg("--help").output().unwrap().stdout).unwrap();
    let commands: Vec<&str> = help
        .split("Commands:\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .map(|list| {
            list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next())
        })
        .unwrap()
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        let page = std::fs::read_to_string(pages.join(format!("equipoise-{command}.1"))).unwrap_or_else(|why| panic!("{command}: {why}"));
        assert!(page.contains(".SH OPTIONS") || page.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(std::fs::read_to_string(pages.join("equipoise.1")).unwrap().contains("Exit status"));
    equipoise().args(["manual", "/dev/null/x"]).assert().code(2);
}

#[test]
fn shells_are_told_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let output = equipoise().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("compare") && script.contains("balancer"), "{shell}");
    }
    equipoise().args(["completions", "nosuch"]).assert().code(2);
}
