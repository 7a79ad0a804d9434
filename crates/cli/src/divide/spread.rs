//! `equipoise divide --input FILE`: one big input divided over ranks.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use equipoise::spec::quantity::{self, BYTES, Prefixes};
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::sim;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_farm::starter;
use equipoise_lab::divisible::spread::Records;
use equipoise_lab::divisible::spread::plan::MOST_INSTALLMENTS;
use equipoise_lab::experiment::spread::{Distribution, LayeredForm, Sink, SpreadOutcome};
use equipoise_lab::experiment::{self, SpreadSpec, settle};
use equipoise_lab::report::{csv, json, spread, spread_page, trace};
use equipoise_lab::workload::kernels::{Answer, Computation, OkStatus, Reduce};

use super::destination::Destination;
use super::model::{self, ModelOptions};
use crate::launch::{self, Ending};
use crate::options::{WorldOptions, check_standard_input};
use crate::output::{Files, Target};
use crate::streams;
use crate::terminal::{self, Output, Progress};

/// Options that the model does not use.
pub const NAMES: [&str; 17] = [
    "kernel",
    "command",
    "sample",
    "raw",
    "print",
    "to",
    "reduce",
    "ok_status",
    "records",
    "distribution",
    "link_rate",
    "calibration",
    "baselines",
    "rate",
    "memory",
    "report",
    "trace",
];

/// A network on which a rank has one port.
const ONE_PORT: &str = "switched:contention";
/// A network on which all links of a rank work at once.
const ALL_PORTS: &str = "hops:contention";

/// Options for dividing an input over ranks.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct SpreadOptions {
    /// File to divide, - for standard input. It is read only on the host of rank 0 (--origin), and never held in memory as a whole.
    /// Compressed input (gzip or zstd) and input from a pipe is first copied into a temporary file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "w", "z", "tcp", "tcm", "startup", "load", "ports", "results", "source_idle", "links", "startups", "curves"])]
    pub input: Option<PathBuf>,

    /// Computation: count (lines, words and bytes as LC_ALL=C wc) | grep=RE (number of matching lines) | histogram (of bytes) |
    /// histogram=numbers (of lines, as sort | uniq -c) | checksum (BLAKE3, as b3sum)
    #[arg(long, value_name = "KERNEL", requires = "input", conflicts_with = "command")]
    kernel: Option<String>,

    /// Program that sh -c runs once for every share, with the share as its standard input. A program that neither reads, writes nor ends
    /// for --timeout seconds is killed, and so are processes that it leaves behind when it ends. Variables that give a process its rank are
    /// removed from its environment (OMPI_.., PMIX_.., PMI_.., ..)
    #[arg(long, value_name = "COMMAND", requires = "input")]
    command: Option<String>,

    /// Measure the speed of --command on each rank first, by repeated runs on a small sample of the input; their output is discarded, other
    /// side effects remain. Without it all ranks get equal shares, or shares in proportion to --speeds
    #[arg(long, requires = "command")]
    sample: bool,

    /// Do not decompress input that is compressed (gzip or zstd)
    #[arg(long, requires = "input")]
    raw: bool,

    /// With grep: print the matching lines, in the order of the input
    #[arg(long, requires = "kernel")]
    print: bool,

    /// Write the answer into this file instead of standard output; the file appears when it is complete
    #[arg(long, value_name = "FILE", requires = "input")]
    to: Option<PathBuf>,

    /// Combination of the outputs of --command: concat (in the order of the input) | sum (numbers, column by column) | a program that gets
    /// them on standard input [default: concat]
    #[arg(long, value_name = "REDUCE", requires = "command")]
    reduce: Option<String>,

    /// Exit statuses of --command that mean success; our exit status is the least of all shares' [default: 0]
    #[arg(long, value_name = "LIST", requires = "command")]
    ok_status: Option<OkStatus>,

    /// Record format, at whose borders shares may end: lines | nul | bytes=N (checksum has its own blocks)
    #[arg(long, value_name = "RECORDS", requires = "input", default_value = "lines")]
    records: String,

    /// Distribution of the shares: tree (along the topology, through one port, piece by piece) | hypercube (all ports at once, layer by
    /// layer, over all shortest routes, equal shares within a layer: Blazewicz and Drozdowski 1995; 2^d equal ranks) | mesh (the same on a
    /// mesh of equal ranks)
    #[arg(long, value_enum, value_name = "WAY", requires = "input", default_value = "tree")]
    distribution: DistributionOption,

    /// Emulated bandwidth of every link in bytes per second: on real ranks, with --distribution hypercube or mesh, a piece leaves when such
    /// a link would have carried it
    #[arg(long, value_name = "BYTES", requires = "input", conflicts_with = "sim", value_parser = bytes)]
    link_rate: Option<u64>,

    /// Read the costs of computing and sending from this file if it exists; otherwise measure them and write them into it
    #[arg(long, value_name = "FILE", requires = "input")]
    calibration: Option<PathBuf>,

    /// Also measure three baselines: equal shares, the originator alone, chunks on demand. Each runs --command on the whole input
    #[arg(long, requires = "input")]
    baselines: bool,

    /// Bytes per second of a rank of speed 1, with --speeds (real ranks then sleep for the rest of the time) or --sim (without --speeds
    /// the speeds are those of --network's file, or 1)
    #[arg(long, value_name = "BYTES", requires = "input", default_value = "100M", value_parser = bytes)]
    rate: u64,

    /// Maximum number of bytes of its share that a rank keeps in memory: 256M, 2e9; k, M, G and T are powers of 1000, with iB (2GiB) of 1024
    #[arg(long, value_name = "BYTES", requires = "input", default_value = "256M", value_parser = bytes)]
    memory: u64,

    /// Also write table.csv, records.jsonl and report.html (with pictures) into this folder
    #[arg(long, value_name = "DIR", requires = "input", help_heading = "Results")]
    report: Option<PathBuf>,

    /// Write a timeline of transfers and computation into this file, predicted and measured, in Chrome's trace format (for ui.perfetto.dev)
    #[arg(long, value_name = "FILE", requires = "input", help_heading = "Results")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DistributionOption {
    Tree,
    Hypercube,
    Mesh,
}

impl DistributionOption {
    /// The network that is simulated unless another one is asked for: that of its model.
    fn network(self) -> &'static str {
        match self {
            DistributionOption::Tree => ONE_PORT,
            DistributionOption::Hypercube | DistributionOption::Mesh => ALL_PORTS,
        }
    }

    /// The layered form, if it is one.
    fn form(self) -> Option<LayeredForm> {
        match self {
            DistributionOption::Tree => None,
            DistributionOption::Hypercube => Some(LayeredForm::Hypercube),
            DistributionOption::Mesh => Some(LayeredForm::Mesh),
        }
    }
}

/// A number of bytes above 0, in which k, M, G and T are powers of 1000.
fn bytes(text: &str) -> Result<u64, String> {
    quantity::bytes(text, Prefixes::Decimal).filter(|bytes| *bytes > 0).ok_or_else(|| format!("it must be {BYTES}, and not 0"))
}

/// Parsed options.
struct Request<'a> {
    options: &'a SpreadOptions,
    shared: &'a ModelOptions,
    world: &'a WorldOptions,
    output: Output,
    input: PathBuf,
    computation: Computation,
    records: Records,
    speeds: Option<Vec<f64>>,
}

/// Divides over the ranks that the options ask for.
pub fn run(input: PathBuf, options: &SpreadOptions, shared: &ModelOptions, world: &WorldOptions, output: Output) -> Result<(), Ending> {
    let texts = [
        ("--input", (input.as_os_str() == "-").then_some("-")),
        ("--topology", shared.topology.as_deref()),
        ("--network", world.network.as_deref()),
    ];
    check_standard_input(texts)?;
    let forbidden = [("--reduce", options.reduce.is_some()), ("--ok-status", options.ok_status.is_some()), ("--sample", options.sample)];
    if let Some((option, _)) = forbidden.iter().find(|(_, given)| *given && options.command.is_none()) {
        return Err(Error::usage(format!("{option}: only --command has outputs, statuses and samples")).into());
    }
    if options.print && options.kernel.is_none() {
        return Err(Error::usage("--print: only --kernel grep=RE finds lines to print").into());
    }
    let programs = [("--command", &options.command), ("--reduce", &options.reduce)];
    if let Some((option, _)) = programs.iter().find(|(_, program)| program.as_ref().is_some_and(|program| program.trim().is_empty())) {
        return Err(Error::usage(format!("{option}: the program is missing")).into());
    }
    let computation = match (&options.kernel, &options.command) {
        (Some(kernel), _) => Computation::parse(kernel, options.print)?,
        (None, Some(command)) => Computation::Command { command: command.clone(), ok: options.ok_status.clone().unwrap_or_default() },
        (None, None) => {
            return Err(Error::usage(
                "--input: what is to be computed on it? Say --kernel count|grep=RE|histogram|checksum or --command 'PROG ARGS'",
            )
            .into());
        }
    };
    if options.print && output == Output::Json {
        return Err(Error::usage("--print: lines are printed as they are, --output json has their number only").into());
    }
    if options.to.is_some() && output != Output::Human {
        return Err(Error::usage("--to: the answer goes into a file without --output json or quiet only").into());
    }
    let speeds = shared.speeds.as_deref().map(|speeds| model::list("--speeds", speeds)).transpose()?;
    if let Some(wrong) = speeds.iter().flatten().find(|speed| **speed <= 0.0) {
        return Err(Error::usage(format!("--speeds: {wrong} is no speed; they are above 0")).into());
    }
    if input.as_os_str() == "-" && launch::speaks() && streams::input_was_closed() {
        return Err(Error::usage("--input -: standard input is closed").into());
    }
    if let Some(form) = options.distribution.form() {
        check_layers(form, shared, speeds.as_deref())?;
    } else if options.link_rate.is_some() {
        return Err(Error::usage("--link-rate: links are emulated with --distribution hypercube or mesh").into());
    }
    let (option, origin) = shared.origin();
    if input.as_os_str() == "-" && origin != 0 && world.sim.is_none() {
        return Err(
            Error::usage(format!("--input -: only rank 0 has standard input, and --{option} {origin} is to have it; give a file")).into()
        );
    }
    let records = options.records.parse()?;
    let request = Request { options, shared, world, output, input, computation, records, speeds };
    if programs.iter().any(|(_, program)| program.is_some()) {
        // Before MPI: from then on this process must not fork.
        let failed = |why| Error::Failed(format!("--command: the helper that starts programs cannot be started: {why}"));
        starter::prepare().map_err(failed)?;
    }
    let mut status = 0;
    launch::within(world, |world| {
        status = request.carry_out(world)?;
        Ok(())
    })?;
    if status == 0 { Ok(()) } else { Err(Ending::Said(status)) }
}

/// Checks that the other options can be used with the layered distribution.
fn check_layers(form: LayeredForm, shared: &ModelOptions, speeds: Option<&[f64]>) -> Result<()> {
    if shared.installments.is_some_and(|number| number != 1) {
        return Err(Error::usage(format!("--installments: --distribution {} sends everything in one", form.name())));
    }
    match speeds.and_then(unequal) {
        Some((first, other)) => {
            let form = form.name();
            Err(Error::usage(format!("--speeds: --distribution {form} divides among equal ranks, and {other} is not {first}")))
        }
        None => Ok(()),
    }
}

/// The first speed, and the first other one; `None` if all are equal.
fn unequal(speeds: &[f64]) -> Option<(f64, f64)> {
    let first = *speeds.first()?;
    speeds.iter().find(|speed| **speed != first).map(|other| (first, *other))
}

impl Request<'_> {
    fn carry_out(&self, world: &mut World) -> Result<i32> {
        let (option, origin) = self.shared.origin();
        let origin = RankId::new(origin);
        settle::check_rank(option, origin, world.ranks())?;
        // The rank with the input has the answer, and all files.
        let leads = world.held().contains(&origin);
        terminal::begin(leads);
        if let Some(world) = world.as_simulation()
            && self.world.network.is_none()
        {
            // Links as the plan has them.
            world.model().network = sim::Network::parse(self.options.distribution.network())?;
        }
        let gantt = match &self.shared.gantt {
            Some(path) if leads => Target::create("--gantt", path).map(Some),
            _ => Ok(None),
        };
        let gantt = settle::agree(world, gantt)?;
        let files = match leads {
            true => Files::create(None, self.options.report.as_ref(), self.options.trace.as_ref()),
            false => Ok(Files::default()),
        };
        let files = settle::agree(world, files)?;
        let spec = self.spec(world)?;
        let kept = Rc::new(RefCell::new(Vec::new()));
        let destination = match (self.output, &self.options.to) {
            (Output::Human, Some(path)) if leads => Destination::file(path),
            (Output::Human, _) => Ok(Destination::Standard(0)),
            _ => Ok(Destination::Nowhere),
        };
        let destination = Rc::new(RefCell::new(settle::agree(world, destination)?));
        let progress = Arc::new(Progress::begin(self.output != Output::Quiet, "bytes"));
        let first = match self.input.as_os_str() == "-" {
            true => "reading standard input to its end, then measuring speeds and links",
            false => "measuring speeds and links",
        };
        progress.at(0, 0, first);
        let (reported, what) = (progress.clone(), if world.is_simulated() { "all shares" } else { "the share of rank 0" });
        let report = Arc::new(move |done, of| reported.at(done, of, what));
        let outcome = experiment::spread(world, &spec, self.sink(kept.clone(), destination.clone()), report)?;
        drop(progress);
        let Some(SpreadOutcome { answer, record }) = outcome else { return Ok(0) };
        let status = match &answer {
            Answer::Written { status, .. } => *status,
            _ => 0,
        };
        match self.output {
            Output::Human => {
                let mut text = Vec::new();
                spread::answer(&mut text, &answer, &record).map_err(|why| Error::Failed(format!("the answer: {why}")))?;
                let mut destination = destination.borrow_mut();
                destination.write(&text)?;
                destination.end()?;
                terminal::remark(&spread::report(&record, &answer, terminal::width()));
            }
            Output::Json => terminal::print(|out| json::line(out, &spread::WithAnswer::new(&answer, &kept.borrow(), &record)))?,
            Output::Quiet => {}
        }
        if let Some(gantt) = gantt {
            gantt.write(|out| out.write_all(spread::gantt(&record).as_bytes()))?;
        }
        if let Some(trace) = files.trace {
            trace.write(|out| trace::spread(out, &record))?;
        }
        if let Some(report) = files.report {
            report.table.write(|out| csv::spread(out, &record))?;
            report.records.write(|out| json::line(out, &record))?;
            let environment = launch::environment(world);
            Target::create("--report", &report.page)?.write(|out| spread_page::write(out, &environment, &record))?;
        }
        Ok(status)
    }

    fn spec(&self, world: &mut World) -> Result<SpreadSpec> {
        let (options, shared) = (self.options, self.shared);
        let ranks = world.ranks();
        let form = options.distribution.form();
        let usual = form.unwrap_or(LayeredForm::Hypercube).topology(ranks);
        let topology = settle::topology(world, shared.topology.as_deref().unwrap_or(&usual))?;
        let overlay = Overlay::placed(topology, world.hosts(), self.world.placement.one()?, self.world.seed)?;
        let installments = shared.installments.map(u32::try_from).transpose();
        let installments = installments.map_err(|_| Error::usage("--installments: the number is too large"))?;
        if let Some(number) = installments
            && !(1..=MOST_INSTALLMENTS).contains(&number)
        {
            return Err(Error::usage(format!("--installments {number}: it must be 1 to {MOST_INSTALLMENTS}")));
        }
        if let Some(speeds) = &self.speeds
            && speeds.len() != ranks as usize
        {
            return Err(Error::usage(format!("--speeds: there are {} speeds for {ranks} ranks", speeds.len())));
        }
        let speeds = match &self.speeds {
            None if world.is_simulated() => Some(self.speeds_of_file(world, form)?),
            speeds => speeds.clone(),
        };
        Ok(SpreadSpec {
            input: self.input.clone(),
            raw: options.raw,
            computation: self.computation.clone(),
            reduce: options.reduce.as_deref().map(Reduce::parse).unwrap_or_default(),
            records: self.records,
            overlay,
            distribution: form.map_or(Distribution::Tree, Distribution::Layers),
            origin: RankId::new(shared.origin().1),
            link: options.link_rate.map(|rate| 1.0 / rate as f64),
            installments,
            calibration: options.calibration.clone(),
            pace: speeds.map(|speeds| speeds.iter().map(|speed| 1.0 / (speed * options.rate as f64)).collect()),
            room: options.memory,
            patience: self.world.timeout,
            baselines: options.baselines,
            sample: options.sample,
            seed: self.world.seed,
        })
    }

    /// The speeds of simulated ranks, which are those of their network's file where there is one.
    fn speeds_of_file(&self, world: &mut World, form: Option<LayeredForm>) -> Result<Vec<f64>> {
        let mut speeds = settle::simulated_speeds(world);
        if speeds.is_empty() {
            speeds.resize(world.ranks() as usize, 1.0);
        }
        if let (Some(form), Some((first, other))) = (form, unequal(&speeds)) {
            let network = self.world.network.as_deref().unwrap_or_default();
            return Err(Error::usage(format!(
                "--network {network}: --distribution {} divides among equal ranks, and their speeds are {first} and {other}; with --speeds 1,1,.. all are alike",
                form.name()
            )));
        }
        Ok(speeds)
    }

    /// Sink for collected output.
    fn sink(&self, kept: Rc<RefCell<Vec<u8>>>, destination: Rc<RefCell<Destination>>) -> Sink {
        match self.output {
            Output::Json => Box::new(move |bytes| {
                kept.borrow_mut().extend_from_slice(bytes);
                Ok(())
            }),
            Output::Human | Output::Quiet => Box::new(move |bytes| destination.borrow_mut().write(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(["1", "4096", "100k", "16M", "2e9", "1KiB"].map(bytes), [1, 4096, 100_000, 16_000_000, 2_000_000_000, 1024].map(Ok));
        for wrong in ["", "0", "k", "0k", "-1", "1.5M", "99999999999999999999", "9999999999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
