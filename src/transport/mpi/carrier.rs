//! State shared by the ports of a rank and its executor: both directions of the network, the nodes, and the work.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use log::{Level, debug, log_enabled, trace};

use super::abort;
use super::collectives::Collectives;
use super::ffi::{Comm, Summing};
use super::heartbeat::Heartbeat;
use super::incoming::{Heard, Incoming};
use super::local_nodes::Run;
use super::outbox::Outbox;
use super::watchdog::{Action, ControlMessage, Watchdog};
use super::workers::{Owner, Slices, WorkerPool};
use super::{Options, STUCK};
use crate::error::{Error, Result};
use crate::topology::{Overlay, RankId};
use crate::transport::interrupt::Interrupt;
use crate::transport::work::since;
use crate::transport::{Envelope, Event, Finished, Message, Numbered, OutgoingBody, Signal, Ticks, wire};

/// Maximum number of messages that one poll of the network takes, so that programs get to see them: while a program does not ask, what
/// its rank cannot take yet stays with the senders.
const BATCH: usize = 16;
/// The same limit when a program asks what has arrived by now.
const TURN_BATCH: usize = 1024;

/// Polls of the network between two collections of completed sends, unless a program waits for them.
const COLLECT_EVERY: u64 = 8;

/// Polls of the network between two checks of the watchdog (at most 64 ms apart, when the rank sleeps between polls).
const WATCH_EVERY: u64 = 64;

pub(super) struct Carrier {
    pub rank: RankId,
    pub ranks: u32,
    pub options: Options,
    pub began: Instant,
    pub heartbeat: Heartbeat,
    pub state: RefCell<State>,
    /// Seed for programs; may change between runs.
    pub seed: Cell<u64>,
    /// Whether MPI's own collective operations are used on native overlays; may change between runs.
    pub native: Cell<bool>,
}

/// Our own duplicates of the communicator: one for headers and short messages, one for the bodies of long messages.
pub(super) struct Links {
    pub comm: Comm,
    pub bulk: Comm,
}

pub(super) struct State {
    pub(super) me: RankId,
    ranks: u32,
    began: Instant,
    host: String,
    /// Gone when the world has ended.
    pub(super) links: Option<Links>,
    pub outbox: Outbox,
    outbox_limit: usize,
    /// Gone when the world has ended.
    pub(super) incoming: Option<Incoming>,
    pub collectives: Collectives,
    /// Ranks that died, where MPI continues without them.
    pub lost: BTreeSet<RankId>,
    pub run: Option<Run>,
    /// Number of the latest run.
    runs: u32,
    /// Messages of the next run: another rank has begun it.
    early: VecDeque<Message>,
    pub pool: WorkerPool,
    pub slices: Slices,
    pub(super) watchdog: Watchdog,
    /// Something counted as progress since the watchdog last looked: cheaper than a poll at the clock each time.
    pub(super) progress: bool,
    signals: Vec<(Signal, Arc<AtomicBool>)>,
    /// Failure of an MPI call in a port's method, if there was one.
    pub failure: Option<Error>,
    /// Whether a lower rank reports that its program failed.
    pub lower_fails: bool,
    /// The request to end, if there can be one.
    pub interrupt: Option<Interrupt>,
    /// Whether the grace after the request is over, on this rank or on one that has reported it to rank 0. The current run is given up.
    pub overdue: bool,
    /// Number of polls of the network.
    pub polls: u64,
}

impl Carrier {
    pub fn now(&self) -> Ticks {
        since(self.began)
    }
}

impl State {
    pub fn new(links: Links, host: String, options: &Options, began: Instant, signals: Vec<(Signal, Arc<AtomicBool>)>) -> Result<State> {
        let (me, ranks) = (links.comm.rank()?, links.comm.size()?);
        let piece = options.chunk.clamp(1, i32::MAX as usize);
        let inline = options.inline.min(i32::MAX as usize - wire::HEADER);
        Ok(State {
            me,
            ranks,
            began,
            host,
            incoming: Some(Incoming::new(&links.comm, ranks, inline, piece, options.spare)?),
            links: Some(links),
            outbox: Outbox::new(inline, piece),
            outbox_limit: options.outbox.max(1),
            collectives: Collectives::default(),
            lost: BTreeSet::new(),
            run: None,
            runs: 0,
            early: VecDeque::new(),
            pool: WorkerPool::new(options.workers, began),
            slices: Slices::default(),
            watchdog: Watchdog::new(me, ranks, options.watchdog, Instant::now()),
            progress: false,
            signals,
            failure: None,
            lower_fails: false,
            interrupt: None,
            overdue: false,
            polls: 0,
        })
    }

    /// Begins a run, and delivers the messages that other ranks have sent for it already.
    pub fn begin(&mut self, overlay: Rc<Overlay>) -> u32 {
        self.runs += 1;
        self.run = Some(Run::new(self.runs, overlay, self.me));
        self.progressed();
        for message in std::mem::take(&mut self.early) {
            self.deliver(message);
        }
        for rank in self.lost.clone() {
            self.tell_of_loss(rank);
        }
        self.runs
    }

    /// The current run, if it has this number.
    pub fn run_of(&mut self, number: u32) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.number == number)
    }

    /// Ends the run, and returns its remainder: to be dropped when the state is free, since it may hold ports.
    pub fn end(&mut self) -> (Option<Run>, Slices) {
        self.pool.recall();
        self.collectives.end_run();
        self.progressed();
        (self.run.take(), std::mem::take(&mut self.slices))
    }

    pub fn progressed(&mut self) {
        self.progress = true;
    }

    /// Whether something goes on here, or is known to happen later, that the watchdog waits for.
    pub fn is_working(&self) -> bool {
        self.pool.is_busy() || self.slices.is_busy() || self.run.as_ref().is_some_and(|run| run.expected > since(self.began))
    }

    pub fn has_room(&self) -> bool {
        self.outbox.bytes() < self.outbox_limit
    }

    /// Sends a message of the present run.
    pub fn send(&mut self, envelope: Envelope, outgoing: OutgoingBody) {
        let Some(run) = self.run.as_mut().filter(|run| run.number == envelope.scope.run) else { return };
        if envelope.is_progress() {
            self.progress = true;
        }
        if let Some(local_node) = run.place_of(envelope.dst) {
            match outgoing.into_body() {
                Ok(body) => {
                    run.push(local_node, Event::Message(Message { envelope, body }));
                }
                Err(why) => {
                    self.failure.get_or_insert(why);
                }
            }
            return;
        }
        let placement = &run.overlay.placement;
        assert!(envelope.dst < placement.nodes(), "node {} sends to node {}, which is not there", envelope.src, envelope.dst);
        let to = placement.rank_of(envelope.dst);
        if self.lost.contains(&to) {
            return;
        }
        run.sent[to.index()] += 1;
        let Some(links) = &self.links else { return };
        if let Err(why) = self.outbox.send(&links.comm, &links.bulk, to, &envelope, outgoing) {
            self.failure.get_or_insert(why);
        }
    }

    /// One poll for all kinds of events. Returns true if something has happened. `watched`: includes the watchdog.
    pub fn poll(&mut self, watched: bool) -> Result<bool> {
        if let Some(why) = self.failure.take() {
            return Err(why);
        }
        self.polls += 1;
        let mut moved = self.receive()?;
        // With each call MPI polls the network, and, where it is configured to yield, gives the processor away if it finds nothing there.
        if self.polls.is_multiple_of(COLLECT_EVERY) || !self.has_room() || self.run.as_ref().is_none_or(Run::has_ended) {
            moved |= self.outbox.collect()?;
        }
        moved |= self.local_events();
        moved |= self.poll_collectives()?;
        self.look_for_losses()?;
        if watched && self.polls.is_multiple_of(WATCH_EVERY) {
            self.watch()?;
        }
        let room = self.has_room();
        if let Some(run) = &mut self.run {
            run.wake(room);
        }
        Ok(moved)
    }

    fn receive(&mut self) -> Result<bool> {
        let turn = self.run.as_ref().is_some_and(Run::takes_turn);
        let mut moved = false;
        for _ in 0..if turn { TURN_BATCH } else { BATCH } {
            let (Some(links), Some(incoming)) = (&self.links, &mut self.incoming) else { break };
            match incoming.poll(&links.comm, &links.bulk)? {
                Heard::Nothing => break,
                Heard::Something => moved = true,
                Heard::Control(source, message) => self.heard(source, &message)?,
                Heard::Message(message) => {
                    moved = true;
                    self.received(&message);
                    if self.deliver(message) && !turn {
                        break;
                    }
                }
            }
        }
        let mut complete = Vec::new();
        if let Some(incoming) = &mut self.incoming {
            incoming.finish(|message| complete.push(message))?;
        }
        for message in complete {
            moved = true;
            self.received(&message);
            self.deliver(message);
        }
        Ok(moved)
    }

    fn received(&mut self, message: &Message) {
        self.progress |= message.envelope.is_progress();
    }

    /// Gives a message from another rank to its node. True if the node waits for just that.
    fn deliver(&mut self, message: Message) -> bool {
        let envelope = &message.envelope;
        if log_enabled!(Level::Trace) {
            let Envelope { src, dst, scope, tag, .. } = envelope;
            trace!("rank {}: {} from node {src} arrives for node {dst} ({scope})", self.me, Numbered(*tag));
        }
        if let Some(run) = self.run.as_mut().filter(|run| run.number == envelope.scope.run) {
            run.received += 1;
            return match run.place_of(envelope.dst) {
                Some(local_node) => run.push(local_node, Event::Message(message)),
                None => {
                    let what = format!("for node {}", envelope.dst);
                    let why = format!("the node does not live on rank {}: do all ranks run the same overlay?", self.me);
                    self.failure.get_or_insert(Error::Garbled { from: envelope.src, what, why });
                    false
                }
            };
        }
        // A run ends only after all its messages have arrived, so any other message belongs to the next run.
        if envelope.scope.run > self.runs {
            self.early.push_back(message);
        }
        false
    }

    /// Timers, work and signals.
    fn local_events(&mut self) -> bool {
        let mut moved = false;
        if let Some(run) = &mut self.run
            && run.timers.first().is_some()
        {
            let now = since(self.began);
            while let Some((timer, (local_node, scope))) = run.timers.take_due(now) {
                run.push(local_node, Event::Timer { scope, timer });
                moved = true;
            }
        }
        while let Some((owner, finished)) = self.pool.next_done() {
            self.finished(owner, finished);
            moved = true;
        }
        for (signal, raised) in &self.signals {
            // The usual look costs a read only.
            if raised.load(Ordering::Relaxed) && raised.swap(false, Ordering::Relaxed) {
                let Some(run) = &mut self.run else { continue };
                for local_node in 0..run.local_nodes.len() {
                    run.push(local_node, Event::Signal(*signal));
                }
                moved = true;
            }
        }
        moved
    }

    /// Tells a node that its work has ended.
    pub fn finished(&mut self, owner: Owner, finished: Finished) {
        self.progress = true;
        if let Some(run) = self.run_of(owner.scope.run) {
            run.push(owner.local_node, Event::Finished { scope: owner.scope, finished });
        }
    }

    /// Returns the time from now until something happens by itself: the first timer runs out.
    pub fn next_timer(&self) -> Option<Duration> {
        let at = self.run.as_ref()?.timers.first()?;
        Some(Duration::from_nanos(at.saturating_sub(since(self.began))))
    }

    /// Begins to add up how many messages of this run were sent to this rank. Its own programs have ended.
    pub fn count(&mut self) -> Result<Option<Summing>> {
        let sent = self.run.as_ref().map_or_else(|| vec![0; self.ranks as usize], |run| run.sent.clone());
        self.links.as_ref().map(|links| links.comm.sum_for_me(sent)).transpose()
    }

    /// Gives the communicators back, and ends the workers. All ranks must take part.
    pub fn close(&mut self) -> Result<()> {
        self.pool.dismiss();
        if let Some(incoming) = self.incoming.take() {
            incoming.close()?;
        }
        self.collectives.close()?;
        if let Some(links) = self.links.take() {
            links.bulk.free()?;
            links.comm.free()?;
        }
        Ok(())
    }

    /// Sends a word to another carrier.
    pub fn tell(&mut self, to: RankId, message: ControlMessage) -> Result<()> {
        let Some(links) = self.links.as_ref().filter(|_| !self.lost.contains(&to)) else { return Ok(()) };
        let mut bytes = Vec::new();
        wire::write_into(&message, &mut bytes);
        self.outbox.send_control(&links.comm, to, bytes)
    }

    fn tell_others(&mut self, message: ControlMessage) -> Result<()> {
        let me = self.me;
        RankId::all(self.ranks).filter(|&rank| rank != me).try_for_each(|rank| self.tell(rank, message))
    }

    fn heard(&mut self, source: RankId, message: &[u8]) -> Result<()> {
        let garbled = |why: wire::Unreadable| Error::GarbledByRank { rank: source, what: "between carriers".into(), why: why.to_string() };
        let now = self.note_progress();
        let message = wire::read(message).map_err(garbled)?;
        debug!("rank {}: rank {source} says {message:?}", self.me);
        match message {
            ControlMessage::HowLong { round } => {
                self.watchdog.asked(source, now);
                let age = if self.is_working() { Duration::ZERO } else { self.watchdog.age(now) };
                self.tell(source, ControlMessage::ThisLong { round, nanos: u64::try_from(age.as_nanos()).unwrap_or(u64::MAX) })?;
            }
            ControlMessage::ThisLong { round, nanos } => self.watchdog.answered(source, round, Duration::from_nanos(nanos)),
            ControlMessage::Tell => {
                self.watchdog.noted(now);
                self.say_what_we_wait_for(now);
            }
            ControlMessage::Failing => self.lower_fails |= source < self.me,
            ControlMessage::Overdue { signal } => {
                if let Some(interrupt) = &self.interrupt {
                    interrupt.ask(signal);
                    self.overdue = true;
                }
            }
        }
        Ok(())
    }

    fn watch(&mut self) -> Result<()> {
        let now = self.note_progress();
        if let Some(interrupt) = self.interrupt.as_ref().filter(|interrupt| !self.overdue && interrupt.is_overdue()) {
            // Rank 0 has the record.
            let signal = interrupt.signal();
            self.overdue = true;
            if self.me != RankId::FIRST {
                self.tell(RankId::FIRST, ControlMessage::Overdue { signal })?;
            }
        }
        let action = self.watchdog.poll(now, self.is_working());
        if action != Action::Nothing {
            debug!("rank {}: watchdog, without progress for {}: {action:?}", self.me, seconds(self.watchdog.age(now)));
        }
        match action {
            Action::Nothing => {}
            Action::Ask { round } => self.tell_others(ControlMessage::HowLong { round })?,
            Action::Report { silent } => {
                abort::say(&format!("equipoise: no progress for {}: {}", seconds(self.watchdog.timeout()), verdict(self.ranks, &silent)));
                self.tell_others(ControlMessage::Tell)?;
                self.say_what_we_wait_for(now);
            }
            Action::End => {
                abort::flush();
                super::ffi::abort(STUCK);
            }
        }
        Ok(())
    }

    /// Tells the watchdog of progress, and returns the time.
    fn note_progress(&mut self) -> Instant {
        let now = Instant::now();
        if std::mem::take(&mut self.progress) {
            self.watchdog.progressed(now);
        }
        now
    }

    fn say_what_we_wait_for(&self, now: Instant) {
        let nodes = self.run.as_ref().map_or_else(|| "\n  it is between two runs, or ends".into(), Run::tell);
        let out = match self.outbox.len() {
            0 => String::new(),
            sends => format!("; {sends} sends ({} bytes) have not left", self.outbox.bytes()),
        };
        let coming = match self.incoming.as_ref().map_or(0, Incoming::len) {
            0 => String::new(),
            messages => format!("; {messages} messages are on their way in"),
        };
        let age = seconds(self.watchdog.age(now));
        abort::say(&format!("equipoise: rank {} on {} has made no progress for {age}{out}{coming}{nodes}", self.me, self.host));
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

/// Finding of the watchdog, as the end of a sentence.
fn verdict(ranks: u32, silent: &[RankId]) -> String {
    match silent {
        [] if ranks == 1 => "its only rank waits for what never comes".into(),
        [] => format!("all {ranks} ranks wait for each other"),
        [rank] => format!("rank {rank} does not answer, and the other ranks wait"),
        many => {
            let list: Vec<String> = many.iter().take(20).map(RankId::to_string).collect();
            let more = if many.len() > 20 { ", .." } else { "" };
            format!("ranks {}{more} do not answer, and the other ranks wait", list.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_a_sentence() {
        assert_eq!(verdict(4, &[]), "all 4 ranks wait for each other");
        assert_eq!(verdict(4, &[RankId::new(2)]), "rank 2 does not answer, and the other ranks wait");
        assert_eq!(verdict(4, &[2, 3].map(RankId::new)), "ranks 2, 3 do not answer, and the other ranks wait");
        assert!(verdict(64, &RankId::all(64).collect::<Vec<_>>()).contains("19, .. do"));
        assert_eq!(seconds(Duration::from_millis(2040)), "2 s");
        assert_eq!(seconds(Duration::from_millis(2160)), "2.2 s");
    }
}
