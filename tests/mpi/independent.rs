//! Independent tasks on real ranks: every scheduler and every rule, on ranks that are alike and that are not; every task is executed once,
//! or it is an error.

use std::time::Duration;

use equipoise::experiment::{IndependentSpec, RunRecord, run_independent};
use equipoise::schedule::independent::{self, Chosen};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::workload::graphs::Number;
use equipoise::workload::independent as workloads;
use equipoise::{Error, Result};

use crate::contract::Case;
use crate::launch::{Book, Suite};

const CONTENDERS: [&str; 22] = [
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
];

pub fn enter(book: &mut Book) {
    let cases = || {
        vec![
            Case { name: "equal ranks", check: |world| all(world, "costs:tasks=80,mu_cp=200,sigma_cp=20,mu_cc=200,sigma_cc=60", false) },
            Case { name: "unequal ranks", check: |world| all(world, "costs:tasks=80,mu_cp=200,sigma_cp=20,mu_cc=200,sigma_cc=60", true) },
            Case { name: "tasks that take no time", check: |world| all(world, "costs:tasks=500,mu_cp=0,mu_cc=0", false) },
            Case { name: "fewer tasks than ranks", check: |world| all(world, "costs:tasks=1", false) },
            Case { name: "no task", check: |world| all(world, "costs:tasks=0", false) },
            Case { name: "every scheduler has a case", check: complete },
        ]
    };
    let options = mpi::Options { timeout: Duration::from_secs(30), ..mpi::Options::default() };
    book.suite(Suite { name: "independent", ranks: &[1, 2, 3, 4, 8, 16], limit: Duration::from_secs(150), options, cases: cases() });
}

fn all(world: &mut World, workload: &str, unequal: bool) -> Result<()> {
    let ranks = world.ranks() as usize;
    let contenders = CONTENDERS.iter().map(|name| independent::find(name)).collect::<Result<Vec<Chosen>>>()?;
    let workload = workloads::find(workload)?.ok_or_else(|| Error::Failed(format!("{workload} is not found")))?;
    let speeds = if unequal { (0..ranks).map(|rank| 1.0 + (rank % 4) as f64).collect() } else { Vec::new() };
    let spec = IndependentSpec { contenders, workload, repeat: None, seed: 5, speeds };
    let records = run_independent(world, &spec, |_, _, _| {})?;
    let expected = if world.is_first() { CONTENDERS.len() } else { 0 };
    if records.len() != expected {
        return Err(Error::Failed(format!("{} records instead of {expected}", records.len())));
    }
    records.iter().try_for_each(|record| sound(record, ranks))
}

/// What must hold for every run, beside that every task was executed once.
fn sound(record: &RunRecord, ranks: usize) -> Result<()> {
    let scheduling = record.scheduling.ok_or_else(|| Error::Failed("nothing is told of scheduling".into()))?;
    let searches = record.scheduler.starts_with("sa") && ranks > 1 && record.tasks > 0;
    let holds = record.answer == Number::Whole(record.tasks)
        && record.busy.len() == ranks
        // Emulated tasks may end early by what their worker's timer was late before.
        && record.makespan >= 0.9 * scheduling.lower_bound
        && (scheduling.expansions > 0) == searches
        && (record.messages > 0) == (ranks > 1);
    if holds { Ok(()) } else { Err(Error::Failed(format!("{record:?}"))) }
}

fn complete(_: &mut World) -> Result<()> {
    let is_run = |name: &str| CONTENDERS.iter().any(|contender| contender.split(':').next() == Some(name));
    match independent::ALL.iter().find(|entry| !is_run(entry.name)) {
        Some(entry) => Err(Error::Failed(format!("{} has no case", entry.name))),
        None => Ok(()),
    }
}
