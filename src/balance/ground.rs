//! All tasks and ranks, as every node knows them after it has gathered them, and the rules that assign tasks to ranks.

use std::collections::BTreeMap;

use super::Phase;
use super::items::{Held, Items};
use crate::assign::vectors::Vectors;
use crate::assign::{self, Assignment, Neighbours, Problem};
use crate::load::{Column, Link, Place, Segment, TaskBatch, TaskId, WorkQueue};
use crate::topology::{HostId, Placement, RankId};

/// Input of an assignment: tasks, ranks, and the data that some rules need.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Tasks and ranks.
    pub problem: Problem<'a>,
    /// Place of each task; empty where places don't count.
    pub places: &'a [Place],
    /// The host of each rank.
    pub hosts: &'a [HostId],
    /// Communication between tasks, for rules that use it.
    pub neighbours: Option<&'a Neighbours>,
    /// All weights of tasks that have several, for rules that use them.
    pub vectors: Option<Vectors<'a>>,
    /// Factor over the best time found within which fewer moves are preferred, unless the rule has its own.
    pub tolerance: f64,
    /// Whether plans are made often, as in every step of a program; then the search for less movement is short.
    pub often: bool,
}

/// Assignment of whole tasks to ranks by a node that knows every task. Balancers such as `refine` and `kk` are made of one.
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

/// Rows of consecutive numbers (ids) of a node's tasks: those that may move, in their order, and those that may not.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Names {
    movable: Vec<(TaskId, u64)>,
    pinned: Vec<(TaskId, u64)>,
}

impl Names {
    pub fn of(queue: &WorkQueue) -> Names {
        let row = |segment: &Segment| (segment.first(), segment.len());
        let pinned = queue.pinned().into_iter().flat_map(TaskBatch::segments);
        Names { movable: queue.movable_segments().map(row).collect(), pinned: pinned.map(row).collect() }
    }
}

fn ids(rows: &[(TaskId, u64)]) -> impl Iterator<Item = TaskId> {
    rows.iter().flat_map(|(first, count)| *first..first + count)
}

/// All tasks and ranks.
pub(super) struct Ground {
    pub items: Items,
    pub owners: Vec<u32>,
    fixed: Vec<u64>,
    pub powers: Vec<u64>,
    hosts: Vec<HostId>,
}

impl Ground {
    /// `single`: each task is assigned for itself, however many there are.
    pub fn new(phase: &Phase<'_>, held: &[Held], single: bool) -> Ground {
        Ground::of(phase, Items::of(held, single))
    }

    /// The same with tasks that have no work, each for itself.
    pub fn with_all(phase: &Phase<'_>, held: &[Held]) -> Ground {
        Ground::of(phase, Items::all(held))
    }

    fn of(phase: &Phase<'_>, items: Items) -> Ground {
        let placement = &phase.node.overlay().placement;
        let (shares, ranks) = (phase.shares, placement.ranks());
        let owners = items.ranges.iter().map(|range| placement.rank_of(range.node).get()).collect();
        let powers: Vec<u64> = RankId::all(ranks).map(|rank| shares.powers().of(placement.real_node_of(rank))).collect();
        let mut pinned = vec![0; ranks as usize];
        for (node, work) in (0..).zip(shares.pinned()) {
            pinned[placement.rank_of(node).index()] += work;
        }
        // What is pinned where there is no power never ends, whatever the others do.
        let fixed = pinned.iter().zip(&powers).map(|(work, power)| if *power > 0 { *work } else { 0 }).collect();
        Ground { items, owners, fixed, powers, hosts: RankId::all(ranks).map(|rank| placement.host_of(rank)).collect() }
    }

    pub fn problem(&self) -> Problem<'_> {
        Problem { weights: &self.items.weights, owners: &self.owners, fixed: &self.fixed, powers: &self.powers }
    }

    /// All weights of the items, by column and item, and of tasks that stay where they are, by column and rank.
    pub fn columns(&self, names: &[Names], columns: &[Column], placement: &Placement) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let (item_of, rank_of) = self.tasks(names, placement);
        let of = |column: &Column| {
            let weight = |task: &TaskId| column.weights.get(*task as usize).copied().unwrap_or(0);
            let (mut weights, mut fixed) = (vec![0; self.items.ranges.len()], vec![0; self.powers.len()]);
            item_of.iter().for_each(|(task, item)| weights[*item] = weight(task));
            rank_of.iter().for_each(|(task, rank)| fixed[rank.index()] += weight(task));
            (weights, fixed)
        };
        columns.iter().map(of).unzip()
    }

    /// The item that each task is, and the ranks of the tasks that stay where they are.
    fn tasks(&self, names: &[Names], placement: &Placement) -> (BTreeMap<TaskId, usize>, BTreeMap<TaskId, RankId>) {
        let mut rank_of: BTreeMap<TaskId, RankId> = BTreeMap::new();
        let mut item_of: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut ranges = self.items.ranges.iter().enumerate().peekable();
        for (node, names) in (0..).zip(names) {
            for (at, id) in (0..).zip(ids(&names.movable)) {
                match ranges.next_if(|(_, range)| range.node == node && range.at == at) {
                    Some((item, _)) => drop(item_of.insert(id, item)),
                    None => drop(rank_of.insert(id, placement.rank_of(node))),
                }
            }
            rank_of.extend(ids(&names.pinned).map(|id| (id, placement.rank_of(node))));
        }
        (item_of, rank_of)
    }

    /// Communication of the items with each other, and with tasks that stay.
    pub fn neighbours(&self, names: &[Names], phase: &Phase<'_>) -> Neighbours {
        let (item_of, rank_of) = self.tasks(names, &phase.node.overlay().placement);
        let count = self.items.ranges.len();
        let mut found = Neighbours { tasks: vec![Vec::new(); count], ranks: vec![Vec::new(); count] };
        for Link { ends: (a, b), bytes } in phase.shares.links().unwrap_or_default() {
            match (item_of.get(a), item_of.get(b)) {
                (Some(a), Some(b)) if a != b => {
                    found.tasks[*a].push((*b, *bytes));
                    found.tasks[*b].push((*a, *bytes));
                }
                (Some(item), None) => found.ranks[*item].extend(rank_of.get(b).map(|rank| (rank.get(), *bytes))),
                (None, Some(item)) => found.ranks[*item].extend(rank_of.get(a).map(|rank| (rank.get(), *bytes))),
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
