//! Runs in simulation: every scheduler, small computations with known answers, disturbed networks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::error::{Error, Result};
use crate::node::{self, Ticks, Worker};
use crate::registry;
use crate::topology::{Overlay, RankId, Topology};
use crate::transport::sim::{self, Model, Network, Rules};
use crate::transport::world::World;

mod answers;
mod exploration;
mod failures;
mod gathering;
mod incremental;
mod lending;
mod paper;

/// All schedulers with the options that change what they do.
fn schedulers() -> impl Iterator<Item = &'static str> {
    registry::examples::<Facts>()
}

/// The sum of a Fibonacci tree: parents that wait. Each task takes `cost`.
struct Fibonacci {
    cost: Ticks,
}

impl Computation for Fibonacci {
    type Task = u32;
    type Answer = u64;
    type Waiting = u32;

    fn execute(&self, n: u32, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(self.cost);
        if n < 2 { Yield::Answer(n.into()) } else { Yield::Children { tasks: vec![n - 1, n - 2], waiting: n } }
    }

    fn join(&self, n: u32, answers: Vec<u64>) -> Yield<Self> {
        assert_eq!(answers.len(), 2, "parent {n}");
        // The answers come in the order of the children.
        assert!(answers[0] >= answers[1]);
        Yield::Answer(answers.iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

fn fibonacci(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Tasks of the Fibonacci tree.
fn fibonacci_tasks(n: u32) -> u64 {
    2 * fibonacci(n + 1) - 1
}

/// Counts the nodes of an irregular tree with detached tasks. A task is a node's number and the number of levels below it.
struct Detached {
    seed: u64,
    cost: Ticks,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Knot {
    number: u64,
    levels: u32,
}

impl Detached {
    fn mix(&self, number: u64) -> u64 {
        let mut x = number.wrapping_add(self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= x >> 31;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ x >> 29
    }

    fn children(&self, knot: Knot) -> Vec<Knot> {
        let count = if knot.levels == 0 { 0 } else { self.mix(knot.number) % 4 };
        (1..=count).map(|child| Knot { number: knot.number * 4 + child, levels: knot.levels - 1 }).collect()
    }

    fn size(&self, knot: Knot) -> u64 {
        1 + self.children(knot).into_iter().map(|child| self.size(child)).sum::<u64>()
    }
}

impl Computation for Detached {
    type Task = Knot;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, knot: Knot, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(self.cost * (1 + self.mix(knot.number) % 5));
        Yield::Detached { tasks: self.children(knot), answer: 1 }
    }

    fn join(&self, (): (), _: Vec<u64>) -> Yield<Self> {
        Yield::Answer(0)
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// Sums a range of numbers in slices, and gives away half of what is left.
struct Range {
    /// Cost of a number.
    cost: Ticks,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Rest {
    from: u64,
    to: u64,
    sum: u64,
}

impl Range {
    fn below(to: u64) -> Rest {
        Rest { from: 0, to, sum: 0 }
    }
}

impl Computation for Range {
    type Task = Rest;
    type Answer = u64;
    type Waiting = ();
    const STYLE: Style = Style::Sliced;
    const DIVISIBLE: bool = true;

    fn execute(&self, task: Rest, worker: &mut dyn Worker) -> Yield<Self> {
        worker.spin(self.cost * (task.to - task.from));
        Yield::Answer(task.sum + (task.from..task.to).sum::<u64>())
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(answers.iter().sum())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }

    fn step(&self, task: Rest, budget: Ticks, worker: &mut dyn Worker) -> Slice<Self> {
        let middle = task.to.min(task.from + (budget / self.cost).max(1));
        worker.spin(self.cost * (middle - task.from));
        let rest = Rest { from: middle, sum: task.sum + (task.from..middle).sum::<u64>(), ..task };
        if middle < task.to { Slice::More(rest) } else { Slice::Done(Yield::Answer(rest.sum)) }
    }

    fn split(&self, task: &mut Rest) -> Option<Rest> {
        let middle = task.from + (task.to - task.from).div_ceil(2);
        let part = Rest { from: middle, to: task.to, sum: 0 };
        (part.from < part.to).then(|| {
            task.to = middle;
            part
        })
    }
}

/// A computation's roots, made anew for each run.
type MakeRoots<C> = dyn Fn() -> Roots<C>;

fn overlay(topology: &str, ranks: u32) -> Overlay {
    Overlay::one_host(Topology::parse(topology, ranks).unwrap(), ranks).unwrap()
}

/// The topology that a scheduler gets on this number of ranks.
fn fitted(scheduler: &str, ranks: u32) -> Overlay {
    let topology = find(scheduler).unwrap().default_topology(ranks);
    Overlay::one_host(topology, ranks).unwrap()
}

fn run<C: Computation>(
    scheduler: &str,
    overlay: &Overlay,
    model: Model,
    options: &Options,
    computation: C,
    roots: &MakeRoots<C>,
) -> Result<RunResult<C::Answer>> {
    run_under(&find(scheduler)?, overlay, model, options, computation, roots)
}

fn run_under<C: Computation>(
    chosen: &Chosen,
    overlay: &Overlay,
    model: Model,
    options: &Options,
    computation: C,
    roots: &MakeRoots<C>,
) -> Result<RunResult<C::Answer>> {
    let ranks = overlay.placement.ranks();
    let mut world = World::simulated(ranks, Model { workers: options.workers, ..model });
    let computation = Arc::new(computation);
    let outcomes = node::run(&mut world, overlay, |node| {
        let here = if node.me() == node.overlay().placement.real_node_of(RankId::FIRST) { roots() } else { Roots::Elsewhere };
        execute(node, computation.clone(), chosen.clone(), here, options.clone())
    })?;
    let mut outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
    let outcome = outcomes.find(|outcome| !outcome.nodes.is_empty());
    outcome.ok_or_else(|| Error::Failed("nobody was the host".into()))
}
