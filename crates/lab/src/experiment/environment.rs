//! Under which circumstances an experiment took place: what somebody needs who wants to repeat it, or doubts it.

use std::collections::BTreeMap;

use serde::Serialize;

use equipoise::topology::HostId;
use equipoise::transport::world::World;

/// The circumstances of an experiment beside its [site](super::Site).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Equipoise's.
    pub version: String,
    /// The command line, quoted so that a shell understands it.
    pub command: String,
    /// Whether that is all that was typed: not what each rank of a launcher that nobody can ask was started with.
    pub is_whole: bool,
    /// The folder that it was typed in, as far as rank 0 knows.
    pub folder: Option<String>,
    /// When, in UTC, as ISO 8601 has it.
    pub date: String,
    /// The MPI that carried the messages; `None` in simulation.
    pub mpi: Option<String>,
    /// Names of the hosts and their numbers of ranks, in the order of the ranks.
    pub hosts: Vec<(String, u32)>,
    /// Processors that the system offers on the host of rank 0.
    pub cores: Option<usize>,
}

impl Environment {
    /// The circumstances now. `command` is what was typed, and whether that is all of it, `mpi` says what the world's messages are carried by.
    pub fn of(world: &World, (command, is_whole): (String, bool), mpi: Option<String>) -> Environment {
        let hosts = world.hosts();
        let mut ranks = BTreeMap::<HostId, u32>::new();
        for rank in 0..hosts.ranks() {
            *ranks.entry(hosts.host_of(rank)).or_default() += 1;
        }
        Environment {
            version: env!("CARGO_PKG_VERSION").into(),
            command,
            is_whole,
            folder: std::env::current_dir().ok().map(|folder| folder.display().to_string()),
            date: jiff::Timestamp::now().round(jiff::Unit::Second).map_or_else(|_| String::new(), |now| now.to_string()),
            mpi: mpi.filter(|_| !world.is_simulated()),
            hosts: ranks.into_iter().map(|(host, ranks)| (hosts.name(host).to_string(), ranks)).collect(),
            cores: std::thread::available_parallelism().ok().map(usize::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
