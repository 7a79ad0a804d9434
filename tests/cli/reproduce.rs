//! `equipoise reproduce`: points that repeat, verdicts, and what it refuses.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::programs::number_in;

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
fn a_figure_of_ones_own_is_measured_and_drawn_and_its_mistakes_have_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figure.toml").display().to_string();
    let text = "title = \"Tori\"\nx = \"side\"\nmeasure = \"task-hops\"\n\n[[curve]]\nbalancer = \"kwa\"\ntopology = \"torus:{x}x{x}\"\n\
                loads = \"uniform:mean=20\"\nat = [2, 4]\n";
    std::fs::write(&file, text).unwrap();
    let page = folder.path().join("page").display().to_string();
    let (status, out, errors) = reproduce(&format!("--file {file} --cases 6 --report {page}"));
    assert!(status == 0 && out.matches("kwa, torus:{x}x{x}").count() == 2, "{out}{errors}");
    let drawn = std::fs::read_to_string(format!("{page}/report.html")).unwrap();
    assert!(drawn.contains("<title>Tori</title>") && drawn.contains("tasks times links") && drawn.contains(">side<"));
    std::fs::write(&file, text.replace("at =", "att =")).unwrap();
    let (status, _, errors) = reproduce(&format!("--file {file}"));
    assert!(status == 2 && errors.contains("--file") && errors.contains("line 9: unknown field `att`"), "{errors}");
    std::fs::write(&file, text.replace("torus:{x}x{x}", "tree:binary,nodes={x}")).unwrap();
    let (status, _, errors) = reproduce(&format!("--file {file}"));
    assert!(status == 2 && errors.contains("line 6: ") && errors.contains("kwa"), "{errors}");
    let (status, _, errors) = reproduce(&format!("wu --file {file}"));
    assert!(status == 2 && errors.contains("--file"), "{errors}");
}

#[test]
fn a_figure_of_ones_own_may_have_independent_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figure.toml").display().to_string();
    let text = "title = \"Total\"\nx = \"processors\"\nmeasure = \"makespan\"\ncases = 2\n\n[[curve]]\nscheduler = \"dss\"\n\
                topology = \"complete:{x}\"\nworkload = \"costs:tasks=40\"\nat = [2, 4]\n";
    std::fs::write(&file, text).unwrap();
    let (status, out, errors) = reproduce(&format!("--file {file} --output json"));
    let totals: Vec<f64> =
        out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["ours"].as_f64().unwrap()).collect();
    // 40 tasks of some 1,000 cycles.
    assert!(status == 0 && (15e3..25e3).contains(&totals[0]) && (7e3..13e3).contains(&totals[1]), "{out}{errors}");
    std::fs::write(&file, text.replace("complete:{x}", "ring:{x}")).unwrap();
    let (status, _, errors) = reproduce(&format!("--file {file}"));
    assert!(status == 2 && errors.contains("line 8: independent tasks go straight to any rank: the topology is complete:2"), "{errors}");
    std::fs::write(&file, text.replace("\"dss\"", "\"steal\"")).unwrap();
    let (status, _, errors) = reproduce(&format!("--file {file}"));
    assert!(status == 2 && errors.contains("line 7: ") && errors.contains("not for independent ones"), "{errors}");
}

#[test]
fn a_report_has_curves_that_are_in_no_paper() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let figure = "wu --figure 14 --cases 4 --output quiet";
    reproduce(&format!("{figure} --csv {}", path("without.csv")));
    reproduce(&format!("{figure} --csv {} --report {}", path("with.csv"), path("page")));
    let [without, with, table] = ["without.csv", "with.csv", "page/table.csv"].map(|name| std::fs::read_to_string(path(name)).unwrap());
    // The paper's curves are the same bytes.
    assert!(with.starts_with(&without) && with == table && !without.contains("tempered"), "{without}");
    assert_eq!(with.matches("\"tempered, 8 processors\"").count(), 6, "{with}");
    let page = std::fs::read_to_string(path("page/report.html")).unwrap();
    assert!(page.contains("tempered, 8 processors") && page.contains("None is on real ranks"));
}

#[test]
fn ranks_that_cannot_be_started_are_said() {
    let output = Command::cargo_bin("equipoise").unwrap().env("MPIRUN", "/nowhere/mpirun").args(["reproduce", "wu", "--on-ranks"]).output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && errors.contains("--on-ranks: /nowhere/mpirun cannot be started"), "{errors}");
    let failing = |arguments: &str| {
        let mut command = Command::cargo_bin("equipoise").unwrap();
        let output = command.env("MPIRUN", "/bin/false").args(arguments.split(' ')).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // It is tried before anything is measured.
    let (status, errors) = failing("reproduce wu --figure 17 --on-ranks");
    assert!(status == Some(2) && errors.contains("--on-ranks: /bin/false cannot start ranks: on 2 real ranks"), "{errors}");
    let (status, errors) = failing("reproduce wu --example 1 --on-ranks");
    assert!(status == Some(2) && errors.contains("--on-ranks: nothing of what is asked for is measured on real ranks"), "{errors}");
    let (status, _, errors) = reproduce("--file scripts/figures/kwa-tori.toml --on-ranks");
    assert!(status == 2 && errors.contains("cannot be used with"), "{errors}");
    let under_another =
        Command::cargo_bin("equipoise").unwrap().env("OMPI_COMM_WORLD_RANK", "0").args(["reproduce", "wu", "--on-ranks"]).output();
    let errors = String::from_utf8(under_another.unwrap().stderr).unwrap();
    assert!(errors.contains("--on-ranks: it starts ranks by itself; type it without a launcher"), "{errors}");
}

/// Also if only this program gets the signal.
#[test]
fn a_launch_is_ended_before_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (mpirun, pid) = (folder.path().join("mpirun"), folder.path().join("pid"));
    let script = format!(
        "#!/bin/sh\ncase $* in\n--version) echo mpirun ;;\n*'balance --balancer direct'*) echo '{{}}' ;;\n*) echo $$ >'{}'; exec sleep 1000 ;;\nesac\n",
        pid.display()
    );
    std::fs::write(&mpirun, script).unwrap();
    std::fs::set_permissions(&mpirun, std::fs::Permissions::from_mode(0o755)).unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = std::process::Command::new("env");
        // Tests that run in the background inherit that SIGINT is ignored.
        command.arg("--default-signal=INT").arg(assert_cmd::cargo::cargo_bin("equipoise"));
        command.args("reproduce psts --figure 4 --cases 2 --on-ranks --output quiet".split(' ')).env("MPIRUN", &mpirun);
        let mut program = command.stderr(Stdio::null()).spawn().unwrap();
        let launched = number_in(&pid);
        kill_process(Pid::from_child(&program), signal).unwrap();
        assert_eq!(program.wait().unwrap().signal(), Some(signal.as_raw()));
        assert!(test_kill_process(launched).is_err(), "{signal:?}");
        std::fs::remove_file(&pid).unwrap();
    }
}

#[test]
fn two_options_do_not_name_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    std::fs::write(folder.path().join("there"), "kept").unwrap();
    std::os::unix::fs::symlink(folder.path().join("there"), folder.path().join("link")).unwrap();
    std::fs::create_dir(folder.path().join("page")).unwrap();
    for (options, sentence) in [
        ("--resume P/new --csv P/new", "--resume and --csv: both name the file"),
        ("--claims P/new --csv P/./page/../new", "--csv and --claims: both name the file"),
        ("--record P/link --csv P/there", "--csv and --record: both name the file"),
        ("--report P/page --csv P/page/table.csv", "--csv and --report: both name the file"),
        ("--report P/page --resume P/page/records.jsonl", "--resume and --report: both name the file"),
    ] {
        let (status, out, errors) = reproduce(&format!("wu --example 1 {}", options.replace('P', &place)));
        assert!(status == 2 && errors.contains(sentence) && errors.lines().count() == 1, "{options}: {status} {out}{errors}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("there")).unwrap(), "kept");
    assert!(!folder.path().join("new").exists());
    // Devices take all.
    assert_eq!(reproduce("wu --example 1 --csv /dev/null --claims /dev/null").0, 0);
    // So do other commands.
    let compare = format!("compare --sim 2 --report {place}/page --csv {place}/page/records.jsonl");
    let output = Command::cargo_bin("equipoise").unwrap().args(compare.split(' ')).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && errors.contains("--csv and --report: both name the file"), "{errors}");
}

#[test]
fn points_of_another_build_are_measured_again_and_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points");
    let run = format!("wu --example 1 --output quiet --resume {}", file.display());
    assert_eq!(reproduce(&run), (0, String::new(), String::new()));
    let first = std::fs::read_to_string(&file).unwrap();
    // The same program takes them.
    assert_eq!(reproduce(&run), (0, String::new(), String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    // Another one has measured something else.
    let build = first.split("\"build\":\"").nth(1).unwrap()[..16].to_string();
    let others = first.replace(&build, "0123456789abcdef").replace("[\"16\"", "[\"17\"");
    assert_ne!(others, first);
    std::fs::write(&file, &others).unwrap();
    let (status, _, errors) = reproduce(&run);
    assert!(status == 0 && errors.contains("ignored 1 finished point of another build of this program"), "{errors}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{others}{first}"));
}

/// Ctrl-C in the middle, and the run that goes on gives the same bytes.
#[test]
fn an_interrupted_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |more: &str| format!("wu --table 1 --cases 60 --output quiet {more}");
    assert_eq!(reproduce(&run(&format!("--csv {}", path("whole.csv")))).0, 0);
    let resumed = run(&format!("--resume {} --csv {}", path("points"), path("resumed.csv")));
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("equipoise"));
    let mut child = child.arg("reproduce").args(resumed.split(' ').filter(|word| !word.is_empty())).spawn().unwrap();
    let lines = || std::fs::read_to_string(path("points")).unwrap_or_default().lines().count();
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let interrupted = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    let done = lines();
    assert!(interrupted.success() && !status.success() && done < 30, "{status}: {done} points, so that nothing was interrupted");
    assert!(!std::path::Path::new(&path("resumed.csv")).exists());
    assert_eq!(reproduce(&format!("{resumed} --threads 3")).0, 0);
    let [a, b] = ["whole.csv", "resumed.csv"].map(|name| std::fs::read(path(name)).unwrap());
    assert!(a == b && lines() == 30);
}

#[test]
fn points_and_claims_are_lines_with_the_same_keys() {
    let (status, out, _) = reproduce("wu --example 1 --output json");
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, lines.len()), (0, 4), "{out}");
    for line in &lines {
        for key in ["paper", "item", "point", "printed", "expected", "ours", "ci95", "cases", "verdict", "recorded"] {
            assert!(line.get(key).is_some(), "{key}: {line}");
        }
        assert_eq!(line["paper"], "wu");
    }
    assert_eq!((&lines[1]["point"], &lines[1]["ours"], &lines[1]["printed"]), (&"task-hops at 0".into(), &16.0.into(), &16.0.into()));
    assert_eq!(
        (&lines[3]["point"], &lines[3]["verdict"], &lines[3]["recorded"]),
        (&"wu-example-1".into(), &"reproduced".into(), &"reproduced".into())
    );
}

#[test]
fn reference_values_are_beside_ours_and_few_cases_are_not_judged_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("points.csv").display().to_string();
    let (status, out, errors) = reproduce(&format!("sash --figure 2 --cases 2 --output json --csv {file}"));
    assert_eq!(status, 0, "{errors}");
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |name: &str| lines.iter().find(|line| line["point"] == name).unwrap();
    let known = at("sash at 4");
    assert_eq!((&known["expected"], &known["tolerance"], &known["as_expected"]), (&164_668.0.into(), &0.005.into(), &().into()));
    assert!((known["ours"].as_f64().unwrap() / 164_668.0 - 1.0).abs() < 0.01, "{known}");
    assert!(at("sash at 5")["expected"].is_null() && at("sash at 5")["tolerance"].is_null());
    let table = std::fs::read_to_string(file).unwrap();
    let row = table.lines().find(|line| line.starts_with("sash,figure 2,sash,4,")).unwrap();
    assert!(row.ends_with(",164668,0.005,"), "{row}");
    assert_eq!(table.lines().filter(|line| line.contains(",0.005,")).count(), 8, "{table}");
    let (_, out, _) = reproduce("sash --figure 2 --cases 2");
    assert!(out.contains("164668 ± 0.5 %") && !out.contains("OFF"), "{out}");
}

#[test]
fn a_claim_that_compares_one_figure_has_its_interval() {
    let claim = |arguments: &str, name: &str| -> serde_json::Value {
        let (status, out, errors) = reproduce(&format!("{arguments} --output json"));
        assert_eq!(status, 0, "{errors}");
        let mut lines = out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.find(|line| line["point"] == name).unwrap()
    };
    let crossover = claim("sash --figure 9 --cases 8", "sash-figure-9");
    let [low, high] = [0, 1].map(|end| crossover["ci95"][end].as_f64().unwrap());
    assert!(low >= 2.0 && low <= high, "{crossover}");
    let places = if low == high { low.to_string() } else { format!("({low} to {high})") };
    assert!(crossover["ours"].as_str().unwrap().ends_with(&places), "{crossover}");
    // A claim on many points has intervals in its numbers.
    let all = claim("psts --section 4 --cases 4", "psts-equation-15-hops");
    assert!(all["ci95"].is_null() && all["ours"].as_str().unwrap().matches(" ± ").count() >= 5, "{all}");
}

#[test]
fn the_medians_of_section_3_and_the_layers_of_hypercubes_are_the_papers() {
    let (status, out, errors) = reproduce("hierarchical --section 3");
    assert!(status == 0 && out.matches("agrees").count() == 8 && !out.contains("DIFFERS"), "{out}{errors}");
    assert!(out.contains("5 claims: 4 reproduced, 1 reproduced under a stated reading, 0 not reproduced, 0 undecided."), "{out}");
    let (status, out, errors) = reproduce("divisible --section 2");
    assert!(status == 0 && out.contains("90 of 90 layers are so, d = 1 to 12"), "{out}{errors}");
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
    assert!(table.starts_with("paper,item,curve,x,cases,value,low,high,printed,p,agrees,expected,tolerance,as_expected\n"), "{table}");
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
        (
            "wu --figure 7",
            "--figure: wu does not have a figure 7 that is reproduced; it has section 4, examples 1 to 4, table 1, figures 3, 6",
        ),
        (
            "--table 99",
            "--table: none of the papers has a table 99 that is reproduced; hierarchical has sections 3 to 4 and 6, figures 6 to 16; ",
        ),
        ("--figure x", "invalid value 'x' for '--figure <N>'"),
        ("--quick --full", "cannot be used with"),
        ("--recorded --seed 3", "cannot be used with"),
        ("wu --example 1 --csv /", "--csv /: it cannot be written"),
    ] {
        let (status, _, errors) = reproduce(arguments);
        assert!(status == 2 && errors.contains(sentence), "{arguments}: {status} {errors}");
    }
}
