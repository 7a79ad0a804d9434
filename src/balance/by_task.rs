//! A phase by a rule that knows every task, and the repair of what whole tasks leave of quotas.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::ground::{Given, Ground, Names, Rule};
use super::items::Held;
use super::{Phase, Stage, gathering, within};
use crate::assign::vectors::Vectors;
use crate::assign::{self, Assignment, Problem};
use crate::error::{Error, Result};
use crate::load::{Place, Shares};
use crate::node::Gathered;
use crate::topology::{NodeId, Placement, RankId};

/// A phase by this rule, whatever the tasks.
pub(super) async fn exchange(phase: &mut Phase<'_>, rule: &dyn Rule) -> Result<()> {
    if let Some(capacity) = phase.shares.capacity() {
        return within::exchange(phase, rule, capacity).await;
    }
    let (node, me) = (phase.node, phase.node.me());

    // Step 1.
    phase.enter(Stage::Information);
    let queue = &phase.mover.queue;
    let places = if rule.by_place() { queue.places().map_or_else(Vec::new, <[Place]>::to_vec) } else { Vec::new() };
    let by_columns = looks_at_columns(rule, phase.shares);
    let mine = (rule.by_links() || by_columns).then(|| Names::of(queue));
    let held: Gathered<Held> = gathering::gather(node, (queue.movable_rows(), places)).await?;
    let names: Option<Gathered<Names>> = match mine {
        Some(_) if !by_columns && phase.shares.links().is_none() => return Err(no_links(rule.name())),
        Some(mine) => Some(gathering::gather(node, mine).await?),
        None => None,
    };

    // Step 2.
    phase.enter(Stage::Decision);
    if rule.by_place() {
        check_places(rule.name(), &held, &node.overlay().placement)?;
    }
    let planned = held.derive(|held| Planned::new(phase, held, names.as_deref(), rule));
    drop((held, names));
    node.charge(planned.tasks);
    if planned.declined {
        phase.decline();
    }

    // Step 3.
    phase.enter(Stage::Exchange);
    phase.mover.deal_out(&planned.parts[me as usize]).await;
    phase.mover.take_in_order(&planned.sources[me as usize]).await
}

/// Repairs what whole tasks have left of these quotas: [`refine`](super::refine) from where the tasks are by now, unless that would take a rank
/// further than the largest task from its quota, and further than it was.
pub(super) async fn repair(phase: &mut Phase<'_>, quota: Rc<[u64]>) -> Result<()> {
    exchange(phase, &Repair { quota }).await
}

struct Repair {
    /// Quota of each rank.
    quota: Rc<[u64]>,
}

impl Rule for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn assign(&self, given: &Given<'_>) -> Assignment {
        assign::refine(&given.problem)
    }

    fn accepts(&self, problem: &Problem<'_>, before: &[u64], after: &[u64]) -> bool {
        let largest = problem.weights.iter().copied().max().unwrap_or(0);
        let both = before.iter().zip(after).zip(self.quota.iter());
        both.into_iter().all(|((before, after), quota)| after.abs_diff(*quota) <= before.abs_diff(*quota).max(largest))
    }
}

/// Returns true if the rule is to use several weights.
pub(super) fn looks_at_columns(rule: &dyn Rule, shares: &Shares) -> bool {
    rule.by_columns() && shares.columns().is_some()
}

/// The error of a rule that goes by what is not known.
fn no_links(name: &str) -> Error {
    Error::usage(format!("balancer {name}:locality needs to know which tasks talk to each other"))
}

/// Every task needs its place.
fn check_places(name: &str, held: &[Held], placement: &Placement) -> Result<()> {
    for (node, (rows, places)) in (0..).zip(held) {
        let (tasks, places) = (rows.iter().map(|(_, count)| count).sum::<u64>(), places.len() as u64);
        if places != tasks {
            let has = if places == 0 { "none".into() } else { places.to_string() };
            return Err(Error::usage(format!(
                "balancer {name} needs a place (x,y,z) of each task: rank {} has {tasks} tasks that may move, and places of {has}",
                placement.rank_of(node)
            )));
        }
    }
    Ok(())
}

/// Plan that all nodes derive from the gathered tasks.
struct Planned {
    /// First place, number and destination of the tasks that leave, by node.
    parts: Vec<Vec<(u64, u64, NodeId)>>,
    /// Nodes that send to each node.
    sources: Vec<Vec<NodeId>>,
    declined: bool,
    /// Number of tasks, or of blocks of tasks, that were assigned.
    tasks: u64,
}

impl Planned {
    fn new(phase: &Phase<'_>, held: &[Held], names: Option<&[Names]>, rule: &dyn Rule) -> Planned {
        let (placement, shares) = (&phase.node.overlay().placement, phase.shares);
        let columns = names.filter(|_| looks_at_columns(rule, shares)).zip(shares.columns());
        let ground = match columns {
            Some(_) => Ground::with_all(phase, held),
            None => Ground::new(phase, held, names.is_some()),
        };
        let (problem, items) = (ground.problem(), &ground.items);
        let neighbours = names.filter(|_| rule.by_links()).map(|names| ground.neighbours(names, phase));
        let columns = columns.map(|(names, columns)| ground.columns(names, columns, placement));
        let vectors = columns.as_ref().map(|(weights, fixed)| Vectors { weights, fixed, owners: &ground.owners, powers: &ground.powers });
        let mut assignment = rule.assign(&Given { neighbours: neighbours.as_ref(), vectors, ..ground.given() });
        let (before, after) = (problem.loads(problem.owners), problem.loads(&assignment));
        let is_slower = match &vectors {
            Some(vectors) => vectors.ratio(&assignment) > vectors.ratio(&ground.owners),
            None => problem.slowest(&after) > problem.slowest(&before),
        };
        let slower = !shares.are_plain() && is_slower;
        if slower || !rule.accepts(&problem, &before, &after) {
            assignment = problem.owners.to_vec();
        }
        let mut planned =
            Planned { parts: vec![Vec::new(); held.len()], sources: Vec::new(), declined: slower, tasks: items.ranges.len() as u64 };
        let mut sources = vec![BTreeSet::new(); held.len()];
        for (range, rank) in items.ranges.iter().zip(&assignment) {
            let dst = placement.real_node_of(RankId::new(*rank));
            if dst == range.node {
                continue;
            }
            let parts = &mut planned.parts[range.node as usize];
            match parts.last_mut() {
                Some((first, count, to)) if *to == dst && *first + *count == range.at => *count += range.count,
                _ => parts.push((range.at, range.count, dst)),
            }
            sources[dst as usize].insert(range.node);
        }
        planned.sources = sources.into_iter().map(|sources| sources.into_iter().collect()).collect();
        planned
    }
}
