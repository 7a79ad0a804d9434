//! How soon a rank answers while it computes: one of two ranks asks, as a processor asks its median; the other's program waits for whatever
//! comes, as the schedulers' runtime does, while its own worker runs one task of a second after the other.
//!
//! Needs mpirun with two ranks; `scripts/bench --answers` builds and runs it.
//!
//! ```text
//! answering [--requests N] [--between MICROSECONDS] [--seed 1]
//! ```

mod options;

use std::time::{Duration, Instant, SystemTime};

use equipoise::node::{self, Event, Message, Node, Tag, Worker};
use equipoise::topology::{Overlay, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::statistics;
use rand::RngExt;

/// To the rank that answers: when it was sent.
const REQUEST: Tag = Tag::new(1, "request");
/// Back: how long the request had been under way when it was heard, in nanoseconds.
const ANSWER: Tag = Tag::new(2, "answer");
/// No more requests come.
const ENOUGH: Tag = Tag::new(3, "enough");

/// How long a task takes.
const TASK: Duration = Duration::from_secs(1);
/// How long a task computes between two checkpoints.
const STRETCH: Duration = Duration::from_micros(5);
/// Requests that are not counted: connections are made, naps find their length.
const WARM_UP: usize = 50;

/// Work of the workers meanwhile.
#[derive(Clone, Copy)]
enum Meanwhile {
    Nothing,
    Checkpoints,
    /// Without a checkpoint, and on both ranks.
    Opaque,
}

struct Case {
    name: &'static str,
    meanwhile: Meanwhile,
    /// Upper bounds of the median and the 99th percentile, in ms.
    goals: (Option<f64>, Option<f64>),
}

const CASES: [Case; 3] = [
    Case { name: "no task", meanwhile: Meanwhile::Nothing, goals: (None, None) },
    Case { name: "a task with checkpoints", meanwhile: Meanwhile::Checkpoints, goals: (Some(0.3), Some(2.0)) },
    Case { name: "an opaque task, all processors busy", meanwhile: Meanwhile::Opaque, goals: (Some(5.0), None) },
];

struct Arguments {
    requests: usize,
    between: u64,
    seed: u64,
}

fn main() {
    if let Err(why) = arguments().and_then(|arguments| run(&arguments)) {
        eprintln!("answering: {why}");
        std::process::exit(why.exit_status());
    }
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments { requests: 2000, between: 3000, seed: 1 };
    options::each(|given| {
        match given.name.as_str() {
            "--requests" => found.requests = given.number::<usize>()?.max(1),
            "--between" => found.between = given.number::<u64>()?.max(1),
            "--seed" => found.seed = given.number()?,
            _ => return given.unknown(),
        }
        Ok(())
    })?;
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<()> {
    let options = mpi::Options::program().with_seed(arguments.seed);
    let Some(world) = mpi::World::launched(options)? else {
        println!("answering: needs mpirun; run scripts/bench --answers");
        return Ok(());
    };
    let mut world = World::from(world);
    let ranks = world.ranks();
    if ranks != 2 {
        println!("answering: one rank asks and one answers, there are {ranks}; run scripts/bench --answers");
        return Ok(());
    }
    let overlay = Overlay::new(Topology::parse("complete", ranks)?, world.hosts())?;
    let first = world.is_first();
    if first {
        println!("\n## A rank answers while it computes\n");
        println!("| its worker runs | requests | heard after, ms | answered within, ms | 95 % | p99, ms | 95 % | goal (median, p99) |");
        println!("|---|--:|--:|--:|--:|--:|--:|---|");
    }
    for case in &CASES {
        let (requests, between) = (arguments.requests, arguments.between);
        let meanwhile = case.meanwhile;
        let samples = node::run(&mut world, &overlay, |node| async move {
            match node.me() {
                0 => ask(&node, meanwhile, requests, between).await,
                _ => answer(&node, meanwhile).await.map(|()| Samples::default()),
            }
        })?;
        if let Some((0, samples)) = samples.first() {
            show(case, samples)?;
        }
    }
    Ok(())
}

/// Milliseconds that each request took.
#[derive(Default)]
struct Samples {
    heard: Vec<f64>,
    answered: Vec<f64>,
}

/// Both ranks run on one host, and have its clock in common.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn start(node: &Node, meanwhile: Meanwhile) {
    let with_checkpoints = match meanwhile {
        Meanwhile::Nothing => return,
        Meanwhile::Checkpoints => true,
        Meanwhile::Opaque => false,
    };
    node.start(move |worker: &mut dyn Worker| {
        let began = Instant::now();
        while began.elapsed() < TASK {
            let stretch = Instant::now();
            while stretch.elapsed() < STRETCH {
                std::hint::spin_loop();
            }
            if with_checkpoints {
                worker.checkpoint();
            }
        }
    });
}

/// Asks at random times, one request after the other, and takes the time.
async fn ask(node: &Node, meanwhile: Meanwhile, requests: usize, between: u64) -> Result<Samples> {
    let (mut rng, mut samples) = (node.rng(), Samples::default());
    let busy = matches!(meanwhile, Meanwhile::Opaque);
    if busy {
        start(node, meanwhile);
    }
    for number in 0..requests + WARM_UP {
        let pause = -(1.0 - rng.random::<f64>()).ln() * (between * 1000) as f64;
        node.set_timer(node.now() + pause as u64);
        let mut asked = None;
        loop {
            match node.next_event().await {
                Event::Timer { .. } => {
                    asked = Some(Instant::now());
                    node.send(1, REQUEST, &wall_clock());
                }
                Event::Finished { .. } if busy => start(node, meanwhile),
                Event::Message(message) => {
                    let heard: u64 = node::open(&message, ANSWER)?;
                    if number >= WARM_UP {
                        samples.heard.push(ms(heard));
                        samples.answered.extend(asked.map(|asked: Instant| asked.elapsed().as_secs_f64() * 1e3));
                    }
                    break;
                }
                Event::RankLost(rank) => return Err(Error::RankLost { rank }),
                _ => {}
            }
        }
    }
    node.send(1, ENOUGH, &());
    if busy {
        finish(node).await?;
    }
    Ok(samples)
}

/// Waits for the end of the last task: it would disturb the next case.
async fn finish(node: &Node) -> Result<()> {
    loop {
        match node.next_event().await {
            Event::Finished { .. } => return Ok(()),
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}

async fn answer(node: &Node, meanwhile: Meanwhile) -> Result<()> {
    start(node, meanwhile);
    loop {
        match node.next_event().await {
            Event::Message(message) if is(&message, ENOUGH) => {
                return if matches!(meanwhile, Meanwhile::Nothing) { Ok(()) } else { finish(node).await };
            }
            Event::Message(message) => {
                let sent: u64 = node::open(&message, REQUEST)?;
                node.send(message.envelope.src, ANSWER, &wall_clock().saturating_sub(sent));
            }
            Event::Finished { .. } => start(node, meanwhile),
            Event::RankLost(rank) => return Err(Error::RankLost { rank }),
            _ => {}
        }
    }
}

fn is(message: &Message, tag: Tag) -> bool {
    message.envelope.tag == tag.id()
}

/// The 99th percentile with an interval between order statistics: the number of samples below it is binomial (normal approximation).
fn p99(samples: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let half = 1.96 * (n * 0.99 * 0.01).sqrt();
    let at = |position: f64| sorted.get(position.clamp(0.0, n - 1.0) as usize).copied();
    Some([statistics::percentile(samples, 99.0)?, at((n * 0.99 - half).floor())?, at((n * 0.99 + half).ceil())?])
}

fn show(case: &Case, samples: &Samples) -> Result<()> {
    let no_samples = || Error::Failed("no request was answered".into());
    let heard = statistics::median(&samples.heard).ok_or_else(no_samples)?;
    let answered = statistics::median(&samples.answered).ok_or_else(no_samples)?;
    let [tail, low, high] = p99(&samples.answered).ok_or_else(no_samples)?;
    let verdict = |goal: Option<f64>, measured: f64| match goal {
        None => "-".to_string(),
        Some(goal) => format!("{goal}: {}", if measured <= goal { "met" } else { "MISSED" }),
    };
    println!(
        "| {} | {} | {:.3} | {:.3} | {:.3} - {:.3} | {tail:.3} | {low:.3} - {high:.3} | {}, {} |",
        case.name,
        samples.answered.len(),
        heard.value,
        answered.value,
        answered.low,
        answered.high,
        verdict(case.goals.0, answered.value),
        verdict(case.goals.1, tail),
    );
    Ok(())
}
