//! A computation defined by the user: the integral of a function with a pole nearby, by halving intervals until they are short enough.
//!
//! `cargo run --example divide_and_conquer` on 16 simulated ranks, `mpirun -n 4 target/debug/examples/divide_and_conquer` on real ones; an
//! argument chooses the scheduler.

use std::sync::Arc;

use equipoise::node::{self, Worker};
use equipoise::schedule::{self, Computation, Roots, Summary, Yield};
use equipoise::topology::Overlay;
use equipoise::transport::{mpi, sim, world::World};

struct Integral;

impl Computation for Integral {
    type Task = (f64, f64);
    type Answer = f64;
    type Waiting = ();

    fn execute(&self, (from, to): (f64, f64), worker: &mut dyn Worker) -> Yield<Self> {
        let simpson = |a: f64, b: f64| (b - a) / 6.0 * (f(a) + 4.0 * f((a + b) / 2.0) + f(b));
        let middle = (from + to) / 2.0;
        let (rough, fine) = (simpson(from, to), simpson(from, middle) + simpson(middle, to));
        worker.spin(200_000);
        match (fine - rough).abs() < 1e-12 {
            true => Yield::Answer(fine),
            false => Yield::Children { tasks: vec![(from, middle), (middle, to)], waiting: () },
        }
    }

    fn join(&self, (): (), halves: Vec<f64>) -> Yield<Self> {
        Yield::Answer(halves.iter().sum())
    }

    fn combine(&self, into: f64, more: f64) -> f64 {
        into + more
    }
}

fn f(x: f64) -> f64 {
    1.0 / (1e-4 + (x - 0.3).powi(2))
}

fn main() -> equipoise::Result<()> {
    let scheduler = schedule::find(&std::env::args().nth(1).unwrap_or_else(|| "hierarchical".into()))?;
    let mut world = match mpi::World::launched(mpi::Options::program())? {
        Some(world) => World::from(world),
        None => World::simulated(16, sim::Model::default()),
    };
    let overlay = Overlay::one_host(scheduler.entry.default_topology(world.ranks()), world.ranks())?;
    let outcomes = node::run(&mut world, &overlay, |node| {
        let roots = if node.me() == 0 { Roots::One((0.0, 1.0)) } else { Roots::Elsewhere };
        schedule::execute(node, Arc::new(Integral), scheduler.clone(), roots, schedule::Options::default())
    })?;
    if let Some((0, outcome)) = outcomes.first() {
        println!("{:.9}: {:#?}", outcome.answer.unwrap_or_default(), Summary::of(&outcome.nodes, outcome.makespan));
    }
    Ok(())
}
