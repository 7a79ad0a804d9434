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
const NEAREST: &str = "distance of the nearest two medians of Q_n";
const FURTHER: &str = "processors of Q_n that can be further apart";
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
        let medians = hadamard::medians(dimension, MedianSet::Full)?;
        let pairs = medians.iter().enumerate().flat_map(|(at, one)| medians[..at].iter().map(move |other| one ^ other));
        let nearest = pairs.map(NodeId::count_ones).min().unwrap_or(0);
        for (name, number) in [(OF_OTHER_CUBES, medians.len() as u32), (NEAREST, nearest), (FURTHER, most_words(dimension, nearest + 1))] {
            values.push(Value::exact(format!("{name}, {dimension}"), number.into(), None, 0.0));
        }
    }
    Ok(values)
}

/// An upper bound on the number of processors of a cube that are pairwise at this distance or further, where that is more than half of the dimension:
/// Plotkin's bound on binary codes (Plotkin, "Binary codes with specified minimum distance", 1960).
fn most_words(dimension: u32, distance: u32) -> u32 {
    // A code of odd distance has as many words as one with a parity bit more, whose distance is larger by one.
    let parity = distance % 2;
    let (length, distance) = (dimension + parity, distance + parity);
    if 2 * distance > length { 2 * (distance / (2 * distance - length)) } else { u32::MAX }
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
            id: "hierarchical-medians-spread",
            place: "section 4.3.2",
            says: "The medians are a maximally spread set of processors",
            reading: "no set of as many processors of the cube has a larger least distance, by Plotkin's bound; n = 4, 8, .. 28",
            why: "as many processors may be further apart",
            judge: |points| {
                let [medians, nearest, further] = [OF_OTHER_CUBES, NEAREST, FURTHER].map(|name| named(points, name));
                let holds =
                    medians.len() == MAX_DIMENSION as usize / 4 && further.iter().zip(&medians).all(|(most, ours)| most.value < ours.value);
                let ours =
                    format!("{} at least {} apart; {} at most further than that", numbers(&medians), numbers(&nearest), numbers(&further));
                Finding::new(Decision::of(holds), &medians, ours)
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
        assert!(judged.len() == 6 && judged.iter().all(|one| one.as_recorded), "{judged:?}");
        let of = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
        assert_eq!((of(Verdict::Reproduced), of(Verdict::UnderReading)), (4, 2));
        assert_eq!(judged[3].ours, "8, 16, 24, 32, 40, 48, 56; n = 4 to 28");
    }

    /// One number that is another one, and the claims that fall with it.
    #[test]
    fn another_number_is_against_its_claim() {
        let points = measure(Paper::Hierarchical, &jobs(), &Measuring::new(Effort::Quick, 1), |_| {}).unwrap();
        let fallen = |name: &str, by: f64| -> Vec<&str> {
            let mut points = points.clone();
            let point = points.0.iter_mut().find(|point| point.curve == name).unwrap();
            (point.value, point.agrees) = (point.value + by, point.agrees.map(|_| false));
            let fails = |claim: &Claim| (claim.judge)(&points).unwrap().holds == Decision::No;
            claims().iter().filter(|claim| fails(claim)).map(|claim| claim.id).collect()
        };
        for (name, by, claim) in [
            (MEDIANS, 1.0, "hierarchical-medians"),
            (RADIUS, 1.0, "hierarchical-medians"),
            ("processors at distance, 2", 1.0, "hierarchical-valencies"),
            (SPHERE, 1.0, "hierarchical-valencies"),
            ("medians at distance, 4", 1.0, "hierarchical-medians-apart"),
            ("medians of Q_n, 12", 1.0, "hierarchical-medians-number"),
            ("processors of Q_n that can be further apart, 4", 6.0, "hierarchical-medians-spread"),
            (MOST_TASKS, 1.0, "hierarchical-most-tasks"),
        ] {
            assert_eq!(fallen(name, by), [claim], "{name}");
        }
    }
}
