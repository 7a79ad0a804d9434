//! A scheduler defined by the user, run and checked through the library: `cargo run --example your_own_scheduler` on 64 simulated ranks,
//! `mpirun -n 4 target/debug/examples/your_own_scheduler` on real ones.
//!
//! *Two choices* (Mitzenmacher 2001): of two random ranks a new task goes to the one that was last heard to have less to do.

use std::sync::Arc;

use equipoise::schedule::policy::{Actions, AnyPolicy, New, Origin, Place, Policy, View, erase};
use equipoise::schedule::{self, Chosen, Entry, Facts, Scheduler};
use equipoise::topology::{Kind, NodeId, Overlay};
use equipoise::transport::{mpi, sim, world::World};
use equipoise_lab::experiment::run::{self, RunSpec, SchedulerContender};
use equipoise_lab::workload::graphs;
use rand::rngs::ChaCha8Rng;

struct TwoChoices;

impl Scheduler for TwoChoices {
    fn policy(&self, place: Place, rng: ChaCha8Rng) -> equipoise::Result<Box<dyn AnyPolicy>> {
        let last_heard = vec![0; place.overlay.topology.nodes() as usize];
        Ok(erase(Chooser { place, rng, last_heard }))
    }
}

struct Chooser {
    place: Place,
    rng: ChaCha8Rng,
    last_heard: Vec<u32>,
}

impl Policy for Chooser {
    type Message = u32;

    fn on_new(&mut self, items: &[New], origin: Origin, view: &View, act: &mut Actions<u32>) {
        if let Origin::Migrated { from } = origin {
            items.iter().for_each(|new| act.queue(new.item));
            return act.tell(from, view.load() + items.len() as u32);
        }
        self.last_heard[self.place.me as usize] = view.load();
        for new in items {
            let [a, b] = [(); 2].map(|()| self.place.any_real(&mut self.rng));
            let to = if self.last_heard[a as usize] <= self.last_heard[b as usize] { a } else { b };
            self.last_heard[to as usize] += 1;
            act.migrate(new.item, to);
        }
    }

    fn on_message(&mut self, from: NodeId, load: u32, _: &View, _: &mut Actions<u32>) {
        self.last_heard[from as usize] = load;
    }
}

static ENTRY: Entry = Entry {
    name: "two-choices",
    title: "the better of two random ranks",
    source: "this example",
    options: "",
    examples: &["two-choices"],
    build: |_| Ok(Arc::new(TwoChoices)),
    facts: Facts { kinds: &[Kind::Complete] },
};

fn main() -> equipoise::Result<()> {
    let mut world = match mpi::World::launched(mpi::Options::program())? {
        Some(world) => World::from(world),
        None => World::simulated(64, sim::Model::default()),
    };
    let mine = Chosen { name: ENTRY.name.into(), entry: &ENTRY, made: Arc::new(TwoChoices) };
    let mut contenders = Vec::new();
    for scheduler in [mine, schedule::find("random")?, schedule::find("steal")?] {
        let topology = scheduler.entry.default_topology(world.ranks());
        contenders.push(SchedulerContender::new(scheduler, Overlay::new(topology, world.hosts())?)?);
    }
    let workload = graphs::find("tree:levels=8,children=4,time=4s")?;
    let spec = RunSpec { contenders, workload, workers: 1, repeat: None, seed: 1, trace: false };
    // A wrong answer or a lost task is an error.
    let records = run::run(&mut world, &spec, |_, _, _| {})?;
    print!("{}", equipoise_lab::report::run::compare(&records, 100));
    Ok(())
}
