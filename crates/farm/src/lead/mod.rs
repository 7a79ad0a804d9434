//! The lead, on rank 0: reads the list, deals tasks to ranks, counts what has ended, prints.
//!
//! A rank that has room gets the number of tasks that it does in a tenth of a second, so that short tasks travel together and long ones alone; with
//! `--scheduler selfsched:rule=..` the number that the rule sets. Other schedulers: [`Scheduler`].

pub mod counts;
mod dealing;
mod end;
pub mod fitting;
pub mod hosts;
mod leaving;
mod losses;
mod packing;
pub mod pool;
mod progress;
mod reading;
mod room;
mod sash;
mod sharing;

use std::collections::HashMap;

use equipoise::error::LostTasks;
use equipoise::schedule::selfsched::rules::{Chunks, Measured, Rule};
use equipoise::topology::RankId;
use equipoise::{Error, Result};
use log::debug;
use serde_json::{Value, json};

use crate::journal::past::Past;
use crate::list::List;
use crate::messages::{ToHand, ToLead};
use crate::output::Printer;
use crate::prepare::Prepared;
use crate::report::Report;
use crate::scheduler::Scheduler;
use crate::settings::{Settings, Shown};
use crate::task::{How, Outcome, State, Task};
use counts::Counts;
use hosts::Hosts;
use pool::{Numbers, Pool};
use room::Room;
use sash::Sash;
use sharing::Sharing;

/// The receiver of the lead's reports.
pub trait Audience {
    /// An event of `--output json`.
    fn event(&mut self, event: &Value);
    /// A line for people.
    fn remark(&mut self, text: &str);
    /// A record for `--joblog`, with GNU parallel's number for the command.
    fn joblog(&mut self, number: u64, host: &str, outcome: &Outcome, command: &[u8]);
}

/// Number of failures that are reported one by one.
const TOLD: u64 = 10;

/// The lead's knowledge of a rank.
#[derive(Clone, Debug, Default)]
struct Rank {
    room: Room,
    measured: Measured,
    gone: bool,
    lost: bool,
}

/// A task that was dealt and has no final record yet.
#[derive(Debug)]
struct Out {
    rank: RankId,
    line: u64,
    text: Vec<u8>,
    /// Attempts that have ended.
    attempts: u32,
    /// Estimated seconds.
    cost: Option<f64>,
    /// Time at which it was dealt.
    dealt: f64,
    /// All but its text, where it may have to be dealt again.
    rest: Option<Box<Task>>,
}

impl Out {
    fn of(task: &Task, attempts: u32, rank: RankId, keeps: bool, now: f64) -> Out {
        let text = if task.how == How::Empty { Vec::new() } else { task.text.clone() };
        let rest = keeps.then(|| Box::new(Task { text: Vec::new(), ..task.clone() }));
        Out { rank, line: task.line, text, attempts, cost: task.cost, dealt: now, rest }
    }
}

/// The lead.
pub struct Lead {
    settings: Settings,
    list: List,
    /// The list is shared with other jobs.
    sharing: Sharing,
    /// Read to its end, or no more is wanted of it.
    is_read: bool,
    barrier: Option<bool>,
    past: Past,
    costs: HashMap<u64, f64>,
    pool: Pool,
    ranks: Vec<Rank>,
    /// Room that every rank has.
    least: Room,
    /// Number of tasks that all ranks run at a time.
    all_workers: u64,
    /// Tasks that did not fit, and how often others were dealt before them.
    overtaken: HashMap<u64, u32>,
    next_rank: usize,
    chunks: Option<Chunks>,
    sash: Option<Sash>,
    hosts: Hosts,
    printer: Printer,
    report: Option<Report>,
    audience: Box<dyn Audience>,
    /// Tasks that were dealt and have no final record yet.
    out: HashMap<u64, Out>,
    /// Ranks that are lost, and when their tasks are taken over.
    inheritances: Vec<(RankId, f64)>,
    job: u32,
    recorded: Numbers,
    pub counts: Counts,
    /// Failures, those included whose records are still being written.
    failures: u64,
    draining: bool,
    is_ending: bool,
    why_unread: Option<Error>,
    told_of_cpus: bool,
    began: f64,
    last_line: f64,
    sends: Vec<(RankId, ToHand)>,
}

impl Lead {
    /// A lead for ranks on these hosts.
    pub fn new(
        settings: &Settings,
        prepared: Prepared,
        host_of_rank: Vec<String>,
        printer: Printer,
        audience: Box<dyn Audience>,
        now: f64,
    ) -> Lead {
        let Prepared { list, total, past, costs, presence, leases, report, .. } = prepared;
        let ranks = host_of_rank.len();
        let rooms = fitting::rooms(settings, &host_of_rank);
        let by_rule = |rule, rounding, least| Some(Chunks::new(rule, total.unwrap_or(0), &vec![1.0; ranks], rounding, least));
        let (chunks, sash, pool) = match settings.scheduler {
            Scheduler::Adaptive => (None, None, Pool::default()),
            Scheduler::Rule { rule, rounding, least } => (by_rule(rule, rounding, least), None, Pool::default()),
            Scheduler::Dss => (by_rule(Rule::Ss, None, 1), None, Pool::by_list()),
            Scheduler::Sash { alike, most } => (None, Some(Sash::new(&rooms, alike, most)), Pool::default()),
        };
        Lead {
            hosts: Hosts::new(settings, host_of_rank),
            settings: settings.clone(),
            list,
            sharing: Sharing::new(presence, leases),
            is_read: false,
            barrier: None,
            past,
            costs,
            pool,
            least: fitting::least(settings, &rooms),
            all_workers: rooms.iter().map(|room| u64::from(room.workers)).sum(),
            ranks: rooms.into_iter().map(|room| Rank { room, ..Rank::default() }).collect(),
            overtaken: HashMap::new(),
            next_rank: 0,
            chunks,
            sash,
            printer,
            report,
            audience,
            out: HashMap::new(),
            inheritances: Vec::new(),
            job: 1,
            recorded: Numbers::default(),
            counts: Counts {
                total,
                busy: vec![0.0; ranks],
                is_recorded: settings.journal.is_some() || settings.joblog.is_some(),
                ..Counts::default()
            },
            failures: 0,
            draining: false,
            is_ending: false,
            why_unread: None,
            told_of_cpus: false,
            began: now,
            last_line: now,
            sends: Vec::new(),
        }
    }

    /// Takes the messages to be sent, with their ranks.
    pub fn take_sends(&mut self) -> Vec<(RankId, ToHand)> {
        std::mem::take(&mut self.sends)
    }

    /// Returns true if all hands have ended.
    pub fn is_over(&self) -> bool {
        self.is_ending && self.ranks.iter().all(|rank| rank.gone)
    }

    /// Begins.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub fn begin(&mut self, job: u32, now: f64) -> Result<()> {
        self.job = job;
        let deadline = self.settings.walltime.map(|walltime| walltime.last());
        RankId::all(self.ranks.len() as u32).for_each(|rank| self.sends.push((rank, ToHand::Begin { job, deadline })));
        self.event(
            |lead| json!({"event": "begin", "ranks": lead.ranks.len(), "workers": lead.settings.workers, "tasks": lead.counts.total}),
        );
        self.sends.extend(self.hosts.begin());
        if let Some(tasks) = self.counts.total {
            self.tell_missing(tasks);
        }
        self.go_on(now)
    }

    /// A hand says something.
    ///
    /// # Errors
    /// If the job cannot go on.
    pub fn receive(&mut self, from: RankId, message: ToLead, now: f64) -> Result<()> {
        match message {
            ToLead::Freed { tasks, failed, time, squares, demand } => {
                self.halt_after(failed, now);
                let measured = Measured { tasks, time, squares };
                let rank = &mut self.ranks[from.index()];
                rank.room.free(tasks, demand);
                rank.measured.add(measured);
                if let Some(chunks) = &mut self.chunks {
                    chunks.learn(from.index(), measured);
                }
                let (began, at_a_time) = (self.began, self.least.at_a_time(tasks, demand));
                if let Some(sash) = &mut self.sash {
                    sash.freed(from.index(), tasks, time / at_a_time as f64, now - began);
                }
            }
            ToLead::Ended(outcomes) => {
                for outcome in outcomes {
                    self.ended(from, outcome)?;
                }
            }
            ToLead::Piece { seq: _, bytes } => self.printer.piece(&bytes).map_err(printing)?,
            ToLead::OnHost(outcome) => {
                let said = self.hosts.ended(from, &outcome);
                if let Some(said) = said {
                    self.audience.remark(&said);
                }
                // After a failed --release or --teardown the tasks go on.
                if self.hosts.has_failed_to_start() && !self.draining {
                    self.drain(0.0, now);
                }
            }
            ToLead::Signalled { again } => {
                if !self.draining {
                    self.audience
                        .remark(&format!("told to end: nothing more is started, what runs has {} s (--grace)", self.settings.grace));
                }
                self.drain(if again { 0.0 } else { self.settings.grace }, now);
            }
            ToLead::Failed(why) => return Err(Error::Failed(why)),
            ToLead::Gone => self.ranks[from.index()].gone = true,
        }
        self.go_on(now)
    }

    /// Some time has passed.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub fn tick(&mut self, now: f64) -> Result<()> {
        self.share(now)?;
        self.inherit(now)?;
        self.leave_what_fits_nowhere();
        if let Some(walltime) = self.settings.walltime {
            let (last, late) = (walltime.last(), |task: &Task| now + task.least_time() > walltime.last());
            let late = self.pool.take(u64::MAX, late);
            late.iter().for_each(|(task, _)| self.leave(task.seq));
            if now >= walltime.end || (now >= last && self.out.is_empty()) {
                self.drain(0.0, now);
            }
        }
        self.show_progress(now);
        self.go_on(now)
    }

    /// Reads, deals, prints, ends: whatever is possible now.
    fn go_on(&mut self, now: f64) -> Result<()> {
        self.read()?;
        self.deal(now);
        if let Some(wanted) = self.printer.print().map_err(printing)? {
            self.sends.push((wanted.rank, ToHand::Pull { seq: wanted.seq, stream: wanted.stream, from: wanted.from }));
        }
        let is_shared = self.sharing.is_waiting() && !self.draining;
        let is_empty = self.is_read && self.barrier.is_none() && self.pool.is_empty() && self.out.is_empty() && !is_shared;
        if !is_empty {
            // Tasks of a lost rank come back.
            let may_come_back = !self.inheritances.is_empty() && self.out.values().any(|out| self.ranks[out.rank.index()].lost);
            if self.is_read && self.pool.is_empty() && !is_shared && !may_come_back {
                self.release_idle(now);
            }
            return Ok(());
        }
        if !self.printer.is_done() {
            // Outputs that were to come in order and never come hold up no others.
            self.printer.forget_order();
            return self.printer.print().map_err(printing).map(|wanted| {
                self.sends
                    .extend(wanted.map(|wanted| (wanted.rank, ToHand::Pull { seq: wanted.seq, stream: wanted.stream, from: wanted.from })));
            });
        }
        self.release_idle(now);
        let ending = self.hosts.end();
        self.sends.extend(ending);
        if self.hosts.is_done() && !self.is_ending {
            self.is_ending = true;
            self.sharing.end();
            RankId::all(self.ranks.len() as u32).for_each(|rank| self.sends.push((rank, ToHand::End)));
        }
        Ok(())
    }

    /// Hosts that have nothing left to do are given back.
    fn release_idle(&mut self, now: f64) {
        // When all tasks have ended, no rank is busy, even if one has not reported its free room yet.
        let busy: Vec<bool> = self.ranks.iter().map(|rank| rank.room.held > 0 && !self.out.is_empty()).collect();
        let released = self.hosts.release(&busy, now);
        self.sends.extend(released);
    }

    fn ended(&mut self, from: RankId, outcome: Outcome) -> Result<()> {
        let seq = outcome.seq;
        self.counts.busy[from.index()] += outcome.runtime;
        self.counts.longest = self.counts.longest.max(outcome.runtime);
        self.counts.work += outcome.runtime;
        let (line, text) = match self.out.get_mut(&seq) {
            Some(out) => {
                out.attempts = out.attempts.max(outcome.attempt);
                (out.line, out.text.clone())
            }
            None => return Err(LostTasks::NotRunning { task: seq }.into()),
        };
        if outcome.state != State::Left {
            self.event(|_| event(&outcome, from, line, &text));
        }
        if outcome.state == State::Again {
            debug!("rank 0, lead: task {seq} failed on rank {from} in attempt {}, and is tried again there", outcome.attempt);
            return Ok(());
        }
        self.out.remove(&seq);
        if outcome.state == State::Left {
            self.leave(seq);
            return Ok(());
        }
        if !self.recorded.insert(seq) {
            return Err(LostTasks::RecordedTwice { task: seq }.into());
        }
        debug!("rank 0, lead: task {seq} has ended on rank {from} in attempt {}: {}", outcome.attempt, outcome.state.name());
        self.sharing.ended(seq)?;
        self.counts.count(outcome.state);
        if let Some(report) = &mut self.report {
            report.add(from, &outcome, &text).map_err(reporting)?;
        }
        if outcome.state != State::Skipped {
            // GNU parallel's log has only commands that ran: one that is not in it runs when the job goes on.
            let number = if self.settings.origin.counts_lines() { line } else { seq };
            self.audience.joblog(number, self.hosts.name(from), &outcome, &text);
        }
        if outcome.state == State::Failed {
            self.tell_failure(&outcome, line, &text);
        }
        let success = outcome.state == State::Done;
        match self.settings.output == Shown::Outputs && self.settings.results.is_none() {
            true => self.printer.add(from, seq, outcome.out, outcome.err).map_err(printing)?,
            false => self.printer.skip(seq),
        }
        self.skip(seq, success);
        Ok(())
    }

    /// Tasks have failed, whose records are still being written.
    fn halt_after(&mut self, failed: u64, now: f64) {
        self.failures += failed;
        if let Some(halt) = self.settings.halt
            && failed > 0
            && self.failures >= halt.failures
            && !self.draining
        {
            self.audience.remark(&format!("{} tasks have failed: the job ends (--halt)", self.failures));
            self.drain(if halt.now { 0.0 } else { f64::MAX }, now);
        }
    }

    /// A task has ended: those that can never run therefore get their record from rank 0.
    fn skip(&mut self, seq: u64, success: bool) {
        let skipped = self.pool.ended(seq, success);
        self.record_skipped(skipped);
    }

    fn record_skipped(&mut self, skipped: Vec<Task>) {
        if !skipped.is_empty() {
            self.out.extend(skipped.iter().map(|task| (task.seq, Out::of(task, 0, RankId::FIRST, false, 0.0))));
            self.sends.push((RankId::FIRST, ToHand::Skip(skipped)));
        }
    }

    fn tell_failure(&mut self, outcome: &Outcome, line: u64, text: &[u8]) {
        if self.settings.output == Shown::Events || self.counts.failed_now > TOLD {
            return;
        }
        let text = String::from_utf8_lossy(text);
        let shown: String = text.chars().take(200).collect();
        let more = if self.counts.failed_now == TOLD { " (further failures are only counted)" } else { "" };
        self.audience.remark(&format!("task {} (line {line}) {}: {shown}{more}", outcome.seq, counts::how(outcome)));
    }

    /// Stops starting tasks; running tasks have `grace` seconds.
    fn drain(&mut self, grace: f64, _now: f64) {
        if !self.draining {
            self.draining = true;
            self.counts.drained = true;
            let left = self.pool.take_all();
            debug!("rank 0, lead: nothing more is started, {left} tasks that were not dealt are left; those that run have {grace} s");
            self.counts.left += left;
            self.barrier = None;
            self.is_read &= !self.sharing.count_again();
        }
        RankId::all(self.ranks.len() as u32).for_each(|rank| self.sends.push((rank, ToHand::Drain { grace })));
    }

    fn event(&mut self, event: impl FnOnce(&Lead) -> Value) {
        if self.settings.output == Shown::Events {
            let event = event(self);
            self.audience.event(&event);
        }
    }
}

fn reporting(why: std::io::Error) -> Error {
    Error::Failed(format!("--report: it cannot be written: {why}"))
}

fn printing(why: std::io::Error) -> Error {
    Error::Failed(format!("standard output: {why}"))
}

/// The event of an attempt that has ended.
fn event(outcome: &Outcome, rank: RankId, line: u64, text: &[u8]) -> Value {
    json!({
        "event": "task", "seq": outcome.seq, "line": line, "state": outcome.state.name(), "exit": outcome.exit, "signal": outcome.signal,
        "attempt": outcome.attempt, "rank": rank, "start": outcome.start, "runtime": outcome.runtime, "cpu": outcome.cpu,
        "memory_kib": outcome.memory, "out_bytes": outcome.out.bytes, "err_bytes": outcome.err.bytes, "command": String::from_utf8_lossy(text),
    })
}
