//! A program that runs concurrently with this one: started by `sh -c` in a process group of its own, so that all of it can be ended, which is done
//! also after it has ended by itself. No wait for it is longer than it may stand still. The [starter](equipoise_farm::starter) starts and buries it.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use equipoise_farm::starter::{self, Started};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use equipoise::error::{Error, Result};

/// A running program, whose output goes into a `T`.
pub struct Process<T> {
    /// Beginning of sentences about it.
    who: String,
    started: Started,
    /// Gone when it does not want any more.
    stdin: Option<PipeWriter>,
    output: Receiver<Result<T>>,
    /// Time after which it is killed if it has taken no input, written nothing, and not ended.
    patience: Duration,
    pulse: Pulse,
}

/// Destination of its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// It is ours.
    Shown,
    Dropped,
}

/// Interval of the checks that its starter still lives.
const LOOK: Duration = Duration::from_millis(100);
/// Processes that a program has left may go on writing its output, with pauses of less than this: as in a list of commands, what has ended is over.
const LEFT_BEHIND: Duration = Duration::from_secs(1);
/// No sleep of ours is longer, whatever the patience.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

impl<T: Send + 'static> Process<T> {
    /// Starts it. A thread gives `take` what it writes, so that it never waits for us while we wait for it.
    ///
    /// # Errors
    /// If there is no shell, or no starter to start it.
    pub fn start(
        who: String,
        command: &str,
        errors: Errors,
        patience: Duration,
        output: T,
        take: fn(&mut T, &[u8]) -> Result<()>,
    ) -> Result<Process<T>> {
        let failed = |why: io::Error| Error::Failed(format!("{who}: it cannot be started: {why}"));
        let (started, stdin, stdout) = Started::new(command, errors == Errors::Shown).map_err(failed)?;
        rustix::io::ioctl_fionbio(&stdin, true).map_err(|why| failed(why.into()))?;
        let (pulse, (done, ended)) = (Pulse::new(), bounded(1));
        let (told, there) = (who.clone(), pulse.clone());
        let read = move || {
            // There is no receiver any more if the program was given up.
            let _ = done.send(read_all(stdout, output, take, &there, &told));
        };
        std::thread::Builder::new().name("output".into()).spawn(read).map_err(failed)?;
        Ok(Process { who, started, stdin: Some(stdin), output: ended, patience, pulse })
    }

    /// Gives it bytes. What it does not want any more, as `head` does not, is dropped: whether it is content, its exit status tells.
    ///
    /// # Errors
    /// If it stands still for too long, and was killed therefore.
    pub fn give(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let mut since = Instant::now();
        while let (Some(stdin), false) = (&mut self.stdin, rest.is_empty()) {
            match stdin.write(rest) {
                Ok(written) => {
                    rest = &rest[written..];
                    since = Instant::now();
                }
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => self.wait_for_room(since)?,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(Error::Failed(format!("{}: it cannot be given its input: {why}", self.who))),
            }
        }
        Ok(())
    }

    /// It has been given all. Waits for the rest of its output, and for its end.
    ///
    /// # Errors
    /// If it stands still for too long, and was killed therefore.
    pub fn end(&mut self) -> Result<(ExitStatus, Result<T>)> {
        self.stdin = None;
        let since = Instant::now();
        let mut exited = None;
        let output = loop {
            let left = if exited.is_some() { LOOK } else { self.left(since)? };
            match self.output.recv_timeout(left.min(LOOK)) {
                Ok(output) => break output,
                Err(RecvTimeoutError::Disconnected) => break Err(Error::Failed(format!("{}: its reader died", self.who))),
                Err(RecvTimeoutError::Timeout) => self.watch()?,
            }
            if self.started.has_exited() {
                let exited = *exited.get_or_insert_with(Instant::now);
                if exited.max(self.pulse.last()).elapsed() >= LEFT_BEHIND.min(self.patience / 2) {
                    return self.end_what_is_left();
                }
            }
        };
        Ok((self.status()?, output))
    }

    /// It has ended, and others hold its output open: they are ended, and what was written until then is its output.
    fn end_what_is_left(&mut self) -> Result<(ExitStatus, Result<T>)> {
        let status = self.status()?;
        let output = self.output.recv_timeout(LEFT_BEHIND);
        let open = |_| Err(Error::Failed(format!("{}: it has ended, but a process that it has started holds its output open", self.who)));
        Ok((status, output.unwrap_or_else(open)))
    }

    fn status(&mut self) -> Result<ExitStatus> {
        let since = Instant::now();
        loop {
            let left = self.left(since)?;
            let ended = self.started.ended(left).map_err(|why| Error::Failed(format!("{}: {why}", self.who)))?;
            if let Some(status) = ended {
                return Ok(status);
            }
        }
    }

    /// If its starter was killed, it is ended here.
    fn watch(&mut self) -> Result<()> {
        if self.started.is_orphaned() {
            self.started.kill();
            return Err(Error::Failed(format!("{}: {}; there is no answer", self.who, starter::gone())));
        }
        Ok(())
    }

    fn wait_for_room(&mut self, since: Instant) -> Result<()> {
        self.watch()?;
        let left = Timespec::try_from(self.left(since)?.min(LOOK)).ok();
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match poll(&mut [PollFd::new(stdin, PollFlags::OUT)], left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(Error::Failed(format!("{}: it cannot be given its input: {why}", self.who))),
        }
    }

    /// Remaining time for which it may stand still, if nothing has happened since then except for its output.
    fn left(&mut self, since: Instant) -> Result<Duration> {
        let still = since.max(self.pulse.last()).elapsed();
        match self.patience.checked_sub(still) {
            Some(left) if !left.is_zero() => Ok(left.min(LONGEST_WAIT)),
            _ => {
                self.started.kill();
                let (who, seconds) = (&self.who, self.patience.as_secs_f64());
                Err(Error::Stuck {
                    report: format!(
                        "{who}: for {seconds} s (--timeout) it took no input, wrote nothing and did not end, so it was killed; there is no answer"
                    ),
                })
            }
        }
    }
}

/// End of a program, in words.
pub fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(127), _) => "it ended with status 127: the shell knows no such program".into(),
        (Some(code), _) => format!("it ended with status {code}"),
        (None, signal) => format!("it was ended by signal {}", signal.unwrap_or(0)),
    }
}

/// Reads to the end even if what comes cannot be kept: the program shall not hang.
fn read_all<T>(mut stdout: PipeReader, mut output: T, take: fn(&mut T, &[u8]) -> Result<()>, pulse: &Pulse, who: &str) -> Result<T> {
    let mut buffer = vec![0; 64 << 10];
    let mut kept = Ok(());
    loop {
        match stdout.read(&mut buffer) {
            Ok(0) => return kept.map(|()| output),
            Ok(read) => {
                pulse.beat();
                if kept.is_ok() {
                    kept = take(&mut output, &buffer[..read]);
                }
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(Error::Failed(format!("{who}: its output cannot be read: {why}"))),
        }
    }
}

/// Time at which a program last wrote something.
#[derive(Clone)]
struct Pulse {
    began: Instant,
    /// In nanoseconds after that.
    last: Arc<AtomicU64>,
}

impl Pulse {
    fn new() -> Pulse {
        Pulse { began: Instant::now(), last: Arc::default() }
    }

    fn beat(&self) {
        self.last.store(self.began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_nanos(self.last.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::Pid;

    fn process(command: &str, seconds: f64) -> Process<Vec<u8>> {
        let keep = |kept: &mut Vec<u8>, bytes: &[u8]| {
            kept.extend_from_slice(bytes);
            Ok(())
        };
        Process::start("it".into(), command, Errors::Dropped, Duration::from_secs_f64(seconds), Vec::new(), keep).unwrap()
    }

    fn is_there(pid: &[u8]) -> bool {
        let pid = String::from_utf8_lossy(pid).trim().parse::<i32>().unwrap();
        // An orphan that has ended keeps its number until process 1 asks for its status, which can take seconds.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let has_ended = stat.rsplit(") ").next().is_some_and(|state| state.starts_with('Z'));
        !has_ended && Pid::from_raw(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
    }

    #[test]
    fn it_gets_all_and_its_output_comes_back() {
        let mut cat = process("cat", 60.0);
        let text = b"many words\n".repeat(100_000);
        cat.give(&text).unwrap();
        let (status, output) = cat.end().unwrap();
        assert!(status.success() && output.unwrap() == text);
        let mut head = process("head -c 4; exit 7", 60.0);
        head.give(&text).unwrap();
        let (status, output) = head.end().unwrap();
        assert!(status.code() == Some(7) && output.unwrap() == b"many");
    }

    #[test]
    fn one_that_stands_still_is_killed_with_all_it_has_started() {
        let text = vec![b'x'; 1 << 20];
        // It does not read; it does not end; it has closed its output and does not end.
        for command in ["sleep 1000", "cat >/dev/null; sleep 1000", "exec >&-; cat >&2; sleep 1000"] {
            let began = Instant::now();
            let mut process = process(command, 0.2);
            let why = process.give(&text).and_then(|()| process.end().map(|_| ())).unwrap_err();
            assert!(why.exit_status() == 3 && why.to_string().starts_with("no progress: it: for 0.2 s (--timeout) it took no"), "{why}");
            assert!(began.elapsed() >= Duration::from_millis(200));
        }
    }

    #[test]
    fn one_that_has_ended_is_over_though_others_hold_its_output() {
        for (command, expected) in [("sleep 1000 & cat", "words"), ("(sleep 0.2; echo late; sleep 1000) & cat", "wordslate\n")] {
            let began = Instant::now();
            let mut program = process(command, 60.0);
            program.give(b"words").unwrap();
            let (status, output) = program.end().unwrap();
            assert_eq!((status.code(), String::from_utf8(output.unwrap()).unwrap().as_str()), (Some(0), expected));
            assert!(began.elapsed() < Duration::from_secs(30), "{command}");
        }
        let mut failing = process("sleep 1000 & cat; exit 7", 60.0);
        assert_eq!(failing.end().unwrap().0.code(), Some(7));
    }

    #[test]
    fn one_that_writes_now_and_then_is_let_go_on() {
        let mut slow = process("for i in 1 2 3 4 5; do sleep 0.1; echo $i; done", 0.4);
        assert_eq!(slow.end().unwrap().1.unwrap(), b"1\n2\n3\n4\n5\n");
    }

    #[test]
    fn what_is_given_up_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("child");
        let mut process = process(&format!("sleep 1000 & echo $! >{0}.part; mv {0}.part {0}; wait", place.display()), 60.0);
        while !place.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        process.give(b"x").unwrap();
        let child = std::fs::read(&place).unwrap();
        assert!(is_there(&child));
        drop(process);
        assert!(goes(&child));
    }

    /// Returns true if a process goes away soon: one whose parent is gone is reaped by another process.
    fn goes(pid: &[u8]) -> bool {
        (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            !is_there(pid)
        })
    }

    #[test]
    fn what_a_program_leaves_behind_is_gone_when_it_has_ended() {
        // In the background; and in a session, and so a group, of its own, where marks can be seen.
        let ways = if cfg!(target_os = "linux") { &["", "setsid "][..] } else { &[""] };
        for way in ways {
            let mut program = process(&format!("{way}sleep 1000 >/dev/null 2>&1 </dev/null & echo $!; cat >/dev/null"), 60.0);
            let (status, child) = program.end().unwrap();
            assert!(status.success() && goes(&child.unwrap()), "'{way}'");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_in_a_session_of_its_own_is_killed_with_a_program_that_stands_still() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("child");
        let mut program =
            process(&format!("setsid sh -c 'echo $$ >{0}.part; mv {0}.part {0}; sleep 1000' & sleep 1000", place.display()), 1.0);
        assert_eq!(program.end().unwrap_err().exit_status(), 3);
        assert!(goes(&std::fs::read(&place).unwrap()));
    }
}
