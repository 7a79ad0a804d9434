//! Trees of sleeping tasks on real ranks: more ranks than cores then behave like as many processors, and it can be seen who works how much.

use std::sync::Arc;
use std::time::Duration;

use equipoise::node::{self, Ticks, Worker};
use equipoise::schedule::{self, Computation, NodeReport, Options, Roots, Yield};
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::settle;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::contract::Case;
use crate::launch::{Book, Suite};

pub fn enter(book: &mut Book) {
    let cases = vec![
        Case { name: "everyone works on a single root: Fibonacci's calls", check: |world| everyone_works(world, fibonacci, vec![11]) },
        Case { name: "everyone works on a single root: six queens", check: |world| everyone_works(world, six_queens, Vec::new()) },
        Case { name: "everyone works on a single root: three children each", check: |world| everyone_works(world, threefold, vec![5]) },
        Case { name: "everyone works on a single root: random trees", check: random_trees },
    ];
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(30)));
    book.suite(Suite { name: "sleepers", ranks: &[5, 8], more: &[16], limit: Duration::from_secs(60), options, cases });
}

/// Counts the nodes of a tree, and sleeps at each.
struct Sleepers {
    children: fn(&[u8]) -> Vec<Vec<u8>>,
    pause: Ticks,
}

/// The function calls itself with what is one and two less.
fn fibonacci(call: &[u8]) -> Vec<Vec<u8>> {
    match call[..] {
        [n] if n >= 2 => vec![vec![n - 1], vec![n - 2]],
        _ => Vec::new(),
    }
}

/// The places of queens in the first rows, and one more.
fn six_queens(placed: &[u8]) -> Vec<Vec<u8>> {
    let row = placed.len();
    let is_safe =
        |column: u8| placed.iter().zip(0..).all(|(other, at)| *other != column && usize::from(other.abs_diff(column)) != row - at);
    let columns = (0..6).filter(|column| row < 6 && is_safe(*column));
    columns.map(|column| [placed, &[column]].concat()).collect()
}

/// Always the same, down to the last level.
fn threefold(levels: &[u8]) -> Vec<Vec<u8>> {
    match levels[..] {
        [below] if below >= 1 => vec![vec![below - 1]; 3],
        _ => Vec::new(),
    }
}

/// Up to four children down to the eighth level, by the path from the root, whose first step is the seed.
fn random(path: &[u8]) -> Vec<Vec<u8>> {
    let seed = path.iter().fold(0, |seed: u64, step| seed.wrapping_mul(31).wrapping_add(u64::from(*step) + 1));
    let children = if path.len() <= 8 { ChaCha8Rng::seed_from_u64(seed).random_range(0..=4) } else { 0 };
    (0..children).map(|child| [path, &[child]].concat()).collect()
}

/// Trees whose sub-trees differ much, with at least 20 tasks for each rank.
fn random_trees(world: &mut World) -> Result<()> {
    let sizes = 20 * u64::from(world.ranks())..1_500;
    let large = (0..=u8::MAX).filter(|seed| sizes.contains(&size(random, &[*seed])));
    large.take(6).try_for_each(|seed| everyone_works(world, random, vec![seed]))
}

fn size(children: fn(&[u8]) -> Vec<Vec<u8>>, root: &[u8]) -> u64 {
    1 + children(root).iter().map(|child| size(children, child)).sum::<u64>()
}

impl Computation for Sleepers {
    type Task = Vec<u8>;
    type Answer = u64;
    type Waiting = ();

    fn execute(&self, task: Vec<u8>, worker: &mut dyn Worker) -> Yield<Self> {
        worker.sleep(self.pause);
        match (self.children)(&task) {
            tasks if tasks.is_empty() => Yield::Answer(1),
            tasks => Yield::Children { tasks, waiting: () },
        }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(1 + answers.into_iter().sum::<u64>())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// Under `hierarchical` each rank is busy for at least half of the mean. Other jobs on the machine may spoil a run, not several.
fn everyone_works(world: &mut World, children: fn(&[u8]) -> Vec<Vec<u8>>, root: Vec<u8>) -> Result<()> {
    const ATTEMPTS: usize = 3;
    let tasks = size(children, &root);
    // A third of a second of work for each rank.
    let pause = 300_000_000 * u64::from(world.ranks()) / tasks;
    let mut told = String::new();
    for _ in 0..ATTEMPTS {
        let busy = busy_times(world, Sleepers { children, pause }, &root, tasks)?;
        let mean = busy.iter().sum::<Ticks>() / busy.len().max(1) as Ticks;
        let is_even = busy.iter().all(|busy| *busy >= mean / 2);
        told = format!("busy times {busy:?}");
        if settle::from_first(world, || Ok(is_even))? {
            return Ok(());
        }
    }
    Err(Error::Failed(told))
}

/// How long each rank was busy, on the first rank; empty elsewhere.
fn busy_times(world: &mut World, sleepers: Sleepers, root: &[u8], tasks: u64) -> Result<Vec<Ticks>> {
    let scheduler = schedule::find("hierarchical")?;
    let overlay = Overlay::new(scheduler.entry.default_topology(world.ranks()), world.hosts())?;
    let sleepers = Arc::new(sleepers);
    let outcomes = node::run(world, &overlay, |node| {
        let is_host = node.me() == node.overlay().placement.real_node_of(RankId::FIRST);
        let roots = if is_host { Roots::One(root.to_vec()) } else { Roots::Elsewhere };
        schedule::execute(node, sleepers.clone(), scheduler.clone(), roots, Options::default())
    })?;
    let Some((_, outcome)) = outcomes.into_iter().find(|(_, outcome)| !outcome.nodes.is_empty()) else { return Ok(Vec::new()) };
    if outcome.answer != Some(tasks) {
        return Err(Error::Failed(format!("{:?} tasks instead of {tasks}", outcome.answer)));
    }
    Ok(outcome.nodes.iter().filter(|node| !node.is_virtual).map(|node: &NodeReport| node.busy).collect())
}
