//! `equipoise advise`: whether balancing pays.

use std::time::Duration;

use clap::Args;
use equipoise::advice::Question;
use equipoise::topology::{MAX_NODES, PlacementRule};
use equipoise::transport::launcher;
use equipoise::transport::sim::{Model, Network};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::advise::AdviceRecord;
use equipoise_lab::experiment::{self, ProbeSpec, settle};
use equipoise_lab::report::{advise as report, json};
use equipoise_lab::workload::{LoadPattern, memory, network};

use super::launch::{self, Ending};
use super::options::{Placements, SimHosts, WorldOptions, any_bytes, check_standard_input, seconds};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  equipoise advise --loads 19,11,2,9,0,9,10,4 --task-seconds 0.001
  equipoise advise --loads hot:total=1000 --task-seconds 1e-4 --network cluster.toml
  equipoise advise --sim 64 --loads @loads.txt --task-seconds 0.01 --steps 100 --payload 4096
  mpirun -n 8 equipoise advise --loads poisson:mean=20 --task-seconds 0.001

The cost is that of each balancer's phase, simulated on the network; the gain is the time of the
slowest rank before less that after, in each step. Under mpirun without --network the network is
measured first, in a moment.";

/// Predict whether balancing pays: the best balancer, its gain and cost, and the load from which it pays
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Number of tasks on each rank: 19,11,2 | @FILE | uniform:mean=10 | hot:total=1000,node=0 | scattered:total=1000 |
    /// poisson:mean=10 | sparse:p=0.2,max=100
    #[arg(long, value_name = "LOADS", value_parser = any_bytes())]
    loads: String,

    /// Seconds that a task takes on a rank of speed 1. Speeds are those of the network's file, where `probe` has put 1 for the mean; without
    /// a file all are 1
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    task_seconds: f64,

    /// Number of steps for which the new loads last
    #[arg(long, value_name = "STEPS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,

    /// Bytes that each task carries
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    payload: u64,

    /// Balancers to choose from, A,B:key=value,.. [default: all that fit]
    #[arg(long, value_name = "NAMES")]
    balancer: Option<String>,

    /// Topology for all balancers, as in `equipoise balance`; those that can't run on it are left out [default: each balancer's own; for twa
    /// also tree:hosts, and up to 64 ranks one without virtual nodes, if the own one has some]
    #[arg(long, value_name = "TOPOLOGY", value_parser = any_bytes())]
    topology: Option<String>,

    /// Number of ranks [default: under mpirun the number started, otherwise that of the list of loads or of the network's file]
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_NODES)), help_heading = "Ranks")]
    sim: Option<u32>,

    /// Network: FILE.toml from `equipoise probe --write` (- for standard input), or zero | switched | hops, the last two with
    /// :latency=20us,per_byte=2.7ns,contention [default: under mpirun it is measured, otherwise switched:latency=20us,per_byte=2.7ns]
    #[arg(long, value_name = "MODEL", value_parser = any_bytes(), help_heading = "Ranks")]
    network: Option<String>,

    /// Number of hosts of the ranks, filled in blocks (HOSTS) or in turn (HOSTS,cyclic) [default: 1]
    #[arg(long, value_name = "HOSTS", help_heading = "Ranks")]
    sim_hosts: Option<SimHosts>,

    /// Seed of all random numbers; the same seed gives the same loads
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Ranks")]
    seed: u64,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,
}

/// The network of the question.
struct Given {
    network: Network,
    name: String,
    measured: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    let texts = [
        ("--loads", Some(arguments.loads.as_str())),
        ("--topology", arguments.topology.as_deref()),
        ("--network", arguments.network.as_deref()),
    ];
    check_standard_input(texts)?;
    let loads = LoadPattern::parse(&arguments.loads)?;
    if arguments.sim.is_none() && launcher::rank(launcher::variable).is_some() {
        return on_real_ranks(arguments, &loads);
    }
    launch::meet()?;
    if !launch::speaks() {
        return Ok(());
    }
    Ok(alone(arguments, &loads)?)
}

/// Answers without ranks: the options have all that is needed.
fn alone(arguments: &Arguments, loads: &LoadPattern) -> Result<()> {
    let given = given(arguments)?;
    let listed = loads.listed()?;
    let of_file = given.as_ref().and_then(|given| match &given.network {
        Network::Measured(measured) => Some(measured.hosts.ranks()),
        _ => None,
    });
    let listed = listed.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let ranks = arguments.sim.or(listed).or(of_file).ok_or_else(|| {
        Error::usage(format!(
            "--loads {}: for how many ranks? Say --sim RANKS, or --network FILE.toml, or give a list; or type mpirun -n RANKS before it",
            arguments.loads
        ))
    })?;
    if ranks == 0 || ranks > MAX_NODES {
        return Err(Error::usage(format!("--loads: there are {ranks} numbers, but ranks are from 1 to {MAX_NODES}")));
    }
    memory::check_simulated(ranks, memory::available())?;
    let assumed = || Given { network: Network::default(), name: Network::default().to_string(), measured: false };
    let given = fitted(given.unwrap_or_else(assumed), ranks)?;
    answer(arguments, loads, ranks, given)
}

/// Answers on the ranks that were started; their network is measured if none is given.
fn on_real_ranks(arguments: &Arguments, loads: &LoadPattern) -> Result<(), Ending> {
    let options = WorldOptions {
        sim: None,
        network: None,
        predicts: false,
        survives: false,
        nap: None,
        sim_hosts: None,
        placement: Placements::One(PlacementRule::Hosts),
        seed: arguments.seed,
        timeout: Duration::from_secs(300),
    };
    launch::within(&options, |world| {
        let ranks = world.ranks();
        let first = world.is_first();
        let given = settle::agree(world, if first { given(arguments) } else { Ok(None) })?;
        let measures = settle::from_first(world, || Ok(given.is_none()))?;
        let given = match measures {
            false => given,
            true => experiment::probe(world, &ProbeSpec::quick(), "measured now", arguments.seed)?.map(|record| Given {
                network: record.measured.network(),
                name: "measured now".into(),
                measured: true,
            }),
        };
        let told = match given {
            Some(given) => fitted(given, ranks).and_then(|given| answer(arguments, loads, ranks, given)),
            None => Ok(()),
        };
        settle::agree(world, told)
    })
}

/// The network of `--network`; its file is read.
fn given(arguments: &Arguments) -> Result<Option<Given>> {
    let Some(name) = arguments.network.as_deref() else { return Ok(None) };
    let given = match network::is_file(name) {
        true => {
            if arguments.sim_hosts.is_some() {
                return Err(Error::usage(format!("--sim-hosts: the hosts are those of --network {name}")));
            }
            Given { network: network::read(name)?.network(), name: name.into(), measured: true }
        }
        false => {
            let network = network::model(name)?;
            Given { name: network.to_string(), network, measured: false }
        }
    };
    Ok(Some(given))
}

/// The same for a number of ranks.
fn fitted(given: Given, ranks: u32) -> Result<Given> {
    match &given.network {
        Network::Measured(measured) => Ok(Given { network: measured.on(ranks)?.network(), ..given }),
        _ => Ok(given),
    }
}

fn answer(arguments: &Arguments, loads: &LoadPattern, ranks: u32, given: Given) -> Result<()> {
    let drawn = loads.draw_by_rank(ranks, arguments.seed)?;
    let mut question = Question::new(&drawn, arguments.payload, arguments.task_seconds, &given.network);
    question.steps = arguments.steps;
    question.hosts = arguments.sim_hosts.map(|hosts| hosts.of(ranks)).transpose()?;
    question.balancers = arguments.balancer.as_deref().map(equipoise::balance::listed).unwrap_or_default();
    question.seed = arguments.seed;
    if let Some(topology) = arguments.topology.as_deref() {
        let model = Model { network: question.network.clone(), hosts: question.hosts.clone(), ..Model::default() };
        question.topology = Some(settle::topology(&mut World::simulated(ranks, model), topology)?);
    }
    let record = AdviceRecord::of(&question, loads.to_string(), given.name, given.measured)?;
    match arguments.output {
        Output::Human => terminal::print(|out| out.write_all(report::text(&record, terminal::width()).as_bytes())),
        Output::Json => terminal::print(|out| json::line(out, &record)),
        Output::Quiet => Ok(()),
    }
}
