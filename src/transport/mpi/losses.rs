//! The loss of a rank where MPI goes on without it: Open MPI 5, found at run time, under `mpirun --with-ft ulfm`.
//!
//! MPI says with some call that a rank is lost. The carrier then asks which, forgets what was on its way from there, and tells the programs.
//! Collective operations of MPI do not work any more, so that such a world ends by [`leave`](super::World::leave).

use std::thread;
use std::time::Duration;

use log::debug;

use super::carrier::State;
use super::{abort, ffi};
use crate::error::Result;
use crate::topology::RankId;
use crate::transport::{Event, Interest, Wanted};

impl State {
    /// Looks after ranks that are lost, if a call has come to nothing for that reason.
    pub(super) fn look_for_losses(&mut self) -> Result<()> {
        if !ffi::take_loss() {
            return Ok(());
        }
        let Some(links) = &self.links else { return Ok(()) };
        let mut lost = links.comm.lost_ranks()?;
        lost.extend(links.bulk.lost_ranks()?);
        lost.into_iter().for_each(|rank| self.lose(rank));
        Ok(())
    }

    fn lose(&mut self, rank: RankId) {
        if !self.lost.insert(rank) {
            return;
        }
        debug!("rank {}: rank {rank} is lost", self.me);
        if let Some(incoming) = &mut self.incoming {
            incoming.lose(rank);
        }
        self.watchdog.lose(rank);
        self.progressed();
        self.tell_of_loss(rank);
    }

    /// Tells the programs of the present run.
    pub(super) fn tell_of_loss(&mut self, rank: RankId) {
        let Some(run) = &mut self.run else { return };
        for local_node in 0..run.local_nodes.len() {
            run.push(local_node, Event::RankLost(rank));
        }
    }

    /// The loss that ends a wait for a message: that of the rank it is to come from, or one that was not reported yet if it may come from any.
    pub(super) fn loss_instead(&mut self, local_node: usize, interest: &Interest) -> Option<Event> {
        let Wanted::Message { from, .. } = interest.what else { return None };
        if self.lost.is_empty() {
            return None;
        }
        let run = self.run.as_mut()?;
        match from.map(|node| run.overlay.placement.rank_of(node)) {
            Some(rank) => self.lost.contains(&rank).then_some(Event::RankLost(rank)),
            None => run.local_nodes[local_node].inbox.take_loss(),
        }
    }
}

/// Ends this process with a status when all ranks that are left do so, or after some seconds.
pub(super) fn leave(agree: impl FnOnce() -> Result<()>, status: i32) -> ! {
    /// A job whose ranks do not come to an agreement ends all the same.
    const ENOUGH: Duration = Duration::from_secs(10);
    abort::flush();
    // Without a thread the agreement alone decides.
    let _ = thread::Builder::new().name("end".into()).spawn(move || {
        thread::sleep(ENOUGH);
        ffi::exit_at_once(status)
    });
    // There is nobody left to hear of an error.
    let _ = agree();
    ffi::exit_at_once(status)
}
