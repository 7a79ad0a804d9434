//! Empty tasks per second: self-scheduling against a master and workers as one would write them on plain sends and receives, in one process
//! and in turn.
//!
//! Needs mpirun; `scripts/bench` builds it and runs it on 4 ranks.
//!
//! ```text
//! master_worker [--rounds 15] [--tasks 200000]      one launch; prints its medians as lines for --summary
//! master_worker --summary FILE                      the table of all lines of a file; without mpirun
//! ```

mod options;

use std::time::Instant;

use equipoise::load::Costs;
use equipoise::node;
use equipoise::schedule::independent::{self, Chosen, Pace};
use equipoise::topology::{Complete, Overlay, Topology};
use equipoise::transport::mpi::{self, rsmpi};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::statistics;
use equipoise_lab::workload::independent::{Emulated, REAL_CYCLE};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rsmpi::topology::SimpleCommunicator;
use rsmpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

/// Answer of the master when there is nothing left.
const NOTHING: u64 = u64::MAX;

/// The master and workers by hand, with the number of outstanding requests.
const BY_HAND: [(&str, u64); 2] = [("by-hand", 1), ("by-hand:outstanding=8", 8)];

/// Schedulers that send one task at a time, or chunks by their rule.
const CONTENDERS: [&str; 8] = [
    "selfsched:rule=ss,outstanding=1",
    "selfsched:rule=ss",
    "dss",
    "dss:affinity",
    "selfsched:rule=fixed,chunk=100",
    "selfsched:rule=fac2",
    "selfsched:rule=gss",
    "selfsched:rule=awf",
];

fn main() {
    if let Err(why) = run() {
        eprintln!("master_worker: {why}");
        std::process::exit(why.exit_status());
    }
}

fn run() -> Result<()> {
    let (mut rounds, mut tasks) = (15u32, 200_000u64);
    let mut file = None;
    options::each(|given| {
        match given.name.as_str() {
            "--summary" => file = Some(given.value.clone()),
            "--rounds" => rounds = given.number::<u64>()?.try_into().unwrap_or(u32::MAX),
            "--tasks" => tasks = given.number()?,
            _ => return given.unknown(),
        }
        Ok(())
    })?;
    if let Some(file) = file {
        return summary(&file);
    }
    let universe = rsmpi::initialize().ok_or_else(|| Error::Failed("MPI was initialised before".into()))?;
    let comm = universe.world();
    let mut bench = Bench::new(comm, tasks)?;
    if bench.comm.size() < 2 {
        return Err(Error::usage("a master needs workers: run it under mpirun with 2 ranks at least"));
    }
    let contenders = CONTENDERS.iter().map(|name| independent::find(name)).collect::<Result<Vec<Chosen>>>()?;
    let mut rates = vec![Vec::new(); BY_HAND.len() + contenders.len()];
    let mut shares = rates.clone();
    let mut order: Vec<usize> = (0..rates.len()).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for round in 0..=rounds {
        // Another order each time, so that no contender always follows the same one.
        order.shuffle(&mut rng);
        for &at in &order {
            let (rate, share) = match at.checked_sub(BY_HAND.len()) {
                None => (bench.by_hand(BY_HAND[at].1), 0.0),
                Some(ours) => bench.by_scheduler(&contenders[ours])?,
            };
            // Ranks connect in the first round.
            if round > 0 {
                rates[at].push(rate);
                shares[at].push(share);
            }
        }
    }
    if bench.comm.rank() > 0 {
        return Ok(());
    }
    let median =
        |rates: &[f64]| statistics::median(rates).map(|it| it.value).ok_or_else(|| Error::usage("--rounds 0: nothing was measured"));
    for (at, name) in BY_HAND.iter().map(|(name, _)| *name).chain(CONTENDERS).enumerate() {
        let own = &rates[at];
        let over = |other: &[f64]| median(&own.iter().zip(other).map(|(own, other)| own / other).collect::<Vec<f64>>());
        let (rate, one, eight, share) = (median(own)?, over(&rates[0])?, over(&rates[1])?, median(&shares[at])?);
        println!("rate {} {tasks} {rounds} {name} {rate} {one} {eight} {share}", bench.comm.size());
    }
    Ok(())
}

/// Medians over launches, which are the lines `rate RANKS TASKS ROUNDS NAME RATE OVER_ONE OVER_EIGHT SHARE` of a file.
fn summary(file: &str) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|why| Error::usage(format!("--summary {file}: {why}")))?;
    let mut rows: Vec<(&str, [Vec<f64>; 4])> = Vec::new();
    let mut title = None;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("rate ")) {
        let wrong = || Error::usage(format!("--summary {file}: line {} is not as this program writes it", number + 1));
        let ["rate", ranks, tasks, rounds, name, figures @ ..] = &line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let figures = figures.iter().map(|figure| figure.parse()).collect::<Result<Vec<f64>, _>>().map_err(|_| wrong())?;
        let figures: [f64; 4] = figures.try_into().map_err(|_| wrong())?;
        title.get_or_insert((*ranks, *tasks, *rounds));
        let at = rows.iter().position(|row| row.0 == *name).unwrap_or(rows.len());
        if at == rows.len() {
            rows.push((name, Default::default()));
        }
        rows[at].1.iter_mut().zip(figures).for_each(|(figures, figure)| figures.push(figure));
    }
    let Some((ranks, tasks, rounds)) = title else { return Err(Error::usage(format!("--summary {file}: nothing was measured"))) };
    println!("\n{ranks} ranks, {tasks} empty tasks, {} launches of {rounds} rounds\n", rows[0].1[0].len());
    println!(
        "| | million tasks per second | over by hand | range | over by hand, 8 outstanding | range | by rank 0 itself, % |\n|---|--:|--:|--:|--:|--:|--:|"
    );
    for (name, figures) in &rows {
        let [rate, one, eight, share] = figures.each_ref().map(|figures| statistics::median(figures));
        let (Some(rate), Some(one), Some(eight), Some(share)) = (rate, one, eight, share) else { continue };
        let ratio = |it: statistics::Estimate| format!("{:.2} | {:.2} - {:.2}", it.value, it.low, it.high);
        println!("| {name} | {:.2} | {} | {} | {:.0} |", rate.value / 1e6, ratio(one), ratio(eight), share.value * 100.0);
    }
    Ok(())
}

struct Bench {
    comm: SimpleCommunicator,
    world: World,
    overlay: Overlay,
    tasks: u64,
}

impl Bench {
    fn new(comm: SimpleCommunicator, tasks: u64) -> Result<Bench> {
        let world = World::on(&comm, mpi::Options::program())?;
        let overlay = Overlay::new(Topology::Complete(Complete::new(world.ranks())?), world.hosts())?;
        Ok(Bench { comm, world, overlay, tasks })
    }

    /// Tasks per second with a master that only answers, one task a message.
    fn by_hand(&self, outstanding: u64) -> f64 {
        self.comm.barrier();
        let began = Instant::now();
        let done = if self.comm.rank() == 0 { master(&self.comm, self.tasks, outstanding) } else { worker(&self.comm, outstanding) };
        self.comm.barrier();
        let took = began.elapsed().as_secs_f64();
        let mut sum = 0u64;
        self.comm.all_reduce_into(&done, &mut sum, rsmpi::collective::SystemOperation::sum());
        assert_eq!(sum, self.tasks, "the master and its workers lost tasks");
        self.tasks as f64 / took
    }

    /// Tasks per second, and which share of them rank 0, which deals them out, executed itself.
    fn by_scheduler(&mut self, contender: &Chosen) -> Result<(f64, f64)> {
        let ranks = self.world.ranks();
        let costs = Costs::new(ranks, vec![0; self.tasks as usize * ranks as usize]).ok_or_else(|| Error::usage("no ranks"))?;
        let work = std::sync::Arc::new(Emulated::new(std::sync::Arc::new(costs), Vec::new(), false));
        let pace = Pace { cycle: REAL_CYCLE, by_model: false, ahead: 500_000, seed: 1 };
        self.comm.barrier();
        let began = Instant::now();
        let outcomes = node::run(&mut self.world, &self.overlay, |node| contender.made.clone().execute(node, work.clone(), pace))?;
        self.comm.barrier();
        let took = began.elapsed().as_secs_f64();
        let mut share = 0.0;
        if let Some(outcome) = outcomes.into_iter().find_map(|(_, outcome)| outcome) {
            let done: u64 = outcome.nodes.iter().map(|node| node.tasks).sum();
            assert_eq!(done, self.tasks, "{} lost tasks", contender.name);
            share = outcome.nodes[0].tasks as f64 / done as f64;
        }
        Ok((self.tasks as f64 / took, share))
    }
}

/// Answers every request with the next task.
fn master(comm: &SimpleCommunicator, tasks: u64, outstanding: u64) -> u64 {
    let mut next = 0;
    // Every worker hears of the end as often as it has asked ahead.
    let mut left = (comm.size() as u64 - 1) * outstanding;
    while left > 0 {
        let (_, status) = comm.any_process().receive::<u64>();
        let task = if next < tasks { next } else { NOTHING };
        next += 1;
        left -= u64::from(task == NOTHING);
        comm.process_at_rank(status.source_rank()).send(&task);
    }
    0
}

/// Asks for tasks; how many it executed.
fn worker(comm: &SimpleCommunicator, outstanding: u64) -> u64 {
    let master = comm.process_at_rank(0);
    let mut done = 0;
    (0..outstanding).for_each(|_| master.send(&0u64));
    let mut open = outstanding;
    while open > 0 {
        let (task, _) = master.receive::<u64>();
        if task == NOTHING {
            open -= 1;
            continue;
        }
        done += std::hint::black_box(1);
        master.send(&done);
    }
    done
}
