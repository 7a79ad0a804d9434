//! Whether tasks with payloads fit into this machine's memory.

use std::path::Path;

use super::text;
use crate::error::{Error, Result};
use crate::load::Segment;

/// The memory that programs can still get on this machine, in bytes; `None` where it cannot be told (there is no `/proc/meminfo`).
pub fn available() -> Option<u64> {
    available_in(&text::read(Path::new("/proc/meminfo")).ok()?)
}

/// The available memory that the text of `/proc/meminfo` tells, in bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let mut words = line.split_whitespace();
    let (number, unit) = (words.next()?.parse::<u64>().ok()?, words.next()?);
    (unit == "kB").then(|| number.checked_mul(1024))?
}

/// The bytes that `tasks` tasks of `payload` bytes each take, with what describes them. Without payload they are ranges of ids and take
/// nothing.
pub fn needed(tasks: u64, payload: u64) -> u128 {
    match payload {
        0 => 0,
        _ => u128::from(tasks).saturating_mul(u128::from(payload) + size_of::<Segment>() as u128),
    }
}

/// Refuses payloads beyond the `available` memory: `tasks` is the largest number of tasks that one machine holds, `payload` the bytes of
/// each.
pub fn check(tasks: u64, payload: u64, available: Option<u64>) -> Result<()> {
    check_bytes(tasks, &format!("--payload {payload}"), needed(tasks, payload), available)
}

/// Refuses what needs more than the `available` memory: `tasks` is the largest number of tasks that one machine holds, `asked` the option
/// that makes them need so much.
pub fn check_bytes(tasks: u64, asked: &str, needed: u128, available: Option<u64>) -> Result<()> {
    match available {
        Some(bytes) if needed > u128::from(bytes) => Err(Error::usage(format!(
            "{asked}: {tasks} tasks on one machine take {}, but this machine has {} available",
            in_units(needed),
            in_units(u128::from(bytes))
        ))),
        _ => Ok(()),
    }
}

/// What a simulated rank takes at the least, in bytes: measured with a balancer that does nothing, 1,760.
const SIMULATED_RANK: u128 = 1024;

/// Refuses more simulated ranks than the `available` memory can hold.
pub fn check_simulated(ranks: u32, available: Option<u64>) -> Result<()> {
    let needed = u128::from(ranks) * SIMULATED_RANK;
    match available {
        Some(bytes) if needed > u128::from(bytes) => Err(Error::usage(format!(
            "--sim {ranks}: that many ranks take {} at the least, but this machine has {} available",
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

    #[test]
    fn meminfo_is_read_in_kib() {
        let text = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    8192000 kB\n";
        assert_eq!(available_in(text), Some(8_192_000 * 1024));
        assert_eq!(available_in("MemTotal: 5 kB\n"), None);
        assert_eq!(available_in("MemAvailable: many kB\n"), None);
        assert_eq!(available_in("MemAvailable: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn simulated_ranks_beyond_memory_are_refused() {
        let gib = 1 << 30;
        assert_eq!(check_simulated(1 << 20, Some(gib)), Ok(()));
        assert_eq!(check_simulated(u32::MAX, None), Ok(()));
        let why = check_simulated(1 << 21, Some(gib)).unwrap_err().to_string();
        assert_eq!(why, "--sim 2097152: that many ranks take 2.0 GiB at the least, but this machine has 1.0 GiB available");
    }

    #[test]
    fn payloads_beyond_memory_are_refused() {
        let gib = 1 << 30;
        assert_eq!(check(1000, 1 << 10, Some(gib)), Ok(()));
        assert_eq!(check(u64::MAX, 0, Some(0)), Ok(()));
        assert_eq!(check(u64::MAX, u64::MAX, None), Ok(()));
        let why = check(2048, 1 << 20, Some(gib)).unwrap_err().to_string();
        assert_eq!(why, "--payload 1048576: 2048 tasks on one machine take 2.0 GiB, but this machine has 1.0 GiB available");
        let why = check(u64::MAX, u64::MAX, Some(512)).unwrap_err().to_string();
        assert!(why.ends_with("EiB, but this machine has 512 bytes available"), "{why}");
    }
}
