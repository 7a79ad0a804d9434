//! The nodes' clocks against the originator's (Cristian 1989): of some round trips the shortest one counts.

use equipoise::error::Result;
use equipoise::node::{Node, Tag, Ticks};
use equipoise::topology::NodeId;

const ASK: Tag = crate::tags::spread::ASK;
const TIME: Tag = crate::tags::spread::TIME;

const TRIPS: u32 = 5;

/// Returns the offset to add to the clock of every node `0..nodes` to get that of `origin`; empty on the other nodes, which answer.
///
/// # Errors
/// If a rank is lost.
pub async fn offsets(node: &Node, nodes: u32, origin: NodeId) -> Result<Vec<i64>> {
    if node.me() != origin {
        for _ in 0..TRIPS {
            node.receive::<()>(origin, ASK).await?;
            node.send(origin, TIME, &node.now());
        }
        return Ok(Vec::new());
    }
    let mut offsets = vec![0; nodes as usize];
    for other in (0..nodes).filter(|other| *other != origin) {
        let mut best = (Ticks::MAX, 0);
        for _ in 0..TRIPS {
            let began = node.now();
            node.send(other, ASK, &());
            let theirs: Ticks = node.receive(other, TIME).await?;
            let trip = node.now() - began;
            best = best.min((trip, (began + trip / 2).wrapping_sub(theirs) as i64));
        }
        offsets[other as usize] = best.1;
    }
    Ok(offsets)
}
