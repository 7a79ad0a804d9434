//! Balancers against what one would write by hand, on real ranks and in one process: an all-gather of the loads, a plan, and the surplus in one
//! MPI_Alltoallv or in immediate sends, written in C (`by_hand.c`); and against Zoltan's BLOCK method (`zoltan.c`). And the gathering of
//! information against MPI_Allreduce, and sums of one number against that and MPI_Iallreduce.
//!
//! Needs mpirun; `scripts/bench` builds it, runs it several times on 4, 8 and 16 ranks, and adds up what it prints.
//!
//! ```text
//! baseline --by-hand LIBRARY [--zoltan LIBRARY] [--rounds N] [--payload 64,4096] [--mean 1000] [--seed 1] [--balancers direct,direct@native,..]
//!                                                                        one launch; prints its medians as lines for --summary
//! baseline --first NAME --by-hand LIBRARY [--payload 64] [--unmeasured 0] ..   one phase in a fresh process, after some others; prints its time
//! baseline --summary FILE                                                the tables of all that the lines of a file say; without mpirun
//! baseline --agree FILE                                                  whether `equipoise compare` and `balance` say the same; without mpirun
//! ```

// Loads the phases in C and calls them, each call with the reason why it is sound.
#[allow(unsafe_code)]
mod by_hand;
#[path = "../options/mod.rs"]
mod options;
mod tables;

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use equipoise::balance::{self, Chosen, Phase};
use equipoise::load::{Powers, Segment, Shares, WorkQueue};
use equipoise::node::{self, Node};
use equipoise::topology::Overlay;
use equipoise::transport::mpi::{self, rsmpi};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::statistics;
use equipoise_lab::workload::LoadPattern;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rsmpi::collective::SystemOperation;
use rsmpi::topology::SimpleCommunicator;
use rsmpi::traits::{Communicator, CommunicatorCollectives};

use by_hand::{ByHand, Found};
use options::Given;
use tables::{Launch, SUMS};

/// Times of a sum of one number, in ms, in the order of [`SUMS`].
type Sums = [f64; SUMS.len()];

/// The allocator of the program `equipoise`. What is written by hand in C has the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The ways by hand, as they are named and as `by_hand.c` numbers them.
const WAYS: [(&str, i32); 2] = [("alltoallv", 0), ("immediate", 1)];
const ZOLTAN: &str = "zoltan";
/// Behind a balancer's name: its information phase uses MPI's own collective operations.
const NATIVE: &str = "@native";

struct Arguments {
    by_hand: Option<String>,
    zoltan: Option<String>,
    rounds: u32,
    payloads: Vec<usize>,
    mean: u64,
    seed: u64,
    /// All whose topology has a node for each rank, if none are named.
    balancers: Option<Vec<String>>,
    first: Option<String>,
    /// Number of phases before the first that is measured.
    unmeasured: u32,
    summary: Option<String>,
    agree: Option<String>,
}

fn main() {
    if let Err(why) = arguments().and_then(|arguments| run(&arguments)) {
        eprintln!("baseline: {why}");
        std::process::exit(why.exit_status());
    }
}

/// Sizes of tasks, with commas between them.
fn sizes(given: &Given) -> Result<Vec<usize>> {
    let one = |size: &str| Given { name: given.name.clone(), value: size.into() }.number();
    given.value.split(',').map(one).collect()
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments {
        by_hand: None,
        zoltan: None,
        rounds: 60,
        payloads: vec![64, 4096],
        mean: 1000,
        seed: 1,
        balancers: None,
        first: None,
        unmeasured: 0,
        summary: None,
        agree: None,
    };
    options::each(|given| {
        let value = || given.value.clone();
        match given.name.as_str() {
            "--by-hand" => found.by_hand = Some(value()),
            "--zoltan" => found.zoltan = Some(value()),
            "--rounds" => found.rounds = given.number()?,
            "--payload" => found.payloads = sizes(given)?,
            "--mean" => found.mean = given.number()?,
            "--seed" => found.seed = given.number()?,
            "--balancers" => found.balancers = Some(given.value.split(',').filter(|name| !name.is_empty()).map(String::from).collect()),
            "--first" => found.first = Some(value()),
            "--unmeasured" => found.unmeasured = given.number()?,
            "--summary" => found.summary = Some(value()),
            "--agree" => found.agree = Some(value()),
            _ => return given.unknown(),
        }
        Ok(())
    })?;
    if found.payloads.iter().any(|&size| size < 8) {
        return Err(Error::usage("--payload: tasks of at least 8 bytes, which hold their number"));
    }
    if found.rounds == 0 {
        return Err(Error::usage("--rounds 0: nothing would be measured"));
    }
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(file) = &arguments.summary {
        return tables::summary(file);
    }
    if let Some(file) = &arguments.agree {
        return tables::agreement(file);
    }
    let universe = rsmpi::initialize().ok_or_else(|| Error::Failed("MPI was initialised before".into()))?;
    let bench = Bench::new(universe.world(), arguments)?;
    if bench.ranks < 2 {
        println!("baseline: one rank has nothing to balance; run scripts/bench");
        return Ok(());
    }
    match &arguments.first {
        Some(name) => bench.first(name, arguments),
        None => bench.launch(arguments),
    }
}

/// A contender.
#[allow(clippy::large_enum_variant)]
enum Contender {
    InC { name: &'static str, way: i32, library: usize },
    Ours { name: String, native: bool, chosen: Rc<Chosen>, overlay: Overlay, shares: Shares },
}

impl Contender {
    /// `NAME` or `NAME@native`: with the collective operations of MPI's own.
    fn ours(name: &str, world: &World) -> Result<Contender> {
        let balancer = name.strip_suffix(NATIVE);
        let chosen = Rc::new(balance::find(balancer.unwrap_or(name))?);
        let overlay = Overlay::new(chosen.entry.default_topology(world.ranks()), world.hosts())?;
        let (ranks, nodes) = (overlay.placement.ranks(), overlay.placement.nodes());
        // A rank waits in MPI's barrier for the others, which would wait for its other nodes.
        if ranks != nodes {
            return Err(Error::usage(format!(
                "--balancers {name}: its topology has {nodes} nodes on {ranks} ranks, and only one node a rank is measured"
            )));
        }
        let shares = Shares::new(Powers::equal(ranks, nodes));
        Ok(Contender::Ours { name: name.into(), native: balancer.is_some(), chosen, overlay, shares })
    }

    fn name(&self) -> &str {
        match self {
            Contender::InC { name, .. } => name,
            Contender::Ours { name, .. } => name,
        }
    }
}

/// A phase's times of the slowest rank, in ms.
#[derive(Clone, Copy)]
struct Times {
    whole: f64,
    /// Time of the part in which loads are exchanged; balancers only.
    information: f64,
}

/// The ranks, and what they begin every phase with.
struct Bench {
    comm: Rc<SimpleCommunicator>,
    world: World,
    /// A node for each rank.
    plain: Overlay,
    ranks: u32,
    me: usize,
    loads: Vec<u64>,
    /// Totals of all ranks.
    expected: [u64; 4],
}

impl Bench {
    fn new(comm: SimpleCommunicator, arguments: &Arguments) -> Result<Bench> {
        let world = World::on(&comm, mpi::Options::program())?;
        let (ranks, me) = (world.ranks(), comm.rank() as usize);
        let loads = LoadPattern::Uniform { mean: arguments.mean }.draw(ranks, ranks, arguments.seed)?;
        let plain = Overlay::new(balance::find("direct")?.entry.default_topology(ranks), world.hosts())?;
        let mut expected = [loads.iter().sum(), 0, 0, 0u64];
        for id in 0..expected[0] {
            expected[1] = id.wrapping_add(expected[1]);
            expected[2] = (id * id).wrapping_add(expected[2]);
        }
        Ok(Bench { comm: Rc::new(comm), world, plain, ranks, me, loads, expected })
    }

    /// The largest of the ranks' numbers; of times, that of the slowest rank.
    fn slowest(&self, mine: f64) -> f64 {
        let mut slowest = 0.0;
        self.comm.all_reduce_into(&mine, &mut slowest, SystemOperation::max());
        slowest
    }

    /// Number of the first task of this rank.
    fn first_task(&self) -> u64 {
        self.loads[..self.me].iter().sum()
    }

    /// Checks that every task is on some rank, once and as it was, and that every rank has its share of them, but for a task or two. `fos` and `sos` stop
    /// when a hundredth of the imbalance is left, and may be further off by that part of a share. All ranks find the same, so that none waits for one
    /// that has failed.
    fn check(&self, name: &str, found: Found) -> Result<()> {
        let mut all = [0u64; 4];
        self.comm.all_reduce_into(&[found.tasks, found.ids, found.squares, found.wrong], &mut all, SystemOperation::sum());
        let share = self.expected[0] / u64::from(self.ranks);
        let furthest = self.slowest(found.tasks.abs_diff(share) as f64);
        if all != self.expected {
            return Err(Error::wrong_result(format!(
                "{name}: {:?} became {all:?} (tasks, sums of ids and squares, words changed)",
                self.expected
            )));
        }
        let allowed = if matches!(name, "fos" | "sos") { 2 + share / 100 } else { 2 };
        if furthest > allowed as f64 {
            return Err(Error::Failed(format!("{name} does not balance: a rank is {furthest} tasks from its share, {share}")));
        }
        Ok(())
    }

    fn phase(&mut self, contender: &Contender, payload: usize, libraries: &mut [ByHand]) -> Result<Times> {
        match contender {
            Contender::InC { name, way, library } => self.by_hand(name, *way, &mut libraries[*library]),
            Contender::Ours { native, chosen, overlay, shares, .. } => {
                self.world.use_native_collectives(*native)?;
                let times = self.by_balancer(chosen, overlay, shares, payload)?;
                self.world.use_native_collectives(false)?;
                Ok(times)
            }
        }
    }

    /// One phase in C.
    fn by_hand(&mut self, name: &str, way: i32, library: &mut ByHand) -> Result<Times> {
        library.fill(self.first_task(), self.loads[self.me])?;
        let overlay = self.plain.clone();
        node::run(&mut self.world, &overlay, |node| async move { line_up(&node).await })?;
        self.comm.barrier();
        let began = Instant::now();
        library.phase(way)?;
        let whole = self.slowest(began.elapsed().as_secs_f64() * 1e3);
        self.check(name, library.check())?;
        Ok(Times { whole, information: f64::NAN })
    }

    /// One phase by a balancer, without a closing check, as a program's own phase: nothing is counted. What it left is looked at afterwards.
    fn by_balancer(&mut self, chosen: &Rc<Chosen>, overlay: &Overlay, shares: &Shares, payload: usize) -> Result<Times> {
        let (first, tasks) = (self.first_task(), self.loads[self.me]);
        let buffer = Bytes::from(records(first, tasks, payload));
        let results = node::run(&mut self.world, overlay, |node| {
            let mut queue = WorkQueue::new(Segment::row(first, tasks, 1, buffer.clone()).into_iter().collect());
            let (chosen, shares, comm) = (chosen.clone(), shares.clone(), self.comm.clone());
            async move {
                line_up(&node).await?;
                comm.barrier();
                let began = Instant::now();
                let mut phase = Phase::begin(&node, &shares, &mut queue);
                chosen.run(&mut phase).await?;
                let (_, times) = phase.end();
                Ok((began.elapsed().as_secs_f64() * 1e3, times.information as f64 / 1e6, queue))
            }
        })?;
        let whole = results.iter().map(|(_, (whole, ..))| *whole).fold(0.0, f64::max);
        let information = results.iter().map(|(_, (_, information, _))| *information).fold(0.0, f64::max);
        let mut found = Found::default();
        results.iter().for_each(|(_, (.., queue))| examine(queue, &mut found));
        let times = Times { whole: self.slowest(whole), information: self.slowest(information) };
        self.check(&chosen.name, found)?;
        Ok(times)
    }

    /// Sums of one number: by MPI's blocking call, by its immediate one with tests, by our tree, and by our way to MPI's immediate one.
    fn sums(&mut self, overlay: &Overlay) -> Result<Sums> {
        let mine = self.loads[self.me];
        let (mut blocking, mut tested) = (0u64, 0u64);
        self.comm.barrier();
        let began = Instant::now();
        self.comm.all_reduce_into(&mine, &mut blocking, SystemOperation::sum());
        let of_blocking = began.elapsed().as_secs_f64() * 1e3;
        self.comm.barrier();
        let began = Instant::now();
        rsmpi::request::scope(|scope| {
            let mut request = self.comm.immediate_all_reduce_into(scope, &mine, &mut tested, SystemOperation::sum());
            while let Err(pending) = request.test() {
                request = pending;
            }
        });
        let of_tested = began.elapsed().as_secs_f64() * 1e3;
        assert_eq!(blocking, tested, "MPI's sums differ");
        let mut sums = [self.slowest(of_blocking), self.slowest(of_tested), 0.0, 0.0];
        for (at, native) in [(2, false), (3, true)] {
            self.world.use_native_collectives(native)?;
            let results = node::run(&mut self.world, overlay, |node| {
                let comm = self.comm.clone();
                async move {
                    comm.barrier();
                    let began = Instant::now();
                    let sum = node.everyone().sum(&node, mine).await?;
                    Ok((began.elapsed().as_secs_f64() * 1e3, sum))
                }
            })?;
            let ours = results.iter().map(|(_, (took, _))| *took).fold(0.0, f64::max);
            assert!(results.iter().all(|(_, (_, ours))| *ours == blocking), "the sums differ");
            sums[at] = self.slowest(ours);
        }
        self.world.use_native_collectives(false)?;
        Ok(sums)
    }

    /// The libraries of one size of tasks.
    fn libraries(&self, arguments: &Arguments, payload: usize) -> Result<Vec<ByHand>> {
        // Twice the mean is the most that a rank has, and the most that an imbalance of any plan can leave.
        let room = 2 * arguments.mean + 2;
        let paths = arguments.by_hand.iter().chain(&arguments.zoltan);
        paths.map(|path| ByHand::load(path, payload, room)).collect()
    }

    /// Names of the balancers whose topology has a node for each rank, and no more.
    fn fitting_balancers(&self) -> Vec<String> {
        let fits = |entry: &&balance::Entry| entry.default_topology(self.ranks).nodes() == self.ranks;
        let names = balance::without_places().filter(|entry| entry.name != "none").filter(fits).map(|entry| entry.name.to_string());
        names.chain([format!("direct{NATIVE}")]).collect()
    }

    fn contenders(&self, arguments: &Arguments) -> Result<Vec<Contender>> {
        let mut contenders = Vec::new();
        if arguments.by_hand.is_some() {
            contenders.extend(WAYS.map(|(name, way)| Contender::InC { name, way, library: 0 }));
        }
        if arguments.zoltan.is_some() {
            contenders.push(Contender::InC { name: ZOLTAN, way: 0, library: usize::from(arguments.by_hand.is_some()) });
        }
        let names = arguments.balancers.clone().unwrap_or_else(|| self.fitting_balancers());
        for name in names {
            contenders.push(Contender::ours(&name, &self.world)?);
        }
        Ok(contenders)
    }

    /// Measures all contenders round by round, so that a drifting machine treats all alike; each round in another order, so that no contender always
    /// follows the same one.
    fn launch(mut self, arguments: &Arguments) -> Result<()> {
        let contenders = self.contenders(arguments)?;
        let plain = self.plain.clone();
        for &payload in &arguments.payloads {
            let mut libraries = self.libraries(arguments, payload)?;
            let mut times: Vec<Vec<Times>> = vec![Vec::new(); contenders.len()];
            let mut sums = Vec::new();
            let mut order: Vec<usize> = (0..contenders.len()).collect();
            let mut rng = ChaCha8Rng::seed_from_u64(arguments.seed);
            for round in 0..=arguments.rounds {
                order.shuffle(&mut rng);
                let sum = self.sums(&plain)?;
                let round_times = order.iter().map(|&at| Ok((at, self.phase(&contenders[at], payload, &mut libraries)?)));
                let round_times = round_times.collect::<Result<Vec<_>>>()?;
                // Ranks connect in the first round.
                if round > 0 {
                    sums.push(sum);
                    round_times.into_iter().for_each(|(at, time)| times[at].push(time));
                }
            }
            if self.me == 0 {
                self.say(arguments, payload, &contenders, &times, &sums)?;
            }
        }
        Ok(())
    }

    /// The medians of a launch, and the medians of the ratios within a round.
    fn say(&self, arguments: &Arguments, payload: usize, contenders: &[Contender], times: &[Vec<Times>], sums: &[Sums]) -> Result<()> {
        let wholes: Vec<Vec<f64>> = times.iter().map(|times| times.iter().map(|times| times.whole).collect()).collect();
        let of_sums: [Vec<f64>; SUMS.len()] = std::array::from_fn(|way| sums.iter().map(|sum| sum[way]).collect());
        let [of_mpi, tested, own, _] = &of_sums;
        let case = |name: &str| Launch { ranks: self.ranks, payload, mean: arguments.mean, rounds: arguments.rounds, ..Launch::of(name) };
        for (at, contender) in contenders.iter().enumerate() {
            let information: Vec<f64> = times[at].iter().map(|times| times.information).collect();
            let is_ours = matches!(contender, Contender::Ours { .. });
            let over = WAYS.map(|(name, _)| {
                let other = contenders.iter().position(|other| other.name() == name)?;
                median(&ratios(&wholes[at], &wholes[other]))
            });
            let launch = Launch {
                ms: median(&wholes[at]),
                information: median(&information).filter(|_| is_ours),
                over_reduce: median(&ratios(&information, of_mpi)).filter(|_| is_ours),
                over,
                ..case(contender.name())
            };
            println!("{launch}");
        }
        for (name, way) in SUMS.iter().zip(&of_sums) {
            let over = [tested, own].map(|other| median(&ratios(way, other)));
            println!("{}", Launch { ms: median(way), over_reduce: median(&ratios(way, of_mpi)), over, ..case(name) });
        }
        Ok(())
    }

    /// One phase, the first that this process does but for those that are not measured.
    fn first(mut self, name: &str, arguments: &Arguments) -> Result<()> {
        let payload = arguments.payloads[0];
        let mut libraries = self.libraries(arguments, payload)?;
        let contender = self.contenders(arguments)?.into_iter().find(|contender| contender.name() == name);
        let contender = contender.ok_or_else(|| Error::usage(format!("--first {name}: nobody has this name")))?;
        for _ in 0..arguments.unmeasured {
            self.phase(&contender, payload, &mut libraries)?;
        }
        let took = self.phase(&contender, payload, &mut libraries)?.whole;
        if self.me == 0 {
            println!("first {name} {} {payload} {took}", self.ranks);
        }
        Ok(())
    }
}

/// Our barrier, twice, before MPI's: a phase in C and one of ours begin with the same code of both in the processor's caches. With MPI's
/// alone, ours begins with nothing of its own there after the tasks were looked at, and with MPI's there for the phase in C.
async fn line_up(node: &Node) -> Result<()> {
    let apart = node.epoch(equipoise::node::epochs::APART);
    for _ in 0..2 {
        apart.everyone().barrier(&apart).await?;
    }
    Ok(())
}

/// Returns `tasks` tasks in the form of `tasks.h`: every whole word is the task's number.
fn records(first: u64, tasks: u64, payload: usize) -> Vec<u8> {
    let mut records = Vec::with_capacity(tasks as usize * payload);
    for id in first..first + tasks {
        for _ in 0..payload / 8 {
            records.extend_from_slice(&id.to_ne_bytes());
        }
        records.resize(records.len() + payload % 8, 0);
    }
    records
}

/// Content of a work queue, and whether its payloads are unchanged.
fn examine(queue: &WorkQueue, found: &mut Found) {
    for segment in queue.segments() {
        let size = segment.size().max(1);
        for (id, record) in (segment.first()..).zip(segment.payload().chunks_exact(size)) {
            let words = record.chunks_exact(8);
            found.wrong += words.remainder().iter().filter(|byte| **byte != 0).count() as u64;
            found.wrong += words.filter(|word| *word != id.to_ne_bytes()).count() as u64;
            found.tasks += 1;
            found.ids = found.ids.wrapping_add(id);
            found.squares = found.squares.wrapping_add(id * id);
        }
    }
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

fn median(samples: &[f64]) -> Option<f64> {
    statistics::median(samples).map(|estimate| estimate.value)
}
