//! Agreement of all ranks before a run, by [`equipoise::agreement`]: a topology whose file rank 0 reads, and equal options on all ranks.

pub use equipoise::agreement::{agree, difference, from_first, from_rank, on_worker, worked_out_by_first};
use equipoise::balance::{self, Chosen};
use equipoise::error::{Error, Result};
use equipoise::load::Link;
use equipoise::names;
use equipoise::topology::{RankId, Topology, Tree};
use equipoise::transport::world::World;

use super::tasks::Tasks;
use crate::workload::{links, text};

/// The tree that is made of the hosts of a world, and not of the number of its ranks.
const TREE_OF_HOSTS: &str = "tree:hosts";

/// The topology that a specification means on all ranks of a world. The file of a graph is read by rank 0.
///
/// # Errors
/// Wrong usage if there is no such topology, or the file can't be read.
pub fn topology(world: &mut World, spec: &str) -> Result<Topology> {
    if spec.trim() == TREE_OF_HOSTS {
        return Ok(Topology::Tree(Tree::of_hosts(&world.hosts()).into()));
    }
    let Some(file) = Topology::graph_file(spec) else { return Ok(Topology::parse(spec, world.ranks())?) };
    let text = from_first(world, || {
        text::read(&names::path(file)).map_err(|why| Error::unreadable("topology", format!(" graph:{file}: the file cannot be read"), why))
    })?;
    Ok(Topology::graph(file, &text)?)
}

/// The balancer that a specification means on all ranks of a world. The file of a partition is read by rank 0.
///
/// # Errors
/// Wrong usage if there is no such balancer, the file can't be read, or is no partition of this many ranks.
pub fn balancer(world: &mut World, spec: &str) -> Result<Chosen> {
    let Some(file) = balance::partition_file(spec) else { return balance::find(spec) };
    let ranks = world.ranks();
    let parts = from_first(world, || {
        let text = text::read(&names::path(file))
            .map_err(|why| Error::unreadable("balancer", format!(" from:{file}: the file cannot be read"), why))?;
        balance::read_partition(&text, ranks).map_err(|why| Error::input("balancer", format!(" from:{file}: {why}")))
    })?;
    Ok(balance::from_parts(file, parts))
}

/// Checks that a specification can mean a balancer, as far as that is known without ranks and files.
///
/// # Errors
/// Wrong usage if it can't.
pub fn check_balancer(spec: &str) -> Result<()> {
    match balance::partition_file(spec) {
        Some("") => Err(Error::usage("balancer from: the name of a file is missing")),
        Some(_) => Ok(()),
        None => balance::find(spec).map(|_| ()),
    }
}

/// Tasks with the links between them that a file gives, which rank 0 reads; the tasks as they are without one.
///
/// # Errors
/// Wrong usage if the file can't be read, or names other tasks.
pub fn linked(world: &mut World, tasks: Tasks, file: Option<&str>) -> Result<Tasks> {
    let Some(file) = file else { return Ok(tasks) };
    let links = links(world, file, tasks.count())?;
    Ok(tasks.linked(links.into()))
}

/// The speeds of simulated ranks, as their network's file has them; empty if all are 1, and on real ranks.
pub fn simulated_speeds(world: &mut World) -> Vec<f64> {
    let Some(world) = world.as_simulation() else { return Vec::new() };
    let speeds: Vec<f64> = world.model().speeds.iter().map(|speed| speed.value()).collect();
    if speeds.iter().all(|speed| *speed == 1.0) { Vec::new() } else { speeds }
}

/// Checks that there is such a rank; `option` is what names it.
///
/// # Errors
/// Wrong usage if not.
pub fn check_rank(option: &'static str, rank: RankId, ranks: u32) -> Result<()> {
    if rank.get() < ranks {
        return Ok(());
    }
    Err(Error::input(option, format!(" {rank}: there is no such rank; there are {ranks}, counted from 0")))
}

/// The links between tasks in a file, which rank 0 reads; `tasks` is the number of tasks.
///
/// # Errors
/// As [`linked`].
pub fn links(world: &mut World, file: &str, tasks: u64) -> Result<Vec<Link>> {
    from_first(world, || links::read(&names::path(file), tasks))
}
