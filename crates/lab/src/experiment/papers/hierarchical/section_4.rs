//! Section 4.3 on regions, distances and migrations, counted in traces of several streams.

use std::collections::BTreeMap;

use super::super::claims::{Claim, Finding, against, numbers};
use super::super::evidence::{Decision, Mean, all_above};
use super::super::{Item, Point, Points, Value};
use super::{CLAIM, GraphStream, STRATEGIES};
use crate::experiment::run::RunRecord;
use equipoise::error::{Error, Result};
use equipoise::schedule::Region;
use equipoise::schedule::accounting::{Happening, Name};
use equipoise::topology::{NodeId, Topology};

/// Streams, each with a part of the graphs: tasks of one stream are no independent cases.
const STREAMS: u32 = 8;

/// The host, where all roots are born.
const HOST: NodeId = 0;

const HOPS: &str = "hops from birth to execution";
const MIGRATIONS: &str = "migrations of a task";
const MOST_MIGRATIONS: &str = "most migrations of a task";
const ASTRAY: &str = "tasks outside their parents' regions";
/// Suffix of the name of a mean's curve: how much the mean is larger under the baseline.
const MORE: &str = ", distributed less hierarchical";

/// Path of a task from a trace: the nodes that it left, with the times, and the node on which it ran.
#[derive(Clone, Debug, Default)]
struct Way {
    /// Time at which it left a node, that node, and the node for which it left.
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

/// Claims of the section, judged.
pub fn claims() -> Vec<Claim> {
    let section = Claim { items: &[Item::Section(4)], ..CLAIM };
    fn of<'a>(points: &'a Points, what: &str, strategy: &str) -> Vec<&'a Point> {
        let name = format!("{what}, {strategy}");
        points.of(Item::Section(4)).into_iter().filter(|point| point.curve == name).collect()
    }
    /// How much larger a mean is under the baseline, on the same streams.
    fn more<'a>(points: &'a Points, what: &str) -> Vec<&'a Point> {
        points.of(Item::Section(4)).into_iter().filter(|point| point.curve == format!("{what}{MORE}")).collect()
    }
    fn tasks(points: &[&Point]) -> String {
        points.iter().map(|point| point.cases.to_string()).collect::<Vec<_>>().join(", ")
    }
    vec![
        Claim {
            id: "hierarchical-locality",
            place: "section 4.3.3",
            says: "Tasks run nearer to their parents than under distributed scheduling (loads 0.5 and 0.8)",
            reading: "neighbours announce their loads every half unit of time; the section's increased locality: mean hops from where a task is born, without roots, to where it runs",
            why: "a task of the hierarchical scheme migrates less often, but up to three hops at once; one of the baseline goes one hop at each migration",
            judge: |points| {
                let (hierarchical, distributed) = (of(points, HOPS, "hierarchical"), of(points, HOPS, "distributed"));
                let ours = format!("{} against {} hops", numbers(&hierarchical), numbers(&distributed));
                Finding::new(all_above(&against(&more(points, HOPS), 0.0)), &hierarchical, ours)
            },
            ..section
        },
        Claim {
            id: "hierarchical-sphere",
            place: "section 4.3.3",
            says: "All tasks of a graph are executed in one sphere (loads 0.5 and 0.8)",
            number: "0 tasks elsewhere",
            reading: "spheres are disjoint regions; the host executes no tasks, so that every task but the roots is born where its parent ran",
            why: "a task ran in another region than its parent",
            judge: |points| {
                let (ours, theirs) = (of(points, ASTRAY, "hierarchical"), of(points, ASTRAY, "distributed"));
                let text = format!(
                    "{}; under distributed scheduling {} of {} tasks in another region than their parents",
                    numbers(&ours),
                    numbers(&theirs),
                    tasks(&theirs)
                );
                Finding::new(Decision::of(ours.iter().all(|point| point.value == 0.0)), &ours, text)
            },
            ..section
        },
        Claim {
            id: "hierarchical-migrations",
            place: "section 4.3.4",
            says: "A task migrates at most once, where under distributed scheduling some migrate more often (loads 0.5 and 0.8)",
            number: "at most 1",
            why: "a task migrated more often, or none of the baseline did",
            judge: |points| {
                let (ours, theirs) = (of(points, MOST_MIGRATIONS, "hierarchical"), of(points, MOST_MIGRATIONS, "distributed"));
                let holds = ours.iter().all(|point| point.value <= 1.0) && theirs.iter().all(|point| point.value > 1.0);
                Finding::new(Decision::of(holds), &ours, format!("at most {} against {}", numbers(&ours), numbers(&theirs)))
            },
            ..section
        },
        Claim {
            id: "hierarchical-migrations-fewer",
            place: "section 4.3.4",
            says: "Tasks migrate less often than under distributed scheduling (loads 0.5 and 0.8)",
            why: "they don't",
            judge: |points| {
                let (ours, theirs) = (of(points, MIGRATIONS, "hierarchical"), of(points, MIGRATIONS, "distributed"));
                let text = format!("{} against {} migrations a task", numbers(&ours), numbers(&theirs));
                Finding::new(all_above(&against(&more(points, MIGRATIONS), 0.0)), &ours, text)
            },
            ..section
        },
    ]
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
