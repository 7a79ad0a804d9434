//! Blazewicz and Drozdowski 1995: the example of section 2 and figures 2 to 8 from the model's closed form, and the paper's distribution executed on
//! simulated ranks: against equations 1 to 3 (`Section(2)`), and as points of the figures.
//!
//! Nothing is random.

mod executed;

use std::collections::BTreeMap;

use super::super::blazewicz1995::figures;
use super::claims::{agreeing, numbers, short};
use super::evidence::Decision;
use super::{Axes, Claim, Finding, Item, Job, Point, Points, Study, Value};
use crate::divisible::model::hypercube::{processors_in, shares};
use crate::divisible::model::network::{Ports, routes};
use equipoise::error::{Error, Result};
use equipoise::topology::Topology;

pub(super) fn study() -> Study {
    let mut jobs = vec![
        Job::new(Item::Example(1), "d = 2", 2.0, [1, 1], |_, _| Ok(example())),
        Job::new(Item::Example(1), "executed", 2.0, [1, 1], |_, _| executed::example()),
    ];
    for number in 2..=8 {
        jobs.push(Job::new(Item::Figure(number), "curves", 0.0, [1, 1], move |_, _| curves(number)));
    }
    jobs.push(Job::new(Item::Section(2), "lemma", 0.0, [1, 1], |_, _| lemma()));
    for dimension in 2..=5 {
        jobs.push(Job::new(Item::Section(2), "executed", f64::from(dimension), [1, 1], move |_, _| executed::section(dimension)));
    }
    for number in 2..=8 {
        jobs.push(Job::new(Item::Figure(number), "executed", 0.0, [1, 1], move |_, _| executed::curves(number)));
    }
    Study { jobs, claims: claims() }
}

pub(super) fn axes(item: Item) -> Axes {
    let Item::Figure(number) = item else {
        return Axes::linear("executed on simulated ranks", "dimension d", "speed-up; parts of 1");
    };
    match figures().into_iter().find(|figure| figure.number == number) {
        Some(figure) => Axes { log_x: figure.log_x, log_y: figure.log_y, ..Axes::linear(figure.title, figure.x, figure.y) },
        None => Axes::default(),
    }
}

/// The example's shares, speed-up and utilisation, to four digits.
fn example() -> Vec<Value> {
    let alpha = shares(2, &1.0, &1.0, &1.0, &1.0).alpha;
    let ours = [alpha[0], alpha[1], alpha[2], 1.0 / alpha[0], 1.0 / alpha[0] / 4.0];
    EXAMPLE.iter().zip(ours).map(|((name, printed), ours)| Value::exact(*name, ours, Some(*printed), 1e-9)).collect()
}

/// Names and printed numbers of the example.
const EXAMPLE: [(&str, f64); 5] = [
    ("share in layer 0", 7.0 / 15.0),
    ("share in layer 1", 3.0 / 15.0),
    ("share in layer 2", 2.0 / 15.0),
    ("speed-up", 15.0 / 7.0),
    ("utilisation", 15.0 / 28.0),
];

/// Layers of the figures' hypercubes, and those of them that are not as the lemma of section 2 has them: by counting the processors of each layer, and
/// the links over which the distribution goes into and out of each of these.
fn lemma() -> Result<Vec<Value>> {
    let (mut layers, mut differing) = (0u32, 0u32);
    for dimension in 1..=12u32 {
        let nodes = 1u32 << dimension;
        let topology = Topology::parse(&format!("hypercube:{dimension}"), nodes)?;
        let (mut sends, mut receives) = (vec![0; nodes as usize], vec![0; nodes as usize]);
        for (from, to) in routes(&topology, 0, Ports::All) {
            sends[from as usize] += 1;
            receives[to as usize] += 1;
        }
        for layer in 0..=dimension {
            let inside: Vec<u32> = (0..nodes).filter(|node| topology.distance(0, *node) == layer).collect();
            let is_linked_so = |node: &u32| (receives[*node as usize], sends[*node as usize]) == (layer, dimension - layer);
            layers += 1;
            differing += u32::from(inside.len() as u64 != processors_in(dimension, layer) || !inside.iter().all(is_linked_so));
        }
    }
    let exact = |name: &str, value: u32, printed| Value::exact(name, value.into(), printed, 1.0).helper_if(true);
    Ok(vec![exact(LAYERS, layers, None), exact(OTHER_LAYERS, differing, Some(0.0))])
}

const LAYERS: &str = "layers of d = 1 to 12";
const OTHER_LAYERS: &str = "layers that are not as the lemma says";

/// Every curve of a figure.
fn curves(number: u32) -> Result<Vec<Value>> {
    let figure = figures().into_iter().find(|figure| figure.number == number);
    let figure = figure.ok_or_else(|| Error::Failed(format!("there is no figure {number}")))?;
    let named = |name: &str, (x, y): (f64, f64)| Value { x: Some(x), ..Value::exact(name, y, None, 0.0) };
    Ok(figure.curves.iter().flat_map(|curve| curve.points.iter().map(|point| named(&curve.name, *point))).collect())
}

const CLAIM: Claim = Claim { id: "", place: "section 3", items: &[], says: "", number: "", reading: "", why: "", judge: |_| None };

/// The last value of a curve.
fn last<'a>(points: &'a Points, figure: u32, curve: &str) -> Option<&'a Point> {
    points.of(Item::Figure(figure)).into_iter().rfind(|point| point.curve == curve)
}

/// The place of a curve's largest value.
fn fullest(points: &Points, curve: &str) -> Option<f64> {
    points.curve(Item::Figure(3), curve).into_iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|point| point.x)
}

/// The factor by which a processor's load falls very fast from layer to layer: the paper gives no number.
const VERY_FAST: f64 = 1.5;

/// Whether the load falls from each layer to the next, on every dimension of figure 2; and by which factor a layer on average.
fn falls_of_layers(points: &Points) -> Option<(bool, Vec<f64>)> {
    let (mut falls, mut factors) = (true, Vec::new());
    for dimension in 1..=12 {
        let name = format!("d = {dimension}");
        let curve = points.curve(Item::Figure(2), &name);
        let [first, .., last] = &curve[..] else { continue };
        falls &= curve.windows(2).all(|pair| pair[1].value < pair[0].value);
        factors.push((first.value / last.value).powf(1.0 / (curve.len() - 1) as f64));
    }
    (!factors.is_empty()).then_some((falls, factors))
}

/// Finding from two numbers, in words.
fn found(holds: bool, ours: String) -> Option<Finding> {
    Some(Finding { holds: Decision::of(holds), ours, cases: 1, interval: None })
}

fn claims() -> Vec<Claim> {
    let mut claims = vec![
        Claim {
            id: "divisible-example",
            place: "section 2, example",
            items: &[Item::Example(1)],
            says: "For d = 2 and all parameters 1 the layers' processors get 7/15, 3/15 and 2/15; speed-up 15/7, utilisation 15/28",
            number: "0.4667, 0.2, 0.1333, 2.143, 0.5357",
            judge: |points| agreeing(&points.of(Item::Example(1)), 1),
            ..CLAIM
        },
        Claim {
            id: "divisible-example-executed",
            place: "section 2, example",
            items: &[Item::Example(1)],
            says: "Executed on four processors, the example has these shares, speed-up and utilisation",
            number: "0.4667, 0.2, 0.1333, 2.143, 0.5357",
            reading: "on simulated ranks, until the last has computed its share, without answers; within 3 %",
            why: "a number is further away",
            judge: |points| {
                let ours: Vec<&Point> = EXAMPLE
                    .iter()
                    .filter_map(|(name, _)| points.at(Item::Example(1), &format!("{name}{}", executed::EXECUTED), 2.0))
                    .collect();
                let near = ours.iter().zip(EXAMPLE).all(|(ours, (_, theirs))| (ours.value / theirs - 1.0).abs() < 0.03);
                found(ours.len() == EXAMPLE.len() && near, numbers(&ours))
            },
        },
        Claim {
            id: "divisible-figure-2",
            items: &[Item::Figure(2)],
            says: "The load of a processor decreases very fast across the layers",
            reading: "very fast: by a third at least from layer to layer, on average over the layers of each dimension; and it decreases from each to the next. The bound is ours",
            why: "it decreases more slowly in some dimension",
            judge: |points| {
                let (falls, factors) = falls_of_layers(points)?;
                let least = factors.iter().copied().fold(f64::INFINITY, f64::min);
                let most = factors.iter().copied().fold(0.0, f64::max);
                found(
                    falls && least >= VERY_FAST,
                    format!("by factors of {} to {} a layer, {} dimensions", short(least), short(most), factors.len()),
                )
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-3",
            items: &[Item::Figure(3)],
            says: "The fullest layer is the originator for small dimensions and an inner one for larger",
            judge: |points| {
                let (small, large) = (fullest(points, "d = 2")?, fullest(points, "d = 12")?);
                found(small == 0.0 && large > 0.0 && large < 12.0, format!("layer {small} of d = 2, layer {large} of d = 12"))
            },
            ..CLAIM
        },
    ];
    claims.extend(execution());
    claims.extend(times());
    claims.extend(speedups());
    claims
}

fn execution() -> Vec<Claim> {
    let section = Claim { place: "section 2, equations 1 to 3", items: &[Item::Section(2)], ..CLAIM };
    vec![
        Claim {
            id: "divisible-lemma",
            place: "section 2, lemma",
            says: "Layer i of a d-dimensional hypercube has C(d, i) processors, each of which receives over i links and sends to d - i processors",
            number: "C(d, i), i, d - i",
            why: "a layer has another number of processors, or one of them other links",
            judge: |points| {
                let [layers, differing] = [LAYERS, OTHER_LAYERS].map(|name| points.at(Item::Section(2), name, 0.0));
                let (layers, differing) = (layers?, differing?);
                found(
                    layers.value > 0.0 && differing.value == 0.0,
                    format!("{} of {} layers are so, d = 1 to 12", layers.value - differing.value, layers.value),
                )
            },
            ..section
        },
        Claim {
            id: "divisible-executed-speedup",
            says: "Executed on hypercubes of d = 2 to 5 with w Tcp = z Tcm, the speed-up is 1 over the originator's share",
            number: "2.143, 2.917, 3.795, 4.747",
            reading: "on simulated ranks, until the last has computed its share, without answers; within 3 %",
            judge: |points| {
                let [ours, theirs] =
                    ["speed-up, executed", "speed-up by equations 1 to 3"].map(|curve| points.curve(Item::Section(2), curve));
                let near = ours.iter().zip(&theirs).all(|(ours, theirs)| (ours.value / theirs.value - 1.0).abs() < 0.03);
                found(ours.len() == 4 && near, numbers(&ours))
            },
            ..section
        },
        Claim {
            id: "divisible-executed-finish",
            says: "Executed so, all processors finish at the same time",
            reading: "on simulated ranks; within 2 % of the whole time",
            judge: |points| {
                let apart = points.curve(Item::Section(2), "finish times apart");
                let most = apart.iter().map(|point| point.value).fold(0.0, f64::max);
                found(apart.len() == 4 && most < 0.02, format!("{} of the whole time apart at most", short(most)))
            },
            ..section
        },
        Claim {
            id: "divisible-executed-figures",
            place: "section 3, figures 2 to 8",
            items: &[Item::Figure(2), Item::Figure(3), Item::Figure(4), Item::Figure(5), Item::Figure(6), Item::Figure(7), Item::Figure(8)],
            says: "Shares, times, speed-up and utilisation are those of the figures, executed on hypercubes of d = 1 to 8 with every speed of processors and links",
            reading: "on simulated ranks, until the last has computed its share, without answers; every point within 3 %",
            why: "a point is further away",
            judge: |points| {
                let (most, number) = off_the_curves(points)?;
                found(number > 0 && most < 0.03, format!("{number} points, at most {} % away", short(100.0 * most)))
            },
            ..CLAIM
        },
    ]
}

/// How far the executed points of all figures are from the model's curves at most, in parts of these.
fn off_the_curves(points: &Points) -> Option<(f64, usize)> {
    let (mut most, mut number) = (0.0f64, 0);
    for item in (2..=8).map(Item::Figure) {
        for point in points.of(item) {
            let Some(curve) = point.curve.strip_suffix(executed::EXECUTED) else { continue };
            let model = points.at(item, curve, point.x)?;
            most = most.max((point.value / model.value - 1.0).abs());
            number += 1;
        }
    }
    Some((most, number))
}

fn times() -> Vec<Claim> {
    vec![
        Claim {
            id: "divisible-figures-4-to-6",
            place: "section 3, figures 4 to 6",
            items: &[Item::Figure(4), Item::Figure(5), Item::Figure(6)],
            says: "The execution time decreases with the dimension of the hypercube",
            why: "on some curve it does not, from some dimension to the next",
            judge: |points| {
                let mut curves: BTreeMap<(Item, &str), Vec<f64>> = BTreeMap::new();
                for point in [4, 5, 6].into_iter().flat_map(|number| points.of(Item::Figure(number))) {
                    curves.entry((point.item, &point.curve)).or_default().push(point.value);
                }
                let falls = |curve: &&Vec<f64>| curve.len() > 1 && curve.windows(2).all(|pair| pair[1] < pair[0]);
                let number = curves.values().filter(falls).count();
                found(number == curves.len(), format!("on {number} of {} curves, those executed included", curves.len()))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-4-slow",
            items: &[Item::Figure(4)],
            says: "On slow processors (w = 10) the execution time can be reduced by two orders of magnitude",
            number: "100 times",
            reading: "within the figure's dimensions, up to 12",
            judge: |points| {
                let time = last(points, 4, "w = 10")?.value;
                found(10.0 / time >= 100.0, format!("{} times: from 10 to {}", short(10.0 / time), short(time)))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-4-fast",
            items: &[Item::Figure(4)],
            says: "On fast processors (w = 0.1) the reduction is smaller",
            judge: |points| {
                let (fast, slow) = (0.1 / last(points, 4, "w = 0.1")?.value, 10.0 / last(points, 4, "w = 10")?.value);
                found(fast < slow, format!("{} and {} times", short(fast), short(slow)))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-5-links",
            items: &[Item::Figure(5)],
            says: "A fast network (z = 0.1) shortens the execution more than a slow one (z = 10)",
            judge: |points| {
                let (fast, slow) = (last(points, 5, "z = 0.1")?.value, last(points, 5, "z = 10")?.value);
                found(fast < slow, format!("{} and {} on d = 12", short(fast), short(slow)))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-5-ideal",
            items: &[Item::Figure(5)],
            says: "From z = 0.1 to the ideal network (z = 0) the time falls little in absolute terms",
            reading: "little: by less than a tenth of the time on one processor, on every dimension",
            judge: |points| {
                let (real, ideal) = (points.curve(Item::Figure(5), "z = 0.1"), points.curve(Item::Figure(5), "z = 0"));
                let most = real.iter().zip(&ideal).map(|(real, ideal)| real.value - ideal.value).fold(0.0, f64::max);
                found(most < 0.1, format!("by {} at most", short(most)))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-6",
            items: &[Item::Figure(6)],
            says: "The gain from parallel processing is larger for large tasks (Tcp = 10)",
            judge: |points| {
                let relative =
                    ["Tcp = 0.1", "Tcp = 1", "Tcp = 10"].map(|curve| last(points, 6, curve).map_or(f64::NAN, |point| point.value));
                let holds = relative[2] < relative[1] && relative[1] < relative[0];
                found(holds, format!("relative times {} on d = 12", relative.map(short).join(", ")))
            },
            ..CLAIM
        },
    ]
}

fn speedups() -> Vec<Claim> {
    vec![
        Claim {
            id: "divisible-figure-7-linear",
            items: &[Item::Figure(7)],
            says: "The speed-up is linear on a perfect network",
            judge: |points| {
                let curve = points.curve(Item::Figure(7), "z = 0");
                let off = curve.iter().map(|point| (point.value / point.x - 1.0).abs()).fold(0.0, f64::max);
                found(!curve.is_empty() && off < 1e-9, format!("{} on 4096 processors", short(curve.last()?.value)))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-7-levels",
            items: &[Item::Figure(7)],
            says: "For z above 0 the speed-up levels off very fast, especially for slow networks (z = 10)",
            reading: "on 4096 processors, with bounds of ours: below a tenth of linear for z = 0.1, below 3 for z = 10",
            judge: |points| {
                let speedups = ["z = 0.1", "z = 1", "z = 10"].map(|curve| last(points, 7, curve).map_or(f64::NAN, |point| point.value));
                let holds = speedups[0] < 4096.0 / 10.0 && speedups[1] < speedups[0] && speedups[2] < 3.0;
                found(holds, format!("{} on 4096 processors", speedups.map(short).join(", ")))
            },
            ..CLAIM
        },
        Claim {
            id: "divisible-figure-8",
            items: &[Item::Figure(8)],
            says: "Utilisation decreases with the size of the network; it is 1 on the perfect network only",
            judge: |points| {
                let falls = |curve: &str| points.curve(Item::Figure(8), curve).windows(2).all(|pair| pair[1].value < pair[0].value);
                let holds = ["z = 0.1", "z = 1", "z = 10"].into_iter().all(falls);
                let ideal = last(points, 8, "z = 0")?.value;
                let least = last(points, 8, "z = 0.1")?.value;
                found(holds && (ideal - 1.0).abs() < 1e-9, format!("{} for z = 0, {} for z = 0.1 on d = 12", short(ideal), short(least)))
            },
            ..CLAIM
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Measuring, Paper, Records, Verdict, judge, measure};
    use super::*;

    /// All of it takes no time, so that it is judged here as `equipoise reproduce` does.
    #[test]
    fn all_claims_are_as_recorded() {
        let study = study();
        let points = measure(Paper::Divisible, &study.jobs, &Measuring::new(Effort::Full, 1), |_| {}).unwrap();
        let judged = judge(Paper::Divisible, &study.claims, &points, &Records::built_in().unwrap()).unwrap();
        assert_eq!(judged.len(), study.claims.len());
        assert!(judged.iter().all(|one| one.as_recorded), "{judged:#?}");
        assert!(judged.iter().any(|one| one.verdict == Verdict::Reproduced));
    }
}
