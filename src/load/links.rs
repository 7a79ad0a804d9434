//! Communication between tasks, and its cost between ranks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TaskId;
use crate::topology::{Placement, RankId};

/// Communication between two tasks in a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The two tasks.
    pub ends: (TaskId, TaskId),
    /// In both directions together; finite and not negative. Not always whole: some runs record means.
    pub bytes: f64,
}

/// Bytes of a step that leave the rank, and of these the bytes that leave the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Crossing {
    /// Between tasks on different ranks.
    pub ranks: f64,
    /// Between tasks on different hosts.
    pub hosts: f64,
}

/// The same before and after a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Crossings {
    /// Communication between ranks before the phase.
    pub before: Crossing,
    /// Communication between ranks after the phase.
    pub after: Crossing,
}

impl Crossing {
    /// Communication between ranks, with tasks placed as in `rank_of`. Links with tasks that are not in it are left out.
    pub fn of(links: &[Link], rank_of: &BTreeMap<TaskId, RankId>, placement: &Placement) -> Crossing {
        let mut crossing = Crossing::default();
        for Link { ends: (a, b), bytes } in links {
            let (Some(a), Some(b)) = (rank_of.get(a), rank_of.get(b)) else { continue };
            if a != b {
                crossing.ranks += bytes;
            }
            if placement.host_of(*a) != placement.host_of(*b) {
                crossing.hosts += bytes;
            }
        }
        crossing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Hosts;

    #[test]
    fn bytes_cross_ranks_and_hosts() {
        let hosts = Hosts::from_names(&["a", "a", "b"].map(String::from));
        let placement = Placement::new(3, 3, hosts).unwrap();
        let link = |a, b, bytes| Link { ends: (a, b), bytes };
        let links = [link(0, 1, 1.0), link(0, 2, 2.0), link(0, 3, 4.0), link(2, 3, 8.0), link(3, 9, 16.0)];
        let rank_of = BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 2)].map(|(task, rank)| (task, RankId::new(rank))));
        assert_eq!(Crossing::of(&links, &rank_of, &placement), Crossing { ranks: 14.0, hosts: 12.0 });
    }
}
