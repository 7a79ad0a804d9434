//! MPI's own collective operations within a rank's state: it begins them for its nodes, and tests them with each poll of the network.

use super::carrier::State;
use crate::error::Result;
use crate::topology::RankId;
use crate::transport::native::{Collective, CollectiveId};

impl State {
    /// Makes the communicator of all ranks for operations of MPI's own. All ranks must take part.
    pub fn open_collectives(&mut self) -> Result<()> {
        let Some(links) = &self.links else { return Ok(()) };
        self.collectives.open(&links.comm)
    }

    /// Begins an operation of MPI's own. An error ends the job with the next poll of the network.
    pub fn begin_collective(&mut self, local_node: usize, members: Vec<RankId>, operation: Collective) -> Option<CollectiveId> {
        let run = self.run.as_ref()?.number;
        self.progress = true;
        match self.collectives.begin((run, local_node), members, operation) {
            Ok(id) => Some(id),
            Err(why) => {
                self.failure.get_or_insert(why);
                None
            }
        }
    }

    pub fn poll_collectives(&mut self) -> Result<bool> {
        if self.collectives.is_idle() {
            return Ok(false);
        }
        let (mut moved, run) = (false, &mut self.run);
        self.collectives.poll(|number, local_node| {
            moved = true;
            if let Some(run) = run.as_mut().filter(|run| run.number == number) {
                run.local_nodes[local_node].dirty = true;
            }
        })?;
        self.progress |= moved;
        Ok(moved)
    }
}
