//! Balancing with the fewest task-hops: the min-cost flow that Wu 1997 (sections 2 and 7) measures the walks against.
//!
//! A paper of 1997 could not afford it on its machine; from one exchange of the loads every node now solves the same flow problem within
//! milliseconds, and carries out its own part of it.
//!
//! 1. All-gather of the loads.
//! 2. Quotas of the total. Every link is two arcs of unbounded capacity and cost 1, nodes above their quotas are sources, nodes below them
//!    sinks: the cheapest flow says how many tasks cross which link. All nodes solve it alike, without a message.
//! 3. A node receives from all neighbours that the flow sends to it; then it sends to all that it sends to.
//!
//! ```text
//!   loads   9 --- 1 --- 0 --- 6      quotas 4 each      0 -> 1: 5, 1 -> 2: 2, 3 -> 2: 2      9 task-hops
//! ```
//!
//! Cost: the loads as `direct` gathers them, then at most one message a link. What crosses links forms no circle, and falls by one potential
//! with every hop, of which there are no more than the diameter; so no chain of transfers is longer.
//!
//! Guarantees: the least possible task-hops on the topology, whatever it is; every node ends at its quota, and never holds less than the
//! smaller of its load and its quota, since it receives before it sends and gives away what it received first. On the complete graph, where
//! every missing task takes one hop, the row of surpluses fills the row of deficits: it is `direct` there.
//!
//! Limits: as `direct`, every node holds all n loads until it has decided. The flow takes under a second up to 4,096 nodes; in simulation,
//! where one process holds all nodes, it is solved once for all of them. Virtual time is charged for it on every node, a tick for each node
//! and round, of which there are as many as the diameter.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Balancer, Cost, Entry, Options, Part, Phase, Promises, QuotaRule, Running, direct};
use crate::error::{Error, Result};
use crate::flow::{self, Carry};
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "optimal",
    title: "the fewest task-hops, by min-cost flow",
    source: "Wu 1997, sections 2 and 7; Ford and Fulkerson 1962",
    kinds: &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
    refuses: |_| None,
    quota: QuotaRule::Proportional,
    promises: Promises { exact: true, local: true, ordered: false, optimal: true },
    cost,
    options: "",
    build,
};

/// Keeps the last flow that was solved, for the other nodes of the process.
#[derive(Default)]
struct Optimal {
    last: Mutex<Option<Arc<Solved>>>,
}

/// A flow problem, and what its cheapest flow carries over which link.
struct Solved {
    topology: Topology,
    loads: Vec<u64>,
    quota: Vec<u64>,
    carries: Vec<Carry>,
}

/// What a node gets from whom, and gives to whom.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    gets: Vec<(NodeId, u64)>,
    gives: Vec<(NodeId, u64)>,
}

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>> {
    Ok(Box::new(Optimal::default()))
}

fn cost(topology: &Topology) -> Cost {
    let crossed = match topology.kind() {
        Kind::Complete => u64::from(topology.nodes()) - 1,
        _ => links(topology).count() as u64,
    };
    let gather = direct::gather_cost(topology.nodes());
    Cost {
        steps: gather.steps + u64::from(topology.diameter()),
        messages: gather.messages + crossed,
        bytes: gather.bytes + crossed * TRANSFER_BYTES,
    }
}

/// Every link once, from its lower end.
fn links(topology: &Topology) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    let beyond = |node: NodeId| topology.neighbours(node).into_iter().filter(move |&other| node < other).map(move |other| (node, other));
    (0..topology.nodes()).flat_map(beyond)
}

impl Balancer for Optimal {
    fn is_checked(&self, shares: &Shares, _: &Placement) -> bool {
        shares.are_weighted()
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        Box::pin(self.carry(phase))
    }
}

impl Optimal {
    async fn carry(&self, phase: &mut Phase<'_>) -> Result<()> {
        let node = phase.node;
        if node.topology().kind() == Kind::Complete {
            return direct::exchange(phase).await;
        }

        // Step 1.
        let loads = direct::gather(node, phase.load()).await?;

        // Step 2.
        phase.enter(Part::Decision);
        phase.survey_of(&loads);
        let quota = phase.quota(loads.iter().sum());
        let mine = quota.of(node.me());
        let parts = self.parts(node.me(), node.topology(), loads, &quota)?;
        let rounds = u64::from(node.topology().diameter());
        node.charge(u64::from(node.nodes()) * rounds);

        // Step 3.
        phase.enter(Part::Exchange);
        for (src, _) in parts.gets {
            phase.mover.take_in::<()>(src).await?;
        }
        let mut after = mine + parts.gives.iter().map(|(_, amount)| amount).sum::<u64>();
        for (dst, amount) in parts.gives {
            node.ready_to_send().await;
            after -= amount;
            phase.give(dst, &(), amount, after, mine);
        }
        Ok(())
    }

    /// A node's part of the cheapest flow.
    fn parts(&self, me: NodeId, topology: &Topology, loads: Vec<u64>, quota: &Quota) -> Result<Parts> {
        let solved = self.solved(topology, loads, quota.to_vec())?;
        let mut parts = Parts::default();
        for carry in &solved.carries {
            if carry.src == me {
                parts.gives.push((carry.dst, carry.amount));
            } else if carry.dst == me {
                parts.gets.push((carry.src, carry.amount));
            }
        }
        Ok(parts)
    }

    /// The cheapest flow, solved if the last one is not of the same problem.
    fn solved(&self, topology: &Topology, loads: Vec<u64>, quota: Vec<u64>) -> Result<Arc<Solved>> {
        let same = |last: &&Arc<Solved>| last.loads == loads && last.quota == quota && last.topology == *topology;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(same) {
            return Ok(last.clone());
        }
        let links: Vec<_> = links(topology).collect();
        let least = flow::least_hops(topology.nodes(), &links, &loads, &quota);
        let carries = least.map_err(|why| Error::Failed(format!("optimal on {topology}: {why}")))?.carries;
        let solved = Arc::new(Solved { topology: topology.clone(), loads, quota, carries });
        *last = Some(solved.clone());
        Ok(solved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::Trial;
    use crate::judge;
    use crate::load::Powers;
    use proptest::prelude::*;

    #[test]
    fn the_optima_of_the_papers_examples() {
        // Examples 1 to 3, and figure 13's mesh.
        let trial = Trial::of("optimal", "tree:parents=-,0,1,1,0,4,0,6,6", &[1, 4, 5, 11, 7, 2, 3, 3, 5]);
        assert_eq!((trial.task_hops(), trial.after), (16, vec![5, 5, 5, 5, 5, 4, 4, 4, 4]));
        let trial = Trial::of("optimal", "hypercube:3", &[19, 11, 2, 9, 0, 9, 10, 4]);
        assert_eq!((trial.task_hops(), trial.after), (21, vec![8; 8]));
        let trial = Trial::of("optimal", "mesh:4x4", &[7, 12, 6, 16, 17, 3, 0, 15, 2, 13, 5, 5, 5, 6, 4, 12]);
        assert_eq!((trial.task_hops(), trial.after), (48, vec![8; 16]));
    }

    #[test]
    fn the_drawing() {
        let trial = Trial::of("optimal", "line:4", &[9, 1, 0, 6]);
        assert_eq!((trial.moves(), trial.task_hops()), (vec![(0, 1, 5), (3, 2, 2), (1, 2, 2)], 9));
        assert_eq!(Trial::of("optimal", "complete:4", &[9, 1, 0, 6]).moves(), [(0, 1, 3), (0, 2, 2), (3, 2, 2)]);
    }

    #[test]
    fn the_nodes_of_a_process_solve_once() {
        let topology = Topology::parse("ring:6", 6).unwrap();
        let (optimal, loads) = (Optimal::default(), vec![6, 0, 0, 0, 0, 0]);
        let quota = |total| Quota::proportional(total, &Powers::equal(6, 6));
        let first = optimal.solved(&topology, loads.clone(), quota(6).to_vec()).unwrap();
        let second = optimal.solved(&topology, loads, quota(6).to_vec()).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let third = optimal.solved(&topology, vec![0, 6, 0, 0, 0, 0], quota(6).to_vec()).unwrap();
        assert!(!Arc::ptr_eq(&first, &third) && third.carries != first.carries);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn no_way_has_fewer_task_hops(
            spec in prop::sample::select(vec![
                "hypercube:4", "mesh:3x5", "mesh:2x3x3", "torus:4x4", "ring:9", "line:7", "tree:binary,nodes=13", "tree:kary=4,nodes=11",
                "grid:2x5", "complete:6",
            ]),
            loads in prop::collection::vec(0u64..60, 18),
            powers in prop::collection::vec(0u64..4, 18),
            seed in any::<u64>(),
        ) {
            let topology = Topology::parse(spec, 1).unwrap();
            let nodes = topology.nodes() as usize;
            let powers = Powers::listed(powers[..nodes].to_vec()).unwrap_or(Powers::equal(1, nodes as u32));
            let trial = Trial::with("optimal", spec, &loads[..nodes], powers, seed);
            prop_assert_eq!(&trial.after, &trial.quota);
            prop_assert!(trial.kept_what_it_could(&loads[..nodes]));
            prop_assert_eq!(trial.task_hops(), judge::optimum(&topology, &loads[..nodes], &trial.quota).unwrap());
        }
    }
}
