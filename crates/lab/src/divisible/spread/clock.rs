//! The nodes' clocks against node 0's (Cristian 1989): of some round trips the shortest one counts.

use equipoise::error::Result;
use equipoise::node::{Node, Tag, Ticks};

const ASK: Tag = Tag::new(20, "what time is it?");
const TIME: Tag = Tag::new(21, "the time");

const TRIPS: u32 = 5;

/// Returns the offset to add to the clock of every node `0..nodes` to get node 0's; empty on the other nodes, which answer.
///
/// # Errors
/// If a rank is lost.
pub async fn offsets(node: &Node, nodes: u32) -> Result<Vec<i64>> {
    if node.me() != 0 {
        for _ in 0..TRIPS {
            node.receive::<()>(0, ASK).await?;
            node.send(0, TIME, &node.now());
        }
        return Ok(Vec::new());
    }
    let mut offsets = vec![0];
    for other in 1..nodes {
        let mut best = (Ticks::MAX, 0);
        for _ in 0..TRIPS {
            let began = node.now();
            node.send(other, ASK, &());
            let theirs: Ticks = node.receive(other, TIME).await?;
            let trip = node.now() - began;
            best = best.min((trip, (began + trip / 2).wrapping_sub(theirs) as i64));
        }
        offsets.push(best.1);
    }
    Ok(offsets)
}
