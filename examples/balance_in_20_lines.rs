//! An MPI program that balances its own tasks through the library: `mpirun -n 4 target/debug/examples/balance_in_20_lines`.
//!
//! It initialises MPI itself and goes on using its own communicator; the library works on a duplicate of it.

#[cfg(feature = "mpi")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use equipoise::transport::mpi::{self, rsmpi};
    use equipoise::{balance_vec, transport::world::World};
    use rsmpi::traits::{Communicator, CommunicatorCollectives};

    /// Anything that serialises can be a task.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Block {
        name: String,
        cells: Vec<f64>,
    }

    let universe = rsmpi::initialize().ok_or("MPI was initialised before")?;
    let comm = universe.world();
    let mut world = World::on(&comm, mpi::Options::default())?;

    // Rank r begins with r * r blocks.
    let block = |i: i32| Block { name: format!("{}.{i}", comm.rank()), cells: vec![0.5; 1000] };
    let mine: Vec<Block> = (0..comm.rank() * comm.rank()).map(block).collect();
    let before = mine.len();
    let mine = balance_vec(&mut world, "direct", mine)?;

    let foreign = mine.iter().filter(|block| !block.name.starts_with(&format!("{}.", comm.rank()))).count();
    let sum: f64 = mine.iter().flat_map(|block| &block.cells).sum();
    println!(
        "rank {}: {before} blocks before, {} after, {foreign} of them from other ranks; their cells sum to {sum}",
        comm.rank(),
        mine.len()
    );
    comm.barrier();
    Ok(())
}

#[cfg(not(feature = "mpi"))]
fn main() {
    println!("this example needs real ranks: build it with the feature `mpi`");
}
