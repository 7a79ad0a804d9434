//! A variable in the environment of all that a helper starts, by which it is found again: whatever its parents, its group or its session.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// The variable.
pub const VARIABLE: &str = "FARM_MARK";

/// The mark of one helper's commands.
#[derive(Clone, Debug)]
pub struct Mark {
    variable: &'static str,
    value: OsString,
}

impl From<OsString> for Mark {
    fn from(value: OsString) -> Mark {
        Mark { variable: VARIABLE, value }
    }
}

impl Mark {
    /// A mark that no other process has.
    pub fn new() -> Mark {
        Mark::of(VARIABLE)
    }

    /// The same with a variable of its own: a process started by a command of a farm also keeps that command's mark.
    pub fn of(variable: &'static str) -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Mark { variable, value: format!("{}-{:x}-{next}", std::process::id(), now.as_nanos()).into() }
    }

    /// The mark that another process has made.
    pub fn again(variable: &'static str, value: &[u8]) -> Mark {
        Mark { variable, value: OsStr::from_bytes(value).into() }
    }

    pub fn value(&self) -> &OsStr {
        &self.value
    }

    /// Kills all processes with this mark except the caller, including processes that they start meanwhile.
    pub fn kill(&self) {
        // Processes started while the list was read are in the next one.
        for _ in 0..10 {
            if self.found().into_iter().filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count() == 0 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The processes with this mark. Elsewhere than on Linux there is no such list.
    pub fn found(&self) -> Vec<Pid> {
        let assignment = [self.variable.as_bytes(), b"=", self.value.as_bytes()].concat();
        let has_mark = |pid: &Pid| {
            let read = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
            read.is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == assignment))
        };
        let me = rustix::process::getpid();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| *pid != me).filter(has_mark).collect()
    }
}

impl Default for Mark {
    fn default() -> Mark {
        Mark::new()
    }
}
