//! Balancing with the fewest task-hops: the min-cost flow that Wu 1997 (section 2) measures the walks against.
//!
//! A paper of 1997 could not afford it on its machine; from one exchange of the loads every node now solves the same flow problem within
//! milliseconds, and carries out its own part of it.
//!
//! 1. All-gather of the loads.
//! 2. Quotas of the total. Every link is two arcs of unbounded capacity and cost 1, nodes above their quotas are sources, nodes below them
//!    sinks: the cheapest flow says how many tasks cross which link. All nodes solve it alike, without a message.
//!    On a graph with unequal bandwidths a link costs the reciprocal of its own, so that slow links are avoided; what is least is then the time
//!    that bytes spend on links, not the task-hops.
//! 3. A node receives from all neighbours that the flow sends to it; then it sends to all that it sends to.
//! 4. Tasks of several units only: what they leave is repaired as [`refine`](super::refine) does it, by transfers that go straight.
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
//! Limits: as `direct`, every node holds all n loads until it has decided. The flow takes under a second up to 4,096 nodes; in simulation, where one
//! process holds all nodes, these share one list of loads, and the flow is solved once for all of them. Virtual time is charged for it on every
//! node, a tick for each node and round; the number of rounds is the diameter.

use super::{
    Balancer, Cost, Entry, Facts, InvalidSpec, Knowledge, Options, Phase, Promises, QuotaRule, Running, Stage, by_task, direct, gathering,
};
use crate::error::{Error, Result};
use crate::flow::{self, Carry};
use crate::load::{Quota, Shares};
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Placement, Topology};

pub(super) static ENTRY: Entry = Entry {
    name: "optimal",
    title: "the fewest task-hops, by min-cost flow",
    source: "Wu 1997, section 2; Ford and Fulkerson 1962",
    options: "",
    examples: &["optimal"],
    build,
    facts: Facts {
        // First a topology that walks have, too: on the complete graph it is `direct`.
        kinds: &[Kind::Hypercube, Kind::Complete, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph],
        suited: None,
        refuses: |_| None,
        quota: QuotaRule::Proportional,
        knows: Knowledge::Loads,
        promises: Promises { exact: true, local: true, ordered: false, optimal: true },
        cost,
    },
};

struct Optimal;

/// Flow on each link in the cheapest solution.
struct Solved {
    quota: Quota,
    carries: Vec<Carry>,
    /// Places in `carries` by giving and by receiving node.
    gives: ByNode,
    gets: ByNode,
}

/// Some places for each node.
struct ByNode {
    first: Vec<u32>,
    places: Vec<u32>,
}

impl ByNode {
    /// The places of what belongs to each node, in their order.
    fn new(nodes: u32, owners: impl Iterator<Item = NodeId> + Clone) -> ByNode {
        let mut first = vec![0; nodes as usize + 1];
        owners.clone().for_each(|node| first[node as usize + 1] += 1);
        (0..nodes as usize).for_each(|node| first[node + 1] += first[node]);
        let (mut free, mut places) = (first.clone(), vec![0; first[nodes as usize] as usize]);
        for (place, node) in (0..).zip(owners) {
            let slot = &mut free[node as usize];
            places[*slot as usize] = place;
            *slot += 1;
        }
        ByNode { first, places }
    }

    fn of(&self, node: NodeId) -> &[u32] {
        &self.places[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// The amounts that a node receives from others and gives to others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    gets: Vec<(NodeId, u64)>,
    gives: Vec<(NodeId, u64)>,
}

fn build(_: &mut Options<'_>) -> Result<Box<dyn Balancer>, InvalidSpec> {
    Ok(Box::new(Optimal))
}

fn cost(topology: &Topology) -> Cost {
    let crossed = match topology.kind() {
        Kind::Complete => u64::from(topology.nodes()) - 1,
        _ => links(topology).count() as u64,
    };
    let gather = gathering::cost(topology.nodes());
    let descent = match topology {
        Topology::Graph(graph) => graph.longest_descent(),
        _ => topology.diameter(),
    };
    Cost { steps: gather.steps + u64::from(descent), messages: gather.messages + crossed, bytes: gather.bytes + crossed * TRANSFER_BYTES }
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
        Box::pin(carry(phase))
    }
}

async fn carry(phase: &mut Phase<'_>) -> Result<()> {
    let node = phase.node;
    if node.topology().kind() == Kind::Complete {
        return direct::exchange(phase).await;
    }

    // Step 1.
    let loads = gathering::gather(node, phase.load()).await?;

    // Step 2.
    phase.enter(Stage::Decision);
    phase.survey_of(&loads);
    let quota = phase.quota(gathering::total_of(&loads));
    let solved = loads.derive(|loads| Solved::new(node.topology(), loads, quota));
    let solved = Result::as_ref(&solved).map_err(Error::clone)?;
    let (mine, parts) = (solved.quota.of(node.me()), solved.parts(node.me()));
    let whole = phase.shares.are_weighted().then(|| loads.derive(|_| direct::QuotaOfRanks(direct::quota_of_ranks(phase, &solved.quota))));
    drop(loads);
    let rounds = u64::from(node.topology().diameter());
    node.charge(u64::from(node.nodes()) * rounds);

    // Step 3.
    phase.enter(Stage::Exchange);
    for (src, _) in parts.gets {
        phase.mover.take_in::<()>(src).await?;
    }
    let mut after = mine + parts.gives.iter().map(|(_, amount)| amount).sum::<u64>();
    for (dst, amount) in parts.gives {
        node.ready_to_send().await;
        after -= amount;
        phase.give(dst, &(), amount, after, mine);
    }

    // Step 4.
    match whole {
        Some(quota) => by_task::repair(phase, quota.0.clone()).await,
        None => Ok(()),
    }
}

impl Solved {
    /// The cheapest flow from these loads to the quotas.
    fn new(topology: &Topology, loads: &[u64], quota: Quota) -> Result<Solved> {
        let least = match topology {
            Topology::Graph(graph) => flow::least_cost(topology.nodes(), graph.link_costs(), loads, &quota.to_vec()),
            _ => flow::least_cost(topology.nodes(), links(topology).map(|link| (link, 1)), loads, &quota.to_vec()),
        };
        let carries = least.map_err(|why| Error::Failed(format!("optimal on {topology}: {why}")))?.carries;
        let gives = ByNode::new(topology.nodes(), carries.iter().map(|carry| carry.src));
        let gets = ByNode::new(topology.nodes(), carries.iter().map(|carry| carry.dst));
        Ok(Solved { quota, carries, gives, gets })
    }

    /// A node's part of it.
    fn parts(&self, me: NodeId) -> Parts {
        let carry = |place: &u32| &self.carries[*place as usize];
        Parts {
            gives: self.gives.of(me).iter().map(carry).map(|carry| (carry.dst, carry.amount)).collect(),
            gets: self.gets.of(me).iter().map(carry).map(|carry| (carry.src, carry.amount)).collect(),
        }
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
    fn a_slow_link_is_left_alone_where_a_way_around_is_cheaper() {
        let triangle = |bandwidth: &str| format!("graph:edges=0-1,1-2,0-2-{bandwidth}");
        let moves = |bandwidth| Trial::of("optimal", &triangle(bandwidth), &[300, 0, 0]).moves();
        assert_eq!(moves("1"), [(0, 1, 100), (0, 2, 100)]);
        assert_eq!(moves("0.001"), [(0, 1, 200), (1, 2, 100)]);
        // At 0.6 the way around takes longer: 2 against 1 / 0.6.
        assert_eq!(moves("0.6"), [(0, 1, 100), (0, 2, 100)]);
    }

    #[test]
    fn a_node_knows_its_parts_of_the_flow() {
        let topology = Topology::parse("ring:6", 6).unwrap();
        let solved = Solved::new(&topology, &[6, 0, 0, 0, 0, 0], Quota::proportional(6, &Powers::equal(6, 6))).unwrap();
        for me in 0..6 {
            let parts = solved.parts(me);
            let gives = solved.carries.iter().filter(|carry| carry.src == me).map(|carry| (carry.dst, carry.amount)).collect::<Vec<_>>();
            let gets = solved.carries.iter().filter(|carry| carry.dst == me).map(|carry| (carry.src, carry.amount)).collect::<Vec<_>>();
            assert_eq!(parts, Parts { gets, gives });
        }
        assert_eq!(solved.parts(0).gives.iter().map(|(_, amount)| amount).sum::<u64>(), 5);
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
