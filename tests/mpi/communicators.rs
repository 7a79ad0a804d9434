//! Worlds on communicators of a program that has initialised MPI itself, through the crate `mpi`.

use std::thread;
use std::time::Duration;

use equipoise::node::{self, Node};
use equipoise::transport::mpi::{self, rsmpi};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use rsmpi::topology::{Color, Communicator, SimpleCommunicator};
use rsmpi::traits::{Destination, Source};

use crate::launch::{Book, Outcome};
use crate::real::everywhere;
use crate::small_limits;

pub fn enter(book: &mut Book) {
    book.job("worlds on communicators of the caller's", 5, communicators, |outcome| outcome.expect(0, Duration::from_secs(40), &[]));
    book.job("MPI cannot be initialised twice", 2, twice, twice_judged);
}

fn on(comm: &SimpleCommunicator) -> World {
    World::on(comm, small_limits()).unwrap_or_else(|why| panic!("{why}"))
}

async fn sum_of_ranks(node: Node) -> Result<()> {
    let sum = node.everyone().all_reduce(&node, node.me(), |a, b| a + b).await?;
    if sum != node.nodes() * (node.nodes() - 1) / 2 {
        return Err(Error::Failed(format!("the sum is {sum}")));
    }
    Ok(())
}

fn sum_on(world: &mut World) {
    let overlay = everywhere(world).unwrap_or_else(|why| panic!("{why}"));
    node::run(world, &overlay, sum_of_ranks).unwrap_or_else(|why| panic!("{why}"));
}

/// A program with an MPI of its own: worlds one after the other, two at once, on parts; its own messages are left alone.
fn communicators() {
    let universe = rsmpi::initialize().expect("MPI can be initialised");
    let comm = universe.world();
    let (rank, ranks) = (comm.rank(), comm.size());
    // On its way while worlds come and go.
    comm.process_at_rank((rank + 1) % ranks).send(&rank);
    for _ in 0..3 {
        sum_on(&mut on(&comm));
    }
    let part = comm.split_by_color(Color::with_value(rank % 2)).expect("every rank has a colour");
    let (mut whole, mut half) = (on(&comm), on(&part));
    for _ in 0..3 {
        sum_on(&mut half);
        sum_on(&mut whole);
    }
    assert_eq!((half.ranks(), whole.ranks()), (part.size() as u32, ranks as u32));
    drop(half);
    drop(whole);
    let (heard, _) = comm.process_at_rank((rank + ranks - 1) % ranks).receive::<i32>();
    assert_eq!(heard, (rank + ranks - 1) % ranks);
    let wrong = thread::scope(|scope| scope.spawn(|| mpi::World::on(&SimpleCommunicator::world(), small_limits()).err()).join());
    assert!(wrong.is_ok_and(|error| error.is_some_and(|error| error.to_string().contains("thread"))));
}

fn twice() {
    let first = mpi::World::init(small_limits());
    assert!(first.is_ok());
    for _ in 0..2 {
        let second = mpi::World::init(small_limits());
        println!("{}", second.err().map_or_else(|| "no error".into(), |why| why.to_string()));
    }
    drop(first);
    println!("{}", mpi::World::init(small_limits()).err().map_or_else(|| "no error".into(), |why| why.to_string()));
    println!(
        "{}",
        mpi::World::on(&SimpleCommunicator::world(), small_limits()).err().map_or_else(|| "no error".into(), |why| why.to_string())
    );
}

fn twice_judged(outcome: &Outcome) -> Result<(), String> {
    outcome.expect(0, Duration::from_secs(30), &[])?;
    let (again, not) = ("MPI was initialised in this process before", "MPI is not initialised");
    let found = (outcome.stdout.matches(again).count(), outcome.stdout.matches(not).count());
    if found == (6, 2) { Ok(()) } else { Err(format!("{found:?} sentences instead of (6, 2)")) }
}
