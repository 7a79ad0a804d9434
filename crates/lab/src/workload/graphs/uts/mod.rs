//! Unbalanced Tree Search: Olivier, Huan, Liu, Prins, Dinan, Sadayappan and Tseng, "UTS: an unbalanced tree search benchmark", Languages and
//! Compilers for Parallel Computing, 2006. Count the nodes of a tree whose sub-trees differ wildly in size, which is not known before they are
//! grown.
//!
//! 1. A task carries many nodes: a stack of those that are found and not yet visited. It visits them depth-first, in slices of 128 to 2048
//!    nodes between two polls of the network.
//! 2. Asked for a part, it gives away half of its stack, the end nearest the root, where the large sub-trees are expected.
//! 3. Schedulers that move whole tasks only want many: so a task that has visited its share ends, and spawns what is on its stack, dealt
//!    into two halves. The first shares are small, so that there are soon tasks for all ranks, and double up to `grain`.
//! 4. Tasks are detached: the answers of all of them are summed.
//!
//! ```text
//!    given away <--- [ nearest the root | .. | newest ] ---> visited next
//! ```

mod definition;
mod shape;

use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Workload};
use equipoise::error::Result;
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{Computation, Roots, Slice, Style, Yield};
use equipoise::spec::{InvalidSpec, Options};
use shape::{DEFAULT, Draw, NAMED};
pub use shape::{Kind, Knot, Shape, Tree};

pub(super) static ENTRY: Entry = Entry {
    name: "uts",
    title: "unbalanced tree search",
    source: "Olivier et al. 2006",
    options: "tree=T1 (T1 to T5, T1L to T3L), grain=20000 (nodes that a task visits before it spawns); \
              or kind=geometric|binomial|hybrid, shape=linear|fixed|cyclic|exponential, b0=4, depth=6, q=0.234375, m=4, seed=0",
    examples: &[
        "uts:kind=geometric,shape=fixed,b0=4,depth=5,seed=19",
        "uts:kind=geometric,shape=linear,b0=4,depth=10,seed=34,grain=500",
        "uts:kind=geometric,shape=cyclic,b0=2,depth=5,seed=6,grain=100",
        "uts:kind=geometric,shape=exponential,b0=3,depth=30,seed=5,grain=50",
        "uts:kind=binomial,b0=200,q=0.19,m=5,seed=7,grain=200",
        "uts:kind=hybrid,shape=linear,b0=5,depth=8,q=0.2,m=4,seed=3",
    ],
    build,
    facts: Facts { answer: "nodes", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let kind = options.choice("kind", &[("geometric", 'g'), ("binomial", 'b'), ("hybrid", 'h')])?;
    let tree = match kind {
        None => options.choice("tree", &NAMED.map(|(name, tree, _)| (name, tree)))?.unwrap_or(NAMED[0].1),
        Some(kind) => parameters(kind, options)?,
    };
    let grain = options.whole("grain", 1)?.unwrap_or(20_000);
    Ok(Make::new(options, move |_| Ok(Prepared::new(Uts::new(tree, grain)))))
}

fn parameters(kind: char, options: &mut Options<'_>) -> Result<Tree, InvalidSpec> {
    const SHAPES: [(&str, Shape); 4] =
        [("linear", Shape::Linear), ("fixed", Shape::Fixed), ("cyclic", Shape::Cyclic), ("exponential", Shape::Exponential)];
    let mut tree = DEFAULT;
    let b0 = options.read("b0", "a number from 0 to below 1000000", |b0| (0.0..1e6).contains(b0))?;
    tree.b0 = b0.unwrap_or(tree.b0);
    tree.seed = options.within("seed", 0..=u32::MAX)?.unwrap_or(tree.seed);
    if kind == 'b' {
        tree.kind = Kind::Binomial;
    } else {
        let shape = options.choice("shape", &SHAPES)?.unwrap_or(Shape::Linear);
        tree.depth = options.within("depth", 1..=100_000)?.unwrap_or(tree.depth);
        tree.kind = if kind == 'g' { Kind::Geometric(shape) } else { Kind::Hybrid(shape) };
        if shape == Shape::Exponential && tree.b0 <= 1.0 {
            return Err(options.conflict("b0 must be above 1 with shape=exponential, or the tree need not end"));
        }
    }
    if kind != 'g' {
        tree.q = options.not_negative("q")?.unwrap_or(tree.q);
        tree.m = options.within("m", 0..=100)?.unwrap_or(tree.m);
        if tree.q * f64::from(tree.m) >= 1.0 {
            return Err(options.conflict("q times m must be below 1, or the tree need not end"));
        }
    }
    Ok(tree)
}

/// Nodes that a task visits between two polls of the network.
const LOOKS: (u64, u64) = (128, 2048);
/// Nanoseconds that a node takes, for the simulator: processor time measured on an Intel Xeon.
const NODE: Ticks = 65;
/// Size in nodes up to which trees that are in no table are also counted by their definition, which takes some seconds for this number.
const MOST_COUNTED: u64 = 10_000_000;
/// Nodes that the first task visits before it spawns.
const FIRST_SHARE: u64 = 256;

/// The computation: the size of a tree.
#[derive(Clone, Debug)]
pub struct Uts {
    tree: Tree,
    draw: Draw,
    grain: u64,
}

/// Nodes that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub nodes: u64,
    /// Number of nodes without children, among `nodes`.
    pub leaves: u64,
    /// The greatest depth of any.
    pub depth: u32,
}

impl Tally {
    fn and(self, more: Tally) -> Tally {
        Tally { nodes: self.nodes + more.nodes, leaves: self.leaves + more.leaves, depth: self.depth.max(more.depth) }
    }
}

/// A task: part of a tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subtrees {
    /// Nodes to be visited, the next one last.
    stack: Vec<Knot>,
    /// Counts of the nodes that this task has visited.
    tally: Tally,
    /// Number of nodes that it may visit.
    share: u64,
}

impl Uts {
    /// Returns the computation of a tree in which a task visits at most `grain` nodes before it spawns the remaining ones.
    pub fn new(tree: Tree, grain: u64) -> Uts {
        Uts { tree, draw: Draw::new(tree), grain }
    }

    /// Visits this many nodes, unless there are fewer.
    fn visit(&self, stack: &mut Vec<Knot>, tally: &mut Tally, most: u64) -> u64 {
        for visited in 0..most {
            let Some(knot) = stack.pop() else { return visited };
            let children = self.draw.children(&knot);
            tally.nodes += 1;
            tally.leaves += u64::from(children == 0);
            tally.depth = tally.depth.max(knot.depth);
            knot.grow(children, stack);
        }
        most
    }

    /// Goes on with a task, for about this many nodes.
    fn go_on(&self, mut part: Subtrees, most: u64, worker: &mut dyn Worker) -> Slice<Self> {
        // With a single node left there is no other one to spawn.
        let share = part.share.saturating_sub(part.tally.nodes).max(1);
        let visited = self.visit(&mut part.stack, &mut part.tally, most.min(share));
        worker.charge(NODE * visited);
        worker.checkpoint();
        let Subtrees { stack, tally, share } = &mut part;
        match stack.len() {
            0 => Slice::Done(Yield::Answer(*tally)),
            2.. if tally.nodes >= *share => {
                let share = share.saturating_mul(2).min(self.grain);
                let tasks = alternately(stack).map(|stack| Subtrees { stack, tally: Tally::default(), share });
                Slice::Done(Yield::Detached { tasks: tasks.into(), answer: *tally })
            }
            _ => Slice::More(part),
        }
    }
}

/// Deals a stack into two that are alike.
fn alternately(stack: &[Knot]) -> [Vec<Knot>; 2] {
    [0, 1].map(|first| stack.iter().skip(first).step_by(2).copied().collect())
}

/// Takes the half nearest the root off a stack.
fn nearest_the_root(stack: &mut Vec<Knot>) -> Vec<Knot> {
    let far = stack.split_off(stack.len() / 2);
    std::mem::replace(stack, far)
}

impl Computation for Uts {
    type Task = Subtrees;
    type Answer = Tally;
    type Waiting = ();
    const STYLE: Style = Style::Sliced;
    const DIVISIBLE: bool = true;

    fn execute(&self, mut part: Subtrees, worker: &mut dyn Worker) -> Yield<Self> {
        loop {
            match self.go_on(part, LOOKS.0, worker) {
                Slice::Done(done) => return done,
                Slice::More(more) => part = more,
            }
        }
    }

    fn step(&self, part: Subtrees, budget: Ticks, worker: &mut dyn Worker) -> Slice<Self> {
        self.go_on(part, (budget / NODE).clamp(LOOKS.0, LOOKS.1), worker)
    }

    fn split(&self, part: &mut Subtrees) -> Option<Subtrees> {
        let near = nearest_the_root(&mut part.stack);
        (!near.is_empty()).then(|| Subtrees { stack: near, tally: Tally::default(), share: self.grain })
    }

    fn join(&self, (): (), answers: Vec<Tally>) -> Yield<Self> {
        Yield::Answer(answers.into_iter().fold(Tally::default(), Tally::and))
    }

    fn combine(&self, into: Tally, more: Tally) -> Tally {
        into.and(more)
    }
}

impl Uts {
    /// Visits the whole tree, one node after the other.
    pub fn count(&self) -> Tally {
        let (mut stack, mut tally) = (vec![Knot::root(self.tree.seed)], Tally::default());
        self.visit(&mut stack, &mut tally, u64::MAX);
        tally
    }
}

impl Workload for Uts {
    fn roots(&self) -> Roots<Self> {
        Roots::One(Subtrees { stack: vec![Knot::root(self.tree.seed)], tally: Tally::default(), share: FIRST_SHARE.min(self.grain) })
    }

    fn number(&self, answer: &Tally) -> Number {
        Number::Whole(answer.nodes)
    }

    fn known(&self) -> Option<Number> {
        let known = NAMED.iter().find(|(_, tree, _)| *tree == self.tree);
        known.map(|(_, _, (nodes, ..))| *nodes).or_else(|| definition::nodes(&self.tree, MOST_COUNTED)).map(Number::Whole)
    }

    fn sequential(&self) -> Option<Number> {
        Some(Number::Whole(self.count().nodes))
    }
}

#[cfg(test)]
mod tests;
