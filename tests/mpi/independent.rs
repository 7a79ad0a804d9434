//! Independent tasks on real ranks: every scheduler and every rule, on ranks that are alike and that are not; every task is executed once,
//! or it is an error.

use std::time::Duration;

use equipoise::load::{CYCLE, Checksum, Segment};
use equipoise::node;
use equipoise::schedule::dss;
use equipoise::schedule::independent::{self, Chosen, Pace};
use equipoise::topology::{Complete, Hosts, Overlay, Topology};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::{IndependentSpec, RunRecord, run_independent};
use equipoise_lab::workload::graphs::Number;
use equipoise_lab::workload::independent as workloads;

use crate::contract::Case;
use crate::launch::{Book, Suite};

const SEED: u64 = 5;

/// Schedulers with options that change what they do. Of others of the registry the examples are run.
const CONTENDERS: [&str; 31] = [
    "sash",
    "sash:reading=r1b",
    "sash:reading=literal",
    "sash:reading=r2d,scheduler=first",
    "sash:reading=r3,end=join",
    "sash:reading=r4,window=4",
    "sash:scheduler=auto,end=join,estimates=50",
    "sads",
    "dss",
    "dss:static=0.5",
    "dss:affinity",
    "selfsched:rule=static",
    "selfsched:rule=cyclic",
    "selfsched:rule=single",
    "selfsched:rule=ss",
    "selfsched:rule=fixed,chunk=7",
    "selfsched:rule=gss",
    "selfsched:rule=fac2,rounding=floor",
    "selfsched:rule=tss",
    "selfsched:rule=wf",
    "selfsched:rule=awf",
    "selfsched:rule=af",
    "selfsched:rule=fsc",
    "selfsched:rule=mfsc",
    "selfsched:rule=tfss",
    "selfsched:rule=fiss",
    "selfsched:rule=tap",
    "selfsched:rule=awf-b",
    "selfsched:rule=awf-c",
    "selfsched:rule=awf-d",
    "selfsched:rule=awf-e",
];

pub fn enter(book: &mut Book) {
    let cases = || {
        vec![
            Case { name: "equal ranks", check: |world| all(world, "costs:tasks=80,mu_cp=200,sigma_cp=20,mu_cc=200,sigma_cc=60", false) },
            Case { name: "unequal ranks", check: |world| all(world, "costs:tasks=80,mu_cp=200,sigma_cp=20,mu_cc=200,sigma_cc=60", true) },
            Case { name: "tasks that take no time", check: |world| all(world, "costs:tasks=500,mu_cp=0,mu_cc=0", false) },
            Case { name: "fewer tasks than ranks", check: |world| all(world, "costs:tasks=1", false) },
            Case { name: "no task", check: |world| all(world, "costs:tasks=0", false) },
            Case { name: "rows of a picture", check: |world| some(world, "mandelbrot:width=64,height=48,limit=200", false) },
            Case { name: "rows of a product, unequal ranks", check: |world| some(world, "spmm:rows=100,entries=4", true) },
            Case { name: "tasks that arrive", check: |world| some(world, "costs:tasks=60,mu_cp=100,mu_cc=100,arrival=20", false) },
            Case { name: "an example of every workload", check: examples },
            Case { name: "sleeping ranks keep the model's time", check: in_time },
            Case { name: "a scheduler on each host", check: by_host },
        ]
    };
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(30)));
    book.suite(Suite {
        name: "independent",
        ranks: &[1, 2, 3, 5, 8],
        more: &[4, 16],
        limit: Duration::from_secs(150),
        options,
        cases: cases(),
    });
}

fn all(world: &mut World, workload: &str, unequal: bool) -> Result<()> {
    let is_run = |name: &str| CONTENDERS.iter().any(|contender| contender.split(':').next() == Some(name));
    let others = independent::ALL.iter().filter(|entry| !is_run(entry.name)).flat_map(|entry| entry.examples);
    let contenders: Vec<&str> = CONTENDERS.iter().chain(others).copied().collect();
    runs(world, &contenders, workload, unequal)
}

/// Workloads that need a file have no example.
fn examples(world: &mut World) -> Result<()> {
    let named = workloads::ALL.iter().filter_map(|entry| entry.examples.last());
    named.copied().try_for_each(|workload| {
        let contenders: Vec<&str> = independent::ALL.iter().map(|entry| entry.name).collect();
        runs(world, &contenders, workload, false).map_err(|why| Error::Failed(format!("{workload}: {why}")))
    })
}

/// Under schedulers of each kind that can do with tasks that arrive.
fn some(world: &mut World, workload: &str, unequal: bool) -> Result<()> {
    runs(world, &["sash:end=join", "dss:affinity", "selfsched:rule=ss", "selfsched:rule=awf"], workload, unequal)
}

fn runs(world: &mut World, contenders: &[&str], workload: &str, unequal: bool) -> Result<()> {
    records(world, contenders, workload, unequal).map(|_| ())
}

/// Rough value of the model for `dss`: `scripts/heterogeneous` measures it on a machine that does nothing else.
fn in_time(world: &mut World) -> Result<()> {
    const WORKLOAD: &str = "costs:tasks=64,mu_cp=2000,mu_cc=2000,sigma_cc=300";
    let setting = workloads::Setting { seed: SEED, ranks: world.ranks(), is_simulated: false };
    let chosen = workloads::find(WORKLOAD)?.ok_or_else(|| Error::Failed("costs are not found".into()))?;
    let expected = dss::makespan(&chosen.problem(&setting)?.costs) as f64 / CYCLE as f64 / 1e6;
    match records(world, &["dss"], WORKLOAD, false)?.first() {
        Some(record) if record.makespan < 0.9 * expected || record.makespan > 3.0 * expected + 0.1 => {
            Err(Error::Failed(format!("{} s instead of {expected}", record.makespan)))
        }
        _ => Ok(()),
    }
}

/// Schedulers of their own on hosts, which the ranks' one machine plays: a rank alone on one, the others on two.
fn by_host(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let host = |rank: u32| if rank == 0 { 0 } else { 1 + rank % 2 };
    let names: Vec<String> = (0..ranks).map(|rank| format!("h{}", host(rank))).collect();
    let overlay = Overlay::new(Topology::Complete(Complete::new(ranks)?), Hosts::from_names(&names))?;
    for (name, workload, tasks) in [
        ("sash:clusters=hosts", "costs:tasks=80,mu_cp=200,mu_cc=200", 80),
        ("sash:clusters=hosts,scheduler=auto,end=join", "costs:tasks=80,mu_cp=200,mu_cc=200", 80),
        ("dss:clusters=hosts,affinity", "costs:tasks=80,mu_cp=200,mu_cc=200", 80),
        ("selfsched:clusters=hosts,rule=ss", "costs:tasks=500,mu_cp=0,mu_cc=0", 500),
        ("selfsched:clusters=hosts,rule=fac2", "costs:tasks=80,mu_cp=200,mu_cc=200", 80),
        ("selfsched:clusters=hosts,rule=awf", "costs:tasks=60,mu_cp=100,mu_cc=100,arrival=20", 60),
        ("selfsched:clusters=hosts", "costs:tasks=1", 1),
        ("sash:clusters=hosts", "costs:tasks=0", 0),
    ] {
        let contender = independent::find(name)?;
        let chosen = workloads::find(workload)?.ok_or_else(|| Error::Failed(format!("{workload} is not found")))?;
        let problem = chosen.problem(&workloads::Setting { seed: SEED, ranks, is_simulated: false })?;
        let work = chosen.prepare(problem, Vec::new(), false);
        let pace = Pace { cycle: workloads::REAL_CYCLE, by_model: false, ahead: 500_000, seed: SEED };
        let outcomes = node::run(world, &overlay, |node| contender.made.clone().execute(node, work.clone(), pace))?;
        if let Some(outcome) = outcomes.into_iter().find_map(|(_, outcome)| outcome) {
            let sum = outcome.nodes.iter().fold(Checksum::default(), |sum, node| sum.and(node.checksum));
            if sum != Checksum::of(&Segment::range(0, tasks)) {
                return Err(Error::Failed(format!("{name}, {workload}: {sum:?} of {tasks} tasks")));
            }
        }
    }
    Ok(())
}

fn records(world: &mut World, contenders: &[&str], workload: &str, unequal: bool) -> Result<Vec<RunRecord>> {
    let ranks = world.ranks() as usize;
    let expected = if world.is_first() { contenders.len() } else { 0 };
    let contenders = contenders.iter().map(|name| independent::find(name)).collect::<Result<Vec<Chosen>>>()?;
    let workload = workloads::find(workload)?.ok_or_else(|| Error::Failed(format!("{workload} is not found")))?;
    let speeds = if unequal { (0..ranks).map(|rank| 1.0 + (rank % 4) as f64).collect() } else { Vec::new() };
    let spec = IndependentSpec { contenders, workload, repeat: None, seed: SEED, speeds };
    let records = run_independent(world, &spec, |_, _, _| {})?;
    if records.len() != expected {
        return Err(Error::Failed(format!("{} records instead of {expected}", records.len())));
    }
    records.iter().try_for_each(|record| sound(record, ranks))?;
    Ok(records)
}

/// Properties of every run, besides that every task was executed once.
fn sound(record: &RunRecord, ranks: usize) -> Result<()> {
    let scheduling = record.scheduling.ok_or_else(|| Error::Failed("nothing is told of scheduling".into()))?;
    let name = record.scheduler.split(':').next().unwrap_or_default();
    let searches = ["sash", "sads"].contains(&name) && ranks > 1 && record.tasks > 0;
    let is_emulated = !record.sequential_is_plain;
    let holds = (record.answer == Number::Whole(record.tasks) || !is_emulated)
        && record.known == Some(record.answer)
        && record.busy.len() == ranks
        // Emulated tasks may end early by what their worker's timer was late before.
        && (record.makespan >= 0.9 * scheduling.lower_bound || !is_emulated)
        && (scheduling.expansions > 0) == searches
        && (record.messages > 0) == (ranks > 1);
    if holds { Ok(()) } else { Err(Error::Failed(format!("{record:?}"))) }
}
