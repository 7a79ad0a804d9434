//! Balancers by name, for whole items whose weights one rank knows. Balancers with knowledge of every task (the
//! [rules](crate::balance::Rule)) assign them at once; all others run in simulation on the items' numbers.

use std::rc::Rc;

use bytes::Bytes;

use super::status::{Failure, Result, Status};
use crate::assign::Problem;
use crate::balance::{self, Chosen, Given, Phase};
use crate::load::Place;
use crate::load::{Powers, Segment, Shares, Task, TaskBatch, WorkQueue};
use crate::node;
use crate::topology::{HostId, Overlay, Topology};
use crate::transport::sim;
use crate::transport::world::World;

/// Weights of items that a simulated balancer sees are shorter by this many bits: walks add up and multiply.
const COARSER: u32 = 24;

/// Items on ranks: those that may move, and those that may not.
pub struct Items<'a> {
    /// Weights in whole units, owners, pinned work and powers.
    pub problem: Problem<'a>,
    /// Place of each item.
    pub places: Option<&'a [Place]>,
    /// The factor over the best maximum up to which fewer moves win.
    pub tolerance: f64,
    /// Seed of the simulated world.
    pub seed: u64,
    /// Topology of the simulated world; none: the balancer's own.
    pub topology: Option<&'a str>,
}

/// The balancer of that name.
///
/// # Errors
/// Wrong usage; the sentence lists the names.
pub fn find(spec: &str) -> Result<Chosen> {
    balance::find(spec).map_err(|why| Failure::usage(format!("option balancer: {why}")))
}

/// Returns true if the balancer needs places in space.
pub fn needs_places(spec: &str) -> bool {
    find(spec).is_ok_and(|chosen| chosen.needs_places())
}

/// The rank that each item goes to.
///
/// # Errors
/// If the balancer does not suit the ranks, or needs places that are missing.
pub fn assign(spec: &str, items: &Items<'_>) -> Result<Vec<u32>> {
    let chosen = find(spec)?;
    if chosen.needs_places() && items.places.is_none() {
        return Err(Failure::usage(format!("balancer {spec} needs coordinates: make the plan with them (eqp_plan_make_at)")));
    }
    if chosen.rule().is_some_and(balance::Rule::by_links) {
        return Err(Failure::usage(format!("balancer {spec} needs to know which tasks talk to each other, and a plan does not")));
    }
    // Its program's ranks are taken to be on one host.
    let hosts = vec![HostId::FIRST; items.problem.ranks()];
    let given = Given {
        vectors: None,
        problem: items.problem,
        places: items.places.unwrap_or_default(),
        hosts: &hosts,
        neighbours: None,
        tolerance: items.tolerance,
        often: true,
    };
    match chosen.rule() {
        Some(rule) => Ok(rule.assign(&given)),
        None => walk(chosen, items),
    }
}

fn common_factor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_factor(b, a % b) }
}

/// Destinations chosen by a balancer of the registry: it runs on the items' numbers and weights, on simulated ranks.
fn walk(chosen: Chosen, items: &Items<'_>) -> Result<Vec<u32>> {
    let problem = &items.problem;
    let ranks = problem.ranks() as u32;
    // Items of one weight are unit tasks, and many weights have a common factor.
    let coarsest = |weight: u64| (weight >> COARSER).max(u64::from(weight > 0));
    let factor = problem.weights.iter().chain(problem.fixed).fold(0, |factor, weight| common_factor(factor, coarsest(*weight))).max(1);
    let coarse = |weight: u64| coarsest(weight) / factor;
    let are_units = problem.weights.iter().all(|weight| coarse(*weight) <= 1);
    let chosen = Rc::new(chosen);
    let mut world = World::simulated(ranks, sim::Model::default());
    world.reseed(items.seed);
    let topology = match items.topology {
        Some(name) => Topology::parse(name, ranks).map_err(crate::Error::from)?,
        None => chosen.entry.topology_on(&world.network()),
    };
    let overlay = Overlay::new(topology, world.hosts()).map_err(crate::Error::from)?;
    let placement = &overlay.placement;
    let of_node = |values: &dyn Fn(u32) -> u64| -> Vec<u64> {
        let real = |node| !placement.is_virtual(node);
        (0..placement.nodes()).map(|node| if real(node) { values(placement.rank_of(node).get()) } else { 0 }).collect()
    };
    let powers = Powers::listed(of_node(&|rank| problem.powers[rank as usize])).map_err(|why| Failure::usage(why.to_string()))?;
    let pinned = of_node(&|rank| coarse(problem.fixed[rank as usize]));
    let has_pinned = pinned.iter().any(|work| *work > 0);
    let mut shares = Shares::new(powers);
    if !are_units {
        shares = shares.weighted();
    }
    if has_pinned {
        shares = shares.with_pinned(pinned.clone());
    }
    let name = chosen.name.clone();
    let results = node::run(&mut world, &overlay, |node| {
        let rank = node.rank_of(node.me()).get();
        let is_real = !node.overlay().placement.is_virtual(node.me());
        let mine = |item: &usize| is_real && problem.owners[*item] == rank && problem.weights[*item] > 0;
        let task = |item: usize| Segment::from(Task { id: item as u64, weight: coarse(problem.weights[item]), payload: Bytes::new() });
        let own: TaskBatch = (0..problem.weights.len()).filter(mine).map(task).collect();
        let mut queue = WorkQueue::new(own);
        let work = pinned[node.me() as usize];
        if work > 0 {
            let first = problem.weights.len() as u64 + u64::from(node.me());
            queue = queue.with_pinned(Segment::row(first, 1, work, Bytes::new()).into_iter().collect());
        }
        let (chosen, shares) = (chosen.clone(), shares.clone());
        async move {
            let mut phase = Phase::begin(&node, &shares, &mut queue);
            phase.carry_out(&*chosen.made).await?;
            phase.end();
            Ok(queue.segments().flat_map(Segment::tasks).map(|task| task.id).collect::<Vec<u64>>())
        }
    })?;
    let mut assignment = problem.owners.to_vec();
    let mut found = 0;
    for (node, ids) in results {
        for id in ids {
            if let Some(rank) = assignment.get_mut(id as usize) {
                *rank = placement.rank_of(node).get();
                found += 1;
            }
        }
    }
    let expected = problem.weights.iter().filter(|weight| **weight > 0).count();
    if found != expected {
        return Err(Failure::new(Status::Failed, format!("balancer {name} left {found} of {expected} items")));
    }
    Ok(assignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<'a>(weights: &'a [u64], owners: &'a [u32], fixed: &'a [u64], powers: &'a [u64]) -> Items<'a> {
        Items { problem: Problem { weights, owners, fixed, powers }, places: None, tolerance: 1.0, seed: 1, topology: None }
    }

    #[test]
    fn every_balancer_of_the_registry_keeps_all_items() {
        let weights: Vec<u64> = (1..=40).map(|at| at << 40).collect();
        let owners = vec![1; 40];
        let items = items(&weights, &owners, &[0, 7 << 40, 0, 0], &[1, 1, 1, 1]);
        let slowest = |assignment: &[u32]| *items.problem.loads(assignment).iter().max().unwrap();
        for name in balance::ALL.iter().map(|entry| entry.name) {
            if needs_places(name) {
                assert_eq!(assign(name, &items).unwrap_err().status, Status::Usage);
                continue;
            }
            let assignment = assign(name, &items).unwrap();
            assert_eq!(assignment.len(), 40);
            if name != "none" {
                assert!(slowest(&assignment) * 2 < slowest(&owners), "{name}: {assignment:?}");
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_all() {
        let why = find("magic").unwrap_err();
        assert!(why.text.contains("magic") && why.text.contains("refine") && why.text.contains("cwa"), "{}", why.text);
        find("greedy-refine:tolerance=1.1").unwrap();
        find("sfc:curve=hilbert").unwrap();
        assert!(find("refine:x=1").unwrap_err().text.contains('x'));
        assert!(find("greedy-refine:tolerance=0").is_err());
    }
}
