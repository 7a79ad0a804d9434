//! One phase of a balancer on unit tasks, as advice is about it.

use std::rc::Rc;

use bytes::Bytes;

use super::seconds;
use crate::agreement::from_first;
use crate::balance::Chosen;
use crate::error::{Error, Result};
use crate::load::{Powers, Segment, Shares, TaskId, WorkQueue};
use crate::phase::{self, Setting};
use crate::topology::{Overlay, PlacementRule, Topology};
use crate::transport::world::World;

/// A balancer, its topology, and the tasks of each rank.
#[doc(hidden)]
#[derive(Clone)]
pub struct OnePhase {
    pub chosen: Rc<Chosen>,
    pub topology: Topology,
    /// Number of tasks by rank.
    pub loads: Vec<u64>,
    /// Power of each rank; empty if all are equal.
    pub powers: Vec<u64>,
    /// Bytes that a task carries.
    pub payload: u64,
    pub seed: u64,
}

impl OnePhase {
    /// Its nodes on the ranks of a world.
    ///
    /// # Errors
    /// If the topology does not fit the ranks.
    fn overlay(&self, world: &World) -> Result<Overlay> {
        Ok(Overlay::placed(self.topology.clone(), world.hosts(), PlacementRule::Hosts, self.seed)?)
    }

    /// The same for [`phase::run`].
    ///
    /// # Errors
    /// If the powers are none.
    fn setting(&self, overlay: &Overlay) -> Result<Setting> {
        let (ranks, nodes) = (overlay.placement.ranks(), overlay.topology.nodes());
        // All payloads are slices of one buffer.
        let payload = self.payload;
        let zeros = Bytes::from(vec![0; (self.loads.iter().max().copied().unwrap_or(0) * payload) as usize]);
        let starts: Vec<TaskId> = self.loads.iter().scan(0, |next, load| Some(std::mem::replace(next, *next + load))).collect();
        let (loads, placement) = (self.loads.clone(), overlay.placement.clone());
        let rank_of = move |node| {
            let rank = placement.rank_of(node);
            (placement.real_node_of(rank) == node).then(|| rank.index())
        };
        let powers = match self.powers.iter().all(|power| *power == self.powers[0]) {
            true => Powers::equal(ranks, nodes),
            false => Powers::listed((0..nodes).map(|node| rank_of(node).map_or(0, |rank| self.powers[rank])).collect())
                .map_err(|why| Error::usage(why.to_string()))?,
        };
        Ok(Setting {
            balancer: self.chosen.clone(),
            shares: Shares::new(powers),
            queue: Rc::new(move |node| {
                let load = rank_of(node).map(|rank| (starts[rank], loads[rank]));
                let row = load.and_then(|(first, count)| Segment::row(first, count, 1, zeros.slice(..(count * payload) as usize)));
                Ok(WorkQueue::new(row.into_iter().collect()))
            }),
            plan: false,
            weighted: false,
            trace: None,
        })
    }
}

/// Loads by rank after a phase, and its duration in seconds, measured as by `compare`: the same on all ranks. For comparing predictions with outcomes.
///
/// # Errors
/// As [`phase::run`].
#[doc(hidden)]
pub fn phase_of(world: &mut World, of: &OnePhase) -> Result<(Vec<u64>, f64)> {
    let overlay = of.overlay(world)?;
    let outcome = phase::run(world, &overlay, &Rc::new(of.setting(&overlay)?))?;
    let ranks = world.ranks() as usize;
    from_first(world, || {
        let outcome = outcome.ok_or_else(|| Error::Failed("a phase has left no outcome".into()))?;
        let mut by_rank = vec![0; ranks];
        for (node, work) in (0..).zip(outcome.finals) {
            by_rank[overlay.placement.rank_of(node).index()] += work;
        }
        Ok((by_rank, seconds(outcome.elapsed)))
    })
}
