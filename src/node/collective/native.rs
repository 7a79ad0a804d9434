//! Collective operations that MPI carries out, where the world offers it: sums, scans and all-gathers of a group whose nodes each have
//! their own rank.
//!
//! They count as the messages of [our own](super), of which MPI shows nothing: same number, same bytes, same chains. So a phase has the
//! same figures either way. What chains the others know of travels along: with an all-gather in each block, with sums as the sums of the chains and
//! of their squares, which tell whether all are alike (Cauchy and Schwarz: `n` times the second is the square of the first then, and only then).

use std::future::poll_fn;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::tree::Tree;
use super::super::{Node, wire};
use super::Group;
use crate::error::{Error, Result};
use crate::transport::native::{Collected, Collective, CollectiveId};

/// Bytes of the block that every member sends: chain, length of its value, and the value if it fits.
const BLOCK: usize = 40;
const AHEAD: usize = size_of::<u32>() + size_of::<u64>();

/// Returns true if MPI carries out collective operations of this group. The same on all members.
pub(super) fn is_offered(group: &Group, node: &Node) -> bool {
    group.size() > 1 && node.port.has_collectives() && node.overlay().placement.native()
}

/// The values of all members by place; `None` if they are too long for MPI, on all members alike.
pub(super) async fn all_gather<T>(group: &Group, node: &Node, tree: Tree, mine: &T) -> Result<Option<Vec<T>>>
where
    T: Serialize + DeserializeOwned,
{
    let n = group.size() as usize;
    let body = wire::try_write(mine).map_err(|why| Error::Failed(format!("a value for MPI's all-gather cannot be written: {why}")))?;
    let mut block = vec![0; BLOCK];
    block[..4].copy_from_slice(&node.port.chain().to_le_bytes());
    block[4..AHEAD].copy_from_slice(&(body.len() as u64).to_le_bytes());
    if body.len() <= BLOCK - AHEAD {
        block[AHEAD..AHEAD + body.len()].copy_from_slice(&body);
    }
    let blocks = bytes(group, node, block, vec![BLOCK; n]).await?;
    let (mut chains, mut sizes) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for block in blocks.chunks_exact(BLOCK) {
        chains.push(u32::from_le_bytes(array(&block[..4])));
        sizes.push(u64::from_le_bytes(array(&block[4..AHEAD])));
    }
    let value = |place: usize, bytes: &[u8]| {
        wire::read::<T>(bytes).map_err(|why| Error::Garbled {
            from: group.node(place as u32),
            what: "MPI's all-gather".into(),
            why: why.to_string(),
        })
    };
    let values = if sizes.iter().all(|size| *size <= (BLOCK - AHEAD) as u64) {
        let ends = blocks.chunks_exact(BLOCK).zip(&sizes).map(|(block, size)| &block[AHEAD..AHEAD + *size as usize]);
        ends.enumerate().map(|(place, bytes)| value(place, bytes)).collect::<Result<Vec<T>>>()?
    } else {
        // MPI counts in C ints.
        if sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size)) > i32::MAX as u64 {
            return Ok(None);
        }
        let lengths: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
        let all = bytes(group, node, body, lengths.clone()).await?;
        let mut rest = &all[..];
        let mut values = Vec::with_capacity(n);
        for (place, length) in lengths.into_iter().enumerate() {
            let (mine, behind) = rest.split_at(length);
            values.push(value(place, mine)?);
            rest = behind;
        }
        values
    };
    account(group, node, tree, &sizes, &chains);
    Ok(Some(values))
}

/// The sum of one number of each member, modulo 2^64, counted as a reduction of values of `size` bytes.
pub(super) async fn sum(group: &Group, node: &Node, mine: u64, size: u64) -> Result<u64> {
    let [sum, chain, square] = numbers(group, node, Collective::Sum([vec![mine], own_chain(node)].concat())).await?;
    let chains = chains(group, node, chain, square).await?;
    account(group, node, Tree::Doubling, &vec![size; chains.len()], &chains);
    Ok(sum)
}

/// The sum of the numbers of the members before this one; 0 for the first.
pub(super) async fn sum_before(group: &Group, node: &Node, mine: u64) -> Result<u64> {
    // Both are under way at once.
    let scan = begin(group, node, Collective::SumBefore(vec![mine]))?;
    let check = begin(group, node, Collective::Sum(own_chain(node)))?;
    let [before] = of_numbers(end(node, scan).await)?;
    let [chain, square] = of_numbers(end(node, check).await)?;
    let chains = chains(group, node, chain, square).await?;
    account(group, node, Tree::Scan, &vec![size_of::<u64>() as u64; chains.len()], &chains);
    Ok(before)
}

fn own_chain(node: &Node) -> Vec<u64> {
    let chain = u64::from(node.port.chain());
    vec![chain, chain * chain]
}

/// The chains that all members know of, from their sum and the sum of their squares; these say it if all are alike.
async fn chains(group: &Group, node: &Node, sum: u64, squares: u64) -> Result<Vec<u32>> {
    let n = group.size();
    if u128::from(n) * u128::from(squares) == u128::from(sum) * u128::from(sum) {
        return Ok(vec![(sum / u64::from(n)) as u32; n as usize]);
    }
    let all = bytes(group, node, node.port.chain().to_le_bytes().to_vec(), vec![size_of::<u32>(); n as usize]).await?;
    Ok(all.chunks_exact(size_of::<u32>()).map(|chain| u32::from_le_bytes(array(chain))).collect())
}

/// Counts this member's messages of our own operation.
fn account(group: &Group, node: &Node, tree: Tree, sizes: &[u64], chains: &[u32]) {
    let part = tree.part(group.place(), sizes, chains);
    for (to, bytes, chain) in part.sent {
        node.port.account(group.node(to), bytes, chain);
    }
    node.port.hear(part.heard);
}

fn begin(group: &Group, node: &Node, operation: Collective) -> Result<CollectiveId> {
    let members = (0..group.size()).map(|place| node.rank_of(group.node(place))).collect();
    let begun = node.port.begin_collective(members, operation);
    begun.ok_or_else(|| Error::Failed("this world has no collective operations of its own".into()))
}

async fn end(node: &Node, id: CollectiveId) -> Collected {
    poll_fn(|_| node.port.poll_collective(id)).await
}

async fn bytes(group: &Group, node: &Node, mine: Vec<u8>, lengths: Vec<usize>) -> Result<Vec<u8>> {
    let id = begin(group, node, Collective::AllGather { mine, lengths })?;
    match end(node, id).await {
        Collected::Bytes(bytes) => Ok(bytes),
        Collected::Numbers(_) => Err(unexpected()),
    }
}

async fn numbers<const N: usize>(group: &Group, node: &Node, operation: Collective) -> Result<[u64; N]> {
    let id = begin(group, node, operation)?;
    of_numbers(end(node, id).await)
}

fn of_numbers<const N: usize>(collected: Collected) -> Result<[u64; N]> {
    match collected {
        Collected::Numbers(numbers) => numbers.try_into().map_err(|_| unexpected()),
        Collected::Bytes(_) => Err(unexpected()),
    }
}

fn unexpected() -> Error {
    Error::Failed("a collective operation yields what was not asked for".into())
}

/// The bytes of a slice of just this length.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}
