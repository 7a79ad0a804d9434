//! Synthetic trees of tasks: Ahmad, Ghafoor and Fox 1994, section 5.
//!
//! A task above the last level has a uniformly random number of children. A tree's total time is divided equally among its tasks, which
//! spend it asleep (so that many ranks on few cores behave like one processor each), computing, or in virtual time only.
//!
//! ```text
//!   level 0            #                 levels = 2, children = 3
//!   level 1       #    #    #            every task takes time / 6
//!   level 2       #         #
//! ```
//!
//! A task's number of children, and its children's keys, follow from its own key by a splittable generator (Steele, Lea and Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014). So a tree is the same regardless of the ranks that execute it, and can be measured beforehand.

pub(super) mod stream;

use std::ops::Range;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Entry, Facts, Make, Number, Prepared, Setting, Workload};
use crate::workload::SHAPES_STREAM;
use equipoise::error::{Error, Result};
use equipoise::node::{Ticks, Worker};
use equipoise::schedule::{self, Computation, Roots, Style, Yield};
use equipoise::spec::{InvalidSpec, Options};
use stream::{Arrivals, Stream};

pub(super) static ENTRY: Entry = Entry {
    name: "tree",
    title: "synthetic trees of tasks",
    source: "Ahmad, Ghafoor and Fox 1994, section 5",
    options: "levels=8, children=4 (at most), least=0 (children), roots=1, \
              time=1s (of a tree) or task=2ms (of a task), cost=sleep|spin|virtual",
    examples: &[
        "tree:levels=5,children=3,roots=6,time=10ms",
        "tree:levels=4,children=3,least=1,task=1us,cost=spin",
        "tree:levels=0,roots=0",
    ],
    build,
    facts: Facts { answer: "tasks", has_own_network: false },
};

fn build(options: &mut Options<'_>) -> Result<Make, InvalidSpec> {
    let growth = Growth::parse(options, 8, 4)?;
    let roots = options.within("roots", 0..=10_000_000u64)?.unwrap_or(1);
    let cost = Cost::parse(options)?;
    let (time, task) = (options.duration("time")?, options.duration("task")?);
    if time.is_some() && task.is_some() {
        return Err(options.conflict("time and task exclude each other"));
    }
    let time = time.unwrap_or(1_000_000_000);
    Ok(Make::new(options, move |setting| {
        let mut keys = keys(setting);
        let (mut roots, mut left) = (Vec::with_capacity(roots as usize), roots);
        let mut tasks = 0;
        while left > 0 {
            left -= 1;
            let key = keys.random();
            let size = growth.size(key, MOST_TASKS - tasks).ok_or_else(|| too_many(setting))?;
            tasks += size;
            roots.push(Grown { key, level: 0, ticks: task.unwrap_or(time.div_ceil(size)) });
        }
        let is_short = roots.iter().all(|root| root.ticks < SHORT) || (cost == Cost::Virtual && !setting.is_simulated);
        let submission = Submission::AtOnce { roots, tasks };
        Ok(Prepared::new(TaskTrees { growth, cost, submission, style: is_short.then_some(Style::Inline) }))
    }))
}

/// Maximum number of tasks of a run; every process measures all trees beforehand.
const MOST_TASKS: u64 = 100_000_000;
/// Shorter tasks are not worth handing over to a worker.
const SHORT: Ticks = 50_000;

fn too_many(setting: &Setting) -> Error {
    Error::usage(format!("with seed {} there are more than {MOST_TASKS} tasks; ask for fewer levels, children or roots", setting.seed))
}

/// The stream of the trees' keys.
pub(super) fn keys(setting: &Setting) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(setting.seed);
    rng.set_stream(SHAPES_STREAM);
    rng
}

/// The computation: trees of tasks, of which all are counted.
pub struct TaskTrees {
    pub growth: Growth,
    pub cost: Cost,
    pub submission: Submission,
    /// Execution style of the tasks, if not on a worker.
    pub style: Option<Style>,
}

/// Arrival of the roots.
pub enum Submission {
    /// All at the start; with the number of all their tasks.
    AtOnce { roots: Vec<Grown>, tasks: u64 },
    /// Over time.
    Stream(Stream),
}

/// Way in which tasks spend their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Asleep, whatever the rank's speed.
    Sleep,
    /// Computing.
    Spin,
    /// In virtual time; on real ranks not at all.
    Virtual,
}

impl Cost {
    pub(super) fn parse(options: &mut Options<'_>) -> Result<Cost, InvalidSpec> {
        let choices = [("sleep", Cost::Sleep), ("spin", Cost::Spin), ("virtual", Cost::Virtual)];
        Ok(options.choice("cost", &choices)?.unwrap_or(Cost::Sleep))
    }
}

/// Growth of trees.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Maximum number of edges from a root to the lowest tasks: L_max.
    pub levels: u32,
    /// Minimum and maximum number of children of a task above the last level: uniform on 0..=S_max.
    pub least: u32,
    pub children: u32,
}

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// Key from which the sub-tree grows.
    pub key: u64,
    /// Edges between the root and it.
    pub level: u32,
    /// Time that it takes, as every task of its tree.
    pub ticks: Ticks,
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of `SplitMix64`.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Growth {
    pub(super) fn parse(options: &mut Options<'_>, levels: u32, children: u32) -> Result<Growth, InvalidSpec> {
        let levels = options.within("levels", 0..=10_000)?.unwrap_or(levels);
        let children = options.within("children", 0..=1_000_000)?.unwrap_or(children);
        let least = options.within("least", 0..=1_000_000)?.unwrap_or(0);
        if least > children {
            return Err(options.conflict(format!("least={least} children are more than children={children}")));
        }
        Ok(Growth { levels, least, children })
    }

    /// The keys of a task's children.
    fn children(self, key: u64, level: u32) -> impl Iterator<Item = u64> {
        let choices = u128::from(self.children - self.least + 1);
        let above = (u128::from(mix(key)) * choices) >> 64;
        let count = if level < self.levels { u64::from(self.least) + above as u64 } else { 0 };
        (1..=count).map(move |child| mix(key.wrapping_add(child.wrapping_mul(GOLDEN))))
    }

    /// Number of tasks in the tree that grows from a key; `None` if there are more than `most`.
    pub fn size(self, key: u64, most: u64) -> Option<u64> {
        let (mut open, mut size) = (vec![(key, 0)], 0);
        while let Some((key, level)) = open.pop() {
            size += 1;
            open.extend(self.children(key, level).map(|child| (child, level + 1)));
            if size + open.len() as u64 > most {
                return None;
            }
        }
        Some(size)
    }
}

impl Computation for TaskTrees {
    type Task = Grown;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, task: Grown, worker: &mut dyn Worker) -> Yield<Self> {
        match self.cost {
            Cost::Sleep => worker.sleep(task.ticks),
            Cost::Spin => worker.spin(task.ticks),
            Cost::Virtual => worker.charge(task.ticks),
        }
        let children = self.growth.children(task.key, task.level);
        let tasks: Vec<Grown> = children.map(|key| Grown { key, level: task.level + 1, ..task }).collect();
        if tasks.is_empty() { Yield::Answer(1) } else { Yield::Children { tasks, waiting: () } }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(1 + answers.into_iter().sum::<u64>())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

impl Workload for TaskTrees {
    fn roots(&self) -> Roots<Self> {
        match &self.submission {
            Submission::AtOnce { roots, .. } => match roots[..] {
                [root] => Roots::One(root),
                _ => Roots::Many(roots.clone()),
            },
            Submission::Stream(stream) => Roots::Stream(Box::new(Arrivals::new(*stream, self.growth))),
        }
    }

    fn number(&self, answer: &u64) -> Number {
        Number::Whole(*answer)
    }

    fn known(&self) -> Option<Number> {
        match &self.submission {
            Submission::AtOnce { roots, tasks } => (!roots.is_empty()).then_some(Number::Whole(*tasks)),
            Submission::Stream(_) => None,
        }
    }

    fn adjust(&self, options: &mut schedule::Options) {
        options.style = options.style.or(self.style);
        if let Submission::Stream(stream) = &self.submission {
            stream.adjust(options);
        }
    }

    fn measured(&self) -> Option<Range<u64>> {
        match &self.submission {
            Submission::AtOnce { .. } => None,
            Submission::Stream(stream) => Some(stream.measured()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWTH: Growth = Growth { levels: 3, least: 0, children: 2 };

    fn setting(seed: u64) -> Setting {
        Setting { seed, processors: 4, is_simulated: true }
    }

    #[test]
    fn children_are_uniform() {
        let (mut keys, growth) = (keys(&setting(3)), Growth { levels: 2, least: 1, children: 4 });
        let (mut counts, mut grandchildren, draws) = ([0u32; 6], [0u32; 6], 40_000);
        for _ in 0..draws {
            let key = keys.random();
            counts[growth.children(key, 0).count()] += 1;
            let last = growth.children(key, 0).last().unwrap();
            grandchildren[growth.children(last, 1).count()] += 1;
            assert_eq!(growth.children(last, 2).count(), 0);
        }
        for counts in [counts, grandchildren] {
            assert_eq!((counts[0], counts[5]), (0, 0));
            // The standard deviation of each is 87.
            assert!(counts[1..5].iter().all(|count| count.abs_diff(draws / 4) < 400), "{counts:?}");
        }
    }

    #[test]
    fn trees_have_the_sizes_that_are_expected() {
        // Children (0 + 1 + 2) / 3 = 1 on average, on three levels below the root.
        let (mut keys, trees) = (keys(&setting(1)), 40_000);
        let sizes: Vec<u64> = (0..trees).map(|_| GROWTH.size(keys.random(), 1_000).unwrap()).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / f64::from(trees);
        assert!((mean - 4.0).abs() < 0.06, "{mean}");
        assert_eq!(sizes.iter().max(), Some(&15));
        // A third of the roots have no children.
        assert!(sizes.iter().filter(|size| **size == 1).count().abs_diff(trees as usize / 3) < 400);
    }

    #[test]
    fn sizes_are_limited_and_known() {
        let full = Growth { levels: 3, least: 3, children: 3 };
        assert_eq!((full.size(7, 40), full.size(7, 39)), (Some(40), None));
        let chain = Growth { levels: 9_999, least: 1, children: 1 };
        assert_eq!(chain.size(7, u64::MAX), Some(10_000));
        let known = |spec: &str| super::super::find(spec).unwrap().prepare(&setting(1)).map(|prepared| prepared.known());
        assert_eq!(known("tree:levels=3,children=3,least=3,roots=4").unwrap(), Some(Number::Whole(160)));
        let why = known("tree:levels=30,children=3,least=3").unwrap_err().to_string();
        assert_eq!(
            why,
            "workload tree:levels=30,children=3,least=3: with seed 1 there are more than 100000000 tasks; ask for fewer levels, \
             children or roots"
        );
    }
}
