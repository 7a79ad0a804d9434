//! Runs a balancer on simulated nodes, for the tests in the balancers' files.

use std::rc::Rc;

use super::{find, no_harm};
use crate::load::{Place, Plan, Powers, Segment, Shares, TaskBatch, WorkQueue};
use crate::phase::{self, Setting};
use crate::topology::{Overlay, Topology};
use crate::transport::record::Counts;
use crate::transport::sim::{self, Rules};
use crate::transport::world::World;

/// A network on which messages come in an order drawn from the seed (0: undisturbed).
fn disturbed(seed: u64) -> sim::Model {
    let rules = if seed == 0 { Rules::default() } else { Rules::seeded(seed).delay_heavily(20_000).shuffle() };
    sim::Model { rules, ..sim::Model::default() }
}

/// A phase on simulated nodes, one task a unit, and what came of it.
pub(super) struct Trial {
    pub plan: Plan,
    /// The loads after it, by node.
    pub after: Vec<u64>,
    /// Work units of each node's own tasks that never left it; with unit tasks, the number of these tasks.
    pub stayed: Vec<u64>,
    /// Target load of each node.
    pub quota: Vec<u64>,
    /// Counts, summed over all nodes.
    pub counts: Counts,
    /// Whether moves were declined that would have made the slowest rank slower.
    pub declined: bool,
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
        Trial::on(balancer, topology, loads, Shares::new(powers), seed)
    }

    /// As [`Trial::with`], with the balancer's rule as published, even where it makes the slowest rank slower.
    pub fn plain(balancer: &str, topology: &str, loads: &[u64], powers: Powers) -> Trial {
        Trial::on(balancer, topology, loads, Shares::new(powers).plainly(), 0)
    }

    /// Runs the balancer on the complete graph with tasks of these weights; `tasks` is the number of tasks of each node, which are one range of ids.
    pub fn weighing(balancer: &str, tasks: &[u64], weights: &[u64], powers: &[u64]) -> Trial {
        Trial::weighing_on(balancer, "complete", tasks, weights, powers)
    }

    /// The same on this topology.
    pub fn weighing_on(balancer: &str, topology: &str, tasks: &[u64], weights: &[u64], powers: &[u64]) -> Trial {
        let shares = Shares::new(Powers::listed(powers.to_vec()).unwrap()).weighted();
        let mut tasks_of: Vec<TaskBatch> = Vec::new();
        let mut ids = (0..).zip(weights);
        for count in tasks {
            let task = |(id, weight): (u64, &u64)| Segment::row(id, 1, *weight, bytes::Bytes::new()).unwrap();
            tasks_of.push(ids.by_ref().take(*count as usize).map(task).collect());
        }
        Trial::of_queues(balancer, topology, shares, move |node| WorkQueue::new(tasks_of[node as usize].clone()))
    }

    pub(super) fn of_queues(balancer: &str, topology: &str, shares: Shares, queue: impl Fn(u32) -> WorkQueue + 'static) -> Trial {
        Trial::in_order(balancer, topology, shares, 0, queue)
    }

    /// Runs it on these queues, and messages come in an order drawn from the seed (0: undisturbed).
    pub(super) fn in_order(balancer: &str, topology: &str, shares: Shares, seed: u64, queue: impl Fn(u32) -> WorkQueue + 'static) -> Trial {
        let nodes = shares.powers().nodes();
        let overlay = Overlay::one_host(Topology::parse(topology, nodes).unwrap(), nodes).unwrap();
        let loads: Vec<u64> = (0..nodes).map(|node| queue(node).work()).collect();
        let chosen = find(balancer).unwrap();
        let quota = chosen.aims(&overlay, &loads, &shares).to_vec();
        let setting = Rc::new(Setting {
            balancer: Rc::new(chosen),
            shares,
            queue: Rc::new(move |node| Ok(queue(node))),
            plan: true,
            weighted: true,
            trace: None,
        });
        let mut world = World::simulated(nodes, disturbed(seed));
        let (outcome, queues) = phase::run_and_keep(&mut world, &overlay, &setting).unwrap();
        let phase::Outcome { finals: after, plan, counts, declined, .. } = outcome.unwrap();
        let stayed = queues.iter().map(WorkQueue::own_work).collect();
        Trial { plan, after, stayed, quota, counts, declined }
    }

    /// Runs it on the complete graph with unit tasks at these places, by node.
    pub fn at(balancer: &str, places: &[Vec<Place>]) -> Trial {
        let nodes = places.len() as u32;
        let loads: Vec<u64> = places.iter().map(|places| places.len() as u64).collect();
        let places = places.to_vec();
        Trial::of_queues(balancer, "complete", Shares::new(Powers::equal(nodes, nodes)), move |node| {
            WorkQueue::numbered(&loads, node).with_places(places[node as usize].clone())
        })
    }

    fn on(balancer: &str, topology: &str, loads: &[u64], shares: Shares, seed: u64) -> Trial {
        let nodes = loads.len() as u32;
        let topology = Topology::parse(topology, nodes).unwrap();
        assert_eq!(topology.nodes(), nodes, "{}", topology.name());
        let chosen = find(balancer).unwrap();
        assert_eq!(chosen.entry.objection(&topology), None);
        let overlay = Overlay::one_host(topology, nodes).unwrap();
        let topology = &overlay.topology;
        let quota = chosen.aims(&overlay, loads, &shares).to_vec();
        let (cost, survey) = ((chosen.entry.facts.cost)(topology), no_harm::cost(nodes));
        // Unit tasks on unequal ranks.
        let surveys = u64::from(!shares.are_plain() && shares.may_round_badly(nodes));
        let checks = u64::from(!shares.are_plain() && nodes > 1 && chosen.is_checked(&shares, &overlay.placement));
        let held = loads.to_vec();
        let setting = Rc::new(Setting {
            balancer: Rc::new(chosen),
            shares,
            queue: Rc::new(move |node| Ok(WorkQueue::numbered(&held, node))),
            plan: true,
            weighted: false,
            trace: None,
        });
        let mut world = World::simulated(nodes, disturbed(seed));
        let (outcome, queues) = phase::run_and_keep(&mut world, &overlay, &setting).unwrap();
        let phase::Outcome { finals: after, plan, counts, declined, .. } = outcome.unwrap();

        assert_eq!(plan.apply(loads).as_ref(), Ok(&after));
        // The predicted cost does not include tasks that go back because they would do harm.
        let unforeseen = checks > 0 && declined;
        if !balancer.contains(':') && !unforeseen {
            let reductions = surveys + checks;
            assert!(u64::from(counts.chain) <= cost.steps + reductions * survey.steps, "{} steps, {cost:?}", counts.chain);
            assert!(counts.messages <= cost.messages + reductions * survey.messages, "{} messages, {cost:?}", counts.messages);
        }
        let stayed = queues.iter().map(WorkQueue::own).collect();
        Trial { plan, after, stayed, quota, counts, declined }
    }

    /// Source, destination and number of tasks of every transfer, in the plan's order.
    pub fn moves(&self) -> Vec<(u32, u32, u64)> {
        self.plan.transfers.iter().map(|t| (t.src, t.dst, t.tasks)).collect()
    }

    /// Returns true if every node kept at least the smaller of its load and its quota of its own tasks, so that it never held less.
    pub fn kept_what_it_could(&self, loads: &[u64]) -> bool {
        self.stayed.iter().zip(loads).zip(&self.quota).all(|((&stayed, &load), &quota)| stayed >= load.min(quota))
    }

    pub fn task_hops(&self) -> u128 {
        self.counts.task_hops
    }
}
