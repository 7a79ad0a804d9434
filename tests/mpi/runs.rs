//! Workloads of spawning tasks on real ranks: every one of the registry, under every scheduler, with one and with three workers a rank. One
//! example of each on every number of ranks; all of them on three, and with `--include-ignored` on the others.

use std::sync::Arc;
use std::time::Duration;

use equipoise::balance;
use equipoise::node::{self, Worker};
use equipoise::schedule::{self, Computation, Options, Roots, Style, Summary, Yield};
use equipoise::topology::{Overlay, RankId};
use equipoise::transport::mpi;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::run::{self, RunSpec, SchedulerContender};
use equipoise_lab::workload::graphs::{self, Number};

use crate::contract::Case;
use crate::launch::{Book, Suite};

const WORKERS: u32 = 3;

pub fn enter(book: &mut Book) {
    let cases = || {
        vec![
            Case { name: "an example of every workload", check: example },
            Case { name: "incremental with every balancer", check: collective },
            Case { name: "a stream faster than its ranks", check: overloaded },
            Case { name: "tasks shorter than a message", check: short },
            Case { name: "answers that everybody knows", check: well_known },
        ]
    };
    let options = mpi::Options::program().with_watchdog(mpi::Watch::Always(Duration::from_secs(30))).with_workers(WORKERS as usize);
    let limit = Duration::from_secs(150);
    let all = vec![Case { name: "every example of every workload", check: examples }];
    book.suite(Suite {
        name: "examples",
        ranks: &[3],
        more: &[1, 2, 5, 8],
        limit: Duration::from_secs(300),
        options: options.clone(),
        cases: all,
    });
    let triggers = vec![Case { name: "incremental by published criteria", check: published }];
    let hosts = vec![Case { name: "the host is any rank", check: hosts }];
    book.suite(Suite { name: "hosts of level 1", ranks: &[1, 2, 3, 5, 8], more: &[], limit, options: options.clone(), cases: hosts });
    book.suite(Suite { name: "triggers", ranks: &[1, 2, 3, 5, 8], more: &[], limit, options: options.clone(), cases: triggers });
    book.suite(Suite { name: "runs", ranks: &[1, 2, 3, 5, 8], more: &[16], limit, options, cases: cases() });
}

/// Runs a workload under all schedulers; wrong answers and lost tasks are errors. The answers come on the first rank.
fn answers(world: &mut World, workload: &str, workers: u32) -> Result<Vec<Number>> {
    let all: Vec<String> = schedule::ALL.iter().map(|entry| entry.name.to_string()).collect();
    answers_under(world, &all, workload, workers)
}

/// Runs a workload under these schedulers, each on the topology that it gets when none is asked for.
fn answers_under(world: &mut World, schedulers: &[String], workload: &str, workers: u32) -> Result<Vec<Number>> {
    let ranks = world.ranks();
    let contender = |spec: &String| {
        let scheduler = schedule::find(spec)?;
        let topology = scheduler.default_topology(ranks);
        SchedulerContender::new(scheduler, Overlay::new(topology, world.hosts())?)
    };
    let contenders = schedulers.iter().map(contender).collect::<Result<_>>()?;
    let spec = RunSpec { contenders, workload: graphs::find(workload)?, workers, repeat: None, seed: 3, trace: false };
    let records = run::run(world, &spec, |_, _, _| {})?;
    let expected = if world.is_first() { schedulers.len() } else { 0 };
    if records.len() != expected {
        return Err(Error::Failed(format!("{} records instead of {expected}", records.len())));
    }
    for record in &records {
        let is_checked = record.known.is_some() || record.answer == Number::Whole(record.tasks);
        if !is_checked || record.busy.len() != ranks as usize || (record.tasks > 0 && record.makespan <= 0.0) {
            return Err(Error::Failed(format!("{record:?}")));
        }
    }
    Ok(records.iter().map(|record| record.answer).collect())
}

/// Every balancer in system phases, while tasks are spawned and executed.
fn collective(world: &mut World) -> Result<()> {
    for trigger in ["any", "predicted"] {
        let schedulers: Vec<String> =
            balance::without_places().map(|entry| format!("incremental:balancer={},trigger={trigger}", entry.name)).collect();
        let answers = answers_under(world, &schedulers, "tree:levels=4,children=3,least=3,task=100us", 1)?;
        if answers.iter().any(|given| *given != Number::Whole(121)) {
            return Err(Error::Failed(format!("{trigger}: {answers:?} instead of 121")));
        }
    }
    Ok(())
}

/// Published criteria, which count what ranks worked from round to round.
fn published(world: &mut World) -> Result<()> {
    let triggers = equipoise::registry::names::<equipoise::trigger::Facts>();
    let schedulers: Vec<String> = triggers.map(|trigger| format!("incremental:balancer=direct,trigger={trigger},period=0.5")).collect();
    let answers = answers_under(world, &schedulers, "tree:levels=4,children=3,least=3,task=100us", 1)?;
    if answers.iter().any(|given| *given != Number::Whole(121)) {
        return Err(Error::Failed(format!("{answers:?} instead of 121")));
    }
    Ok(())
}

fn example(world: &mut World) -> Result<()> {
    graphs::ALL.iter().try_for_each(|entry| of_all_workers(world, entry.examples[entry.examples.len() / 2]))
}

fn examples(world: &mut World) -> Result<()> {
    let all = graphs::ALL.iter().flat_map(|entry| entry.examples);
    all.copied().try_for_each(|example| of_all_workers(world, example))
}

fn of_all_workers(world: &mut World, example: &str) -> Result<()> {
    // A stream's units are so short that many ranks on few cores may not keep up: then it must end nevertheless.
    let workload = match example.starts_with("stream") {
        true => format!("{},unit=2ms", example.trim_end_matches(",unit=1ms")),
        false => example.to_string(),
    };
    [1, WORKERS].into_iter().try_for_each(|workers| {
        let wrong = |why| Error::Failed(format!("{workload}, {workers} workers: {why}"));
        answers(world, &workload, workers).map(|_| ()).map_err(wrong)
    })
}

/// The host of the hierarchical scheduler on each rank in turn: answers are right and come on the first rank, and a dedicated host executes nothing.
fn hosts(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    for host in 0..ranks {
        let all = [format!("hierarchical:host_rank={host}")];
        for (workload, answer) in [("queens:n=8", 92), ("tree:levels=3,children=3,least=3,task=50us", 40)] {
            if answers_under(world, &all, workload, 1)?.iter().any(|found| *found != Number::Whole(answer)) {
                return Err(Error::Failed(format!("{workload} from rank {host} is not {answer}")));
            }
        }
        if ranks == 1 {
            continue;
        }
        let scheduler = schedule::find(&format!("hierarchical:host_rank={host},host=dedicated"))?;
        let overlay = Overlay::new(scheduler.default_topology(ranks), world.hosts())?;
        let workload = graphs::find("stream:levels=2,children=2,graphs=20,warmup=0,rate=none,utilisation=0.2,unit=2ms")?;
        let contenders = vec![SchedulerContender::new(scheduler, overlay)?];
        let spec = RunSpec { contenders, workload, workers: 1, repeat: None, seed: 3, trace: false };
        let records = run::run(world, &spec, |_, _, _| {})?;
        if records.len() != usize::from(world.is_first()) {
            return Err(Error::Failed(format!("{} records", records.len())));
        }
        for record in records {
            let others = record.busy.iter().sum::<f64>() - record.busy[host as usize];
            if record.busy[host as usize] > 0.0 || others <= 0.0 || record.answer != Number::Whole(record.tasks) {
                return Err(Error::Failed(format!("host {host}: {record:?}")));
            }
        }
    }
    let scheduler = schedule::find(&format!("hierarchical:host_rank={ranks}"))?;
    let overlay = Overlay::new(scheduler.default_topology(ranks), world.hosts())?;
    match SchedulerContender::new(scheduler, overlay) {
        Err(why) if why.exit_status() == 2 && why.to_string().contains(&format!("there are {ranks}, counted from 0")) => Ok(()),
        other => Err(Error::Failed(format!("a host beyond the last rank: {:?}", other.map(|_| ())))),
    }
}

/// Tasks that sleep for some microseconds take much longer than that, so that the ranks can't keep up. The stream ends, and says so.
fn overloaded(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    for name in ["steal", "hierarchical"] {
        let scheduler = schedule::find(name)?;
        let contenders =
            vec![SchedulerContender::new(scheduler, Overlay::new(schedule::find(name)?.entry.default_topology(ranks), world.hosts())?)?];
        let workload = graphs::find("stream:levels=2,children=8,least=6,graphs=250,warmup=0,rate=none,utilisation=0.5,unit=1ms")?;
        let spec = RunSpec { contenders, workload, workers: 1, repeat: None, seed: 3, trace: false };
        for record in run::run(world, &spec, |_, _, _| {})? {
            let told = record.overload.filter(|overload| overload.served < overload.offered);
            if told.is_none() || record.answer != Number::Whole(record.tasks) {
                return Err(Error::Failed(format!("{record:?}")));
            }
        }
    }
    Ok(())
}

/// A tree of tasks that do nothing.
struct Empty;

impl Computation for Empty {
    /// Levels below it.
    type Task = u32;
    /// Tasks.
    type Answer = u64;
    type Waiting = ();
    const STYLE: Style = Style::Inline;

    fn execute(&self, levels: u32, _: &mut dyn Worker) -> Yield<Self> {
        match levels {
            0 => Yield::Answer(1),
            _ => Yield::Children { tasks: vec![levels - 1; 10], waiting: () },
        }
    }

    fn join(&self, (): (), answers: Vec<u64>) -> Yield<Self> {
        Yield::Answer(1 + answers.into_iter().sum::<u64>())
    }

    fn combine(&self, into: u64, more: u64) -> u64 {
        into + more
    }
}

/// Their answers travel together: none is lost, and they take few messages.
fn short(world: &mut World) -> Result<()> {
    for name in ["random", "steal", "rid", "hierarchical"] {
        let scheduler = schedule::find(name)?;
        let overlay = Overlay::new(scheduler.default_topology(world.ranks()), world.hosts())?;
        let outcomes = node::run(world, &overlay, |node| {
            let is_host = node.me() == node.overlay().placement.real_node_of(RankId::FIRST);
            let roots = if is_host { Roots::One(4) } else { Roots::Elsewhere };
            schedule::execute(node, Arc::new(Empty), scheduler.clone(), roots, Options::default())
        })?;
        for (_, outcome) in outcomes.into_iter().filter(|(_, outcome)| !outcome.nodes.is_empty()) {
            let summary = Summary::of(&outcome.nodes, outcome.makespan);
            let carrying = summary.messages - summary.control;
            // Half of the tasks move, up to ten in a message, and are answered from where they moved to.
            let alone = name == "random" && world.ranks() == 2 && carrying >= summary.migrated;
            if (outcome.answer, summary.tasks) != (Some(11_111), 11_111) || alone {
                return Err(Error::Failed(format!("{name}: {:?}, {summary:?}", outcome.answer)));
            }
        }
    }
    Ok(())
}

fn well_known(world: &mut World) -> Result<()> {
    for (workload, answer) in [("queens:n=8", 92), ("fibonacci:n=20,cutoff=10", 6765), ("tree:levels=3,children=3,least=3,task=50us", 40)] {
        let answers = answers(world, workload, 1)?;
        if answers.iter().any(|given| *given != Number::Whole(answer)) {
            return Err(Error::Failed(format!("{workload}: {answers:?} instead of {answer}")));
        }
    }
    Ok(())
}
