//! The library in a program that has MPI, and much else, for itself: it waits for whoever computes, ends nobody's job, and leaves nothing.

use std::fs;
use std::panic;
use std::time::{Duration, Instant};

use equipoise::balance_vec;
use equipoise::guest::Status;
use equipoise::node::{self, Tag};
use equipoise::topology::RankId;
use equipoise::transport::mpi::{self, Options, Watch, rsmpi};
use equipoise::transport::world::World;
use rsmpi::environment::Universe;
use rsmpi::topology::{Communicator, SimpleCommunicator};
use rsmpi::traits::CommunicatorCollectives;

use crate::launch::{Book, Outcome};
use crate::real::everywhere;

const WORD: Tag = Tag::new(1, "word");
const SOON: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

pub fn enter(book: &mut Book) {
    let fine: fn(&Outcome) -> Result<(), String> = |outcome| outcome.expect(0, SOON, &[("equipoise", 0), ("panicked", 0)]);
    book.waiting_job("2 ranks wait for one that computes between two calls", 2, straggler, fine);
    book.waiting_job("3 ranks wait for one that computes between two calls", 3, straggler, fine);
    book.waiting_job("8 ranks wait for one that computes between two calls", 8, straggler, fine);
    book.waiting_job("ranks that wait for each other in a run are found where that was asked for", 3, deadlock, |outcome| {
        outcome.expect(3, SOON, &[("equipoise: no progress for 1 s: all 3 ranks wait for each other\n", 1)])
    });
    book.job("two thousand worlds leave no thread", 1, || many_worlds(2000), fine);
    book.job("worlds on several ranks leave no thread", 3, || many_worlds(200), fine);
    book.job("ranks that name different balancers are told, and go on", 3, different_balancers, fine);
    book.job("a guest changes nothing in its process", 2, untouched, |outcome| {
        outcome.expect(0, SOON, &[("this is caught", 2), ("panicked", 2), ("equipoise:", 0)])
    });
    book.job("a panic of a guest's rank hangs nobody", 3, panicking, |outcome| {
        // Open MPI ends the others of a rank that goes without finalising.
        match outcome.status {
            Some(status) if status != 0 && outcome.took < SOON && outcome.stderr.contains("this is not caught") => Ok(()),
            _ => Err("it should end soon, and not with status 0".into()),
        }
    });
}

fn begin() -> (Universe, SimpleCommunicator) {
    let universe = rsmpi::initialize().expect("MPI can be initialised");
    let comm = universe.world();
    (universe, comm)
}

fn on(comm: &SimpleCommunicator, options: Options) -> World {
    World::on(comm, options).unwrap_or_else(|why| panic!("{why}"))
}

/// Balances 20 tasks of the first rank.
fn balanced(world: &mut World, comm: &SimpleCommunicator) {
    let tasks: Vec<u32> = if comm.rank() == 0 { (0..20).collect() } else { Vec::new() };
    let mine = balance_vec(world, "direct", tasks).unwrap_or_else(|why| panic!("{why}"));
    let ranks = comm.size() as usize;
    assert!((20 / ranks..=20_usize.div_ceil(ranks)).contains(&mine.len()), "{} tasks", mine.len());
}

/// Each rank in its turn computes for longer than any watchdog waits, while the others are in the next call, or at the end of the world.
fn straggler() {
    let (_universe, comm) = begin();
    let late = |rank: i32| {
        if comm.rank() == rank {
            std::thread::sleep(4 * SECOND);
        }
    };
    for watchdog in [Watch::Runs(SECOND), Watch::Off] {
        let mut world = on(&comm, Options::default().with_watchdog(watchdog));
        let begin = Instant::now();
        balanced(&mut world, &comm);
        late(0);
        balanced(&mut world, &comm);
        assert!(begin.elapsed() > 3 * SECOND, "nobody waited");
        if watchdog != Watch::Off {
            late(comm.size() - 1);
        }
    }
}

fn deadlock() {
    let (_universe, comm) = begin();
    let mut world = on(&comm, Options::default().with_watchdog(Watch::Runs(SECOND)));
    let overlay = everywhere(&world).unwrap_or_else(|why| panic!("{why}"));
    let done = node::run(&mut world, &overlay, |node| async move {
        let next = (node.me() + 1) % node.nodes();
        node.receive::<()>(next, WORD).await
    });
    panic!("nobody noticed: {done:?}");
}

fn threads() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the system tells of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).expect("a number of threads");
    line.trim().parse().expect("a number")
}

/// A world for each step, as a program may have it, with a watchdog and work on threads.
fn many_worlds(worlds: usize) {
    let (_universe, comm) = begin();
    let before = threads();
    let mut most = 0;
    for _ in 0..worlds {
        let mut world = on(&comm, Options::default().with_watchdog(Watch::Runs(3600 * SECOND)));
        let overlay = everywhere(&world).unwrap_or_else(|why| panic!("{why}"));
        let done = node::run(&mut world, &overlay, |node| async move {
            node.start(|worker| worker.spin(1000));
            node.next_event().await;
            Ok(())
        });
        done.unwrap_or_else(|why| panic!("{why}"));
        drop(world);
        // What is joined has ended; the system may show it a moment longer.
        most = most.max(threads());
    }
    assert!(most <= before + 4, "{most} threads after a world, {before} before all");
}

fn different_balancers() {
    let (_universe, comm) = begin();
    let mut world = on(&comm, Options::default());
    for (usual, of_rank_1, sentence) in [
        ("direct", "cwa", "rank 1 balances with 'cwa', rank 0 with 'direct'; all ranks must name the same balancer"),
        ("direct", "dirct", "rank 1 balances with 'dirct', rank 0 with 'direct'; all ranks must name the same balancer"),
        ("dirct", "dirct", "balancer 'dirct' is unknown"),
    ] {
        let balancer = if comm.rank() == 1 { of_rank_1 } else { usual };
        match balance_vec(&mut world, balancer, vec![comm.rank()]) {
            Err(why) if why.failure.status == Status::Usage && why.failure.text.starts_with(sentence) && why.values == [comm.rank()] => {}
            other => panic!("{other:?} instead of '{sentence}'"),
        }
        balanced(&mut world, &comm);
    }
}

/// Signals that are caught, as the system tells.
fn caught() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the system tells of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a set of signals");
    u64::from_str_radix(line.trim(), 16).expect("a set")
}

fn untouched() {
    let (_universe, comm) = begin();
    let (signals, running) = (caught(), threads());
    let mut world = on(&comm, Options::default());
    assert_eq!((caught(), threads()), (signals, running));
    balanced(&mut world, &comm);
    // The caller's own panics are the caller's.
    assert!(panic::catch_unwind(|| panic!("this is caught")).is_err());
    comm.barrier();
    balanced(&mut world, &comm);
    drop(world);
    assert_eq!((caught(), threads()), (signals, running));
}

fn panicking() {
    let world = mpi::World::init(Options::default()).unwrap_or_else(|why| panic!("{why}"));
    assert_ne!(world.rank(), RankId::new(1), "this is not caught");
    let mut world = World::from(world);
    let _ = balance_vec(&mut world, "direct", vec![1u8; 10]);
    panic!("rank 1 was not there");
}
