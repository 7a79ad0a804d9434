//! The order in which a node turns to its neighbours: a colouring of the links, so that neighbours mean each other at the same turn.

use std::collections::BTreeMap;

use crate::schedule::policy::Place;
use crate::topology::{NodeId, Overlay, RankId, Topology};

/// Each node's neighbours, in the order of the colours of the links to them. No two links of a node have the same colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    /// A link's colour is the dimension that it runs along.
    Cube,
    /// The colour of the link between a and b is (a + b) mod n.
    Complete,
    /// Neighbours of each real node in the order of the colours.
    Greedy(BTreeMap<NodeId, Vec<NodeId>>),
}

impl Colours {
    pub fn of(overlay: &Overlay) -> Colours {
        let is_native = overlay.placement.ranks() == overlay.topology.nodes();
        match overlay.topology {
            Topology::Hypercube(_) if is_native => Colours::Cube,
            Topology::Complete(_) if is_native => Colours::Complete,
            _ => Colours::Greedy(greedy(overlay)),
        }
    }

    /// The neighbours of a real node.
    pub fn partners(&self, place: &Place) -> Vec<NodeId> {
        let mut neighbours = place.neighbours();
        match self {
            Colours::Cube => neighbours.sort_unstable_by_key(|other| other ^ place.me),
            Colours::Complete => {
                let nodes = u64::from(place.overlay.topology.nodes());
                neighbours.sort_unstable_by_key(|other| (u64::from(*other) + u64::from(place.me)) % nodes);
            }
            Colours::Greedy(partners) => return partners.get(&place.me).cloned().unwrap_or_default(),
        }
        neighbours
    }
}

/// Each link in ascending order gets the first colour that is free at both ends: fewer colours than twice the largest degree.
fn greedy(overlay: &Overlay) -> BTreeMap<NodeId, Vec<NodeId>> {
    let placement = &overlay.placement;
    let mut by_colour: BTreeMap<NodeId, Vec<Option<NodeId>>> = BTreeMap::new();
    for a in RankId::all(placement.ranks()).map(|rank| placement.real_node_of(rank)) {
        let place = Place { me: a, host: 0, overlay: overlay.clone(), workers: 1, unit: 1 };
        for b in place.neighbours().into_iter().filter(|b| a < *b) {
            let is_free = |node: NodeId, colour: usize| by_colour.get(&node).and_then(|row| *row.get(colour)?).is_none();
            let most = [a, b].map(|node| by_colour.get(&node).map_or(0, Vec::len)).into_iter().max().unwrap_or(0);
            let colour = (0..most).find(|colour| is_free(a, *colour) && is_free(b, *colour)).unwrap_or(most);
            for (node, other) in [(a, b), (b, a)] {
                let row = by_colour.entry(node).or_default();
                row.resize(row.len().max(colour + 1), None);
                row[colour] = Some(other);
            }
        }
    }
    by_colour.into_iter().map(|(node, row)| (node, row.into_iter().flatten().collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::neighbourhood::place;

    fn partners(topology: &str, ranks: u32, me: NodeId) -> Vec<NodeId> {
        let place = place(topology, ranks, me);
        Colours::of(&place.overlay).partners(&place)
    }

    #[test]
    fn a_cube_goes_by_dimension_and_a_ring_by_turns() {
        assert_eq!(partners("hypercube:3", 8, 5), [4, 7, 1]);
        // The links 0-1, 0-5, 1-2, 2-3, .. have the colours 0, 1, 1, 0, ..
        assert_eq!(partners("ring:6", 6, 0), [1, 5]);
        assert_eq!(partners("ring:6", 6, 1), [0, 2]);
        assert_eq!(partners("ring:6", 6, 2), [3, 1]);
        assert!(partners("line", 1, 0).is_empty());
    }

    #[test]
    fn everybody_has_all_neighbours_and_in_a_complete_graph_pairs_meet() {
        for (topology, ranks) in
            [("complete", 7), ("torus:3x3", 9), ("hypercube:3", 5), ("tree", 10), ("graph:edges=0-1,1-2,2-0,2-3", 4), ("mesh:3x3", 4)]
        {
            for me in 0..ranks {
                let mut all = partners(topology, ranks, me);
                all.sort_unstable();
                assert_eq!(all, place(topology, ranks, me).neighbours(), "{topology}: {me}");
            }
        }
        // (a + b) mod 7 = 1: 0-1, 2-6, 3-5; 4 has no partner.
        assert_eq!([0, 1, 2, 6].map(|me| partners("complete", 7, me)[usize::from(me != 0)]), [1, 0, 6, 2]);
    }
}
