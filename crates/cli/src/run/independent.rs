//! `equipoise run` with a workload of independent tasks, which have schedulers of their own.

use equipoise::schedule::{self, independent};
use equipoise::transport::sim::{Network, Speed};
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::{self, IndependentSpec, settle};
use equipoise_lab::workload::independent as workloads;

use super::super::launch::{self, Ending};
use super::super::terminal;
use super::super::terminal::Output;
use super::Arguments;

/// Scheduler that runs by default.
const DEFAULT: &str = "sash";

/// A relative speed above 0.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(speed) if (1e-6..=1e6).contains(&speed) => Ok(speed),
        _ => Err("a speed is a number from 0.000001 to 1000000".into()),
    }
}

/// Runs independent tasks.
pub(super) fn run(arguments: &Arguments, workload: workloads::Chosen) -> Result<(), Ending> {
    let contenders = schedulers(arguments)?;
    refuse(arguments)?;
    launch::within_until_told(&arguments.world, 1, &arguments.grace, |world| {
        let files = settle::agree(world, arguments.files(world.is_first()))?;
        if let Some(world) = world.as_simulation()
            && arguments.world.network.is_none()
        {
            world.model().network = Network::Zero;
        }
        let (repeat, seed, speeds) = (arguments.rounds(world, contenders.len(), false), arguments.world.seed, arguments.speeds.clone());
        let spec = IndependentSpec { contenders, workload, repeat, seed, speeds };
        let progress = terminal::Progress::begin(arguments.output != Output::Quiet, "runs");
        let records = experiment::run_independent(world, &spec, |done, of, now| progress.at(done, of, now))?;
        let reached = progress.reached();
        drop(progress);
        arguments.end(world, &records, reached, files)
    })
}

fn schedulers(arguments: &Arguments) -> Result<Vec<independent::Chosen>> {
    let names = match (arguments.compare.as_deref(), &arguments.scheduler) {
        (Some(""), _) => independent::ALL.iter().map(|entry| entry.name.to_string()).collect(),
        (Some(names), _) => schedule::listed(names),
        (None, Some(name)) => vec![name.clone()],
        (None, None) => vec![DEFAULT.to_string()],
    };
    names.iter().map(|name| independent::find(name)).collect()
}

/// Refuses what makes no sense with independent tasks.
fn refuse(arguments: &Arguments) -> Result<()> {
    let given = [
        ("--topology", arguments.topology.is_some()),
        ("--host", arguments.host.is_some()),
        ("--host-rank", arguments.host_rank.is_some()),
        ("--medians", arguments.medians.is_some()),
        ("--trace", arguments.trace.is_some()),
        ("--workers", arguments.workers > 1),
        ("--handicap", arguments.handicap.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Error::usage(format!("{option} is for tasks that spawn tasks; --workload {} is of independent ones", arguments.workload)))
        }
        None => Ok(()),
    }
}

/// Sets the speeds of simulated ranks.
pub(super) fn set_speeds(world: &mut World, speeds: &[f64]) -> Result<()> {
    if speeds.is_empty() {
        return Ok(());
    }
    let ranks = world.ranks();
    if speeds.len() != ranks as usize {
        return Err(Error::usage(format!("--speeds: there are {} speeds, and {ranks} ranks", speeds.len())));
    }
    let Some(world) = world.as_simulation() else {
        return Err(Error::usage("--speeds: on real ranks only independent tasks (--workload costs) can be slowed down"));
    };
    world.model().speeds = speeds.iter().map(|speed| Speed::new(*speed)).collect::<Result<_>>()?;
    Ok(())
}
