//! Orphans: processes whose parents have ended before them. They become children of their nearest ancestor that adopts, and so they are found whatever
//! their group, their session and their environment.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Longest time that is spent on ending them. One that waits in the kernel, as for a file server that does not answer, ends only after that.
const LONGEST: Duration = Duration::from_secs(5);

/// Makes this process adopt all orphans among its descendants from now on. No process does so elsewhere than on Linux.
pub fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The children of this process, adopted ones and those that are not buried included.
pub fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = lists.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>());
    pids.filter_map(Pid::from_raw).collect()
}

/// Kills and buries all children of this process except these, then the orphans that this makes, until none is left.
pub fn end_all_but(spared: &[Pid]) {
    let began = Instant::now();
    loop {
        let others: Vec<Pid> = children().into_iter().filter(|pid| !spared.contains(pid)).collect();
        if others.is_empty() || began.elapsed() > LONGEST {
            return;
        }
        for pid in others {
            // One that has ended already is only buried.
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
