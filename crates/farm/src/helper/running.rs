//! A command that runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::capture::Collector;
use super::protocol::Terms;
use super::scarcity::{Descriptors, is_scarce};
use super::slots::Taken;
use crate::list::line;
use crate::task::{How, NOT_EXECUTABLE, NOT_FOUND, Task};

/// Reason for which a command was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It took longer than `--timeout`.
    TimedOut,
    /// The job ends.
    Drained,
}

/// A process that was started and has not been waited for.
pub struct Running {
    pub task: Task,
    pub attempt: u32,
    pub taken: Taken,
    pub out: Collector,
    pub err: Collector,
    pub began: Instant,
    /// Seconds since 1970.
    pub start: f64,
    /// Why and when it was asked to end.
    pub stopped: Option<(Stopped, Instant)>,
    pid: Pid,
}

/// Why one could not be started.
pub struct NotStarted {
    pub task: Task,
    pub taken: Taken,
    pub out: Collector,
    pub err: Collector,
    pub why: Refusal,
}

/// Reason of a failed start: the system's message, and the exit status that a shell would give.
pub struct Refusal {
    pub exit: i32,
    pub why: String,
    /// It may be possible later.
    pub is_scarce: bool,
}

/// Settings that all commands of a helper share.
pub struct Surroundings {
    pub terms: Terms,
    pub host: String,
    pub descriptors: Descriptors,
}

/// The time of the day.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Surroundings {
    /// Starts a task.
    ///
    /// # Errors
    /// If that is not possible, with the exit status that a shell would give. The resources and files come back.
    pub fn start(&mut self, task: Task, attempt: u32, taken: Taken, out: Collector, err: Collector) -> Result<Running, Box<NotStarted>> {
        let (began, start) = (Instant::now(), now());
        self.descriptors.release();
        let spawned = self.spawn(&task, attempt, &taken, &out, &err);
        self.descriptors.hold();
        match spawned {
            Ok(child) => Ok(Running { pid: Pid::from_child(&child), task, attempt, taken, out, err, began, start, stopped: None }),
            Err(why) => Err(Box::new(NotStarted { task, taken, out, err, why })),
        }
    }

    fn spawn(&self, task: &Task, attempt: u32, taken: &Taken, out: &Collector, err: &Collector) -> Result<Child, Refusal> {
        let mut command = match task.how {
            How::Shell => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(OsStr::from_bytes(&task.text));
                shell
            }
            How::Words | How::Empty | How::Sleep => {
                let words = line::words(&task.text).unwrap_or_default();
                let missing = || Refusal { exit: NOT_FOUND, why: "there is no command".into(), is_scarce: false };
                let (program, arguments) = words.split_first().ok_or_else(missing)?;
                let mut command = Command::new(OsStr::from_bytes(program));
                command.args(arguments.iter().map(|word| OsStr::from_bytes(word)));
                command
            }
        };
        let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_path_buf();
        let failed = |what: String| {
            move |why: io::Error| {
                let is_scarce = is_scarce(&why);
                Refusal { exit: NOT_EXECUTABLE, why: format!("{what}: {why}"), is_scarce }
            }
        };
        if let Some(dir) = &task.dir {
            let dir = path(dir);
            std::fs::read_dir(&dir).map(drop).map_err(failed(format!("dir={}", dir.display())))?;
            command.current_dir(dir);
        }
        let stdin = match &task.stdin {
            Some(file) => {
                // It is meant from the command's folder, as the command itself would open it.
                let file = task.dir.as_ref().map_or_else(|| path(file), |dir| path(dir).join(path(file)));
                Stdio::from(File::open(&file).map_err(failed(format!("stdin={}", file.display())))?)
            }
            // Opened here: under the limit of commands it might not be possible.
            None => Stdio::from(File::open("/dev/null").map_err(failed("/dev/null".into()))?),
        };
        let copy = |collector: &Collector| collector.file.try_clone().map(Stdio::from).map_err(failed("its output".into()));
        command.stdin(stdin).stdout(copy(out)?).stderr(copy(err)?).process_group(0);
        command.env("FARM_RANK", self.terms.rank.to_string()).env("FARM_HOST", &self.host);
        if task.seq > 0 {
            command.env("FARM_TASK", task.seq.to_string()).env("FARM_ATTEMPT", attempt.to_string());
        }
        for (name, value) in &task.variables {
            command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
        }
        if !self.terms.slots.gpus.is_empty() {
            let devices = taken.gpus.join(",");
            command.env("CUDA_VISIBLE_DEVICES", &devices).env("ROCR_VISIBLE_DEVICES", &devices);
        }
        let spawned = bound_to(&taken.cpu_set, || self.descriptors.for_commands(|| command.spawn()));
        spawned.map_err(|why| {
            let exit = if why.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            let program = command.get_program().to_string_lossy().into_owned();
            let is_scarce = is_scarce(&why);
            Refusal { exit, why: format!("{program}: {why}"), is_scarce }
        })
    }
}

/// Does something while this thread may run on these processors only, which what it starts inherits.
fn bound_to<T>(cpu_set: &[u32], work: impl FnOnce() -> T) -> T {
    let before = match cpu_set {
        [] => None,
        cpus => sched_getaffinity(None).ok().filter(|_| {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            sched_setaffinity(None, &set).is_ok()
        }),
    };
    let done = work();
    if let Some(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    done
}

impl Running {
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Asks it and all of its group to end.
    pub fn stop(&mut self, why: Stopped) {
        if self.stopped.is_none() {
            self.stopped = Some((why, Instant::now()));
            let _ = kill_process_group(self.pid, Signal::TERM);
            // One that was stopped (SIGSTOP) hears of it, too.
            let _ = kill_process_group(self.pid, Signal::CONT);
        }
    }

    /// Ends its group at once. It must not be buried yet.
    pub fn kill(&self) {
        // There may be no process left.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}
