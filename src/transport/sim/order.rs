//! Order per pair: when the last message of a node to each other node arrives.

use std::collections::HashMap;

use crate::topology::NodeId;
use crate::transport::Ticks;

/// Up to this many destinations need no memory of their own.
const FEWEST: usize = 3;

/// Up to this many destinations are kept in a list.
const FEW: usize = 32;

/// The latest arrival at each destination, of one source. What has arrived is forgotten, so a node with twenty partners in turn keeps few.
pub(super) enum Order {
    /// A place whose time is past is free.
    Fewest {
        nodes: [NodeId; FEWEST],
        latest: [Ticks; FEWEST],
    },
    Few(Vec<(NodeId, Ticks)>),
    /// For a coordinator that many messages of are under way. The map is looked up and thinned out, never walked in an order that shows.
    Many(Box<Many>),
}

pub(super) struct Many {
    latest: HashMap<NodeId, Ticks>,
    thin_out_at: usize,
}

impl Default for Order {
    fn default() -> Order {
        Order::Fewest { nodes: [0; FEWEST], latest: [0; FEWEST] }
    }
}

impl Order {
    /// The time of arrival of a message that could arrive at `at`, but not before those that went to the same destination earlier.
    pub fn after_earlier(&mut self, dst: NodeId, at: Ticks, now: Ticks) -> Ticks {
        match self {
            Order::Fewest { nodes, latest } => {
                let under_way = |place: &usize| latest[*place] > now;
                if let Some(place) = (0..FEWEST).filter(under_way).find(|place| nodes[*place] == dst) {
                    latest[place] = at.max(latest[place]);
                    return latest[place];
                }
                if let Some(free) = (0..FEWEST).find(|place| !under_way(place)) {
                    (nodes[free], latest[free]) = (dst, at);
                } else {
                    *self = Order::Few(nodes.iter().copied().zip(*latest).chain([(dst, at)]).collect());
                }
                at
            }
            Order::Few(list) => {
                if let Some((_, latest)) = list.iter_mut().find(|(node, _)| *node == dst) {
                    *latest = at.max(*latest);
                    return *latest;
                }
                if list.len() == list.capacity() {
                    list.retain(|(_, latest)| *latest > now);
                }
                list.push((dst, at));
                if list.len() > FEW {
                    let latest = list.iter().copied().collect();
                    *self = Order::Many(Box::new(Many { latest, thin_out_at: 4 * FEW }));
                }
                at
            }
            Order::Many(many) => {
                let latest = many.latest.entry(dst).or_insert(at);
                *latest = at.max(*latest);
                let at = *latest;
                if many.latest.len() > many.thin_out_at {
                    many.latest.retain(|_, latest| *latest > now);
                    many.thin_out_at = (2 * many.latest.len()).max(4 * FEW);
                }
                at
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_messages_wait_for_earlier_ones_however_many_destinations() {
        for destinations in [1, 3, 4, 5, 1000] {
            let mut order = Order::default();
            for dst in 0..destinations {
                assert_eq!(order.after_earlier(dst, 100, 0), 100);
            }
            for dst in 0..destinations {
                assert_eq!(order.after_earlier(dst, 50, 10), 100);
                assert_eq!(order.after_earlier(dst, 120, 20), 120);
            }
        }
    }

    #[test]
    fn what_has_arrived_is_forgotten() {
        let mut order = Order::default();
        for dst in 0..1000 {
            order.after_earlier(dst, u64::from(dst) + 1, u64::from(dst));
        }
        assert!(matches!(order, Order::Fewest { .. }), "few messages were under way at any time");
    }
}
