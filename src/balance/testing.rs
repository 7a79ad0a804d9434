//! Runs a balancer on simulated nodes, for the tests in the balancers' files.

use super::{Phase, find};
use crate::load::{Checksum, Parcel, Pile, Plan, Powers, Segment, Shares};
use crate::node;
use crate::topology::{Overlay, Topology};
use crate::transport::record::Counts;
use crate::transport::sim::{self, Rules};
use crate::transport::world::World;

/// A phase on simulated nodes, one task a unit, and what came of it.
pub(super) struct Trial {
    pub plan: Plan,
    /// The loads after it, by node.
    pub after: Vec<u64>,
    /// By node: how many of its own tasks never left it.
    pub stayed: Vec<u64>,
    /// What the balancer says that each node should have.
    pub quota: Vec<u64>,
    /// Of all nodes together.
    pub counts: Counts,
}

impl Trial {
    /// Runs a balancer, as `--balancer` names it, on a topology, as `--topology` names it, with one rank a node and equal powers.
    pub fn of(balancer: &str, topology: &str, loads: &[u64]) -> Trial {
        Trial::with(balancer, topology, loads, Powers::equal(loads.len() as u32, loads.len() as u32), 0)
    }

    /// Runs it with the given powers, and messages that come in an order drawn from the seed (0: undisturbed).
    ///
    /// Checks what holds for every balancer: no task is lost, doubled or changed; the plan, carried out step by step, is possible and
    /// gives the loads that the nodes report; steps and messages are within the predicted cost.
    pub fn with(balancer: &str, topology: &str, loads: &[u64], powers: Powers, seed: u64) -> Trial {
        let nodes = loads.len() as u32;
        let topology = Topology::parse(topology, nodes).unwrap();
        assert_eq!(topology.nodes(), nodes, "{}", topology.name());
        let chosen = find(balancer).unwrap();
        assert_eq!(chosen.entry.objection(&topology), None);
        let shares = Shares::new(powers);
        let quota = chosen.balancer.quota(&topology, loads.iter().sum(), &shares).to_vec();
        let cost = (chosen.entry.cost)(&topology);
        let chosen = std::rc::Rc::new(chosen);

        let rules = if seed == 0 { Rules::default() } else { Rules::seeded(seed).delay_heavily(20_000).shuffle() };
        let mut world = World::Sim(sim::World::new(nodes, sim::Model { rules, ..sim::Model::default() }));
        let overlay = Overlay::one_host(topology, nodes).unwrap();
        let results = node::run(&mut world, &overlay, |node| {
            let (node, counts) = node.recorded();
            let (chosen, shares) = (chosen.clone(), shares.clone());
            let first = loads[..node.me() as usize].iter().sum();
            let own = Segment::range(first, loads[node.me() as usize]);
            async move {
                let mut pile = Pile::new(Parcel::from_iter([own]));
                let mut phase = Phase::begin(&node, &shares, &mut pile);
                chosen.balancer.run(&mut phase).await?;
                let (sent, _) = phase.end();
                Ok((pile, sent, counts.get()))
            }
        })
        .unwrap();

        let all = Checksum::of(&Segment::range(0, loads.iter().sum()));
        assert_eq!(results.iter().map(|(_, (pile, ..))| pile.checksum()).fold(Checksum::default(), Checksum::and), all);
        let plan = Plan::new(results.iter().flat_map(|(_, (_, sent, _))| sent).copied().collect());
        let after: Vec<u64> = results.iter().map(|(_, (pile, ..))| pile.work()).collect();
        assert_eq!(plan.apply(loads).as_ref(), Ok(&after));
        let counts = results.iter().map(|(_, (.., counts))| *counts).fold(Counts::default(), Counts::and);
        if !balancer.contains(':') {
            assert!(u64::from(counts.chain) <= cost.steps, "{} steps, {cost:?}", counts.chain);
            assert!(counts.messages <= cost.messages, "{} messages, {cost:?}", counts.messages);
        }
        let stayed = results.iter().map(|(_, (pile, ..))| pile.own()).collect();
        Trial { plan, after, stayed, quota, counts }
    }

    /// Source, destination and number of tasks of every transfer, in the plan's order.
    pub fn moves(&self) -> Vec<(u32, u32, u64)> {
        self.plan.transfers.iter().map(|t| (t.src, t.dst, t.tasks)).collect()
    }

    /// Whether every node kept as many of its own tasks as its quota let it keep, so that it never held less than that.
    pub fn kept_what_it_could(&self, loads: &[u64]) -> bool {
        self.stayed.iter().zip(loads).zip(&self.quota).all(|((&stayed, &load), &quota)| stayed >= load.min(quota))
    }

    pub fn task_hops(&self) -> u128 {
        self.counts.task_hops
    }
}
