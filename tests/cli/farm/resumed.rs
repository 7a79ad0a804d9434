//! Farms that go on where others stopped: by journals, job logs, and logs of others.

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
