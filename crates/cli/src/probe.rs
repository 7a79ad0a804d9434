//! `equipoise probe`: measures the network and the ranks.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use equipoise::names;
use equipoise::spec::quantity;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::probe::{LinkRecord, ProbeSpec, ring, verdict};
use equipoise_lab::experiment::{self, Environment, Interruption, ProbeRecord, settle};
use equipoise_lab::report::columns::legend;
use equipoise_lab::report::{csv, json, probe as report, simgrid};
use equipoise_lab::workload::network;

use super::launch::{self, Ending};
use super::options::{GraceOption, WorldOptions, duration};
use super::output::{Files, Target};
use super::terminal;
use super::terminal::Output;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 16 equipoise probe --write cluster.toml
  mpirun -n 64 --hostfile hosts equipoise probe --strict
  equipoise probe --sim 16 --sim-hosts 4
  equipoise compare --sim 64 --network cluster.toml

A line of the table is a kind of link:
{COLUMNS}Hosts that are twice as near to each other as to others are printed as racks. The last sentence is
the verdict. A host or a rank is slow if it takes 1.10 times as long as the median of all others
(a link: 1.5 times the others of its rack, or between the same racks), and is slower in all rounds;
measurements of all are interleaved, so that drift affects them alike.";

fn examples() -> String {
    EXAMPLES.replace("{COLUMNS}", &legend::<LinkRecord>())
}

/// Measure the network and the ranks: latency, bandwidth and speed; name slow hosts and links
#[derive(Args)]
#[command(after_help = examples())]
pub struct Arguments {
    /// Number of rounds; each measures everything once. Too few give no verdict [default: 12, or the number needed for a verdict]
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,

    /// Seconds of computing of each rank for its speed, over all rounds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = computing)]
    compute: f64,

    /// Exit with status 1 if a host, rank or link is slow. Fewer rounds than a verdict takes are refused
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    world: WorldOptions,

    /// Grace for the current round after SIGTERM or SIGUSR1. The result is then that of the finished rounds, marked `interrupted`, with exit
    /// status 4. If the round takes longer, there is no result
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = duration)]
    grace: Duration,

    /// Output format
    #[arg(long, value_enum, value_name = "FORM", default_value = "human", help_heading = "Results")]
    output: Output,

    /// Print times by size in another program's format instead; osu: the tables of the OSU micro-benchmarks
    #[arg(long, value_enum, value_name = "PROGRAM", conflicts_with = "output", help_heading = "Results")]
    format: Option<Format>,

    /// Write the network into this file, for --network FILE.toml and `equipoise advise`
    #[arg(long, value_name = "FILE.toml", help_heading = "Results")]
    write: Option<PathBuf>,

    /// Write the network into this file as a platform for SimGrid
    #[arg(long, value_name = "FILE.xml", help_heading = "Results")]
    simgrid: Option<PathBuf>,

    /// Also write table.csv (the links), records.jsonl (the result) and report.html (with heat maps) into this folder
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    report: Option<PathBuf>,
}

/// Number of rounds, where a verdict takes no more.
const ROUNDS: u32 = 12;

/// Programs whose format is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The OSU micro-benchmarks
    Osu,
}

/// A time for the kernels.
fn computing(text: &str) -> std::result::Result<f64, String> {
    match quantity::seconds(text) {
        Some(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number of seconds from 0.001 to 3600".into()),
    }
}

/// Files to be written.
#[derive(Default)]
struct Targets {
    files: Files,
    network: Option<Target>,
    platform: Option<Target>,
}

pub fn run(arguments: &Arguments) -> Result<(), Ending> {
    if let Some(path) = &arguments.write
        && path.extension().is_none_or(|end| end != "toml")
    {
        let name = names::shown(path);
        return Err(Error::usage(format!("--write {name}: the name must end with .toml, as --network takes it")).into());
    }
    launch::within_until_told(&arguments.world, 1, &GraceOption { grace: arguments.grace }, |world| {
        let needed = verdict::rounds_needed(verdict::candidates(world.hosts().count(), world.ranks())) as u32;
        let rounds = arguments.repeat.unwrap_or(ROUNDS.max(needed));
        // One rank has nothing to be compared with, in however many rounds.
        if arguments.strict && rounds < needed && world.ranks() > 1 {
            return Err(Error::usage(format!("--strict: a verdict on these ranks takes --repeat {needed} or more, not {rounds}")));
        }
        let targets = match world.is_first() {
            true => targets(arguments),
            false => Ok(Targets::default()),
        };
        let targets = settle::agree(world, targets)?;
        let each = arguments.compute * 1e9 / f64::from(rounds);
        let spec = ProbeSpec::full(rounds, (each as u64).max(1));
        let name = arguments.write.as_ref().map_or_else(|| "probed".to_string(), |path| names::shown(path));
        let record = experiment::probe(world, &spec, &name, arguments.world.seed)?;
        let environment = launch::environment(world);
        // After that there is nothing to agree on: a rank may have been given up.
        if world.interrupted().is_some() {
            return match record {
                Some(record) => show(arguments, &record, &environment, targets),
                None if world.is_first() => match Interruption::of(world, 0, rounds.into()) {
                    Some(interruption) => terminal::interrupted(arguments.output, &interruption, "rounds"),
                    None => Ok(()),
                },
                None => Ok(()),
            };
        }
        let is_slow = record.as_ref().is_some_and(|record| !record.slow.is_empty());
        let shown = record.map_or(Ok(()), |record| show(arguments, &record, &environment, targets));
        settle::agree(world, shown)?;
        judge(world, arguments.strict, is_slow)
    })
}

fn targets(arguments: &Arguments) -> Result<Targets> {
    let target = |option: &str, path: &Option<PathBuf>| path.as_ref().map(|path| Target::create(option, path)).transpose();
    Ok(Targets {
        files: Files::create(None, arguments.report.as_ref(), None)?,
        network: target("--write", &arguments.write)?,
        platform: target("--simgrid", &arguments.simgrid)?,
    })
}

/// With `--strict` what is slow is a failure, on all ranks alike.
fn judge(world: &mut World, strict: bool, is_slow: bool) -> Result<()> {
    if !strict {
        return Ok(());
    }
    match settle::from_first(world, || Ok(is_slow))? {
        true => Err(Error::Failed("--strict: something is slow; see the verdict".into())),
        false => Ok(()),
    }
}

fn show(arguments: &Arguments, record: &ProbeRecord, environment: &Environment, targets: Targets) -> Result<()> {
    match (arguments.format, arguments.output) {
        (Some(Format::Osu), _) => terminal::print(|out| out.write_all(report::osu(record).as_bytes()))?,
        (None, Output::Human) => terminal::print(|out| out.write_all(report::text(record, terminal::width()).as_bytes()))?,
        (None, Output::Json) => terminal::print(|out| json::line(out, record))?,
        (None, Output::Quiet) => {}
    }
    if let Some(target) = targets.network {
        target.write(|out| out.write_all(network::write(&record.measured).as_bytes()))?;
    }
    if let Some(target) = targets.platform {
        let sizes = record.links.iter().flat_map(|link| &link.sizes).map(|timed| timed.bytes).collect::<BTreeSet<_>>();
        let ring = ring(&record.measured, &sizes.into_iter().collect::<Vec<_>>())?;
        target.write(|out| simgrid::platform(out, &record.measured, &ring))?;
    }
    let Some(folder) = targets.files.report else { return Ok(()) };
    folder.table.write(|out| csv::probe(out, record))?;
    folder.records.write(|out| json::line(out, record))?;
    Target::create("--report", &folder.page)?.write(|out| report::html(out, environment, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_takes_a_while_and_ends() {
        assert_eq!(computing("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "NaN", "1e9", "long", ""] {
            assert!(computing(wrong).is_err(), "{wrong}");
        }
    }
}
