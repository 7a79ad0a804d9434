//! Leads that share a journal: jobs of which we play the ranks, in this process.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use equipoise::topology::RankId;
use equipoise_farm::journal::{self, record};
use equipoise_farm::lead::{Audience, Lead};
use equipoise_farm::limits::Demand;
use equipoise_farm::list::{Origin, formats::Format};
use equipoise_farm::messages::{ToHand, ToLead};
use equipoise_farm::output::{self, Printer};
use equipoise_farm::prepare::prepare;
use equipoise_farm::presence::Presence;
use equipoise_farm::settings::{Settings, Shown};
use equipoise_farm::task::{Outcome, State, Task};
use tempfile::TempDir;

struct Nobody;

impl Audience for Nobody {
    fn event(&mut self, _: &serde_json::Value) {}
    fn remark(&mut self, _: &str) {}
    fn joblog(&mut self, _: u64, _: &str, _: &Outcome, _: &[u8]) {}
}

fn place(lines: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list"), lines).unwrap();
    folder
}

/// A list whose first task is followed by many that wait for it.
fn one_before_all(tasks: u64) -> String {
    (1..=tasks).map(|seq| if seq == 1 { "first\n".to_string() } else { format!("t{seq} #EQ after=1\n") }).collect()
}

/// A job with one rank.
struct Job {
    lead: Lead,
    /// If it has a journal.
    presence: Option<Arc<Presence>>,
    held: Vec<Task>,
    /// The tasks that it has run.
    ran: Vec<u64>,
    now: f64,
    is_ending: bool,
}

impl Job {
    fn new(folder: &Path, change: impl FnOnce(&mut Settings)) -> Job {
        let mut settings = Settings::new(Origin::Commands { file: folder.join("list"), format: Format::Plain });
        (settings.output, settings.resume) = (Shown::Nothing, true);
        settings.journal = Some(folder.join("journal"));
        change(&mut settings);
        let prepared = prepare(&settings, 1).unwrap();
        let (presence, number) = (prepared.presence.clone(), prepared.job);
        let printer = Printer::new(output::standard(), false);
        let mut lead = Lead::new(&settings, prepared, vec!["a".into()], printer, Box::new(Nobody), 0.0);
        lead.begin(number, 0.0).unwrap();
        let mut job = Job { lead, presence, held: Vec::new(), ran: Vec::new(), now: 0.0, is_ending: false };
        job.take();
        job
    }

    fn take(&mut self) {
        for (rank, message) in self.lead.take_sends() {
            match message {
                ToHand::Tasks(tasks) => self.held.extend(tasks.into_iter().map(|(task, _)| task)),
                ToHand::Skip(tasks) => {
                    let skipped = tasks.iter().map(|task| self.record(task, State::Skipped)).collect();
                    self.lead.receive(rank, ToLead::Ended(skipped), self.now).unwrap();
                    self.take();
                }
                ToHand::Drain { .. } => {
                    let left = self.held.drain(..).map(|task| Outcome::without_run(task.seq, State::Left)).collect();
                    self.lead.receive(rank, ToLead::Ended(left), self.now).unwrap();
                    self.take();
                }
                ToHand::End => {
                    self.is_ending = true;
                    self.lead.receive(rank, ToLead::Gone, self.now).unwrap();
                }
                _ => {}
            }
        }
    }

    fn record(&self, task: &Task, state: State) -> Outcome {
        // Each record is later than those before it.
        static STARTED: AtomicU32 = AtomicU32::new(1);
        let start = f64::from(STARTED.fetch_add(1, Ordering::Relaxed));
        let outcome = Outcome { attempt: 1, start, ..Outcome::without_run(task.seq, state) };
        let Some(presence) = &self.presence else { return outcome };
        let path = journal::file(presence.folder(), RankId::FIRST, presence.job());
        let mut line = Vec::new();
        record::write(&mut line, "a", &outcome, &task.text);
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(&line).unwrap();
        outcome
    }

    /// Runs one of the tasks that it holds; false if it has none.
    fn run(&mut self, state: State) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let task = self.held.remove(0);
        self.ran.push(task.seq);
        let ended = ToLead::Ended(vec![self.record(&task, state)]);
        let freed =
            ToLead::Freed { tasks: 1, failed: u64::from(state == State::Failed), time: 1.0, squares: 1.0, demand: Demand::of(task.needs) };
        [freed, ended].into_iter().for_each(|said| self.lead.receive(RankId::FIRST, said, self.now).unwrap());
        self.take();
        true
    }

    /// Time passes, and all that it holds is run.
    fn work(&mut self) {
        self.now += 100.0;
        self.lead.tick(self.now).unwrap();
        self.take();
        while self.run(State::Done) {}
    }

    /// It is gone for the others.
    fn die(&self) {
        self.presence.iter().for_each(|presence| presence.end());
    }

    fn signal(&mut self) {
        self.lead.receive(RankId::FIRST, ToLead::Signalled { again: false }, self.now).unwrap();
        self.take();
    }

    fn status(&mut self) -> i32 {
        assert!(self.is_ending && self.lead.is_over(), "it waits");
        self.lead.end(self.now).unwrap()
    }
}

/// Runs jobs in turn until they have ended, and checks that each task ran once.
fn work(jobs: &mut [&mut Job], tasks: u64) {
    for _ in 0..20 {
        jobs.iter_mut().filter(|job| !job.is_ending).for_each(|job| job.work());
    }
    let mut ran: Vec<u64> = jobs.iter().flat_map(|job| job.ran.iter().copied()).collect();
    ran.sort_unstable();
    assert!(ran == (1..=tasks).collect::<Vec<_>>(), "{} runs", ran.len());
    for job in jobs {
        assert_eq!((job.status(), job.lead.counts.done), (0, tasks));
    }
}

/// A job that joins learns from the records how long tasks take; it leaves the first one its part all the same.
#[test]
fn estimates_do_not_make_a_job_take_all() {
    let place = place(&"same\n".repeat(600));
    let mut one = Job::new(place.path(), |_| {});
    assert!((0..5).all(|_| one.run(State::Done)));
    let mut other = Job::new(place.path(), |_| {});
    while one.run(State::Done) | other.run(State::Done) {}
    assert!(one.ran.len() > 200 && other.ran.len() > 200, "{} and {}", one.ran.len(), other.ran.len());
    work(&mut [&mut one, &mut other], 600);
}

/// All that the jobs read ahead waits for a task of the first one, which has taken far more than it can soon run when that has ended.
#[test]
fn tasks_that_wait_for_another_jobs_run_when_it_has_ended() {
    for retries in [false, true] {
        let place = place(&one_before_all(600));
        let retry = |settings: &mut Settings| settings.retry_failed = retries;
        let (mut one, mut other) = (Job::new(place.path(), retry), Job::new(place.path(), retry));
        assert_eq!((one.held.len(), other.held.len()), (1, 0));
        other.work();
        assert!(other.ran.is_empty());
        assert!(one.run(State::Done));
        for job in [&mut one, &mut other] {
            // As its heartbeat does, sooner.
            job.presence.iter().for_each(|presence| _ = presence.others());
            job.now += 100.0;
            job.lead.tick(job.now).unwrap();
            job.take();
        }
        while one.run(State::Done) | other.run(State::Done) {}
        assert!(one.ran.len() > 200 && other.ran.len() > 200, "{retries}: {} and {}", one.ran.len(), other.ran.len());
        work(&mut [&mut one, &mut other], 600);
    }
}

/// Commands that wait are no reason to leave workers idle: there are others behind them.
#[test]
fn what_comes_behind_tasks_that_wait_is_read() {
    let waiting: String = (2..=600).map(|seq| format!("t{seq} #EQ after=1\n")).collect();
    let place = place(&format!("first\n{waiting}last\nlast\n"));
    for shared in [false, true] {
        let mut job = Job::new(place.path(), |settings| {
            settings.workers = 3;
            settings.journal = settings.journal.take().filter(|_| shared);
        });
        let seqs: Vec<u64> = job.held.iter().map(|task| task.seq).collect();
        assert_eq!(seqs, [1, 601, 602], "shared: {shared}");
        while job.run(State::Done) {}
        assert_eq!((job.status(), job.lead.counts.done), (0, 602));
    }
}

/// The job whose task they wait for dies: the other one runs it, too, although it has as much as it may read ahead.
#[test]
fn tasks_that_wait_for_a_dead_jobs_run_after_it() {
    let place = place(&one_before_all(600));
    let (one, mut other) = (Job::new(place.path(), |_| {}), Job::new(place.path(), |_| {}));
    other.work();
    one.die();
    work(&mut [&mut other], 600);
}

#[test]
fn tasks_that_wait_for_one_that_failed_elsewhere_are_skipped() {
    let place = place(&one_before_all(600));
    let (mut one, mut other) = (Job::new(place.path(), |_| {}), Job::new(place.path(), |_| {}));
    assert!(one.run(State::Failed));
    for _ in 0..20 {
        [&mut one, &mut other].into_iter().filter(|job| !job.is_ending).for_each(Job::work);
    }
    for job in [&mut one, &mut other] {
        assert_eq!((job.status(), job.lead.counts.failed, job.lead.counts.skipped), (1, 1, 599));
    }
}

/// A failure of an earlier job says nothing while another tries the task again.
#[test]
fn a_task_that_is_tried_again_elsewhere_is_waited_for() {
    let place = place(&one_before_all(300));
    let mut earlier = Job::new(place.path(), |_| {});
    assert!(earlier.run(State::Failed));
    earlier.die();
    let retry = |settings: &mut Settings| settings.retry_failed = true;
    let (mut one, mut other) = (Job::new(place.path(), retry), Job::new(place.path(), retry));
    assert_eq!(one.held[0].seq, 1);
    other.work();
    assert!(other.ran.is_empty() && other.lead.counts.skipped == 0);
    work(&mut [&mut one, &mut other], 300);
}

/// The record of another command, which was on a line before, frees nothing that comes after the one that is there now.
#[test]
fn an_edited_command_of_another_job_is_waited_for() {
    let rest = "r2\nr3\nr4\nr5\nt6 #EQ after=1\n";
    let place = place(&format!("old\n{rest}"));
    let mut earlier = Job::new(place.path(), |_| {});
    assert!(earlier.run(State::Done));
    earlier.die();
    fs::write(place.path().join("list"), format!("new\n{rest}")).unwrap();
    let (mut one, mut other) = (Job::new(place.path(), |_| {}), Job::new(place.path(), |_| {}));
    assert_eq!(one.held[0].seq, 1);
    other.work();
    assert!(other.ran.contains(&5) && !other.ran.contains(&6), "{:?}", other.ran);
    work(&mut [&mut one, &mut other], 6);
}

/// The list has grown within the last block of the first job, which does not know that.
#[test]
fn what_is_new_in_a_list_runs_when_the_job_that_had_its_block_has_ended() {
    let lines: String = (1..=1022).map(|seq| format!("t{seq} #EQ cost=1\n")).collect();
    let place = place(&lines);
    let mut one = Job::new(place.path(), |_| {});
    fs::write(place.path().join("list"), lines + "t1023\nt1024\n").unwrap();
    let mut other = Job::new(place.path(), |_| {});
    one.work();
    assert_eq!((one.status(), one.lead.counts.done, other.ran.len()), (0, 1022, 0));
    for _ in 0..20 {
        if !other.is_ending {
            other.work();
        }
    }
    assert_eq!((other.status(), other.lead.counts.done, other.ran.as_slice()), (0, 1024, &[1023, 1024][..]));
}

/// A job that is asked to end while it waits for another's tasks says that they are left.
#[test]
fn what_another_job_still_runs_is_left_by_one_that_ends() {
    let place = place(&(1..=6).map(|seq| format!("t{seq}\n")).collect::<String>());
    let (mut one, mut other) = (Job::new(place.path(), |_| {}), Job::new(place.path(), |_| {}));
    other.work();
    assert_eq!((one.held.len(), other.ran.len(), other.is_ending), (1, 4, false));
    other.signal();
    let counts = &other.lead.counts;
    assert_eq!((counts.done, counts.left, counts.read), (4, 2, 6));
    assert_eq!(other.status(), 4);
    (0..2).for_each(|_| one.work());
    assert_eq!(one.status(), 0);
    // One that ends when all is done says that.
    let (mut one, mut other) = (Job::new(place.path(), |_| {}), Job::new(place.path(), |_| {}));
    assert_eq!((one.status(), other.status(), one.ran.len() + other.ran.len()), (0, 0, 0));
}

/// One job holds many blocks and dies, then another one that has taken over some of them; what they have recorded runs once.
#[test]
fn blocks_of_dead_jobs_are_taken_over() {
    let place = place(&(1..=1000).map(|seq| format!("t{seq} #EQ cost=1\n")).collect::<String>());
    let mut one = Job::new(place.path(), |_| {});
    let mut other = Job::new(place.path(), |_| {});
    let mut last = Job::new(place.path(), |_| {});
    assert!((0..10).all(|_| one.run(State::Done)));
    one.die();
    other.now += 100.0;
    other.lead.tick(other.now).unwrap();
    other.take();
    assert!((0..10).all(|_| other.run(State::Done)));
    other.die();
    for _ in 0..20 {
        if !last.is_ending {
            last.work();
        }
    }
    assert_eq!((last.status(), last.lead.counts.done, last.ran.len()), (0, 1000, 980));
}

/// Blocks that the ending job has not begun are run by another one: they are not done.
#[test]
fn what_a_job_leaves_another_runs() {
    let lines = (1..=1000).map(|seq| format!("t{seq}\n")).collect::<String>();
    for begun in [0, 1, 3, 7] {
        let place = place(&lines);
        let mut one = Job::new(place.path(), |_| {});
        (0..begun).for_each(|_| assert!(one.run(State::Done)));
        let mut other = Job::new(place.path(), |_| {});
        one.signal();
        assert_eq!((one.status(), one.lead.counts.left), (4, 1000 - begun));
        for _ in 0..20 {
            if !other.is_ending {
                other.work();
            }
        }
        assert_eq!((other.status(), other.lead.counts.done, other.ran.len() as u64), (0, 1000, 1000 - begun));
    }
}

/// Tasks that are finished by a log of another farm have no record in the journal; nobody waits for that.
#[test]
fn tasks_that_another_log_has_are_counted_by_both() {
    let place = place("a\nb\nc\n");
    let log = "[2024-01-01 00:00:00] INFO: Task 1 completed successfully on node n1. Elapsed: 00:00:03\n";
    fs::write(place.path().join("log"), log).unwrap();
    let with_log = |settings: &mut Settings| settings.logs.push(place.path().join("log"));
    let (mut one, mut other) = (Job::new(place.path(), with_log), Job::new(place.path(), with_log));
    for _ in 0..5 {
        [&mut one, &mut other].into_iter().filter(|job| !job.is_ending).for_each(Job::work);
    }
    assert_eq!((one.status(), other.status(), one.ran.len() + other.ran.len()), (0, 0, 2));
}
