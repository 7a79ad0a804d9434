//! `probe`, `advise`, and measured networks as files, from outside.

mod advice;

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

use crate::contract::{Key, assert_keys, lines, number_or_null};
use crate::files::file;

const PROBE: &[Key] = &[
    ("ranks", Value::is_u64),
    ("hosts", |value| value.as_array().is_some_and(|hosts| hosts.iter().all(Value::is_array))),
    ("links", Value::is_array),
    ("speeds", |value| value.as_array().is_some_and(|speeds| speeds.iter().all(Value::is_f64))),
    ("slow", Value::is_array),
    ("cores_per_rank", Value::is_number),
];

const LINK: &[Key] = &[
    ("between", |value| value == "within" || value == "hosts" || value == "racks"),
    ("latency_us", Value::is_f64),
    ("gap_us", Value::is_f64),
    ("bytes_per_second", number_or_null),
    ("error", Value::is_f64),
];

/// Four hosts of two ranks; what host `slow` computes takes 1 / 0.8 of the time.
fn cluster(slow: Option<usize>) -> String {
    let host = |host: usize| {
        let speed = if slow == Some(host) { 0.8 } else { 1.0 };
        format!("[[host]]\nname = \"h{host}\"\nranks = [{}, {}]\nspeeds = [{speed:.1}, {speed:.1}]\n\n", 2 * host, 2 * host + 1)
    };
    let hosts: String = (0..4).map(host).collect();
    format!(
        "{hosts}[within]\nlatency = \"700ns\"\ngap = \"250ns\"\nper_byte = \"0.437ns\"\n\n\
         [between]\nlatency = \"21us\"\ngap = \"900ns\"\nper_byte = \"2.5ns\"\nshared = true\n"
    )
}

/// A file of a network, which `--network` knows by its name.
fn toml(text: &str) -> tempfile::TempPath {
    let path = tempfile::Builder::new().suffix(".toml").tempfile().unwrap().into_temp_path();
    fs::write(&path, text).unwrap();
    path
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("equipoise").unwrap().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn probe_finds_the_simulated_network() {
    for ranks in [1, 2, 5, 8] {
        let probed =
            lines(&format!("probe --sim {ranks} --network switched:latency=13us,per_byte=1.25ns --repeat 4 --compute 0.01 --output json"));
        let [object] = &probed[..] else { panic!("{} lines", probed.len()) };
        assert_keys(object, PROBE);
        assert_eq!(object["ranks"], ranks);
        assert_eq!(object["speeds"].as_array().unwrap().len(), ranks);
        let links = object["links"].as_array().unwrap();
        assert_eq!(links.len(), usize::from(ranks > 1));
        for link in links {
            assert_keys(link, LINK);
            assert_eq!((link["between"].as_str(), link["latency_us"].as_f64()), (Some("within"), Some(13.0)));
            assert_eq!(link["bytes_per_second"].as_f64(), Some(8e8));
        }
    }
    let probed = lines("probe --sim 6 --sim-hosts 3 --repeat 4 --output json");
    assert_eq!(probed[0]["hosts"], serde_json::json!([[0, 1], [2, 3], [4, 5]]));
    let links = probed[0]["links"].as_array().unwrap();
    assert_eq!(links.iter().map(|link| link["between"].as_str().unwrap()).collect::<Vec<_>>(), ["within", "hosts"]);
}

#[test]
fn a_network_is_read_from_standard_input() {
    let text = cluster(None);
    let file = toml(&text);
    for command in ["balance --sim 8 --balancer cwa", "advise --task-seconds 0.001"] {
        let record = |network: &str| {
            let mut command_line = Command::cargo_bin("equipoise").unwrap();
            command_line.args(command.split(' ')).args(["--loads", "900,0,0,0,0,0,0,70", "--output", "json", "--network", network]);
            let output = command_line.write_stdin(text.clone()).output().unwrap();
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            let mut record: Value = serde_json::from_slice(&output.stdout).unwrap();
            // Its name is that of the file.
            record.as_object_mut().unwrap().remove("network");
            record
        };
        assert_eq!(record("-"), record(file.to_str().unwrap()), "{command}");
    }
}

#[test]
fn a_network_that_was_written_is_read_again() {
    let given = toml(&cluster(None));
    let folder = tempfile::tempdir().unwrap();
    let (written, platform) = (folder.path().join("probed.toml"), folder.path().join("probed.xml"));
    let (given, written, platform) = (given.to_str().unwrap(), written.to_str().unwrap(), platform.to_str().unwrap());
    let report = folder.path().join("report");
    let (status, _, errors) = run(&[
        "probe",
        "--sim",
        "8",
        "--network",
        given,
        "--repeat",
        "4",
        "--compute",
        "0.01",
        "--output",
        "quiet",
        "--write",
        written,
        "--simgrid",
        platform,
        "--report",
        report.to_str().unwrap(),
    ]);
    assert_eq!((status, errors.as_str()), (0, ""));
    let phase = |network: &str| {
        let mut object = lines(&format!("balance --sim 8 --network {network} --loads hot:total=800 --payload 100 --output json")).remove(0);
        object["network"] = Value::Null;
        object
    };
    // To the nanosecond.
    assert_eq!(phase(given), phase(written));
    assert_eq!(phase(given)["hosts"], 4);
    let xml = fs::read_to_string(platform).unwrap();
    assert!(xml.contains("<host id=\"h3\" speed=\"1000000000f\" core=\"2\"/>"), "{xml}");
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    assert!(page.contains("Latency between ranks") && page.contains("Bandwidth between hosts") && page.contains("h1 and h2: "), "{page}");
    let table = fs::read_to_string(report.join("table.csv")).unwrap();
    assert!(table.starts_with("between,latency_us,gap_us,bytes_per_second,") && table.lines().count() == 3, "{table}");
    // Twice as many ranks are on as many hosts more.
    assert_eq!(lines(&format!("balance --sim 16 --network {written} --output json"))[0]["hosts"], 8);
    assert_eq!(lines(&format!("balance --sim 3 --network {written} --output json"))[0]["hosts"], 2);
    for command in
        ["compare --loads 9,0,0,0 --balancer cwa", "run --workload queens:n=6", "run --workload costs:tasks=20 --scheduler selfsched"]
    {
        assert_eq!(lines(&format!("{command} --sim 4 --network {written} --output json"))[0]["hosts"], 2, "{command}");
    }
}

#[test]
fn what_is_slow_fails_a_strict_probe() {
    let probe = |network: &str, more: &[&str]| {
        run(&[&["probe", "--sim", "8", "--repeat", "10", "--compute", "0.01", "--network", network], more].concat())
    };
    let with_slow_host = toml(&cluster(Some(2)));
    let with_slow_host = with_slow_host.to_str().unwrap();
    let (status, out, errors) = probe(with_slow_host, &["--strict", "--output", "json"]);
    let object: Value = serde_json::from_str(&out).unwrap();
    let slow = object["slow"].as_array().unwrap();
    // The kernel's time is rounded up to a nanosecond.
    let factor = slow[0]["factor"].as_f64().unwrap();
    assert_eq!((status, slow.len(), slow[0]["host"].as_str()), (1, 1, Some("h2")));
    assert!((factor - 1.25).abs() < 1e-4, "{factor}");
    assert_eq!(errors, "equipoise: --strict: something is slow; see the verdict\n");
    let (status, out, _) = probe(with_slow_host, &[]);
    assert!(out.contains("Verdict: host h2 computes 20.0 % slower than the others (1.25 times as long)"), "{out}");
    assert_eq!(status, 0);
    let even = toml(&cluster(None));
    let (status, out, errors) = probe(even.to_str().unwrap(), &["--strict"]);
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(out.contains("Verdict: nothing is slow (a false alarm has a probability of at most"), "{out}");
    let link = toml(&format!("{}\n[[pair]]\nhosts = [\"h0\", \"h3\"]\nlatency = \"84us\"\nper_byte = \"10ns\"\n", cluster(None)));
    let (status, out, _) = probe(link.to_str().unwrap(), &["--strict"]);
    assert!(status == 1 && out.contains("Verdict: the link h0-h3 takes 4"), "{out}");
}

/// Hosts of as many ranks as there are speeds.
fn with_speeds(speeds: &[&[f64]]) -> tempfile::TempPath {
    let mut text = String::new();
    let mut rank = 0;
    for (host, speeds) in speeds.iter().enumerate() {
        let ranks: Vec<usize> = (rank..rank + speeds.len()).collect();
        rank += speeds.len();
        text.push_str(&format!("[[host]]\nname = \"h{}\"\nranks = {ranks:?}\nspeeds = {speeds:?}\n", host + 1));
    }
    toml(&format!(
        "{text}[within]\nlatency = \"600ns\"\nper_byte = \"0.4ns\"\n[between]\nlatency = \"21us\"\nper_byte = \"2.7ns\"\nshared = true\n"
    ))
}

#[test]
fn a_slow_rank_of_several_hosts_is_named_and_its_healthy_host_is_not() {
    let twelve: &[&[f64]] = &[&[1.0, 0.5, 1.0, 1.0], &[1.0; 4], &[1.0; 4]];
    // The default number of rounds is enough for a verdict, too.
    for (speeds, ranks, rounds) in [(twelve, "12", &["--repeat", "10"][..]), (&[&[1.0, 0.5], &[1.0; 2]], "4", &[])] {
        let network = with_speeds(speeds);
        let probe = ["probe", "--sim", ranks, "--network", network.to_str().unwrap(), "--compute", "0.01", "--strict"];
        let (status, out, errors) = run(&[&probe[..], rounds].concat());
        assert_eq!((status, errors.as_str()), (1, "equipoise: --strict: something is slow; see the verdict\n"));
        let verdict = out.lines().last().unwrap();
        assert!(verdict.starts_with("Verdict: rank 1 on host h1 computes 50.0 % slower than the others (2.00 times as long) ("), "{out}");
        let verdict = verdict.replace("; the link between the two hosts has nothing to be compared with", "");
        assert!(!verdict.contains(';'), "one part is slow: {out}");
    }
}

#[test]
fn a_strict_probe_without_a_verdict_is_refused() {
    let network = with_speeds(&[&[0.5; 4], &[1.0; 4], &[1.0; 4]]);
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("probed.toml");
    let arguments = ["--network", network.to_str().unwrap(), "--repeat", "4", "--strict", "--write", written.to_str().unwrap()];
    let (status, out, errors) = run(&[&["probe", "--sim", "12"], &arguments[..]].concat());
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(errors, "equipoise: --strict: a verdict on these ranks takes --repeat 10 or more, not 4\n");
    assert!(!written.exists(), "nothing was measured");
}

/// Hosts of one rank in two racks, 20 us within and 80 us between; the links of these pairs take four times the time within a rack.
fn two_racks(racks: [usize; 2], slow: &[(usize, usize)]) -> tempfile::TempPath {
    let hosts = racks[0] + racks[1];
    let host: String = (0..hosts).map(|host| format!("[[host]]\nname = \"h{host}\"\nranks = [{host}]\n")).collect();
    let pairs = (0..hosts).flat_map(|low| (low + 1..hosts).map(move |high| (low, high)));
    let pair = |(low, high): (usize, usize)| {
        let per_byte = if (low < racks[0]) == (high < racks[0]) { if slow.contains(&(low, high)) { 8 } else { 2 } } else { 20 };
        let latency = if per_byte == 2 { 20 } else { 80 };
        format!("[[pair]]\nhosts = [\"h{low}\", \"h{high}\"]\nlatency = \"{latency}us\"\nper_byte = \"{per_byte}ns\"\n")
    };
    toml(&format!("{host}[between]\nlatency = \"20us\"\nper_byte = \"2ns\"\n{}", pairs.map(pair).collect::<String>()))
}

#[test]
fn racks_are_found_printed_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("racks.toml");
    let network = two_racks([6, 2], &[]);
    let report = folder.path().join("report");
    let probe = ["probe", "--sim", "8", "--network", network.to_str().unwrap(), "--compute", "0.01", "--strict"];
    let files = ["--write", written.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let (status, out, errors) = run(&[&probe[..], &files].concat());
    assert_eq!((status, errors.as_str()), (0, ""), "{out}");
    assert!(out.contains("Racks by distance: h0 h1 h2 h3 h4 h5; h6 h7.\n") && out.contains("between racks"), "{out}");
    let probed: Value = serde_json::from_str(&fs::read_to_string(report.join("records.jsonl")).unwrap()).unwrap();
    assert_eq!(probed["racks"], serde_json::json!([[0, 1, 2, 3, 4, 5], [6, 7]]));
    assert_eq!(
        probed["links"].as_array().unwrap().iter().map(|link| link["between"].as_str().unwrap()).collect::<Vec<_>>(),
        ["hosts", "racks"]
    );
    for link in probed["links"].as_array().unwrap() {
        assert_keys(link, LINK);
    }
    let text = fs::read_to_string(&written).unwrap();
    assert_eq!((text.matches("rack = \"r1\"\n").count(), text.matches("rack = \"r2\"\n").count()), (6, 2), "{text}");
    // Without racks there is no such key.
    assert!(lines("probe --sim 4 --sim-hosts 2 --repeat 4 --compute 0.01 --output json")[0].get("racks").is_none());
    // In its rack, a link that is as slow as those between racks is slow.
    let network = two_racks([3, 3], &[(0, 1)]);
    let (status, out, _) = run(&["probe", "--sim", "6", "--network", network.to_str().unwrap(), "--compute", "0.01", "--strict"]);
    assert!(status == 1 && out.contains("Verdict: the link h0-h1 takes 4.00 times as long as the others ("), "{out}");
}

#[test]
fn times_are_printed_as_the_osu_benchmarks_do() {
    let (status, out, _) = run(&["probe", "--sim", "4", "--sim-hosts", "2", "--repeat", "4", "--format", "osu"]);
    assert_eq!(status, 0);
    for title in ["# Equipoise latency test, within hosts", "# Equipoise bandwidth, between hosts", "# Size          Latency (us)"] {
        assert!(out.contains(title), "{out}");
    }
    let row = out.lines().find(|line| line.starts_with("1048576 ")).unwrap();
    let numbers: Vec<f64> = row.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(numbers.len() == 2 && (numbers[1] - 2851.0).abs() < 2.0, "{row}");
}

/// SimGrid is the oracle for the platform, where its Python module is installed, as it must be in CI: also where a pair of hosts has a slow link.
#[test]
fn simgrid_has_the_same_times() {
    // A Python of the user's own may stand before the system's, which has Debian's package.
    let imports = |python: &&str| {
        let output = std::process::Command::new(python).args(["-c", "import simgrid"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(imports) else {
        let missing = "simgrid_has_the_same_times: there is no Python module simgrid (Debian: python3-simgrid, by scripts/setup)";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "in CI it must be there: {missing}");
        eprintln!("\n*** SKIPPED: {missing}\n");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (platform, probed) = (folder.path().join("platform.xml"), folder.path().join("probe.json"));
    let slow_pair = "\n[[pair]]\nhosts = [\"h1\", \"h2\"]\nlatency = \"84us\"\nper_byte = \"10ns\"\n";
    for pair in ["", slow_pair] {
        let network = toml(&format!("{}{pair}", cluster(None)));
        let written = ["--output", "json", "--simgrid", platform.to_str().unwrap()];
        let (status, out, _) =
            run(&[&["probe", "--sim", "8", "--network", network.to_str().unwrap(), "--repeat", "4"][..], &written].concat());
        assert_eq!(status, 0);
        let xml = fs::read_to_string(&platform).unwrap();
        assert!(xml.contains("<link id=\"port-3\""), "the hosts' ports are shared");
        assert_eq!(xml.contains("<link id=\"pair-1-2\""), !pair.is_empty());
        // Of the ring's messages the slow link's is the last.
        let ring = xml.lines().find(|line| line.starts_with("<!-- Ring of the hosts, messages of 0 bytes: ")).unwrap();
        let us: f64 = ring.split_whitespace().rev().nth(2).unwrap().parse().unwrap();
        assert!((us - if pair.is_empty() { 21.1 } else { 84.4 }).abs() < 0.2, "{ring}");
        fs::write(&probed, out).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/simgrid");
        let output = std::process::Command::new(python).arg(script).arg(&platform).arg(&probed).output().unwrap();
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
}

/// One host of two ranks, the second of which has this speed.
fn host_of_two(speed: f64) -> tempfile::TempPath {
    let within = "[within]\nlatency = \"600ns\"\nper_byte = \"0.4ns\"\n";
    toml(&format!("[[host]]\nname = \"h1\"\nranks = [0, 1]\nspeeds = [1.0, {speed:?}]\n{within}"))
}

#[test]
fn simulated_ranks_compute_at_the_files_speeds() {
    let (even, uneven) = (host_of_two(1.0), host_of_two(0.25));
    let (even, uneven) = (even.to_str().unwrap(), uneven.to_str().unwrap());
    let text = file("some words on a line\n".repeat(2_000));
    for command in [
        "run --workload costs:tasks=40 --scheduler selfsched",
        "run --workload queens:n=7 --scheduler steal",
        &format!("divide --input {} --kernel count", text.to_str().unwrap()),
    ] {
        let took = |network: &str, more: &str| {
            lines(&format!("{command} --sim 2 --network {network} --output json {more}"))[0]["makespan"].as_f64().unwrap()
        };
        let (alike, slow) = (took(even, ""), took(uneven, ""));
        assert!(slow > 1.2 * alike, "{command}: {slow} with a slow rank, {alike} without");
        assert_eq!(slow, took(even, "--speeds 1,0.25"), "{command}");
        assert_eq!(alike, took(uneven, "--speeds 1,1"), "{command}: the given speeds count");
    }
    let arguments = ["divide", "--sim", "2", "--network", uneven, "--input", text.to_str().unwrap(), "--kernel", "count"];
    let (status, out, errors) = run(&[&arguments[..], &["--distribution", "hypercube"]].concat());
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(errors.contains(": --distribution hypercube divides among equal ranks, and their speeds are 1 and 0.25"), "{errors}");
}

/// One link cannot be slower than others.
#[test]
fn the_link_of_two_hosts_is_not_judged() {
    let verdict = |hosts: &str| {
        let (status, out, errors) = run(&["probe", "--sim", "4", "--sim-hosts", hosts, "--compute", "0.01"]);
        assert_eq!((status, errors.as_str()), (0, ""));
        out.lines().last().unwrap().to_string()
    };
    for (hosts, end) in [("1", " %)."), ("2", "; the link between the two hosts has nothing to be compared with."), ("4", " %).")] {
        let said = verdict(hosts);
        assert!(said.starts_with("Verdict: nothing is slow (") && said.ends_with(end), "{said}");
    }
}

#[test]
fn wrong_usage_is_one_sentence() {
    let wrong = toml(&cluster(None).replace("21us", "soon"));
    let (wrong, missing) = (wrong.to_str().unwrap(), "/no/such/file.toml");
    let no_ranks = match cfg!(feature = "_ranks") {
        true => "there are no ranks to run on; type `mpirun -n 8 equipoise probe ..`",
        false => "this program was built without real ranks (features `mpi`, `mpi-dynamic`), so --sim RANKS is needed",
    };
    for (arguments, says) in [
        (&["balance", "--sim", "8", "--network", wrong][..], ", line 27: latency is a whole number of nanoseconds, such as \"20us\""),
        (&["balance", "--sim", "8", "--network", missing], "--network /no/such/file.toml: the file cannot be read: "),
        (&["advise", "--loads", "3,4", "--task-seconds", "1", "--network", missing], "the file cannot be read: "),
        (&["advise", "--loads", "3,4", "--task-seconds", "-1"], "it must be a number of seconds above 0, such as 0.5, 500ms"),
        (&["advise", "--loads", "3,4", "--task-seconds", "NaN"], "it must be a number of seconds above 0, such as 0.5, 500ms"),
        (
            &["advise", "--loads", "19,11,2,9", "--task-seconds", "1e-300", "--balancer", "cwa"],
            "--task-seconds 1e-300: a task takes 1e-18 s or more",
        ),
        (
            &["advise", "--loads", "19,11", "--task-seconds", "1e308"],
            "--task-seconds 1e308: all steps of these loads take more than 1e18 s",
        ),
        (&["advise", "--loads", "hot:total=5", "--task-seconds", "1"], "for how many ranks? Say --sim RANKS, or --network FILE.toml"),
        (&["advise", "--loads", "3,-4", "--task-seconds", "1"], "--loads, item 2"),
        (&["advise", "--loads", "3,4", "--sim", "3", "--task-seconds", "1"], "--loads: 2 numbers for the 3 ranks"),
        (&["advise", "--loads", "3,4", "--task-seconds", "1", "--topology", "moebius"], "--topology 'moebius' is unknown"),
        (
            &["advise", "--loads", "3,4", "--task-seconds", "1", "--topology", "ring", "--balancer", "cwa"],
            "balancer cwa runs on hypercube, not on ring",
        ),
        (&["advise", "--loads", "@-", "--task-seconds", "1", "--topology", "graph:-"], "--topology: standard input (-) can be read once"),
        (&["advise", "--loads", "3,4", "--task-seconds", "1", "--steps", "0"], "--steps <STEPS>"),
        (&["advise", "--loads", "3,4", "--task-seconds", "1", "--balancer", "magic"], "'magic' is unknown"),
        (&["advise", "--loads", "3,4", "--task-seconds", "1", "--network", "ether"], "'ether' is unknown"),
        (&["advise", "--loads", "3,4"], "--task-seconds <SECONDS>"),
        (&["probe", "--sim", "5000"], "probe measures up to 4096 ranks, not 5000"),
        (&["probe", "--sim", "2", "--write", "network.txt"], "--write network.txt: the name must end with .toml"),
        (&["probe", "--sim", "2", "--write", "/no/such/x.toml"], "--write /no/such/x.toml: it cannot be written"),
        (&["probe", "--sim", "2", "--compute", "0"], "it must be a number of seconds from 0.001 to 3600"),
        (&["compare", "--network", "zero"], "--network zero: on real ranks it must be a FILE.toml (- for standard input) to predict with"),
        (&["balance", "--network", "zero"], "--network: it is the network of simulated ranks; say --sim RANKS, too"),
        (&["probe"], no_ranks),
    ] {
        let (status, out, errors) = run(arguments);
        assert_eq!((status, out.as_str(), errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.contains(says), "{arguments:?}: {errors}");
    }
    let good = toml(&cluster(None));
    let (status, _, errors) = run(&["balance", "--sim", "8", "--sim-hosts", "2", "--network", good.to_str().unwrap()]);
    assert!(status == 2 && errors.contains("--sim-hosts: the hosts are those of --network "), "{errors}");
}

#[test]
fn placements_stand_side_by_side() {
    let command = "compare --sim 16 --sim-hosts 4,cyclic --balancer cwa,direct --loads uniform:mean=100";
    let all = lines(&format!("{command} --placement all --output json"));
    let named: Vec<_> = all.iter().map(|line| (line["balancer"].as_str().unwrap(), line["placement"].as_str().unwrap())).collect();
    let expected = ["cwa", "direct"].map(|name| ["hosts", "identity", "random"].map(|rule| (name, rule))).concat();
    assert_eq!(named, expected);
    // Each is what it is alone, where nothing says so.
    for line in &all {
        let rule = line["placement"].as_str().unwrap();
        let alone = lines(&format!("{command} --placement {rule} --output json"));
        let same = alone.iter().find(|other| other["balancer"] == line["balancer"]).unwrap();
        assert!(same.get("placement").is_none());
        for key in ["host_bytes", "bytes", "messages", "ms_median", "moved"] {
            assert_eq!(same[key], line[key], "{key} of {line}");
        }
    }
    assert!(all[0]["host_bytes"].as_u64() < all[1]["host_bytes"].as_u64(), "{} {}", all[0], all[1]);
    let (status, table, _) = run(&[command.split(' ').collect::<Vec<_>>(), vec!["--placement", "all"]].concat());
    assert!(status == 0 && ["hosts", "identity", "random", "host"].iter().all(|word| table.contains(word)), "{table}");
    let (status, out, errors) = run(&["balance", "--sim", "4", "--placement", "all"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(errors.contains("--placement all: only compare runs under several rules"), "{errors}");
}

#[test]
fn a_tree_of_hosts_crosses_between_them_least() {
    let crossed = |topology: &str| {
        let line =
            lines(&format!("compare --sim 16 --sim-hosts 4,cyclic --balancer twa --topology {topology} --payload 100 --output json"))
                .remove(0);
        assert_eq!(line["imbalance_after"].as_f64(), Some(1.0));
        line["host_bytes"].as_u64().unwrap()
    };
    assert!(crossed("tree:hosts") < crossed("tree:binary"), "{} {}", crossed("tree:hosts"), crossed("tree:binary"));
}
