//! Jobs that go wrong: each must end in seconds, with its status, and a sentence that says what happened.

use std::time::{Duration, Instant};

use equipoise::node::{self, Event, Node, Tag};
use equipoise::topology::RankId;
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::settle;
use rustix::process::{Signal, getpid, kill_process};

use crate::launch::{Book, Outcome};
use crate::real::everywhere;

const WORD: Tag = Tag::new(1, "word");
const NEWS: Tag = Tag::background(2, "news");
const SOON: Duration = Duration::from_secs(10);

pub fn enter(book: &mut Book) {
    book.waiting_job(
        "a panic on one rank ends the job",
        3,
        || run(panic_on_a_rank),
        |outcome| outcome.expect(101, SOON, &[("panicked at", 1), ("rank 1 has had enough", 1)]),
    );
    book.waiting_job(
        "a panic on a worker thread ends the job",
        3,
        || run(panic_on_a_worker),
        |outcome| outcome.expect(101, SOON, &[("panicked at", 1), ("this work is too much", 1)]),
    );
    book.waiting_job(
        "a panic on a worker ends the job while its rank computes",
        2,
        || run(panic_beside),
        |outcome| outcome.expect(101, SOON, &[]),
    );
    book.waiting_job("a panic between runs ends the job", 2, panic_between, |outcome| outcome.expect(101, SOON, &[("panicked at", 1)]));
    book.waiting_job(
        "a killed rank ends the job",
        3,
        || run(killed),
        |outcome| {
            match outcome.status {
                // Open MPI 4.1 gives 137, 128 and the signal's number.
                Some(status) if status != 0 && outcome.took < SOON => Ok(()),
                _ => Err("it should end soon, with the launcher's status, which is not 0".into()),
            }
        },
    );
    book.waiting_job(
        "a program's error ends the job with its status",
        3,
        || run(failing),
        |outcome| outcome.expect(1, SOON, &[("equipoise: rank 2: this task is broken\n", 1)]),
    );
    book.waiting_job(
        "an error that all ranks have is said once",
        8,
        || run(all_failing),
        |outcome| outcome.expect(2, SOON, &[("equipoise: rank 0: --loads: too many", 1), ("too many", 1)]),
    );
    book.waiting_job(
        "a rank that never answers is found",
        4,
        || run(looping),
        |outcome| {
            outcome.expect(
                3,
                SOON,
                &[
                    ("equipoise: no progress for 2 s: rank 2 does not answer, and the other ranks wait\n", 1),
                    ("node 3 waits for a message 'word' from node 2 (run 1, epoch 0)", 1),
                ],
            )
        },
    );
    book.waiting_job(
        "rank 0 that never answers is found",
        4,
        || run(looping_0),
        |outcome| outcome.expect(3, SOON, &[("equipoise: no progress for 2 s: rank 0 does not answer, and the other ranks wait\n", 1)]),
    );
    book.waiting_job(
        "ranks that all never answer are found",
        2,
        || run(all_looping),
        |outcome| outcome.expect(3, SOON, &[("computes without ever waiting", 1)]),
    );
    book.waiting_job(
        "a rank that was stopped is found",
        3,
        || run(stopped),
        |outcome| outcome.expect(3, SOON, &[("equipoise: no progress for 2 s: rank 0 does not answer, and the other ranks wait\n", 1)]),
    );
    book.waiting_job(
        "ranks that wait for each other say so",
        3,
        || run(deadlock),
        |outcome| {
            outcome.expect(
                3,
                SOON,
                &[
                    ("equipoise: no progress for 2 s: all 3 ranks wait for each other\n", 1),
                    ("has made no progress for", 3),
                    ("node 0 waits for a message 'word' from node 1 (run 1, epoch 0)", 1),
                    ("node 1 waits for a message 'word' from node 0 (run 1, epoch 0)", 1),
                    ("it waits for the other ranks to end the run", 1),
                ],
            )
        },
    );
    book.waiting_job(
        "news and timers are no progress",
        2,
        || run(gossip),
        |outcome| outcome.expect(3, SOON, &[("equipoise: no progress for 2 s: all 2 ranks wait for each other\n", 1)]),
    );
    book.waiting_job(
        "one rank alone that waits says so",
        1,
        || run(alone),
        |outcome| outcome.expect(3, SOON, &[("equipoise: no progress for 2 s: its only rank waits for what never comes\n", 1)]),
    );
    book.waiting_job("work, progress that is told, and slow partners keep the watchdog quiet", 3, || run(slow), slow_judged);
    book.waiting_job("what is known to happen later keeps the watchdog quiet", 2, || run(expecting), slow_judged);
    book.waiting_job("a plain program on the first rank keeps the watchdog quiet", 3, plain_program, slow_judged);
}

/// Runs a program on every rank of a world whose watchdog waits 2 seconds.
fn run<F: Future<Output = Result<()>> + 'static>(program: fn(Node) -> F) {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(2)));
    let mut world = World::init(options).unwrap_or_else(|why| panic!("{why}"));
    let overlay = everywhere(&world).unwrap_or_else(|why| panic!("{why}"));
    let done = node::run(&mut world, &overlay, program).unwrap_or_else(|why| panic!("{why}"));
    println!("ended: {}", done.len());
}

/// Waits for a word that never comes.
async fn wait_for(node: &Node, from: u32) -> Result<()> {
    node.receive::<()>(from, WORD).await
}

async fn panic_on_a_rank(node: Node) -> Result<()> {
    if node.me() == 1 {
        panic!("rank 1 has had enough");
    }
    wait_for(&node, 1).await
}

async fn panic_on_a_worker(node: Node) -> Result<()> {
    if node.me() == 1 {
        node.start(|worker| {
            worker.sleep(10_000_000);
            if worker_is_tired() {
                panic!("this work is too much");
            }
        });
    }
    wait_for(&node, 0).await
}

fn worker_is_tired() -> bool {
    true
}

async fn panic_beside(node: Node) -> Result<()> {
    node.start(|worker| {
        worker.sleep(50_000_000);
        if worker_is_tired() {
            panic!("this work is too much");
        }
    });
    compute_for_ever(&node)
}

fn panic_between() {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(2)));
    let world = mpi::World::init(options).unwrap_or_else(|why| panic!("{why}"));
    assert_ne!(world.rank(), RankId::new(1), "rank 1 has had enough");
}

async fn killed(node: Node) -> Result<()> {
    if node.me() == 1 {
        send_to_self(Signal::KILL);
    }
    wait_for(&node, 1).await
}

async fn failing(node: Node) -> Result<()> {
    if node.me() == 2 {
        return Err(Error::wrong_result("this task is broken"));
    }
    wait_for(&node, 2).await
}

async fn all_failing(node: Node) -> Result<()> {
    let mine = if node.me() == 3 { Err(Error::usage("--loads: too many")) } else { Ok(()) };
    node.everyone().agree(&node, mine).await
}

fn compute_for_ever(node: &Node) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(100) {
        std::hint::black_box(node.me());
    }
    Ok(())
}

async fn looping(node: Node) -> Result<()> {
    if node.me() == 2 {
        return compute_for_ever(&node);
    }
    wait_for(&node, 2).await
}

async fn all_looping(node: Node) -> Result<()> {
    compute_for_ever(&node)
}

async fn looping_0(node: Node) -> Result<()> {
    if node.me() == 0 {
        return compute_for_ever(&node);
    }
    wait_for(&node, 0).await
}

async fn stopped(node: Node) -> Result<()> {
    node.everyone().barrier(&node).await?;
    if node.me() == 0 {
        send_to_self(Signal::STOP);
    }
    wait_for(&node, 0).await
}

async fn deadlock(node: Node) -> Result<()> {
    match node.me() {
        2 => Ok(()),
        me => wait_for(&node, 1 - me).await,
    }
}

/// Both keep announcing that they have nothing.
async fn gossip(node: Node) -> Result<()> {
    loop {
        node.send(1 - node.me(), NEWS, &());
        node.set_timer(node.now() + 20_000_000);
        node.next_event().await;
        node.next_event().await;
    }
}

async fn alone(node: Node) -> Result<()> {
    wait_for(&node, 0).await
}

/// Longer than the watchdog's limit, but never stuck.
async fn slow(node: Node) -> Result<()> {
    const LONG: u64 = 3_500_000_000;
    match node.me() {
        0 => {
            // One piece of work that takes longer than the limit.
            let here = node.epoch(1);
            here.start(|worker| worker.sleep(LONG));
            here.next_event().await;
        }
        1 => {
            // Progress that only the program sees.
            let here = node.epoch(1);
            let end = here.now() + LONG;
            while here.now() < end {
                here.set_timer(here.now() + 500_000_000);
                here.next_event().await;
                here.progressed();
            }
        }
        _ => {}
    }
    // Rank 2 waits all the time.
    node.everyone().barrier(&node).await
}

/// Waits for something that happens by itself, such as a task's arrival.
async fn expecting(node: Node) -> Result<()> {
    if node.me() == 1 {
        let here = node.epoch(1);
        let timer = here.expect_at(here.now() + 4_500_000_000);
        while !matches!(here.next_event().await, Event::Timer { timer: ended, .. } if ended == timer) {}
    }
    node.everyone().barrier(&node).await
}

/// A workload's plain program as the other ranks see it: nothing else happens for longer than the watchdog waits, its grace included.
fn plain_program() {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(2)));
    let mut world = World::init(options).unwrap_or_else(|why| panic!("{why}"));
    let slow = || {
        std::thread::sleep(Duration::from_millis(4_500));
        Ok(7u64)
    };
    let answer = settle::worked_out_by_first(&mut world, slow).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(answer, 7);
    // An error comes on all ranks, too.
    let why = settle::worked_out_by_first(&mut world, || Err::<u64, _>(Error::usage("no such workload"))).unwrap_err();
    assert_eq!(why.to_string(), "no such workload");
}

fn slow_judged(outcome: &Outcome) -> Result<(), String> {
    outcome.expect(0, SOON, &[("no progress", 0)])?;
    if outcome.took < Duration::from_secs(3) {
        return Err("it should take longer".into());
    }
    Ok(())
}

/// Not by a program of that name, which a bare machine lacks.
pub fn send_to_self(signal: Signal) {
    kill_process(getpid(), signal).unwrap_or_else(|why| panic!("the signal could not be sent: {why}"));
}
