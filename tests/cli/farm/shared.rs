//! Several jobs on one journal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use super::{Place, kill, processes_with, until};

impl Place {
    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The numbers that the tasks of a list have written into `ran`.
    fn ran(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path("ran")).unwrap_or_default();
        let mut ran: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        ran.sort_unstable();
        ran
    }

    fn has_records(&self, records: usize) -> bool {
        self.path("j/rank-0.log").exists() && self.records("j").len() >= records
    }
}

/// The end of a job that writes to standard error.
fn end(job: Child, status: i32) -> String {
    let Output { status: ended, stderr, .. } = job.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(ended.code(), Some(status), "{said}");
    said
}

fn list(tasks: u32, seconds: f64) -> String {
    (1..=tasks).map(|n| format!("sh -c 'sleep {seconds}; echo {n} >>ran'\n")).collect()
}

/// Tasks that a job which ends while another begins has done are not done again.
#[test]
fn records_are_read_after_a_job_has_joined() {
    let place = Place::new();
    place.list(list(4, 0.3).as_bytes());
    assert!(std::process::Command::new("mkfifo").arg(place.path("costs")).status().unwrap().success());
    let first = place.start(&["jobs", "--workers", "1", "--journal", "j"]);
    until("a record", || place.has_records(1));
    // The second one reads its estimates until the first one has ended.
    let second = place.start(&["jobs", "--workers", "1", "--journal", "j", "--costs", "costs"]);
    end(first, 0);
    fs::OpenOptions::new().write(true).open(place.path("costs")).unwrap().write_all(b"1\n2\n3\n4\n").unwrap();
    let said = end(second, 0);
    assert!(said.contains("4 tasks: 4 done"), "{said}");
    assert_eq!(place.ran(), [1, 2, 3, 4]);
}

/// Nobody reads what the job prints, so that it waits; it is alive all the same.
#[test]
fn a_job_that_waits_for_its_reader_shows_that_it_is_alive() {
    let place = Place::new();
    place.list(b"head -c 3000000 /dev/zero\nhead -c 3000000 /dev/zero\n");
    let mut job = place.command(&["jobs", "--journal", "j"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until("a record", || place.has_records(1));
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..2 {
        let before = fs::read(place.path("j/job-1")).unwrap();
        until("a heartbeat", || fs::read(place.path("j/job-1")).unwrap() != before);
    }
    let mut out = Vec::new();
    job.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert!(job.wait().unwrap().success() && out.len() == 6_000_000);
    assert!(place.path("j/job-1.ended").exists());
}

/// A list from a pipe or with barriers is one job's alone, whether that or a file comes first.
#[test]
fn a_list_that_cannot_be_shared_is_refused() {
    let place = Place::new();
    place.list(list(2, 1.0).as_bytes());
    fs::write(place.path("barrier"), "true\n#EQ barrier\ntrue\n").unwrap();
    let mut first = place.command(&["-", "--journal", "j"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    first.stdin.as_ref().unwrap().write_all(list(2, 1.0).as_bytes()).unwrap();
    until("it has joined", || place.path("j/job-1.joined").exists());
    for arguments in [&["jobs", "--journal", "j"][..], &["jobs", "--journal", "j", "--resume"], &["barrier", "--journal", "j"]] {
        let said = end(place.start(arguments), 2);
        assert!(
            said.contains("--journal j: job 1 runs on it, whose list cannot be shared: it grows, has barriers, or comes from a pipe"),
            "{said}"
        );
    }
    drop(first.stdin.take());
    end(first, 0);
    assert_eq!(place.ran(), [1, 2]);
    let first = place.start(&["jobs", "--journal", "k"]);
    until("it has joined", || place.path("k/job-1.joined").exists());
    let said = end(place.start(&["barrier", "--journal", "k"]), 2);
    assert!(said.contains("--journal k: another job runs on it, and only a list in a file without barriers can be shared"), "{said}");
    end(first, 0);
}

/// All that the second job may read ahead waits for the task that the first one runs.
#[test]
fn commands_come_after_those_of_another_job() {
    let place = Place::new();
    let list: String = (1..=300).map(|n| if n == 1 { "sleep 2\n".to_string() } else { "true #EQ after=1\n".into() }).collect();
    place.list(list.as_bytes());
    let first = place.start(&["jobs", "--workers", "1", "--journal", "j"]);
    until("it has joined", || place.path("j/job-1.joined").exists());
    let second = place.start(&["jobs", "--workers", "1", "--journal", "j"]);
    for job in [first, second] {
        let said = end(job, 0);
        assert!(said.contains("300 tasks: 300 done"), "{said}");
    }
    let records = place.records("j");
    assert!(records.len() == 300 && records.values().all(|records| records.len() == 1), "each has one record");
}

/// A job whose list has estimates reads far ahead while it is alone. One that joins it gets its part all the same.
#[test]
fn a_job_that_joins_gets_tasks_with_estimates() {
    let place = Place::new();
    let list: String = (1..=80).map(|n| format!("sh -c 'sleep 0.1; echo {n} >>ran' #EQ cost={}\n", n % 7 + 1)).collect();
    place.list(list.as_bytes());
    let first = place.start(&["jobs", "--workers", "1", "--journal", "j"]);
    until("records", || place.has_records(5));
    let second = place.start(&["jobs", "--workers", "3", "--journal", "j"]);
    for job in [first, second] {
        let said = end(job, 0);
        assert!(said.contains("80 tasks: 80 done"), "{said}");
    }
    assert_eq!(place.ran(), (1..=80).collect::<Vec<_>>());
    let of_second = fs::read_to_string(place.path("j/rank-0.2.log")).unwrap().lines().count();
    assert!((20..75).contains(&of_second), "{of_second} of 80");
}

/// Told to end while it waits for a command of another job, a job says that this is left.
#[test]
fn a_signal_ends_a_job_that_waits_for_another() {
    let place = Place::new();
    place.list(b"sleep 3\n");
    let first = place.start(&["jobs", "--journal", "j"]);
    until("it has joined", || place.path("j/job-1.joined").exists());
    let second = place.start(&["jobs", "--journal", "j"]);
    until("it has joined", || place.path("j/job-2.joined").exists());
    std::thread::sleep(Duration::from_millis(500));
    kill("-TERM", second.id());
    let said = end(second, 4);
    assert!(said.contains("1 tasks: 0 done, 0 failed, 0 skipped, 1 left"), "{said}");
    end(first, 0);
}

/// A job that others found dead, and that is not, ends with what it has started.
#[test]
fn a_job_that_was_found_dead_ends() {
    let place = Place::new();
    place.list(b"sleep 4323.5\n");
    let job = place.start(&["jobs", "--journal", "j"]);
    until("it begins", || !processes_with("4323.5").is_empty());
    fs::write(place.path("j/job-1.ended"), "").unwrap();
    let said = end(job, 1);
    assert!(said.contains("--journal j: this job gave no sign of life for 30 s; another one has its tasks now"), "{said}");
    until("its command is gone", || processes_with("4323.5").is_empty());
    assert!(place.records("j").is_empty());
}
