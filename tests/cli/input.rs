//! `equipoise divide --input` from outside, in simulation: answers on standard output, reports on standard error, statuses, and refusals.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tempfile::tempdir;

use crate::files::file;

const TEXT: &str = "3\n1\nerror one\n3\nno\nerror two\n";

fn divide(input: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("equipoise").unwrap();
    // So slow that every rank gets a share of a few bytes.
    command.args(["divide", "--sim", "3", "--rate", "1000", "--input"]).arg(input).args(arguments).output().unwrap()
}

fn answer(arguments: &[&str]) -> String {
    let output = divide(&file(TEXT), arguments);
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && report.contains("makespan") && report.contains("predicted"), "{arguments:?}: {report}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn answers_are_on_standard_output() {
    assert_eq!(answer(&["--kernel", "count"]), "6 8 29\n");
    assert_eq!(answer(&["--kernel", "grep=error"]), "2\n");
    assert_eq!(answer(&["--kernel", "grep=error", "--print"]), "error one\nerror two\n");
    assert_eq!(answer(&["--kernel", "histogram=numbers"]), "      1 1\n      2 3\n      1 error one\n      1 error two\n      1 no\n");
    assert_eq!(answer(&["--kernel", "checksum"]), format!("{}\n", blake3::hash(TEXT.as_bytes()).to_hex()));
    assert!(answer(&["--kernel", "histogram"]).starts_with("      6 10\n      2 32\n"));
    assert_eq!(answer(&["--command", "cat"]), TEXT);
    assert_eq!(answer(&["--command", "grep -c o", "--ok-status", "0,1", "--reduce", "sum"]), "3\n");
    assert_eq!(answer(&["--command", "cat", "--reduce", "sort | head -n 1"]), "1\n");
    assert_eq!(answer(&["--command", "cat", "--output", "human", "--topology", "line", "--installments", "2"]), TEXT);
}

#[test]
fn programs_get_one_object() {
    let input = file(TEXT);
    let json = |arguments: &[&str]| -> Value {
        let output = divide(&input, &[arguments, &["--output", "json"]].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let record = json(&["--kernel", "count", "--baselines"]);
    assert_eq!(record["answer"], serde_json::json!({"lines": 6, "words": 8, "bytes": 29}));
    assert_eq!(record["finish"].as_array().map(Vec::len), Some(3));
    for key in ["predicted", "makespan", "speedup", "spread", "sequential"] {
        assert!(record[key].is_f64(), "{key}: {record}");
    }
    assert_eq!(record["baselines"].as_array().map(Vec::len), Some(3));
    assert_eq!(json(&["--kernel", "grep=error"])["answer"], 2);
    assert_eq!(json(&["--kernel", "histogram=numbers"])["answer"]["3"], 2);
    let record = json(&["--command", "cat"]);
    assert!(record["answer"] == TEXT && record["answer_encoding"] == "utf-8", "{record}");
}

#[test]
fn bytes_that_are_no_text_survive_in_json() {
    let text = b"\xff\n\xfe\r\n\xff\n\0\n\xe9t\xe9";
    let input = file(text);
    let json = |arguments: &[&str]| -> Value {
        let output = divide(&input, &[arguments, &["--output", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)))
    };
    let decoded = |text: &str| BASE64_STANDARD.decode(text).unwrap();
    let record = json(&["--command", "cat"]);
    assert_eq!(record["answer_encoding"], "base64");
    assert_eq!(decoded(record["answer"].as_str().unwrap()), text);
    let record = json(&["--kernel", "histogram=numbers"]);
    assert_eq!(record["answer_encoding"], "base64");
    let counts = record["answer"].as_object().unwrap().iter().map(|(key, count)| (decoded(key), count.as_u64().unwrap()));
    let mut counts: Vec<_> = counts.collect();
    counts.sort();
    let expected: [(&[u8], u64); 4] = [(b"\0", 1), (b"\xe9t\xe9", 1), (b"\xfe\r", 1), (b"\xff", 2)];
    assert_eq!(counts, expected.map(|(key, count)| (key.to_vec(), count)));
}

#[test]
fn a_report_and_a_trace_are_written() {
    let input = file(TEXT);
    let folder = tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    let (report, traced) = (folder.path().to_str().unwrap(), trace.to_str().unwrap());
    let output = divide(&input, &["--kernel", "count", "--baselines", "--report", report, "--trace", traced]);
    assert!(output.status.success() && output.stdout == b"6 8 29\n", "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let page = read("report.html");
    for text in
        ["Predicted and measured", "2 measured", "predicted finish", "chunks on demand takes", "Simulated network", "divide --sim 3"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(read("table.csv").starts_with("rank,share,calibrated,") && read("table.csv").lines().count() == 1 + 3);
    let record: Value = serde_json::from_str(&read("records.jsonl")).unwrap();
    assert!(record["bytes"] == 29 && record["finish"].as_array().is_some());
    let trace: Value = serde_json::from_str(&read("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let computing = |kind: &str| events.iter().filter(|event| event["cat"] == kind && event["name"] == "computing").count();
    assert!(computing("predicted") >= 3 && computing("measured") >= 3);
}

#[test]
fn the_status_is_that_of_the_shares() {
    let input = file(TEXT);
    let status = |arguments: &[&str]| divide(&input, arguments).status.code();
    assert_eq!(status(&["--command", "grep error", "--ok-status", "0,1"]), Some(0));
    assert_eq!(status(&["--command", "grep nowhere", "--ok-status", "0,1"]), Some(1));
    let failed = divide(&input, &["--command", "grep nowhere"]);
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(failed.status.code() == Some(1) && failed.stdout.is_empty(), "{said}");
    assert!(
        said.contains("it ended with status 1 (--ok-status 0,1 accepts it); there is no answer") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn baselines_that_fail_do_not_spoil_the_answer() {
    let folder = tempdir().unwrap();
    // The division runs it three times, and it succeeds three times.
    let command = format!("mktemp {0}/run.XXXXXX >/dev/null; cat; test $(ls {0} | wc -l) -le 3", folder.path().display());
    let output = divide(&file(TEXT), &["--command", &command, "--baselines"]);
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout == TEXT.as_bytes(), "{report}");
    for name in ["equal shares", "rank 0 alone", "chunks on demand"] {
        let line = report.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
        assert!(line.contains(" failed: ") && line.contains("it ended with status 1"), "{report}");
    }
}

#[test]
fn links_are_written_through_and_modes_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::write(&real, "yesterday").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o604)).unwrap();
    symlink("real", &link).unwrap();
    let output = divide(&file(TEXT), &["--command", "cat", "--to", link.to_str().unwrap()]);
    assert!(output.status.success() && link.is_symlink() && std::fs::read_to_string(&real).unwrap() == TEXT, "{output:?}");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o604);
}

#[test]
fn the_answer_goes_into_a_file_and_the_chart_beside_it() {
    let input = file(TEXT);
    let folder = tempdir().unwrap();
    let (to, chart) = (folder.path().join("to"), folder.path().join("chart.svg"));
    let output = divide(&input, &["--command", "cat", "--to", to.to_str().unwrap(), "--gantt", chart.to_str().unwrap()]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), TEXT);
    let drawn = std::fs::read_to_string(&chart).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("0 predicted") && drawn.contains("2 measured"), "{drawn}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let input = file(TEXT);
    let output = divide(&input, &["--command", "cat", "--to", "/dev/full"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("No space left") && said.trim_end().ends_with("is not all of it"), "{said}");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let input = file(TEXT);
    for (arguments, said) in [
        (&["--kernel", "nosuch"][..], "--kernel nosuch: there is no such kernel"),
        (&["--kernel", "grep=("], "--kernel grep=(: this is no regular expression"),
        (&[], "--input: what is to be computed on it?"),
        (&["--kernel", "count", "--command", "wc"], "cannot be used with"),
        (&["--kernel", "count", "--print"], "--print: only --kernel grep=RE"),
        (&["--kernel", "grep=x", "--print", "--output", "json"], "--print: "),
        (&["--kernel", "count", "--records", "words"], "--records words: known are lines, nul and bytes=N"),
        (&["--kernel", "count", "--speeds", "1,2"], "--speeds: there are 2 speeds for 3 ranks"),
        (&["--kernel", "count", "--speeds", "1,0,1"], "--speeds: 0 is no speed"),
        (&["--kernel", "count", "--memory", "much"], "'much' for '--memory <BYTES>'"),
        (&["--kernel", "count", "--installments", "0"], "--installments 0: "),
        (&["--kernel", "count", "--w", "2"], "cannot be used with"),
        (&["--kernel", "count", "--reduce", "sum"], "--reduce: only --command"),
        (&["--kernel", "count", "--ok-status", "0"], "--ok-status: only --command"),
        (&["--command", "cat", "--print"], "--print: only --kernel grep=RE"),
        (&["--command", "cat", "--ok-status", "x"], "'x' is no exit status"),
        (&["--kernel", "count", "--to", "/no/such/folder/file"], "--to /no/such/folder/file: it cannot be written"),
        (&["--kernel", "count", "--gantt", "/no/such/folder/file"], "--gantt /no/such/folder/file: it cannot be written"),
        (&["--kernel", "count", "--report", "/dev/null/x"], "--report /dev/null/x: the folder cannot be made"),
        (&["--kernel", "count", "--trace", "/no/such/folder/file"], "--trace /no/such/folder/file: it cannot be written"),
        (&["--kernel", "count", "--topology", "mesh:9x9x9x"], "--topology"),
    ] {
        let output = divide(&input, arguments);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(said), "{arguments:?}: {told}");
        assert!(told.lines().count() == 1 && output.stdout.is_empty(), "{arguments:?}: {told}");
    }
    let told = String::from_utf8(divide(&std::env::temp_dir(), &["--kernel", "count"]).stderr).unwrap();
    assert!(told.contains("this is a folder"), "{told}");
}

/// Runs a line of the shell in which `$E` is the program; in simulation.
fn shell(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let program = assert_cmd::cargo::cargo_bin("equipoise");
    let output = std::process::Command::new("sh").arg("-c").arg(line).env("E", program).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn it_is_the_middle_of_a_pipeline() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("input"), TEXT).unwrap();
    let lines = |line: &str| shell(folder.path(), line);
    let (status, answer, report) = lines("cat input | $E divide --sim 3 --input - --kernel grep=error --print | sort -r");
    assert_eq!((status, answer.as_str()), (Some(0), "error two\nerror one\n"), "{report}");
    assert!(report.contains("of standard input (29 B)"), "{report}");
    for input in ["- <input", "/dev/stdin <input", "- </dev/stdin <input"] {
        assert_eq!(lines(&format!("$E divide --sim 2 --input {input} --kernel count")).1, "6 8 29\n", "{input}");
    }
    // What somebody else has read is not read again.
    let (_, answer, report) = lines("{ read first; $E divide --sim 2 --input - --kernel count; } <input");
    assert!(["5 7 27\n", "0 0 0\n"].contains(&answer.as_str()), "{answer} {report}");
    let (_, answer, report) = lines("mkfifo pipe; (sleep 0.3; cat input) >pipe & $E divide --sim 2 --input pipe --kernel count");
    assert_eq!(answer, "6 8 29\n", "{report}");
    let (_, answer, report) = lines("$E divide --sim 2 --input - --kernel count </dev/null");
    assert_eq!(answer, "0 0 0\n", "{report}");
    let (status, answer, said) = lines("$E divide --sim 2 --input - --kernel count <&-");
    assert_eq!((status, answer.as_str(), said.as_str()), (Some(2), "", "equipoise: --input -: standard input is closed\n"));
}

#[test]
fn compressed_inputs_are_read_or_refused() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("input"), TEXT.repeat(1000)).unwrap();
    let lines = |line: &str| shell(folder.path(), line);
    let (status, answer, report) = lines("gzip -c input >i.gz && $E divide --sim 2 --input i.gz --kernel count");
    assert_eq!((status, answer.as_str()), (Some(0), "6000 8000 29000\n"), "{report}");
    assert!(report.contains("of i.gz (29.0 kB, unpacked by gzip)"), "{report}");
    assert_eq!(lines("gzip -c input | $E divide --sim 2 --input - --kernel count").1, "6000 8000 29000\n");
    let sum = |line: &str| lines(line).1;
    assert_eq!(
        sum("$E divide --sim 2 --input i.gz --raw --kernel checksum").trim(),
        blake3::hash(&std::fs::read(folder.path().join("i.gz")).unwrap()).to_hex().as_str()
    );
    for (line, said) in [
        (
            "head -c 100 i.gz >half.gz; $E divide --sim 2 --input half.gz --kernel count",
            "--input half.gz: it is compressed by gzip, and damaged: it ends in the middle",
        ),
        (
            "printf 'BZh91AY&SY...' >b; $E divide --sim 2 --input b --kernel count",
            "--input b: it is compressed by bzip2, which is not read here: `bzip2 -dc FILE |",
        ),
        (
            "cp input no.zst; $E divide --sim 2 --input no.zst --kernel count",
            "--input no.zst: it is called as if it were compressed by zstd, and is not",
        ),
    ] {
        let (status, answer, told) = lines(line);
        assert!(status == Some(2) && answer.is_empty() && told.starts_with(&format!("equipoise: {said}")), "{line}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn records_that_end_with_a_null_byte_do_so_in_the_answer() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("input"), "a\nb\0c\0a\nb\0").unwrap();
    let (_, answer, _) = shell(folder.path(), "$E divide --sim 2 --input input --records nul --kernel histogram=numbers");
    assert_eq!(answer, "      2 a\nb\0      1 c\0");
    let (_, answer, _) = shell(folder.path(), "$E divide --sim 2 --input input --records nul --kernel grep=a --print");
    assert_eq!(answer, "a\nb\0a\nb\0");
}

#[test]
fn two_that_write_one_file_are_each_whole() {
    let folder = tempdir().unwrap();
    let line = "seq 200000 >1; seq 300000 600000 >2; ln -s victim both.part; echo precious >victim; \
                $E divide --sim 2 --input 1 --kernel grep=7 --print --to both & \
                $E divide --sim 2 --input 2 --kernel grep=7 --print --to both; s=$?; wait $! && exit $s";
    for _ in 0..3 {
        let (status, _, said) = shell(folder.path(), line);
        assert_eq!(status, Some(0), "{said}");
        let written = std::fs::read_to_string(folder.path().join("both")).unwrap();
        let expected =
            |numbers: std::ops::RangeInclusive<u32>| numbers.map(|n| format!("{n}\n")).filter(|n| n.contains('7')).collect::<String>();
        assert!(written == expected(1..=200_000) || written == expected(300_000..=600_000), "{} bytes", written.len());
        assert_eq!(std::fs::read_to_string(folder.path().join("victim")).unwrap(), "precious\n");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 5, "{left:?}");
        std::fs::remove_file(folder.path().join("both.part")).unwrap();
    }
}

#[test]
fn a_closed_standard_output_is_told() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("input"), TEXT).unwrap();
    for line in [
        "$E divide --sim 2 --input input --kernel count",
        "$E divide --sim 2 --input input --kernel count --output json",
        "$E divide --model --topology star:3",
        "$E balance --sim 4",
        "$E compare --sim 4 --balancer direct",
        "$E run --sim 2 --workload queens:n=4",
        "$E list",
        "$E --help",
        "$E --version",
    ] {
        let (status, _, said) = shell(folder.path(), &format!("{line} >&-"));
        assert!(status == Some(1) && said.contains("equipoise: standard output is closed"), "{line}: {status:?} {said}");
        // One that was asked for, in whatever way, is not closed.
        for to in [">/dev/null", "1<>/dev/null"] {
            assert_eq!(shell(folder.path(), &format!("{line} {to}")).0, Some(0), "{line} {to}");
        }
    }
    // Who prints nothing needs none.
    assert_eq!(shell(folder.path(), "$E divide --sim 2 --input input --kernel count --output quiet >&-").0, Some(0));
    assert_eq!(shell(folder.path(), "$E divide --sim 2 --input input --kernel count --to answer >&-").0, Some(0));
}
