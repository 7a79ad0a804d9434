//! Agreement of all ranks before a run: one rank reads a file and broadcasts it, and when one rank fails, all of them stop with the same
//! sentence.
//!
//! In simulation all ranks are in this process, so there is nothing to settle.

mod collectives;

use std::hash::{DefaultHasher, Hasher};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::collectives::{Collectives, Used, use_collectives};
use crate::error::{Error, Result, Travelling};
use crate::node::{self, Event, Node, Ticks};
use crate::topology::{Complete, Overlay, RankId, Topology};
use crate::transport::world::World;

/// Calls `make` on the first rank and returns its result, or its error, on every rank.
///
/// # Errors
/// The error of `make`, which runs on rank 0 only.
pub fn from_first<T>(world: &mut World, make: impl FnOnce() -> Result<T>) -> Result<T>
where
    T: Clone + Serialize + DeserializeOwned + 'static,
{
    from_rank(world, RankId::FIRST, make)
}

/// Calls `make` on one rank and returns its result, or its error, on every rank.
///
/// # Errors
/// The error of `make`, which runs on that rank only.
pub fn from_rank<T>(world: &mut World, rank: RankId, make: impl FnOnce() -> Result<T>) -> Result<T>
where
    T: Clone + Serialize + DeserializeOwned + 'static,
{
    if world.is_simulated() {
        return make();
    }
    let mut made = world.held().contains(&rank).then(|| make().map_err(Travelling::from));
    let overlay = one_node_per_rank(world)?;
    let answers = node::run(world, &overlay, |node| {
        let made = made.take();
        async move { node.everyone().broadcast(&node, rank.get(), made).await }
    })?;
    Ok(only(answers)??)
}

/// Calls `make`, which may take long, on a worker of the first rank, and returns its result, or its error, on every rank. Meanwhile the first rank
/// answers the others, so that no watchdog takes it for one that stands still.
///
/// # Errors
/// The error of `make`, or a lost rank.
pub fn worked_out_by_first<T>(world: &mut World, make: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T>
where
    T: Clone + Serialize + DeserializeOwned + Send + 'static,
{
    if world.is_simulated() {
        return make();
    }
    let mut make = Some(make);
    let overlay = one_node_per_rank(world)?;
    let answers = node::run(world, &overlay, |node| {
        let make = make.take().filter(|_| node.me() == RankId::FIRST.get());
        async move {
            let made = match make {
                Some(make) => Some(on_worker(&node, make).await?.0.map_err(Travelling::from)),
                None => None,
            };
            node.everyone().broadcast(&node, RankId::FIRST.get(), made).await
        }
    })?;
    Ok(only(answers)??)
}

/// Calls `work` on a worker of the node's rank; its result, and the time that it took on the node's clock.
///
/// # Errors
/// If a rank is lost meanwhile.
pub async fn on_worker<T: Send + 'static>(node: &Node, work: impl FnOnce() -> T + Send + 'static) -> Result<(T, Ticks)> {
    let apart = node.epoch(node::epochs::APART);
    let started = apart.start(move |_| work());
    loop {
        match apart.next_event().await {
            Event::Finished { finished, .. } if finished.work == started => {
                let took = finished.ended.saturating_sub(finished.began);
                let output = finished.output.downcast::<T>();
                return output.map(|output| (*output, took)).map_err(|_| Error::Failed("work returned something else".into()));
            }
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            Event::Finished { .. } | Event::Message(_) | Event::Timer { .. } | Event::Signal(_) => {}
        }
    }
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
    let overlay = one_node_per_rank(world)?;
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

/// On every rank, the first rank whose value differs from that of rank 0, with both values (rank 0's first); `None` if all values are
/// equal.
///
/// If they are equal, which is the usual case, only eight bytes of each value are sent.
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
    let overlay = one_node_per_rank(world)?;
    let found = node::run(world, &overlay, |node| {
        let mine = mine.clone();
        async move {
            let mut hasher = DefaultHasher::new();
            hasher.write(&node::pack(&mine));
            let digest = hasher.finish();
            let everyone = node.everyone();
            let (low, high) = everyone.all_reduce(&node, (digest, digest), |a, b| (a.0.min(b.0), a.1.max(b.1))).await?;
            if low == high {
                return Ok(None);
            }
            let all = everyone.all_gather(&node, mine).await?;
            let mut ranked = (0..).map(RankId::new).zip(all.iter());
            let Some((_, first)) = ranked.next() else { return Ok(None) };
            Ok(ranked.find(|(_, value)| *value != first).map(|(rank, other)| (rank, first.clone(), other.clone())))
        }
    })?;
    only(found)
}

/// Returns true on all ranks if any rank was asked to end; the world remembers it. Without a request that the world [listens
/// to](World::end_on), no messages are sent.
///
/// # Errors
/// As [`World::run`].
pub fn is_interrupted(world: &mut World) -> Result<bool> {
    let Some(interrupt) = world.interrupt() else { return Ok(false) };
    let mine = interrupt.signal();
    let signal = if world.is_simulated() {
        mine
    } else {
        let overlay = one_node_per_rank(world)?;
        only(node::run(world, &overlay, |node| async move { node.everyone().all_reduce(&node, mine, i32::max).await })?)?
    };
    world.note_interruption(signal);
    Ok(signal != 0)
}

/// An overlay of one node on each rank of a world.
///
/// # Errors
/// If the world has too many ranks for a topology.
pub fn one_node_per_rank(world: &World) -> Result<Overlay> {
    let ranks = world.ranks();
    Ok(Overlay::new(Topology::Complete(Complete::new(ranks)?), world.hosts())?)
}

/// The value of the only node of this rank.
///
/// # Errors
/// If it left none.
pub fn only<T>(results: Vec<(u32, T)>) -> Result<T> {
    let mut results = results.into_iter();
    results.next().map(|(_, result)| result).ok_or_else(|| Error::Failed("this rank's node left no result".into()))
}
