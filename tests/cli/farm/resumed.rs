//! Farms that go on where others stopped: by journals, job logs, and logs of others.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn jobs_are_resumed() {
    let place = Place::new();
    place.list(b"sh -c 'echo 1 >>ran'\nsh -c 'echo 2 >>ran; test -e ok'\nsh -c 'echo 3 >>ran'\n");
    place.expect(1, &["jobs", "--journal", "j"]);
    assert!(place.expect(2, &["jobs", "--journal", "j"]).is_empty(), "nobody goes on unasked");
    // The third record is cut within its line.
    let log = place.path("j/rank-0.log");
    let text = fs::read_to_string(&log).unwrap();
    let cut: String = text.lines().filter(|line| !line.starts_with("3\t")).map(|line| format!("{line}\n")).collect();
    let third = text.lines().find(|line| line.starts_with("3\t")).unwrap();
    fs::write(&log, cut + &third[..third.len() / 2]).unwrap();
    place.expect(1, &["jobs", "--journal", "j", "--resume"]);
    fs::write(place.path("ok"), "").unwrap();
    place.expect(0, &["jobs", "--journal", "j", "--retry-failed"]);
    let mut ran: Vec<String> = fs::read_to_string(place.path("ran")).unwrap().lines().map(String::from).collect();
    ran.sort();
    assert_eq!(ran, ["1", "2", "2", "3", "3"]);
    // An edited line is told, and runs.
    place.list(b"sh -c 'echo 1 >>ran'\necho new\nsh -c 'echo 3 >>ran'\n");
    let output = place.farm(&["jobs", "--journal", "j", "--resume"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"new\n"[..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2 (task 2) is not the command that the journal has"));
}

/// A list that has become shorter is told: its missing tasks are neither run nor counted.
#[test]
fn a_list_that_has_become_shorter_is_told() {
    let place = Place::new();
    place.list(b"true\nfalse\ntrue\n").expect(1, &["jobs", "--journal", "j"]);
    let said = "the list ends with task 1, and 2 tasks behind it, up to task 3, have records of earlier jobs: they do not count\n";
    place.list(b"true\n");
    let resume = ["--journal", "j", "--resume"];
    let mut piped = place.command(&[&["-"][..], &resume].concat());
    for output in
        [place.farm(&[&["jobs"][..], &resume].concat()), piped.stdin(fs::File::open(place.path("jobs")).unwrap()).output().unwrap()]
    {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && errors.matches(said).count() == 1 && errors.contains("1 tasks: 1 done"), "{errors}");
    }
    place.list(b"true\nfalse\ntrue\ntrue\n");
    let output = place.farm(&[&["jobs"][..], &resume].concat());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("the list ends"));
}

#[test]
fn other_logs_are_gone_on_with_and_written() {
    let place = Place::new();
    place.list(b"echo a\necho b\tc\nfalse\n");
    place.expect(1, &["jobs", "--joblog", "log"]);
    let text = fs::read_to_string(place.path("log")).unwrap();
    let header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
    assert!(text.starts_with(&format!("{header}\n")) && text.lines().count() == 4 && text.contains("\techo b\tc\n"), "{text}");
    fs::write(place.path("theirs"), format!("{header}\n1\t:\t1.000\t     0.100\t0\t0\t0\t0\techo a\n")).unwrap();
    assert_eq!(place.expect(1, &["jobs", "--resume-from", "theirs"]), "b c\n");
    assert_eq!(place.expect(1, &["jobs", "--joblog", "log", "--resume"]), "", "its status counts earlier failures");
}

/// A command that was skipped is not finished for a job log: it runs once what it waits for succeeds.
#[test]
fn what_was_skipped_runs_when_failures_are_tried_again() {
    for more in [&[][..], &["--journal", "j"]] {
        let place = Place::new();
        let arguments = |mode: &'static str| [&["jobs", "--joblog", "log"], more, &[mode]].concat();
        place.list(b"test -e ok\necho RAN #EQ after=1\n");
        assert_eq!(place.expect(1, &arguments("--keep-order")), "");
        assert_eq!(place.expect(1, &arguments("--resume")), "");
        fs::write(place.path("ok"), "").unwrap();
        assert_eq!(place.expect(0, &arguments("--retry-failed")), "RAN\n", "{more:?}");
        assert_eq!(place.expect(0, &arguments("--retry-failed")), "", "{more:?}");
    }
}

#[test]
fn a_job_log_that_was_cut_is_gone_on_with() {
    let place = Place::new();
    place.list(b"echo 1\necho 2\necho 3\n").expect(0, &["jobs", "--joblog", "log", "--workers", "1"]);
    let text = fs::read_to_string(place.path("log")).unwrap();
    fs::write(place.path("log"), &text[..text.len() - 3]).unwrap();
    let goes_on = ["jobs", "--joblog", "log", "--resume"];
    assert_eq!(place.expect(0, &goes_on), "3\n");
    assert_eq!(place.expect(0, &goes_on), "", "its record is whole");
}

#[test]
fn commands_of_several_lines_are_finished_in_a_job_log_and_a_journal() {
    for more in [&[][..], &["--journal", "j"]] {
        let place = Place::new();
        let arguments = |mode| [&["--array", "1-2", "--joblog", "log"], more, &[mode, "--", "sh", "-c", "echo a\necho {}"]].concat();
        let said = place.expect(0, &arguments("--keep-order"));
        assert_eq!(said, "a\n1\na\n2\n");
        assert_eq!(fs::read(place.path("log")).unwrap().split(|byte| *byte == b'\n').count(), 4, "a line for each");
        assert_eq!(place.expect(0, &arguments("--resume")), "", "{more:?}");
    }
}

/// A second job on a journal appends to the job log of the first.
#[test]
fn two_jobs_share_a_job_log() {
    let place = Place::new();
    let list: String = (1..=60).map(|n| format!("sh -c 'sleep 0.05; echo {n} >>ran'\n")).collect();
    place.list(list.as_bytes());
    let start = || place.command(&["jobs", "--workers", "2", "--journal", "j", "--joblog", "log"]).stderr(Stdio::null()).spawn().unwrap();
    let mut first = start();
    until("records", || place.path("log").exists() && fs::read_to_string(place.path("log")).unwrap().lines().count() > 5);
    let mut second = start();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    let log = fs::read_to_string(place.path("log")).unwrap();
    let mut numbers: Vec<u64> = log.lines().skip(1).map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
}

#[test]
fn logs_of_greasy_and_disbatch_are_gone_on_with() {
    let place = Place::new();
    fs::write(
        place.path("log"),
        "[2024-01-01 00:00:00] INFO: Task 3 located in line 5 completed successfully on node n. Elapsed: 00:00:01\n",
    )
    .unwrap();
    place.list(b"# list\necho A\necho B\n\necho C\necho D\n");
    assert_eq!(place.expect(0, &["jobs", "--format", "greasy", "--resume-from", "log", "--keep-order"]), "A\nB\nD\n");
    let ended = |id: u64, line: u64, text: &str| format!("    \t{id}\t{line}\t-1\tn\t1\t0\t1.0\t1.0\t2.0\t0\t''\t0\t''\t{text}\n");
    fs::write(place.path("log"), ended(0, 1, "echo A") + &ended(2, 3, "echo B")).unwrap();
    place.list(b"echo A\n#DISBATCH BARRIER\necho B\necho C\n");
    assert_eq!(place.expect(0, &["jobs", "--format", "disbatch", "--resume-from", "log", "--keep-order"]), "C\n");
}

/// The most memory in KiB that a job needs which is resumed when this number of tasks have records.
fn memory_of_a_resumed_job(tasks: u64) -> u64 {
    let place = Place::new();
    fs::create_dir(place.path("j")).unwrap();
    let columns = "CpuTime\tMaxMemory\tOutBytes\tOutLines\tErrBytes\tErrLines\tAttempt\tState";
    let header = format!("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\t{columns}\n");
    let record = |seq| format!("{seq}\th\t1.000\t     0.010\t0\t0\t0\t0\t./task {seq}\t0.000\t0\t0\t0\t0\t0\t1\tdone\n");
    // The job itself writes the records of rank 0.
    fs::write(place.path("j/rank-1.log"), header + &(1..=tasks).map(record).collect::<String>()).unwrap();
    fs::write(place.path("task"), "#!/bin/sh\ntouch begun\nwhile test ! -e stop; do sleep 0.05; done\n").unwrap();
    fs::set_permissions(place.path("task"), fs::Permissions::from_mode(0o755)).unwrap();
    let array = format!("1-{}", tasks + 1);
    let arguments = ["--array", &array, "--journal", "j", "--resume", "--", "./task"];
    let mut farm = place.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !place.path("begun").exists() {
        assert!(began.elapsed() < Duration::from_secs(300) && farm.try_wait().unwrap().is_none(), "the last task begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", farm.id())).unwrap();
    fs::write(place.path("stop"), "").unwrap();
    let output = farm.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.contains(&format!("{0} tasks: {0} done", tasks + 1)), "{errors}");
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap()
}

/// Rank 0 keeps 48 bytes of a record, its time included; hash maps took four times that.
#[test]
fn a_long_journal_takes_little_memory() {
    let (few, many) = (memory_of_a_resumed_job(1), memory_of_a_resumed_job(240_000));
    assert!(many < few + (20 << 10), "{few} and {many} KiB");
}
