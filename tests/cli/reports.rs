//! The page of `--report` says what the terminal says, of the same records.

use assert_cmd::Command;

/// Printed output, and the page.
fn reported(arguments: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::cargo_bin("equipoise").unwrap().args(arguments.split(' ')).arg("--report").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), page)
}

#[test]
fn tasks_that_are_not_alike_are_told_by_their_mean_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("t.csv");
    std::fs::write(&table, "rank,work,bytes\n0,5,50\n0,3,4000\n1,1,100\n2,1,300\n3,2,200\n").unwrap();
    for command in ["compare --balancer direct", "balance --balancer direct"] {
        let (text, page) = reported(&format!("{command} --sim 4 --tasks {}", table.display()));
        assert!(text.contains(" of 930 B on average"), "{command}: {text}");
        assert!(page.contains("tasks of 930 B on average") && !page.contains("930 B a task"), "{command}");
    }
    let (text, page) = reported("compare --sim 4 --balancer direct --loads 1,2,3,10 --payload 930");
    assert!(text.contains("16 tasks of 930 B,") && page.contains("1,2,3,10, tasks of 930 B<") && !page.contains("on average"), "{text}");
}

#[test]
fn equal_loads_and_equal_balancers_are_not_one() {
    let (text, page) = reported("compare --sim 4 --balancer direct,cwa --loads 1,2,3,10 --loads 1,2,3,10");
    assert_eq!(text.matches("\n1,2,3,10: 16 tasks").count(), 2, "{text}");
    assert_eq!(page.matches("<h2>1,2,3,10, tasks of 64 B</h2>").count(), 2);
    assert!(page.contains("2 balancers on 4 simulated ranks"));
    assert_eq!(text.matches("\ndirect ").count(), 2);
    let (text, page) = reported("compare --sim 4 --balancer cwa,cwa --loads 1,2,3,10");
    assert_eq!(text.matches("\ncwa ").count(), 2, "{text}");
    assert!(text.contains("use cwa (as fast: cwa): ") && page.contains("use cwa (as fast: cwa): "), "{text}");
}

#[test]
fn where_loads_are_times_terminal_and_page_tell_a_step() {
    let runs = format!("{}/../../tests/data/loads/lbaf-nolb-8color-32ranks", env!("CARGO_MANIFEST_DIR"));
    let (text, page) = reported(&format!("compare --sim 32 --balancer twa,direct --tasks lbaf:{runs},phase=301"));
    let sentence = text.trim_end().lines().last().unwrap();
    assert!(sentence.contains(": a step takes 165 ms now and ") && sentence.contains("; balancing costs "), "{sentence}");
    assert!(!text.contains(" ns") && text.contains("a step"), "{text}");
    assert!(page.contains(&sentence.replace('/', "&#x2f;")) && page.contains(">step<"), "{sentence}");
    let (text, page) = reported(&format!("balance --sim 32 --balancer twa --tasks lbaf:{runs},phase=301"));
    assert!(text.contains("  pays       a step takes 165 ms now and "), "{text}");
    assert!(page.contains(": a step takes 165 ms now and "));
}

#[test]
fn the_verdict_on_schedulers_is_the_same_in_both() {
    for workload in ["tree:levels=4,children=3,least=1,task=5ms", "queens:n=6", "stream:graphs=50"] {
        let (text, page) = reported(&format!("run --sim 4 --compare steal,static --workload {workload}"));
        let sentence = text.trim_end().lines().last().unwrap();
        assert!(page.contains(&format!("<p class=\"summary\">{sentence}</p>")), "{sentence}");
        let starts = if workload == "queens:n=6" { "No scheduler is faster than one worker" } else { "On these 4 simulated ranks use " };
        assert!(sentence.starts_with(starts), "{sentence}");
    }
}

#[test]
fn a_slowed_contender_is_named_so_and_is_seen() {
    let (text, page) = reported("compare --sim 4 --balancer direct,direct --handicap 1.2 --loads 1,2,3,10");
    assert!(text.contains("use direct: ") && text.contains("direct slowed 1.2 times"), "{text}");
    assert!(page.contains("direct slowed 1.2 times"));
    for wrong in
        ["compare --sim 4 --handicap 0.5", "compare --sim 4 --handicap nan", "run --sim 4 --handicap 1.2", "run --sim 4 --help --handicap"]
    {
        let output = Command::cargo_bin("equipoise").unwrap().args(wrong.split(' ')).output().unwrap();
        assert!(output.status.code() == Some(2) || !String::from_utf8_lossy(&output.stdout).contains("handicap"), "{wrong}");
    }
}

/// Seconds that the slowest rank takes for a step after the phase, by balancer; and the one that is recommended.
fn advised(arguments: &str) -> (Vec<(String, f64)>, String) {
    let run = |output: &str| {
        let mut command = Command::cargo_bin("equipoise").unwrap();
        let output = command.current_dir(crate::ROOT).args(arguments.split(' ')).args(["--output", output]).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let json = run("json");
    let rows = json.lines().filter_map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        Some((row["balancer"].as_str()?.to_owned(), row["finish_after"].as_f64()?))
    });
    let rows = rows.collect();
    let said = run("human");
    let advice = said.split(" use ").last().unwrap();
    (rows, advice.split([' ', ':']).next().unwrap().to_owned())
}

#[test]
fn whoever_is_recommended_is_within_a_hundredth_of_the_best_on_real_loads() {
    let eightfold = "tests/data/loads/lbaf-nolb-8color-32ranks";
    for (ranks, run) in [
        (16, "tests/data/loads/lbaf-toy-fewer-16ranks".to_owned()),
        (32, format!("{eightfold},phase=101")),
        (32, format!("{eightfold},phase=301")),
        (32, format!("{eightfold},phase=901")),
    ] {
        let (rows, name) = advised(&format!("compare --sim {ranks} --tasks lbaf:{run}"));
        let best = rows.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
        let (_, of_named) = rows.iter().find(|(balancer, _)| *balancer == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
        assert!(rows.len() > 15 && *of_named <= 1.01 * best, "{name} on {run}: {of_named}, and the best is {best}");
    }
}
