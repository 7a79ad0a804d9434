//! The environment of an experiment: command, date, MPI and hosts, so that it can be repeated and its results judged.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use equipoise::topology::{HostId, RankId};
use equipoise::transport::world::World;

/// The environment of an experiment, in addition to its [site](super::Site).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Version of Equipoise.
    pub version: String,
    /// The command line, quoted so that a shell understands it.
    pub command: String,
    /// Whether the command is the one that the user typed. Otherwise it is the command of each rank, because the launcher's command is not
    /// known.
    pub is_whole: bool,
    /// Working directory of rank 0.
    pub folder: Option<String>,
    /// Date and time in UTC, in the format of ISO 8601.
    pub date: String,
    /// Name and version of the MPI library; `None` in simulation.
    pub mpi: Option<String>,
    /// Name of each host and its number of ranks, in the order of the ranks.
    pub hosts: Vec<(String, u32)>,
    /// Number of processors available to rank 0 on its host.
    pub cores: Option<usize>,
}

impl Environment {
    /// The environment of this process. `command` is the command line and whether the user typed it; `mpi` is the name of the MPI library.
    pub fn of(world: &World, (command, is_whole): (String, bool), mpi: Option<String>) -> Environment {
        let hosts = world.hosts();
        let mut ranks = BTreeMap::<HostId, u32>::new();
        for rank in RankId::all(hosts.ranks()) {
            *ranks.entry(hosts.host_of(rank)).or_default() += 1;
        }
        Environment {
            version: env!("CARGO_PKG_VERSION").into(),
            command,
            is_whole,
            folder: std::env::current_dir().ok().map(|folder| folder.display().to_string()),
            date: utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
            mpi: mpi.filter(|_| !world.is_simulated()),
            hosts: ranks.into_iter().map(|(host, ranks)| (hosts.name(host).to_string(), ranks)).collect(),
            cores: std::thread::available_parallelism().ok().map(usize::from),
        }
    }
}

/// A time in seconds since 1970, as ISO 8601 has it.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u -d @SECONDS +%FT%TZ` prints them.
        assert_eq!(
            [0, 951_782_400, 951_868_799, 951_868_800, 1_709_251_199, 1_735_689_599, 4_107_542_400, 253_402_300_799].map(utc),
            [
                "1970-01-01T00:00:00Z",
                "2000-02-29T00:00:00Z",
                "2000-02-29T23:59:59Z",
                "2000-03-01T00:00:00Z",
                "2024-02-29T23:59:59Z",
                "2024-12-31T23:59:59Z",
                "2100-03-01T00:00:00Z",
                "9999-12-31T23:59:59Z"
            ]
        );
    }
    use equipoise::topology::Hosts;
    use equipoise::transport::sim;

    #[test]
    fn hosts_are_counted_and_no_mpi_is_claimed() {
        let names = ["a", "b", "a"].map(String::from);
        let model = sim::Model { hosts: Some(Hosts::from_names(&names)), ..sim::Model::default() };
        let world = World::simulated(3, model);
        let environment = Environment::of(&world, ("equipoise compare".into(), true), Some("MPI".into()));
        assert_eq!(environment.hosts, [("a".to_string(), 2), ("b".to_string(), 1)]);
        assert_eq!((environment.command.as_str(), environment.mpi), ("equipoise compare", None));
        assert!(environment.date.len() == 20 && environment.date.ends_with('Z'), "{}", environment.date);
    }
}
