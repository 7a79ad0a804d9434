//! Order per pair: when the last message of a node to each other node arrives.

use std::collections::HashMap;

use crate::topology::NodeId;
use crate::transport::Ticks;

/// Up to this many destinations are kept in a list.
const FEW: usize = 32;

/// The latest arrival at each destination, of one source. What has arrived is forgotten, so a node with twenty partners in turn keeps few.
pub(super) enum Order {
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
        Order::Few(Vec::new())
    }
}

impl Order {
    /// The time of arrival of a message that could arrive at `at`, but not before those that went to the same destination earlier.
    pub fn after_earlier(&mut self, dst: NodeId, at: Ticks, now: Ticks) -> Ticks {
        match self {
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
        for destinations in [1, 5, 1000] {
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
        let Order::Few(list) = &order else { panic!("few messages were under way at any time") };
        assert!(list.len() <= 4);
    }
}
