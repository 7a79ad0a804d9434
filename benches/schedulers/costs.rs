//! Costs of one spawn, one migration and one answer, each by itself: runs that differ in just that.

use std::sync::Arc;

use equipoise::node;
use equipoise::schedule::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use equipoise::schedule::{Chosen, Entry, Facts, Options, Scheduler};
use equipoise::topology::Kind;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use rand::rngs::ChaCha8Rng;

use super::empty::Empty;
use super::{Contender, complete, executed, in_turn, median, told};

/// A policy that sends every new task to the next node, or keeps it.
struct Neighbourly {
    away: bool,
}

impl Scheduler for Neighbourly {
    fn policy(&self, place: Place, _: ChaCha8Rng) -> Result<Box<dyn AnyPolicy>> {
        let next = (place.me + 1) % place.real_nodes();
        Ok(erase(Mover { place, next, away: self.away }))
    }
}

struct Mover {
    place: Place,
    next: u32,
    away: bool,
}

impl Policy for Mover {
    type Message = ();

    fn on_new(&mut self, items: &[New], origin: Origin, _: &View, act: &mut Actions<()>) {
        let stays = !self.away || self.next == self.place.me || !matches!(origin, Origin::Spawned | Origin::Joined { .. });
        for new in items {
            if stays { act.queue(new.item) } else { act.migrate(new.item, self.next) }
        }
    }
}

static ENTRY: Entry = Entry {
    name: "mover",
    title: "every new task stays, or moves to the next rank",
    source: "this benchmark",
    options: "",
    examples: &[],
    build: |_| Ok(Arc::new(Neighbourly { away: true })),
    facts: Facts { kinds: &[Kind::Complete] },
};

/// A run: a tree of batches, whether its tasks stay or move, and whether parents wait.
#[derive(Clone, Copy)]
struct Run {
    batch: u32,
    levels: u32,
    away: bool,
    waits: bool,
}

/// Tasks in a batch.
const BATCH: u32 = 100;

const RUNS: [Run; 8] = [
    in_batches(false, false),
    in_batches(false, true),
    in_batches(true, false),
    in_batches(true, true),
    one_by_one(false, false),
    one_by_one(false, true),
    one_by_one(true, false),
    one_by_one(true, true),
];

const fn in_batches(away: bool, waits: bool) -> Run {
    Run { batch: BATCH, levels: 2, away, waits }
}

/// A chain, each of whose tasks spawns the next: batches of one. One that moves takes longer.
const fn one_by_one(away: bool, waits: bool) -> Run {
    Run { batch: 1, levels: if away { 20_000 } else { 200_000 }, away, waits }
}

pub fn measure(world: &mut World, rounds: usize) -> Result<()> {
    let ranks = world.ranks();
    let overlay = complete(world)?;
    let movers = [false, true].map(|away| {
        let scheduler = Chosen { name: ENTRY.name.into(), entry: &ENTRY, made: Arc::new(Neighbourly { away }) };
        Contender { scheduler, overlay: overlay.clone() }
    });
    let mut taken: Vec<Vec<f64>> = vec![Vec::new(); RUNS.len()];
    for round in 0..rounds {
        for turn in in_turn(RUNS.len(), round) {
            taken[turn].extend(once(world, &movers, RUNS[turn])?);
        }
    }
    if !world.is_first() {
        return Ok(());
    }
    println!("\n### What one task costs on {ranks} ranks, {rounds} rounds\n");
    println!("| | in batches of {BATCH}, us | 95 % | one after the other, us | 95 % |\n|---|--:|--:|--:|--:|");
    let more = |run: usize, less: usize| -> Vec<f64> { taken[run].iter().zip(&taken[less]).map(|(a, b)| a - b).collect() };
    for (name, batches, chain) in [
        ("a spawn: born, queued, executed", taken[0].clone(), taken[4].clone()),
        ("its answer to a parent on the same rank", more(1, 0), more(5, 4)),
        ("its migration", more(2, 0), more(6, 4)),
        ("its answer to a parent on another rank", more(3, 2), more(7, 6)),
    ] {
        println!("| {name} | {} | {} |", told(&median(&batches)?, 3), told(&median(&chain)?, 3));
    }
    Ok(())
}

/// Microseconds that a task took, where the host is.
fn once(world: &mut World, movers: &[Contender; 2], run: Run) -> Result<Option<f64>> {
    let mover = &movers[usize::from(run.away)];
    let computation = Arc::new(Empty { batch: run.batch, waits: run.waits });
    let results = node::run(world, &mover.overlay, |node| {
        executed(node, computation.clone(), mover.scheduler.clone(), run.levels, Options::default())
    })?;
    match results.into_iter().find_map(|(_, result)| result) {
        Some((0, _)) => Err(Error::wrong_result("no task was executed")),
        Some((tasks, seconds)) => Ok(Some(seconds * 1e6 / tasks as f64)),
        None => Ok(None),
    }
}
