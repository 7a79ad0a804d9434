//! Input files of any name, form and source.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::tempdir;

use crate::files::file;

fn equipoise(arguments: &[OsString], input: &str) -> Output {
    Command::cargo_bin("equipoise").unwrap().args(arguments).write_stdin(input).output().unwrap()
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

/// Error message of a command with wrong usage: one line.
fn refusal(arguments: &[OsString], input: &str) -> String {
    let output = equipoise(arguments, input);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.lines().count() == 1, "{arguments:?}: {said}");
    said.trim_end().to_string()
}

fn answer(arguments: &[OsString], input: &str) -> Value {
    let output = equipoise(&[arguments, &words("--output json")].concat(), input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_dash_is_standard_input() {
    let loads = |line: &str, input: &str| answer(&words(line), input)["loads"].clone();
    assert_eq!(loads("balance --sim 2 --balancer direct --loads @-", "5 3\n"), serde_json::json!([5, 3]));
    assert_eq!(loads("balance --sim 2 --balancer direct --tasks -,unit=us", "rank,work\n1,2.5\n"), serde_json::json!([0, 2500]));
    assert_eq!(
        loads("balance --sim 3 --balancer direct --topology graph:- --loads 1,2,3", "3 2\n2\n1 3\n2\n"),
        serde_json::json!([1, 2, 3])
    );
    let costs = answer(&words("run --sim 2 --workload costs:file=- --scheduler dss --repeat 2"), "1 2\n2 1\n");
    assert_eq!(costs["tasks"], 2);
    assert_eq!(
        refusal(&words("balance --sim 2 --loads @- --powers @-"), "1 2"),
        "equipoise: --powers: standard input (-) can be read once, and --loads reads it already"
    );
    assert_eq!(
        refusal(&words("compare --sim 2 --loads @- --loads @-"), "1 2"),
        "equipoise: --loads: standard input (-) can be read once, and --loads reads it already"
    );
    let model = answer(&words("divide --model --topology graph:-"), "0 1\n1 2\n");
    assert_eq!(model["alpha"].as_array().map(Vec::len), Some(3));
}

/// Every option that reads a file, with a name that is no text.
#[test]
fn names_need_be_no_text() {
    let folder = tempdir().unwrap();
    let named = |before: &str, name: &[u8], text: &str, behind: &str| {
        let path = folder.path().join(OsString::from_vec(name.to_vec()));
        std::fs::write(&path, text).unwrap();
        let mut argument = OsString::from(before);
        argument.push(path);
        argument.push(behind);
        argument
    };
    let succeeds = |line: &str, argument: OsString| {
        let output = equipoise(&[words(line), vec![argument]].concat(), "");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(!said.contains('\u{10ff}') && !said.contains(|c: char| ('\u{10ff00}'..='\u{10ffff}').contains(&c)), "{line}: {said}");
    };
    succeeds("balance --sim 2 --balancer direct --loads", named("@", b"\xff,loads", "1 2\n", ""));
    succeeds("balance --sim 2 --balancer direct --powers", named("@", b"\xffpowers", "1 2\n", ""));
    succeeds("balance --sim 2 --balancer direct --loads 1,1 --weights", named("@", b"\xffweights", "1 2\n", ""));
    succeeds("balance --sim 2 --balancer direct --tasks", named("", b"\xff,tasks.csv", "rank,work\n0,1\n", ",unit=ms"));
    succeeds("compare --sim 2 --topology", named("graph:", b"\xffgraph", "0 1\n", ""));
    succeeds("run --sim 2 --workload", named("costs:file=", b"\xffcosts", "1 2\n", ""));
    succeeds("divide --sim 2 --kernel count --input", named("", b"\xffinput", "1 2\n", ""));
    let run = OsString::from_vec(b"run\xff".to_vec());
    std::fs::create_dir(folder.path().join(&run)).unwrap();
    std::fs::write(folder.path().join(&run).join("a.0.json"), r#"{"phases":[{"id":0,"tasks":[]}]}"#).unwrap();
    for before in ["lbaf:", "files:"] {
        let mut argument = OsString::from(before);
        argument.push(folder.path().join(&run));
        succeeds("compare --sim 2 --balancer direct --tasks", argument);
    }
    // In what is said they are written out.
    let missing = OsString::from_vec(b"@/no/such/\xff\x1b[31m\n".to_vec());
    let said = refusal(&[words("balance --sim 2 --loads"), vec![missing]].concat(), "");
    assert!(said.starts_with("equipoise: --loads @/no/such/\\xff\\x1b[31m\\n: the file cannot be read: No such file"), "{said}");
    let odd = OsString::from_vec(b"--seed=\xff".to_vec());
    assert_eq!(refusal(&[words("balance --sim 2"), vec![odd]].concat(), ""), "equipoise: --seed=\\xff: this argument is no text in UTF-8");
}

#[test]
fn names_give_no_orders_to_a_terminal() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("evil\u{1b}[31m\n\u{202e}.csv");
    std::fs::write(&path, "rank,work\n0,5\n1,2\n").unwrap();
    for line in
        ["balance --sim 2 --balancer direct --tasks", "compare --sim 2 --balancer direct --tasks", "divide --sim 2 --kernel count --input"]
    {
        let output = equipoise(&[words(line), vec![path.clone().into()]].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let shown = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()).concat();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{line}: {shown:?}");
    }
}

#[test]
fn byte_order_marks_and_what_is_packed() {
    let sum = |text: &[u8], line: &str| {
        let file = file(text);
        equipoise(&words(&line.replace("FILE", &file.display().to_string())), "")
    };
    for (text, line) in [
        ("\u{feff}19 3\n", "balance --sim 2 --balancer direct --loads @FILE"),
        ("\u{feff}0 1\n", "compare --sim 2 --topology graph:FILE"),
        ("\u{feff}1 2\n", "run --sim 2 --workload costs:file=FILE"),
        ("\u{feff}1.5,2\n", "balance --sim 2 --balancer direct --powers @FILE"),
        ("\u{feff}%%MatrixMarket matrix array real general\n1 1\n3\n", "run --sim 2 --workload spmm:file=FILE"),
    ] {
        let output = sum(text.as_bytes(), line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let packed = sum(b"\x1f\x8b\x08\0\0", line);
        let said = String::from_utf8(packed.stderr).unwrap();
        assert!(packed.status.code() == Some(2) && said.contains("it is packed with gzip; unpack it first, as in zcat FILE |"), "{said}");
    }
}

/// The longest periods are as good as none that ends: they do not wrap into the shortest.
#[test]
fn long_periods_are_long() {
    let messages = |scheduler: &str, key: &str, time: &str| {
        let line = format!("run --sim 8 --scheduler {scheduler}:{key}={time} --workload tree:levels=4,children=3,roots=8");
        let record = answer(&words(&line), "");
        assert_eq!(record["answer"], record["known"], "{line}");
        record["messages"].as_u64().unwrap()
    };
    for (scheduler, key) in [("gradient", "age"), ("acwn", "age"), ("cwn", "age"), ("rid", "age"), ("neighbour", "age"), ("gde", "period")]
    {
        let usual = messages(scheduler, key, "1e9");
        for time in ["1e10", "1e13", "1e19", "1e300"] {
            assert_eq!(messages(scheduler, key, time), usual, "{scheduler}:{key}={time}");
        }
    }
    let periodic = |period: &str| {
        let line =
            format!("run --sim 8 --scheduler incremental:trigger=periodic,period={period} --workload tree:levels=4,children=3,roots=8");
        answer(&words(&line), "")["messages"].clone()
    };
    assert_eq!(periodic("1e19"), periodic("1e9"));
}

/// Memory that the process may not have is refused before it is taken, whoever limits it.
#[test]
fn limits_of_the_process_count() {
    let program = assert_cmd::cargo::cargo_bin("equipoise");
    let limited = |kib: u64, line: &str| {
        let shell = format!("ulimit -v {kib}; exec {} {line}", program.display());
        let output = std::process::Command::new("sh").args(["-c", &shell]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = limited(3_500_000, "balance --sim 4 --loads hot:total=2000 --payload 1000000 --balancer direct");
    assert!(
        status == Some(2) && said.contains("2000 tasks on one machine take 3.7 GiB while they move, but ") && said.contains(" can be had"),
        "{said}"
    );
    let run = r#"{"phases":[{"id":0,"tasks":[
        {"entity":{"id":1},"time":1,"user_defined":{"task_serialized_bytes":4000000000}},
        {"entity":{"id":2},"time":1,"user_defined":{"task_serialized_bytes":4000000000}}]}]}"#;
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("a.0.json"), run).unwrap();
    let (status, said) = limited(6_000_000, &format!("balance --sim 4 --balancer direct --tasks lbaf:{}", folder.path().display()));
    assert!(status == Some(2) && said.contains("2 tasks on one machine take 14.9 GiB while they move, but "), "{said}");
}
