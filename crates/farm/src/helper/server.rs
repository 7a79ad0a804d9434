//! The helper's own side: it starts the given tasks as soon as there is room, and reports their ends.
#![allow(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::capture::{Collectors, discard};
use super::mark::Mark;
use super::orphans;
use super::protocol::{self, News, Order};
use super::running::{NotStarted, Refusal, Running, Stopped, Surroundings, now};
use super::scarcity::{Descriptors, Scarcity, is_scarce};
use super::sleeping::{Sleeper, Sleepers};
use super::slots::{Free, Taken};
use super::verdict::{self, Ending, Verdict};
use super::waiting::{Doubtful, Waiting};
use crate::environment;
use crate::list::sleep;
use crate::task::{Capture, How, Kept, Outcome, State, TIMED_OUT, Task};

/// Time for which news wait for others while tasks run.
const TOGETHER: Duration = Duration::from_millis(40);
/// News are sent when they hold this much.
const ENOUGH: usize = 256 << 10;
/// Time that a task that was asked to end has until it is killed.
const LAST_GRACE: Duration = Duration::from_secs(5);
/// Nothing lasts longer: some thirty years.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);
/// A task that does not fit is overtaken this often at most, here; rank 0 has let others overtake it before.
const PATIENCE: u32 = 128;

/// Serves the rank at the other end of standard input, until that is closed.
///
/// # Errors
/// If the system refuses what a helper needs.
pub fn serve(folder: &Path, mark: &Mark) -> io::Result<()> {
    close_others();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let told = hear_no_signals()?;
    let (children, notice) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(libc::SIGCHLD, notice)?;
    children.set_nonblocking(true)?;
    // So that what tasks leave behind is buried, and ends with the job.
    orphans::adopt();
    let mut server = Server::new(folder, socket, told);
    let served = server.serve(&children);
    server.running.values().for_each(|(running, _)| running.kill());
    // Its files are closed: what follows needs descriptors.
    drop(server);
    mark.kill();
    // Nothing runs any more that could need its children.
    orphans::end_all_but(&[]);
    let _ = std::fs::remove_dir_all(folder);
    served
}

/// Serves as a [starter](crate::starter) for the process at the other end of standard input, until that is closed.
///
/// # Errors
/// If the system refuses what a starter needs.
pub fn serve_starter() -> io::Result<()> {
    close_others();
    hear_no_signals()?;
    crate::starter::serve(&UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    Ok(())
}

/// Survives signals that concern the rank: only the rank reacts to them. Handlers, unlike ignored signals, are not inherited by child processes;
/// signals that were ignored from the beginning stay so, for commands, too.
/// Returns what tells whether one of those that end a job has come.
fn hear_no_signals() -> io::Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(libc::SIGUSR2, Arc::default())?;
    let heard = verdict::ENDING.into_iter().filter(|signal| !environment::ignores(*signal));
    heard.map(|signal| signal_hook::flag::register(signal, told.clone())).try_for_each(|registered| registered.map(drop))?;
    Ok(told)
}

/// Closes what the rank's launcher has left open in it. Our own descriptors are closed when a command is executed.
fn close_others() {
    // SAFETY: nothing of this process is open yet but the three standard streams, so no descriptor that is in use is closed.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
    }
}

struct Server {
    socket: UnixStream,
    /// A signal that ends the job has come.
    told: Arc<AtomicBool>,
    ending: Ending,
    doubtful: Vec<Doubtful>,
    surroundings: Surroundings,
    free: Free,
    queue: VecDeque<Waiting>,
    overtaken: u32,
    /// Commands for the host that wait until the system has room for them.
    postponed: Vec<Waiting>,
    scarcity: Scarcity,
    running: HashMap<Pid, (Running, u32)>,
    sleeping: Sleepers,
    collectors: Collectors,
    news: Vec<Outcome>,
    /// Commands for the host that have ended.
    on_host: Vec<Outcome>,
    /// Time at which the first of the news came, and the number of bytes that they hold.
    since: Instant,
    bytes: usize,
    deadline: f64,
    /// Time at which running tasks are stopped, if no further tasks are started.
    drain: Option<Instant>,
    is_over: bool,
}

impl Server {
    fn new(folder: &Path, socket: UnixStream, told: Arc<AtomicBool>) -> Server {
        let terms = protocol::Terms::default();
        Server {
            socket,
            told,
            ending: Ending::default(),
            doubtful: Vec::new(),
            free: Free::new(0, &terms.slots),
            surroundings: Surroundings { terms, host: environment::host(), descriptors: Descriptors::default() },
            queue: VecDeque::new(),
            overtaken: 0,
            postponed: Vec::new(),
            scarcity: Scarcity::default(),
            running: HashMap::new(),
            sleeping: Sleepers::default(),
            collectors: Collectors::new(folder),
            news: Vec::new(),
            on_host: Vec::new(),
            since: Instant::now(),
            bytes: 0,
            deadline: f64::INFINITY,
            drain: None,
            is_over: false,
        }
    }

    fn serve(&mut self, children: &UnixStream) -> io::Result<()> {
        let (mut arrived, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while !self.is_over {
            self.start_what_fits()?;
            self.tell()?;
            let wait = self.next_time().map(|at| at.saturating_duration_since(Instant::now()));
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            let mut watched = [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
            match poll(&mut watched, wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(why.into()),
            }
            let (has_orders, has_ended) = (!watched[0].revents().is_empty(), !watched[1].revents().is_empty());
            if has_orders {
                let read = match (&self.socket).read(&mut buffer) {
                    Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                    Err(why) if why.kind() == io::ErrorKind::ConnectionReset => 0,
                    read => read?,
                };
                if read == 0 {
                    // The rank is gone.
                    return Ok(());
                }
                arrived.extend(&buffer[..read]);
                while let Some(order) = protocol::take(&mut arrived)? {
                    self.obey(order)?;
                }
            }
            if self.told.swap(false, Ordering::Relaxed) {
                self.ending.told = Some(Instant::now());
            }
            if has_ended {
                while matches!((&*children).read(&mut buffer), Ok(read) if read > 0) {}
                self.bury()?;
            }
            self.wake();
            self.settle_doubts();
            self.stop_what_is_late();
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Begin(terms) => {
                self.free = Free::new(terms.workers, &terms.slots);
                self.surroundings.descriptors = Descriptors::raised_for(terms.workers);
                self.surroundings.terms = terms;
            }
            Order::Run(tasks) => self.queue.extend(tasks.into_iter().map(|(task, attempts)| Waiting { task, attempts, tries: 0 })),
            Order::Deadline(at) => self.deadline = at,
            Order::Drain { grace } => {
                let at = Instant::now() + Duration::try_from_secs_f64(grace).map_or(FOR_EVER, |grace| grace.min(FOR_EVER));
                self.drain = Some(self.drain.map_or(at, |before| before.min(at)));
                self.ending.is_draining = true;
                for Waiting { task, .. } in std::mem::take(&mut self.queue) {
                    self.note(Outcome::without_run(task.seq, State::Left));
                }
            }
            Order::OnHost { text, variables } => {
                let bytes = |text: String| text.into_bytes();
                let variables = variables.into_iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
                let task = Task { seq: ON_HOST, text, how: How::Shell, variables, ..Task::default() };
                self.start(Waiting { task, attempts: 0, tries: u32::MAX }, Taken::default())?;
            }
            Order::End => self.is_over = true,
        }
        Ok(())
    }

    /// Starts the tasks that there is room for, in order; those behind one that does not fit may overtake it for a while.
    fn start_what_fits(&mut self) -> io::Result<()> {
        if self.scarcity.pause(Instant::now()).is_none() {
            for waiting in std::mem::take(&mut self.postponed) {
                self.start(waiting, Taken::default())?;
            }
        }
        if self.drain.is_some() {
            for Waiting { task, .. } in std::mem::take(&mut self.queue) {
                self.note(Outcome::without_run(task.seq, State::Left));
            }
            return Ok(());
        }
        let mut at = 0;
        while at < self.queue.len() && self.free.has_room() && self.scarcity.pause(Instant::now()).is_none() {
            let task = &self.queue[at].task;
            if now() + task.least_time() > self.deadline {
                let Some(Waiting { task, .. }) = self.queue.remove(at) else { break };
                self.note(Outcome::without_run(task.seq, State::Left));
                continue;
            }
            match self.free.take(task.needs) {
                Some(taken) => {
                    self.overtaken = if at == 0 { 0 } else { self.overtaken + 1 };
                    let Some(waiting) = self.queue.remove(at) else { break };
                    self.start(waiting, taken)?;
                }
                None if self.overtaken >= PATIENCE => break,
                None => at += 1,
            }
        }
        Ok(())
    }

    fn start(&mut self, waiting: Waiting, taken: Taken) -> io::Result<()> {
        let files = match waiting.task.how {
            How::Sleep => None,
            _ => match self.collectors.get_two() {
                Err(why) if is_scarce(&why) => return self.postpone(waiting, taken, &why.to_string()),
                files => Some(files?),
            },
        };
        let Waiting { task, attempts, tries } = waiting;
        let attempt = attempts.saturating_add(1);
        let Some((out, err)) = files else {
            let began = Instant::now();
            let seconds = sleep::seconds(&task.text) / self.surroundings.terms.speed;
            let until = Duration::try_from_secs_f64(seconds).ok().and_then(|length| began.checked_add(length));
            let until = until.unwrap_or(began + FOR_EVER);
            self.sleeping.begin(Sleeper { seq: task.seq, attempt, taken, began, until, start: now() });
            return Ok(());
        };
        match self.surroundings.start(task, attempt, taken, out, err) {
            Ok(running) => {
                self.scarcity.started();
                self.running.insert(running.pid(), (running, tries));
            }
            Err(refused) => {
                let NotStarted { task, taken, out, err, why: Refusal { exit, why, is_scarce } } = *refused;
                let (out, _) = (out.collect()?, err.collect()?);
                if is_scarce {
                    return self.postpone(Waiting { task, attempts, tries }, taken, &why);
                }
                self.free.give_back(taken);
                let said = format!("equipoise: farm: {why}\n").into_bytes();
                let err = Capture { bytes: said.len() as u64, lines: 1, kept: Kept::Here(said) };
                let outcome = Outcome { attempt, exit, start: now(), out, err, ..Outcome::without_run(task.seq, State::Failed) };
                self.end(task, tries, outcome);
            }
        }
        Ok(())
    }

    /// The system has no room for a further command: it waits until there is.
    fn postpone(&mut self, waiting: Waiting, taken: Taken, why: &str) -> io::Result<()> {
        self.free.give_back(taken);
        match waiting.task.seq {
            ON_HOST => self.postponed.push(waiting),
            _ => self.queue.push_front(waiting),
        }
        let is_first = self.scarcity.refused(why, self.running.is_empty(), Instant::now())?;
        if is_first && self.surroundings.terms.speaks {
            let (rank, host) = (self.surroundings.terms.rank, &self.surroundings.host);
            let said = "the system has no room for a further command, which waits until another has ended";
            // If standard error is closed, there is nowhere to say it.
            let _ = writeln!(io::stderr(), "equipoise: rank {rank} on {host}: {said}: {why}");
        }
        Ok(())
    }

    /// Buries the commands that have ended, with what they have left running in their groups.
    fn bury(&mut self) -> io::Result<()> {
        loop {
            // Only seen at first: until it is reaped no other process gets its number, nor its group's.
            let Some(pid) = ended_child()? else { return Ok(()) };
            let running = self.running.remove(&pid);
            if let Some((running, _)) = &running {
                running.kill();
            }
            let (status, usage) = wait4(pid)?;
            if let Some((running, tries)) = running {
                self.ended(running, tries, status, &usage)?;
            }
        }
    }

    fn ended(&mut self, running: Running, tries: u32, status: ExitStatus, usage: &libc::rusage) -> io::Result<()> {
        let Running { task, attempt, taken, out, err, began, start, stopped, .. } = running;
        let runtime = began.elapsed().as_secs_f64();
        self.scarcity.ended();
        self.free.give_back(taken);
        let (out, err) = (out.collect()?, err.collect()?);
        let (exit, signal) = (status.code().unwrap_or(0), status.signal().unwrap_or(0));
        let why = stopped.map(|(why, _)| why);
        let exit = if why == Some(Stopped::TimedOut) { TIMED_OUT } else { exit };
        let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let (cpu, memory) = (time(usage.ru_utime) + time(usage.ru_stime), usage.ru_maxrss.unsigned_abs());
        let now = Instant::now();
        let mut outcome =
            Outcome { seq: task.seq, attempt, state: State::Failed, exit, signal, start, runtime, cpu, memory, out, err, last: Vec::new() };
        match verdict::judge(status, why, &self.ending, now) {
            Verdict::Is(state) => outcome.state = state,
            Verdict::Open(doubt) if task.seq != ON_HOST => {
                self.doubtful.push(Doubtful { task, tries, outcome, status, until: now + doubt });
                return Ok(());
            }
            Verdict::Open(_) => {}
        }
        self.end(task, tries, outcome);
        Ok(())
    }

    /// Tasks that may have been ended with the job are left if it does end; otherwise they have failed.
    fn settle_doubts(&mut self) {
        let (now, ending) = (Instant::now(), self.ending);
        let judge = |doubtful: &Doubtful| verdict::judge(doubtful.status, None, &ending, now);
        let is_settled = |doubtful: &mut Doubtful| doubtful.until <= now || matches!(judge(doubtful), Verdict::Is(_));
        for mut doubtful in self.doubtful.extract_if(.., is_settled).collect::<Vec<_>>() {
            if let Verdict::Is(state) = judge(&doubtful) {
                doubtful.outcome.state = state;
            }
            self.end(doubtful.task, doubtful.tries, doubtful.outcome);
        }
    }

    /// An attempt has ended; one that failed may be followed by another, in another job if this one ends.
    fn end(&mut self, task: Task, tries: u32, mut outcome: Outcome) {
        let may_follow = outcome.state == State::Failed && outcome.seq != ON_HOST && tries < self.surroundings.terms.retries;
        if outcome.state == State::Left {
            discard(&outcome.out);
            discard(&outcome.err);
        }
        if !may_follow {
            return self.note(outcome);
        }
        outcome.state = State::Again;
        let attempts = outcome.attempt;
        self.note(outcome);
        match self.drain {
            Some(_) => self.note(Outcome::without_run(task.seq, State::Left)),
            None => self.queue.push_back(Waiting { task, attempts, tries: tries + 1 }),
        }
    }

    fn note(&mut self, outcome: Outcome) {
        if outcome.seq == ON_HOST {
            self.on_host.push(outcome);
            return;
        }
        if self.news.is_empty() {
            self.since = Instant::now();
        }
        let size = |capture: &Capture| if let Kept::Here(text) = &capture.kept { text.len() } else { 0 };
        self.bytes += size(&outcome.out) + size(&outcome.err);
        self.news.push(outcome);
    }

    /// Sends the news if they are due: at once when nothing is left to start.
    fn tell(&mut self) -> io::Result<()> {
        for outcome in std::mem::take(&mut self.on_host) {
            protocol::send(&self.socket, &News::OnHost(outcome))?;
        }
        let is_due = self.queue.is_empty() || self.bytes > ENOUGH || self.since.elapsed() >= TOGETHER;
        if self.news.is_empty() || !is_due {
            return Ok(());
        }
        self.bytes = 0;
        protocol::send(&self.socket, &News::Ended(std::mem::take(&mut self.news)))
    }

    /// Time at which there is something to do even if nothing happens.
    fn next_time(&self) -> Option<Instant> {
        let timeout = self.surroundings.terms.timeout;
        let limits = self.running.values().filter_map(|(running, _)| match running.stopped {
            Some((_, at)) => Some(at + LAST_GRACE),
            None => timeout.and_then(|seconds| running.began.checked_add(Duration::try_from_secs_f64(seconds).ok()?)),
        });
        let news = (!self.news.is_empty()).then_some(self.since + TOGETHER);
        let drain = self.drain.filter(|at| *at > Instant::now());
        let awake = self.sleeping.alarm().into_iter().chain(self.doubtful.iter().map(|doubtful| doubtful.until));
        let awake = awake.chain(self.scarcity.pause(Instant::now()));
        limits.chain(news).chain(drain).chain(awake).min()
    }

    /// Ends built-in tasks that have slept long enough; when the job ends, the others are left undone.
    fn wake(&mut self) {
        let is_stopped = self.drain.is_some_and(|at| at <= Instant::now());
        for Sleeper { seq, attempt, taken, began, until, start } in self.sleeping.take_over(is_stopped) {
            self.free.give_back(taken);
            let state = if until <= Instant::now() { State::Done } else { State::Left };
            let runtime = began.elapsed().as_secs_f64();
            self.note(Outcome { attempt, start, runtime, ..Outcome::without_run(seq, state) });
        }
    }

    fn stop_what_is_late(&mut self) {
        let (now, timeout) = (Instant::now(), self.surroundings.terms.timeout);
        let drained = self.drain.is_some_and(|at| at <= now);
        for (running, _) in self.running.values_mut() {
            match running.stopped {
                Some((_, at)) if at + LAST_GRACE <= now => running.kill(),
                Some(_) => {}
                None if timeout.is_some_and(|seconds| running.began.elapsed().as_secs_f64() >= seconds) => running.stop(Stopped::TimedOut),
                None if drained => running.stop(Stopped::Drained),
                None => {}
            }
        }
    }
}

/// The number of what is no task of the list.
const ON_HOST: u64 = 0;

/// Waits for a child that has ended, for what it used, too.
fn wait4(pid: Pid) -> io::Result<(ExitStatus, libc::rusage)> {
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both places are ours and live until the call returns; a `rusage` of zeros is one. std and rustix have no call that tells what a child
    // used.
    let (waited, usage) = unsafe { (libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr()), usage.assume_init()) };
    if waited < 0 { Err(io::Error::last_os_error()) } else { Ok((ExitStatus::from_raw(status), usage)) }
}

/// A child that has ended and is not buried, if there is one.
fn ended_child() -> io::Result<Option<Pid>> {
    let mut seen = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: the place is ours; a `siginfo_t` of zeros is one, and stays so if no child has ended. rustix does not say which child it was.
    let (waited, seen) = unsafe { (libc::waitid(libc::P_ALL, 0, seen.as_mut_ptr(), options), seen.assume_init()) };
    if waited == 0 {
        // SAFETY: after a `waitid` that succeeded the field is that of a child, or zero.
        return Ok(Pid::from_raw(unsafe { seen.si_pid() }));
    }
    match io::Error::last_os_error() {
        why if why.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        why => Err(why),
    }
}
