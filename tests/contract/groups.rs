//! Collectives on groups of every size and order.

use equipoise::node::{Group, Node};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

use super::{Entry, ensure, on, on_ranks};

pub const CASES: &[Entry] = &[
    ("collectives on all ranks", |world| on_ranks(world, |node| async move { collectives(&node, &node.everyone()).await })),
    ("collectives on every first so many", every_size),
    ("collectives on two groups at once, in odd orders", two_groups),
    ("collectives on virtual nodes", |world| on(world, "hypercube:6", |node| async move { collectives(&node, &node.everyone()).await })),
    ("an agreed error is the lowest place's", agreement),
];

async fn collectives(node: &Node, group: &Group) -> Result<()> {
    let (n, place) = (group.size(), group.place());
    // Joining texts shows the order in which values are combined.
    let mine = format!("<{place}>");
    let all: Vec<String> = (0..n).map(|place| format!("<{place}>")).collect();
    let joined = group.all_reduce(node, mine.clone(), |a, b| a + &b).await?;
    // Members beyond the largest power of two fold in beside their partners, so the order is of pairs there.
    ensure!(joined.len() == all.concat().len(), "{n} members: reduced to {joined}");
    ensure!(all.iter().all(|one| joined.contains(one.as_str())), "{n} members: reduced to {joined}");
    if n.is_power_of_two() {
        ensure!(joined == all.concat(), "{n} members: reduced to {joined}");
    }
    let sum = group.all_reduce(node, u64::from(place) + 1, |a, b| a + b).await?;
    ensure!(sum == u64::from(n) * (u64::from(n) + 1) / 2, "{n} members: the sum is {sum}");
    let before = group.exclusive_scan(node, mine.clone(), |a, b| a.clone() + b).await?;
    let expected = (place > 0).then(|| all[..place as usize].concat());
    ensure!(before == expected, "{n} members: place {place} scanned {before:?}");
    for root in [0, n / 2, n - 1] {
        let value = (place == root).then(|| format!("from {root}"));
        let heard = group.broadcast(node, root, value).await?;
        ensure!(heard == format!("from {root}"), "{n} members: heard {heard:?} from {root}");
    }
    let gathered = group.gather(node, mine.clone()).await?;
    let expected = if place == 0 { all.clone() } else { Vec::new() };
    ensure!(gathered == expected, "{n} members: place {place} gathered {gathered:?}");
    let everywhere = group.all_gather(node, mine).await?;
    ensure!(everywhere == all, "{n} members: place {place} has {everywhere:?}");
    group.barrier(node).await
}

fn every_size(world: &mut World) -> Result<()> {
    on_ranks(world, |node| async move {
        for size in 1..=node.nodes() {
            if let Some(group) = Group::new((0..size).collect::<Vec<_>>(), node.me()) {
                collectives(&node, &group).await?;
            }
        }
        Ok(())
    })
}

fn two_groups(world: &mut World) -> Result<()> {
    on(world, "hypercube:5", |node| async move {
        let (even, odd): (Vec<u32>, Vec<u32>) = (0..node.nodes()).rev().partition(|node| node % 3 == 0);
        let mine = if node.me() % 3 == 0 { even } else { odd };
        let group = Group::new(mine, node.me()).ok_or_else(|| Error::Failed("a node is in neither group".into()))?;
        for epoch in 0..3 {
            collectives(&node.epoch(epoch), &group).await?;
        }
        Ok(())
    })
}

fn agreement(world: &mut World) -> Result<()> {
    on_ranks(world, |node| async move {
        let group = node.everyone();
        let agreed = group.agree(&node, Ok(node.me())).await?;
        ensure!(agreed == node.me(), "a success came back as {agreed}");
        let half = node.nodes() / 2;
        let mine = if node.me() >= half { Err(Error::wrong_result(format!("node {} says no", node.me()))) } else { Ok(()) };
        let heard = group.agree(&node, mine).await;
        ensure!(heard == Err(Error::wrong_result(format!("node {half} says no"))), "heard {heard:?}");
        Ok(())
    })
}
