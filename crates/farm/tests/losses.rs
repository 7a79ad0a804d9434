//! A lead whose rank dies or whose host is released: the rank's tasks end once, on other ranks or by the rank's own records. What is left is told.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use equipoise::topology::RankId;
use equipoise_farm::journal::{self, record};
use equipoise_farm::lead::{Audience, Lead};
use equipoise_farm::limits::{Demand, SlotsGiven};
use equipoise_farm::list::{Origin, formats::Format};
use equipoise_farm::messages::{ToHand, ToLead};
use equipoise_farm::output::{self, Printer};
use equipoise_farm::prepare::prepare;
use equipoise_farm::settings::{Settings, Shown};
use equipoise_farm::task::{Outcome, State, Task};
use tempfile::TempDir;

/// Keeps what is said.
struct Ear(Rc<RefCell<Vec<String>>>);

impl Audience for Ear {
    fn event(&mut self, event: &serde_json::Value) {
        self.0.borrow_mut().push(event.to_string());
    }
    fn remark(&mut self, text: &str) {
        self.0.borrow_mut().push(text.into());
    }
    fn joblog(&mut self, _: u64, _: &str, _: &Outcome, _: &[u8]) {}
}

/// A job on three ranks, and the tasks that each of them holds.
struct Job {
    folder: TempDir,
    lead: Lead,
    held: [Vec<Task>; 3],
    /// Sequence numbers in the order in which they were dealt, with the number of attempts before.
    dealt: Vec<(u64, u32)>,
    said: Rc<RefCell<Vec<String>>>,
    ended: [bool; 3],
}

impl Job {
    fn new(lines: &str, change: impl FnOnce(&mut Settings)) -> Job {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("list"), lines).unwrap();
        let mut settings = Settings::new(Origin::Commands { file: folder.path().join("list"), format: Format::Plain });
        (settings.output, settings.survives) = (Shown::Nothing, true);
        settings.journal = Some(folder.path().join("journal"));
        change(&mut settings);
        let prepared = prepare(&settings, 1).unwrap();
        let said = Rc::new(RefCell::default());
        let hosts = ["a", "a", "b"].map(String::from).to_vec();
        let printer = Printer::new(output::standard(), false);
        let mut lead = Lead::new(&settings, prepared, hosts, printer, Box::new(Ear(said.clone())), 0.0);
        lead.begin(1, 0.0).unwrap();
        let mut job = Job { folder, lead, held: Default::default(), dealt: Vec::new(), said, ended: [false; 3] };
        job.take();
        job
    }

    /// Ranks take what they are sent.
    fn take(&mut self) {
        for (rank, message) in self.lead.take_sends() {
            match message {
                ToHand::Tasks(tasks) => {
                    self.dealt.extend(tasks.iter().map(|(task, attempts)| (task.seq, *attempts)));
                    self.held[rank.index()].extend(tasks.into_iter().map(|(task, _)| task));
                }
                ToHand::End => self.ended[rank.index()] = true,
                ToHand::Drain { .. } => {
                    let left = self.held[rank.index()].drain(..).map(|task| Outcome::without_run(task.seq, State::Left)).collect();
                    self.lead.receive(rank, ToLead::Ended(left), 0.0).unwrap();
                }
                _ => {}
            }
        }
    }

    /// A rank ends all it holds, until nothing more comes.
    fn work(&mut self, rank: RankId, now: f64) {
        while let Some(task) = self.held[rank.index()].pop() {
            let freed = ToLead::Freed { tasks: 1, failed: 0, time: 1.0, squares: 1.0, demand: Demand::of(task.needs) };
            self.lead.receive(rank, freed, now).unwrap();
            self.lead
                .receive(rank, ToLead::Ended(vec![Outcome { attempt: 1, ..Outcome::without_run(task.seq, State::Done) }]), now)
                .unwrap();
            self.take();
        }
    }

    /// Writes a record of rank 1 that it has not reported.
    fn record(&self, state: State, cut: bool) -> u64 {
        let task = &self.held[1][0];
        let mut bytes = record::header().into_bytes();
        record::write(&mut bytes, "a", &Outcome { attempt: 1, runtime: 3.0, ..Outcome::without_run(task.seq, state) }, &task.text);
        bytes.truncate(bytes.len() - 2 * usize::from(cut));
        fs::write(journal::file(&self.folder.path().join("journal"), RankId::new(1), 1), bytes).unwrap();
        task.seq
    }

    /// Rank 1 is lost, and the others do the rest. Returns the exit status.
    fn lose(&mut self) -> i32 {
        self.lead.lost(RankId::new(1), 10.0).unwrap();
        self.held[1].clear();
        self.work(RankId::FIRST, 10.2);
        self.work(RankId::new(2), 10.3);
        assert!(!self.lead.is_over() && self.ended == [false; 3], "its tasks are still to be run");
        self.lead.tick(11.5).unwrap();
        self.take();
        self.work(RankId::FIRST, 12.0);
        self.work(RankId::new(2), 12.0);
        self.lead.tick(13.0).unwrap();
        self.take();
        assert_eq!(self.ended, [true; 3]);
        [0, 2].map(RankId::new).into_iter().for_each(|rank| self.lead.receive(rank, ToLead::Gone, 14.0).unwrap());
        assert!(self.lead.is_over());
        self.lead.end(14.0).unwrap()
    }
}

const SEVEN: &str = "a\nb\nc\nd\ne\nf\ng\n";

#[test]
fn what_a_lost_rank_had_not_finished_runs_elsewhere() {
    let mut job = Job::new(SEVEN, |_| {});
    let lost = job.held[1][0].seq;
    assert_eq!(job.lose(), 0);
    assert_eq!((job.lead.counts.done, job.lead.counts.left), (7, 0));
    let times = |seq| job.dealt.iter().filter(|(dealt, _)| *dealt == seq).count();
    assert_eq!((1..=7).map(times).collect::<Vec<_>>(), (1..=7).map(|seq| if seq == lost { 2 } else { 1 }).collect::<Vec<_>>());
    assert!(job.said.borrow().iter().any(|said| said == "rank 1 on a is lost; the others take over its 1 tasks"));
}

#[test]
fn what_has_its_record_does_not_run_again() {
    for (state, cut, status, runs) in
        [(State::Done, false, 0, 1), (State::Failed, false, 1, 1), (State::Done, true, 0, 2), (State::Again, false, 0, 2)]
    {
        let mut job = Job::new(SEVEN, |_| {});
        let recorded = job.record(state, cut);
        assert_eq!(job.lose(), status, "{state:?}");
        let times: Vec<u32> = job.dealt.iter().filter(|(dealt, _)| *dealt == recorded).map(|(_, attempts)| *attempts).collect();
        assert_eq!((times.len(), job.lead.counts.done + job.lead.counts.failed), (runs, 7), "{state:?}");
        // An attempt that failed counts when the task is tried again.
        assert_eq!(times.last(), Some(&u32::from(state == State::Again)));
    }
}

#[test]
fn other_ranks_take_over_where_they_would_not_have_worked() {
    let mut job = Job::new(SEVEN, |settings| settings.dedicated = true);
    assert!(job.held[0].is_empty());
    job.lead.lost(RankId::new(2), 1.0).unwrap();
    job.held[2].clear();
    assert_eq!(job.lose(), 0);
    assert_eq!(job.lead.counts.done, 7);
}

#[test]
fn a_job_that_ends_leaves_the_tasks_of_a_lost_rank() {
    let mut job = Job::new(SEVEN, |_| {});
    job.lead.receive(RankId::FIRST, ToLead::Signalled { again: false }, 5.0).unwrap();
    job.lead.lost(RankId::new(1), 6.0).unwrap();
    job.held[1].clear();
    job.take();
    assert!(job.ended == [false; 3]);
    job.lead.tick(7.5).unwrap();
    job.take();
    assert_eq!(job.ended, [true; 3]);
    [0, 2].map(RankId::new).into_iter().for_each(|rank| job.lead.receive(rank, ToLead::Gone, 8.0).unwrap());
    assert_eq!((job.lead.end(8.0).unwrap(), job.lead.counts.left), (4, 7));
}

#[test]
fn what_only_a_lost_rank_had_room_for_is_left() {
    // The ranks have two, one and three processors.
    let mut job = Job::new("a #EQ cpus=3\nb\nc #EQ cpus=3 after=2\nd #EQ cpus=2\n", |settings| {
        settings.slots = Some(SlotsGiven::parse("host:cpus=3").unwrap());
    });
    let seqs = |tasks: &[Task]| tasks.iter().map(|task| task.seq).collect::<Vec<_>>();
    assert_eq!(job.held.each_ref().map(|tasks| seqs(tasks)), [vec![2], vec![], vec![1]]);
    job.lead.lost(RankId::new(2), 10.0).unwrap();
    job.held[2].clear();
    job.work(RankId::FIRST, 10.2);
    job.lead.tick(11.5).unwrap();
    job.take();
    assert_eq!(job.ended, [true; 3]);
    [0, 1].map(RankId::new).into_iter().for_each(|rank| job.lead.receive(rank, ToLead::Gone, 12.0).unwrap());
    assert_eq!((job.lead.end(12.0).unwrap(), job.lead.counts.done, job.lead.counts.left), (4, 2, 2));
    assert!(
        job.said.borrow().iter().any(|said| said.starts_with("task 1 and perhaps others are left: no rank that is not lost or given back"))
    );
}

/// A host is given back while others work: if that fails, they go on, and only the status says it.
#[test]
fn a_failed_release_ends_no_task() {
    let mut job = Job::new("a\nb\n", |settings| settings.release = Some("give-back".into()));
    assert_eq!(job.held.each_ref().map(Vec::len), [1, 1, 0]);
    let release = |exit| ToLead::OnHost(Outcome { exit, ..Outcome::without_run(0, State::Done) });
    job.lead.receive(RankId::FIRST, release(3), 1.0).unwrap();
    job.take();
    assert_eq!(job.held.each_ref().map(Vec::len), [1, 1, 0], "nothing is stopped");
    job.work(RankId::FIRST, 2.0);
    job.work(RankId::new(1), 2.0);
    assert_eq!(job.ended, [false; 3], "the other host is still to be given back");
    job.lead.receive(RankId::FIRST, release(0), 3.0).unwrap();
    job.take();
    assert_eq!(job.ended, [true; 3]);
    RankId::all(3).for_each(|rank| job.lead.receive(rank, ToLead::Gone, 4.0).unwrap());
    assert_eq!((job.lead.end(4.0).unwrap(), job.lead.counts.done, job.lead.counts.left), (1, 2, 0));
    assert!(job.said.borrow().iter().any(|said| said == "a command of --release on host a ended with status 3"));
}

/// A job with `--release` on two hosts, of which rank 2 is the second.
fn released(lines: &str, change: impl FnOnce(&mut Settings)) -> Job {
    Job::new(lines, |settings| {
        settings.release = Some("give-back".into());
        change(settings);
    })
}

impl Job {
    /// A rank is lost, and its tasks are looked at again.
    fn lose_for_good(&mut self, rank: RankId) {
        self.lead.lost(rank, 2.0).unwrap();
        self.held[rank.index()].clear();
        self.take();
    }

    /// All the other ranks have ended. Returns the exit status, the tasks that are done, and those that are left.
    fn over(&mut self, ranks: &[u32]) -> (i32, u64, u64) {
        assert_eq!(self.ended, [true; 3], "it does not end");
        ranks.iter().for_each(|rank| self.lead.receive(RankId::new(*rank), ToLead::Gone, 9.0).unwrap());
        assert!(self.lead.is_over());
        (self.lead.end(9.0).unwrap(), self.lead.counts.done, self.lead.counts.left)
    }

    /// A command of `--release` on rank 0 has ended.
    fn given_back(&mut self) {
        self.lead.receive(RankId::FIRST, ToLead::OnHost(Outcome::without_run(0, State::Done)), 3.0).unwrap();
        self.take();
    }
}

#[test]
fn what_comes_back_when_all_others_are_given_back_is_left() {
    let mut job = released("a\nb\nc\n", |_| {});
    assert_eq!(job.held.each_ref().map(Vec::len), [1; 3]);
    [0, 1].map(RankId::new).into_iter().for_each(|rank| job.work(rank, 1.0));
    job.given_back();
    job.lose_for_good(RankId::new(2));
    job.lead.tick(3.5).unwrap();
    job.take();
    assert_eq!(job.over(&[0, 1]), (4, 2, 1));
    assert!(job.said.borrow().iter().any(|said| said.ends_with("no rank that is not lost or given back has what they need")));
}

#[test]
fn no_host_is_given_back_while_tasks_of_a_lost_rank_come_back() {
    let mut job = released("a\nb\nc\n", |_| {});
    job.lose_for_good(RankId::new(2));
    [0, 1].map(RankId::new).into_iter().for_each(|rank| job.work(rank, 2.5));
    job.lead.tick(3.5).unwrap();
    job.take();
    [0, 1].map(RankId::new).into_iter().for_each(|rank| job.work(rank, 4.0));
    job.given_back();
    assert_eq!(job.over(&[0, 1]), (0, 3, 0));
}

#[test]
fn a_spared_rank_works_when_the_others_are_lost_or_given_back() {
    let mut job = released("a\nb\n", |settings| settings.dedicated = true);
    assert_eq!(job.held.each_ref().map(Vec::len), [0, 1, 1]);
    job.work(RankId::new(2), 1.0);
    job.given_back();
    job.lose_for_good(RankId::new(1));
    job.lead.tick(3.5).unwrap();
    job.take();
    job.work(RankId::FIRST, 4.0);
    job.given_back();
    assert_eq!(job.over(&[0, 2]), (0, 2, 0));
}

/// A rank that does short tasks has many of them, of which it runs one at a time.
#[test]
fn what_waits_on_a_rank_does_not_run() {
    // Without a journal nobody else could run what is taken ahead.
    let mut job = Job::new(&"short\n".repeat(2000), |settings| (settings.output, settings.journal) = (Shown::Events, None));
    for rank in [0, 1, 2] {
        let task = job.held[rank].pop().unwrap();
        let (rank, demand) = (RankId::new(rank as u32), Demand::of(task.needs));
        job.lead.receive(rank, ToLead::Freed { tasks: 1, failed: 0, time: 0.001, squares: 1e-6, demand }, 1.0).unwrap();
        job.lead.receive(rank, ToLead::Ended(vec![Outcome { attempt: 1, ..Outcome::without_run(task.seq, State::Done) }]), 1.0).unwrap();
        job.take();
    }
    assert!(job.held.iter().all(|held| held.len() > 50));
    job.said.borrow_mut().clear();
    job.lead.tick(6.0).unwrap();
    let said = job.said.borrow();
    assert!(said[0].contains("\"event\":\"progress\"") && said[0].contains("\"running\":3,"), "{said:?}");
    assert!(said[1].starts_with("3 done, 0 failed of 2000, 3 running, "), "{said:?}");
}

/// A list that loses lines while it runs: what is not there any more is in no record, and the job says so. One that grows is run to its end.
#[test]
fn a_list_that_changes_while_it_runs_is_told() {
    for (tasks, status) in [(9000, None), (20_000, Some(0))] {
        let line = "one of many lines\n";
        let mut job = Job::new(&line.repeat(10_000), |_| {});
        // Only the first of them were read by then.
        fs::write(job.folder.path().join("list"), line.repeat(tasks)).unwrap();
        while job.held.iter().any(|held| !held.is_empty()) {
            RankId::all(3).for_each(|rank| job.work(rank, 1.0));
        }
        assert_eq!(job.ended, [true; 3]);
        RankId::all(3).for_each(|rank| job.lead.receive(rank, ToLead::Gone, 2.0).unwrap());
        let ended = job.lead.end(2.0);
        assert_eq!(ended.as_ref().ok().copied(), status);
        let Err(why) = ended else { continue };
        assert!(
            why.exit_status() == 1 && why.to_string().starts_with("the list had 10000 tasks when the job began, and 9000 could be read"),
            "{why}"
        );
    }
}

/// One long task runs while many short ones have ended: the rate says nothing of what is left, the estimate does.
#[test]
fn the_time_left_is_that_of_the_estimates() {
    for (long, said) in [
        ("long #EQ cost=12\n", "20 done, 0 failed of 21, 1 running, 4.0/s, 7 s left"),
        ("long\n", "20 done, 0 failed of 21, 1 running, 4.0/s"),
    ] {
        let mut job = Job::new(&format!("{long}{}", "short\n".repeat(20)), |_| {});
        assert_eq!(job.held[0][0].seq, 1);
        job.work(RankId::new(1), 1.0);
        job.work(RankId::new(2), 2.0);
        job.lead.tick(5.0).unwrap();
        assert_eq!(job.said.borrow().last().map(String::as_str), Some(said));
    }
}
