//! Farms that are asked to end: what is left, what has failed, and whether they end at all.

use super::*;

/// Columns 15 (attempt) and 16 (state) of all records of a journal, by Seq.
fn attempts(place: &Place, journal: &str) -> Vec<(u64, String, String)> {
    let text = fs::read_to_string(place.path(&format!("{journal}/rank-0.log"))).unwrap();
    let records = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    records.map(|columns| (columns[0].parse().unwrap(), columns[15].into(), columns[16].into())).collect()
}

/// A batch system may send its signal to all processes, in any order: what dies of it is left.
#[test]
fn a_signal_that_also_reaches_the_tasks_leaves_them() {
    for order in [&["task", "helper", "farm"][..], &["farm", "task", "helper"], &["helper", "farm", "task"], &["task", "farm"]] {
        let place = Place::new();
        // The second catches the signal, and ends with a status of its own.
        place.list(b"sleep 1236.5\nsh -c 'trap \"exit 7\" TERM; touch begun; sleep 1237.5 & wait'\n");
        let arguments = ["jobs", "--workers", "2", "--grace", "20", "--journal", "j"];
        let mut farm = place.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let tasks = || [processes_with("1236.5"), processes_with(place.path("begun").to_str().unwrap())].concat();
        until("they begin", || place.path("begun").exists() && !processes_with("1236.5").is_empty());
        let (sleeping, helper) = (tasks(), helper_of(&farm).unwrap());
        let children = fs::read_to_string(format!("/proc/{helper}/task/{helper}/children")).unwrap();
        let all: Vec<u32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert!(all.len() == 2 && sleeping.iter().any(|pid| all.contains(pid)), "{all:?} {sleeping:?}");
        let pids = order.iter().map(|whom| match *whom {
            "task" => all.clone(),
            "helper" => vec![helper],
            _ => vec![farm.id()],
        });
        // One call sends them all, as a batch system does.
        let words = pids.flatten().map(|pid| pid.to_string());
        assert!(Command::new("kill").arg("-TERM").args(words).status().unwrap().success());
        assert_eq!(farm.wait().unwrap().code(), Some(4), "{order:?}");
        // Without the helper's own signal a status of one's own is a failure.
        let failed = if order.contains(&"helper") { vec![] } else { vec![2] };
        assert_eq!(place.records("j").into_keys().collect::<Vec<_>>(), failed, "{order:?}");
        let shown = place.expect(0, &["jobs", "--journal", "j", "--resume", "--dry-run"]);
        assert_eq!(shown.lines().count(), 2 - failed.len(), "{order:?}: {shown}");
    }
}

#[test]
fn a_task_that_is_killed_alone_has_failed() {
    let place = Place::new();
    place.list(b"sh -c 'kill -TERM $$'\ntrue\n").expect(1, &["jobs", "--journal", "j"]);
    let records = place.records("j");
    assert_eq!((records[&1][0][7].as_str(), records[&1][0][16].as_str(), records[&2][0][16].as_str()), ("15", "failed", "done"));
    place.expect(0, &["--array", "1-1", "--retries", "1", "--journal", "k", "--", "sh", "-c", "test $FARM_ATTEMPT = 2 || kill -TERM $$"]);
    assert_eq!(attempts(&place, "k"), [(1, "1".into(), "again".into()), (1, "2".into(), "done".into())]);
}

/// A task that fails while the job ends is tried again by the next job, if it may be.
#[test]
fn what_may_be_tried_again_is_left_when_the_job_ends() {
    let place = Place::new();
    place.list(b"sh -c 'touch begun; while test ! -e stop; do sleep 0.02; done; test $FARM_ATTEMPT = 2'\n");
    let arguments = ["jobs", "--retries", "1", "--grace", "20", "--journal", "j"];
    let mut farm = place.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
    until("it begins", || place.path("begun").exists());
    kill("-TERM", farm.id());
    std::thread::sleep(Duration::from_millis(300));
    fs::write(place.path("stop"), "").unwrap();
    assert_eq!(farm.wait().unwrap().code(), Some(4));
    assert_eq!(attempts(&place, "j"), [(1, "1".into(), "again".into())]);
    place.expect(0, &["jobs", "--journal", "j", "--resume"]);
    assert_eq!(place.records("j")[&1][0][15], "2");
}

/// Processes that a task leaves behind write into no other task's output.
#[test]
fn late_outputs_are_nobodys() {
    let place = Place::new();
    // The task ends when that has moved out of its group.
    let list = "setsid sh -c 'touch moved; sleep 0.3; echo LATE; echo LATE >&2; touch late' & \
                while test ! -e moved; do sleep 0.02; done; echo one\necho two\nwhile test ! -e late; do sleep 0.02; done; \
                echo three >&2\nsleep 0.1; echo four\n";
    place.list(list.as_bytes()).expect(0, &["jobs", "--shell", "--workers", "1", "--results", "r/{#}"]);
    let texts = |end: &str| (1..=4).map(|n| fs::read_to_string(place.path(&format!("r/{n}.{end}"))).unwrap()).collect::<Vec<_>>();
    assert_eq!(
        (texts("out"), texts("err")),
        (["one\n", "two\n", "", "four\n"].map(String::from).to_vec(), ["", "", "three\n", ""].map(String::from).to_vec())
    );
    // A long output ends where it was when its task ended.
    let long = "head -c 100000 /dev/zero | tr '\\0' x; setsid sh -c 'touch gone; while test ! -e stop; do echo LATE; done' & \
                while test ! -e gone; do sleep 0.02; done\nsleep 0.1; touch stop\n";
    let out = place.list(long.as_bytes()).expect(0, &["jobs", "--shell", "--workers", "1", "--keep-order"]);
    assert!(out.len() < 1_000_000 && out.starts_with(&"x".repeat(100_000)), "{}", out.len());
}

/// A signal that is ignored when the farm begins, as under nohup, stays ignored: by the farm, its helper and its commands.
#[test]
fn ignored_signals_stay_ignored() {
    let place = Place::new();
    place.list(b"sh -c 'touch begun; while test ! -e stop; do sleep 0.02; done; kill -HUP $$; echo survived'\n");
    let program = env!("CARGO_BIN_EXE_equipoise");
    let script = format!("trap '' HUP; exec {program} farm jobs --journal j");
    let mut shell = Command::new("sh");
    let mut farm = shell.args(["-c", &script]).current_dir(place.0.path()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    until("it begins", || place.path("begun").exists());
    kill("-HUP", farm.id());
    kill("-HUP", helper_of(&farm).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    assert!(farm.try_wait().unwrap().is_none());
    fs::write(place.path("stop"), "").unwrap();
    let output = farm.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"survived\n"[..]));
}

/// A mistake far down in a pipe is said at the end; commands that run by then end by themselves.
#[test]
fn a_wrong_line_late_in_a_pipe_stops_no_command() {
    let place = Place::new();
    let mut farm = place.command(&["-", "--grace", "0", "--journal", "j"]);
    let mut farm = farm.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut list = farm.stdin.take().unwrap();
    std::io::Write::write_all(&mut list, b"sh -c 'touch begun; sleep 0.5; echo ended'\n").unwrap();
    until("it begins", || place.path("begun").exists());
    std::io::Write::write_all(&mut list, b"echo 'open\n").unwrap();
    drop(list);
    let output = farm.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && errors.ends_with("equipoise: -, line 2: a quote is not closed\n"), "{errors}");
    assert_eq!((output.stdout.as_slice(), place.records("j")[&1][0][16].as_str()), (&b"ended\n"[..], "done"));
}
