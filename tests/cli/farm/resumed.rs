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

/// The first ones of many edited lines are told one by one, and then how many there are.
#[test]
fn all_edited_lines_are_counted() {
    let place = Place::new();
    place.list("true\n".repeat(25).as_bytes()).expect(0, &["jobs", "--journal", "j"]);
    let output = place.list("echo\n".repeat(25).as_bytes()).farm(&["jobs", "--journal", "j", "--resume"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.matches(" is not the command that the journal has").count() == 20, "{errors}");
    assert!(
        errors.matches("(further edited lines are only counted)").count() == 1 && errors.contains("; 25 were edited since their records"),
        "{errors}"
    );
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

/// Logs and costs may come from a pipe, as of a decompressor, or from one with a name; neither can be read twice.
#[test]
fn logs_and_costs_come_from_pipes() {
    let place = Place::new();
    let header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
    let parallels = format!("{header}\n1\t:\t1.000\t     0.100\t0\t0\t0\t0\techo a\n");
    let greasys = "[2024-01-01 00:00:00] INFO: Task 1 located in line 1 completed successfully on node n. Elapsed: 00:00:01\n";
    place.list(b"echo a\necho b\n").expect(0, &["jobs", "--journal", "j"]);
    let ours: Vec<String> = fs::read_to_string(place.path("j/rank-0.log")).unwrap().lines().map(String::from).collect();
    let ours = ours.iter().filter(|line| !line.contains("echo b")).map(|line| format!("{line}\n")).collect();
    assert!(Command::new("mkfifo").arg(place.path("named")).status().unwrap().success());
    for log in [parallels, greasys.to_string(), ours] {
        for option in ["--resume-from", "--costs"] {
            // Costs of another program's log are refused, but that is no matter of pipes.
            if option == "--costs" && log == greasys {
                continue;
            }
            let left = if option == "--costs" { "a\nb\n" } else { "b\n" };
            for name in ["/dev/stdin", "named"] {
                let mut farm = place.command(&["jobs", "--keep-order", "--workers", "1", option, name]);
                let mut farm = farm.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
                let mut input = farm.stdin.take().unwrap();
                if name == "named" {
                    // Opened for reading, too, so that this does not wait for the farm, and closed when it has had the time to read it.
                    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(place.path("named")).unwrap();
                    pipe.write_all(log.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_secs(1));
                } else {
                    input.write_all(log.as_bytes()).unwrap();
                }
                drop(input);
                until("it ends", || farm.try_wait().unwrap().is_some());
                let output = farm.wait_with_output().unwrap();
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && output.stdout == left.as_bytes(), "{option} {name} {log}: {output:?} {errors}");
            }
        }
    }
}

/// A list that GNU parallel was interrupted with: its log (of version 20221122) numbers blank lines and comments, and quotes in its own way.
#[test]
fn a_list_moves_over_from_gnu_parallel() {
    let place = Place::new();
    let header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
    let ended = |number: u64, text: &str| format!("{number}\t:\t1795998312.521\t     0.001\t0\t2\t0\t0\t{text}\n");
    fs::write(place.path("log"), [header, &ended(1, "# first"), &ended(3, ""), &ended(2, "echo a"), &ended(6, "echo c")].concat()).unwrap();
    place.list(b"# first\necho a\n\necho b\n\necho c\n");
    for more in [&[][..], &["--shell"], &["--format", "parallel"]] {
        let output = place.farm(&[&["jobs", "--resume-from", "log"], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout == b"b\n" && errors.contains("3 done") && !errors.contains("is not the command"), "{more:?}: {errors}");
    }
    // The log that goes on has parallel's numbers, too.
    assert_eq!(place.expect(0, &["jobs", "--shell", "--joblog", "log", "--resume"]), "b\n");
    let text = fs::read_to_string(place.path("log")).unwrap();
    assert!(text.lines().last().unwrap().starts_with("4\t") && text.ends_with("\techo b\n"), "{text}");
    assert_eq!(place.expect(0, &["jobs", "--shell", "--joblog", "log", "--resume"]), "");
    fs::write(place.path("args"), "d'e\n\nx y\n$HOME\nnew\n").unwrap();
    let log = [header, &ended(1, r#"echo 'd'"'"'e'"#), &ended(2, "echo ''"), &ended(3, "echo 'x y'"), &ended(4, "echo '$HOME'")].concat();
    fs::write(place.path("log"), log).unwrap();
    for more in [&[][..], &["--shell"]] {
        assert_eq!(place.expect(0, &[&["--args", "args", "--resume-from", "log"], more, &["--", "echo", "{}"]].concat()), "new\n");
    }
}

/// The same with GNU parallel itself, where it is installed, there and back.
#[test]
fn gnu_parallel_and_a_farm_go_on_where_the_other_stopped() {
    let place = Place::new();
    place.list(b"# first\necho 1 >>ran\n\ntest -e ok && echo 2 >>ran\n  echo \"3\"  >>ran\n# last\n");
    let parallel = || {
        let mut parallel = Command::new("parallel");
        parallel.args(["--will-cite", "--joblog", "log", "--resume-failed", "-a", "jobs"]).current_dir(place.0.path());
        parallel.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
    };
    // Another program has the same name.
    let version = Command::new("parallel").arg("--version").stdin(Stdio::null()).output();
    if !version.is_ok_and(|said| said.stdout.starts_with(b"GNU parallel")) {
        eprintln!("GNU parallel is not here: NOT TESTED with it");
        return;
    }
    assert_eq!(parallel().code(), Some(1), "a command has failed");
    fs::write(place.path("ok"), "").unwrap();
    place.expect(0, &["jobs", "--shell", "--joblog", "log", "--retry-failed"]);
    assert!(parallel().success());
    let mut ran: Vec<String> = fs::read_to_string(place.path("ran")).unwrap().lines().map(String::from).collect();
    ran.sort();
    assert_eq!(ran, ["1", "2", "3"]);
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
