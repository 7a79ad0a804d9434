//! Tasks that create tasks: roots on every rank, results return to the rank where the root was put.
//!
//! Under `steal` and `static` a rank processes its newest task of the highest priority; `stealing.rs` describes the distribution of tasks
//! and the detection of the end. Every other scheduler is the registry's (`scheduled.rs`).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use bytes::Bytes;

use super::call::{World, in_another_call};
use super::letters::Op;
use super::places::{Aligned, Receive};
use super::run::{Item, RESULT, Root, Run, STOP};
use super::scheduled;
use super::status::{Failure, Result, Status, split};
use super::task::{Deeds, Place, Process, Task, check_cost, check_size, copied};
use crate::schedule::Chosen;
use crate::topology::RankId;
use crate::transport::mpi::guest::Patience;

/// Way in which tasks are distributed.
enum Spread {
    Steal,
    Stay,
    /// Distribution by a scheduler of the registry.
    Under(Chosen),
}

fn scheduler(name: &str, ranks: u32, workers: usize) -> Result<Spread> {
    match name.trim() {
        "" | "steal" => Ok(Spread::Steal),
        "static" => Ok(Spread::Stay),
        name => {
            let chosen = scheduled::find(name, ranks)?;
            match workers {
                0 => Ok(Spread::Under(chosen)),
                _ => Err(Failure::usage(format!("scheduler {name} processes tasks on the calling thread: option workers must be 0"))),
            }
        }
    }
}

fn check_sizes(roots: &[Item], largest: usize) -> Result<()> {
    roots.iter().try_for_each(|item| {
        check_size(item.body.len(), largest).map_err(|why| Failure::new(why.status, format!("root {}: {}", item.root.index, why.text)))
    })
}

impl World {
    /// Puts a root for the next run; also within a callback.
    ///
    /// # Errors
    /// Wrong usage, with a wrong cost; if there is no memory for the body.
    pub fn put(&self, body: &[u8], cost: f64, priority: i32) -> Result<()> {
        self.check_thread()?;
        self.check_open()?;
        self.concluded(check_cost(cost).and_then(|()| copied(body, "a task's body")).and_then(|body| {
            let mut state = self.state.try_borrow_mut().map_err(|_| in_another_call())?;
            let root = Root { rank: self.rank, index: state.roots.len() as u64 };
            state.roots.push(Item { root, priority, cost, body: body.into() });
            Ok(())
        }))
    }

    /// Processes all roots, and the tasks that they create, on all ranks. `on_result` is called for each result of this rank's roots with
    /// the rank that computed it and the root's number. Collective; returns when all tasks are done.
    ///
    /// # Errors
    /// A callback's return value other than 0, or a root that is too large for the scheduler; then all tasks are dropped.
    pub fn run(&self, scheduler: &str, process: Process<'_>, on_result: Option<Receive<'_>>) -> Result<()> {
        self.run_if(scheduler, Ok(process), on_result)
    }

    #[doc(hidden)]
    pub fn run_if(&self, name: &str, process: Result<Process<'_>>, mut on_result: Option<Receive<'_>>) -> Result<()> {
        self.call(|world| {
            let workers = world.state.borrow().options.workers;
            let checked = scheduler(name, world.ranks(), workers).and_then(|spread| Ok((spread, process?)));
            let (checked, mine) = split(checked);
            {
                let mut state = world.state.borrow_mut();
                let roots = std::mem::take(&mut state.roots);
                let largest = if matches!(checked, Some((Spread::Under(_), _))) { scheduled::LARGEST_BODY } else { usize::MAX };
                let mine = mine.and_then(|()| check_sizes(&roots, largest));
                let steals = matches!(checked, Some((Spread::Steal, _)));
                let name = if steals { "steal" } else { name.trim() };
                let hash = name.bytes().fold(17u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
                state.agree(Op::Run, mine, &[("scheduler", hash)])?;
                state.made += 1;
                let (number, seed) = (state.made, state.options.seed);
                let mut run = Run::new(number, world.rank, world.ranks(), seed, steals);
                roots.into_iter().for_each(|root| run.queue_up(root));
                state.run = Some(run);
            }
            let Some((spread, process)) = checked else { return Err(Failure::usage("no process function")) };
            let ran = match (spread, workers) {
                (Spread::Under(chosen), _) => world.run_under(chosen, process, &mut on_result),
                (_, 0) => world.process_here(process, &mut on_result),
                (_, workers) => {
                    world.has_workers.store(true, Ordering::Relaxed);
                    world.process_there(workers, process, &mut on_result)
                }
            };
            world.has_workers.store(false, Ordering::Relaxed);
            let mut state = world.state.borrow_mut();
            if ran.is_err() {
                state.run = None;
                return ran;
            }
            let failure = state.run.as_mut().and_then(|run| run.failure.take());
            // Others' last questions are answered meanwhile.
            let agreed = state.agree(Op::Run, failure.map_or(Ok(()), Err), &[]);
            state.run = None;
            state.purge();
            agreed.map(drop)
        })
    }

    /// Answers other ranks, in long tasks and between iterations. Cheap.
    ///
    /// # Errors
    /// Wrong usage, on another thread than the world's; why the world is lost, if it is.
    pub fn progress(&self) -> Result<()> {
        match self.check_thread() {
            Ok(()) => {
                self.check_open()?;
                self.serve_others();
                if let Ok(mut state) = self.state.try_borrow_mut() {
                    state.hear_of_loss()?;
                }
            }
            // The thread of the world answers others while worker threads compute.
            Err(_) if self.has_workers.load(Ordering::Relaxed) => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }

    pub(super) fn serve_others(&self) {
        // Errors show at the next wait.
        if let Ok(mut state) = self.state.try_borrow_mut()
            && state.link.as_mut().is_some_and(|link| link.poll().is_ok())
        {
            _ = state.serve();
        }
    }

    pub(super) fn with_run<T>(&self, what: impl FnOnce(&mut Run) -> T) -> Option<T> {
        self.state.borrow_mut().run.as_mut().map(what)
    }

    pub(super) fn to_root(&self, root: Root, bytes: Vec<u8>) {
        let mut state = self.state.borrow_mut();
        let (rank, number) = (self.rank, state.run.as_ref().map_or(0, |run| run.number));
        if root.rank == rank {
            if let Some(run) = &mut state.run {
                run.results.push((rank, root.index, Bytes::from(bytes)));
            }
            return;
        }
        let mut body = root.index.to_le_bytes().to_vec();
        body.extend_from_slice(&bytes);
        let sent = state.link().map(|link| link.send(root.rank, RESULT, number, &body));
        if let (Ok(Ok(())), Some(run)) = (sent, &mut state.run) {
            run.counts.sent += 1;
        } else if let Some(run) = &mut state.run {
            run.failure.get_or_insert(Failure::new(Status::Mpi, "a result could not be sent"));
        }
    }

    pub(super) fn stop_run(&self) {
        let mut state = self.state.borrow_mut();
        let Some(run) = &mut state.run else { return };
        if !run.halt() {
            return;
        }
        let number = run.number;
        if let Ok(link) = state.link() {
            for rank in link.others() {
                _ = link.send(rank, STOP, number, &[]);
            }
        }
    }

    pub(super) fn fails(&self, failure: Failure) {
        self.with_run(|run| run.failure.get_or_insert(failure).status);
        self.stop_run();
    }

    /// Hands results over.
    pub(super) fn hand_over(&self, on_result: &mut Option<Receive<'_>>) {
        let results = self.with_run(|run| std::mem::take(&mut run.results)).unwrap_or_default();
        let Some(on_result) = on_result else { return };
        let mut aligned = Aligned::new();
        for (from, index, bytes) in results {
            if self.with_run(|run| run.failure.is_some()).unwrap_or(true) {
                return;
            }
            let bytes = match aligned.copy(&bytes) {
                Ok(bytes) => bytes,
                Err(failure) => return self.fails(failure),
            };
            let answer = self.back(|| on_result(from.get(), index, bytes));
            if answer != 0 {
                self.fails(Failure::new(Status::Callback, format!("the result of root {index}: the callback returned {answer}")));
            }
        }
    }

    /// Looks at the network; whether the run is over here.
    fn between_tasks(&self, patience: &mut Patience, is_idle: bool) -> Result<bool> {
        let mut state = self.state.borrow_mut();
        if is_idle {
            state.when_idle()?;
            if state.run.as_ref().is_none_or(|run| run.done && run.asked.is_none()) {
                return Ok(true);
            }
            // All are here, and a task may take its time.
            state.has_progressed();
            state.look(patience, &|| "a rank".into())?;
        } else {
            state.link()?.poll()?;
            state.serve()?;
            state.has_progressed();
        }
        Ok(false)
    }

    fn process_here(&self, process: &dyn Fn(&Task<'_>, &[u8]) -> i32, on_result: &mut Option<Receive<'_>>) -> Result<()> {
        let mut patience = Patience::new();
        let mut aligned = Aligned::new();
        loop {
            self.hand_over(on_result);
            let item = self.with_run(Run::pop).flatten();
            if self.between_tasks(&mut patience, item.is_none())? {
                self.hand_over(on_result);
                return Ok(());
            }
            let Some(item) = item else { continue };
            patience.reset();
            // Another rank may have stopped all meanwhile.
            if !self.has_stopped() {
                self.process_one(process, &item, usize::MAX, &mut aligned);
            }
            self.with_run(|run| run.running -= 1);
        }
    }

    /// Processes a task on this thread; those that it creates have this many bytes at the most.
    pub(super) fn process_one(&self, process: &dyn Fn(&Task<'_>, &[u8]) -> i32, item: &Item, largest: usize, aligned: &mut Aligned) {
        let task = Task { root: item.root, largest, place: Place::Here(self) };
        let body = match aligned.copy(&item.body) {
            Ok(body) => body,
            Err(failure) => return self.fails(failure),
        };
        let answer = self.back(|| process(&task, body));
        if answer != 0 {
            self.fails(refused(item.root, answer));
        }
    }

    fn process_there(&self, workers: usize, process: Process<'_>, on_result: &mut Option<Receive<'_>>) -> Result<()> {
        let (give, take) = mpsc::channel::<Item>();
        let take = Arc::new(Mutex::new(take));
        let (tell, hear) = mpsc::channel::<Done>();
        let halted = self.with_run(|run| run.stop.halted.clone()).unwrap_or_default();
        std::thread::scope(|scope| {
            let rank = self.rank;
            for _ in 0..workers {
                let (take, tell, halted) = (take.clone(), tell.clone(), halted.clone());
                scope.spawn(move || work(&take, &tell, process, rank, &halted));
            }
            drop(tell);
            let ended = self.give_out(workers, &give, &hear, &halted, on_result);
            // What was given and has not begun is left.
            halted.store(true, Ordering::Relaxed);
            drop(give);
            ended
        })
    }

    /// Gives tasks to worker threads until the run is over.
    fn give_out(
        &self,
        workers: usize,
        give: &mpsc::Sender<Item>,
        hear: &mpsc::Receiver<Done>,
        halted: &AtomicBool,
        on_result: &mut Option<Receive<'_>>,
    ) -> Result<()> {
        let mut patience = Patience::new();
        let mut given = 0;
        loop {
            if halted.load(Ordering::Relaxed) {
                self.stop_run();
            }
            while let Ok((root, deeds, answer)) = hear.try_recv() {
                given -= 1;
                patience.reset();
                deeds.results.into_iter().for_each(|bytes| self.to_root(root, bytes));
                self.with_run(|run| {
                    deeds.puts.into_iter().for_each(|item| run.queue_up(item));
                    run.running -= 1;
                });
                match deeds.failure.map_or(answer, Err) {
                    Ok(0) => {}
                    Ok(answer) => self.fails(refused(root, answer)),
                    Err(failure) if failure.status.ends_the_world() => return Err(failure),
                    Err(failure) => self.fails(failure),
                }
            }
            self.hand_over(on_result);
            while given < workers {
                let Some(item) = self.with_run(Run::pop).flatten() else { break };
                given += 1;
                _ = give.send(item);
            }
            if given > 0 {
                self.between_tasks(&mut patience, false)?;
                // Sleeps until a worker is done, but not for long: others may ask.
                std::thread::sleep(Duration::from_micros(50));
            } else if self.between_tasks(&mut patience, true)? {
                self.hand_over(on_result);
                return Ok(());
            }
        }
    }
}

/// A task that a worker thread has done with: its root, its effects, and what its function returned.
type Done = (Root, Deeds, Result<i32>);

fn refused(root: Root, answer: i32) -> Failure {
    Failure::new(Status::Callback, format!("a task of root {} of rank {}: the process function returned {answer}", root.index, root.rank))
}

/// A worker thread: processes what it is given until there is no more.
fn work(take: &Mutex<mpsc::Receiver<Item>>, tell: &mpsc::Sender<Done>, process: Process<'_>, rank: RankId, halted: &AtomicBool) {
    let mut aligned = Aligned::new();
    loop {
        let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(item) = next else { return };
        let deeds = RefCell::new(Deeds::default());
        let task = Task { root: item.root, largest: usize::MAX, place: Place::There(&deeds, halted) };
        let mut processed = || {
            let body = aligned.copy(&item.body)?;
            let answer = catch_unwind(AssertUnwindSafe(|| process(&task, body)));
            answer.map_err(|_| Failure::new(Status::Panic, format!("rank {rank}: panic: in a process function")))
        };
        let answer = if halted.load(Ordering::Relaxed) { Ok(0) } else { processed() };
        if !matches!(answer, Ok(0)) {
            halted.store(true, Ordering::Relaxed);
        }
        if tell.send((item.root, deeds.into_inner(), answer)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_that_no_message_holds_are_refused_under_schedulers_of_the_registry() {
        let root = |index, bytes| Item { root: Root { rank: RankId::FIRST, index }, priority: 0, cost: 0.0, body: vec![0; bytes].into() };
        let roots = [root(0, 3), root(1, 1 << 30)];
        let why = check_sizes(&roots, scheduled::LARGEST_BODY).unwrap_err();
        assert!(why.status == Status::Usage && why.text.starts_with("root 1: a task of 1073741824 bytes"), "{}", why.text);
        assert!(check_sizes(&roots, usize::MAX).is_ok() && check_sizes(&roots[..1], scheduled::LARGEST_BODY).is_ok());
    }
}
