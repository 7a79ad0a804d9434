//! Section 4.3 on regions, distances and migrations, counted in traces of several streams.

use std::collections::BTreeMap;

use super::super::Value;
use super::super::evidence::Mean;
use super::{GraphStream, STRATEGIES};
use crate::experiment::run::RunRecord;
use equipoise::error::{Error, Result};
use equipoise::schedule::Region;
use equipoise::schedule::accounting::{Happening, Name};
use equipoise::topology::{NodeId, Topology};

/// Streams, each with a part of the graphs: tasks of one stream are no independent cases.
const STREAMS: u32 = 8;

/// The host, where all roots are born.
const HOST: NodeId = 0;

pub const HOPS: &str = "hops from birth to execution";
pub const MIGRATIONS: &str = "migrations of a task";
pub const MOST_MIGRATIONS: &str = "most migrations of a task";
pub const ASTRAY: &str = "tasks outside their parents' regions";
/// Of a mean: how much it is larger under the baseline.
pub const MORE: &str = ", distributed less hierarchical";

/// Where a task was, and when it came there: from a trace.
#[derive(Clone, Debug, Default)]
struct Way {
    /// When it left a node, that node, and for which it left.
    left: Vec<(u64, NodeId, NodeId)>,
    ran: Option<NodeId>,
}

/// Counts of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Mean of the tasks that are no roots, from where the parent ran to where the task did.
    hops: f64,
    migrations: f64,
    most_migrations: u64,
    /// Tasks that ran in another region than their parents.
    astray: u64,
    tasks: u64,
}

/// Distances and migrations of tasks under both strategies: means over streams, their difference on the same streams, and the most; and how many
/// tasks ran outside the region of their graph.
pub fn measured(stream: &GraphStream, seed: u64) -> Result<Vec<Value>> {
    let topology = Topology::parse(&format!("hypercube:{}", stream.dimension), 1 << stream.dimension)?;
    let part = GraphStream { graphs: (stream.graphs / STREAMS).max(1), ..*stream };
    // A host that executes nothing has no children of its own, so that all that is born on it are roots: every other task is born where its parent ran.
    let whole = part.run("hierarchical:host=dedicated", seed, true)?;
    let regions = whole.regions.clone();
    let strict = Counts::of(&whole, &topology, &regions, true);
    let mut values = vec![of_all(format!("{ASTRAY}, hierarchical"), strict.astray as f64, strict.tasks)];
    let mut all: [Vec<Counts>; 2] = Default::default();
    for number in 0..u64::from(STREAMS) {
        for ((scheduler, curve), counts) in STRATEGIES.iter().zip(&mut all) {
            let has_regions = *curve == "hierarchical";
            counts.push(Counts::of(&part.run(scheduler, seed + number, true)?, &topology, &regions, has_regions));
        }
    }
    for (what, of) in [(HOPS, (|counts| counts.hops) as fn(&Counts) -> f64), (MIGRATIONS, |counts| counts.migrations)] {
        let samples = all.each_ref().map(|counts| counts.iter().map(of).collect::<Vec<f64>>());
        let less: Vec<f64> = samples[1].iter().zip(&samples[0]).map(|(second, first)| second - first).collect();
        let tasks = all[0].iter().map(|counts| counts.tasks).sum();
        for (curve, samples) in [(", hierarchical", &samples[0]), (", distributed", &samples[1]), (MORE, &less)] {
            let mean = Mean::of(samples).ok_or_else(|| Error::Failed("no stream was measured".into()))?;
            values.push(Value::new(format!("{what}{curve}"), Mean { cases: tasks, ..mean }).helper_if(curve == MORE));
        }
    }
    for ((_, curve), counts) in STRATEGIES.iter().zip(&all) {
        let tasks = counts.iter().map(|counts| counts.tasks).sum();
        let most = counts.iter().map(|counts| counts.most_migrations).max().unwrap_or(0);
        values.push(of_all(format!("{MOST_MIGRATIONS}, {curve}"), most as f64, tasks));
    }
    let [_, distributed] = &all;
    let astray = distributed.iter().map(|counts| counts.astray).sum::<u64>();
    values.push(of_all(format!("{ASTRAY}, distributed"), astray as f64, distributed.iter().map(|counts| counts.tasks).sum()));
    Ok(values)
}

/// A number that was counted over all these tasks.
fn of_all(curve: String, value: f64, tasks: u64) -> Value {
    Value::new(curve, Mean { cases: tasks, ..Mean::exact(value) })
}

impl Counts {
    /// `has_regions`: whether the strategy sends roots to regions' medians, and not to any node.
    fn of(record: &RunRecord, topology: &Topology, regions: &[Region], has_regions: bool) -> Counts {
        let region = |node: NodeId| regions.iter().position(|region| region.members.contains(&node) || region.median == node);
        let mut of_node: Vec<Option<usize>> = (0..topology.nodes()).map(region).collect();
        // A host that executes nothing is in no region but that of its median.
        of_node[HOST as usize] = region(HOST);
        let mut counts = Counts::default();
        let mut children = 0;
        for (name, way) in ways(record) {
            let Some(ran) = way.ran else { continue };
            let migrations = way.migrations(name, |node| has_regions && of_node[node as usize] == of_node[HOST as usize]);
            counts.tasks += 1;
            counts.migrations += migrations as f64;
            counts.most_migrations = counts.most_migrations.max(migrations);
            // Roots, and on a host that executes tasks its children, which cannot be told apart.
            if name.born != HOST {
                children += 1;
                counts.hops += f64::from(topology.distance(name.born, ran));
                counts.astray += u64::from(of_node[name.born as usize] != of_node[ran as usize]);
            }
        }
        counts.hops /= f64::from(children.max(1));
        counts.migrations /= counts.tasks.max(1) as f64;
        counts
    }
}

impl Way {
    /// How often it migrated. A root does not when the host sends it where it is first scheduled: to the median of another region, or, under the
    /// baseline, to any node. (If that is the host itself, its next way is taken for this one: one of the baseline's roots in 256. A child that was born
    /// on the host is taken for a root.)
    fn migrations(&self, name: Name, is_at_home: impl Fn(NodeId) -> bool) -> u64 {
        let is_submitted = |(_, from, to): &(u64, NodeId, NodeId)| name.born == HOST && *from == HOST && !is_at_home(*to);
        self.left.len() as u64 - u64::from(self.left.first().is_some_and(is_submitted))
    }
}

/// The ways of all tasks in a trace.
fn ways(record: &RunRecord) -> BTreeMap<Name, Way> {
    let mut ways: BTreeMap<Name, Way> = BTreeMap::new();
    for node in &record.timeline {
        for entry in &node.entries {
            let Some(name) = entry.task else { continue };
            match entry.what {
                Happening::Left { to } => ways.entry(name).or_default().left.push((entry.at, node.node, to)),
                Happening::Executed { .. } => ways.entry(name).or_default().ran = Some(node.node),
                _ => {}
            }
        }
    }
    ways.values_mut().for_each(|way| way.left.sort_unstable());
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: GraphStream = GraphStream { dimension: 6, levels: 3, children: 2, utilisation: 0.8, rate: 20, graphs: 600 };

    fn topology() -> Topology {
        Topology::parse("hypercube:6", 64).unwrap()
    }

    #[test]
    fn migrations_are_those_that_the_run_counted() {
        for ((scheduler, _), has_regions) in STRATEGIES.iter().zip([true, false, false]) {
            let record = STREAM.run(scheduler, 3, true).unwrap();
            let regions = STREAM.run("hierarchical", 3, false).unwrap().regions;
            let counts = Counts::of(&record, &topology(), &regions, has_regions);
            assert_eq!(counts.tasks, record.tasks);
            let (ours, theirs) = (counts.migrations * counts.tasks as f64, record.migrated as f64);
            assert!((ours - theirs).abs() <= 0.02 * theirs, "{scheduler}: {ours} and {theirs}");
            assert!(if has_regions { counts.most_migrations == 1 } else { counts.most_migrations > 1 }, "{scheduler}: {counts:?}");
        }
    }

    #[test]
    fn regions_that_lend_each_other_tasks_are_seen() {
        let of = |regions: &[Region]| {
            let record = STREAM.run("hierarchical:host=dedicated", 3, true).unwrap();
            Counts::of(&record, &topology(), regions, true).astray
        };
        let regions = STREAM.run("hierarchical:host=dedicated", 3, false).unwrap().regions;
        assert_eq!(of(&regions), 0);
        // Two nodes of different regions change places: what is placed on them is astray.
        let mut wrong = regions;
        let one = wrong[1].members[0];
        wrong[1].members[0] = wrong[2].members[0];
        wrong[2].members[0] = one;
        assert!(of(&wrong) > 0);
    }
}
