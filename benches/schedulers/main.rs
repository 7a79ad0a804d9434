//! Throughput of schedulers on real ranks, compared with what the processors can do at all: every round runs one independent copy of the sequential
//! program per processor at once (the ceiling), and each scheduler, in another order, in one process.
//!
//! Needs mpirun; `scripts/bench --schedulers` builds and runs it.
//!
//! ```text
//! schedulers trees|queens|empty|costs [--rounds N] [--seed 1] [--workloads A;B] [--schedulers A;B]
//! ```

mod costs;
mod empty;

use std::sync::Arc;
use std::time::Instant;

use equipoise::node::{self, Node};
use equipoise::schedule::{self, Chosen, Options};
use equipoise::topology::{Overlay, RankId, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::statistics::{self, Estimate};
use equipoise_lab::workload::graphs::{self, Number, Prepared, Setting};

struct Arguments {
    part: String,
    rounds: usize,
    seed: u64,
    workloads: Vec<String>,
    schedulers: Vec<String>,
}

/// Schedulers that take turns unless others are asked for: those that divide a task that is being executed, and those that move whole ones.
const SCHEDULERS: [&str; 6] = ["steal", "rid", "gde", "neighbour", "hierarchical", "random"];

fn main() {
    if let Err(why) = arguments().and_then(|arguments| run(&arguments)) {
        eprintln!("schedulers: {why}");
        std::process::exit(why.exit_status());
    }
}

fn arguments() -> Result<Arguments> {
    let mut found = Arguments { part: String::new(), rounds: 9, seed: 1, workloads: Vec::new(), schedulers: Vec::new() };
    // Cargo's own, as in `cargo bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let listed = |list: String| list.split(';').map(str::to_string).collect();
    while let Some(word) = words.next() {
        if !word.starts_with("--") {
            found.part = word;
            continue;
        }
        let value = words.next().ok_or_else(|| Error::usage(format!("{word} needs a value")))?;
        let number = || value.parse::<u64>().map_err(|_| Error::usage(format!("{word} {value}: it is not a number")));
        match word.as_str() {
            "--rounds" => found.rounds = number()?.max(1) as usize,
            "--seed" => found.seed = number()?,
            "--workloads" => found.workloads = listed(value),
            "--schedulers" => found.schedulers = listed(value),
            _ => return Err(Error::usage(format!("there is no option {word}"))),
        }
    }
    if found.schedulers.is_empty() {
        found.schedulers = SCHEDULERS.map(str::to_string).into();
    }
    Ok(found)
}

fn run(arguments: &Arguments) -> Result<()> {
    let options = mpi::Options::program().with_seed(arguments.seed);
    let Some(world) = mpi::World::launched(options)? else {
        println!("schedulers: needs mpirun; run scripts/bench --schedulers");
        return Ok(());
    };
    let mut world = World::from(world);
    let defaults = |workloads: &[&str]| match arguments.workloads.is_empty() {
        true => workloads.iter().map(std::string::ToString::to_string).collect(),
        false => arguments.workloads.clone(),
    };
    match arguments.part.as_str() {
        "trees" => against_copies(&mut world, arguments, &defaults(&["uts:tree=T1", "uts:tree=T3"])),
        "queens" => against_copies(&mut world, arguments, &defaults(&["queens:n=14"])),
        "empty" => {
            let contenders = contenders(&world, &arguments.schedulers)?;
            empty::measure(&mut world, arguments.rounds, &contenders)
        }
        "costs" => costs::measure(&mut world, arguments.rounds),
        other => Err(Error::usage(format!("'{other}' is none of trees, queens, empty, costs"))),
    }
}

/// A scheduler on its own topology.
struct Contender {
    scheduler: Chosen,
    overlay: Overlay,
}

fn contenders(world: &World, names: &[String]) -> Result<Vec<Contender>> {
    let contender = |name: &String| {
        let scheduler = schedule::find(name)?;
        let overlay = Overlay::new(scheduler.default_topology(world.ranks()), world.hosts())?;
        Ok(Contender { scheduler, overlay })
    };
    names.iter().map(contender).collect()
}

/// All ranks next to each other.
fn complete(world: &World) -> Result<Overlay> {
    Ok(Overlay::new(Topology::parse("complete", world.ranks())?, world.hosts())?)
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

/// The order of a round: each begins one further on.
fn in_turn(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| (at + round) % count)
}

fn median(samples: &[f64]) -> Result<Estimate> {
    statistics::median(samples).ok_or_else(|| Error::Failed("nothing was measured".into()))
}

/// Formats `value (low - high)` with `digits` decimal places.
fn told(estimate: &Estimate, digits: usize) -> String {
    format!("{:.digits$} | {:.digits$} - {:.digits$}", estimate.value, estimate.low, estimate.high)
}

/// Times and rates of one workload, by round.
#[derive(Default)]
struct Samples {
    /// Runs of the sequential program a second, of all copies together.
    ceiling: Vec<f64>,
    /// Runs a second of each scheduler, and their part of the ceiling in the same round.
    rates: Vec<Vec<f64>>,
    parts: Vec<Vec<f64>>,
}

fn against_copies(world: &mut World, arguments: &Arguments, workloads: &[String]) -> Result<()> {
    let copies = processors().min(world.ranks());
    let plain = complete(world)?;
    let contenders = contenders(world, &arguments.schedulers)?;
    if world.is_first() {
        println!("\n### {} ranks, against {copies} copies of the sequential program at once, {} rounds\n", world.ranks(), arguments.rounds);
        println!("| workload | | a second | of the ceiling | 95 % |\n|---|---|--:|--:|--:|");
    }
    for name in workloads {
        let setting = Setting { seed: arguments.seed, processors: world.ranks(), is_simulated: false };
        let workload = graphs::find(name)?.prepare(&setting)?;
        let known = workload.known();
        let mut samples =
            Samples { rates: vec![Vec::new(); contenders.len()], parts: vec![Vec::new(); contenders.len()], ..Samples::default() };
        for round in 0..arguments.rounds {
            let mut rates = vec![0.0; contenders.len() + 1];
            for turn in in_turn(contenders.len() + 1, round) {
                rates[turn] = match contenders.get(turn) {
                    Some(contender) => scheduled(world, contender, &workload, known)?,
                    None => at_once(world, &plain, &workload, copies)?,
                };
            }
            let ceiling = rates[contenders.len()];
            samples.ceiling.push(ceiling);
            for (at, rate) in rates[..contenders.len()].iter().enumerate() {
                samples.rates[at].push(*rate);
                samples.parts[at].push(rate / ceiling);
            }
        }
        if world.is_first() {
            show(name, known, &contenders, &samples)?;
        }
    }
    Ok(())
}

fn show(name: &str, known: Option<Number>, contenders: &[Contender], samples: &Samples) -> Result<()> {
    // Trees are counted in their nodes, all else in whole runs.
    let (size, unit) = match known {
        Some(Number::Whole(nodes)) if name.starts_with("uts") => (nodes as f64 / 1e6, "M nodes"),
        _ => (1.0, "runs"),
    };
    println!("| {name} | the ceiling | {:.2} {unit} | 1 | |", size * median(&samples.ceiling)?.value);
    for (at, contender) in contenders.iter().enumerate() {
        let (rate, part) = (median(&samples.rates[at])?, median(&samples.parts[at])?);
        println!("| | {} | {:.2} {unit} | {} |", contender.scheduler.name, size * rate.value, told(&part, 3));
    }
    Ok(())
}

/// The rate of `copies` ranks that each run the sequential program at the same time, alone on their processor: no rank polls the network meanwhile.
/// The sum of their rates, on every rank.
fn at_once(world: &mut World, overlay: &Overlay, workload: &Prepared, copies: u32) -> Result<f64> {
    let rates = node::run(world, overlay, |node| {
        let workload = workload.clone();
        async move {
            let all = node.everyone();
            all.barrier(&node).await?;
            let mut rate = 0.0;
            if node.me() < copies {
                let began = Instant::now();
                workload.sequential().ok_or_else(|| Error::usage("the workload has no sequential program"))?;
                rate = 1.0 / began.elapsed().as_secs_f64();
            }
            all.all_reduce(&node, rate, |a, b| a + b).await
        }
    })?;
    first(rates)
}

/// Runs a second under a scheduler: one over the makespan, which ends when all know that all is done. On every rank.
fn scheduled(world: &mut World, contender: &Contender, workload: &Prepared, known: Option<Number>) -> Result<f64> {
    let mut options = Options::default();
    workload.adjust(&mut options);
    let rates = node::run(world, &contender.overlay, |node| {
        let (workload, scheduler, options) = (workload.clone(), contender.scheduler.clone(), options.clone());
        async move {
            apart(&node).await?;
            let outcome = workload.execute(node.clone(), scheduler, options).await?;
            if !outcome.nodes.is_empty() && known.is_some() && outcome.answer != known {
                return Err(Error::wrong_result(format!("the answer is {:?}, not {known:?}", outcome.answer)));
            }
            let rate = if outcome.nodes.is_empty() { 0.0 } else { 1e9 / outcome.makespan as f64 };
            // Reduced over all ranks in an epoch of its own, like the barrier.
            let told = node.epoch(TOLD);
            told.everyone().all_reduce(&told, rate, f64::max).await
        }
    })?;
    first(rates)
}

/// The epochs of what goes before a run and comes after it.
const APART: u32 = equipoise::node::epochs::APART;
const TOLD: u32 = 2;

/// All begin together.
async fn apart(node: &Node) -> Result<()> {
    let apart = node.epoch(APART);
    apart.everyone().barrier(&apart).await
}

fn first<T>(results: Vec<(u32, T)>) -> Result<T> {
    results.into_iter().next().map(|(_, result)| result).ok_or_else(|| Error::Failed("a rank without a node measures nothing".into()))
}

/// Result of a node in a run of a computation of this program: tasks, and the makespan in seconds at the host.
async fn executed<C: schedule::Computation>(
    node: Node,
    computation: Arc<C>,
    scheduler: Chosen,
    root: C::Task,
    options: Options,
) -> Result<Option<(u64, f64)>> {
    apart(&node).await?;
    let is_host = node.me() == node.overlay().placement.real_node_of(RankId::FIRST);
    let roots = if is_host { schedule::Roots::One(root) } else { schedule::Roots::Elsewhere };
    let outcome = schedule::execute(node, computation, scheduler, roots, options).await?;
    let tasks = outcome.nodes.iter().map(|node| node.tasks).sum();
    Ok((!outcome.nodes.is_empty()).then_some((tasks, outcome.makespan as f64 / 1e9)))
}
