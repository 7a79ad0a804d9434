//! The known answer of a workload, worked out before its runs.

use super::APART;
use crate::workload::graphs::Prepared;
use equipoise::error::{Error, Result};
use equipoise::node::{self, Event};
use equipoise::transport::world::World;

/// Works it out, if it takes an algorithm: on real ranks on a worker of the first, since others wait meanwhile.
pub fn work_out(world: &mut World, workload: &Prepared) -> Result<()> {
    if world.is_simulated() {
        workload.known();
        return Ok(());
    }
    let overlay = equipoise::agreement::one_node_per_rank(world)?;
    node::run(world, &overlay, |node| {
        let workload = workload.clone();
        async move {
            if node.me() == 0 {
                let apart = node.epoch(APART);
                apart.start(move |_| workload.known());
                loop {
                    match apart.next_event().await {
                        Event::Finished { .. } => break,
                        Event::RankLost(rank) => return Err(Error::RankLost { rank }),
                        Event::Message(_) | Event::Timer { .. } | Event::Signal(_) => {}
                    }
                }
            }
            node.everyone().barrier(&node).await
        }
    })?;
    Ok(())
}
