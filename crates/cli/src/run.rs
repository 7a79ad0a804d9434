//! `equipoise run`: a workload of tasks that spawn tasks, or of independent ones.

mod independent;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use equipoise::schedule::{self, Chosen};
use equipoise::spec::Spec;
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::run::{RunSpec, SchedulerContender};
use equipoise_lab::experiment::{self, Environment, Interruption, RunRecord, handicap as slowing, ranking, settle};
use equipoise_lab::report::columns::legend;
use equipoise_lab::report::{csv, json, run, run_page, trace};
use equipoise_lab::workload::{self, graphs};

use super::launch::{self, Ending};
use super::options::{GraceOption, WorldOptions, any_bytes, check_standard_input, handicap, left_out};
use super::output::{Files, Target};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 equipoise run --workload queens:n=14
  mpirun -n 8 equipoise run --scheduler steal --workload uts:tree=T1 --workers 2
  mpirun -n 16 equipoise run --compare hierarchical,neighbour,static --workload tree:roots=32
  equipoise run --sim 256 --scheduler neighbour:age=0 --workload stream:utilisation=0.7 --output json
  equipoise run --sim 64 --compare --workload fibonacci:n=30 --csv result.csv
  mpirun -n 8 equipoise run --compare sash,dss,selfsched:rule=awf --workload costs:sigma_cc=100 --speeds 1,1,1,1,2,2,4,4

A line of the comparison is one scheduler:
{COLUMNS}The sequential time is that of a plain program without a runtime, where there is one and ranks are real; otherwise the sum of the tasks' times.
The last sentence names the fastest scheduler, of those that are statistically tied the simplest, or
says that none is faster than one worker. Times are compared by their ratios within a round, all
comparisons together with 95 % confidence.";

fn examples() -> String {
    EXAMPLES.replace("{COLUMNS}", &legend::<RunRecord>())
}

/// Run a workload of spawning or of independent tasks under one scheduler, or compare several
#[derive(Args)]
#[command(after_help = examples())]
pub struct Arguments {
    /// The scheduler, NAME[:key=value,..]; `equipoise list` shows all [default: hierarchical, for independent tasks sash]
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,

    /// Schedulers to compare on the same workload, A,B:key=value,..; without names, all that fit
    #[arg(long, value_name = "NAMES", conflicts_with = "scheduler", num_args = 0..=1, default_missing_value = "")]
    compare: Option<String>,

    /// The workload, NAME[:key=value,..]; `equipoise list` shows all
    #[arg(long, value_name = "NAME", default_value = "queens:n=12", value_parser = any_bytes())]
    workload: String,

    /// Topology for all schedulers, as in `equipoise balance` [default: each scheduler's own]
    #[arg(long, value_name = "TOPOLOGY", value_parser = any_bytes())]
    topology: Option<String>,

    /// Speed of each rank, as in 1,1,2,4, emulated; in simulation, or for independent tasks. Tasks that sleep take the same time on all
    /// ranks [default: in simulation those of --network's file, otherwise all are alike]
    #[arg(long, value_name = "SPEEDS", value_delimiter = ',', value_parser = independent::speed)]
    speeds: Vec<f64>,

    /// Number of tasks that a rank executes at a time
    #[arg(long, value_name = "WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,

    /// Duty of the host of a hierarchical scheduler, apart from scheduling [default: shared]
    #[arg(long, value_enum, value_name = "DUTY")]
    host: Option<Duty>,

    /// Rank of the host of a hierarchical scheduler, to which computations are submitted and answers return [default: 0]
    #[arg(long, value_name = "RANK")]
    host_rank: Option<u32>,

    /// Duty of the medians of a hierarchical scheduler, apart from scheduling [default: shared]
    #[arg(long, value_enum, value_name = "DUTY")]
    medians: Option<Duty>,

    /// Number of runs; each uses the next seed, and the mean is reported. Schedulers take turns in another order each time; below six
    /// rounds nothing is ranked (more schedulers need more rounds) [default: 1; with --compare on real ranks, except for streams, 9 for two
    /// schedulers to 15 for ten]
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    /// Slow the last scheduler's tasks down by this factor, to test the measurement (scripts/fairness); on real ranks
    #[arg(long, value_name = "TIMES", hide = true, conflicts_with = "sim", value_parser = handicap)]
    handicap: Option<f64>,

    #[command(flatten)]
    world: WorldOptions,

    #[command(flatten)]
    grace: GraceOption,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,

    /// Also write the results into this file as comma-separated values
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    csv: Option<PathBuf>,

    /// Write every task and message of the first round into this file, in Chrome's trace format (for ui.perfetto.dev)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    trace: Option<PathBuf>,

    /// Also write table.csv, records.jsonl and report.html (with pictures) into this folder
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,
}

/// Duty of a node that schedules, apart from scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Duty {
    /// No tasks; only the host expands a few roots (not those of a stream)
    Dedicated,
    /// Tasks, like all other nodes
    Shared,
}

impl Duty {
    fn name(self) -> &'static str {
        match self {
            Duty::Dedicated => "dedicated",
            Duty::Shared => "shared",
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    let texts = [
        ("--workload", Some(arguments.workload.as_str())),
        ("--topology", arguments.topology.as_deref()),
        ("--network", arguments.world.network.as_deref()),
    ];
    check_standard_input(texts)?;
    if let Some(workload) = workload::independent::find(&arguments.workload)? {
        return independent::run(arguments, workload);
    }
    let schedulers = arguments.schedulers()?;
    let workload = graphs::find(&arguments.workload)?;
    launch::within_until_told(&arguments.world, arguments.workers, &arguments.grace, |world| {
        let files = settle::agree(world, arguments.files(world.is_first()))?;
        if let Some(world) = world.as_simulation()
            && workload.entry.facts.has_own_network
            && arguments.world.network.is_none()
        {
            world.model().network = Network::Zero;
        }
        independent::set_speeds(world, &arguments.speeds)?;
        let mut contenders = arguments.contenders(world, schedulers)?;
        if let (Some(times), Some(last)) = (arguments.handicap, contenders.last_mut()) {
            slowing::slow_down(last, times);
        }
        let repeat = arguments.rounds(world, contenders.len(), workload.entry.facts.has_own_network);
        let spec = RunSpec {
            contenders,
            workload,
            workers: arguments.workers,
            repeat,
            seed: arguments.world.seed,
            trace: arguments.trace.is_some() || arguments.report.is_some(),
        };
        let progress = terminal::Progress::begin(arguments.output != Output::Quiet, "runs");
        let records = experiment::run(world, &spec, |done, of, now| progress.at(done, of, now))?;
        let reached = progress.reached();
        drop(progress);
        arguments.end(world, &records, reached, files)
    })
}

impl Arguments {
    /// Number of rounds. Schedulers are ranked by several rounds; a stream takes long, and a simulated round repeats exactly.
    fn rounds(&self, world: &World, contenders: usize, is_stream: bool) -> Option<u32> {
        let is_ranked = self.compare.is_some() && !world.is_simulated() && !is_stream;
        self.repeat.or_else(|| is_ranked.then(|| ranking::rounds_advised(contenders)))
    }

    fn schedulers(&self) -> Result<Vec<Chosen>> {
        let names = match self.compare.as_deref() {
            None => vec![self.scheduler.clone().unwrap_or_else(|| "hierarchical".into())],
            Some("") => schedule::ALL.iter().map(|entry| entry.name.to_string()).collect(),
            Some(names) => schedule::listed(names),
        };
        let mut specs = names.iter().map(|name| Spec::parse("scheduler", name)).collect::<Result<Vec<_>, _>>()?;
        let duties = [("--host", "host", self.host), ("--medians", "medians", self.medians)];
        let duties = duties.map(|(option, key, duty)| (option, key, duty.map(|duty| duty.name().to_string())));
        let host_rank = ("--host-rank", "host_rank", self.host_rank.map(|rank| rank.to_string()));
        for (option, key, value) in duties.into_iter().chain([host_rank]) {
            let Some(value) = value else { continue };
            let mut hierarchical = specs.iter_mut().filter(|spec| spec.name() == "hierarchical").peekable();
            if hierarchical.peek().is_none() {
                let why = format!("{option} {value}: only --scheduler hierarchical has such nodes");
                return Err(Error::usage(why));
            }
            hierarchical.for_each(|spec| spec.set(key, &value));
        }
        specs.iter().map(schedule::make).collect()
    }

    fn files(&self, writes: bool) -> Result<Files> {
        if !writes {
            return Ok(Files::default());
        }
        Files::create(self.csv.as_ref(), self.report.as_ref(), self.trace.as_ref())
    }

    /// The schedulers that can run, each on its topology.
    fn contenders(&self, world: &mut World, schedulers: Vec<Chosen>) -> Result<Vec<SchedulerContender>> {
        let given = self.topology.as_deref().map(|spec| settle::topology(world, spec)).transpose()?;
        if let Some(rank) = self.host_rank {
            settle::check_rank("host-rank", RankId::new(rank), world.ranks())?;
        }
        let placement = self.world.placement.one()?;
        let (mut contenders, mut objections) = (Vec::new(), Vec::new());
        for scheduler in schedulers {
            let topology = given.clone().unwrap_or_else(|| scheduler.topology_on(&world.network()));
            match scheduler.objection(&topology) {
                Some(objection) => objections.push(objection),
                None => contenders
                    .push(SchedulerContender::new(scheduler, Overlay::placed(topology, world.hosts(), placement, self.world.seed)?)?),
            }
        }
        match objections.first() {
            Some(objection) if contenders.is_empty() => return Err(objection.clone().into()),
            Some(_) if self.output == Output::Human => terminal::remark(&left_out(&objections)),
            _ => {}
        }
        Ok(contenders)
    }

    /// Shows what was finished, of all that was to be done: pairs of the number of runs.
    fn end(&self, world: &World, records: &[RunRecord], reached: (u64, u64), files: Files) -> Result<()> {
        if !world.is_first() {
            return Ok(());
        }
        match Interruption::of(world, reached.0, reached.1).filter(|_| records.is_empty()) {
            Some(interruption) => terminal::interrupted(self.output, &interruption, "runs"),
            None => self.show(records, &launch::environment(world), files),
        }
    }

    fn show(&self, records: &[RunRecord], environment: &Environment, files: Files) -> Result<()> {
        let width = terminal::width();
        match self.output {
            Output::Human if self.compare.is_some() => terminal::print(|out| out.write_all(run::compare(records, width).as_bytes()))?,
            Output::Human => {
                terminal::print(|out| records.iter().try_for_each(|record| out.write_all(run::run(record, width).as_bytes())))?;
            }
            Output::Json => terminal::print(|out| records.iter().try_for_each(|record| json::line(out, record)))?,
            Output::Quiet => {}
        }
        if let Some(target) = files.trace {
            target.write(|out| trace::runs(out, records))?;
        }
        if let Some(target) = files.csv {
            target.write(|out| csv::run(out, records))?;
        }
        let Some(report) = files.report else { return Ok(()) };
        report.table.write(|out| csv::run(out, records))?;
        report.records.write(|out| records.iter().try_for_each(|record| json::line(out, record)))?;
        Target::create("--report", &report.page)?.write(|out| run_page::write(out, environment, records))
    }
}
