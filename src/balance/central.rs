//! Common part of the balancers that know every task: each node sends the list of its tasks to all others, all compute the same assignment,
//! and tasks go straight to their destinations.
//!
//! 1. All-gather of the rows of alike tasks (weight and number) of each node, and of their places where these count.
//! 2. All nodes assign the tasks to ranks, alike; in simulation, where the nodes share what they gathered, once for all.
//! 3. Each node sends the tasks that leave, one message for each destination, and receives from those that it knows to send.
//!
//! ```text
//!   node 0   5x1 3x2   \                      /  node 0 keeps 5x1
//!   node 1   1x9        >  the same everywhere  ->  sends 2x2 to 1, 1x2 to 2
//!   node 2   -         /                      \  nodes 1, 2 receive from 0
//! ```
//!
//! Cost: the all-gather of [`direct`](super::direct), with a row of tasks where that has a load; one step; at most a message for each pair of nodes.
//!
//! Guarantee: the times of all ranks are known before anything moves, so a plan that makes the slowest rank slower is not carried out. Unit
//! tasks go as `direct` sends them, which ends at the quotas with the fewest tasks moved: no rule is better for those.
//!
//! Tasks are assigned to ranks, not to nodes: work on virtual nodes goes to the real node of some rank. Tasks without work stay where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::items::{Held, Items};
use super::{Balancer, Cost, Phase, Running, Stage, direct, within};
use crate::assign::vectors::Vectors;
use crate::assign::{self, Assignment, Neighbours, Problem};
use crate::error::{Error, Result};
use crate::load::{Column, Link, Place, Segment, Shares, TaskBatch, TaskId, WorkQueue};
use crate::node::Gathered;
use crate::node::migrate::TRANSFER_BYTES;
use crate::topology::{Kind, NodeId, Placement, Topology};

/// Tasks go straight to where they belong, on whatever topology.
pub(super) const ANY: &[Kind] =
    &[Kind::Complete, Kind::Hypercube, Kind::Mesh, Kind::Torus, Kind::Tree, Kind::Grid, Kind::Line, Kind::Ring, Kind::Graph];

/// Number of nodes up to which a rule that looks at each task more than a few times decides within seconds.
const DECIDED_UP_TO: u32 = 16_384;

/// Returns the reason why a rule that looks at tasks many times does not suit a topology of this size; `None` if it does.
pub(super) fn too_many(topology: &Topology) -> Option<String> {
    let nodes = topology.nodes();
    let why = || {
        format!("is the wrong tool on {nodes} nodes: beyond {DECIDED_UP_TO} deciding takes minutes; greedy, tempered and the walks go on")
    };
    (nodes > DECIDED_UP_TO).then(why)
}

/// Input of an assignment: tasks, ranks, and the data that some rules need.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Tasks and ranks.
    pub problem: Problem<'a>,
    /// By task; empty where they don't count.
    pub places: &'a [Place],
    /// The host of each rank.
    pub hosts: &'a [u32],
    /// Communication between tasks, for rules that use it.
    pub neighbours: Option<&'a Neighbours>,
    /// All weights of tasks that have several, for rules that use them.
    pub vectors: Option<Vectors<'a>>,
    /// Factor over the best time found within which fewer moves are preferred, unless the rule has its own.
    pub tolerance: f64,
    /// Whether plans are made often, as in every step of a program; then the search for less movement is short.
    pub often: bool,
}

/// An assignment of whole tasks to ranks that knows every task: a balancer, with [`Central`] around it.
pub trait Rule {
    /// Returns true if the rule uses the tasks' places.
    fn by_place(&self) -> bool {
        false
    }

    /// Returns true if the rule uses the communication between tasks.
    fn by_links(&self) -> bool {
        false
    }

    /// Returns true if the rule uses all weights of tasks that have several.
    fn by_columns(&self) -> bool {
        false
    }

    /// Returns true if unit tasks are sent as by [`direct`](super::direct), which no assignment of these improves.
    fn leaves_units_to_quotas(&self) -> bool {
        true
    }

    /// The name in sentences.
    fn name(&self) -> &'static str;

    /// The rank of each task.
    fn assign(&self, given: &Given<'_>) -> Assignment;

    /// Returns true if an assignment is worth carrying out. `before` and `after` are work units by rank, without pinned work on ranks
    /// without power.
    fn accepts(&self, problem: &Problem<'_>, before: &[u64], after: &[u64]) -> bool {
        let _ = (problem, before, after);
        true
    }
}

/// The balancer that a rule is.
pub(super) struct Central<R>(pub R);

impl<R: Rule + Send + Sync> Balancer for Central<R> {
    /// A result that is slower is declined before anything moves.
    fn is_checked(&self, _: &Shares, _: &Placement) -> bool {
        false
    }

    fn needs_places(&self) -> bool {
        self.0.by_place()
    }

    fn keeps_capacity(&self) -> bool {
        !self.0.by_place() && !self.0.by_links()
    }

    fn keeps_columns(&self) -> bool {
        self.0.by_columns()
    }

    fn rule(&self) -> Option<&dyn Rule> {
        Some(&self.0)
    }

    fn run<'a>(&'a self, phase: &'a mut Phase<'_>) -> Running<'a> {
        let has_more = phase.shares.capacity().is_some() || looks_at_columns(&self.0, phase.shares);
        let by_task = phase.shares.are_weighted() || has_more || !self.0.leaves_units_to_quotas();
        Box::pin(async move { if by_task { exchange(phase, &self.0).await } else { direct::exchange(phase).await } })
    }
}

/// Returns true if the rule is to use several weights.
fn looks_at_columns(rule: &dyn Rule, shares: &Shares) -> bool {
    rule.by_columns() && shares.columns().is_some()
}

/// Upper bound of what a phase of unit tasks costs.
pub(super) fn cost(topology: &Topology) -> Cost {
    direct::cost(topology)
}

/// The same where each node may send to each other one.
pub(super) fn cost_of_all(topology: &Topology) -> Cost {
    let (gather, n) = (direct::gather_cost(topology.nodes()), u64::from(topology.nodes()));
    let pairs = n * (n - 1);
    // A row of weight and number instead of a load, and places of 24 bytes, are as long as there are tasks.
    Cost { steps: gather.steps + pairs.min(1), messages: gather.messages + pairs, bytes: gather.bytes + pairs * TRANSFER_BYTES }
}

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
    let held: Gathered<Held> = direct::gather(node, (queue.movable_rows(), places)).await?;
    let names: Option<Gathered<Names>> = match mine {
        Some(_) if !by_columns && phase.shares.links().is_none() => return Err(no_links(rule.name())),
        Some(mine) => Some(direct::gather(node, mine).await?),
        None => None,
    };

    // Step 2.
    phase.enter(Stage::Decision);
    if rule.by_place() {
        check_places(rule.name(), &held)?;
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
    /// By rank.
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

/// Rows of consecutive numbers (ids) of a node's tasks: those that may move, in their order, and those that may not.
#[derive(serde::Serialize, serde::Deserialize)]
struct Names {
    movable: Vec<(TaskId, u64)>,
    pinned: Vec<(TaskId, u64)>,
}

impl Names {
    fn of(queue: &WorkQueue) -> Names {
        let row = |segment: &Segment| (segment.first(), segment.len());
        let pinned = queue.pinned().into_iter().flat_map(TaskBatch::segments);
        Names { movable: queue.movable_segments().map(row).collect(), pinned: pinned.map(row).collect() }
    }
}

fn ids(rows: &[(TaskId, u64)]) -> impl Iterator<Item = TaskId> {
    rows.iter().flat_map(|(first, count)| *first..first + count)
}

/// The error of a rule that goes by what is not known.
fn no_links(name: &str) -> Error {
    Error::usage(format!(
        "balancer {name}:locality needs to know which tasks talk to each other: LBAF's data say it, or --communications FILE"
    ))
}

/// Every task needs its place.
fn check_places(name: &str, held: &[Held]) -> Result<()> {
    for (node, (rows, places)) in held.iter().enumerate() {
        let (tasks, places) = (rows.iter().map(|(_, count)| count).sum::<u64>(), places.len() as u64);
        if places != tasks {
            let has = if places == 0 { "none".into() } else { places.to_string() };
            return Err(Error::usage(format!(
                "balancer {name} needs a place (x,y,z) of each task: node {node} has {tasks} tasks that may move, and places of {has}"
            )));
        }
    }
    Ok(())
}

/// Plan that all nodes derive from the gathered tasks.
struct Planned {
    /// First place, number and destination of the tasks that leave, by node.
    parts: Vec<Vec<(u64, u64, NodeId)>>,
    /// By node, the nodes that send to it.
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
            Planned { parts: vec![Vec::new(); held.len()], sources: Vec::new(), declined: slower, tasks: items.lots.len() as u64 };
        let mut sources = vec![BTreeSet::new(); held.len()];
        for (lot, rank) in items.lots.iter().zip(&assignment) {
            let dst = placement.real_node_of(*rank);
            if dst == lot.node {
                continue;
            }
            let parts = &mut planned.parts[lot.node as usize];
            match parts.last_mut() {
                Some((first, count, to)) if *to == dst && *first + *count == lot.at => *count += lot.count,
                _ => parts.push((lot.at, lot.count, dst)),
            }
            sources[dst as usize].insert(lot.node);
        }
        planned.sources = sources.into_iter().map(|sources| sources.into_iter().collect()).collect();
        planned
    }
}

/// All tasks and ranks.
pub(super) struct Ground {
    pub items: Items,
    owners: Vec<u32>,
    fixed: Vec<u64>,
    powers: Vec<u64>,
    hosts: Vec<u32>,
}

impl Ground {
    /// `single`: each task is assigned for itself, however many there are.
    pub fn new(phase: &Phase<'_>, held: &[Held], single: bool) -> Ground {
        Ground::of(phase, Items::of(held, single))
    }

    /// The same with tasks that have no work, each for itself.
    fn with_all(phase: &Phase<'_>, held: &[Held]) -> Ground {
        Ground::of(phase, Items::all(held))
    }

    fn of(phase: &Phase<'_>, items: Items) -> Ground {
        let placement = &phase.node.overlay().placement;
        let (shares, ranks) = (phase.shares, placement.ranks());
        let owners = items.lots.iter().map(|lot| placement.rank_of(lot.node)).collect();
        let powers: Vec<u64> = (0..ranks).map(|rank| shares.powers().of(placement.real_node_of(rank))).collect();
        let mut pinned = vec![0; ranks as usize];
        for (node, work) in (0..).zip(shares.pinned()) {
            pinned[placement.rank_of(node) as usize] += work;
        }
        // What is pinned where there is no power never ends, whatever the others do.
        let fixed = pinned.iter().zip(&powers).map(|(work, power)| if *power > 0 { *work } else { 0 }).collect();
        Ground { items, owners, fixed, powers, hosts: (0..ranks).map(|rank| placement.host_of(rank)).collect() }
    }

    pub fn problem(&self) -> Problem<'_> {
        Problem { weights: &self.items.weights, owners: &self.owners, fixed: &self.fixed, powers: &self.powers }
    }

    /// All weights of the items, by column and item, and of tasks that stay where they are, by column and rank.
    fn columns(&self, names: &[Names], columns: &[Column], placement: &Placement) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let (item_of, rank_of) = self.tasks(names, placement);
        let of = |column: &Column| {
            let weight = |task: &TaskId| column.weights.get(*task as usize).copied().unwrap_or(0);
            let (mut weights, mut fixed) = (vec![0; self.items.lots.len()], vec![0; self.powers.len()]);
            item_of.iter().for_each(|(task, item)| weights[*item] = weight(task));
            rank_of.iter().for_each(|(task, rank)| fixed[*rank as usize] += weight(task));
            (weights, fixed)
        };
        columns.iter().map(of).unzip()
    }

    /// The item that each task is, and the ranks of the tasks that stay where they are.
    fn tasks(&self, names: &[Names], placement: &Placement) -> (BTreeMap<TaskId, usize>, BTreeMap<TaskId, u32>) {
        let mut rank_of: BTreeMap<TaskId, u32> = BTreeMap::new();
        let mut item_of: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut lots = self.items.lots.iter().enumerate().peekable();
        for (node, names) in (0..).zip(names) {
            for (at, id) in (0..).zip(ids(&names.movable)) {
                match lots.next_if(|(_, lot)| lot.node == node && lot.at == at) {
                    Some((item, _)) => drop(item_of.insert(id, item)),
                    None => drop(rank_of.insert(id, placement.rank_of(node))),
                }
            }
            rank_of.extend(ids(&names.pinned).map(|id| (id, placement.rank_of(node))));
        }
        (item_of, rank_of)
    }

    /// Communication of the items with each other, and with tasks that stay.
    fn neighbours(&self, names: &[Names], phase: &Phase<'_>) -> Neighbours {
        let (item_of, rank_of) = self.tasks(names, &phase.node.overlay().placement);
        let count = self.items.lots.len();
        let mut found = Neighbours { tasks: vec![Vec::new(); count], ranks: vec![Vec::new(); count] };
        for Link { ends: (a, b), bytes } in phase.shares.links().unwrap_or_default() {
            match (item_of.get(a), item_of.get(b)) {
                (Some(a), Some(b)) if a != b => {
                    found.tasks[*a].push((*b, *bytes));
                    found.tasks[*b].push((*a, *bytes));
                }
                (Some(item), None) => found.ranks[*item].extend(rank_of.get(b).map(|rank| (*rank, *bytes))),
                (None, Some(item)) => found.ranks[*item].extend(rank_of.get(a).map(|rank| (*rank, *bytes))),
                _ => {}
            }
        }
        found
    }

    pub fn given(&self) -> Given<'_> {
        Given {
            problem: self.problem(),
            places: &self.items.places,
            hosts: &self.hosts,
            neighbours: None,
            vectors: None,
            tolerance: assign::TOLERANCE,
            often: false,
        }
    }
}
