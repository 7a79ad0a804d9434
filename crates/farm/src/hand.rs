//! The hand of a rank: it gives tasks to the helper, writes their results into the journal, and reports to the lead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use equipoise::names;
use equipoise::topology::RankId;
use equipoise::{Error, Result};
use log::debug;

use crate::environment;
use crate::helper::Helper;
use crate::helper::capture::{discard, last};
use crate::helper::protocol::{News, Order, Slots, Terms};
use crate::journal::write::Writer;
use crate::journal::{self, record};
use crate::limits::Demand;
use crate::messages::{Stream, ToHand, ToLead};
use crate::settings::{Settings, Shown};
use crate::task::{Capture, How, Kept, LAST_BYTES, Needs, Outcome, State, Task};

/// Bytes of a piece of a long output.
const PIECE: usize = 1 << 20;
/// Records that may wait for the disk before a rank takes no more tasks.
const UNSYNCED: usize = 8192;

/// Callback that receives the number of records on the disk.
pub type Synced = Box<dyn Fn(io::Result<u64>) + Send>;

/// Tasks that have ended.
#[derive(Default)]
struct Freed {
    tasks: u64,
    failed: u64,
    /// Seconds, and sum of squared seconds.
    time: f64,
    squares: f64,
    demand: Demand,
}

/// The hand of one rank.
pub struct Hand {
    settings: Settings,
    rank: RankId,
    host: String,
    slots: Slots,
    /// `None` if all tasks are empty.
    helper: Option<Helper>,
    synced: Option<Synced>,
    journal: Option<Writer>,
    results: Option<Results>,
    /// The commands of tasks that are held.
    texts: HashMap<u64, Vec<u8>>,
    /// Outcomes that wait for their sync.
    unsynced: VecDeque<Outcome>,
    /// Tasks that are left after an attempt whose record waits for its sync.
    left: HashMap<u64, Outcome>,
    /// The resources that they take, of those that need something special.
    demands: HashMap<u64, Demand>,
    /// Ended tasks that were not reported to the lead yet.
    freed: Freed,
    /// Long outputs that are still to be printed, with their lengths: what a task has left behind may still write.
    long: HashMap<(u64, Stream), (PathBuf, u64)>,
    signals: u32,
    is_over: bool,
    says: Vec<ToLead>,
}

impl Hand {
    pub fn new(settings: &Settings, rank: RankId, slots: Slots, helper: Option<Helper>, synced: Synced) -> Hand {
        Hand {
            settings: settings.clone(),
            rank,
            host: environment::host(),
            slots,
            helper,
            synced: Some(synced),
            journal: None,
            results: None,
            texts: HashMap::new(),
            unsynced: VecDeque::new(),
            left: HashMap::new(),
            demands: HashMap::new(),
            freed: Freed::default(),
            long: HashMap::new(),
            signals: 0,
            is_over: false,
            says: Vec::new(),
        }
    }

    /// Takes the messages to the lead.
    pub fn take_says(&mut self) -> Vec<ToLead> {
        std::mem::take(&mut self.says)
    }

    /// Returns true if it has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The lead says something.
    ///
    /// # Errors
    /// If the helper is gone, or a file cannot be written.
    pub fn receive(&mut self, message: ToHand) -> Result<()> {
        match message {
            ToHand::Begin { job, deadline } => self.begin(job, deadline)?,
            ToHand::Tasks(tasks) => {
                debug!("rank {}, hand: {} tasks have come from the lead", self.rank, tasks.len());
                let (empty, tasks): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(task, _)| task.how == How::Empty);
                if !tasks.is_empty() {
                    tasks.iter().for_each(|(task, _)| _ = self.texts.insert(task.seq, task.text.clone()));
                    let special = tasks.iter().filter(|(task, _)| task.needs != Needs::default());
                    self.demands.extend(special.map(|(task, _)| (task.seq, Demand::of(task.needs))));
                    self.order(&Order::Run(tasks))?;
                }
                let now = crate::helper::running::now();
                let done = |(task, attempts): (Task, u32)| Outcome {
                    attempt: attempts.saturating_add(1),
                    start: now,
                    ..Outcome::without_run(task.seq, State::Done)
                };
                self.ended(empty.into_iter().map(done).collect())?;
            }
            ToHand::Skip(tasks) => {
                tasks.iter().for_each(|task| _ = self.texts.insert(task.seq, task.text.clone()));
                let now = crate::helper::running::now();
                let skipped = |task: &Task| Outcome { start: now, ..Outcome::without_run(task.seq, State::Skipped) };
                self.record(tasks.iter().map(skipped).collect());
            }
            ToHand::Drain { grace } => self.order(&Order::Drain { grace: grace.min(1e9) })?,
            ToHand::Pull { seq, stream, from } => self.pull(seq, stream, from)?,
            ToHand::OnHost { text, variables } => self.order(&Order::OnHost { text, variables })?,
            ToHand::End => {
                // All records are on the disk by then; this closes the file.
                self.journal = None;
                if self.helper.is_some() {
                    self.order(&Order::End)?;
                }
                self.helper = None;
                self.is_over = true;
                self.says.push(ToLead::Gone);
            }
        }
        Ok(())
    }

    fn begin(&mut self, job: u32, deadline: Option<f64>) -> Result<()> {
        let failed = |option: &str, path: &Path, why: io::Error| {
            Error::Failed(format!("{option} {}: it cannot be written to: {why}", names::shown(path)))
        };
        if let (Some(folder), Some(synced)) = (self.settings.journal.clone(), self.synced.take()) {
            let path = journal::file(&folder, self.rank, job);
            self.journal = Some(Writer::create(&path, synced).map_err(|why| failed("--journal", &path, why))?);
        }
        if let Some(folder) = self.settings.results.clone() {
            self.results = Some(Results::open(&folder, self.rank).map_err(|why| failed("--results", &folder, why))?);
        }
        let terms = Terms {
            rank: self.rank,
            workers: self.settings.workers,
            slots: self.slots.clone(),
            timeout: self.settings.timeout,
            speed: self.settings.speed(self.rank),
            retries: self.settings.retries,
            speaks: self.settings.output != Shown::Nothing,
        };
        if self.helper.is_some() {
            self.order(&Order::Begin(terms))?;
            deadline.map_or(Ok(()), |at| self.order(&Order::Deadline(at)))?;
        }
        Ok(())
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        let Some(helper) = &self.helper else { return Ok(()) };
        if helper.order(order).is_ok() {
            return Ok(());
        }
        // Processes that it has started end with it.
        self.helper = None;
        Err(self.helper_is_gone())
    }

    /// The helper is gone, and so is what it has started when this returns.
    fn helper_is_gone(&self) -> Error {
        debug!("rank {}, hand: the helper is gone, with {} tasks in its hands", self.rank, self.texts.len());
        let goes_on = if self.settings.journal.is_some() || self.settings.joblog.is_some() { "; --resume goes on" } else { "" };
        Error::Failed(format!("rank {} on {}: the helper that starts the commands has died{goes_on}", self.rank, self.host))
    }

    /// The helper says something; `None` if it is gone.
    ///
    /// # Errors
    /// If it is gone before its time.
    pub fn hear(&mut self, news: Option<News>) -> Result<()> {
        match news {
            Some(News::Ended(outcomes)) => self.ended(outcomes),
            Some(News::OnHost(mut outcome)) => {
                keep_last(&mut outcome)?;
                for capture in [&mut outcome.out, &mut outcome.err] {
                    discard(capture);
                    capture.kept = Kept::Nowhere;
                }
                self.says.push(ToLead::OnHost(outcome));
                Ok(())
            }
            None if self.is_over => Ok(()),
            None => {
                let why = self.helper_is_gone();
                self.helper = None;
                Err(why)
            }
        }
    }

    /// Records that this process was asked to end soon.
    pub fn signalled(&mut self) {
        self.signals += 1;
        self.says.push(ToLead::Signalled { again: self.signals > 1 });
    }

    /// Records are on the disk.
    ///
    /// # Errors
    /// If they are not.
    pub fn synced(&mut self, records: io::Result<u64>) -> Result<()> {
        let records = records.map_err(|why| {
            let folder = self.settings.journal.clone().unwrap_or_default();
            Error::Failed(format!("--journal {}: rank {} cannot write its records: {why}", names::shown(&folder), self.rank))
        })?;
        let ended: Vec<Outcome> = self.unsynced.drain(..self.unsynced.len().min(records as usize)).collect();
        let left = ended.iter().filter(|outcome| outcome.state == State::Again).filter_map(|outcome| self.left.remove(&outcome.seq));
        let left: Vec<Outcome> = left.collect();
        self.says.push(ToLead::Ended(ended));
        if !left.is_empty() {
            self.says.push(ToLead::Ended(left));
        }
        self.tell_freed();
        Ok(())
    }

    fn ended(&mut self, outcomes: Vec<Outcome>) -> Result<()> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let over = || outcomes.iter().filter(|outcome| outcome.state != State::Again);
        // A task that takes no time at all is still one that was measured.
        let times = || over().map(|outcome| outcome.runtime.max(1e-6));
        self.freed.tasks += over().count() as u64;
        self.freed.failed += over().filter(|outcome| outcome.state == State::Failed).count() as u64;
        self.freed.time += times().sum::<f64>();
        self.freed.squares += times().map(|time| time * time).sum::<f64>();
        for outcome in over() {
            let demand = self.demands.remove(&outcome.seq).unwrap_or_else(|| Demand::of(Needs::default()));
            self.freed.demand = self.freed.demand.plus(demand);
        }
        let (left, mut ended): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|outcome| outcome.state == State::Left);
        for outcome in &mut ended {
            self.keep(outcome)?;
        }
        self.record(ended);
        self.leave(left);
        self.tell_freed();
        Ok(())
    }

    /// Reports tasks that are left; after the record of an attempt before, if that waits for its sync.
    fn leave(&mut self, left: Vec<Outcome>) {
        let again = self.unsynced.iter().filter(|outcome| outcome.state == State::Again);
        let again: HashSet<u64> = again.map(|outcome| outcome.seq).collect();
        left.iter().for_each(|outcome| _ = self.texts.remove(&outcome.seq));
        let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(|outcome| again.contains(&outcome.seq));
        self.left.extend(later.into_iter().map(|outcome| (outcome.seq, outcome)));
        if !now.is_empty() {
            self.says.push(ToLead::Ended(now));
        }
    }

    /// Says that there is room for other tasks; later, if the disk does not keep up with the records.
    fn tell_freed(&mut self) {
        if self.freed.tasks > 0 && self.unsynced.len() <= UNSYNCED {
            let Freed { tasks, failed, time, squares, demand } = std::mem::take(&mut self.freed);
            self.says.push(ToLead::Freed { tasks, failed, time, squares, demand });
        }
    }

    /// Puts outputs where they belong: into files of results, aside until they are printed, or away.
    fn keep(&mut self, outcome: &mut Outcome) -> Result<()> {
        let is_printed = self.settings.output == Shown::Outputs && self.results.is_none() && outcome.state.is_final();
        let seq = outcome.seq;
        if outcome.state == State::Failed && self.settings.report.is_some() {
            keep_last(outcome)?;
        }
        for (stream, capture) in [(Stream::Out, &mut outcome.out), (Stream::Err, &mut outcome.err)] {
            if let (Some(results), true) = (&mut self.results, outcome.state.is_final()) {
                let failed = |why| Error::Failed(format!("--results: the output of task {seq} cannot be written: {why}"));
                results.write(seq, stream, capture).map_err(failed)?;
            }
            if !is_printed {
                discard(capture);
                capture.kept = Kept::Nowhere;
            }
            if let Kept::File(path) = &mut capture.kept {
                let path = PathBuf::from(OsStr::from_bytes(&std::mem::take(path)));
                self.long.insert((seq, stream), (path, capture.bytes));
            }
        }
        Ok(())
    }

    /// Writes records; without a journal they count at once.
    fn record(&mut self, ended: Vec<Outcome>) {
        if ended.is_empty() {
            return;
        }
        match &self.journal {
            Some(journal) => {
                let mut bytes = Vec::with_capacity(128 * ended.len());
                for outcome in &ended {
                    let text = self.texts.get(&outcome.seq).map_or(&b""[..], |text| text);
                    record::write(&mut bytes, &self.host, outcome, text);
                }
                journal.append(bytes, ended.len() as u64);
                ended.iter().filter(|outcome| outcome.state.is_final()).for_each(|outcome| _ = self.texts.remove(&outcome.seq));
                self.unsynced.extend(ended);
            }
            None => {
                ended.iter().filter(|outcome| outcome.state.is_final()).for_each(|outcome| _ = self.texts.remove(&outcome.seq));
                self.says.push(ToLead::Ended(ended));
            }
        }
    }

    fn pull(&mut self, seq: u64, stream: Stream, from: u64) -> Result<()> {
        let failed = |why: io::Error| Error::Failed(format!("the output of task {seq} cannot be read: {why}"));
        let Some((path, all)) = self.long.get(&(seq, stream)) else {
            self.says.push(ToLead::Piece { seq, bytes: Vec::new() });
            return Ok(());
        };
        let file = File::open(path).map_err(failed)?;
        let mut bytes = vec![0; PIECE.min(all.saturating_sub(from) as usize)];
        let mut length = 0;
        while length < bytes.len() {
            match file.read_at(&mut bytes[length..], from + length as u64).map_err(failed)? {
                0 => break,
                read => length += read,
            }
        }
        bytes.truncate(length);
        if bytes.is_empty() {
            let _ = std::fs::remove_file(path);
            self.long.remove(&(seq, stream));
        }
        self.says.push(ToLead::Piece { seq, bytes });
        Ok(())
    }
}

/// Keeps the end of what went to standard error.
fn keep_last(outcome: &mut Outcome) -> Result<()> {
    let failed = |why| Error::Failed(format!("the output of task {} cannot be read: {why}", outcome.seq));
    outcome.last = last(&outcome.err, LAST_BYTES).map_err(failed)?;
    Ok(())
}

/// The files of `--results`.
enum Results {
    /// Two for the rank, to which all is appended.
    ByRank { out: File, err: File },
    /// Two for each task, whose names begin with this when `{#}` is its number.
    ByTask(Vec<u8>),
}

impl Results {
    fn open(folder: &Path, rank: RankId) -> io::Result<Results> {
        let pattern = folder.as_os_str().as_bytes();
        if pattern.windows(3).any(|part| part == b"{#}") {
            return Ok(Results::ByTask(pattern.to_vec()));
        }
        std::fs::create_dir_all(folder)?;
        let open = |end: &str| OpenOptions::new().append(true).create(true).open(folder.join(format!("rank-{rank}.{end}")));
        Ok(Results::ByRank { out: open("out")?, err: open("err")? })
    }

    fn write(&mut self, seq: u64, stream: Stream, capture: &Capture) -> io::Result<()> {
        let (mut own, end);
        let to: &mut File = match self {
            Results::ByRank { out, err } => match stream {
                Stream::Out => out,
                Stream::Err => err,
            },
            Results::ByTask(pattern) => {
                end = if stream == Stream::Out { "out" } else { "err" };
                let name = replaced(pattern, b"{#}", seq.to_string().as_bytes());
                let path = PathBuf::from(OsStr::from_bytes(&[&name, &b"."[..], end.as_bytes()].concat()));
                path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                own = File::create(path)?;
                &mut own
            }
        };
        match &capture.kept {
            Kept::Nowhere => Ok(()),
            Kept::Here(text) => to.write_all(text),
            Kept::File(path) => io::copy(&mut File::open(OsStr::from_bytes(path))?.take(capture.bytes), to).map(|_| ()),
        }
    }
}

fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|part| part == what) {
        out.extend(&rest[..at]);
        out.extend(by);
        rest = &rest[at + what.len()..];
    }
    out.extend(rest);
    out
}
