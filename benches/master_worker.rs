//! Empty tasks per second: self-scheduling against a master and workers as one would write them on plain sends and receives, in one process
//! and in turn.
//!
//! Needs mpirun; `scripts/bench` builds it and runs it on 4 ranks.
//!
//! ```text
//! master_worker [--rounds 15] [--tasks 200000]      prints a table: tasks per second, and the ratio to the master and workers by hand
//! ```

use std::time::Instant;

use equipoise::experiment::statistics;
use equipoise::load::Costs;
use equipoise::node;
use equipoise::schedule::independent::{self, Chosen, Pace};
use equipoise::topology::{Complete, Overlay, Topology};
use equipoise::transport::mpi::{self, rsmpi};
use equipoise::transport::world::World;
use equipoise::workload::independent::{Emulated, REAL_CYCLE};
use equipoise::{Error, Result};
use rsmpi::topology::SimpleCommunicator;
use rsmpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

/// What the master answers when there is nothing left.
const NOTHING: u64 = u64::MAX;

/// Schedulers, and whether a message brings one chunk of one task at the most that the rule allows.
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
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| Error::usage(format!("{option} needs a value")))?;
        let number: u64 = value.parse().map_err(|_| Error::usage(format!("{option} {value}: it is not a number")))?;
        match option.as_str() {
            "--rounds" => rounds = number.try_into().unwrap_or(u32::MAX),
            "--tasks" => tasks = number,
            _ => return Err(Error::usage(format!("there is no option {option}"))),
        }
    }
    let universe = rsmpi::initialize().ok_or_else(|| Error::Failed("MPI was initialised before".into()))?;
    let comm = universe.world();
    let mut bench = Bench::new(comm, tasks)?;
    if bench.comm.size() < 2 {
        return Err(Error::usage("a master needs workers: run it under mpirun with 2 ranks at least"));
    }
    let contenders = CONTENDERS.iter().map(|name| independent::find(name)).collect::<Result<Vec<Chosen>>>()?;
    let mut plain: [Vec<f64>; 2] = Default::default();
    let mut ours = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        let by_hand = [bench.by_hand(1), bench.by_hand(8)];
        let mut rates = Vec::new();
        for index in 0..contenders.len() {
            // Each comes first in its turn.
            let at = (index + round as usize) % contenders.len();
            rates.push((at, bench.by_scheduler(&contenders[at])?));
        }
        // Ranks connect in the first round.
        if round > 0 {
            plain.iter_mut().zip(by_hand).for_each(|(rates, rate)| rates.push(rate));
            rates.into_iter().for_each(|(at, rate)| ours[at].push(rate));
        }
    }
    if bench.comm.rank() > 0 {
        return Ok(());
    }
    let none = || Error::usage("--rounds 0: nothing was measured");
    println!("\n{} ranks, {tasks} empty tasks, {rounds} rounds\n", bench.comm.size());
    println!("| | million tasks per second | over by hand | 95 % |\n|---|--:|--:|--:|");
    let names = ["master and workers by hand", "the same, 8 requests outstanding"];
    let rows = names.iter().copied().zip(&plain).chain(CONTENDERS.iter().copied().zip(&ours));
    for (name, rates) in rows {
        let rate = statistics::median(rates).ok_or_else(none)?;
        let ratios: Vec<f64> = rates.iter().zip(&plain[0]).map(|(ours, by_hand)| ours / by_hand).collect();
        let ratio = statistics::median(&ratios).ok_or_else(none)?;
        println!("| {name} | {:.2} | {:.2} | {:.2} - {:.2} |", rate.value / 1e6, ratio.value, ratio.low, ratio.high);
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
        let world = World::Mpi(mpi::World::on(&comm, mpi::Options::program())?);
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

    fn by_scheduler(&mut self, contender: &Chosen) -> Result<f64> {
        let ranks = self.world.ranks();
        let costs = Costs::new(ranks, vec![0; self.tasks as usize * ranks as usize]).ok_or_else(|| Error::usage("no ranks"))?;
        let work = std::sync::Arc::new(Emulated::new(std::sync::Arc::new(costs), Vec::new(), false));
        let pace = Pace { cycle: REAL_CYCLE, by_model: false, ahead: 500_000, seed: 1 };
        self.comm.barrier();
        let began = Instant::now();
        let outcomes = node::run(&mut self.world, &self.overlay, |node| contender.scheduler.clone().execute(node, work.clone(), pace))?;
        self.comm.barrier();
        let took = began.elapsed().as_secs_f64();
        if let Some(outcome) = outcomes.into_iter().find_map(|(_, outcome)| outcome) {
            let done: u64 = outcome.nodes.iter().map(|node| node.tasks).sum();
            assert_eq!(done, self.tasks, "{} lost tasks", contender.name);
            if std::env::var_os("EQUIPOISE_BENCH_SHARES").is_some() {
                eprintln!("{}: {:?}", contender.name, outcome.nodes.iter().map(|node| (node.tasks, node.messages)).collect::<Vec<_>>());
            }
        }
        Ok(self.tasks as f64 / took)
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
