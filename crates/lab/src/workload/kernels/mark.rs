//! What the processes of a program are known by, whatever process group or session they have made for themselves: a variable of their environment,
//! which their children inherit. On Linux everybody can see it in `/proc`; elsewhere nobody is found by it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

/// The variable.
pub const VARIABLE: &str = "EQUIPOISE_COMMAND";

/// What all marks of this process begin with; no other process has it.
pub static OURS: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}.{since}:", std::process::id())
});

/// The mark of one program.
#[derive(Clone, Debug)]
pub struct Mark(String);

impl Mark {
    /// A new one.
    pub fn new() -> Mark {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Mark(format!("{}{};", *OURS, NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The variable's value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// Kills all that have it, those that they start meanwhile, too.
    pub fn kill(&self) {
        /// Processes that start others faster than we find them are left to themselves.
        const ROUNDS: usize = 50;
        for _ in 0..ROUNDS {
            let found = self.found();
            // Some have ended by themselves since.
            found.iter().for_each(|pid| _ = kill_process(*pid, Signal::KILL));
            if found.is_empty() {
                return;
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn found(&self) -> Vec<Pid> {
        let entry = format!("{VARIABLE}={}", self.0);
        let has_it = |pid: Pid| {
            let path = format!("/proc/{}/environ", pid.as_raw_nonzero());
            // Environments of other users can't be read, and are none of ours.
            let Ok(file) = std::fs::File::open(path) else { return false };
            let mut environment = std::io::BufReader::new(file);
            let mut variable = Vec::new();
            loop {
                variable.clear();
                match std::io::BufRead::read_until(&mut environment, 0, &mut variable) {
                    Ok(1..) if variable.strip_suffix(b"\0").unwrap_or(&variable) == entry.as_bytes() => return true,
                    Ok(1..) => {}
                    _ => return false,
                }
            }
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| has_it(*pid)).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn found(&self) -> Vec<Pid> {
        Vec::new()
    }
}
