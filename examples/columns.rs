//! Columns of chemistry whose costs differ by 1 to 50: lent, computed, brought home, every step. Prints the time per step with and without,
//! and what part that is of what a perfect balance would gain: every rank computing for the mean of what all compute alone.
//!
//! `mpirun -n 8 cargo run --release --example columns`; the same in C, Fortran and Python is in `examples/columns`.

use std::thread;
use std::time::{Duration, Instant};

use equipoise::guest::{Failure, World};
use equipoise::transport::mpi::rsmpi;
use rsmpi::collective::SystemOperation;
use rsmpi::traits::{Communicator, CommunicatorCollectives};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Column {
    cost: f64,
    levels: Vec<f64>,
}

fn chemistry(column: &Column) -> Vec<f64> {
    thread::sleep(Duration::from_micros((100.0 * column.cost) as u64));
    column.levels.iter().map(|level| level * column.cost).collect()
}

fn main() -> Result<(), Failure> {
    const COLUMNS: usize = 16;
    let steps: i32 = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(5);
    let universe = rsmpi::initialize().expect("MPI can be initialised once");
    let all = universe.world();
    let (rank, ranks) = (all.rank(), all.size());
    let world = World::with_options(&all, "balancer=refine")?;
    let (mut seconds, mut computing) = ([0.0; 2], 0.0);
    for lends in [0, 1] {
        for step in 0..steps {
            // Day on some ranks, night on others; the sun moves.
            let cost = 1.0 + 49.0 * f64::from((rank + step) % ranks) / f64::from((ranks - 1).max(1));
            let column = |at| Column { cost, levels: (0..4).map(|level| f64::from(rank * 1000 + at + level)).collect() };
            let columns: Vec<Column> = (0..COLUMNS as i32).map(column).collect();
            let expected: Vec<Vec<f64>> = columns.iter().map(|column| column.levels.iter().map(|level| level * cost).collect()).collect();
            all.barrier();
            let began = Instant::now();
            let home: Vec<Vec<f64>> = if lends == 1 {
                let plan = world.plan(&[cost; COLUMNS])?;
                let there = plan.move_vec(columns)?;
                plan.give_back(there.iter().map(chemistry).collect())?
            } else {
                let home = columns.iter().map(chemistry).collect();
                computing += began.elapsed().as_secs_f64();
                home
            };
            all.barrier();
            seconds[lends] += began.elapsed().as_secs_f64();
            assert_eq!(home, expected);
        }
    }
    let mut total = 0.0;
    all.all_reduce_into(&computing, &mut total, SystemOperation::sum());
    if rank == 0 {
        let gained = (seconds[0] - seconds[1]) / (seconds[0] - total / f64::from(ranks));
        let [alone, lent] = seconds.map(|seconds| 1e3 * seconds / f64::from(steps));
        let gained = if ranks > 1 { format!("; {gained:.2} of the gain of a perfect balance") } else { String::new() };
        println!("{alone:.2} ms per step, lent {lent:.2} ms{gained}");
    }
    world.close()
}
