//! Programs of `divide --command` and `--reduce` that do not end by themselves: they are ended, with `--timeout` and with the process that
//! started them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// A folder with an input in it.
struct Place(TempDir);

impl Place {
    fn new(bytes: usize) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.file("input"), b"a line of the input\n".repeat(bytes / 20)).unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn divide(&self, arguments: &[&str]) -> Command {
        // Tests that run in the background inherit that SIGINT is ignored, and programs keep to that.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(cargo_bin("equipoise"));
        command.args(["divide", "--sim", "2", "--input"]).arg(self.file("input")).args(arguments);
        command
    }
}

/// Waits for a file, and takes the process's number from it.
pub fn number_in(file: &Path) -> Pid {
    let waiting = Instant::now();
    loop {
        let number = std::fs::read_to_string(file).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            return pid;
        }
        assert!(waiting.elapsed() < Duration::from_secs(20), "no program has written into {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if it is gone soon: whose parent has died is buried by somebody else.
fn is_gone(process: Pid) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        // One that nobody buries is as gone as it can be.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
        test_kill_process(process).is_err() || state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    })
}

#[test]
fn a_program_that_stands_still_is_ended_by_the_timeout() {
    let place = Place::new(1000);
    let (child, to) = (place.file("child"), place.file("to"));
    let hangs = |then: &str| format!("sleep 1000 & echo $! >'{}'; {then}", child.display());
    for (arguments, said) in [
        (&["--command", &hangs("wait")][..], " of the input (node 0): for 0.3 s (--timeout) it took no input"),
        (&["--command", "echo 1", "--reduce", &hangs("wait"), "--to", to.to_str().unwrap()], "no progress: --reduce 'sleep 1000 &"),
    ] {
        let output = place.divide(&[arguments, &["--timeout", "0.3"]].concat()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(3) && output.stdout.is_empty(), "{arguments:?}: {told}");
        assert!(told.starts_with("equipoise: no progress: ") && told.contains(said), "{arguments:?}: {told}");
        assert!(told.trim_end().ends_with("so it was killed; there is no answer") && told.lines().count() == 1, "{arguments:?}: {told}");
        assert!(is_gone(number_in(&child)), "{arguments:?}");
        assert!(!to.exists());
    }
}

#[test]
fn a_program_ends_with_the_process_that_started_it() {
    let place = Place::new(1000);
    for (name, signal) in [("term", Signal::TERM), ("int", Signal::INT), ("kill", Signal::KILL)] {
        let child = place.file(name);
        let command = format!("sleep 1000 & echo $! >'{}'; wait", child.display());
        let mut divide = place.divide(&["--command", &command]).stderr(Stdio::null()).spawn().unwrap();
        let child = number_in(&child);
        assert!(test_kill_process(child).is_ok());
        kill_process(Pid::from_child(&divide), signal).unwrap();
        assert!(!divide.wait().unwrap().success());
        assert!(is_gone(child), "after {name}");
    }
}
