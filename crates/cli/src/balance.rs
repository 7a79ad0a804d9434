//! `equipoise balance`: one balancing phase.

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use equipoise::Result;
use equipoise::topology::Overlay;
use equipoise::transport::world::World;
use equipoise_lab::experiment::{self, BalanceRecord, BalanceSpec, Environment, Tasks, settle};
use equipoise_lab::report::{csv, html, json, table, trace};
use equipoise_lab::workload::{LoadPattern, Pins, PowerPattern, TaskSource, WeightPattern};

use super::launch::{self, Ending};
use super::options::{RuleOptions, TaskOptions, WorldOptions, any_bytes, check_links, check_standard_input, remark_on_links};
use super::output::{Files, Target, check_trace};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 equipoise balance --balancer direct --loads hot:total=10000 --payload 4096
  equipoise balance --sim 8 --loads 19,11,2,9,0,9,10,4
  equipoise balance --sim 13 --balancer mwa --topology mesh:4x4 --loads poisson:mean=100
  equipoise balance --sim 8 --balancer direct --powers uniform:1..10 --sim-hosts 2
  equipoise balance --sim 1024 --balancer dem --loads sparse:p=0.1,max=1000 --output json";

/// Run one balancing phase and report moved tasks and costs
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The balancer, NAME[:key=value,..]; `equipoise list` shows all. from:FILE carries out a partition made by another program (METIS,
    /// KaHIP, Zoltan): one line per task with its rank, or with its number and its rank
    #[arg(long, value_name = "NAME", default_value = "cwa", value_parser = any_bytes())]
    balancer: String,

    /// Topology: hypercube[:D] | mesh[:RxC[xK]] | torus[:..] | tree[:binary | :kary=K | :hosts | :parents=-,0,1,1,..] | grid[:PxQx..] |
    /// line | ring | complete | graph:FILE (one line `a b` per link, or METIS's format). Without a size it is fitted to the ranks, with
    /// virtual nodes if there are fewer ranks than nodes [default: the balancer's own]
    #[arg(long, value_name = "TOPOLOGY", value_parser = any_bytes())]
    topology: Option<String>,

    /// Number of tasks on each node of the topology before the phase: 19,11,2 | @FILE | uniform:mean=10 | hot:total=1000,node=0 |
    /// scattered:total=1000 | poisson:mean=10 | sparse:p=0.2,max=100 | zero. A list has a number for each rank's node, and may go on with one for each virtual node; patterns
    /// set the ranks [default: uniform:mean=10]
    #[arg(long, value_name = "LOADS", value_parser = any_bytes())]
    loads: Option<String>,

    /// Real tasks instead of loads. lbaf:DIR[,set=NAME][,phase=N]: task times of a real run in the format of DARMA's LBAF, one file per
    /// rank. FILE.csv: a table with the columns rank,work[,bytes,x,y,z] (- for standard input; with ,unit=us work is a time, also in ns, ms
    /// or s, and may have a fraction). The run's ranks are mapped to ranks in blocks, and loads are work (ns or the table's units).
    /// files:DIR: every file below DIR is a task with its bytes as payload (files ignored by .gitignore are left out); the files of a
    /// top-level folder start on one rank
    #[arg(long, value_name = "SOURCE", value_parser = any_bytes(), conflicts_with_all = ["loads", "payload", "weights", "pinned"])]
    tasks: Option<String>,

    /// Relative speed of each node: 3,4,5 | @FILE | uniform:1..10 | equal
    #[arg(long, value_name = "POWERS", default_value = "equal", value_parser = any_bytes())]
    powers: String,

    /// Payload of each task. With 0, tasks are ranges of numbers, so that 10^9 tasks on a node take no memory
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    payload: u64,

    #[command(flatten)]
    kind: TaskOptions,

    #[command(flatten)]
    rule: RuleOptions,

    /// Compute the minimum number of task-hops for any number of nodes (slow beyond 4,096)
    #[arg(long)]
    judge: bool,

    #[command(flatten)]
    world: WorldOptions,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,

    /// Also write table.csv (the nodes), records.jsonl (the result) and report.html into this folder
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,

    /// Write a timeline into this file, in Chrome's trace format (for ui.perfetto.dev): a row for each rank, messages as arrows
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    trace: Option<PathBuf>,
}

/// Parsed options, as far as they can be checked without ranks.
struct Request<'a> {
    arguments: &'a Arguments,
    loads: LoadPattern,
    powers: PowerPattern,
    weights: WeightPattern,
    pins: Pins,
    tasks: Option<TaskSource>,
    columns: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    let texts = [
        ("--balancer", Some(arguments.balancer.as_str())),
        ("--communications", arguments.rule.communications.as_deref()),
        ("--topology", arguments.topology.as_deref()),
        ("--loads", arguments.loads.as_deref()),
        ("--tasks", arguments.tasks.as_deref()),
        ("--powers", Some(arguments.powers.as_str())),
        ("--weights", Some(arguments.kind.weights.as_str())),
        ("--network", arguments.world.network.as_deref()),
    ];
    check_standard_input(texts)?;
    settle::check_balancer(&arguments.balancer)?;
    let (weights, pins) = arguments.kind.parse(arguments.world.seed)?;
    let request = Request {
        arguments,
        loads: arguments.loads.as_deref().map(LoadPattern::parse).transpose()?.unwrap_or_default(),
        powers: PowerPattern::parse(&arguments.powers)?,
        weights,
        pins,
        columns: arguments.rule.columns(&arguments.kind, arguments.tasks.as_deref())?,
        tasks: arguments.tasks.as_deref().map(TaskSource::parse).transpose()?,
    };
    launch::within(&arguments.world, |world| {
        let files = match world.is_first() {
            true => Files::create(None, arguments.report.as_ref(), arguments.trace.as_ref()),
            false => Ok(Files::default()),
        };
        let files = settle::agree(world, files)?;
        let spec = request.prepare(world)?;
        let used = arguments.rule.use_collectives(world)?;
        let record = experiment::balance(world, &spec)?;
        used.iter().for_each(|used| arguments.rule.remark_on_collectives(world, used, arguments.output));
        let record = record.map(|record| match &used {
            Some(used) => record.with_collectives(used.native),
            None => record,
        });
        let environment = launch::environment(world);
        record.map_or(Ok(()), |record| show(arguments.output, &record, &environment, files))
    })
}

impl Request<'_> {
    fn prepare(&self, world: &mut World) -> Result<BalanceSpec> {
        let (ranks, seed) = (world.ranks(), self.arguments.world.seed);
        let balancer = Rc::new(settle::balancer(world, &self.arguments.balancer)?);
        let entry = balancer.entry;
        let topology = match &self.arguments.topology {
            Some(spec) => settle::topology(world, spec)?,
            None => entry.topology_on(&world.network()),
        };
        if let Some(objection) = entry.objection(&topology) {
            return Err(objection.into());
        }
        if self.arguments.trace.is_some() {
            check_trace(&topology)?;
        }
        self.arguments.rule.check(&balancer)?;
        self.arguments.kind.check(&balancer)?;
        let capacity = self.arguments.rule.capacity(ranks)?;
        let nodes = topology.nodes();
        let overlay = Overlay::placed(topology, world.hosts(), self.arguments.world.placement.one()?, seed)?;
        let mut given_powers = None;
        let powers = settle::from_first(world, || {
            let (powers, given) = self.powers.draw(nodes, ranks, seed)?;
            given_powers = (self.powers != PowerPattern::Equal).then_some(given);
            Ok(powers)
        })?;
        let tasks = match &self.tasks {
            Some(source) => Tasks::of_columns(world, source, &self.columns)?,
            None => {
                let loads = settle::from_first(world, || self.loads.draw(nodes, ranks, seed))?;
                let count = loads.iter().sum();
                let weights = settle::from_first(world, || self.weights.draw(count, seed))?;
                Tasks::weighing(world, loads, self.arguments.payload, weights, self.pins)?
            }
        };
        balancer.check_tasks(tasks.count())?;
        let tasks = settle::linked(world, tasks, self.arguments.rule.communications.as_deref())?;
        check_links(&balancer, &tasks)?;
        let tasks = match capacity {
            Some(capacity) => tasks.within(capacity),
            None => tasks,
        };
        remark_on_links(world, &overlay.topology, self.arguments.output);
        let wants_moves = self.arguments.output == Output::Json || self.arguments.report.is_some();
        Ok(BalanceSpec {
            balancer,
            overlay,
            tasks,
            powers,
            given_powers,
            seed,
            moves: wants_moves,
            optimum: self.arguments.judge,
            trace: self.arguments.trace.is_some(),
            plain: self.arguments.rule.plain,
        })
    }
}

fn show(output: Output, record: &BalanceRecord, environment: &Environment, files: Files) -> Result<()> {
    match output {
        Output::Human => terminal::print(|out| out.write_all(table::balance(record).as_bytes()))?,
        Output::Json => terminal::print(|out| json::line(out, record))?,
        Output::Quiet => {}
    }
    if let (Some(target), Some(trace)) = (files.trace, &record.phase.trace) {
        target.write(|out| trace::phases(out, &[trace]))?;
    }
    let Some(report) = files.report else { return Ok(()) };
    report.table.write(|out| csv::balance(out, record))?;
    report.records.write(|out| json::line(out, record))?;
    Target::create("--report", &report.page)?.write(|out| html::balance(out, environment, record))
}
