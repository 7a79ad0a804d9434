//! What all ranks must know or agree on before a run: one rank reads a file and tells the others, and when one rank cannot go on, all of
//! them stop with the same sentence.
//!
//! In simulation all ranks are in this process, so there is nothing to settle.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::names;
use crate::node;
use crate::topology::{Complete, Overlay, RankId, Topology};
use crate::transport::world::World;
use crate::workload::text;

/// What the first rank makes, on every rank; its error on every rank, too.
///
/// # Errors
/// The error of `make`, which runs on rank 0 only.
pub fn from_first<T>(world: &mut World, make: impl FnOnce() -> Result<T>) -> Result<T>
where
    T: Clone + Serialize + DeserializeOwned + 'static,
{
    if world.is_simulated() {
        return make();
    }
    let mut made = world.is_first().then(make);
    let overlay = plain(world)?;
    let told = node::run(world, &overlay, |node| {
        let made = made.take();
        async move { node.everyone().broadcast(&node, 0, made).await }
    })?;
    only(told)?
}

/// The topology that a specification of `--topology` means on all ranks of a world. The file of a graph is read by rank 0.
///
/// # Errors
/// Wrong usage if there is no such topology, or the file can't be read.
pub fn topology(world: &mut World, spec: &str) -> Result<Topology> {
    let Some(file) = Topology::graph_file(spec) else { return Ok(Topology::parse(spec, world.ranks())?) };
    let text = from_first(world, || {
        text::read(&names::path(file)).map_err(|why| Error::usage(format!("--topology graph:{file}: the file cannot be read: {why}")))
    })?;
    Ok(Topology::graph(file, &text)?)
}

/// The rank's own result, if no rank failed; the error of the first failing rank on every rank otherwise.
///
/// # Errors
/// The first failing rank's.
pub fn agree<T: 'static>(world: &mut World, mine: Result<T>) -> Result<T> {
    if world.is_simulated() {
        return mine;
    }
    let mut mine = Some(mine);
    let overlay = plain(world)?;
    let agreed = node::run(world, &overlay, |node| {
        let mine = mine.take();
        async move {
            let mine = mine.unwrap_or_else(|| Err(Error::Failed("a rank has one node here".into())));
            // The outcome is the program's value, not its error: an error would end the whole job.
            match node.everyone().agree(&node, mine).await {
                Err(lost @ Error::RankLost { .. }) => Err(lost),
                agreed => Ok(agreed),
            }
        }
    })?;
    only(agreed)?
}

/// The first rank whose value is not that of rank 0, with both values (rank 0's first), on every rank; `None` if all ranks have the same.
///
/// Where they are the same, which is the usual case, eight bytes of each value travel.
///
/// # Errors
/// As [`World::run`].
pub fn difference<T>(world: &mut World, mine: &T) -> Result<Option<(RankId, T, T)>>
where
    T: Clone + PartialEq + Serialize + DeserializeOwned + 'static,
{
    if world.is_simulated() {
        return Ok(None);
    }
    let overlay = plain(world)?;
    let found = node::run(world, &overlay, |node| {
        let mine = mine.clone();
        async move {
            let hash = blake3::hash(&node::pack(&mine));
            let digest = hash.as_bytes().iter().take(8).fold(0u64, |digest, byte| digest << 8 | u64::from(*byte));
            let everyone = node.everyone();
            let (low, high) = everyone.all_reduce(&node, (digest, digest), |a, b| (a.0.min(b.0), a.1.max(b.1))).await?;
            if low == high {
                return Ok(None);
            }
            let all = everyone.all_gather(&node, mine).await?;
            let mut ranked = (0..).zip(all.iter());
            let Some((_, first)) = ranked.next() else { return Ok(None) };
            Ok(ranked.find(|(_, value)| *value != first).map(|(rank, other)| (rank, first.clone(), other.clone())))
        }
    })?;
    only(found)
}

/// One node on each rank.
pub(super) fn plain(world: &World) -> Result<Overlay> {
    let ranks = world.ranks();
    Ok(Overlay::new(Topology::Complete(Complete::new(ranks)?), world.hosts())?)
}

fn only<T>(results: Vec<(u32, T)>) -> Result<T> {
    let mut results = results.into_iter();
    results.next().map(|(_, result)| result).ok_or_else(|| Error::Failed("this rank's node left no result".into()))
}
