//! The starter: a small process that starts programs for this one, which talks to them over pipes.
//!
//! A process that has MPI up must not fork. [`prepare`] starts the starter before that (the program executes itself under another name) and gives it
//! a socket. For each program it gets three descriptors over it: the program's standard input and output, and a *lifeline*, a socket of that program
//! alone. Over the lifeline goes what is to be run, and how it ended comes back. When the lifeline is closed, because the program was given up or
//! because its owner is gone, however that happened, the starter kills the program's process group and whatever else has its [mark](Mark).
//!
//! A program that never calls [`serve_if_called`](crate::helper::serve_if_called), as a test of a library, has the starter as a thread. Then the
//! programs that were started are not ended when the process is killed.

use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use crate::environment;
use crate::helper::mark::Mark;
use crate::helper::protocol;

/// Name of the program when it runs as a starter.
pub(crate) const NAME: &str = "equipoise-starter";
/// The variable by which what a program has started is found.
const VARIABLE: &str = "EQUIPOISE_COMMAND";

/// This program serves when it is executed under the name of a starter.
pub(crate) static SERVES: AtomicBool = AtomicBool::new(false);
/// The socket to the starter.
static STARTER: Mutex<Option<UnixStream>> = Mutex::new(None);

/// Request for a command.
#[derive(Serialize, Deserialize)]
struct Request {
    /// Given to `sh -c`.
    command: String,
    /// Whether its standard error is that of its owner; otherwise it is not shown.
    shows_errors: bool,
    mark: Vec<u8>,
}

/// Answer to a request.
#[derive(Serialize, Deserialize)]
enum Reply {
    Started,
    Refused(String),
    /// It has ended; what it has started may still run.
    Exited,
    /// All is over. A status as `wait` has it.
    Ended(i32),
}

/// Starts the starter, unless there is one. To be called before MPI is initialised.
///
/// # Errors
/// If it cannot be started.
pub fn prepare() -> io::Result<()> {
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    if starter.is_none() {
        let (ours, theirs) = UnixStream::pair()?;
        if SERVES.load(Ordering::Relaxed) {
            let mut command = Command::new("/proc/self/exe");
            command.arg0(NAME).stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
            environment::hidden().iter().for_each(|name| _ = command.env_remove(name));
            command.spawn()?;
        } else {
            thread::Builder::new().name("starter".into()).spawn(move || serve(&theirs))?;
        }
        *starter = Some(ours);
    }
    Ok(())
}

/// A program that was started, in a process group of its own. It is ended with all that it has started when this value goes away.
#[derive(Debug)]
pub struct Started {
    lifeline: UnixStream,
    arrived: Vec<u8>,
    mark: Mark,
    /// The starter knows that nothing more is wanted than its end.
    is_told: bool,
    has_exited: bool,
    has_ended: bool,
}

impl Started {
    /// Starts `sh -c COMMAND`, without the variables by which launchers number ranks. The writer is its standard input, the reader its output.
    ///
    /// # Errors
    /// If there is no shell, no descriptors, or no starter any more.
    pub fn new(command: &str, shows_errors: bool) -> io::Result<(Started, PipeWriter, PipeReader)> {
        prepare()?;
        let ((stdin, input), (output, stdout)) = (io::pipe()?, io::pipe()?);
        let (lifeline, theirs) = UnixStream::pair()?;
        hand_over([theirs.as_fd(), stdin.as_fd(), stdout.as_fd()])?;
        drop((theirs, stdin, stdout));
        let mark = Mark::of(VARIABLE);
        let mut started = Started { lifeline, arrived: Vec::new(), mark, is_told: false, has_exited: false, has_ended: false };
        let request = Request { command: command.into(), shows_errors, mark: started.mark.value().as_encoded_bytes().to_vec() };
        protocol::send(&started.lifeline, &request)?;
        match started.reply()? {
            Reply::Started => Ok((started, input, output)),
            Reply::Refused(why) => Err(io::Error::other(why)),
            Reply::Exited | Reply::Ended(_) => Err(gone()),
        }
    }

    fn reply(&mut self) -> io::Result<Reply> {
        protocol::receive(&mut self.lifeline, &mut self.arrived)?.ok_or_else(gone)
    }

    /// Waits for the command's end, after its output has ended or is not wanted any more: its exit status, or `None` if it has not ended
    /// after this time. At the end all processes that it left are killed.
    ///
    /// # Errors
    /// If the starter is gone.
    pub fn ended(&mut self, within: Duration) -> io::Result<Option<ExitStatus>> {
        if !std::mem::replace(&mut self.is_told, true) {
            (&self.lifeline).write_all(b".")?;
        }
        let within = Timespec::try_from(within).ok();
        match poll(&mut [PollFd::new(&self.lifeline, PollFlags::IN)], within.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(why) => return Err(why.into()),
        }
        match self.reply()? {
            Reply::Ended(status) => {
                self.has_ended = true;
                Ok(Some(ExitStatus::from_raw(status)))
            }
            Reply::Started | Reply::Refused(_) | Reply::Exited => Ok(None),
        }
    }

    /// Returns true if it is not watched any more, since the starter was killed.
    pub fn is_orphaned(&mut self) -> bool {
        // Before the starter is asked for the end alone, no more comes from it than that the command itself has ended.
        while !self.is_told && matches!(poll(&mut [PollFd::new(&self.lifeline, PollFlags::IN)], Some(&Timespec::default())), Ok(1..)) {
            match self.reply() {
                Ok(Reply::Exited) => self.has_exited = true,
                Ok(Reply::Started | Reply::Refused(_)) => {}
                Ok(Reply::Ended(_)) | Err(_) => return true,
            }
        }
        false
    }

    /// Returns true if the command itself had ended when it was last asked whether it [is orphaned](Started::is_orphaned). Processes that it has left may still
    /// hold its output open.
    pub fn has_exited(&self) -> bool {
        self.has_exited
    }

    /// Ends it, with all that it has started.
    pub fn kill(&mut self) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        let _ = self.lifeline.shutdown(Shutdown::Write);
        loop {
            match self.reply() {
                Ok(Reply::Ended(_)) => return,
                Ok(_) => {}
                // The starter was killed, and has left it running.
                Err(_) => return self.mark.kill(),
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Error for a starter that is gone.
pub fn gone() -> io::Error {
    io::Error::other("the helper that starts programs has died")
}

fn hand_over(descriptors: [std::os::fd::BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    let starter = starter.as_ref().ok_or_else(gone)?;
    loop {
        match sendmsg(starter, &[IoSlice::new(b"+")], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(gone()),
            Err(why) => return Err(why.into()),
        }
    }
}

/// Starts what comes over the socket, until that is closed; then all that still runs is ended.
pub(crate) fn serve(socket: &UnixStream) {
    let mut attendants = Vec::new();
    while let Some(descriptors) = take_over(socket) {
        // Each has a thread, which waits for its end.
        attendants.retain(|attendant: &thread::JoinHandle<()>| !attendant.is_finished());
        let [lifeline, stdin, stdout] = descriptors;
        let attend = move || attend(UnixStream::from(lifeline), stdin, stdout);
        // Without a thread its owner sees that the lifeline is closed.
        attendants.extend(thread::Builder::new().name("attendant".into()).spawn(attend));
    }
    attendants.into_iter().for_each(|attendant| drop(attendant.join()));
}

fn take_over(socket: &UnixStream) -> Option<[OwnedFd; 3]> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        // Closed when a command is executed: no program holds another's pipes.
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes == 0 => return None,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return None,
        }
        let rights = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors: Vec<OwnedFd> = rights.flatten().collect();
        if let Ok(three) = descriptors.try_into() {
            return Some(three);
        }
    }
}

/// Progress of a program.
struct Course {
    /// Its owner waits for its output, or talks to it.
    is_wanted: bool,
    is_buried: bool,
}

impl Default for Course {
    fn default() -> Course {
        Course { is_wanted: true, is_buried: false }
    }
}

/// Starts one program, and says how it ended; ends it when the lifeline is closed.
fn attend(mut lifeline: UnixStream, stdin: OwnedFd, stdout: OwnedFd) {
    let Ok(Some(request)) = protocol::receive::<Request>(&mut lifeline, &mut Vec::new()) else { return };
    let mark = Mark::again(VARIABLE, &request.mark);
    // If the reply can't be sent, there is no owner any more, and the lifeline is closed.
    let say = |reply| drop(protocol::send(&lifeline, &reply));
    let mut child = match spawn(&request, &mark, stdin, stdout) {
        Ok(child) => child,
        Err(why) => return say(Reply::Refused(why.to_string())),
    };
    say(Reply::Started);
    let group = Pid::from_child(&child);
    let course = Arc::new((Mutex::new(Course::default()), Condvar::new()));
    let watcher = lifeline.try_clone().and_then(|mut lifeline| {
        let (course, mark) = (course.clone(), mark.clone());
        thread::Builder::new().name("lifeline".into()).spawn(move || {
            loop {
                let read = lifeline.read(&mut [0]);
                if read.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::Interrupted) {
                    continue;
                }
                let mut now = course.0.lock().unwrap_or_else(PoisonError::into_inner);
                // No other process gets the number of a group before its process is reaped.
                let is_given_up = !matches!(read, Ok(1));
                if is_given_up && !now.is_buried {
                    kill(group, &mark);
                }
                now.is_wanted = false;
                course.1.notify_all();
                if is_given_up {
                    return;
                }
            }
        })
    });
    if watcher.is_err() {
        // Nothing else would end it.
        kill(group, &mark);
    }
    while let Err(Errno::INTR) = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {}
    say(Reply::Exited);
    let status = {
        let mut now = course.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Processes that it has left may still write.
        while now.is_wanted && watcher.is_ok() {
            now = course.1.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        kill(group, &mark);
        now.is_buried = true;
        child.wait()
    };
    say(Reply::Ended(status.map_or(1 << 8, ExitStatusExt::into_raw)));
    let _ = lifeline.shutdown(Shutdown::Both);
    let _ = watcher.map(thread::JoinHandle::join);
}

fn kill(group: Pid, mark: &Mark) {
    // There may be no process left.
    let _ = kill_process_group(group, Signal::KILL);
    mark.kill();
}

fn spawn(request: &Request, mark: &Mark, stdin: OwnedFd, stdout: OwnedFd) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&request.command).stdin(stdin).stdout(stdout);
    shell.stderr(if request.shows_errors { Stdio::inherit() } else { Stdio::null() });
    environment::hidden().iter().for_each(|name| _ = shell.env_remove(name));
    shell.env(VARIABLE, mark.value()).process_group(0).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_its_input_and_its_status_comes_back() {
        let (mut started, mut input, mut output) = Started::new("cat; exit 7", true).unwrap();
        input.write_all(b"words").unwrap();
        drop(input);
        let mut read = Vec::new();
        output.read_to_end(&mut read).unwrap();
        let status = (0..1000).find_map(|_| started.ended(Duration::from_millis(100)).unwrap()).unwrap();
        assert_eq!((read.as_slice(), status.code()), (&b"words"[..], Some(7)));
    }

    #[test]
    fn what_a_program_has_left_running_may_write_until_nobody_listens() {
        let (mut started, _input, mut output) = Started::new("(sleep 0.2; echo late) &", false).unwrap();
        let mut read = Vec::new();
        output.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"late\n");
        assert!((0..1000).any(|_| started.ended(Duration::from_millis(100)).unwrap().is_some()));
    }

    #[test]
    fn a_program_that_is_given_up_is_gone_with_all_of_it() {
        let (started, _input, mut output) = Started::new("setsid sleep 1000 >/dev/null & echo; sleep 1000", false).unwrap();
        output.read_exact(&mut [0]).unwrap();
        let mark = started.mark.clone();
        let found = || mark.found().len();
        assert!(!cfg!(target_os = "linux") || found() >= 2);
        drop(started);
        assert_eq!(found(), 0);
        assert_eq!(output.read(&mut [0]).unwrap(), 0, "nobody holds its output any more");
    }

    #[test]
    fn several_run_at_a_time_and_none_holds_another_s_pipes() {
        let mut cats: Vec<_> = (0..5).map(|_| Started::new("cat", false).unwrap()).collect();
        while let Some((mut started, input, mut output)) = cats.pop() {
            // The others still run.
            drop(input);
            assert_eq!(output.read(&mut [0]).unwrap(), 0);
            assert!((0..1000).any(|_| started.ended(Duration::from_millis(100)).unwrap().is_some()));
        }
    }
}
