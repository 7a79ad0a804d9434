//! A process that outlives this one for a moment, and ends the programs that it has left running.
//!
//! However this process ends (by a signal that nobody can catch, by the end of its job, by a panic), the pipe to the guard closes. The guard then
//! kills the process groups that it was told of and that have not ended, and whatever has this process's [mark](super::mark). It has a process group
//! of its own, so that what ends this process's group does not end the guard.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;

use super::mark;

/// `+ GROUP` when a group has begun, `- GROUP` when it has ended.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2
running=' '
while read -r what group; do
    case $what$running in
    +*) running="$running$group " ;;
    -*" $group "*) running="${running%% "$group" *} ${running#* "$group" }" ;;
    esac
done
for group in $running; do kill -s KILL -- "-$group"; done
for again in 1 2 3 4 5 6 7 8 9; do
    found=
    for place in $(grep -l -s -z "^$1" /proc/[0-9]*/environ); do
        place=${place#/proc/}
        kill -s KILL "${place%/environ}" && found=yes
    done
    [ "$found" ] || break
done
"#;

static GUARD: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// A group under guard, until the value goes away: by then it must have ended.
#[derive(Debug)]
pub struct Guarded(Pid);

impl Guarded {
    /// Puts a process group under guard.
    ///
    /// # Errors
    /// If there can be no guard.
    pub fn new(group: Pid) -> io::Result<Guarded> {
        let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        let told = guard.as_mut().is_some_and(|guard| tell(guard, '+', group).is_ok());
        if !told {
            // The first one, or somebody has ended the one before.
            tell(guard.insert(start()?), '+', group)?;
        }
        Ok(Guarded(group))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guard) = guard.as_mut() {
            // A guard that is gone does no harm either.
            let _ = tell(guard, '-', self.0);
        }
    }
}

fn start() -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh");
    // A program of ours may itself be an equipoise that was started so: its guard must outlive it, too.
    shell.env_remove(mark::VARIABLE);
    shell
        .arg("-c")
        .arg(SCRIPT)
        .arg("guard")
        .arg(format!("{}={}", mark::VARIABLE, *mark::OURS))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = shell.current_dir("/").process_group(0).spawn()?;
    child.stdin.take().ok_or_else(|| io::Error::other("the guard has no standard input"))
}

fn tell(guard: &mut ChildStdin, what: char, group: Pid) -> io::Result<()> {
    // In one write: a line is short enough for a pipe to take it whole.
    guard.write_all(format!("{what} {}\n", group.as_raw_nonzero()).as_bytes())
}
