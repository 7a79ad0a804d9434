//! Whether tasks with payloads fit into this machine's memory.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::text;
use equipoise::error::{Error, Result};
use equipoise::load::Segment;

/// The memory that this process can still get, in bytes; `None` where it cannot be determined. It is the least of what the machine has, what the
/// limits of the process leave (`ulimit -v`, `ulimit -d`), and what its control groups leave (batch systems and containers set these).
pub fn available() -> Option<u64> {
    let of_machine = text::read(Path::new("/proc/meminfo")).ok().and_then(|meminfo| in_kib(&meminfo, "MemAvailable:"));
    let status = text::read(Path::new("/proc/self/status")).unwrap_or_default();
    let limits = [(Resource::As, "VmSize:"), (Resource::Data, "VmData:")];
    let of_limits = limits.map(|(resource, used)| Some(getrlimit(resource).current?.saturating_sub(in_kib(&status, used)?)));
    let of_groups = text::read(Path::new("/proc/self/cgroup")).ok().and_then(|groups| left_by(&groups, Path::new(GROUPS)));
    [of_machine, of_groups].into_iter().chain(of_limits).flatten().min()
}

/// Value of a line of `/proc/meminfo` or `/proc/self/status`, in bytes.
fn in_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace();
    let (number, unit) = (words.next()?.parse::<u64>().ok()?, words.next()?);
    (unit == "kB").then(|| number.checked_mul(1024))?
}

/// Folder of the control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// Names in a version of control groups: the folder of memory's hierarchy below [`GROUPS`], and the files with the limit, with the memory
/// in use, and with the reclaimable part of it (`NAME NUMBER` lines, and the name).
struct Version {
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    cache: &'static str,
}

const V1: Version =
    Version { folder: "memory", limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", cache: "total_inactive_file" };
const V2: Version = Version { folder: "", limit: "memory.max", used: "memory.current", cache: "inactive_file" };

/// The least that the control groups of `/proc/self/cgroup` leave: those of both versions, each with all groups above it.
fn left_by(groups: &str, root: &Path) -> Option<u64> {
    let left_in = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let version = match controllers {
            "" => &V2,
            _ if controllers.split(',').any(|name| name == "memory") => &V1,
            _ => return None,
        };
        let top = root.join(version.folder);
        // In a container the group's name may be that of the host, which is not there: its own top is.
        let own = top.join(group.trim_start_matches('/'));
        let begin = if own.is_dir() { own } else { top.clone() };
        begin.ancestors().take_while(|folder| folder.starts_with(&top)).filter_map(|folder| version.leaves(folder)).min()
    };
    groups.lines().filter_map(left_in).min()
}

impl Version {
    /// Memory that one group leaves; `None` if it sets no limit.
    fn leaves(&self, folder: &Path) -> Option<u64> {
        let read = |name: &str| text::read(&folder.join(name)).ok();
        let limit: u64 = read(self.limit)?.trim().parse().ok()?;
        let used: u64 = read(self.used)?.trim().parse().ok()?;
        let statistics = read("memory.stat").unwrap_or_default();
        let named = |line: &str| line.strip_prefix(self.cache)?.trim().parse::<u64>().ok();
        let cache = statistics.lines().find_map(named).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cache)))
    }
}

/// Upper bound on the number of copies of payloads in memory at a time: tasks that move are where they were and in the messages that take them away.
/// Measured with payloads that nearly all move, as on one node of several: 1.5 to 1.9 times.
const COPIES: u128 = 2;

/// The bytes that `tasks` tasks of `payload` bytes each take while they move, with what describes them. Without payload they are ranges of
/// ids and take nothing.
pub fn needed(tasks: u64, payload: u64) -> u128 {
    match payload {
        0 => 0,
        _ => while_moving(u128::from(tasks).saturating_mul(u128::from(payload) + size_of::<Segment>() as u128)),
    }
}

/// Memory in bytes that tasks of this many bytes take while they move.
pub fn while_moving(bytes: u128) -> u128 {
    bytes.saturating_mul(COPIES)
}

/// Refuses payloads beyond the `available` memory: `tasks` is the largest number of tasks that one machine holds, `payload` the bytes of
/// each.
///
/// # Errors
/// [`Error::Usage`], which names the option and both amounts.
pub fn check(tasks: u64, payload: u64, available: Option<u64>) -> Result<()> {
    check_bytes(tasks, &format!("--payload {payload}"), needed(tasks, payload), available)
}

/// Refuses what needs more than the `available` memory: `tasks` is the largest number of tasks that one machine holds, `asked` the option from which
/// the need results.
///
/// # Errors
/// [`Error::Usage`], which names the option and both amounts.
pub fn check_bytes(tasks: u64, asked: &str, needed: u128, available: Option<u64>) -> Result<()> {
    match available {
        Some(bytes) if needed > u128::from(bytes) => Err(Error::usage(format!(
            "{asked}: {tasks} tasks on one machine take {} while they move, but {} can be had",
            in_units(needed),
            in_units(u128::from(bytes))
        ))),
        _ => Ok(()),
    }
}

/// Lower bound on the memory of a simulated rank, in bytes: measured with a balancer that does nothing; others take 2,600 to 4,400.
const SIMULATED_RANK: u128 = 1_760;

/// Refuses more simulated ranks than the `available` memory can hold.
///
/// # Errors
/// [`Error::Usage`] with both amounts.
pub fn check_simulated(ranks: u32, available: Option<u64>) -> Result<()> {
    let needed = u128::from(ranks) * SIMULATED_RANK;
    match available {
        Some(bytes) if needed > u128::from(bytes) => Err(Error::usage(format!(
            "--sim {ranks}: that many ranks take {} at least, but {} can be had",
            in_units(needed),
            in_units(u128::from(bytes))
        ))),
        _ => Ok(()),
    }
}

/// A number of bytes for people, rounded: `1.5 GiB`.
fn in_units(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let steps = (bytes.checked_ilog2().unwrap_or(0) / 10).min(UNITS.len() as u32 - 1);
    match steps {
        0 => format!("{bytes} {}", UNITS[0]),
        _ => format!("{:.1} {}", bytes as f64 / 1024f64.powi(steps as i32), UNITS[steps as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing;

    #[test]
    fn meminfo_is_read_in_kib() {
        let available_in = |text: &str| in_kib(text, "MemAvailable:");
        let text = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    8192000 kB\n";
        assert_eq!(available_in(text), Some(8_192_000 * 1024));
        assert_eq!(available_in("MemTotal: 5 kB\n"), None);
        assert_eq!(available_in("MemAvailable: many kB\n"), None);
        assert_eq!(available_in("MemAvailable: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn the_least_that_any_group_leaves_counts() {
        let root = testing::folder(&[
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "5000\n"),
            ("a/memory.max", "9000\n"),
            ("a/memory.current", "6000\n"),
            ("a/memory.stat", "anon 1\ninactive_file 500\nfile 7\n"),
            ("memory/job/memory.limit_in_bytes", "4000\n"),
            ("memory/job/memory.usage_in_bytes", "1000\n"),
            ("memory/memory.limit_in_bytes", "2500\n"),
            ("memory/memory.usage_in_bytes", "100\n"),
        ]);
        let left = |groups: &str| left_by(groups, root.path());
        // The limit of a group above counts, and what is only cache does not.
        assert_eq!(left("0::/a/b\n"), Some(3500));
        assert_eq!(left("11:cpu,memory:/job\n3:cpu:/job\n0::/\n"), Some(2400));
        assert_eq!(left("11:memory:/job\n0::/a/b\n"), Some(2400));
        // A container sees its own groups only, whatever they are called outside.
        assert_eq!(left("11:memory:/docker/123\n"), Some(2400));
        assert_eq!((left("0::/\n"), left("3:cpu:/job\n"), left("")), (None, None, None));
    }

    #[test]
    fn simulated_ranks_beyond_memory_are_refused() {
        let gib = 1 << 30;
        assert_eq!(check_simulated(1 << 19, Some(gib)), Ok(()));
        assert_eq!(check_simulated(u32::MAX, None), Ok(()));
        let why = check_simulated(1 << 21, Some(gib)).unwrap_err().to_string();
        assert_eq!(why, "--sim 2097152: that many ranks take 3.4 GiB at least, but 1.0 GiB can be had");
    }

    #[test]
    fn payloads_beyond_memory_are_refused() {
        let gib = 1 << 30;
        assert_eq!(check(1000, 1 << 10, Some(gib)), Ok(()));
        assert_eq!(check(u64::MAX, 0, Some(0)), Ok(()));
        assert_eq!(check(u64::MAX, u64::MAX, None), Ok(()));
        let why = check(2048, 1 << 20, Some(gib)).unwrap_err().to_string();
        assert_eq!(why, "--payload 1048576: 2048 tasks on one machine take 4.0 GiB while they move, but 1.0 GiB can be had");
        let why = check(u64::MAX, u64::MAX, Some(512)).unwrap_err().to_string();
        assert!(why.ends_with("EiB while they move, but 512 bytes can be had"), "{why}");
    }
}
