//! Section 3: the medians of the cube, and the processors around each of them; and how many tasks section 6.1 says a graph may have.
//!
//! The medians are those of the library's Hadamard code, which `hierarchical` has on this cube. Processors and medians are counted by their distances.

use super::super::claims::{Claim, agreeing, numbers};
use super::super::evidence::Decision;
use super::super::{Finding, Item, Job, Point, Points, Value};
use super::{CLAIM, DIMENSION};
use crate::workload::graphs::Growth;
use equipoise::error::Result;
use equipoise::topology::hadamard::{self, MedianSet};
use equipoise::topology::{MAX_DIMENSION, NodeId, Topology};

const MEDIANS: &str = "medians";
const RADIUS: &str = "covering radius";
const AROUND: &str = "processors at distance";
const SPHERE: &str = "processors of a sphere";
const APART: &str = "medians at distance";
const OF_OTHER_CUBES: &str = "medians of Q_n";
const MOST_TASKS: &str = "tasks of a graph at most, L_max = 3 and S_max = 4";

pub fn jobs() -> [Job; 2] {
    [
        Job::new(Item::Section(3), "medians", f64::from(DIMENSION), [1, 1], |_, _| medians()),
        Job::new(Item::Section(6), "graphs", 4.0, [1, 1], |_, _| Ok(vec![most_tasks()])),
    ]
}

/// A count of the cube, and the paper's.
fn count(name: impl Into<String>, ours: u64, printed: f64) -> Value {
    Value::exact(name, ours as f64, Some(printed), 1.0)
}

fn medians() -> Result<Vec<Value>> {
    let topology = Topology::parse(&format!("hypercube:{DIMENSION}"), 1 << DIMENSION)?;
    let medians = hadamard::medians(DIMENSION, MedianSet::default())?;
    let radius = hadamard::covering_radius(DIMENSION, &medians);
    // What is said of each median is that of the one that is furthest from it.
    let around_each = |is_counted: &dyn Fn(NodeId, NodeId) -> bool, printed: f64| -> u64 {
        let around = |median: &NodeId| (0..topology.nodes()).filter(|node| is_counted(*median, *node)).count() as u64;
        let away = |count: &u64| (*count as f64 - printed).abs();
        medians.iter().map(around).max_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or(0)
    };
    let mut values = vec![count(MEDIANS, medians.len() as u64, 16.0), count(RADIUS, radius.into(), 2.0)];
    for (distance, printed) in [(0, 1.0), (1, 8.0), (2, 28.0)] {
        let number = around_each(&|median, node| topology.distance(median, node) == distance, printed);
        values.push(count(format!("{AROUND}, {distance}"), number, printed));
    }
    values.push(count(SPHERE, around_each(&|median, node| topology.distance(median, node) <= radius, 37.0), 37.0));
    for (distance, printed) in [(8, 1.0), (4, 14.0)] {
        let number = around_each(&|median, node| topology.distance(median, node) == distance && medians.contains(&node), printed);
        values.push(count(format!("{APART}, {distance}"), number, printed));
    }
    for dimension in (4..=MAX_DIMENSION).step_by(4) {
        let number = hadamard::medians(dimension, MedianSet::Full)?.len();
        values.push(Value::exact(format!("{OF_OTHER_CUBES}, {dimension}"), number as f64, None, 0.0));
    }
    Ok(values)
}

/// The tasks of the graph in which every task above the last level has as many children as it may.
fn most_tasks() -> Value {
    let fullest = Growth { levels: 3, least: 4, children: 4 };
    count(MOST_TASKS, fullest.size(0, u64::MAX).unwrap_or(0), 85.0).helper_if(true)
}

/// The points whose names begin so.
fn named<'a>(points: &'a Points, name: &str) -> Vec<&'a Point> {
    points.of(Item::Section(3)).into_iter().filter(|point| point.curve.starts_with(name)).collect()
}

/// Claims of the section, judged.
pub fn claims() -> Vec<Claim> {
    let section = Claim { place: "section 3", items: &[Item::Section(3)], reading: "", ..CLAIM };
    vec![
        Claim {
            id: "hierarchical-medians",
            says: "Q8 has 16 medians, of which no processor is further than 2",
            number: "16, 2",
            why: "the code has another number of words, or another covering radius",
            judge: |points| agreeing(&[points.curve(Item::Section(3), MEDIANS), points.curve(Item::Section(3), RADIUS)].concat(), 1),
            ..section
        },
        Claim {
            id: "hierarchical-valencies",
            says: "Around every median of Q8 are 1, 8 and 28 processors at distances 0, 1 and 2: a sphere of 37",
            number: "1, 8, 28, 37",
            why: "around some median are others",
            judge: |points| agreeing(&[named(points, AROUND), named(points, SPHERE)].concat(), 1),
            ..section
        },
        Claim {
            id: "hierarchical-medians-apart",
            says: "From every median of Q8 one median is at distance 8, and 14 are at distance 4",
            number: "1, 14",
            why: "from some median they are elsewhere",
            judge: |points| agreeing(&named(points, APART), 1),
            ..section
        },
        Claim {
            id: "hierarchical-medians-number",
            says: "There are 2n medians where n is a multiple of 4",
            number: "2n",
            why: "some cube has another number",
            judge: |points| {
                let all = named(points, OF_OTHER_CUBES);
                let is_twice = |(step, point): (usize, &&Point)| point.value == 8.0 * (step + 1) as f64;
                let holds = all.len() == MAX_DIMENSION as usize / 4 && all.iter().enumerate().all(is_twice);
                Finding::new(Decision::of(holds), &all, format!("{}; n = 4 to {}", numbers(&all), 4 * all.len()))
            },
            ..section
        },
        Claim {
            id: "hierarchical-most-tasks",
            place: "section 6.1",
            items: &[Item::Section(6)],
            says: "Quaternary trees have up to 85 tasks",
            number: "85",
            reading: "the root is one of them",
            why: "the largest tree has another number of tasks",
            judge: |points| agreeing(&points.curve(Item::Section(6), MOST_TASKS), 1),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::{Effort, Measuring, Paper, Records, Verdict, judge, measure};
    use super::*;

    #[test]
    fn every_number_of_the_section_is_the_librarys() {
        let points = measure(Paper::Hierarchical, &jobs(), &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let printed: Vec<&Point> = points.0.iter().filter(|point| point.printed.is_some()).collect();
        assert_eq!(printed.len(), 9);
        assert!(printed.iter().all(|point| point.agrees == Some(true)), "{printed:?}");
        let judged = judge(Paper::Hierarchical, &claims(), &points, &Records::built_in().unwrap()).unwrap();
        assert!(judged.len() == 5 && judged.iter().all(|one| one.as_recorded), "{judged:?}");
        let of = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
        assert_eq!((of(Verdict::Reproduced), of(Verdict::UnderReading)), (4, 1));
        assert_eq!(judged[3].ours, "8, 16, 24, 32, 40, 48, 56; n = 4 to 28");
    }

    /// One number that is another one, and the claims that fall with it.
    #[test]
    fn another_number_is_against_its_claim() {
        let points = measure(Paper::Hierarchical, &jobs(), &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let fallen = |name: &str| -> Vec<&str> {
            let mut points = points.clone();
            let point = points.0.iter_mut().find(|point| point.curve == name).unwrap();
            (point.value, point.agrees) = (point.value + 1.0, point.agrees.map(|_| false));
            let fails = |claim: &Claim| (claim.judge)(&points).unwrap().holds == Decision::No;
            claims().iter().filter(|claim| fails(claim)).map(|claim| claim.id).collect()
        };
        for (name, claim) in [
            (MEDIANS, "hierarchical-medians"),
            (RADIUS, "hierarchical-medians"),
            ("processors at distance, 2", "hierarchical-valencies"),
            (SPHERE, "hierarchical-valencies"),
            ("medians at distance, 4", "hierarchical-medians-apart"),
            ("medians of Q_n, 12", "hierarchical-medians-number"),
            (MOST_TASKS, "hierarchical-most-tasks"),
        ] {
            assert_eq!(fallen(name), [claim], "{name}");
        }
    }
}
