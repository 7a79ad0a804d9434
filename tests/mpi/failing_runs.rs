//! Runs of spawning tasks that go wrong in their middle: each must end in seconds, with its status, and a sentence that says what happened.

use std::panic;
use std::sync::Arc;
use std::time::Duration;

use equipoise::node::{self, Ticks, Worker};
use equipoise::schedule::{self, Computation, Options, Roots, Slice, Style, Yield};
use equipoise::topology::Overlay;
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use rustix::process::Signal;

use crate::faults::send_to_self;
use crate::launch::{Book, Outcome};

const SOON: Duration = Duration::from_secs(10);
const RANKS: u32 = 3;

pub fn enter(book: &mut Book) {
    let panicked: fn(&Outcome) -> Result<(), String> =
        |outcome| outcome.expect(101, SOON, &[("panicked at", 1), ("this task is too much", 1)]);
    book.waiting_job(
        "a task that panics on a worker thread ends its run",
        RANKS,
        || run(Fault::Panic, Style::Worker, "hierarchical"),
        panicked,
    );
    book.waiting_job("a task that panics between messages ends its run", RANKS, || run(Fault::Panic, Style::Inline, "random"), panicked);
    book.waiting_job("a task that panics in a slice ends its run", RANKS, || run(Fault::Panic, Style::Sliced, "steal"), panicked);
    book.waiting_job(
        "an answer too large to be sent ends its run",
        RANKS,
        || run(Fault::Large, Style::Worker, "random"),
        |outcome| outcome.expect(1, SOON, &[("the answer of task ", 1), (" bytes; no more than 100000 can be sent\n", 1), ("panicked", 0)]),
    );
    book.waiting_job(
        "a worker thread that dies in a task ends its run",
        RANKS,
        || run(Fault::Die, Style::Worker, "neighbour"),
        |outcome| outcome.expect(101, SOON, &[("equipoise: thread 'worker 0' died while it executed a task\n", 1)]),
    );
    book.waiting_job(
        "a rank that is killed in a task ends its run",
        RANKS,
        || run(Fault::Kill, Style::Worker, "random"),
        |outcome| match outcome.status {
            // Open MPI 4.1 gives 137, 128 and the signal's number.
            Some(status) if status != 0 && outcome.took < SOON && !outcome.stdout.contains("ended") => Ok(()),
            _ => Err("it should end soon, with the launcher's status, which is not 0".into()),
        },
    );
    book.waiting_job(
        "the same run without a fault",
        RANKS,
        || run(Fault::None, Style::Worker, "random"),
        |outcome| match outcome.stdout.matches("ended").count() {
            3 => outcome.expect(0, SOON, &[]),
            _ => Err("all ranks should end".into()),
        },
    );
}

/// Behaviour of one of the tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Panic,
    /// Its answer is larger than a message may be here.
    Large,
    /// Its thread ends without a panic's report.
    Die,
    /// Its rank is killed.
    Kill,
}

/// A binary tree, whose tasks sleep; the one of this number has the fault.
struct Faulty(Fault);

const BAD: u32 = 100;
const LAST: u32 = 127;
const LARGEST: usize = 100_000;
const PAUSE: Ticks = 2_000_000;

impl Computation for Faulty {
    type Task = u32;
    type Answer = Vec<u8>;
    type Waiting = ();

    fn execute(&self, number: u32, worker: &mut dyn Worker) -> Yield<Self> {
        worker.sleep(PAUSE);
        let mut answer = vec![1];
        if number == BAD {
            match self.0 {
                Fault::None => {}
                Fault::Panic => panic!("this task is too much"),
                Fault::Large => answer = vec![1; LARGEST + 1],
                Fault::Die => panic::resume_unwind(Box::new(())),
                Fault::Kill => send_to_self(Signal::KILL),
            }
        }
        match number {
            0..=63 => Yield::Children { tasks: vec![2 * number, 2 * number + 1], waiting: () },
            _ => Yield::Answer(answer),
        }
    }

    fn join(&self, (): (), answers: Vec<Vec<u8>>) -> Yield<Self> {
        Yield::Answer(answers.concat())
    }

    fn combine(&self, mut into: Vec<u8>, more: Vec<u8>) -> Vec<u8> {
        into.extend(more);
        into
    }

    fn step(&self, number: u32, _: Ticks, worker: &mut dyn Worker) -> Slice<Self> {
        Slice::Done(self.execute(number, worker))
    }
}

/// Runs the tree on every rank of a world whose watchdog would wait a minute.
fn run(fault: Fault, style: Style, scheduler: &str) {
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(60)));
    let mut world = World::init(options).unwrap_or_else(|why| panic!("{why}"));
    let scheduler = schedule::find(scheduler).unwrap_or_else(|why| panic!("{why}"));
    let topology = scheduler.entry.default_topology(world.ranks());
    let overlay = Overlay::new(topology, world.hosts()).unwrap_or_else(|why| panic!("{why}"));
    let computation = Arc::new(Faulty(fault));
    let done = node::run(&mut world, &overlay, |node| {
        let roots = if node.me() == 0 { Roots::One(1) } else { Roots::Elsewhere };
        let mut options = Options::default();
        (options.style, options.largest_answer) = (Some(style), LARGEST);
        schedule::execute(node, computation.clone(), scheduler.clone(), roots, options)
    });
    let done = done.unwrap_or_else(|why| panic!("{why}"));
    if let Some((_, outcome)) = done.into_iter().find(|(_, outcome)| outcome.answer.is_some()) {
        assert_eq!(outcome.answer.map(|answer| answer.len()), Some(LAST as usize + 1 - 64));
    }
    println!("ended");
}
