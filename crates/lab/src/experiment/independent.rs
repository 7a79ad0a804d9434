//! Independent tasks under one or several schedulers: measured, checked, and compared with lower bounds and static heuristics.

pub(super) mod measured;

use std::sync::Arc;

use super::interruption::{Interruption, unless_interrupted};
use super::ranking;
use super::run::RunRecord;
use super::settle;
use super::site::Site;
use crate::workload::independent::{self, REAL_CYCLE, Setting};
use equipoise::error::{Error, Result};
use equipoise::node;
use equipoise::schedule::independent::{Chosen, Independent, Pace};
use equipoise::transport::sim::Network;
use equipoise::transport::world::World;
use measured::{Measured, MeasuredRuns, RecordUnit, Round, SIMULATED_CYCLE};

/// Schedulers, workload and number of runs.
pub struct IndependentSpec {
    pub contenders: Vec<Chosen>,
    pub workload: independent::Chosen,
    /// Runs under each scheduler, each with its own seed; `None` for one.
    pub repeat: Option<u32>,
    /// Seed of the first round; each further round uses the next seed.
    pub seed: u64,
    /// Relative speed of each rank; if empty, simulated ranks have those of their world, and others are alike.
    pub speeds: Vec<f64>,
}

/// A rank fetches more work this long before it runs out: twice the longest nap of real ranks, and the latency.
const REAL_AHEAD: u64 = 500_000;
const SIMULATED_AHEAD: u64 = 100_000;
/// The epoch of the barrier before a run.
const APART: u32 = equipoise::node::epochs::APART;

/// Runs everything. `progress` is called on every rank with the number of runs done, the number of all runs and the name of the next
/// scheduler. The records, one for each scheduler, come on the first rank; elsewhere there are none. If the world was asked to end, they are those of
/// what was measured until then, and schedulers without a measured run have none.
///
/// # Errors
/// [`Error::Lost`] on every rank if a task was lost or executed twice; otherwise as [`World::run`] and `problem`.
pub fn run_independent(world: &mut World, spec: &IndependentSpec, progress: impl FnMut(u64, u64, &str)) -> Result<Vec<RunRecord>> {
    let ranks = world.ranks() as usize;
    if !spec.speeds.is_empty() && spec.speeds.len() != ranks {
        return Err(Error::usage(format!("--speeds: there are {} speeds, and {ranks} ranks", spec.speeds.len())));
    }
    let speeds = match spec.speeds.is_empty() {
        true => Speeds { of_ranks: settle::simulated_speeds(world), are_given: false },
        false => Speeds { of_ranks: spec.speeds.clone(), are_given: true },
    };
    // The costs of the tasks on each rank have the speeds in them: the simulator must not divide by them once more.
    let of_world = world.as_simulation().map(|world| std::mem::take(&mut world.model().speeds));
    let records = run_at(world, spec, &speeds, progress);
    if let (Some(world), Some(of_world)) = (world.as_simulation(), of_world) {
        world.model().speeds = of_world;
    }
    records
}

/// Relative speed of each rank, empty if all are 1.
struct Speeds {
    of_ranks: Vec<f64>,
    /// Whether `--speeds` gives them, and not the file of the simulated network.
    are_given: bool,
}

fn run_at(world: &mut World, spec: &IndependentSpec, speeds: &Speeds, mut progress: impl FnMut(u64, u64, &str)) -> Result<Vec<RunRecord>> {
    let site = Site::of(world, spec.seed)?;
    let measured = u64::from(spec.repeat.unwrap_or(1).max(1));
    let contenders = spec.contenders.len();
    // On real ranks the first run pays for connections and threads: where runs are repeated, the first round does not count.
    let unmeasured = u64::from(spec.repeat.is_some() && !world.is_simulated());
    let rounds = unmeasured + measured;
    let runs = rounds * contenders as u64;
    let mut courses: Vec<Vec<Measured>> = spec.contenders.iter().map(|_| Vec::new()).collect();
    let overlay = equipoise::agreement::one_node_per_rank(world)?;
    let mut done = 0;
    'rounds: for round in 0..rounds {
        let seed = spec.seed.wrapping_add(round.saturating_sub(unmeasured));
        world.reseed(seed);
        progress(done, runs, "the workload");
        let Some((work, first)) = unless_interrupted(world, |world| begin(world, spec, speeds, seed))? else { break };
        let pace = pace(world, seed);
        for turn in ranking::turns(contenders, round, spec.seed) {
            let (contender, course) = (&spec.contenders[turn], &mut courses[turn]);
            progress(done, runs, &contender.name);
            let barrier = !world.is_simulated();
            let run = unless_interrupted(world, |world| {
                let outcomes = node::run(world, &overlay, |node| {
                    let (scheduler, work) = (contender.made.clone(), work.clone());
                    async move {
                        if barrier {
                            let apart = node.epoch(APART);
                            apart.everyone().barrier(&apart).await?;
                        }
                        scheduler.execute(node, work, pace).await
                    }
                })?;
                let outcome = outcomes.into_iter().find_map(|(_, outcome)| outcome);
                let checked = match (&first, outcome) {
                    (Some(first), Some(mut outcome)) => {
                        let products = std::mem::take(&mut outcome.products);
                        let lost = |why: String| Error::wrong_result(format!("{} under {}: {why}", spec.workload.name, contender.name));
                        let measured = Measured::checked(outcome, first).map_err(lost);
                        measured.and_then(|measured| {
                            if round >= unmeasured {
                                course.push(measured);
                            }
                            spec.workload.accept(&products)
                        })
                    }
                    _ => Ok(()),
                };
                settle::agree(world, checked)
            });
            if run?.is_none() {
                break 'rounds;
            }
            done += 1;
        }
    }
    progress(done, runs, "");
    measured::judge_together(&mut courses);
    let interrupted = Interruption::of(world, done, runs);
    let unit = if world.is_simulated() { RecordUnit::Cycle } else { RecordUnit::Second };
    spec.contenders
        .iter()
        .zip(courses)
        .filter(|(_, course)| world.is_first() && (interrupted.is_none() || !course.is_empty()))
        .map(|(scheduler, runs)| {
            let (workload, is_repeated) = (&spec.workload, spec.repeat.is_some());
            let runs = MeasuredRuns { scheduler, workload, is_repeated, overlay: &overlay, unit, runs };
            Ok(RunRecord { interrupted: interrupted.clone(), ..RunRecord::of_independent(runs, &site)? })
        })
        .collect()
}

/// The tasks of the round with this seed; on the first rank also what is known of them.
fn begin(world: &mut World, spec: &IndependentSpec, speeds: &Speeds, seed: u64) -> Result<(Arc<dyn Independent>, Option<Round>)> {
    let setting = Setting { seed, ranks: world.ranks(), is_simulated: world.is_simulated() };
    let problem = if spec.workload.is_made_by_one() {
        settle::worked_out_by_first(world, spec.workload.maker(setting))?
    } else {
        spec.workload.problem(&setting)?
    };
    let (known, sequential, optimum) = (problem.known, problem.sequential, problem.optimum);
    let Speeds { of_ranks, are_given } = speeds;
    if optimum.is_some() && of_ranks.iter().any(|speed| *speed != 1.0) {
        let why = "the optimum of the workload is that of the matrix as it is";
        return Err(Error::usage(match are_given {
            true => format!("--speeds: {why}"),
            false => format!("--network: the ranks of the file differ in speed, and {why}; with --speeds 1,1,.. all are alike"),
        }));
    }
    let work = spec.workload.prepare(problem, of_ranks.clone(), world.is_simulated());
    let first = world.is_first().then(|| Round::new(work.as_ref(), known, sequential, optimum));
    settle::agree(world, first.as_ref().map_or(Ok(()), Round::is_sound))?;
    Ok((work, first))
}

fn pace(world: &mut World, seed: u64) -> Pace {
    let Some(world) = world.as_simulation() else { return Pace { cycle: REAL_CYCLE, by_model: false, ahead: REAL_AHEAD, seed } };
    let by_model = world.model().network == Network::Zero;
    Pace { cycle: SIMULATED_CYCLE, by_model, ahead: if by_model { 0 } else { SIMULATED_AHEAD }, seed }
}
