//! `equipoise farm` from outside, alone: what runs, what is recorded, what comes out, and what is said to wrong usage.

mod compared;
mod ended;
mod resumed;
mod shared;
mod shown;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn list(&self, text: &[u8]) -> &Place {
        fs::write(self.path("jobs"), text).unwrap();
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
        command.arg("farm").args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn farm(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the list, and expects this status.
    fn expect(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.farm(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{err}");
        out
    }

    /// Records of a journal: columns by Seq, final ones only.
    fn records(&self, journal: &str) -> BTreeMap<u64, Vec<Vec<String>>> {
        records(&self.path(journal))
    }
}

fn records(journal: &Path) -> BTreeMap<u64, Vec<Vec<String>>> {
    let mut found: BTreeMap<u64, Vec<Vec<String>>> = BTreeMap::new();
    for entry in fs::read_dir(journal).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "log") {
            continue;
        }
        for line in fs::read_to_string(path).unwrap().lines().skip(1) {
            let columns: Vec<String> = line.split('\t').map(String::from).collect();
            if columns.len() == 17 && columns[16] != "again" {
                found.entry(columns[0].parse().unwrap()).or_default().push(columns);
            }
        }
    }
    found
}

#[test]
fn each_command_runs_once_and_its_output_comes_whole() {
    let place = Place::new();
    let list: String = (1..=60).map(|n| format!("# {n}\n\nsh -c 'echo {n}; echo -{n} >&2'\n")).collect();
    let output = place.list(list.as_bytes()).farm(&["jobs", "--workers", "4", "--journal", "j"]);
    assert_eq!(output.status.code(), Some(0));
    let mut numbers: Vec<u32> = String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("equipoise: 60 tasks: 60 done, 0 failed, 0 skipped, 0 left; "), "{errors}");
    assert_eq!(errors.lines().filter(|line| line.starts_with('-')).count(), 60);
    let records = place.records("j");
    assert!(records.len() == 60 && records.values().all(|records| records.len() == 1 && records[0][16] == "done"));
    assert_eq!(records[&7][0][8], "sh -c 'echo 7; echo -7 >&2'");
}

#[test]
fn words_are_those_of_a_shell() {
    let place = Place::new();
    let list = [&b"printf '[%s]' 'a b' \"c'd\" e\\ f '' \xc3\xa4 $HOME ; | \n"[..], b"printf '[%s]' \xff\n"].concat();
    let output = place.list(&list).farm(&["jobs", "--keep-order", "--journal", "j"]);
    assert_eq!(output.stdout, ["[a b][c'd][e f][][\u{e4}][$HOME][;][|]".as_bytes(), b"[\xff]"].concat());
    assert_eq!(place.records("j")[&2][0][8], "printf '[%s]' \\xff");
    assert_eq!(place.list(b"echo a | tr a b > out; cat out").expect(0, &["jobs", "--shell"]), "b\n");
    let said = place.list(b"echo a | cat\n").farm(&["jobs"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("jobs, line 1: without --shell '|' is an argument like any other"));
}

#[test]
fn long_arguments_and_long_outputs_pass() {
    let place = Place::new();
    let long = "x".repeat(100_000);
    let out = place.list(format!("echo {long}\n").as_bytes()).expect(0, &["jobs"]);
    assert_eq!(out.trim(), long);
    let out = place.expect(0, &["--array", "1-3", "--keep-order", "--", "sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' {}"]);
    assert!(
        out.len() == 15_000_000
            && (1..=3).all(|n| out[(n - 1) * 5_000_000..n * 5_000_000].bytes().all(|byte| usize::from(byte - b'0') == n))
    );
}

/// 100 MB of one command: printed whole, and in a file; all in pieces.
#[test]
fn a_hundred_megabytes_of_output_pass() {
    let place = Place::new();
    let script = "seq 1 13000000 | head -c 100000000; echo; echo end >&2";
    let arguments = ["--array", "1-1", "--journal", "j", "--output"];
    let output = place.farm(&[&arguments[..], &["human", "--", "sh", "-c", script]].concat());
    let mut expected = Vec::with_capacity(100_000_001);
    for n in 1.. {
        writeln!(expected, "{n}").unwrap();
        if expected.len() >= 100_000_000 {
            break;
        }
    }
    expected.truncate(100_000_000);
    expected.push(b'\n');
    assert!(output.status.success() && output.stdout == expected, "{} bytes", output.stdout.len());
    let record = &place.records("j")[&1][0];
    let lines = (expected.split(|byte| *byte == b'\n').count() - 1).to_string();
    assert_eq!(record[11..15], ["100000001", &lines, "4", "1"].map(String::from));
    place.expect(0, &["--array", "1-1", "--results", "r/{#}", "--", "sh", "-c", script]);
    assert!(fs::read(place.path("r/1.out")).unwrap() == expected && fs::read(place.path("r/1.err")).unwrap() == b"end\n");
}

/// Without a standard input: neither the farm nor its commands have one, and a list from it is refused.
#[test]
fn standard_input_may_be_closed() {
    let place = Place::new();
    place.list(b"cat; echo ended $?\nread line; echo read $?\nls -l /proc/self/fd/0 >&2; wc -c\n");
    let closed = |arguments: &str| {
        let script = format!("exec {} farm {arguments} <&-", env!("CARGO_BIN_EXE_equipoise"));
        Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).output().unwrap()
    };
    let output = closed("jobs --shell --keep-order --journal j");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "ended 0\nread 1\n0\n"), "{output:?}");
    fs::write(place.path("in"), "line\n").unwrap();
    assert_eq!(closed("jobs --shell --keep-order --stdin in").stdout, b"line\nended 0\nread 0\n5\n");
    let refused = closed("-");
    let why = "equipoise: farm -: standard input is closed\n";
    assert_eq!((refused.status.code(), String::from_utf8_lossy(&refused.stderr).as_ref()), (Some(2), why));
    // A command that closes its own is none the worse.
    place.list(b"exec <&-; echo fine\n");
    assert_eq!(place.expect(0, &["jobs", "--shell"]), "fine\n");
}

#[test]
fn statuses_and_signals_are_recorded() {
    let place = Place::new();
    let list: String = (0..=255).map(|status| format!("sh -c 'exit {status}'\n")).collect();
    place.list(list.as_bytes()).expect(1, &["jobs", "--journal", "j", "--workers", "8"]);
    for (seq, records) in place.records("j") {
        let expected = if seq == 1 { "done" } else { "failed" };
        assert_eq!((records[0][6].clone(), records[0][16].as_str()), ((seq - 1).to_string(), expected));
    }
    place.list(b"sh -c 'kill -9 $$'\nno-such-program\n/etc\ntrue #EQ dir=/no/such\ntrue #EQ stdin=nosuch\n");
    place.expect(1, &["jobs", "--journal", "k"]);
    let records = place.records("k");
    let of = |seq: u64| (records[&seq][0][6].as_str(), records[&seq][0][7].as_str());
    assert_eq!([of(1), of(2), of(3), of(4), of(5)], [("0", "9"), ("127", "0"), ("126", "0"), ("126", "0"), ("126", "0")]);
}

#[test]
fn inputs_folders_and_variables() {
    let place = Place::new();
    fs::write(place.path("in"), "from a file\n").unwrap();
    fs::create_dir(place.path("sub dir")).unwrap();
    fs::write(place.path("sub dir/in"), "from below\n").unwrap();
    let list = "cat\ncat #EQ stdin=/dev/null\ncat #EQ dir='sub dir' stdin=in\nsh -c 'pwd; cat' #EQ dir='sub dir'\n\
                sh -c 'echo $FARM_TASK $FARM_ATTEMPT $FARM_RANK; test -n \"$FARM_HOST\"'\n";
    let out = place.list(list.as_bytes()).expect(0, &["jobs", "--stdin", "in", "--keep-order"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[..2] == ["from a file", "from below"] && lines[2].ends_with("/sub dir") && lines[3..] == ["from a file", "5 1 0"],
        "{out}"
    );
    assert_eq!(place.list(b"cat\n").expect(0, &["jobs"]), "", "without --stdin it is empty");
    let mut hidden = place.command(&["--array", "1-1", "--", "sh", "-c", "env"]);
    hidden.env("MPI_LOCALX", "3").env("ORTE_X", "1").env("HYDRA_X", "1").env("KEPT_X", "1");
    let out = String::from_utf8(hidden.output().unwrap().stdout).unwrap();
    assert!(out.contains("KEPT_X=1") && !out.contains("HYDRA_X") && !out.contains("ORTE_X") && !out.contains("MPI_LOCAL"), "{out}");
}

#[test]
fn templates_arrays_and_standard_input() {
    let place = Place::new();
    fs::write(place.path("args"), "a b.txt\n\nd/c.gz\n").unwrap();
    assert_eq!(
        place.expect(0, &["--args", "args", "--dry-run", "--", "run", "{}", "--out", "{#}.txt"]),
        "run 'a b.txt' --out 1.txt\nrun d/c.gz --out 2.txt\n"
    );
    assert_eq!(place.expect(0, &["--args", "args", "--keep-order", "--", "printf", "%s\\n", "{/.}", "-5"]), "a b\n-5\nc\n-5\n");
    assert_eq!(place.expect(0, &["--array", "1-9:4", "--keep-order", "--", "echo", "{}"]), "1\n5\n9\n");
    let mut piped = place.command(&["-", "--keep-order"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut piped.stdin.take().unwrap(), b"echo one\necho two").unwrap();
    assert_eq!(piped.wait_with_output().unwrap().stdout, b"one\ntwo\n");
}

#[test]
fn failures_are_tried_again_and_late_ones_stopped() {
    let place = Place::new();
    place.expect(0, &["--array", "1-5", "--retries", "2", "--journal", "j", "--", "sh", "-c", "test $FARM_ATTEMPT = 3"]);
    assert!(place.records("j").values().all(|records| records.len() == 1 && records[0][15] == "3"));
    place.expect(1, &["--array", "1-2", "--timeout", "0.3", "--journal", "k", "--", "sleep", "100{}"]);
    assert!(place.records("k").values().all(|records| records[0][6] == "-1" && records[0][7] == "15"));
}

#[test]
fn commands_come_after_others() {
    let place = Place::new();
    let list = "sleep 0.2\ntest -e f1 #EQ after=3\nsh -c 'sleep 0.1; touch f1'\n";
    place.list(list.as_bytes());
    assert!(place.farm(&["jobs"]).status.code() == Some(2), "a command can only come after those before it");
    let list = "sh -c 'sleep 0.2; touch f1'\ntest -e f1 #EQ after=1\nfalse\ntouch f2 #EQ after=3\n#EQ barrier\ntest -e f1\n";
    place.list(list.as_bytes()).expect(1, &["jobs", "--workers", "4", "--journal", "j"]);
    let states: Vec<String> = place.records("j").values().map(|records| records[0][16].clone()).collect();
    assert_eq!(states, ["done", "done", "failed", "skipped", "done"]);
}

#[test]
fn what_cannot_end_in_time_is_left() {
    let place = Place::new();
    let list: String = (0..10).map(|_| "sleep 0.1 #EQ cost=100\n").chain((0..3).map(|_| "true #EQ cost=0.1\n")).collect();
    place.list(list.as_bytes()).expect(4, &["jobs", "--walltime", "60", "--journal", "j"]);
    assert_eq!(place.records("j").keys().copied().collect::<Vec<_>>(), [11, 12, 13]);
    // A halt leaves work, too.
    place.list("false\n".repeat(50).as_bytes()).expect(4, &["jobs", "--halt", "soon,fail=2", "--workers", "1", "--journal", "k"]);
    assert!((2..=4).contains(&place.records("k").len()));
}

#[test]
fn built_in_tasks_sleep_and_a_limit_stops_none_of_them() {
    let place = Place::new();
    place.expect(0, &["--sleep", "exponential:mean=1ms,tasks=300", "--workers", "4", "--journal", "j"]);
    assert_eq!(place.records("j").len(), 300);
    // Two at a time, 0.3 s each, and less than 2 s: 12 at most, and none that was begun is left.
    let said = place.expect(
        4,
        &["--sleep", "fixed:time=0.3s,tasks=100,costs=known", "--workers", "2", "--walltime", "2", "--output", "json", "--journal", "k"],
    );
    let end: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let (done, left) = (end["done"].as_u64().unwrap(), end["left"].as_u64().unwrap());
    assert!(done + left == 100 && (2..=12).contains(&done), "{end}");
    assert_eq!(place.records("k").values().filter(|records| records[0][16] == "done").count() as u64, done);
    assert!(end["seconds"].as_f64().unwrap() >= done.div_ceil(2) as f64 * 0.3, "{end}");
}

/// Waits for something.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn processes_with(argument: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
    };
    all.filter(has).collect()
}

/// The helper of a farm that has not ended yet.
fn helper_of(farm: &Child) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", farm.id())).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_signal_ends_a_job_in_order() {
    let place = Place::new();
    place.list(b"touch first\nsleep 1234.5\nsleep 0.5\ntrue\n");
    let mut farm = place.command(&["jobs", "--workers", "2", "--grace", "1", "--journal", "j"]).stderr(Stdio::null()).spawn().unwrap();
    until("it begins", || place.path("first").exists() && processes_with("1234.5").len() == 1);
    kill("-TERM", farm.id());
    assert_eq!(farm.wait().unwrap().code(), Some(4));
    assert!(processes_with("1234.5").is_empty());
    assert!(place.records("j").contains_key(&1) && !place.records("j").contains_key(&2));
}

#[test]
fn nothing_that_was_started_survives() {
    let place = Place::new();
    // In the background, in a session of its own, and there without the environment of a task.
    place.list(b"sh -c 'sleep 4321.5 & setsid sleep 4321.5 & setsid env -i sleep 4321.5 & sleep 4321.5'\n");
    for victim in ["farm", "helper"] {
        let mut farm = place.command(&["jobs", "--workers", "2"]).stderr(Stdio::piped()).spawn().unwrap();
        until("it begins", || processes_with("4321.5").len() >= 4);
        kill("-KILL", if victim == "farm" { farm.id() } else { helper_of(&farm).unwrap() });
        let status = farm.wait().unwrap();
        assert_eq!(status.code(), if victim == "farm" { None } else { Some(1) });
        until(victim, || processes_with("4321.5").is_empty());
    }
    // What a task leaves behind in its group ends with it.
    place.list(b"sh -c 'sleep 4322.5 >/dev/null 2>&1 &'\n").expect(0, &["jobs"]);
    until("left behind", || processes_with("4322.5").is_empty());
    // What has left its group, session and environment ends with the job, and no earlier: it may serve other tasks. So does what that has started.
    let list = "setsid env -i sh -c 'echo $$ >server; (setsid sleep 4323.5; true) & sleep 4323.5; true' >/dev/null 2>&1 & \
                while test ! -s server; do sleep 0.02; done\nsleep 0.3; kill -0 $(cat server)\n";
    place.list(list.as_bytes()).expect(0, &["jobs", "--shell", "--workers", "1"]);
    assert!(processes_with("4323.5").is_empty(), "at the end of the job there is none");
}

/// Too few descriptors are no failure of a command: it waits, which is said once.
#[test]
fn commands_wait_for_descriptors() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_equipoise");
    let under = |limit: &str, arguments: &str| {
        let script = format!("ulimit {limit}; exec {program} farm {arguments}");
        Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).stdin(Stdio::null()).output().unwrap()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).matches("the system has no room for a further command").count();
    let arguments = "--array 1-20 --workers 20 --setup true --teardown true --journal j -- sleep 0.2{}";
    let output = under("-n 40", arguments);
    assert_eq!((output.status.code(), said(&output)), (Some(0), 1), "{output:?}");
    let records = place.records("j");
    assert!(records.len() == 20 && records.values().all(|records| records.len() == 1 && records[0][16] == "done"));
    assert_eq!(said(&under("-n 40", "--array 1-20 --workers 20 --output quiet -- sleep 0.2{}")), 0);
    // A soft limit is the commands' only.
    let output = under(
        "-S -n 40",
        "--array 1-60 --workers 60 -- sh -c 'echo $(ulimit -S -n); echo >>begun; while test $(wc -l <begun) -lt 60; do sleep 0.05; done'",
    );
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref(), said(&output)), (Some(0), &*"40\n".repeat(60), 0));
}

#[test]
fn killed_at_any_moment_and_resumed_each_runs_once_after_its_record() {
    let place = Place::new();
    let list: String = (1..=60).map(|n| format!("sh -c 'sleep 0.0913; echo {n} >>ran'\n")).collect();
    place.list(list.as_bytes());
    let mut recorded: BTreeMap<u64, usize> = BTreeMap::new();
    for (round, victim) in ["farm", "helper", "command", "farm", "helper"].into_iter().enumerate() {
        let arguments = ["jobs", "--workers", "3", "--journal", "j", "--retry-failed"];
        let mut farm = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let more = recorded.len() + 5;
        until("records", || (place.path("j").exists() && place.records("j").len() >= more) || farm.try_wait().unwrap().is_some());
        match victim {
            // It may all be done by then.
            "farm" => _ = farm.kill(),
            "helper" => helper_of(&farm).into_iter().for_each(|pid| kill("-KILL", pid)),
            // A running one, which is then a failure that is tried again.
            _ => processes_with("0.0913")
                .first()
                .into_iter()
                .for_each(|pid| _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status()),
        }
        if victim == "command" {
            until("it ends", || farm.try_wait().unwrap().is_some() || place.records("j").len() >= more + 5);
            let _ = farm.kill();
        }
        farm.wait().unwrap();
        if round == 0 {
            // The journal is cut within a line.
            let log = place.path("j/rank-0.log");
            let text = fs::read(&log).unwrap();
            fs::write(&log, &text[..text.len() - 7]).unwrap();
        }
        recorded = place
            .records("j")
            .into_iter()
            .filter(|(_, all)| all.iter().any(|columns| columns[16] == "done"))
            .map(|(seq, _)| {
                let ran = fs::read_to_string(place.path("ran")).unwrap();
                (seq, ran.lines().filter(|line| *line == seq.to_string()).count())
            })
            .collect();
    }
    place.expect(0, &["jobs", "--workers", "3", "--journal", "j", "--retry-failed"]);
    let ran = fs::read_to_string(place.path("ran")).unwrap();
    let times = |seq: u64| ran.lines().filter(|line| *line == seq.to_string()).count();
    assert!((1..=60).all(|seq| times(seq) >= 1), "all have run");
    for (seq, before) in recorded {
        assert_eq!(times(seq), before, "task {seq} ran again after its record was on the disk");
    }
}

/// Two jobs on one journal share the list; the second goes on if the first is killed.
#[test]
fn two_jobs_share_a_journal() {
    for is_killed in [false, true] {
        let place = Place::new();
        let list: String = (1..=80).map(|n| format!("sh -c 'sleep 0.05; echo {n} >>ran'\n")).collect();
        place.list(list.as_bytes());
        let start =
            || place.command(&["jobs", "--workers", "2", "--journal", "j"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = start();
        until("records", || place.path("j").exists() && place.records("j").len() >= 4);
        let mut second = start();
        until("records of the second", || {
            place.path("j/rank-0.2.log").exists() && fs::read_to_string(place.path("j/rank-0.2.log")).unwrap().lines().count() > 5
        });
        if is_killed {
            kill("-KILL", first.id());
        }
        let status = first.wait().unwrap();
        assert!(is_killed || status.success());
        let mut told = String::new();
        std::io::Read::read_to_string(&mut second.stderr.take().unwrap(), &mut told).unwrap();
        assert!(second.wait().unwrap().success() && told.contains("80 tasks: 80 done, 0 failed, 0 skipped, 0 left"), "{told}");
        let records = place.records("j");
        assert!(records.len() == 80 && records.values().all(|records| records.len() == 1), "each has one record");
        let ran = fs::read_to_string(place.path("ran")).unwrap();
        // What ran when the job was killed has no record, and runs again.
        assert!(ran.lines().count() <= if is_killed { 80 + 12 } else { 80 }, "{}", ran.lines().count());
    }
}
