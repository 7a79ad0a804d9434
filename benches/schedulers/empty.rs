//! Empty tasks, spawned in batches: how many a second all ranks together spawn, execute and answer.

use std::sync::Arc;

use equipoise::node::{self, Worker};
use equipoise::schedule::{Computation, Options, Style, Yield};
use equipoise::transport::world::World;
use equipoise::{Error, Result};

use super::{Contender, executed, in_turn, median, told};

/// A tree of tasks that do nothing: each above the lowest level spawns a batch.
pub struct Empty {
    pub batch: u32,
    /// Whether a parent waits for the answers of its children.
    pub waits: bool,
}

impl Computation for Empty {
    /// Levels below it.
    type Task = u32;
    /// Tasks.
    type Answer = u64;
    type Waiting = ();
    const STYLE: Style = Style::Inline;

    fn execute(&self, levels: u32, _: &mut dyn Worker) -> Yield<Self> {
        if levels == 0 {
            return Yield::Answer(1);
        }
        let tasks = vec![levels - 1; self.batch as usize];
        if self.waits { Yield::Children { tasks, waiting: () } } else { Yield::Detached { tasks, answer: 1 } }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(1 + answers.into_iter().sum::<u64>())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// Batch and levels: a million to two million tasks each.
const TREES: [(u32, u32); 3] = [(2, 20), (16, 5), (100, 3)];

pub fn measure(world: &mut World, rounds: usize, contenders: &[Contender]) -> Result<()> {
    if world.is_first() {
        println!("\n### Empty tasks on {} ranks, {rounds} rounds\n", world.ranks());
        println!("| tasks in a batch | answers | scheduler | millions a second | 95 % |\n|--:|---|---|--:|--:|");
    }
    for (batch, levels) in TREES {
        for waits in [true, false] {
            let computation = Arc::new(Empty { batch, waits });
            let mut rates = vec![Vec::new(); contenders.len()];
            for round in 0..rounds {
                for turn in in_turn(contenders.len(), round) {
                    rates[turn].extend(once(world, &contenders[turn], &computation, levels)?);
                }
            }
            if !world.is_first() {
                continue;
            }
            for (contender, rates) in contenders.iter().zip(&rates) {
                let answers = if waits { "to a parent" } else { "nobody waits" };
                println!("| {batch} | {answers} | {} | {} |", contender.scheduler.name, told(&median(rates)?, 2));
            }
        }
    }
    Ok(())
}

/// Millions of tasks a second, where the host is.
fn once(world: &mut World, contender: &Contender, computation: &Arc<Empty>, levels: u32) -> Result<Option<f64>> {
    let batch = u64::from(computation.batch);
    let expected: u64 = (0..=levels).map(|level| batch.pow(level)).sum();
    let results = node::run(world, &contender.overlay, |node| {
        executed(node, computation.clone(), contender.scheduler.clone(), levels, Options::default())
    })?;
    match results.into_iter().find_map(|(_, result)| result) {
        Some((tasks, _)) if tasks != expected => Err(Error::wrong_result(format!("{tasks} of {expected} tasks were executed"))),
        Some((tasks, seconds)) => Ok(Some(tasks as f64 / seconds / 1e6)),
        None => Ok(None),
    }
}
