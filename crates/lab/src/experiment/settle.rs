//! What all ranks must know or agree on before a run, over [`equipoise::agreement`]: a topology whose file rank 0 reads, and whether all were given
//! the same.

pub use equipoise::agreement::{agree, difference, from_first};
use equipoise::error::{Error, Result};
use equipoise::names;
use equipoise::topology::{Topology, Tree};
use equipoise::transport::world::World;

use crate::workload::text;

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
