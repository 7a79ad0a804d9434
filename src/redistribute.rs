//! Balancing a program's own tasks: anything that serialises, from a `Vec` on each rank to a `Vec` on each rank.
//!
//! ```
//! use equipoise::{redistribute, transport::{sim, world::World}};
//!
//! let mut world = World::simulated(4, sim::Model::default());
//! // Rank 0 has all the work.
//! let tasks = redistribute(&mut world, "direct", |rank| if rank == 0 { vec!["a", "b", "c", "d"] } else { vec![] }.into_iter().map(String::from).collect())?;
//! assert!(tasks.iter().all(|(_, tasks): &(u32, Vec<String>)| tasks.len() == 1));
//! # Ok::<(), equipoise::Error>(())
//! ```

use std::rc::Rc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agreement;
use crate::balance::{self, Chosen, Phase};
use crate::error::{Error, Result};
use crate::load::{Checksum, Powers, Segment, Shares, Task, WorkQueue};
use crate::node::{self, Node};
use crate::phase::conserved;
use crate::topology::{Overlay, RankId};
use crate::transport::wire;
use crate::transport::world::World;

/// Balances this rank's tasks with those of all other ranks, so that every rank ends with as many as any other, give or take one (what
/// exactly, and at what cost, is the [balancer's](balance::ALL) affair; it is named as on the command line, `"direct"` say).
///
/// Every rank calls this with its own tasks; which come back in which order is the balancer's affair, too. Tasks that leave a rank travel
/// as bytes, and in every run it is checked that none is lost or doubled.
///
/// A rank that comes late is waited for, however long it computes before its call: only a watchdog that was
/// asked for ends a job, and only where all ranks are in the call.
///
/// # Errors
/// Wrong usage if there is no such balancer, on every rank if the ranks name different ones, or in a simulated world of several ranks
/// (there use [`redistribute`]). On real ranks, a task that does not read back as what was written ends the job.
pub fn balance_vec<T>(world: &mut World, balancer: &str, tasks: Vec<T>) -> Result<Vec<T>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    if world.held().len() != 1 {
        return Err(Error::usage("balance_vec takes the tasks of one rank, but all ranks of a simulation are here: use redistribute"));
    }
    let mut tasks = Some(tasks);
    let balanced = redistribute(world, balancer, |_| tasks.take().unwrap_or_default())?;
    Ok(balanced.into_iter().flat_map(|(_, tasks)| tasks).collect())
}

/// Balances the tasks of all ranks, in a world of any kind: `tasks` is asked for those of each rank that this process holds, and each
/// rank's come back in rank order. See [`balance_vec`].
///
/// # Errors
/// Wrong usage if there is no such balancer, or the ranks name different ones; otherwise as [`World::run`].
pub fn redistribute<T>(world: &mut World, balancer: &str, mut tasks: impl FnMut(RankId) -> Vec<T>) -> Result<Vec<(RankId, Vec<T>)>>
where
    T: Serialize + DeserializeOwned + 'static,
{
    // Another balancer is another topology and other messages: nobody would ever get what he waits for.
    if let Some((rank, first, other)) = agreement::difference(world, &balancer.to_string())? {
        return Err(Error::usage(format!(
            "rank {rank} balances with '{other}', rank 0 with '{first}'; all ranks must name the same balancer"
        )));
    }
    let chosen = Rc::new(balance::find(balancer)?);
    let topology = chosen.entry.default_topology(world.ranks());
    let overlay = Overlay::new(topology, world.hosts())?;
    let placement = &overlay.placement;
    let shares = Shares::new(Powers::equal(placement.ranks(), placement.nodes()));
    let results = node::run(world, &overlay, |node| {
        let rank = node.rank_of(node.me());
        let mine = if node.overlay().placement.is_virtual(node.me()) { Vec::new() } else { tasks(rank) };
        let payloads: Vec<Bytes> = mine.iter().map(wire::write).collect();
        drop(mine);
        let (count, chosen, shares) = (payloads.len() as u64, chosen.clone(), shares.clone());
        let task = |(id, payload)| Segment::from(Task { id, weight: 1, payload });
        let queue = move |first: u64| WorkQueue::new((first..).zip(payloads).map(task).collect());
        async move {
            let queue = phase(node, chosen, shares, count, queue).await?;
            Ok(queue.segments().flat_map(Segment::tasks).map(|task| task.payload).collect::<Vec<_>>())
        }
    })?;
    let mut by_rank: Vec<(RankId, Vec<T>)> = world.held().map(|rank| (rank, Vec::new())).collect();
    for (node, payloads) in results {
        let rank = placement.rank_of(node);
        let Ok(at) = by_rank.binary_search_by_key(&rank, |(rank, _)| *rank) else { continue };
        for payload in payloads {
            let task = wire::read(&payload).map_err(|why| Error::Failed(format!("a task does not read back as it was written: {why}")))?;
            by_rank[at].1.push(task);
        }
    }
    Ok(by_rank)
}

/// One node's part: the tasks that it ends with. `queue` makes those with which it begins, `count` tasks, from the number of the first.
pub(crate) async fn phase(
    node: Node,
    chosen: Rc<Chosen>,
    shares: Shares,
    count: u64,
    queue: impl FnOnce(u64) -> WorkQueue,
) -> Result<WorkQueue> {
    let apart = node.epoch(node::epochs::APART);
    let everyone = apart.everyone();
    let first = everyone.exclusive_scan(&apart, count, |a, b| a + b).await?.unwrap_or(0);
    let mut queue = queue(first);
    let before = queue.checksum();

    let mut phase = Phase::begin(&node, &shares, &mut queue);
    phase.carry_out(&*chosen.made).await?;
    phase.end();

    let sums = (before, queue.checksum());
    let (before, after) = everyone.all_reduce(&apart, sums, |a: (Checksum, Checksum), b| (a.0.and(b.0), a.1.and(b.1))).await?;
    conserved(&chosen.name, &before, &after)?;
    Ok(queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::sim;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    struct Cell {
        name: String,
        size: Option<u32>,
    }

    fn cells(rank: u32) -> Vec<Cell> {
        let count = if rank == 2 { 40 } else { rank };
        (0..count).map(|i| Cell { name: format!("{rank}.{i}"), size: (i % 2 == 0).then_some(i) }).collect()
    }

    #[test]
    fn tasks_return_as_they_were_and_even() {
        for (balancer, ranks) in [("cwa", 1), ("cwa", 5), ("cwa", 8), ("none", 3)] {
            let mut world = World::simulated(ranks, sim::Model::default());
            let after = redistribute(&mut world, balancer, cells).unwrap();
            assert!(after.iter().map(|(rank, _)| *rank).eq(0..ranks));
            let lengths: Vec<usize> = after.iter().map(|(_, tasks)| tasks.len()).collect();
            if balancer != "none" {
                let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
                assert!(most - least <= 1, "{balancer} on {ranks}: {lengths:?}");
            }
            let mut all: Vec<Cell> = after.into_iter().flat_map(|(_, tasks)| tasks).collect();
            let mut expected: Vec<Cell> = (0..ranks).flat_map(cells).collect();
            all.sort();
            expected.sort();
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn one_rank_needs_no_closure() {
        let mut world = World::simulated(1, sim::Model::default());
        assert_eq!(balance_vec(&mut world, "cwa", vec![3u8, 1]).unwrap(), [3, 1]);
        let mut world = World::simulated(2, sim::Model::default());
        assert_eq!(balance_vec(&mut world, "cwa", vec![3u8]).unwrap_err().exit_status(), 2);
        let unknown = redistribute(&mut world, "magic", |_| vec![0u8]).unwrap_err();
        assert!(unknown.to_string().contains("'magic'"));
    }
}
