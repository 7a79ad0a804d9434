//! Balancing phases on real ranks: the same as in simulation, and nobody is slower than the slowest was.

use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use equipoise::balance;
use equipoise::load::{ColumnRatio, Link, Powers};
use equipoise::topology::{Hosts, Overlay, PlacementRule, RankId, Topology};
use equipoise::transport::sim;
use equipoise::transport::world::World;
use equipoise::{Error, Result};
use equipoise_lab::experiment::{self, BalanceRecord, BalanceSpec, Tasks};
use equipoise_lab::workload::{LoadPattern, MeasuredTask, MeasuredTasks, Pins, PowerPattern, WeightPattern};

use crate::contract::Case;
use crate::launch::{Book, Suite};
use crate::small_limits;

pub fn enter(book: &mut Book) {
    let cases = vec![
        Case { name: "unit tasks on equal ranks", check: |world| every(world, "equal", "unit", None) },
        Case { name: "unit tasks on unequal ranks", check: |world| every(world, "uniform:1..10", "unit", None) },
        Case { name: "tasks of all sizes", check: |world| every(world, "equal", "exponential:mean=10", None) },
        Case {
            name: "tasks of all sizes, some pinned, on unequal ranks",
            check: |world| every(world, "uniform:1..10", "exponential:mean=10", Some("p=0.3")),
        },
    ];
    let limit = Duration::from_secs(150);
    book.suite(Suite { name: "phases", ranks: &[1, 2, 3, 5, 8], more: &[16], limit, options: small_limits(), cases });
    let cases = vec![
        Case { name: "tasks that talk to each other", check: talking },
        Case { name: "partitions computed elsewhere", check: partitions },
        Case { name: "tasks with several weights", check: vectors },
        Case { name: "tasks with places", check: placed },
        Case { name: "walks that are repaired", check: repaired },
        Case { name: "two levels of hosts", check: two_levels },
        Case { name: "capacities", check: capacities },
        Case { name: "dimension exchange with the optimal parameter", check: optimal_exchange },
    ];
    book.suite(Suite { name: "numbered tasks", ranks: &[1, 2, 3, 5, 8], more: &[16], limit, options: small_limits(), cases });
}

/// Every balancer on its own topology, which on 3 and 5 ranks may have virtual nodes; few tasks, so that rounding matters.
pub fn every(world: &mut World, powers: &str, weights: &str, pins: Option<&str>) -> Result<()> {
    let ranks = world.ranks();
    let mut declined = 0;
    for entry in balance::without_places() {
        for seed in 0..4 {
            let of = |world: &mut World| record(world, entry.name, [powers, weights], pins, seed);
            let Some(real) = of(world)? else { continue };
            let Some(simulated) = of(&mut World::simulated(ranks, sim::Model::default()))? else {
                return Err(Error::Failed("a simulation left no record".into()));
            };
            let told = |record: &BalanceRecord| {
                (record.finals.clone(), record.moves.clone(), record.declined, record.exact, record.steps, record.messages, record.bytes)
            };
            if told(&real) != told(&simulated) {
                return Err(Error::Failed(format!("{}, seed {seed}: {real:?} on ranks, {simulated:?} in simulation", entry.name)));
            }
            if real.imbalance.after.max_over_mean > real.imbalance.before.max_over_mean {
                return Err(Error::Failed(format!("{}, seed {seed}: the slowest rank became slower: {real:?}", entry.name)));
            }
            declined += u32::from(real.declined);
        }
    }
    // Otherwise the seeds don't show what this is for. Unit tasks on equal ranks are never declined where every node has a rank, and of tasks of
    // several units these seeds have some that are on 5 ranks.
    let any = if weights == "unit" { powers != "equal" } else { ranks == 5 };
    if world.is_first() && any && ranks > 2 && declined == 0 {
        return Err(Error::Failed("no phase was declined".into()));
    }
    Ok(())
}

/// The outcome on ranks, if this rank has one, which is the same in simulation.
fn alike<T: PartialEq + Debug>(world: &mut World, what: &str, run: impl Fn(&mut World) -> Result<Option<T>>) -> Result<Option<T>> {
    let Some(real) = run(world)? else { return Ok(None) };
    let simulated = run(&mut World::simulated(world.ranks(), sim::Model::default()))?;
    if Some(&real) == simulated.as_ref() {
        return Ok(Some(real));
    }
    Err(Error::Failed(format!("{what}: {real:?} on ranks, {simulated:?} in simulation")))
}

/// Task i talks to the task that has its place on the next rank: what crosses is the same as in simulation, and less with locality.
fn talking(world: &mut World) -> Result<()> {
    const EACH: u64 = 6;
    let ranks = world.ranks();
    let all = u64::from(ranks) * EACH;
    let run = |world: &mut World, balancer: &str| {
        let links = (0..all).map(|task| Link { ends: (task, (task + EACH) % all), bytes: 100.0 }).collect();
        let overlay = Overlay::new(Topology::parse("complete", ranks)?, world.hosts())?;
        let tasks = Tasks::numbered(world, vec![EACH; ranks as usize], 700)?.linked(links);
        let spec = BalanceSpec::new(Rc::new(balance::find(balancer)?), overlay, tasks, Powers::equal(ranks, ranks));
        let record = experiment::balance(world, &spec)?;
        Ok::<_, Error>(record.map(|record| (record.finals.clone(), record.messages, record.crossings)))
    };
    for balancer in ["refine", "refine:locality=0", "refine:locality=0.5"] {
        let Some(real) = alike(world, balancer, |world| run(world, balancer))? else { continue };
        let crossings = real.2.unwrap_or_default();
        let crosses = if ranks > 1 { 100.0 * all as f64 } else { 0.0 };
        let is_better = ranks == 1 || crossings.after.ranks < crosses;
        if crossings.before.ranks != crosses || is_better == (balancer == "refine" && ranks > 1) {
            return Err(Error::Failed(format!("{balancer}: {crossings:?}")));
        }
    }
    Ok(())
}

/// Work is uneven one way and bytes the other way: both are evened out as in simulation, some tasks pinned, on unequal ranks.
fn vectors(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let of = |task: u32| {
        let rank = task % ranks;
        // Some have no work, and some no bytes.
        let (work, bytes) = (u64::from(task % 5 * (rank + 1)), u64::from(task % 7 * (ranks - rank)));
        MeasuredTask { rank: RankId::new(rank), name: None, work, bytes, pinned: task.is_multiple_of(9) }
    };
    let mut run = measured(ranks, 12, of);
    run.columns = ["bytes", "work"].into_iter().filter_map(|name| run.column(name)).collect();
    let balanced = |world: &mut World, balancer: &str| {
        let overlay = Overlay::new(Topology::parse("complete", ranks)?, world.hosts())?;
        let tasks = Tasks::measured(world, &run)?;
        let powers = (0..u64::from(ranks)).map(|rank| 2 + rank % 2).collect();
        let powers = Powers::listed(powers).map_err(|why| Error::usage(why.to_string()))?;
        let spec = BalanceSpec::new(Rc::new(balance::find(balancer)?), overlay, tasks, powers);
        let record = experiment::balance(world, &spec)?;
        Ok::<_, Error>(record.map(|record| (record.finals.clone(), record.moves.clone(), record.messages, record.declined, record.columns)))
    };
    for balancer in ["greedy", "refine", "greedy-refine", "none"] {
        let Some(real) = alike(world, balancer, |world| balanced(world, balancer))? else { continue };
        let columns = real.4.as_ref().ok_or_else(|| Error::Failed("no columns".into()))?;
        let worst = |of: fn(&ColumnRatio) -> f64| columns.iter().map(of).fold(0.0, f64::max);
        let (before, after) = (worst(|column| column.before), worst(|column| column.after));
        if after > before || ranks > 1 && (balancer == "none") != (after == before) || columns.len() != 2 {
            return Err(Error::Failed(format!("{balancer}: {columns:?}")));
        }
    }
    Ok(())
}

/// The nodes are placed at random, and each rank's tasks lie in a strip of the plane, most of them on rank 0: as in simulation, also with work of all
/// sizes, and the strips are shared.
fn placed(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let of = |task: u32| {
        let rank = if task.is_multiple_of(3) { task / 3 % ranks } else { 0 };
        MeasuredTask {
            rank: RankId::new(rank),
            name: None,
            work: u64::from(1 + task * task % 9),
            bytes: u64::from(task % 5),
            pinned: false,
        }
    };
    let mut run = measured(ranks, 20, of);
    run.places = (0u32..).zip(&run.tasks).map(|(at, task)| [f64::from(task.rank.get()), f64::from(at * 7 % 31), 0.0]).collect();
    let balanced = |world: &mut World, balancer: &str| {
        let overlay = Overlay::placed(Topology::parse("complete", ranks)?, world.hosts(), PlacementRule::Random, 5)?;
        let spec = BalanceSpec::new(Rc::new(balance::find(balancer)?), overlay, Tasks::measured(world, &run)?, Powers::equal(ranks, ranks));
        let record = experiment::balance(world, &spec)?;
        Ok::<_, Error>(record.map(|record| (record.final_by_rank, record.moves, record.messages, record.bytes, record.declined)))
    };
    for balancer in ["rcb", "sfc", "chains"] {
        let Some(real) = alike(world, balancer, |world| balanced(world, balancer))? else { continue };
        let (total, most) = (real.0.iter().sum::<u64>(), real.0.iter().max().copied().unwrap_or(0));
        // The largest task is 9 units; bisection cuts log2 of the ranks times.
        let near = most * u64::from(ranks) <= total + u64::from(ranks) * 9 * u64::from(ranks.ilog2() + 1);
        if !near {
            return Err(Error::Failed(format!("{balancer}: {real:?}")));
        }
    }
    Ok(())
}

/// Tasks as if they had been measured, as many for each rank.
fn measured(ranks: u32, each: u32, of: impl Fn(u32) -> MeasuredTask) -> MeasuredTasks {
    let mut tasks: Vec<_> = (0..ranks * each).map(of).collect();
    tasks.sort_by_key(|task| task.rank);
    MeasuredTasks { ranks, tasks, places: Vec::new(), communications: Vec::new(), columns: Vec::new(), left_out: 0, seconds_per_unit: None }
}

/// The ranks as if two of them shared a host each: as in simulation, near the mean, and bytes cross between hosts where there are several, since
/// the first host has most of the work.
fn two_levels(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let hosts = Hosts::from_names(&(0..ranks).map(|rank| format!("host{}", rank / 2)).collect::<Vec<_>>());
    let run = measured(ranks, 12, |task| MeasuredTask {
        rank: RankId::new(if task < ranks { task } else { task % ranks.min(2) }),
        name: None,
        work: u64::from(1 + task * 5 % 7),
        bytes: 40,
        pinned: false,
    });
    let of = |world: &mut World, balancer: &str| {
        let overlay = Overlay::new(Topology::parse("complete", ranks)?, hosts.clone())?;
        let spec = BalanceSpec::new(Rc::new(balance::find(balancer)?), overlay, Tasks::measured(world, &run)?, Powers::equal(ranks, ranks));
        let record = experiment::balance(world, &spec)?;
        Ok::<_, Error>(
            record.map(|record| (record.final_by_rank.clone(), record.messages, record.bytes, record.host_bytes, record.declined)),
        )
    };
    for balancer in ["hierarchical", "hierarchical:tolerance=1.1", "greedy"] {
        let Some(real) = alike(world, balancer, |world| of(world, balancer))? else { continue };
        let (total, most) = (real.0.iter().sum::<u64>(), real.0.iter().max().copied().unwrap_or(0));
        // No task has more than 7 units.
        if most * u64::from(ranks) * 10 > total * 11 + 70 * u64::from(ranks) || (ranks > 2) != (real.3 > 0) {
            return Err(Error::Failed(format!("{balancer}: {real:?}")));
        }
    }
    Ok(())
}

/// Bytes are uneven the other way than work, and no rank has room for much more than its share: as in simulation, and nobody is beyond its capacity.
fn capacities(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let run = measured(ranks, 12, |task| {
        let rank = task % ranks;
        MeasuredTask {
            rank: RankId::new(rank),
            name: None,
            work: u64::from(task % 5 * (rank + 1)),
            bytes: u64::from(1 + task % 7),
            pinned: task.is_multiple_of(9),
        }
    });
    let held = |rank: u32| run.tasks.iter().filter(|task| task.rank.get() == rank).map(|task| task.bytes).sum::<u64>();
    let most = (0..ranks).map(held).max().unwrap_or(0);
    let within = |world: &mut World, balancer: &str, capacity: u64| {
        let overlay = Overlay::new(Topology::parse("complete", ranks)?, world.hosts())?;
        let tasks = Tasks::measured(world, &run)?.within(vec![capacity; ranks as usize]);
        let spec = BalanceSpec::new(Rc::new(balance::find(balancer)?), overlay, tasks, Powers::equal(ranks, ranks));
        let record = experiment::balance(world, &spec)?;
        Ok::<_, Error>(record.map(|record| (record.final_by_rank.clone(), record.messages, record.bytes, record.declined, record.memory)))
    };
    for balancer in ["greedy", "refine", "greedy-refine", "kk", "hierarchical"] {
        // On two ranks there is no way around: tasks that wait for each other's room are refused.
        for room in [most + 7, if ranks == 2 { most + 14 } else { most + 2 }] {
            let what = format!("{balancer} within {room}");
            let Some(real) = alike(world, &what, |world| within(world, balancer, room))? else { continue };
            let is_within = real.4.as_ref().is_some_and(|memory| memory.after.iter().all(|bytes| *bytes <= room));
            if !is_within {
                return Err(Error::Failed(format!("{what}: {real:?}")));
            }
        }
    }
    Ok(())
}

/// `dem:lambda=optimal` is as in simulation, and ends below twice the mean where each node has its rank (one sweep).
fn optimal_exchange(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    for topology in ["mesh", "torus", "hypercube"] {
        for seed in 0..3 {
            let of = |world: &mut World| {
                let balancer = Rc::new(balance::find("dem:lambda=optimal")?);
                let topology = Topology::parse(topology, ranks)?;
                let nodes = topology.nodes();
                let loads = LoadPattern::parse("uniform:mean=40")?.draw(nodes, ranks, seed)?;
                let overlay = Overlay::new(topology, world.hosts())?;
                let tasks = Tasks::numbered(world, loads, 700)?;
                let spec = BalanceSpec { seed, ..BalanceSpec::new(balancer, overlay, tasks, Powers::equal(ranks, nodes)) };
                let record = experiment::balance(world, &spec)?;
                let told =
                    |record: BalanceRecord| (record.finals.clone(), record.moves.clone(), record.messages, record.bytes, record.declined);
                Ok::<_, Error>(record.map(told))
            };
            let what = format!("{topology}, seed {seed}");
            let Some(real) = alike(world, &what, of)? else { continue };
            let (most, total) = (real.0.iter().max().copied().unwrap_or(0), real.0.iter().sum::<u64>());
            // With virtual nodes the slowest rank may become slower, and then nothing moves.
            let is_uneven = real.0.len() == ranks as usize && most * u64::from(ranks) > total * 2;
            if is_uneven {
                return Err(Error::Failed(format!("{what}: {real:?}")));
            }
        }
    }
    Ok(())
}

/// `NAME+refine` is as in simulation, and ends no later than the walk alone.
fn repaired(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    for walk in ["twa", "cwa", "mwa", "kwa", "dem", "ops", "pslb", "psts", "tempered"] {
        let of = |world: &mut World, name: &str| record(world, name, ["uniform:1..10", "exponential:mean=10"], Some("p=0.1"), 2);
        let name = format!("{walk}+refine");
        let (Some(alone), Some(real)) = (of(world, walk)?, of(world, &name)?) else { continue };
        let simulated = of(&mut World::simulated(ranks, sim::Model::default()), &name)?;
        let told = |record: &BalanceRecord| (record.finals.clone(), record.moves.clone(), record.declined, record.messages, record.bytes);
        let slowest = |record: &BalanceRecord| record.imbalance.after.max_over_mean;
        // What is taken back at the end of a phase may happen to be better than the walk.
        let is_slower = slowest(&real) > slowest(&alone) && !real.declined && !alone.declined;
        if simulated.as_ref().map(told) != Some(told(&real)) || is_slower {
            let (real, simulated) = (told(&real), simulated.as_ref().map(told));
            let why = format!("{name}: {real:?} on ranks, {simulated:?} in simulation, {:?} without refine", alone.finals);
            return Err(Error::Failed(why));
        }
    }
    Ok(())
}

/// A file with a part for each task, in both forms. Rank r has r + 1 tasks at first; all go one rank on.
fn partitions(world: &mut World) -> Result<()> {
    let ranks = world.ranks();
    let first_of = |rank: u32| u64::from(rank) * u64::from(rank + 1) / 2;
    let tasks = first_of(ranks);
    let next = |task: u64| ((0..ranks).rfind(|rank| first_of(*rank) <= task).unwrap_or(0) + 1) % ranks;
    let lines: String = (0..tasks).map(|task| format!("{}\n", next(task))).collect();
    let named: String = (0..tasks).rev().map(|task| format!("{task} {}\n", next(task))).collect();
    let loads: Vec<u64> = (1..=u64::from(ranks)).collect();
    let run = |world: &mut World, text: &str| {
        let parts = balance::read_partition(text, ranks).map_err(Error::Failed)?;
        let overlay = Overlay::new(Topology::parse("complete", ranks)?, world.hosts())?;
        let balancer = Rc::new(balance::from_parts("next.part", parts));
        let spec = BalanceSpec::new(balancer, overlay, Tasks::numbered(world, loads.clone(), 700)?, Powers::equal(ranks, ranks));
        experiment::balance(world, &spec)
    };
    for text in [&lines, &named] {
        let Some(record) = run(world, text)? else { continue };
        let expected: Vec<u64> = (0..ranks).map(|rank| u64::from((rank + ranks - 1) % ranks) + 1).collect();
        if record.final_by_rank != expected || record.declined || record.transfers != u64::from(if ranks > 1 { ranks } else { 0 }) {
            return Err(Error::Failed(format!("the tasks did not go where the file says: {record:?}")));
        }
    }
    Ok(())
}

fn record(world: &mut World, balancer: &str, [powers, weights]: [&str; 2], pins: Option<&str>, seed: u64) -> Result<Option<BalanceRecord>> {
    let ranks = world.ranks();
    let balancer = Rc::new(balance::find(balancer)?);
    let topology: Topology = balancer.entry.default_topology(ranks);
    let nodes = topology.nodes();
    let loads = LoadPattern::parse("uniform:mean=3")?.draw(nodes, ranks, seed)?;
    let (powers, _) = PowerPattern::parse(powers)?.draw(nodes, ranks, seed)?;
    let weights = WeightPattern::parse(weights)?.draw(loads.iter().sum(), seed)?;
    let pins = pins.map(|pins| Pins::parse(pins, seed)).transpose()?.unwrap_or_default();
    let overlay = Overlay::new(topology, world.hosts())?;
    let tasks = Tasks::weighing(world, loads, 700, weights, pins)?;
    let spec = BalanceSpec { seed, ..BalanceSpec::new(balancer, overlay, tasks, powers) };
    experiment::balance(world, &spec)
}
