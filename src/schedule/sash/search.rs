//! The search of one phase: best-first through partial schedules.
//!
//! ```text
//!   root: no task       C = max of the base loads
//!    |-- task a on worker 0, 1, ..            successors: the next `window` tasks in order on every worker
//!         |-- task a+1 on worker 0, 1, ..
//! ```
//!
//! A node keeps its last assignment and its parent only; loads are added up on the way to the root when it is expanded, which is some tens
//! of steps.

use std::collections::{BTreeSet, BinaryHeap};

use crate::load::{Cost, Costs, NEVER};

/// Rule for expanding one of two nodes of the same cost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The deeper, then the one with the smaller total load, then the older.
    Deeper,
    /// The older.
    Older,
}

/// Rule for the node that is taken when the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The deepest; of these the one of the lowest cost, then of the smallest total load, then the oldest.
    Deepest,
    /// The head of the queue, as the paper prints it.
    Head,
}

/// A task on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The row of the matrix.
    pub task: usize,
    /// The column of the matrix.
    pub worker: usize,
}

#[derive(Clone, Copy)]
struct Vertex {
    parent: u32,
    depth: u32,
    assignment: Assignment,
    cost: Cost,
    total: Cost,
}

/// Sort key of the queue; the greatest is the head.
type Rank = (std::cmp::Reverse<Cost>, u32, std::cmp::Reverse<Cost>, std::cmp::Reverse<u32>);

/// A phase's search. The tasks to schedule and the workers' base loads are given; expansions are asked for one by one.
pub struct Search<'a> {
    costs: &'a Costs,
    workers: &'a [usize],
    tasks: &'a [usize],
    base: Vec<Cost>,
    /// Factor by which each worker's costs are multiplied; empty if all are 1.
    factors: Vec<f64>,
    window: usize,
    ties: Ties,
    vertices: Vec<Vertex>,
    queue: BinaryHeap<Rank>,
    deepest: u32,
    /// With a window of several tasks two orders may lead to the same schedule, which is wanted once.
    seen: BTreeSet<u128>,
    generated: u64,
}

impl<'a> Search<'a> {
    /// A search over `tasks` (in order; each can run on one of the workers at least), where `base[i]` is when worker `workers[i]` could begin.
    pub fn new(costs: &'a Costs, workers: &'a [usize], tasks: &'a [usize], base: Vec<Cost>, window: usize, ties: Ties) -> Search<'a> {
        let nothing = Assignment { task: usize::MAX, worker: usize::MAX };
        let root = Vertex {
            parent: 0,
            depth: 0,
            assignment: nothing,
            cost: base.iter().copied().max().unwrap_or(0),
            total: base.iter().fold(0, |sum: Cost, load| sum.saturating_add(*load)),
        };
        let mut search = Search {
            costs,
            workers,
            tasks,
            base,
            factors: Vec::new(),
            window: window.max(1),
            ties,
            vertices: vec![root],
            queue: BinaryHeap::new(),
            deepest: 0,
            seen: BTreeSet::new(),
            generated: 0,
        };
        search.queue.push(search.rank(0));
        search
    }

    /// The same with each worker's costs multiplied.
    #[must_use]
    pub fn scaled(mut self, factors: Vec<f64>) -> Search<'a> {
        self.factors = if factors.iter().all(|factor| *factor == 1.0) { Vec::new() } else { factors };
        self
    }

    /// Cost of a task on a worker.
    fn cost(&self, task: usize, place: usize) -> Cost {
        let cost = self.costs.of(task, self.workers[place]);
        match self.factors.get(place) {
            Some(factor) if cost != NEVER => (cost as f64 * factor) as Cost,
            _ => cost,
        }
    }

    fn rank(&self, index: u32) -> Rank {
        let vertex = self.vertices[index as usize];
        let (depth, total) = match self.ties {
            Ties::Deeper => (vertex.depth, vertex.total),
            Ties::Older => (0, 0),
        };
        (std::cmp::Reverse(vertex.cost), depth, std::cmp::Reverse(total), std::cmp::Reverse(index))
    }

    /// Returns true if the head of the queue schedules all tasks.
    pub fn is_complete(&self) -> bool {
        self.head().is_some_and(|head| self.vertices[head as usize].depth as usize == self.tasks.len())
    }

    fn head(&self) -> Option<u32> {
        self.queue.peek().map(|(_, _, _, index)| index.0)
    }

    /// Nodes that were generated so far.
    pub fn generated(&self) -> u64 {
        self.generated
    }

    /// Expands the head of the queue; returns how many successors it has. 0 if it has none.
    pub fn expand(&mut self) -> u64 {
        let Some((_, _, _, index)) = self.queue.pop() else { return 0 };
        let parent = index.0;
        let vertex = self.vertices[parent as usize];
        let mut loads = self.base.clone();
        let mut taken: Vec<usize> = Vec::with_capacity(vertex.depth as usize);
        let mut signature = 0u128;
        for Assignment { task, worker } in self.path(parent) {
            let place = self.place(worker);
            loads[place] = loads[place].saturating_add(self.cost(task, place));
            taken.push(task);
            signature = signature.wrapping_add(mark(task, worker));
        }
        let next: Vec<usize> = match self.window {
            1 => self.tasks.get(vertex.depth as usize).copied().into_iter().collect(),
            _ => {
                taken.sort_unstable();
                self.tasks.iter().copied().filter(|task| taken.binary_search(task).is_err()).take(self.window).collect()
            }
        };
        let before = self.vertices.len();
        let mut generated = 0;
        for task in next {
            for (place, &worker) in self.workers.iter().enumerate() {
                let cost = self.cost(task, place);
                if cost == NEVER {
                    continue;
                }
                generated += 1;
                if self.window > 1 && !self.seen.insert(signature.wrapping_add(mark(task, worker))) {
                    continue;
                }
                let index = self.vertices.len() as u32;
                self.vertices.push(Vertex {
                    parent,
                    depth: vertex.depth + 1,
                    assignment: Assignment { task, worker },
                    cost: vertex.cost.max(loads[place].saturating_add(cost)),
                    total: vertex.total.saturating_add(cost),
                });
                self.queue.push(self.rank(index));
                if self.is_deeper(index) {
                    self.deepest = index;
                }
            }
        }
        debug_assert!(self.vertices.len() <= before + generated as usize);
        self.generated += generated;
        generated
    }

    fn is_deeper(&self, index: u32) -> bool {
        let key = |index: u32| {
            let vertex = self.vertices[index as usize];
            (std::cmp::Reverse(vertex.depth), vertex.cost, vertex.total, index)
        };
        key(index) < key(self.deepest)
    }

    fn place(&self, worker: usize) -> usize {
        self.workers.binary_search(&worker).unwrap_or(0)
    }

    /// A vertex's assignments, the last first.
    fn path(&self, mut index: u32) -> impl Iterator<Item = Assignment> {
        std::iter::from_fn(move || {
            let vertex = self.vertices[index as usize];
            index = vertex.parent;
            (vertex.depth > 0).then_some(vertex.assignment)
        })
    }

    /// The partial schedule that is taken now, in the order in which it was made.
    pub fn chosen(&self, choice: Choice) -> Vec<Assignment> {
        let vertex = match (self.is_complete(), choice) {
            (true, _) | (_, Choice::Head) => self.head().unwrap_or(0),
            (false, Choice::Deepest) => self.deepest,
        };
        let mut assignments: Vec<Assignment> = self.path(vertex).collect();
        assignments.reverse();
        assignments
    }
}

/// An assignment's share in the signature of a schedule, which is an order-free sum (`SplitMix64`'s finaliser, twice).
fn mark(task: usize, worker: usize) -> u128 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let number = (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(worker as u64);
    (u128::from(mix(number.wrapping_add(1))) << 64) | u128::from(mix(number ^ 0x5851_f42d_4c95_7f2d))
}
