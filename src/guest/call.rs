//! Collective calls: all ranks agree on the call before they carry it out, and on each other's failures.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::buffers::Buffers;
use super::interrupts::Interrupts;
use super::letters::{Op, kinds, read};
use super::measured::Measured;
use super::options::Options;
use super::run::{Item, Run};
use super::status::{Failure, Result, Status};
use super::voice::Voice;
use crate::topology::RankId;
use crate::transport::mpi::guest::{self as carrier, Link, Patience, Received};
use crate::transport::wire;
use crate::trigger::Watch;

/// The ranks of a communicator, inside another program.
///
/// Opened, it duplicates the communicator, and changes nothing else in the process. It is used by the thread that opened it. Dropping it
/// does not communicate, and leaves its communicators to MPI; [`close`](World::close) gives them back.
pub struct World {
    pub(super) state: RefCell<State>,
    /// Whether a callback is running.
    pub(super) in_callback: Cell<bool>,
    /// Whether process functions are running on other threads.
    pub(super) has_workers: AtomicBool,
    owner: ThreadId,
    id: u64,
    pub(super) rank: RankId,
    ranks: u32,
}

/// The state of a world.
pub(super) struct State {
    /// `None` once it is closed.
    pub link: Option<Link>,
    pub options: Options,
    /// Number of the call.
    pub(super) call: u64,
    lost: Option<Failure>,
    /// Time at which the wait began, or at which something last came that was waited for.
    since: Instant,
    pub made: u64,
    pub watch: Option<(String, Watch)>,
    pub measured: Measured,
    /// Loops that are open, by their shared number.
    pub loops: Vec<bool>,
    pub roots: Vec<Item>,
    pub run: Option<Run>,
    /// For runs under schedulers of the registry, once there was one.
    pub nodes: Option<Nodes>,
    pub interrupts: Interrupts,
    pub buffers: Buffers,
}

/// The ranks as nodes: a world on duplicates of the guest's communicators, kept from run to run. Its end is collective, so it is not dropped
/// with the guest's world, but at its closing.
pub(super) type Nodes = ManuallyDrop<crate::transport::world::World>;

/// Result of an agreement, the same on all ranks.
pub(super) struct Agreed {
    pub sums: Vec<f64>,
    pub most: Vec<f64>,
    /// Data that ranks sent to all.
    pub said: Vec<(RankId, Vec<u8>)>,
}

/// Values that must be the same on all ranks, each with its name.
pub(super) type Same<'a> = &'a [(&'static str, u64)];

impl World {
    pub(super) fn with(state: State, rank: RankId, ranks: u32) -> World {
        static WORLDS: AtomicU64 = AtomicU64::new(1);
        let owner = std::thread::current().id();
        let id = WORLDS.fetch_add(1, Ordering::Relaxed);
        World { state: RefCell::new(state), in_callback: Cell::new(false), has_workers: AtomicBool::new(false), owner, id, rank, ranks }
    }

    /// This process's rank in the communicator.
    pub fn rank(&self) -> u32 {
        self.rank.get()
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Tells worlds of this process apart.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Checks that this thread may use the world.
    ///
    /// # Errors
    /// Wrong usage on any other thread.
    pub fn check_thread(&self) -> Result<()> {
        if std::thread::current().id() != self.owner {
            return Err(Failure::usage("a world is used by the thread that opened it, and this is another"));
        }
        Ok(())
    }

    /// Checks that a call can begin here.
    pub(super) fn enter(&self) -> Result<()> {
        self.check_thread()?;
        if self.in_callback.get() {
            return Err(Failure::usage("callbacks may call put, result, stop, progress and error only"));
        }
        if self.state.try_borrow().is_err() {
            return Err(in_another_call());
        }
        self.check_open()
    }

    /// Checks that the world is not lost, and that MPI is there.
    pub(super) fn check_open(&self) -> Result<()> {
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        if !carrier::is_active() {
            return Err(Failure::usage("MPI is finalised, and nothing but closing is left"));
        }
        Ok(())
    }

    /// The result of a call that is not collective; a failure ends the job, if that was asked for.
    pub(super) fn concluded<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|failure| {
            if let Ok(state) = self.state.try_borrow() {
                state.abort_if_asked(failure);
            }
        })
    }

    /// Makes a call; panics, and failures after which the world is lost, are reported to the other ranks.
    pub(super) fn call<T>(&self, make: impl FnOnce(&World) -> Result<T>) -> Result<T> {
        self.enter()?;
        let made = catch_unwind(AssertUnwindSafe(|| make(self)));
        self.in_callback.set(false);
        let made = made.unwrap_or_else(|panic| Err(Failure::new(Status::Panic, format!("rank {}: panic: {}", self.rank, said(&panic)))));
        made.inspect_err(|failure| {
            if let Ok(mut state) = self.state.try_borrow_mut() {
                state.conclude(failure);
            }
        })
    }

    /// Runs a callback: most calls are refused meanwhile.
    pub(super) fn back<T>(&self, callback: impl FnOnce() -> T) -> T {
        self.in_callback.set(true);
        let result = callback();
        self.in_callback.set(false);
        result
    }
}

pub(super) fn in_another_call() -> Failure {
    Failure::usage("the world is in another call")
}

fn said(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "of an unknown kind".into())
}

impl State {
    pub fn new(link: Link, options: Options) -> State {
        State {
            link: Some(link),
            options,
            call: 0,
            lost: None,
            since: Instant::now(),
            made: 0,
            watch: None,
            measured: Measured::default(),
            loops: vec![false; carrier::SHARED],
            roots: Vec::new(),
            run: None,
            nodes: None,
            interrupts: Interrupts::default(),
            buffers: Buffers::default(),
        }
    }

    /// The ranks, while the world is open.
    pub fn link(&mut self) -> Result<&mut Link> {
        self.link.as_mut().ok_or_else(|| Failure::usage("the world is closed"))
    }

    pub fn lost(&self) -> Option<&Failure> {
        self.lost.as_ref()
    }

    /// A call has failed.
    fn conclude(&mut self, failure: &Failure) {
        if failure.status.ends_the_world() && self.lost.is_none() {
            self.lost = Some(failure.clone());
            if let Some(link) = &mut self.link {
                let body = wire::write(failure);
                for rank in link.others() {
                    // A rank that it does not reach has failed itself.
                    _ = link.send(rank, kinds::LOST, 0, &body);
                }
                _ = link.poll();
            }
        }
        self.abort_if_asked(failure);
    }

    /// Ends the job after a failure, by the option `on_error=abort`.
    fn abort_if_asked(&self, failure: &Failure) {
        if self.options.aborts {
            eprintln!("equipoise: {failure}");
            carrier::abort(failure.status as i32);
        }
    }

    /// One step of waiting, the only one in a world: polls the network once, or sleeps for a moment.
    pub fn look(&mut self, patience: &mut Patience, whom: &dyn Fn() -> String) -> Result<()> {
        let link = self.link()?;
        let happened = link.poll()?;
        self.hear_of_loss()?;
        if self.serve()? || happened {
            patience.reset();
            return Ok(());
        }
        let waited = self.since.elapsed();
        let beyond = |limit: Option<Duration>| limit.is_some_and(|limit| waited > limit);
        if beyond(self.limit()) {
            let seconds = waited.as_secs_f64();
            let failure = Failure::new(Status::Stuck, format!("{} did not come within {seconds:.1} s", whom()));
            if beyond(self.options.watchdog) {
                eprintln!("equipoise: {failure}");
                carrier::abort(Status::Stuck as i32);
            }
            return Err(failure);
        }
        self.ask()?;
        patience.pause();
        Ok(())
    }

    /// The shorter time limit of waits, if there is one.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.options.timeout.into_iter().chain(self.options.watchdog).min()
    }

    /// Tells ranks that wait that this one is at work.
    pub(super) fn is_at_work(&mut self) -> Result<()> {
        let link = self.link()?;
        for rank in link.others() {
            link.send(rank, kinds::BUSY, 0, &[])?;
        }
        link.poll()?;
        Ok(())
    }

    /// Checks that no rank has given the world up, as far as is known here.
    pub(super) fn hear_of_loss(&mut self) -> Result<()> {
        while self.link()?.take(|word| word.kind == kinds::BUSY).is_some() {
            self.has_progressed();
        }
        if let Some(lost) = self.link()?.take(|word| word.kind == kinds::LOST) {
            let failure: Failure = read(&lost.body)?;
            self.lost.get_or_insert(failure);
        }
        self.lost.clone().map_or(Ok(()), Err)
    }

    /// The time limits begin anew.
    pub fn has_progressed(&mut self) {
        self.since = Instant::now();
    }

    pub(super) fn wait(&mut self, kind: i32, from: RankId) -> Result<Received> {
        let call = self.call;
        let mut patience = Patience::new();
        self.has_progressed();
        // A rank may have given up after it sent what is waited for; both may be here.
        self.hear_of_loss()?;
        loop {
            if let Some(word) = self.link()?.take(|word| word.kind == kind && word.call == call && word.from == from) {
                return Ok(word);
            }
            self.look(&mut patience, &|| format!("rank {from}"))?;
        }
    }

    /// Waits until all letters have left.
    fn flush(&mut self) -> Result<()> {
        let mut patience = Patience::new();
        self.has_progressed();
        while !self.link()?.has_sent() {
            self.look(&mut patience, &|| "a rank that is sent something".into())?;
        }
        Ok(())
    }

    /// Agrees with all ranks that they make the same call with matching arguments; `mine` is the error in this rank's arguments, if there
    /// is one.
    pub fn agree(&mut self, op: Op, mine: Result<()>, same: Same<'_>) -> Result<Agreed> {
        self.agree_with(op, mine, same, &[], &[])
    }

    /// The same, and gives everybody's bytes to everybody, by rank.
    pub fn agree_saying(&mut self, op: Op, mine: Result<()>, same: Same<'_>, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let rank = self.link()?.rank;
        let mut said = self.agree_on(op, mine, same, (&[], &[]), vec![(rank, bytes)])?.said;
        said.sort_by_key(|(rank, _)| *rank);
        Ok(said.into_iter().map(|(_, bytes)| bytes).collect())
    }

    /// The same, and adds up some numbers over all ranks and finds the largest of others.
    pub fn agree_with(&mut self, op: Op, mine: Result<()>, same: Same<'_>, sums: &[f64], most: &[f64]) -> Result<Agreed> {
        self.agree_on(op, mine, same, (sums, most), Vec::new())
    }

    fn agree_on(
        &mut self,
        op: Op,
        mine: Result<()>,
        same: Same<'_>,
        numbers: (&[f64], &[f64]),
        said: Vec<(RankId, Vec<u8>)>,
    ) -> Result<Agreed> {
        self.call += 1;
        let options = self.options.fingerprint();
        let link = self.link()?;
        let rank = link.rank;
        let failure = mine.err().map(|why| (rank, Failure::new(why.status, format!("rank {rank}: {}", why.text))));
        let same_here = std::iter::once(options).chain(same.iter().map(|(_, value)| *value)).map(|value| (value, rank)).collect();
        let mut voice = Voice {
            op: (op, rank),
            other: None,
            same: same_here,
            differs: None,
            sums: numbers.0.to_vec(),
            most: numbers.1.to_vec(),
            failure,
            said,
        };
        voice = self.say(voice)?;
        // A rank that gave up before this one came has said both, and only the first may have been looked at.
        self.link()?.poll()?;
        self.hear_of_loss()?;
        if let Some(other) = voice.other {
            let ((one, first), (two, second)) = if voice.op.1 < other.1 { (voice.op, other) } else { (other, voice.op) };
            let (one, two) = (one.name(), two.name());
            return Err(Failure::usage(format!("rank {first} calls {one} and rank {second} calls {two}: all ranks must call the same")));
        }
        if let Some((_, failure)) = voice.failure {
            return Err(failure);
        }
        if let Some((at, first, second)) = voice.differs {
            let name = if at == 0 { "options" } else { same.get(at as usize - 1).map_or("argument", |(name, _)| name) };
            return Err(Failure::usage(format!("rank {second}: {name}: not the same as on rank {first}")));
        }
        Ok(Agreed { sums: voice.sums, most: voice.most, said: voice.said })
    }

    /// Rank 0 gets something from every rank, and gives something to every rank. All agree beforehand.
    pub fn through_first<A, B>(&mut self, mine: &A, decide: impl FnOnce(&mut State, Vec<A>) -> Result<Vec<B>>) -> Result<B>
    where
        A: Serialize + DeserializeOwned,
        B: Serialize + DeserializeOwned,
    {
        let call = self.call;
        let link = self.link()?;
        let (rank, ranks) = (link.rank, link.ranks);
        if rank != RankId::FIRST {
            link.send(RankId::FIRST, kinds::COLLECT, call, &wire::write(mine))?;
            self.flush()?;
            let word = self.wait(kinds::SCATTER, RankId::FIRST)?;
            let answer: Result<B> = read(&word.body)?;
            return answer;
        }
        let mut all: Vec<A> = vec![read(&wire::write(mine))?];
        for from in RankId::all(ranks).skip(1) {
            let word = self.wait(kinds::COLLECT, from)?;
            all.push(read(&word.body)?);
        }
        let decided = decide(self, all);
        match decided {
            Ok(answers) => {
                let mut first = None;
                for (rank, answer) in RankId::all(ranks).zip(answers) {
                    match rank {
                        RankId::FIRST => first = Some(answer),
                        rank => {
                            let body: Bytes = wire::write(&Ok::<B, Failure>(answer));
                            self.link()?.send(rank, kinds::SCATTER, call, &body)?;
                        }
                    }
                }
                self.flush()?;
                first.ok_or_else(|| Failure::new(Status::Failed, "nothing was decided for rank 0"))
            }
            Err(failure) => {
                let body = wire::write(&Err::<B, Failure>(failure.clone()));
                for rank in RankId::all(ranks).skip(1) {
                    self.link()?.send(rank, kinds::SCATTER, call, &body)?;
                }
                self.flush()?;
                Err(failure)
            }
        }
    }

    /// Agrees with all ranks that they are still here, before a call of MPI that waits for all of them and that nothing ends.
    pub fn confirm(&mut self, op: Op) -> Result<()> {
        self.agree(op, Ok(()), &[]).map(drop)
    }

    /// Gives the communicators back. All agree beforehand.
    pub fn end(&mut self) -> Result<()> {
        self.flush()?;
        drop(self.nodes.take().map(ManuallyDrop::into_inner));
        match self.link.take() {
            Some(link) => Ok(link.close()?),
            None => Ok(()),
        }
    }
}
