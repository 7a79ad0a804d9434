//! The known answer of a workload, worked out before its runs.

use crate::experiment::settle;
use crate::workload::graphs::Prepared;
use equipoise::error::Result;
use equipoise::node;
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
                settle::on_worker(&node, move || workload.known()).await?;
            }
            node.everyone().barrier(&node).await
        }
    })?;
    Ok(())
}
