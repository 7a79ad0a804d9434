//! Positional Scan Load Balancing, for lines (Hegarty and Kechadi 1997; Savvas and Kechadi 2004, section 3.1, algorithm 1).
//!
//! All work units are numbered along the line. A scan tells each node the number of its first unit, and with the total and the powers it
//! computes the owner of each unit that it holds. One step of direct transfers takes every unit to its owner, and the order stays.
//!
//! 1. Index the work units.
//! 2. Scan: the load of the nodes before each node; the powers' scan is known from the start.
//! 3. Broadcast: the last node tells all others the total.
//! 4. Each node computes the destination of its units.
//! 5. Each node sends them.
//!
//! ```text
//!   units   0 ........ 250 ........ 550 .. 700 . 800 850 ... 1000      loads 250 300 150 100 50 150
//!   before  |    v1     |     v2     |  v3  | v4 |v5|   v6   |
//!   after   |  v1  |   v2    |    v3      | v4 |v5|    v6    |         powers 3 4 5 2 1 5: shares 150 200 250 100 50 250
//! ```
//!
//! Cost: 2 ceil(log2 n) + 1 steps; at most n ceil(log2 n) + 2n messages (the paper, which passes the scan from neighbour to neighbour, counts
//! 2(n - 1) steps). An all-gather of the loads would save the broadcast's steps, but takes at least the same number of messages, and n / log2
//! n times the bytes.
//!
//! Guarantees: every node ends with exactly the units of its interval, in their order. Not local: to keep the order, a node may have to
//! give up its own tasks for others.
//!
//! Departures from the paper: the scan's tree has logarithmic depth. A receiver does not know who its sources are, but from its first unit
//! and the total how many units lie elsewhere: it receives from any node until these are accounted for, then puts the tasks in the order
//! of their sources.
//!
//! Tasks of several units go where their middle unit goes (the paper: first unit; `unit=first` does that), so that a border between two owners moves
//! by at most half a task, and a node's load differs from its share by less than the largest task. A source that has units of an owner's interval
//! writes to it, even if no task goes with it. Tasks without work have no place in the row: those behind the last unit of a node stay. Pinned tasks
//! are no part of the row: the other tasks are shared by what each node can still get.

use super::{Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, aim};
use crate::error::Result;
use crate::load::{Aim, Positions, Quota, Shares, TaskBatch};
use crate::node::HEADER_BYTES;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "pslb",
    title: "Positional Scan Load Balancing",
    source: "Hegarty and Kechadi 1997; Savvas and Kechadi 2004, section 3.1, algorithm 1",
    options: "unit=middle (or first)",
    examples: &["pslb", "pslb:unit=first"],
    build,
    facts: Facts {
        kinds: &[Kind::Line, Kind::Complete],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Positional,
        knows: Knowledge::Sums,
        promises: Promises { exact: true, local: false, ordered: true, optimal: false },
        cost,
    },
};

struct Pslb {
    aim: Aim,
}

fn build(options: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Pslb { aim: aim(options)? }))
}

fn cost(topology: &Topology) -> Cost {
    let n = u64::from(topology.nodes());
    let rounds = u64::from(n.next_power_of_two().ilog2());
    let scan = n * rounds + 1 - (1 << rounds);
    let broadcast = n - 1;
    // The borders between sources and those between owners cut the row into 2n - 1 parts; the first one stays, or a part is empty.
    let transfers = 2 * (n - 1);
    Cost {
        steps: 2 * rounds + u64::from(n > 1),
        messages: scan + broadcast + transfers,
        bytes: (scan + broadcast) * (HEADER_BYTES + 8) + transfers * (TRANSFER_BYTES + 8),
    }
}

impl Balancer for Pslb {
    fn quota(&self, topology: &Topology, total: u64, shares: &Shares) -> Quota {
        let positions = Positions::new(shares.powers(), 0..topology.nodes(), total);
        let units: Vec<u64> = (0..topology.nodes()).map(|node| positions.of(node)).collect();
        Quota::from_shares(&units)
    }

    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(self.scan(phase))
    }
}

impl Pslb {
    async fn scan(&self, phase: &mut Phase<'_>) -> Result<()> {
        phase.survey().await?;
        let (node, me) = (phase.node, phase.node.me());
        let everyone = node.everyone();

        // Steps 1 to 3.
        let load = phase.mover.queue.movable();
        let before = everyone.sum_before(node, load).await?;
        let last = everyone.size() - 1;
        let total = everyone.broadcast(node, last, (me == last).then_some(before + load)).await?;

        // Step 4.
        phase.enter(Stage::Decision);
        let powers = phase.powers_of_movable(self, total);
        let positions = Positions::new(&powers, 0..node.nodes(), total);
        let parts = Parts::of(me, &positions, before, load);
        node.charge(2 * (parts.left.len() + parts.right.len()) as u64);

        // Step 5. What goes to one side is cut off as a whole, then split from its front: cheap for long work queues, too.
        phase.enter(Stage::Exchange);
        let units = |parts: &[(NodeId, u64)]| parts.iter().map(|(_, units)| units).sum::<u64>();
        let (to_left, to_right) = (units(&parts.left), units(&parts.right));
        let rightwards = if to_right > 0 { phase.mover.queue.take_back_from(load - to_right, self.aim) } else { TaskBatch::default() };
        let leftwards = phase.mover.queue.take_front_before(to_left, self.aim);
        phase.deal(leftwards, 0, 0, &parts.left, self.aim).await;
        let begins = load - rightwards.work();
        phase.deal(rightwards, begins, load - to_right, &parts.right, self.aim).await;
        let mut from_left = TaskBatch::default();
        for arrival in phase.mover.receive_units(positions.of(me) - parts.stay).await? {
            if arrival.src < me {
                from_left.append(arrival.batch);
            } else {
                phase.mover.queue.put_behind(arrival.batch);
            }
        }
        phase.mover.queue.put_before(from_left);
        Ok(())
    }
}

/// Destinations of a node's units, in the order of the units.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    left: Vec<(NodeId, u64)>,
    stay: u64,
    right: Vec<(NodeId, u64)>,
}

impl Parts {
    /// The parts of node `me`, which holds units `before .. before + load`.
    fn of(me: NodeId, positions: &Positions, before: u64, load: u64) -> Parts {
        let mut parts = Parts { left: Vec::new(), stay: 0, right: Vec::new() };
        for (owner, units) in positions.owners(before, before + load) {
            match owner.cmp(&me) {
                std::cmp::Ordering::Less => parts.left.push((owner, units)),
                std::cmp::Ordering::Equal => parts.stay = units,
                std::cmp::Ordering::Greater => parts.right.push((owner, units)),
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Trial;
    use super::*;
    use crate::load::Powers;

    #[test]
    fn the_first_row_of_the_papers_example_is_shared_by_power() {
        // Tables 1 and 2: v11 to v16; normalised powers 0.15 0.2 0.25 0.1 0.05 0.25 of 1000 units.
        let powers = Powers::listed(vec![3, 4, 5, 2, 1, 5]).unwrap();
        let (loads, scan) = ([250, 300, 150, 100, 50, 150], [0, 250, 550, 700, 800, 850]);
        let positions = Positions::new(&powers, 0..6, 1000);
        let parts: Vec<Parts> = (0..6).map(|me| Parts::of(me, &positions, scan[me as usize], loads[me as usize])).collect();
        let expected = [
            (vec![], 150, vec![(1, 100)]),
            (vec![], 100, vec![(2, 200)]),
            (vec![], 50, vec![(3, 100)]),
            (vec![], 0, vec![(4, 50), (5, 50)]),
            (vec![], 0, vec![(5, 50)]),
            (vec![], 150, vec![]),
        ];
        let expected: Vec<Parts> = expected.into_iter().map(|(left, stay, right)| Parts { left, stay, right }).collect();
        assert_eq!(parts, expected);
        let quota = Pslb { aim: Aim::Middle }.quota(&Topology::fitted(Kind::Line, 6), 1000, &Shares::new(powers));
        assert_eq!(quota.to_vec(), [150, 200, 250, 100, 50, 250]);
    }

    #[test]
    fn simulated_nodes_carry_their_units_to_the_owners() {
        for seed in 0..4 {
            let powers = Powers::listed(vec![3, 4, 5, 2, 1, 5]).unwrap();
            let trial = Trial::with("pslb", "line:6", &[250, 300, 150, 100, 50, 150], powers, seed);
            assert_eq!(trial.after, [150, 200, 250, 100, 50, 250]);
            assert_eq!(trial.moves(), [(0, 1, 100), (1, 2, 200), (2, 3, 100), (3, 4, 50), (3, 5, 50), (4, 5, 50)]);
        }
    }

    #[test]
    fn units_go_to_both_sides() {
        // Five units on the second of three equal nodes: the first owns 0 and 1, the second 2 and 3.
        let powers = Powers::equal(3, 3);
        let parts = Parts::of(1, &Positions::new(&powers, 0..3, 5), 0, 5);
        assert_eq!(parts, Parts { left: vec![(0, 2)], stay: 2, right: vec![(2, 1)] });
    }
}
