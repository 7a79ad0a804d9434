//! What one spawn, one migration and one answer cost, each by itself: runs that differ in just that.

use std::sync::Arc;

use equipoise::node::{self, Worker};
use equipoise::schedule::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use equipoise::schedule::{Chosen, Computation, Entry, Options, Scheduler, Style, Yield};
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
    kinds: &[Kind::Complete],
    options: "",
    build: |settings| settings.none().map(|()| Arc::new(Neighbourly { away: true }) as Arc<dyn Scheduler>),
};

/// A chain of tasks, each of which spawns the next.
struct Chain {
    waits: bool,
}

impl Computation for Chain {
    type Task = u32;
    type Answer = u64;
    type Waiting = ();
    const STYLE: Style = Style::Inline;

    fn execute(&self, left: u32, _: &mut dyn Worker) -> Yield<Self> {
        match left {
            0 => Yield::Answer(1),
            _ if self.waits => Yield::Children { tasks: vec![left - 1], waiting: () },
            _ => Yield::Detached { tasks: vec![left - 1], answer: 1 },
        }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(1 + answers.into_iter().sum::<u64>())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// What is run: whether tasks stay or move, and whether parents wait.
#[derive(Clone, Copy)]
enum Run {
    /// Batches of 100 in a tree.
    Batches { away: bool, waits: bool },
    /// One after the other.
    One { away: bool, waits: bool },
}

const RUNS: [Run; 8] = [
    Run::Batches { away: false, waits: false },
    Run::Batches { away: false, waits: true },
    Run::Batches { away: true, waits: false },
    Run::Batches { away: true, waits: true },
    Run::One { away: false, waits: false },
    Run::One { away: false, waits: true },
    Run::One { away: true, waits: false },
    Run::One { away: true, waits: true },
];

/// Tasks in a batch, and levels of the tree of batches.
const BATCH: (u32, u32) = (100, 2);
/// Tasks of a chain that stays, and of one that moves.
const CHAIN: (u32, u32) = (200_000, 20_000);

pub fn measure(world: &mut World, rounds: usize) -> Result<()> {
    let ranks = world.ranks();
    let overlay = complete(world)?;
    let movers = [false, true].map(|away| {
        let scheduler = Chosen { name: ENTRY.name.into(), entry: &ENTRY, scheduler: Arc::new(Neighbourly { away }) };
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
    println!("| | in batches of {}, us | 95 % | one after the other, us | 95 % |\n|---|--:|--:|--:|--:|", BATCH.0);
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
    let (Run::Batches { away, waits } | Run::One { away, waits }) = run;
    let mover = &movers[usize::from(away)];
    let (batch, length) = (BATCH, if away { CHAIN.1 } else { CHAIN.0 });
    let results = node::run(world, &mover.overlay, |node| {
        let scheduler = mover.scheduler.clone();
        async move {
            match run {
                Run::Batches { .. } => {
                    executed(node, Arc::new(Empty { batch: batch.0, waits }), scheduler, batch.1, Options::default()).await
                }
                Run::One { .. } => executed(node, Arc::new(Chain { waits }), scheduler, length, Options::default()).await,
            }
        }
    })?;
    match results.into_iter().find_map(|(_, result)| result) {
        Some((0, _)) => Err(Error::Lost("no task was executed".into())),
        Some((tasks, seconds)) => Ok(Some(seconds * 1e6 / tasks as f64)),
        None => Ok(None),
    }
}
