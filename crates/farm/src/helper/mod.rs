//! The helper: a small process that starts commands in a rank's place.
//!
//! A process that has MPI up must not fork. So the program executes itself under another name before MPI is initialised, and that process, which has
//! neither MPI nor threads nor the rank's descriptors, starts the commands (`posix_spawn`). It has a process group of its own and a socket to the
//! rank. When the rank is gone the socket is closed, and the helper ends all that it has started. When the helper is gone, the rank does that, and
//! ends the job. Both find what has left its group, its session and its environment among the [orphans] that they adopt.

pub mod capture;
pub mod mark;
pub mod orphans;
pub mod protocol;
pub mod running;
pub mod scarcity;
pub mod server;
pub mod sleeping;
pub mod slots;
pub mod verdict;
pub mod waiting;

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;

use rustix::process::Pid;
use tempfile::TempDir;

use crate::{environment, starter};
use mark::Mark;
use protocol::{News, Order};

/// Name of the program when it runs as a helper.
const NAME: &str = "equipoise-helper";

/// Serves as a helper or a `starter`, if this process was started as one.
pub fn serve_if_called() -> Option<ExitCode> {
    starter::SERVES.store(true, Ordering::Relaxed);
    let mut words = std::env::args_os();
    let name = words.next()?;
    if name.as_os_str() == starter::NAME {
        return Some(match server::serve_starter() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        });
    }
    if name.as_os_str() != NAME {
        return None;
    }
    let (folder, mark) = (words.next()?, words.next()?);
    Some(match server::serve(Path::new(&folder), &Mark::from(mark)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("equipoise: farm: the helper that starts the commands: {why}");
            ExitCode::FAILURE
        }
    })
}

/// A helper that was started.
pub struct Helper {
    child: Child,
    socket: UnixStream,
    mark: Mark,
    /// Children that this process had before; what it adopts if the helper is killed is none of them.
    before: Vec<Pid>,
    /// Folder for collected outputs.
    folder: TempDir,
}

impl Helper {
    /// Starts it. To be called before MPI is initialised.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start() -> io::Result<Helper> {
        Helper::of("/proc/self/exe".as_ref())
    }

    fn of(program: &Path) -> io::Result<Helper> {
        let folder = tempfile::Builder::new().prefix("equipoise-farm-").tempdir()?;
        let (socket, theirs) = UnixStream::pair()?;
        let mark = Mark::new();
        let mut command = Command::new(program);
        command.arg0(NAME).arg(folder.path()).arg(mark.value());
        environment::hidden().iter().for_each(|name| _ = command.env_remove(name));
        command.env(mark::VARIABLE, mark.value());
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
        let before = orphans::children();
        orphans::adopt();
        Ok(Helper { child: command.spawn()?, socket, mark, before, folder })
    }

    /// Gives it an order.
    ///
    /// # Errors
    /// If it is gone.
    pub fn order(&self, order: &Order) -> io::Result<()> {
        protocol::send(&self.socket, order)
    }

    /// Starts a thread that passes on what the helper says; `None` when it is gone.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn listen(&self, hear: impl Fn(Option<News>) + Send + 'static) -> io::Result<()> {
        let mut socket = self.socket.try_clone()?;
        let listen = move || {
            let mut arrived = Vec::new();
            while let Ok(Some(news)) = protocol::receive(&mut socket, &mut arrived) {
                hear(Some(news));
            }
            hear(None);
        };
        std::thread::Builder::new().name("news".into()).spawn(listen).map(|_| ())
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The folder of outputs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Helper {
    /// Ends it, with all that it has started.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let ended = self.child.wait();
        // One that was killed has left its tasks.
        self.mark.kill();
        if ended.is_ok_and(|status| !status.success()) {
            orphans::end_all_but(&self.before);
        }
    }
}
