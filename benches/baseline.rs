//! Balancers against what one would write by hand, on real ranks and in one process: an all-gather of the loads, then one MPI_Alltoallv of
//! the surplus, on plain buffers. And the gathering of information against MPI_Allreduce.
//!
//! Needs mpirun; `scripts/bench` builds it, runs it on 4, 8 and 16 ranks, and adds up what it prints.
//!
//! ```text
//! baseline [--rounds N] [--payload 64,4096] [--mean 1000] [--seed 1]     everything, round by round; prints ratios
//! baseline --first NAME [--payload 64] ..                                one phase in a fresh process; prints its time
//! baseline --summary FILE                                                the ratios of the first phases in a file; without mpirun
//! ```

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use equipoise::balance::{self, Chosen, Phase};
use equipoise::experiment::statistics::{self, Estimate};
use equipoise::load::{Pile, Powers, Segment, Shares};
use equipoise::node;
use equipoise::topology::Overlay;
use equipoise::transport::mpi::{self, rsmpi};
use equipoise::transport::world::World;
use equipoise::workload::LoadPattern;
use equipoise::{Error, Result};
use rsmpi::collective::SystemOperation;
use rsmpi::datatype::{Partition, PartitionMut};
use rsmpi::topology::SimpleCommunicator;
use rsmpi::traits::{Communicator, CommunicatorCollectives};

const BASELINE: &str = "by hand";

struct Arguments {
    rounds: u32,
    payloads: Vec<usize>,
    mean: u64,
    seed: u64,
    first: Option<String>,
    summary: Option<String>,
}

fn main() {
    if let Err(why) = arguments().and_then(|arguments| run(&arguments)) {
        eprintln!("baseline: {why}");
        std::process::exit(why.exit_status());
    }
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments { rounds: 60, payloads: vec![64, 4096], mean: 1000, seed: 1, first: None, summary: None };
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        // Cargo's own, as in `cargo bench`.
        if option == "--bench" {
            continue;
        }
        let value = words.next().ok_or_else(|| Error::usage(format!("{option} needs a value")))?;
        let wrong = |_| Error::usage(format!("{option} {value}: it is not a number"));
        match option.as_str() {
            "--rounds" => found.rounds = value.parse().map_err(wrong)?,
            "--payload" => found.payloads = value.split(',').map(|size| size.parse().map_err(wrong)).collect::<Result<_>>()?,
            "--mean" => found.mean = value.parse().map_err(wrong)?,
            "--seed" => found.seed = value.parse().map_err(wrong)?,
            "--first" => found.first = Some(value),
            "--summary" => found.summary = Some(value),
            _ => return Err(Error::usage(format!("there is no option {option}"))),
        }
    }
    if found.payloads.contains(&0) {
        return Err(Error::usage("--payload 0: plain buffers need tasks of at least one byte"));
    }
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(file) = &arguments.summary {
        return summary(file);
    }
    let universe = rsmpi::initialize().ok_or_else(|| Error::Failed("MPI was initialised before".into()))?;
    let bench = Bench::new(universe.world(), arguments)?;
    if bench.ranks < 2 {
        println!("baseline: one rank has nothing to balance; run scripts/bench");
        return Ok(());
    }
    match &arguments.first {
        Some(name) => bench.first(name, arguments),
        None => bench.all(arguments),
    }
}

/// The ranks, and what they begin every phase with.
struct Bench {
    comm: Rc<SimpleCommunicator>,
    world: World,
    ranks: u32,
    me: usize,
    loads: Vec<u64>,
    shares: Shares,
}

impl Bench {
    fn new(comm: SimpleCommunicator, arguments: &Arguments) -> Result<Bench> {
        let world = World::Mpi(mpi::World::on(&comm, mpi::Options::program())?);
        let (ranks, me) = (world.ranks(), comm.rank() as usize);
        let loads = LoadPattern::Uniform { mean: arguments.mean }.draw(ranks, ranks, arguments.seed)?;
        let shares = Shares::new(Powers::equal(ranks, ranks));
        Ok(Bench { comm: Rc::new(comm), world, ranks, me, loads, shares })
    }

    /// The time of the slowest rank, in ms.
    fn slowest(&self, mine: f64) -> f64 {
        let mut slowest = 0.0;
        self.comm.all_reduce_into(&mine, &mut slowest, SystemOperation::max());
        slowest
    }

    fn say(&self, line: &str) {
        if self.me == 0 {
            println!("{line}");
        }
    }

    /// One phase by hand.
    fn by_hand(&self, payload: usize) -> f64 {
        let mut tasks = vec![self.me as u8; self.loads[self.me] as usize * payload];
        self.comm.barrier();
        let began = Instant::now();
        by_hand(&self.comm, &mut tasks, payload);
        let took = began.elapsed().as_secs_f64() * 1e3;
        let quota = self.shares.quota(self.loads.iter().sum()).of(self.me as u32);
        assert_eq!(tasks.len(), quota as usize * payload, "the baseline does not balance");
        self.slowest(took)
    }

    /// One phase by a balancer, without a closing check, as a program's own phase: nothing is counted. The whole of it, and the part in which
    /// it gathers information.
    fn by_balancer(&mut self, contender: &Contender, payload: usize) -> Result<(f64, f64)> {
        let buffer = Bytes::from(vec![self.me as u8; self.loads[self.me] as usize * payload]);
        let before: u64 = self.loads[..self.me].iter().sum();
        let results = node::run(&mut self.world, &contender.overlay, |node| {
            let is_real = !node.overlay().placement.is_virtual(node.me());
            let (tasks, buffer) = if is_real { ((buffer.len() / payload) as u64, buffer.clone()) } else { (0, Bytes::new()) };
            let mut pile = Pile::new(Segment::row(before, tasks, 1, buffer).into_iter().collect());
            let (chosen, shares, comm) = (contender.chosen.clone(), contender.shares.clone(), self.comm.clone());
            async move {
                // Once a rank: its other nodes have their turn only when all ranks are here.
                if is_real {
                    comm.barrier();
                }
                let began = Instant::now();
                let mut phase = Phase::begin(&node, &shares, &mut pile);
                phase.carry_out(&*chosen.balancer).await?;
                let (_, times) = phase.end();
                Ok((began.elapsed().as_secs_f64() * 1e3, times.information as f64 / 1e6, pile.len()))
            }
        })?;
        let took = results.iter().map(|(_, (took, ..))| *took).fold(0.0, f64::max);
        let information = results.iter().map(|(_, (_, information, _))| *information).fold(0.0, f64::max);
        Ok((self.slowest(took), self.slowest(information)))
    }

    /// MPI's own sum of one number, and ours.
    fn sums(&mut self, overlay: &Overlay) -> Result<[f64; 2]> {
        let (mine, mut sum) = (self.loads[self.me], 0u64);
        self.comm.barrier();
        let began = Instant::now();
        self.comm.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
        let theirs = began.elapsed().as_secs_f64() * 1e3;
        let results = node::run(&mut self.world, overlay, |node| {
            let comm = self.comm.clone();
            async move {
                comm.barrier();
                let began = Instant::now();
                let sum = node.everyone().all_reduce(&node, mine, |a, b| a + b).await?;
                Ok((began.elapsed().as_secs_f64() * 1e3, sum))
            }
        })?;
        let ours = results.iter().map(|(_, (took, _))| *took).fold(0.0, f64::max);
        assert!(results.iter().all(|(_, (_, ours))| *ours == sum), "the sums differ");
        Ok([self.slowest(theirs), self.slowest(ours)])
    }

    fn contenders(&self) -> Result<Vec<Contender>> {
        let names = balance::ALL.iter().map(|entry| entry.name).filter(|name| *name != "none");
        names.map(|name| Contender::new(name, &self.world)).collect()
    }

    /// Everything, round by round, so that a machine that drifts treats all alike.
    fn all(mut self, arguments: &Arguments) -> Result<()> {
        let contenders = self.contenders()?;
        let complete = Overlay::new(contenders[0].chosen.entry.default_topology(self.ranks), self.world.hosts())?;
        let plain = match complete.placement.native() {
            true => complete,
            false => Overlay::new(balance::find("direct")?.entry.default_topology(self.ranks), self.world.hosts())?,
        };
        for &payload in &arguments.payloads {
            let mut hand = Vec::new();
            let mut ours: Vec<Vec<(f64, f64)>> = vec![Vec::new(); contenders.len()];
            let mut sums = Vec::new();
            for round in 0..=arguments.rounds {
                let by_hand = self.by_hand(payload);
                let sum = self.sums(&plain)?;
                let mut times = Vec::new();
                for index in 0..contenders.len() {
                    // Each comes first in its turn.
                    let at = (index + round as usize) % contenders.len();
                    times.push((at, self.by_balancer(&contenders[at], payload)?));
                }
                // Ranks connect in the first round.
                if round > 0 {
                    hand.push(by_hand);
                    sums.push(sum);
                    times.into_iter().for_each(|(at, time)| ours[at].push(time));
                }
            }
            self.say(&format!(
                "\n{} ranks, {} tasks per rank on average, {payload} B a task, {} rounds\n",
                self.ranks,
                arguments.mean,
                hand.len()
            ));
            self.say("| | ms | over by hand | 95 % | information, ms | over MPI_Allreduce |\n|---|--:|--:|--:|--:|--:|");
            let of_mpi: Vec<f64> = sums.iter().map(|[theirs, _]| *theirs).collect();
            self.say(&format!("| {BASELINE} | {} | 1 | | | |", figure(&hand)?));
            for (contender, times) in contenders.iter().zip(&ours) {
                let (whole, information): (Vec<f64>, Vec<f64>) = times.iter().copied().unzip();
                let ratio = estimate(&ratios(&whole, &hand))?;
                let other = figure(&ratios(&information, &of_mpi))?;
                self.say(&format!(
                    "| {} | {} | {:.2} | {:.2} - {:.2} | {} | {other} |",
                    contender.chosen.name,
                    figure(&whole)?,
                    ratio.value,
                    ratio.low,
                    ratio.high,
                    figure(&information)?
                ));
            }
            let own: Vec<f64> = sums.iter().map(|[_, ours]| *ours).collect();
            let ratio = estimate(&ratios(&own, &of_mpi))?;
            self.say(&format!(
                "\nSum of one number: MPI_Allreduce {} ms, ours {} ms; ratio {:.2} ({:.2} - {:.2})",
                figure(&of_mpi)?,
                figure(&own)?,
                ratio.value,
                ratio.low,
                ratio.high
            ));
        }
        Ok(())
    }

    /// One phase, the first that this process does.
    fn first(mut self, name: &str, arguments: &Arguments) -> Result<()> {
        let payload = arguments.payloads[0];
        let took = match name {
            "by-hand" => self.by_hand(payload),
            name => {
                let contender = Contender::new(name, &self.world)?;
                self.by_balancer(&contender, payload)?.0
            }
        };
        self.say(&format!("first {name} {} {payload} {took}", self.ranks));
        Ok(())
    }
}

/// A balancer on its topology.
struct Contender {
    chosen: Rc<Chosen>,
    overlay: Overlay,
    shares: Shares,
}

impl Contender {
    fn new(name: &str, world: &World) -> Result<Contender> {
        let chosen = balance::find(name)?;
        let overlay = Overlay::new(chosen.entry.default_topology(world.ranks()), world.hosts())?;
        let shares = Shares::new(Powers::equal(overlay.placement.ranks(), overlay.placement.nodes()));
        Ok(Contender { chosen: Rc::new(chosen), overlay, shares })
    }
}

/// What one would write: everybody learns all loads, the surpluses in rank order fill the deficits in rank order, and the last tasks of the
/// buffer are sent from where they lie.
fn by_hand(comm: &SimpleCommunicator, tasks: &mut Vec<u8>, payload: usize) {
    let (ranks, me) = (comm.size() as usize, comm.rank() as usize);
    let load = (tasks.len() / payload) as u64;
    let mut loads = vec![0u64; ranks];
    comm.all_gather_into(&load, &mut loads[..]);
    let total: u64 = loads.iter().sum();
    let quota = |rank: usize| total / ranks as u64 + u64::from((rank as u64) < total % ranks as u64);
    let (mut send, mut receive) = (vec![0i32; ranks], vec![0i32; ranks]);
    let (mut from, mut to) = (0, 0);
    let (mut surplus, mut deficit) = (0, 0);
    loop {
        while surplus == 0 && from < ranks {
            surplus = loads[from].saturating_sub(quota(from));
            from += 1;
        }
        while deficit == 0 && to < ranks {
            deficit = quota(to).saturating_sub(loads[to]);
            to += 1;
        }
        let amount = surplus.min(deficit);
        if amount == 0 {
            break;
        }
        let bytes = (amount as usize * payload) as i32;
        if from - 1 == me {
            send[to - 1] = bytes;
        }
        if to - 1 == me {
            receive[from - 1] = bytes;
        }
        (surplus, deficit) = (surplus - amount, deficit - amount);
    }
    let starts = |counts: &[i32]| -> Vec<i32> {
        let next = |at: &mut i32, count: &i32| Some(std::mem::replace(at, *at + count));
        counts.iter().scan(0, next).collect()
    };
    let (send_at, receive_at) = (starts(&send), starts(&receive));
    let keep = load.min(quota(me)) as usize * payload;
    let length = receive.iter().sum::<i32>() as usize;
    // The address of an empty vector is 1, which Open MPI takes for MPI_IN_PLACE.
    let mut received = vec![0u8; length.max(1)];
    tasks.reserve(1);
    {
        let from = Partition::new(&tasks[keep..], &send[..], &send_at[..]);
        let mut into = PartitionMut::new(&mut received[..length], &receive[..], &receive_at[..]);
        comm.all_to_all_varcount_into(&from, &mut into);
    }
    tasks.truncate(keep);
    tasks.extend_from_slice(&received[..length]);
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

fn estimate(samples: &[f64]) -> Result<Estimate> {
    statistics::median(samples).ok_or_else(|| Error::usage("--rounds 0: nothing was measured"))
}

fn figure(samples: &[f64]) -> Result<String> {
    Ok(equipoise::report::figures::three(estimate(samples)?.value))
}

/// Lines `first NAME RANKS PAYLOAD MS`: pairs the runs of a balancer with those by hand, in order.
fn summary(file: &str) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|why| Error::usage(format!("--summary {file}: {why}")))?;
    let mut cases: Vec<(u32, usize, String, Vec<f64>)> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("first ")) {
        let wrong = || Error::usage(format!("--summary {file}: line {} is not of the form 'first NAME RANKS PAYLOAD MS'", number + 1));
        let [_, name, ranks, payload, ms] = line.split_whitespace().collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let (ranks, payload) = (ranks.parse().map_err(|_| wrong())?, payload.parse().map_err(|_| wrong())?);
        let ms: f64 = ms.parse().map_err(|_| wrong())?;
        match cases.iter_mut().find(|(r, p, n, _)| (*r, *p, n.as_str()) == (ranks, payload, name)) {
            Some((.., samples)) => samples.push(ms),
            None => cases.push((ranks, payload, name.into(), vec![ms])),
        }
    }
    println!("| ranks | B a task | | ms | by hand, ms | ratio | 95 % | pairs |\n|--:|--:|---|--:|--:|--:|--:|--:|");
    for (ranks, payload, name, ours) in cases.iter().filter(|(_, _, name, _)| name != "by-hand") {
        let Some((.., theirs)) = cases.iter().find(|(r, p, n, _)| (r, p, n.as_str()) == (ranks, payload, "by-hand")) else { continue };
        let pairs = ratios(ours, theirs);
        let ratio = estimate(&pairs)?;
        println!(
            "| {ranks} | {payload} | {name} | {} | {} | {:.2} | {:.2} - {:.2} | {} |",
            figure(ours)?,
            figure(theirs)?,
            ratio.value,
            ratio.low,
            ratio.high,
            pairs.len()
        );
    }
    Ok(())
}
