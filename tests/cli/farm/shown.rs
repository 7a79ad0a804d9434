//! Output and refusals of a farm: results, events, status, lists of others, wrong usage.

use super::*;

#[test]
fn results_and_events() {
    let place = Place::new();
    let arguments =
        ["--array", "1-4", "--output", "json", "--results", "r/{#}", "--", "sh", "-c", "echo {}; echo e{} >&2; exit $(({} % 2))"];
    let output = place.farm(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let events: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = events.last().unwrap();
    let count = |key: &str| end[key].as_u64().unwrap();
    assert_eq!(
        (end["event"].as_str(), count("tasks"), count("done"), count("failed"), count("skipped"), count("left")),
        (Some("end"), 4, 2, 2, 0, 0)
    );
    assert!(end["busy"].as_array().unwrap().len() == 1 && end["bound"].as_f64() > Some(0.0) && end["seconds"].as_f64() > Some(0.0));
    assert_eq!(events.iter().filter(|event| event["event"] == "task").count(), 4);
    assert_eq!(
        (fs::read_to_string(place.path("r/3.out")).unwrap(), fs::read_to_string(place.path("r/3.err")).unwrap()),
        ("3\n".into(), "e3\n".into())
    );
    assert_eq!(place.expect(0, &["--array", "1-4", "--results", "all", "--", "echo", "{}"]), "");
    assert_eq!(fs::read_to_string(place.path("all/rank-0.out")).unwrap().lines().count(), 4);
}

/// The page has the last lines of failures wherever their outputs go, and however long they are.
#[test]
fn the_report_has_the_last_lines_of_failures() {
    let place = Place::new();
    let list = "echo short >&2; exit 3\nseq 100000 >&2; exit 3\nyes no | head -c 3000 >&2; echo '<end>' >&2; kill -9 $$\necho fine >&2\n";
    place.list(list.as_bytes());
    for more in [&[][..], &["--results", "r"], &["--results", "s/{#}"], &["--output", "json"], &["--output", "quiet"], &["--journal", "j"]]
    {
        place.expect(1, &[&["jobs", "--shell", "--report", "report"], more].concat());
        let page = fs::read_to_string(place.path("report/report.html")).unwrap();
        for part in [
            "<h3>2 tasks: ended with status 3</h3>",
            "exit 3</code><pre>short</pre>",
            "<pre>99991\n99992\n99993\n99994\n99995\n99996\n99997\n99998\n99999\n100000</pre>",
            "\nno\n&lt;end&gt;</pre>",
        ] {
            assert!(page.contains(part), "{more:?}: {part}: {page}");
        }
        assert!(!page.contains("<pre>fine"), "{more:?}: it has not failed");
    }
    assert_eq!(fs::read_to_string(place.path("s/1.err")).unwrap(), "short\n");
}

/// A command of a host that fails says why, however much it has said.
#[test]
fn a_command_of_a_host_that_fails_says_why() {
    let place = Place::new();
    let output = place.farm(&["--array", "1-1", "--setup", "seq 100000 >&2; echo no licence >&2; exit 4", "--", "true"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("ended with status 4: ") && errors.contains("\nno licence\n"), "{errors}");
    assert!(errors.len() < 4000, "its end only");
}

#[test]
fn slots_are_never_exceeded() {
    let place = Place::new();
    // Each notes the devices it has, and how many hold one at the same time.
    let script = "for d in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do mkdir lock$d || exit 1; done; sleep 0.03; \
                  for d in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do rmdir lock$d; done";
    let list: String = (0..12).map(|n| format!("sh -c \"$SCRIPT\" #EQ gpus={}\n", 1 + n % 2)).collect();
    place.list(list.replace("\"$SCRIPT\"", &format!("'{script}'").replace("' '", "\" \"")).as_bytes());
    place.expect(0, &["jobs", "--slots", "cpus=4,gpus=3"]);
    place.list(b"true #EQ gpus=4\n");
    let said = place.farm(&["jobs", "--slots", "cpus=4,gpus=3"]);
    assert!(
        said.status.code() == Some(2)
            && String::from_utf8_lossy(&said.stderr).contains("line 1: it needs gpus=4, and a rank has 3 (--slots)")
    );
}

/// A task that no rank can run is refused, wherever the list comes from, and others end.
#[test]
fn needs_that_no_rank_can_meet_are_refused() {
    let place = Place::new();
    place.list(b"true #EQ gpus=1\n");
    let said = place.farm(&["jobs"]);
    assert_eq!(said.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&said.stderr),
        "equipoise: jobs, line 1: it needs gpus=1; say --slots gpus=N, how many a rank has\n"
    );
    for (needs, slots) in [("cpus=9", "cpus=2"), ("gpus=1", "cpus=2"), ("mem=2G", "mem=1G")] {
        let mut piped = place.command(&["-", "--slots", slots, "--grace", "0"]);
        let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let list = format!("sh -c 'sleep 0.3; echo ran'\ntrue #EQ {needs}\n");
        std::io::Write::write_all(&mut piped.stdin.take().unwrap(), list.as_bytes()).unwrap();
        let output = piped.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains("-, line 2: it needs "), "{errors}");
    }
}

/// Nothing is ignored silently: memory that nobody counts is refused, processors are only remarked on, once.
#[test]
fn needs_without_slots_are_told() {
    let place = Place::new();
    for slots in [&[][..], &["--slots", "cpus=2"]] {
        let said = place.list(b"true\ntrue #EQ mem=999T\n").farm(&[&["jobs", "--journal", "j"][..], slots].concat());
        assert_eq!(
            (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned()),
            (Some(2), format!("equipoise: jobs, line 2: it needs mem={}; say --slots mem=BYTES, how much a rank has\n", 999u64 << 40))
        );
    }
    let said = place.list(b"true #EQ cpus=2\ntrue #EQ cpus=3\n").farm(&["jobs"]);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success() && errors.matches("jobs, line 1: cpus= counts only with --slots cpus=N").count() == 1, "{errors}");
    assert_eq!(errors.matches("cpus=").count(), 2, "{errors}");
}

/// Files that no command could read or write are refused before the job joins its journal.
#[test]
fn inputs_and_results_are_checked_before() {
    let place = Place::new();
    place.list(b"true\n");
    for wrong in [["--results", "/proc/x"], ["--results", "/proc/{#}"], ["--results", "jobs/{#}"], ["--stdin", "nosuch"], ["--stdin", "/"]]
    {
        let said = place.farm(&[&["jobs", "--journal", "j"][..], &wrong].concat());
        let errors = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(2) && errors.starts_with(&format!("equipoise: {} ", wrong[0])), "{wrong:?}: {errors}");
        assert!(errors.lines().count() == 1 && errors.contains(": it cannot be ") && !place.path("j").exists(), "{errors}");
    }
}

/// Devices are those that the farm itself may see.
#[test]
fn devices_are_those_of_the_environment() {
    let place = Place::new();
    place.list(b"sh -c 'echo $CUDA_VISIBLE_DEVICES' #EQ gpus=1\nsh -c 'echo $CUDA_VISIBLE_DEVICES' #EQ gpus=2\n");
    let with = |list: &str, slots: &str| {
        place.command(&["jobs", "--slots", slots, "--keep-order", "--journal", "j"]).env("CUDA_VISIBLE_DEVICES", list).output().unwrap()
    };
    let refused = with("1", "gpus=2");
    let why = "equipoise: --slots: a rank should have 2 devices, and CUDA_VISIBLE_DEVICES=1 names 1\n";
    assert_eq!((refused.status.code(), String::from_utf8_lossy(&refused.stderr).as_ref()), (Some(2), why));
    assert!(!place.path("j").exists(), "no job has begun");
    let output = String::from_utf8(with("5,7", "gpus=2").stdout).unwrap();
    assert!(["5\n5,7\n", "7\n5,7\n"].contains(&output.as_str()), "{output}");
}

#[test]
fn huge_numbers_are_refused() {
    let place = Place::new();
    place.list(b"#DISBATCH REPEAT 18446744073709551615 true\n");
    for (arguments, says) in [
        (&["jobs", "--format", "disbatch"][..], "jobs, line 1: #DISBATCH REPEAT: at most 1000000000 times"),
        (&["jobs", "--slots", "gpus=4294967295"], "--slots gpus=4294967295: it must be such as"),
        (&["--array", "0-18446744073709551615", "--", "x"], "--array 0-18446744073709551615: it must be a range"),
    ] {
        let output = place.farm(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(says), "{errors}");
    }
    place.list(b"echo $DISBATCH_REPEAT_INDEX\n#DISBATCH REPEAT 2 start 18446744073709551614 echo $DISBATCH_REPEAT_INDEX\n");
    let said = place.expect(0, &["jobs", "--format", "disbatch", "--keep-order"]);
    assert_eq!(said, "\n18446744073709551614\n18446744073709551615\n");
}

/// Estimates from a log whose runtimes are no numbers.
#[test]
fn runtimes_that_are_no_numbers_are_no_estimates() {
    let place = Place::new();
    let header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
    fs::write(place.path("log"), format!("{header}1\th\t1.0\tnan\t0\t0\t0\t0\techo a\n2\th\t1.0\tinf\t0\t0\t0\t0\techo b\n")).unwrap();
    place.list(b"echo a\necho b\n");
    for scheduler in ["dss", "sash", "selfsched"] {
        let arguments = ["jobs", "--costs", "log", "--walltime", "60", "--scheduler", scheduler, "--keep-order", "--workers", "1"];
        assert_eq!(place.expect(0, &arguments), "a\nb\n", "{scheduler}");
    }
}

#[test]
fn hosts_have_commands_of_their_own() {
    let place = Place::new();
    let release = "echo released $FARM_RELEASED of $FARM_HOST active $FARM_ACTIVE. >>hooks";
    place.expect(
        0,
        &[
            "--array",
            "1-3",
            "--setup",
            "echo setup >>hooks",
            "--teardown",
            "echo teardown >>hooks",
            "--release",
            release,
            "--",
            "sh",
            "-c",
            "echo task >>hooks",
        ],
    );
    let hooks = fs::read_to_string(place.path("hooks")).unwrap();
    let lines: Vec<&str> = hooks.lines().collect();
    assert!(
        lines[0] == "setup"
            && lines[1..4] == ["task"; 3]
            && lines[4] == "teardown"
            && lines[5].starts_with("released ")
            && lines[5].ends_with("active ."),
        "{hooks}"
    );
}

#[test]
fn lists_of_others_are_read() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.list(b"# list\necho a > f\n[# -1 #] cat f\n[@ sub @] basename $PWD\n");
    assert_eq!(place.expect(0, &["jobs", "--format", "greasy", "--keep-order"]), "a\nsub\n");
    place.list(b"#DISBATCH PREFIX echo x; \n#DISBATCH REPEAT 2 start 5 echo $DISBATCH_REPEAT_INDEX\n#DISBATCH BARRIER\necho last\n");
    assert_eq!(place.expect(0, &["jobs", "--format", "disbatch", "--keep-order"]), "x\n5\nx\n6\nx\nlast\n");
    assert_eq!(place.list(b"echo a | tr a b\n").expect(0, &["jobs", "--format", "parallel"]), "b\n");
}

#[test]
fn a_list_that_grows_is_followed() {
    let place = Place::new();
    place.list(b"touch one\n");
    let mut farm = place.command(&["jobs", "--follow"]).stderr(Stdio::null()).spawn().unwrap();
    until("the first", || place.path("one").exists());
    fs::OpenOptions::new()
        .append(true)
        .open(place.path("jobs"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"touch two\n"))
        .unwrap();
    until("the second", || place.path("two").exists());
    kill("-TERM", farm.id());
    assert_eq!(farm.wait().unwrap().code(), Some(0), "nothing is left");
}

#[test]
fn status_reads_the_journal_alone() {
    let place = Place::new();
    place.expect(0, &["--array", "1-3", "--journal", "j", "--", "true"]);
    let said = place.expect(0, &["status", "j"]);
    assert!(said.contains("3 done, 0 failed, 0 skipped; ") && said.ends_with("; all 3 tasks of the list have ended\n"), "{said}");
    // A job that was told to end.
    place.list(b"true\nsleep 1234.25\ntrue\ntrue\n");
    let mut farm = place.command(&["jobs", "--workers", "1", "--grace", "0", "--journal", "k"]).stderr(Stdio::null()).spawn().unwrap();
    until("a record", || place.path("k").exists() && place.records("k").len() == 1);
    kill("-TERM", farm.id());
    assert_eq!(farm.wait().unwrap().code(), Some(4));
    let said = place.expect(0, &["status", "k"]);
    assert!(said.contains("1 done, 0 failed, 0 skipped; ") && said.contains("; 3 of 4 tasks left"), "{said}");
    place.expect(2, &["status", "nowhere"]);
}

#[test]
fn wrong_usage_is_said_once() {
    let place = Place::new();
    place.list(b"echo 'open\n");
    let known = equipoise::schedule::independent::ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let unknown = format!("equipoise: --scheduler 'lpt2' is unknown; known are {known}\n");
    for (arguments, says) in [
        (&["jobs"][..], "equipoise: jobs, line 1: a quote is not closed\n"),
        (&["nosuch"], "equipoise: farm nosuch: the list cannot be read: No such file or directory (os error 2)\n"),
        (&["/"], "equipoise: farm /: it is a folder, not a list of commands\n"),
        (&[], "equipoise: farm: which commands? Say FILE or - for a list, or --args FILE -- PROG, or --array A-B -- PROG\n"),
        (&["jobs", "--", "x"], "equipoise: farm: -- PROG needs --args FILE or --array A-B; a list has whole commands\n"),
        (&["jobs", "--resume"], "equipoise: --resume: what is finished is in the journal; say --journal DIR too\n"),
        (&["jobs", "--format", "make"], "equipoise: --format make: unknown; known are plain, greasy, disbatch, parallel\n"),
        (&["jobs", "--halt", "now"], "equipoise: --halt now: it must be now,fail=N or soon,fail=N, with a whole number N above 0\n"),
        (
            &["jobs", "--timeout", "-1"],
            "equipoise: --timeout -1: it must be a number of seconds, 0 or more, such as 0.5, 500ms or 1:30:00\n",
        ),
        (&["jobs", "--scheduler", "lpt2"], &unknown),
        (
            &["-", "--follow"],
            "equipoise: --follow: standard input and pipes are read until their writers close them in any case; it waits for further lines of a file\n",
        ),
        (
            &["/dev/null", "--follow"],
            "equipoise: --follow: standard input and pipes are read until their writers close them in any case; it waits for further lines of a file\n",
        ),
        (
            &["--array", "1-3", "--follow", "--", "x"],
            "equipoise: --follow: the numbers of --array are all known; it waits for further lines of a file\n",
        ),
        (&["--empty", "3", "--follow"], "equipoise: --follow: the tasks of --empty are all known; it waits for further lines of a file\n"),
        (
            &["--sleep", "fixed:time=1ms,tasks=3", "--follow"],
            "equipoise: --follow: the tasks of --sleep are all known; it waits for further lines of a file\n",
        ),
        (&["jobs", "--journal", "/proc/no"], "equipoise: jobs, line 1: a quote is not closed\n"),
        (
            &["--array", "3-1", "--", "x"],
            "equipoise: --array 3-1: it must be a range of whole numbers with a step if need be, such as 1-100 or 1-10000:2\n",
        ),
    ] {
        let output = place.farm(arguments);
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(2), says), "{arguments:?}");
    }
}

#[test]
fn a_list_without_commands_is_done() {
    let place = Place::new();
    assert_eq!(place.list(b"# nothing\n").expect(0, &["jobs"]), "");
    place.expect(0, &["--empty", "0"]);
    place.expect(0, &["--empty", "5000", "--journal", "j"]);
    let records = place.records("j");
    assert!(records.len() == 5000 && records.values().all(|records| records.len() == 1));
}
