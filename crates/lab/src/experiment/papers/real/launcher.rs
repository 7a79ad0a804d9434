//! This program, started on real ranks by `mpirun`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use equipoise::error::{Error, Result};
use equipoise_farm::environment::ignores;

/// A launch that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(300);
/// Between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Time for a launcher to end its ranks; then it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Starts this program on real ranks.
#[derive(Debug)]
pub struct Launcher {
    mpirun: PathBuf,
    program: PathBuf,
    /// Whether it has Open MPI's options.
    is_open_mpi: bool,
    ending: Ending,
}

impl Launcher {
    /// The launcher of this name, which starts `program`.
    ///
    /// # Errors
    /// Wrong usage if it cannot be started.
    pub fn find(mpirun: &Path, program: &Path) -> Result<Launcher> {
        let version = Command::new(mpirun).arg("--version").stdin(Stdio::null()).output();
        let version = version.map_err(|why| Error::input("on-ranks", format!(": {} cannot be started: {why}", mpirun.display())))?;
        let text = String::from_utf8_lossy(&version.stdout).into_owned();
        let is_open_mpi = ["Open MPI", "OpenRTE", "PRRTE"].iter().any(|name| text.contains(name));
        let ending = Ending::new().map_err(|why| Error::input("on-ranks", format!(": signals cannot be awaited: {why}")))?;
        Ok(Launcher { mpirun: mpirun.into(), program: program.into(), is_open_mpi, ending })
    }

    /// Balances four tasks on two ranks: whether it works at all is to be known before hours of simulation.
    ///
    /// # Errors
    /// Wrong usage if that fails, with what the launcher says.
    pub fn try_out(&self) -> Result<()> {
        let arguments = ["balance", "--balancer", "direct", "--loads", "3,1"].map(OsString::from);
        match self.records::<serde_json::Value>(2, &arguments) {
            Ok(records) if !records.is_empty() => Ok(()),
            Ok(_) => Err(Error::input("on-ranks", format!(": {} started 2 ranks, which printed nothing", self.mpirun.display()))),
            Err(why) => Err(Error::input("on-ranks", format!(": {} cannot start ranks: {why}", self.mpirun.display()))),
        }
    }

    /// The records that this program writes on a number of ranks, a line each.
    ///
    /// # Errors
    /// If it fails, says something else, or takes too long.
    pub(super) fn records<T: DeserializeOwned>(&self, ranks: u32, arguments: &[OsString]) -> Result<Vec<T>> {
        let mut command = Command::new(&self.mpirun);
        if self.is_open_mpi {
            // Otherwise it wants a core for each rank, and is not started by root.
            command.arg("--oversubscribe");
            for family in ["OMPI", "PRTE"] {
                command.env(format!("{family}_ALLOW_RUN_AS_ROOT"), "1").env(format!("{family}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
            }
        }
        command.arg("-n").arg(ranks.to_string()).arg(&self.program).args(arguments).args(["--output", "json"]);
        let failed = |why: String| Error::Failed(format!("on {ranks} real ranks: {why}"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let cannot_start = |why: io::Error| io::Error::new(why.kind(), format!("{} cannot be started: {why}", self.mpirun.display()));
        // Signals are noted before there is a launcher, which would outlive this program otherwise.
        let launched = self.ending.passed_on(|ending| {
            let mut child = command.spawn().map_err(cannot_start)?;
            let (out, errors) = (read(child.stdout.take()), read(child.stderr.take()));
            Ok((ended(&mut child, ending)?, out, errors))
        });
        let (status, out, errors) = launched.map_err(|why| failed(why.to_string()))?;
        let text = |thread: thread::JoinHandle<Vec<u8>>| String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned();
        let (out, errors) = (text(out), text(errors));
        let last = || errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_string();
        match status {
            None => return Err(failed(format!("it was ended after {} s", LIMIT.as_secs()))),
            Some(status) if !status.success() => return Err(failed(format!("{status}: {}", last()))),
            Some(_) => {}
        }
        let records = out.lines().map(serde_json::from_str).collect::<Result<Vec<T>, _>>();
        records.map_err(|why| failed(format!("its records cannot be read: {why}")))
    }
}

/// All that comes through a pipe, read while the child runs.
fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read until an error is all that there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Waits for a child; `None` if it had to be ended, since it took too long or this program is to end.
fn ended(child: &mut Child, ending: &Ending) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until && ending.signal() == 0 {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK);
    }
    // A launcher ends its ranks before it ends itself, if it is asked.
    rustix::process::kill_process(Pid::from_child(child), Signal::TERM)?;
    let until = Instant::now() + GRACE;
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            child.kill()?;
        }
        thread::sleep(LOOK);
    }
    Ok(None)
}

/// The signals that end this program: while a launch runs it is ended first.
#[derive(Debug)]
struct Ending {
    /// Whether they do what they do by default, at once.
    at_once: Arc<AtomicBool>,
    /// The last one that came; 0 if none did.
    signal: Arc<AtomicUsize>,
}

impl Ending {
    fn new() -> io::Result<Ending> {
        let ending = Ending { at_once: Arc::new(true.into()), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignores(*signal)) {
            flag::register_conditional_default(signal, ending.at_once.clone())?;
            flag::register_usize(signal, ending.signal.clone(), signal as usize)?;
        }
        Ok(ending)
    }

    fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed) as i32
    }

    /// Result of some work, during which signals are only noted. Afterwards one that has come ends this program.
    fn passed_on<T>(&self, work: impl FnOnce(&Ending) -> io::Result<T>) -> io::Result<T> {
        self.at_once.store(false, Ordering::Relaxed);
        let done = work(self);
        self.at_once.store(true, Ordering::Relaxed);
        match self.signal() {
            0 => done,
            signal => low_level::emulate_default_handler(signal).and(done),
        }
    }
}
