//! `equipoise reproduce`: points that repeat, verdicts, and what it refuses.

use assert_cmd::Command;

fn reproduce(arguments: &str) -> (i32, String, String) {
    let arguments = arguments.split(' ').filter(|word| !word.is_empty());
    let output = Command::cargo_bin("equipoise").unwrap().arg("reproduce").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn examples_are_the_papers_step_by_step() {
    let (status, out, _) = reproduce("wu --example 1 --example 3 --example 4 --figure 3");
    assert_eq!(status, 0, "{out}");
    assert_eq!(out.matches("agrees").count(), 10, "{out}");
    assert!(
        !out.contains("DIFFERS")
            && out.contains("4 claims: 2 reproduced, 2 reproduced under a stated reading, 0 not reproduced, 0 undecided."),
        "{out}"
    );
    // By its number it is the same paper.
    assert_eq!(reproduce("004 --example 1 --example 3 --example 4 --figure 3").1, out);
    let (status, out, _) = reproduce("psts --table 1");
    assert!(status == 0 && out.matches("agrees").count() == 10, "{out}");
}

#[test]
fn a_claim_that_is_false_is_no_failure() {
    let (status, out, errors) = reproduce("psts --section 4");
    assert_eq!(status, 0, "{out}{errors}");
    assert!(out.contains("3 claims: 0 reproduced, 0 reproduced under a stated reading, 3 not reproduced, 0 undecided."), "{out}");
}

#[test]
fn too_few_cases_leave_a_claim_undecided() {
    // It is recorded with a verdict from more cases.
    let (status, out, errors) = reproduce("sash --figure 9 --cases 2");
    assert_eq!(status, 0, "{out}{errors}");
    assert!(out.contains("1 claim: 0 reproduced, 0 reproduced under a stated reading, 0 not reproduced, 1 undecided."), "{out}");
}

#[test]
fn a_run_goes_on_where_it_was_stopped_and_the_page_has_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let whole = format!("wu --table 1 --cases 10 --output quiet --csv {}", path("whole.csv"));
    assert_eq!(reproduce(&format!("{whole} --threads 1")).0, 0);
    let resumed = format!("wu --table 1 --cases 10 --output quiet --resume {} --csv {}", path("points"), path("resumed.csv"));
    assert_eq!(reproduce(&format!("{resumed} --threads 3")).0, 0);
    // As if it had been stopped within the eleventh point.
    let text = std::fs::read_to_string(path("points")).unwrap();
    assert_eq!(text.lines().count(), 30);
    let ten: String = text.split_inclusive('\n').take(10).collect();
    std::fs::write(path("points"), format!("{ten}{{\"version\"")).unwrap();
    let (status, _, errors) = reproduce(&format!("{resumed} --report {}", path("page")));
    assert_eq!(status, 0, "{errors}");
    assert_eq!(std::fs::read_to_string(path("points")).unwrap().lines().count(), 30);
    let [a, b] = ["whole.csv", "resumed.csv"].map(|name| std::fs::read(path(name)).unwrap());
    assert!(a == b && !a.is_empty());
    let page = std::fs::read_to_string(path("page/report.html")).unwrap();
    assert!(page.contains("equipoise reproduce wu --table 1 --cases 10 --seed 1") && page.contains("printed in the paper"));
    let (status, _, errors) = reproduce(&format!("wu --table 1 --resume {}", path("whole.csv")));
    assert!(status == 2 && errors.contains("--resume") && errors.contains("line 1 is no finished point"), "{errors}");
}

#[test]
fn points_repeat_by_seed_and_differ_without() {
    let folder = tempfile::tempdir().unwrap();
    let points = |name: &str, arguments: &str| {
        let file = folder.path().join(name);
        reproduce(&format!("wu {arguments} --cases 20 --output quiet --csv {}", file.display()));
        std::fs::read_to_string(file).unwrap()
    };
    let table = points("a.csv", "--table 1");
    assert_eq!(table.lines().count(), 31, "{table}");
    assert!(table.starts_with("paper,item,curve,x,cases,value,low,high,printed,p,agrees\n"), "{table}");
    // One core or many: the same bytes; and the table is the same beside a figure.
    assert_eq!(points("b.csv", "--table 1"), table);
    let both = points("c.csv", "--table 1 --figure 9");
    assert!(table.lines().all(|line| both.lines().any(|other| other == line)), "{both}");
    assert_ne!(points("d.csv", "--table 1 --seed 2"), table);
}

#[test]
fn verdicts_are_recorded_as_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verdicts.toml");
    let (status, _, errors) = reproduce(&format!("divisible --record {}", file.display()));
    assert_eq!(status, 0, "{errors}");
    let built_in = include_str!("../../crates/lab/src/experiment/papers/verdicts.toml");
    assert_eq!(std::fs::read_to_string(file).unwrap(), built_in);
}

#[test]
fn what_there_is_not_is_refused() {
    for (arguments, sentence) in [
        ("005", "there is no such paper; known are hierarchical (000), divisible (001), sash (002), psts (003), wu (004)"),
        ("wu --figure 6", "wu does not have a figure 6 that is reproduced"),
        ("--table 99", "none of the papers has a table 99 that is reproduced"),
        ("--figure x", "invalid value 'x' for '--figure <N>'"),
        ("--quick --full", "cannot be used with"),
        ("--recorded --seed 3", "cannot be used with"),
        ("wu --example 1 --csv /", "--csv /: it cannot be written"),
    ] {
        let (status, _, errors) = reproduce(arguments);
        assert!(status == 2 && errors.contains(sentence), "{arguments}: {status} {errors}");
    }
}
